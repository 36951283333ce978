//! What is read of a conversation is bounded in bytes, whatever is in it.

use super::*;
use crate::agents::builtin::tables::{self, MessageRow, StoredCall};
use crate::agents::runs::{Marker, Role};

/// Adds messages to the conversation `t`, one for each role and text.
async fn add(w: &World, run: &Run, messages: Vec<(&'static str, String)>) {
    let run = run.id.clone();
    w.db.write(move |c| {
        let thread = tables::thread(c, "ada", "t")?.unwrap().key;
        for (role, text) in messages {
            let number = tables::next_number(c, thread)?;
            let call = StoredCall { id: "c".into(), name: "x".into(), arguments: json!({"a": [0, 0]}), problem: None };
            let calls = if role == "assistant" { vec![call] } else { Vec::new() };
            let message = MessageRow {
                number,
                id: format!("added-{number}"),
                role: role.into(),
                text,
                run: run.clone(),
                calls,
                ..MessageRow::default()
            };
            tables::append(c, thread, &message)?;
        }
        Ok(())
    })
    .await
    .unwrap();
}

fn bytes(state: &ThreadState) -> usize {
    state.messages.iter().map(|m| m.text.len()).sum()
}

async fn world(dir: &tempfile::TempDir) -> (World, Run) {
    let w = World::open(dir.path(), vec![agent("a", "")], |_: &_| text("hello"), fine);
    let run = w.run("h1", "hi").await;
    (w, run)
}

#[tokio::test]
async fn of_a_huge_turn_the_component_gets_its_beginning_and_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let (w, run) = world(&dir).await;
    let round = |n: usize| [("assistant", format!("{n} {}", "x".repeat(250_000))), ("tool", "y".repeat(30_000))];
    add(&w, &run, (0..200).flat_map(round).collect()).await;
    add(&w, &run, vec![("assistant", "the answer".into())]).await;
    let state = w.state().await;
    assert!(state.found && state.more, "it says that something is left out");
    assert!(bytes(&state) < 1 << 20, "{} bytes", bytes(&state));
    assert_eq!((state.messages[0].id.as_str(), state.messages[0].role), ("h1", Role::Human));
    assert_eq!(state.messages.last().unwrap().text, "the answer");
    assert!(state.messages.iter().skip(1).all(|m| m.role != Role::Human));
    let long = state.messages.iter().find(|m| m.text.starts_with("199 ")).unwrap();
    assert!(long.text.contains("[shortened: "), "a cut text says so");
    assert_eq!(state.checkpoint, state.messages.last().map(|m| m.id.clone()));
}

#[tokio::test]
async fn a_human_message_that_follows_is_seen_however_much_comes_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let (w, run) = world(&dir).await;
    add(&w, &run, vec![("human", "something else".into())]).await;
    let many = |n: usize| ("assistant", format!("{n} {}", "x".repeat(1_000)));
    add(&w, &run, (0..600).map(many).collect()).await;
    let state = w.state().await;
    assert!(state.more && state.messages.len() <= 500);
    let humans: Vec<&str> = state.messages.iter().filter(|m| m.role == Role::Human).map(|m| m.text.as_str()).collect();
    assert_eq!(humans, ["hi", "something else"]);
    assert!(state.messages.last().unwrap().text.starts_with("599 "));
    // A later marker has nothing left out before it.
    let marker = Marker { message_id: "none".into(), run: None };
    assert!(!w.runs("ada").state("t", Some(&marker)).await.unwrap().found);
}

#[tokio::test]
async fn one_message_is_shown_however_large_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], |_: &_| text(&"研".repeat(300_000)), fine);
    let run = w.run("h1", &"x".repeat(1 << 20)).await;
    assert_eq!(run.status, RunStatus::Succeeded);
    let state = w.state().await;
    assert!(!state.more && bytes(&state) < 200_000);
    assert_eq!(state.messages.len(), 2);
}

#[tokio::test]
async fn long_arguments_that_wait_for_an_approval_are_shown_in_part() {
    let dir = tempfile::tempdir().unwrap();
    let list = vec!["0"; 500_000].join(",");
    let brain = move |_: &ModelRequest| calls(&[("send_member", &format!("{{\"list\":[{list}]}}"))]);
    let w = World::open(dir.path(), vec![agent("a", "approve = ['send_member']")], brain, fine);
    let run = w.run("h1", "hi").await;
    assert_eq!(run.status, RunStatus::Interrupted);
    let state = w.state().await;
    let value: Value = serde_json::from_str(&state.interrupts[0].value).unwrap();
    assert!(state.interrupts[0].value.len() < 64 * 1024);
    let shown = value["arguments"]["shortened"].as_str().unwrap();
    assert!(shown.starts_with("{\"list\":[0,0,") && shown.contains("[shortened: "), "the beginning, and a mark");
    assert_eq!(value["tool"], "send_member");
}

#[tokio::test]
async fn a_page_of_a_conversation_is_bounded_in_bytes_and_the_next_one_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (w, run) = world(&dir).await;
    add(&w, &run, (0..40).map(|n| ("assistant", format!("{n} {}", "x".repeat(250_000)))).collect()).await;
    let (mut after, mut seen, mut pages) = (None, 0, 0);
    loop {
        let page = w.agents.conversation("ada", "t", after, 500).unwrap();
        let bytes: usize = page.messages.iter().map(|m| m.text.len()).sum();
        assert!(!page.messages.is_empty() && bytes <= 1 << 20, "{bytes} bytes");
        seen += page.messages.len();
        pages += 1;
        after = page.messages.last().map(|m| m.number);
        if !page.more {
            break;
        }
    }
    assert_eq!(seen, 42, "nothing is left out");
    assert!(pages >= 10);
}
