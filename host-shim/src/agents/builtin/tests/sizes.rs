//! What is read of a conversation is bounded in bytes, whatever is in it.

use super::*;
use crate::agents::runs::{Marker, Message, Role};
use crate::storage::tables::agents::{MessageRow, Role as Stored, StoredCall};

/// Adds messages to the conversation `t`, one for each role and text.
async fn add(w: &World, run: &Run, messages: Vec<(Stored, String)>) {
    let run = run.id.clone();
    w.tables
        .write(move |rows| {
            let thread = rows.thread("ada", "t")?.unwrap().key;
            for (role, text) in messages {
                let number = rows.next_number(thread)?;
                let call =
                    StoredCall { id: "c".into(), name: "x".into(), arguments: json!({"a": [0, 0]}), problem: None };
                let calls = if role == Stored::Assistant { vec![call] } else { Vec::new() };
                let message = MessageRow {
                    number,
                    id: format!("added-{number}"),
                    role,
                    text,
                    run: run.clone(),
                    calls,
                    ..MessageRow::default()
                };
                rows.append(thread, &message)?;
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

/// The whole turn, page by page, with the size of the largest page.
async fn pages(w: &World) -> (Vec<Message>, usize, usize) {
    let runs = w.runs("ada");
    let marker = Marker { message_id: "h1".into(), run: None };
    let (mut all, mut largest, mut count, mut after) = (Vec::new(), 0, 0, None::<String>);
    loop {
        let page = runs.state("t", after.is_none().then_some(&marker), after.as_deref()).await.unwrap();
        assert!(page.found && !page.messages.is_empty() && page.messages.len() <= 500);
        (largest, count) = (largest.max(bytes(&page)), count + 1);
        after = page.messages.last().map(|m| m.id.clone());
        all.extend(page.messages);
        if !page.more {
            return (all, largest, count);
        }
    }
}

#[tokio::test]
async fn a_huge_turn_is_read_to_its_end_in_bounded_pages() {
    let dir = tempfile::tempdir().unwrap();
    let (w, run) = world(&dir).await;
    let round =
        |n: usize| [(Stored::Assistant, format!("{n} {}", "x".repeat(250_000))), (Stored::Tool, "y".repeat(30_000))];
    add(&w, &run, (0..200).flat_map(round).collect()).await;
    add(&w, &run, vec![(Stored::Assistant, "the answer".into())]).await;
    let (all, largest, count) = pages(&w).await;
    assert!(largest < 1 << 20 && count > 10, "{count} pages, {largest} bytes");
    assert_eq!(all.len(), 403, "nothing is left out");
    assert_eq!((all[0].id.as_str(), all[0].role), ("h1", Role::Human));
    assert_eq!(all.last().unwrap().text, "the answer");
    let long = all.iter().find(|m| m.text.starts_with("199 ")).unwrap();
    assert!(long.shortened && long.text.contains("[shortened: "), "a shortened text says so");
    assert!(!all.last().unwrap().shortened);
}

#[tokio::test]
async fn a_human_message_that_follows_is_on_one_of_the_pages() {
    let dir = tempfile::tempdir().unwrap();
    let (w, run) = world(&dir).await;
    let many = |n: usize| (Stored::Assistant, format!("{n} {}", "x".repeat(1_000)));
    add(&w, &run, (0..600).map(many).collect()).await;
    add(&w, &run, vec![(Stored::Human, "something else".into())]).await;
    add(&w, &run, (600..700).map(many).collect()).await;
    let (all, _, count) = pages(&w).await;
    assert!(count > 1);
    let humans: Vec<&str> = all.iter().filter(|m| m.role == Role::Human).map(|m| m.text.as_str()).collect();
    assert_eq!(humans, ["hi", "something else"]);
    assert!(all.last().unwrap().text.starts_with("699 "));
    // Neither a marker nor a place that is not there is found.
    let marker = Marker { message_id: "none".into(), run: None };
    assert!(!w.runs("ada").state("t", Some(&marker), None).await.unwrap().found);
    assert!(!w.runs("ada").state("t", None, Some("none")).await.unwrap().found);
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
    add(&w, &run, (0..40).map(|n| (Stored::Assistant, format!("{n} {}", "x".repeat(250_000)))).collect()).await;
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
