//! Approvals before marked tools.

use super::*;
use crate::agents::providers::ModelMessage;
use crate::agents::runs::{Cancellation, InterruptAnswer};

fn answer(id: &str, value: &str) -> InterruptAnswer {
    InterruptAnswer { checkpoint: None, id: id.into(), value: value.into() }
}

const MARKED: &str = "approve = ['send_member']";

fn two_then_done(r: &ModelRequest) -> Act<ModelReply, ModelError> {
    match r.call {
        0 => calls(&[("publish_state", "{}"), ("send_member", r#"{"n":1}"#), ("send_member", r#"{"n":2}"#)]),
        _ => text("done"),
    }
}

#[tokio::test]
async fn apr_1_and_3_nothing_runs_before_its_own_answer_and_the_first_answer_stands() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", MARKED)], two_then_done, fine);
    let run = w.run("h1", "go").await;
    assert_eq!(run.status, RunStatus::Interrupted);
    assert_eq!(w.tool_calls().len(), 1);
    let state = w.state().await;
    assert_eq!((state.interrupts.len(), state.active_run.clone()), (2, None));
    let value: Value = serde_json::from_str(&state.interrupts[1].value).unwrap();
    assert_eq!(
        (&value["kind"], &value["tool"], &value["arguments"]),
        (&json!("approval"), &json!("send_member"), &json!({"n": 2}))
    );
    let busy = w.start("t", "h2", "more", None).await;
    assert_eq!(busy, Err(RunError::Busy("it waits for your approval of send_member".into())));
    w.agents.shutdown().await;
    drop(w);

    // After a restart both are still open; the second is answered first.
    let w = World::open(dir.path(), vec![agent("a", MARKED)], two_then_done, fine);
    w.agents.recover().await.unwrap();
    assert_eq!(w.state().await.interrupts, state.interrupts);
    let runs = w.runs("ada");
    let [one, two] = [&state.interrupts[0].id, &state.interrupts[1].id];
    for bad in ["true", "{}", r#"{"approved":"yes"}"#, r#"{"approved":true,"all":true}"#] {
        assert!(matches!(runs.resume("t", &[answer(two, bad)], "bad").await, Err(RunError::Rejected(_))));
    }
    runs.resume("t", &[answer(two, r#"{"approved":true}"#)], "k2").await.unwrap();
    assert_eq!(w.until_event(&run).await.status, RunStatus::Interrupted);
    assert!(w.tool_calls().is_empty());
    // A later contradiction is refused; the same key again is the same answer.
    let refused = runs.resume("t", &[answer(two, r#"{"approved":false}"#)], "k3").await;
    assert!(matches!(&refused, Err(RunError::Rejected(m)) if m.contains("settled")), "{refused:?}");
    assert_eq!(runs.resume("t", &[answer(two, r#"{"approved":true}"#)], "k2").await.unwrap().id, run.id);
    assert_eq!(runs.resume("t", &[answer(two, r#"{"approved":false}"#)], "k2").await, Err(RunError::KeyConflict));
    runs.resume("t", &[answer(one, r#"{"approved":false,"note":"not now"}"#)], "k1").await.unwrap();
    assert_eq!(w.until_event(&run).await.status, RunStatus::Succeeded);
    let ran: Vec<Value> = w.tool_calls().into_iter().map(|c| c.2).collect();
    assert_eq!(ran, [json!({"n": 2})]);
    let state = w.state().await;
    assert!(state.messages[3].text.contains("not_approved") && state.messages[3].text.contains("not now"));
    assert!(state.interrupts.is_empty());
}

#[tokio::test]
async fn several_answers_at_once_and_dup_2_nothing_runs_again_on_resume() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", MARKED)], two_then_done, fine);
    let run = w.run("h1", "go").await;
    let open = w.state().await.interrupts;
    let yes = r#"{"approved":true}"#;
    let runs = w.runs("ada");
    let twice = runs.resume("t", &[answer(&open[0].id, yes), answer(&open[0].id, yes)], "k0").await;
    assert!(matches!(twice, Err(RunError::Rejected(_))));
    let wrong = InterruptAnswer { checkpoint: Some("other".into()), ..answer(&open[0].id, yes) };
    assert!(matches!(runs.resume("t", &[wrong], "k0").await, Err(RunError::Rejected(_))));
    assert!(matches!(runs.resume("t", &[answer("other", yes)], "k0").await, Err(RunError::Rejected(_))));
    let both: Vec<_> =
        open.iter().map(|i| InterruptAnswer { checkpoint: i.checkpoint.clone(), ..answer(&i.id, yes) }).collect();
    let (a, b) = tokio::join!(runs.resume("t", &both, "k"), runs.resume("t", &both, "k"));
    assert_eq!(a.unwrap().id, b.unwrap().id);
    assert_eq!(w.until_event(&run).await.status, RunStatus::Succeeded);
    let ran: Vec<Value> = w.tool_calls().into_iter().map(|c| c.2).collect();
    assert_eq!(ran, [json!({}), json!({"n": 1}), json!({"n": 2})]);
    assert_eq!(w.requests().len(), 2);
}

#[tokio::test]
async fn apr_4_an_approval_counts_for_one_call_only() {
    let dir = tempfile::tempdir().unwrap();
    let brain = |r: &ModelRequest| match r.call {
        0 => calls(&[("send_member", r#"{"path":"tmp/a"}"#)]),
        1 => calls(&[("send_member", r#"{"path":"tmp/a"}"#)]),
        _ => text("done"),
    };
    let w = World::open(dir.path(), vec![agent("a", MARKED)], brain, fine);
    let run = w.run("h1", "go").await;
    let first = w.state().await.interrupts.remove(0);
    w.runs("ada").resume("t", &[answer(&first.id, r#"{"approved":true}"#)], "k1").await.unwrap();
    // The very same call again is another call and asks again.
    assert_eq!(w.until_event(&run).await.status, RunStatus::Interrupted);
    assert_eq!(w.tool_calls().len(), 1);
    let second = w.state().await.interrupts.remove(0);
    assert_ne!(first.id, second.id);
    // Stored arguments that are not those that were shown do not run.
    w.db.write(|c| {
        Ok(c.execute(
            "UPDATE agent_messages SET tool_calls = replace(tool_calls, 'tmp/a', 'src') WHERE number = 4",
            [],
        )?)
    })
    .await
    .unwrap();
    w.runs("ada").resume("t", &[answer(&second.id, r#"{"approved":true}"#)], "k2").await.unwrap();
    assert_eq!(w.until_event(&run).await.status, RunStatus::Succeeded);
    assert_eq!(w.tool_calls().len(), 1);
    let last = w.requests().pop().unwrap();
    assert!(matches!(last.messages.last(), Some(ModelMessage::Tool { text, .. }) if text.contains("another call")));
}

#[tokio::test]
async fn a_waiting_run_can_be_cancelled_and_then_takes_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", MARKED)], two_then_done, fine);
    let run = w.run("h1", "go").await;
    let open = w.state().await.interrupts;
    assert_eq!(w.runs("ada").cancel("t", &run.id).await.unwrap(), Cancellation::Stopped);
    assert!(w.state().await.interrupts.is_empty());
    let late = w.runs("ada").resume("t", &[answer(&open[0].id, r#"{"approved":true}"#)], "k").await;
    assert!(matches!(late, Err(RunError::Rejected(_))));
    assert_eq!(w.tool_calls().len(), 1);
    assert_eq!(w.runs("ada").get("t", &run.id).await.unwrap().status, RunStatus::Cancelled);
}

#[tokio::test]
async fn a_person_was_asked_or_has_spoken_also_when_the_tool_needs_no_approval_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", MARKED)], two_then_done, fine);
    let run = w.run("h1", "go").await;
    let open = w.state().await.interrupts;
    w.agents.shutdown().await;
    drop(w);

    let w = World::open(dir.path(), vec![agent("a", "")], two_then_done, fine);
    let runs = w.runs("ada");
    runs.resume("t", &[answer(&open[1].id, r#"{"approved":false}"#)], "k1").await.unwrap();
    // The other one is still asked.
    assert_eq!(w.until_event(&run).await.status, RunStatus::Interrupted);
    assert_eq!(w.state().await.interrupts, open[..1]);
    assert!(w.tool_calls().is_empty());
    runs.resume("t", &[answer(&open[0].id, r#"{"approved":true}"#)], "k0").await.unwrap();
    assert_eq!(w.until_event(&run).await.status, RunStatus::Succeeded);
    let ran: Vec<Value> = w.tool_calls().into_iter().map(|c| c.2).collect();
    assert_eq!(ran, [json!({"n": 1})], "what was refused does not run");
}

/// A run that waits for approvals, in a process that was started after it asked.
async fn waiting_since_an_earlier_process(dir: &std::path::Path) -> (World, Run, Vec<crate::agents::runs::Interrupt>) {
    let w = World::open(dir, vec![agent("a", MARKED)], two_then_done, fine);
    let run = w.run("h1", "go").await;
    w.agents.shutdown().await;
    drop(w);
    let w = World::open(dir, vec![agent("a", MARKED)], two_then_done, fine);
    w.agents.recover().await.unwrap();
    let open = w.state().await.interrupts;
    assert_eq!(open.len(), 2);
    (w, run, open)
}

/// The run has ended as cancelled, for good, and the conversation is free.
async fn withdrawn(w: &World, run: &Run, open: &[crate::agents::runs::Interrupt]) {
    let state = w.state().await;
    assert!(state.interrupts.is_empty() && state.active_run.is_none());
    assert_eq!(w.count("SELECT count(*) FROM agent_threads WHERE active_run IS NOT NULL"), 0);
    let tools = state.messages.iter().filter(|m| m.text.contains("not_finished")).count();
    assert_eq!(tools, 2, "each open call has its result");
    let late = w.runs("ada").resume("t", &[answer(&open[0].id, r#"{"approved":true}"#)], "late").await;
    assert!(matches!(late, Err(RunError::Rejected(_))), "{late:?}");
    assert_eq!(w.runs("ada").cancel("t", &run.id).await.unwrap(), Cancellation::Stopped);
    let next = w.start("t", "h2", "go on", None).await.unwrap();
    w.until_event(&next).await;
}

#[tokio::test]
async fn a_cancel_withdraws_what_a_run_asked_before_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (w, run, open) = waiting_since_an_earlier_process(dir.path()).await;
    assert_eq!(w.runs("ada").cancel("t", &run.id).await.unwrap(), Cancellation::Stopped);
    assert_eq!(w.until_event(&run).await.status, RunStatus::Cancelled);
    withdrawn(&w, &run, &open).await;
    w.agents.shutdown().await;
    drop(w);

    let w = World::open(dir.path(), vec![agent("a", MARKED)], two_then_done, fine);
    w.agents.recover().await.unwrap();
    assert_eq!(w.runs("ada").get("t", &run.id).await.unwrap().status, RunStatus::Cancelled);
}

#[tokio::test]
async fn of_an_answer_and_a_cancel_at_once_the_cancel_ends_the_run() {
    for cancel_first in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (w, run, open) = waiting_since_an_earlier_process(dir.path()).await;
        let runs = w.runs("ada");
        let yes = [answer(&open[0].id, r#"{"approved":true}"#), answer(&open[1].id, r#"{"approved":true}"#)];
        let go = w.hold().await;
        let release = async {
            tokio::task::yield_now().await;
            go.send(()).unwrap();
        };
        // Joined futures are polled in their order, and so are the writes.
        let (cancelled, resumed) = if cancel_first {
            let (c, r, ()) = tokio::join!(runs.cancel("t", &run.id), runs.resume("t", &yes, "k"), release);
            (c, r)
        } else {
            let (r, c, ()) = tokio::join!(runs.resume("t", &yes, "k"), runs.cancel("t", &run.id), release);
            (c, r)
        };
        assert_eq!(cancelled.unwrap(), Cancellation::Stopped);
        assert_eq!(resumed.is_ok(), !cancel_first, "{resumed:?}");
        assert_eq!(w.until_event(&run).await.status, RunStatus::Cancelled);
        assert!(w.tool_calls().is_empty(), "nothing runs once the cancel is stored");
        withdrawn(&w, &run, &open).await;
    }
}
