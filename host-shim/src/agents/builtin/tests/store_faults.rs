//! A store that refuses writes or reads for a while: nothing is asked twice,
//! nothing is lost, and nothing else is made of it than "not now".

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use rusqlite::ffi::{SQLITE_FULL, SQLITE_IOERR_FSYNC, SQLITE_IOERR_WRITE};

use super::*;
use crate::agents::builtin::outcome::{Outcome, Pending};
use crate::agents::runs::InterruptAnswer;
use crate::storage::tables::agents::StoredCall;

/// Commits that fail in a row; few, since the pauses between them grow.
const FULL: [i32; 3] = [SQLITE_FULL; 3];

/// From its first call on the disk is full for a while.
fn fill(db: &Database) {
    if db.stats().failures == 0 {
        db.fail_commits(&FULL);
    }
}

/// The database of a world, for its model and tools.
type Shelf = Arc<OnceLock<Database>>;

fn world(
    dir: &std::path::Path,
    more: &str,
    brain: impl Fn(&ModelRequest, &Database) -> Act<ModelReply, ModelError> + Send + Sync + 'static,
    hand: impl Fn(&Caller, &Database) -> Act<String, CallError> + Send + Sync + 'static,
) -> World {
    let (of_brain, of_hand) = (Shelf::default(), Shelf::default());
    let (one, other) = (of_brain.clone(), of_hand.clone());
    let w = World::open(
        dir,
        vec![agent("a", more)],
        move |r| brain(r, of_brain.get().unwrap()),
        move |caller, _, _| hand(caller, of_hand.get().unwrap()),
    );
    one.set(w.db.clone()).ok().unwrap();
    other.set(w.db.clone()).ok().unwrap();
    w
}

fn no_tool(_: &Caller, _: &Database) -> Act<String, CallError> {
    panic!("no tool is called")
}

#[tokio::test]
async fn a_reply_that_cannot_be_written_is_kept_and_no_model_is_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let brain = |_: &ModelRequest, db: &Database| {
        fill(db);
        text("dearly paid")
    };
    let w = world(dir.path(), "", brain, no_tool);
    assert_eq!(w.run("h1", "go").await.status, RunStatus::Succeeded);
    assert_eq!(w.db.stats().failures, 3);
    assert_eq!(w.requests().len(), 1);
    assert_eq!(w.state().await.messages[1].text, "dearly paid");
    assert_eq!(w.count("SELECT model_calls FROM agent_runs"), 1);
}

#[tokio::test]
async fn that_a_model_has_failed_is_written_and_not_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let brain = |_: &ModelRequest, db: &Database| {
        fill(db);
        Act::Do(Err(ModelError::Unavailable("status 500".into())))
    };
    let w = world(dir.path(), "", brain, no_tool);
    assert_failed(&w.run("h1", "go").await, "provider_unavailable");
    assert_eq!((w.requests().len(), w.db.stats().failures), (1, 3));
}

#[tokio::test]
async fn a_result_that_cannot_be_written_is_kept_and_no_tool_is_called_again() {
    let dir = tempfile::tempdir().unwrap();
    let brain = |r: &ModelRequest, _: &Database| {
        if r.call == 0 { calls(&[("send_member", "{}")]) } else { text("done") }
    };
    let hand = |_: &Caller, db: &Database| {
        fill(db);
        Act::Do(Ok("{}".into()))
    };
    let w = world(dir.path(), "", brain, hand);
    assert_eq!(w.run("h1", "go").await.status, RunStatus::Succeeded);
    assert_eq!((w.tool_calls().len(), w.requests().len(), w.db.stats().failures), (1, 2, 3));
}

