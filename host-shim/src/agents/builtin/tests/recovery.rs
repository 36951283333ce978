//! Crashes and shutdowns in the middle of a run. A crash here ends all tasks
//! where they stand, with nothing told to them.

use super::*;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn tool_then_done(r: &ModelRequest) -> Act<ModelReply, ModelError> {
    if r.call == 0 { calls(&[("send_member", r#"{"n":1}"#), ("publish_state", "{}")]) } else { text("done") }
}

/// Runs until `stop` says so, then ends everything at once.
fn crash(
    dir: &std::path::Path,
    brain: impl Fn(&ModelRequest) -> Act<ModelReply, ModelError> + Send + Sync + 'static,
    hand: impl Fn(&Caller, &str, &Value) -> Act<String, CallError> + Send + Sync + 'static,
    stop: impl AsyncFnOnce(&World) -> (),
) -> (Run, usize, Vec<(Caller, String, Value)>) {
    let rt = runtime();
    let w = World::open(dir, vec![agent("a", "")], brain, hand);
    let run = rt.block_on(async {
        let run = w.begin("h1", "go").await;
        stop(&w).await;
        run
    });
    drop(rt);
    let out = (run, w.requests().len(), w.tool_calls());
    w.db.close();
    out
}

fn finish(dir: &std::path::Path, run: &Run) -> (usize, Vec<(Caller, String, Value)>) {
    runtime().block_on(async {
        let w = World::open(dir, vec![agent("a", "")], tool_then_done, fine);
        w.agents.recover().await.unwrap();
        w.agents.recover().await.unwrap();
        let end = w.until_event(run).await;
        assert_eq!(end.status, RunStatus::Succeeded);
        // The key still names the same run, and nothing starts again.
        assert_eq!(w.start("t", "h1", "go", None).await.unwrap().id, run.id);
        assert_eq!(w.count("SELECT count(*) FROM agent_runs"), 1);
        assert_eq!(w.count("SELECT max(attempts) FROM agent_runs"), 0, "it got on");
        assert_eq!(w.count("SELECT count(*) FROM agent_messages"), 5);
        let out = (w.requests().len(), w.tool_calls());
        w.agents.recover().await.unwrap();
        assert_eq!(w.requests().len(), out.0);
        out
    })
}

#[test]
fn rst_1_a_crash_in_a_model_call_makes_the_call_again() {
    let dir = tempfile::tempdir().unwrap();
    let (run, asked, done) = crash(dir.path(), |_: &_| Act::Hang, fine, async |w| reached(&w.model.begun, 1).await);
    assert_eq!((asked, done.len()), (1, 0));
    let (asked, done) = finish(dir.path(), &run);
    assert_eq!((asked, done.len()), (2, 2));
}

#[test]
fn dup_2_a_crash_in_a_tool_call_repeats_that_call_with_its_id_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let hand = |_: &Caller, name: &str, _: &Value| {
        if name == "publish_state" { Act::Hang } else { Act::Do(Ok("{}".into())) }
    };
    let (run, asked, before) = crash(dir.path(), tool_then_done, hand, async |w| reached(&w.tools.begun, 2).await);
    assert_eq!((asked, before.len()), (1, 2));
    let (asked, after) = finish(dir.path(), &run);
    assert_eq!((asked, after.len()), (1, 1));
    assert_eq!(after[0], before[1]);
    assert_eq!(after[0].0.call, Some(format!("{}-2-1", run.id)));
}

#[test]
fn a_shutdown_leaves_the_run_for_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let (run, ..) = crash(
        dir.path(),
        |_: &_| Act::Hang,
        fine,
        async |w| {
            reached(&w.model.begun, 1).await;
            w.agents.shutdown().await;
            assert!(matches!(w.start("t", "h2", "x", None).await, Err(RunError::Unavailable(_))));
            assert_eq!(w.count("SELECT count(*) FROM agent_runs WHERE ended_ms IS NULL"), 1);
        },
    );
    finish(dir.path(), &run);
}

#[test]
fn a_cancel_that_a_crash_overtook_still_ends_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let (run, ..) = crash(
        dir.path(),
        tool_then_done,
        |_: &Caller, _: &str, _: &Value| Act::Hang,
        async |w| {
            reached(&w.tools.begun, 1).await;
            w.agents.shutdown().await;
            let cancelled =
                w.runs("ada").cancel("t", &w.runs("ada").find("t", "key-h1").await.unwrap().id).await.unwrap();
            assert_eq!(cancelled, crate::agents::runs::Cancellation::Accepted);
        },
    );
    runtime().block_on(async {
        let w = World::open(dir.path(), vec![agent("a", "")], tool_then_done, fine);
        w.agents.recover().await.unwrap();
        assert_eq!(w.until_event(&run).await.status, RunStatus::Cancelled);
        assert!(w.requests().is_empty() && w.tool_calls().is_empty());
    });
}

#[test]
fn a_run_whose_agent_is_gone_fails_with_that_reason() {
    let dir = tempfile::tempdir().unwrap();
    let (run, ..) = crash(dir.path(), |_: &_| Act::Hang, fine, async |w| reached(&w.model.begun, 1).await);
    runtime().block_on(async {
        let w = World::open(dir.path(), vec![agent("other", "")], tool_then_done, fine);
        w.agents.recover().await.unwrap();
        assert_failed(&w.until_event(&run).await, "agent_gone");
        assert!(matches!(w.start("t", "h2", "x", None).await, Err(RunError::Rejected(_))));
    });
}

#[test]
fn only_crashes_without_progress_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let attempts = |w: &World| w.count("SELECT attempts FROM agent_runs");
    let (run, ..) = crash(
        dir.path(),
        |_: &_| Act::Hang,
        fine,
        async |w| {
            reached(&w.model.begun, 1).await;
            assert_eq!(attempts(w), 1);
        },
    );
    // Processes that end in order count nothing, whatever they have begun.
    for _ in 0..3 {
        runtime().block_on(async {
            let w = World::open(dir.path(), vec![agent("a", "")], |_: &_| Act::Hang, fine);
            w.agents.recover().await.unwrap();
            w.agents.shutdown().await;
            assert_eq!(attempts(&w), 1);
            w.db.close();
        });
    }
    runtime().block_on(async {
        let w = World::open(dir.path(), vec![agent("a", "")], |_: &_| Act::Hang, fine);
        w.agents.recover().await.unwrap();
        reached(&w.model.begun, 1).await;
        assert_eq!(attempts(&w), 2);
        w.agents.shutdown().await;
        assert_eq!(attempts(&w), 1);
        w.db.close();
    });
    finish(dir.path(), &run);
}

