//! Long conversations: windows and costs.

use super::*;
use crate::agents::builtin::window;
use crate::agents::providers::ModelMessage;

fn input_size(request: &ModelRequest) -> usize {
    let tools = request
        .tools
        .iter()
        .map(|t| 8 + (t.name.len() + t.description.len() + t.input_schema.to_string().len()).div_ceil(3));
    window::size(&request.messages) + request.instructions.len().div_ceil(3) + tools.sum::<usize>()
}

fn first_human(request: &ModelRequest) -> &str {
    match &request.messages[0] {
        ModelMessage::Human { text } => text,
        other => panic!("a window begins with a whole turn, not with {other:?}"),
    }
}

#[tokio::test]
async fn ctx_5_the_input_stays_under_each_windows_bound_at_every_turn() {
    let dir = tempfile::tempdir().unwrap();
    let agents = vec![agent("a", "context_tokens = 4000"), agent("b", "context_tokens = 12000")];
    let brain = |r: &ModelRequest| match r.call {
        0 if r.messages.len().is_multiple_of(3) => calls(&[("send_member", "{}")]),
        _ => text(&"words ".repeat(60)),
    };
    let hand = |_: &Caller, _: &str, _: &Value| Act::Do(Ok("r".repeat(5_000)));
    let w = World::open(dir.path(), agents, brain, hand);
    for (thread, name) in [("t", "a"), ("u", "b")] {
        w.runs("ada").create_thread(thread, name, "", "group").await.unwrap();
    }
    for turn in 0..400 {
        for thread in ["t", "u"] {
            let words = format!("turn {turn}: {}", "研究".repeat(turn % 50));
            let run = w.start(thread, &format!("h{turn}"), &words, None).await.unwrap();
            assert_eq!(w.until_event(&run).await.status, RunStatus::Succeeded);
        }
    }
    let (mut largest, mut turns) = ([0, 0], [0, 0]);
    for request in w.requests() {
        let at = usize::from(request.agent == "b");
        let size = input_size(&request);
        assert!(size <= [4_000, 12_000][at], "{} has {size}", request.agent);
        largest[at] = largest[at].max(size);
        let humans = request.messages.iter().filter(|m| matches!(m, ModelMessage::Human { .. })).count();
        turns[at] = turns[at].max(humans);
        assert!(first_human(&request).starts_with("turn "));
        let last = request.messages.iter().rev().find_map(|m| match m {
            ModelMessage::Human { text } => Some(text.as_str()),
            _ => None,
        });
        assert!(last.is_some_and(|l| l.starts_with("turn ")));
    }
    // The windows are used, each up to its own size.
    assert!(largest[0] > 2_000 && largest[1] > 6_000 && turns[1] > turns[0], "{largest:?} {turns:?}");
}

#[tokio::test]
async fn ctx_3_the_present_message_is_whole_and_what_is_shortened_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let brain = |r: &ModelRequest| match r.call {
        0..20 => calls(&[("send_member", &format!("{{\"n\":{}}}", r.call))]),
        _ => text("done"),
    };
    let hand = |_: &Caller, _: &str, _: &Value| Act::Do(Ok("r".repeat(20_000)));
    let w = World::open(dir.path(), vec![agent("a", "context_tokens = 3000")], brain, hand);
    let words = format!("begin {} end", "x".repeat(3_000));
    assert_eq!(w.run("h1", &words).await.status, RunStatus::Succeeded);
    for request in w.requests() {
        assert_eq!(first_human(&request), words);
        assert!(input_size(&request) <= 3_000, "{}", input_size(&request));
    }
    let last = w.requests().pop().unwrap();
    let first_result = last.messages.iter().find_map(|m| match m {
        ModelMessage::Tool { text, .. } => Some(text.clone()),
        _ => None,
    });
    let first_result = first_result.unwrap();
    assert!(first_result.contains("earlier steps of this turn are left out") && first_result.contains("[shortened: "));
}

#[tokio::test]
async fn a_provider_that_finds_the_input_too_long_is_sent_less_until_it_fits() {
    let dir = tempfile::tempdir().unwrap();
    let brain = |r: &ModelRequest| {
        if window::size(&r.messages) > 700 { Act::Do(Err(ModelError::ContextTooLong)) } else { text(&"w ".repeat(150)) }
    };
    let w = World::open(dir.path(), vec![agent("a", "")], brain, fine);
    w.runs("ada").create_thread("t", "a", "", "group").await.unwrap();
    for turn in 0..20 {
        let run = w.start("t", &format!("h{turn}"), &"question ".repeat(20), None).await.unwrap();
        assert_eq!(w.until_event(&run).await.status, RunStatus::Succeeded, "turn {turn}");
    }
    let long = w.start("t", "long", &"x".repeat(6_000), None).await.unwrap();
    assert_failed(&w.until_event(&long).await, "context_too_long");
}

#[tokio::test]
async fn an_answer_whose_question_left_the_window_is_shown_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let brain = |r: &ModelRequest| match r.messages.last() {
        Some(ModelMessage::Human { text: t }) if t.starts_with("long") => {
            calls(&[("send_member", "{}"), ("ask_clarification", r#"{"question":"Which colour?"}"#)])
        }
        _ => text("done"),
    };
    let w = World::open(dir.path(), vec![agent("a", "context_tokens = 2000")], brain, fine);
    w.run("h1", &format!("long{}", "x".repeat(20_000))).await;
    let question = w.state().await.open_question.unwrap();
    let run = w.start("t", "h2", "blue", Some(&question.id)).await.unwrap();
    w.until_event(&run).await;
    assert_eq!(first_human(&w.requests()[1]), "You asked earlier:\nWhich colour?\n\nThe answer:\nblue");
}

#[tokio::test]
async fn perf_1_the_two_thousandth_turn_costs_what_the_hundredth_did() {
    let dir = tempfile::tempdir().unwrap();
    let words = "w".repeat(1_024);
    let w = World::open(dir.path(), vec![agent("a", "")], move |_: &_| text(&words), fine);
    w.runs("ada").create_thread("t", "a", "", "group").await.unwrap();
    let mut costs = [0, 0];
    for turn in 0..2_000 {
        let before = w.db.stats().wal_pages;
        let run = w.start("t", &format!("h{turn}"), &"q".repeat(1_024), None).await.unwrap();
        assert_eq!(w.until_event(&run).await.status, RunStatus::Succeeded);
        let pages = w.db.stats().wal_pages - before;
        match turn {
            90..100 => costs[0] += pages,
            1_990.. => costs[1] += pages,
            _ => {}
        }
    }
    assert!(costs[0] > 0 && costs[1] <= costs[0] * 2, "{costs:?}");
    // What a model call reads is bounded too.
    let last = w.requests().pop().unwrap();
    let hundredth = &w.requests()[99];
    assert!(input_size(&last) <= input_size(hundredth) * 2);
    w.db.close();
    let text = 2_000 * 2_048;
    let stored: u64 = std::fs::read_dir(dir.path())
        .unwrap()
        .filter_map(|e| e.unwrap().metadata().ok().filter(|m| m.is_file()).map(|m| m.len()))
        .sum();
    assert!(stored < text * 5, "{stored} bytes for {text}");
}