#[tokio::test]
async fn a_model_is_asked_only_once_the_store_takes_writes_again() {
    let dir = tempfile::tempdir().unwrap();
    let seen = Arc::new(AtomicU64::new(0));
    let at_second = seen.clone();
    let brain = move |_: &ModelRequest, db: &Database| {
        if db.stats().failures == 0 {
            // Somebody else's write meets a full disk, and so does the next one.
            db.fail_commits(&[SQLITE_FULL, SQLITE_FULL]);
            db.write_blocking(|c| Ok(c.execute("UPDATE agent_runs SET spent_ms = spent_ms + 1", [])?)).unwrap_err();
            return Act::Do(Err(ModelError::ContextTooLong));
        }
        at_second.store(db.stats().failures, Ordering::SeqCst);
        text("done")
    };
    let w = world(dir.path(), "", brain, no_tool);
    assert_eq!(w.run("h1", &"x".repeat(20_000)).await.status, RunStatus::Succeeded);
    assert_eq!(seen.load(Ordering::SeqCst), 2, "the store was tried before the model was");
}

#[tokio::test]
async fn an_end_whose_write_was_called_unknown_is_announced_all_the_same() {
    for act in [|| text("done"), || calls(&[("ask_clarification", r#"{"question":"Which?"}"#)])] {
        let dir = tempfile::tempdir().unwrap();
        let brain = move |_: &ModelRequest, db: &Database| {
            db.lose_commit(SQLITE_IOERR_FSYNC);
            act()
        };
        let w = world(dir.path(), "", brain, no_tool);
        assert_eq!(w.run("h1", "go").await.status, RunStatus::Succeeded);
        assert_eq!(w.requests().len(), 1);
        assert_eq!(w.count("SELECT count(*) FROM agent_messages WHERE role = 'assistant'"), 1);
    }
}

#[tokio::test]
async fn an_outcome_that_was_written_is_not_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], |_: &_| Act::Hang, fine);
    let run = w.begin("h1", "go").await;
    reached(&w.model.begun, 1).await;
    let messages = |n: i64| assert_eq!(w.count("SELECT count(*) FROM agent_messages"), n);
    let asked = Outcome::Reply { call: 0, reply: reply(&[("a", "{}"), ("b", "{}")], Finish::Stop) };
    let call = |n: usize| StoredCall {
        id: format!("{}-2-{n}", run.id),
        name: "a".into(),
        arguments: json!({}),
        problem: None,
    };
    let question = crate::agents::builtin::tools::clarification(&call(1).id, &json!({"question": "Which?"})).unwrap();
    let outcomes = [
        (asked, 2),
        (Outcome::Result { call: call(0), text: "{}".into() }, 3),
        (Outcome::Question { call: call(1), question }, 4),
    ];
    for (outcome, count) in outcomes {
        let pending = Pending::new(outcome, Duration::ZERO);
        for _ in 0..2 {
            w.agents.keep(&run.id, &pending).await.unwrap();
            messages(count);
        }
    }
    assert_eq!(w.count("SELECT model_calls FROM agent_runs"), 1);
    assert_eq!(w.until_event(&run).await.status, RunStatus::Succeeded);
}

