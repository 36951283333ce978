//! Calls whose caller goes away before their write is done, and runs that have
//! lost their task.

use super::*;
use crate::agents::runs::{Cancellation, InterruptAnswer};
use crate::storage::tables::agents::{MessageRow, Role};

fn hello(_: &ModelRequest) -> Act<ModelReply, ModelError> {
    text("hello")
}

fn asks(r: &ModelRequest) -> Act<ModelReply, ModelError> {
    if r.call == 0 { calls(&[("send_member", "{}")]) } else { text("done") }
}

#[tokio::test]
async fn a_start_whose_caller_gave_up_gets_its_task_when_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], hello, fine);
    w.runs("ada").create_thread("t", "a", "", "group").await.unwrap();
    let go = w.hold().await;
    given_up(w.start("t", "h1", "hi", None)).await;
    // A question that is asked now is answered for that start, too.
    let runs = w.runs("ada");
    let find = runs.find("t", "key-h1");
    let release = async { go.send(()).unwrap() };
    let (found, ()) = tokio::join!(find, release);
    assert_eq!(w.until_event(&found.unwrap()).await.status, RunStatus::Succeeded);
}

#[tokio::test]
async fn an_answer_whose_caller_gave_up_lets_the_run_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "approve = ['send_member']")], asks, fine);
    let run = w.run("h1", "go").await;
    let open = w.state().await.interrupts.remove(0);
    let go = w.hold().await;
    let yes = InterruptAnswer { checkpoint: None, id: open.id, value: r#"{"approved":true}"#.into() };
    given_up(w.runs("ada").resume("t", &[yes], "k")).await;
    go.send(()).unwrap();
    assert_eq!(w.until_event(&run).await.status, RunStatus::Succeeded);
    assert_eq!(w.tool_calls().len(), 1);
}

#[tokio::test]
async fn a_cancel_whose_caller_gave_up_stops_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], |_: &_| Act::Hang, fine);
    let run = w.begin("h1", "hi").await;
    reached(&w.model.begun, 1).await;
    let go = w.hold().await;
    given_up(w.runs("ada").cancel("t", &run.id)).await;
    go.send(()).unwrap();
    assert_eq!(w.until_event(&run).await.status, RunStatus::Cancelled);
}

#[tokio::test]
async fn a_cancel_of_a_waiting_run_whose_caller_gave_up_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "approve = ['send_member']")], asks, fine);
    let run = w.run("h1", "go").await;
    assert_eq!(run.status, RunStatus::Interrupted);
    let go = w.hold().await;
    given_up(w.runs("ada").cancel("t", &run.id)).await;
    go.send(()).unwrap();
    assert_eq!(w.until_event(&run).await.status, RunStatus::Cancelled);
    assert!(w.start("t", "h2", "more", None).await.is_ok());
}

/// A run that is stored as running and has no task.
async fn lose_a_run(w: &World) -> Run {
    w.runs("ada").create_thread("t", "a", "", "group").await.unwrap();
    w.tables
        .write(|rows| {
            let thread = rows.thread("ada", "t")?.unwrap();
            let number = rows.next_number(thread.key)?;
            let message =
                MessageRow { number, id: "h1".into(), role: Role::Human, text: "hi".into(), ..Default::default() };
            rows.append(thread.key, &message)?;
            rows.insert_run("lost", thread.key, "k", number)?;
            Ok(())
        })
        .await
        .unwrap();
    Run::new("lost", RunStatus::Running)
}

#[tokio::test]
async fn a_run_that_has_no_task_is_given_one() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], hello, fine);
    w.agents.supervise(std::time::Duration::from_millis(5));
    let run = lose_a_run(&w).await;
    assert_eq!(w.until_event(&run).await.status, RunStatus::Succeeded);
    assert_eq!(w.requests().len(), 1);
}

#[tokio::test]
async fn runs_that_are_worked_on_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let brain = |r: &ModelRequest| if r.messages.len() == 1 { Act::Hang } else { text("done") };
    let w = World::open(dir.path(), vec![agent("a", "")], brain, fine);
    w.agents.supervise(std::time::Duration::from_millis(1));
    let run = w.begin("h1", "hi").await;
    reached(&w.model.begun, 1).await;
    // Another run is found and ended meanwhile, so the looks did happen.
    w.tables
        .write(|rows| {
            rows.insert_thread("ada", "u", "gone", "")?;
            let thread = rows.thread("ada", "u")?.unwrap();
            rows.insert_run("lost", thread.key, "k", 0)
        })
        .await
        .unwrap();
    let lost = Run::new("lost", RunStatus::Running);
    assert_failed(&w.until_event(&lost).await, "agent_gone");
    assert_eq!(w.requests().len(), 1);
    assert_eq!(w.count("SELECT attempts FROM agent_runs WHERE ended_ms IS NULL"), 1);
    assert_eq!(w.runs("ada").cancel("t", &run.id).await.unwrap(), Cancellation::Stopped);
}

#[tokio::test]
async fn a_cancel_ends_a_run_that_has_no_task() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], hello, fine);
    let run = lose_a_run(&w).await;
    assert_eq!(w.runs("ada").cancel("t", &run.id).await.unwrap(), Cancellation::Stopped);
    assert_eq!(w.until_event(&run).await.status, RunStatus::Cancelled);
    assert!(w.requests().is_empty());
}