#[test]
fn a_run_that_never_gets_anywhere_is_ended_before_it_costs_more() {
    let dir = tempfile::tempdir().unwrap();
    let (run, ..) = crash(dir.path(), |_: &_| Act::Hang, fine, async |w| reached(&w.model.begun, 1).await);
    runtime().block_on(async {
        let w = World::open(dir.path(), vec![agent("a", "")], tool_then_done, fine);
        w.db.write(|c| Ok(c.execute("UPDATE agent_runs SET attempts = 100", [])?)).await.unwrap();
        w.agents.recover().await.unwrap();
        assert_failed(&w.until_event(&run).await, "limit_attempts");
        assert!(w.requests().is_empty());
    });
}

#[test]
fn a_run_in_which_the_host_ended_often_waits_and_can_be_cancelled_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let (run, ..) = crash(dir.path(), |_: &_| Act::Hang, fine, async |w| reached(&w.model.begun, 1).await);
    runtime().block_on(async {
        let w = World::open(dir.path(), vec![agent("a", "")], |_: &_| Act::Hang, fine);
        w.db.write(|c| Ok(c.execute("UPDATE agent_runs SET attempts = 50", [])?)).await.unwrap();
        w.agents.recover().await.unwrap();
        let runs = w.runs("ada");
        assert_eq!(runs.cancel("t", &run.id).await.unwrap(), crate::agents::runs::Cancellation::Stopped);
        assert_eq!(w.until_event(&run).await.status, RunStatus::Cancelled);
        assert!(w.requests().is_empty());
    });
}