#[tokio::test]
async fn not_written_is_never_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let brain = |r: &ModelRequest, _: &Database| {
        if r.call == 0 { calls(&[("send_member", "{}")]) } else { text("done") }
    };
    let w = world(dir.path(), "approve = ['send_member']", brain, |_, _| Act::Do(Ok("{}".into())));
    let runs = w.runs("ada");
    let not_now = |error: RunError| assert!(matches!(error, RunError::Unavailable(_)), "{error:?}");
    let unknown = |error: RunError| assert!(matches!(error, RunError::Other(_)), "{error:?}");
    let full = || w.db.fail_commits(&[SQLITE_FULL]);
    let torn = || w.db.fail_commits(&[SQLITE_IOERR_FSYNC]);
    full();
    not_now(runs.create_thread("t", "a", "", "group").await.unwrap_err());
    torn();
    unknown(runs.create_thread("t", "a", "", "group").await.unwrap_err());
    runs.create_thread("t", "a", "", "group").await.unwrap();
    full();
    not_now(w.start("t", "h1", "go", None).await.unwrap_err());
    assert!(matches!(runs.find("t", "key-h1").await, Err(RunError::NotFound(_))));
    torn();
    unknown(w.start("t", "h1", "go", None).await.unwrap_err());
    let run = w.start("t", "h1", "go", None).await.unwrap();
    assert_eq!(w.until_event(&run).await.status, RunStatus::Interrupted);
    let yes = [InterruptAnswer {
        checkpoint: None,
        id: w.state().await.interrupts.remove(0).id,
        value: r#"{"approved":true}"#.into(),
    }];
    full();
    not_now(runs.resume("t", &yes, "k").await.unwrap_err());
    torn();
    unknown(runs.resume("t", &yes, "k").await.unwrap_err());
    full();
    not_now(runs.cancel("t", &run.id).await.unwrap_err());
    torn();
    unknown(runs.cancel("t", &run.id).await.unwrap_err());
    // What the database itself refuses in the middle is undone, too.
    w.db.write(|c| Ok(c.execute_batch("ALTER TABLE agent_keys RENAME TO elsewhere")?)).await.unwrap();
    not_now(runs.resume("t", &yes, "k").await.unwrap_err());
    not_now(runs.find("t", "key-h1").await.unwrap_err());
    w.db.write(|c| Ok(c.execute_batch("ALTER TABLE elsewhere RENAME TO agent_keys")?)).await.unwrap();
    runs.resume("t", &yes, "k").await.unwrap();
    assert_eq!(w.until_event(&run).await.status, RunStatus::Succeeded);
}

#[tokio::test]
async fn users_that_cannot_be_read_are_not_disabled() {
    let dir = tempfile::tempdir().unwrap();
    let brain = |r: &ModelRequest| if r.call == 0 { calls(&[("send_member", "{}")]) } else { text("done") };
    let users = Arc::new(OnceLock::<Arc<FakeUsers>>::new());
    let of_hand = users.clone();
    let hand = move |_: &Caller, _: &str, _: &Value| {
        of_hand.get().unwrap().hide(true);
        Act::Do(Ok("{}".into()))
    };
    let w = World::open(dir.path(), vec![agent("a", "")], brain, hand);
    users.set(w.disabled.clone()).ok().unwrap();
    let run = w.begin("h1", "go").await;
    // The run waits; it is not ended.
    reached(w.disabled.unanswered(), 2).await;
    let runs = w.runs("ada");
    let errors = [
        runs.create_thread("u", "a", "", "group").await.unwrap_err(),
        w.start("t", "h2", "x", None).await.unwrap_err(),
        runs.resume("t", &[], "k").await.unwrap_err(),
        runs.find("t", "key-h1").await.unwrap_err(),
        runs.get("t", &run.id).await.unwrap_err(),
        runs.state("t", None, None).await.unwrap_err(),
        runs.cancel("t", &run.id).await.unwrap_err(),
        w.agents.conversations("ada", 1).unwrap_err(),
    ];
    assert!(errors.iter().all(|e| matches!(e, RunError::Unavailable(_))), "{errors:?}");
    w.disabled.hide(false);
    assert_eq!(w.until_event(&run).await.status, RunStatus::Succeeded);
    assert_eq!(w.requests().len(), 2);
}

#[tokio::test]
async fn a_store_that_cannot_be_read_for_a_while_ends_no_run() {
    let dir = tempfile::tempdir().unwrap();
    let brain = |_: &ModelRequest, db: &Database| {
        // The outcome of the reply's commit is unknown, and reads are refused
        // until another commit has settled it.
        db.fail_commits(&[SQLITE_IOERR_FSYNC, SQLITE_IOERR_WRITE]);
        text("done")
    };
    let w = world(dir.path(), "", brain, no_tool);
    let run = w.begin("h1", "go").await;
    let mut ended = w.ended.lock().await;
    while ended.recv().await.unwrap().run != run.id {}
    assert_eq!(w.requests().len(), 1);
    assert_eq!(w.runs("ada").get("t", &run.id).await.unwrap().status, RunStatus::Succeeded);
}
