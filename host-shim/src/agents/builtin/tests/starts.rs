//! Starts, keys, conversations, cancel, isolation.

use super::*;
use crate::agents::builtin::Post;
use crate::agents::runs::{Cancellation, Marker};

fn hello(_: &ModelRequest) -> Act<ModelReply, ModelError> {
    text("hello")
}

#[tokio::test]
async fn lost_3_the_answer_and_the_end_of_the_run_are_one_commit() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], hello, fine);
    let run = w.run("h1", "hi").await;
    assert_eq!(run.status, RunStatus::Succeeded);
    let state = w.state().await;
    assert!(state.found && !state.more);
    assert_eq!(state.messages.iter().map(|m| m.text.as_str()).collect::<Vec<_>>(), ["hi", "hello"]);
    assert!(state.messages.iter().all(|m| m.run.as_deref() == Some(&run.id)));
    assert_eq!(state.active_run, None);
    // One commit for the start, one for the answer with the end.
    assert_eq!(w.count("SELECT count(*) FROM agent_runs WHERE ended_ms IS NOT NULL"), 1);
}

#[tokio::test]
async fn the_same_key_is_the_same_run_also_at_once_and_after_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], hello, fine);
    w.runs("ada").create_thread("t", "a", "", "group").await.unwrap();
    let runs = w.runs("ada");
    let message = input("h1", "hi", None);
    let (a, b, c, d) = tokio::join!(
        runs.start("t", &message, "k"),
        runs.start("t", &message, "k"),
        runs.start("t", &message, "k"),
        runs.start("t", &message, "k")
    );
    let a = a.unwrap();
    for other in [b, c, d] {
        assert_eq!(other.unwrap().id, a.id);
    }
    w.until_event(&a).await;
    let again = runs.start("t", &message, "k").await.unwrap();
    assert_eq!((again.id.as_str(), again.status), (a.id.as_str(), RunStatus::Succeeded));
    assert_eq!(runs.find("t", "k").await.unwrap().id, a.id);
    assert!(matches!(runs.find("t", "other").await, Err(RunError::NotFound(_))));
    // Other bytes in any part are a conflict, whatever else would be wrong.
    for other in [
        input("h2", "hi", None),
        input("h1", "hi ", None),
        input("h1", "hi", Some("q")),
        Input { provenance: "{}".into(), ..message.clone() },
    ] {
        assert_eq!(runs.start("t", &other, "k").await, Err(RunError::KeyConflict));
    }
    assert_eq!(w.count("SELECT count(*) FROM agent_runs"), 1);
    assert_eq!(w.requests().len(), 1);
}

#[tokio::test]
async fn one_run_a_conversation_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], |_: &_| Act::Hang, fine);
    let run = w.begin("h1", "hi").await;
    assert!(matches!(w.start("t", "h2", "more", None).await, Err(RunError::Busy(_))));
    // The key comes before "busy".
    assert_eq!(w.start("t", "h1", "hi", None).await.unwrap().id, run.id);
    assert_eq!(w.state().await.active_run, Some(run.id));
    assert_eq!(w.count("SELECT count(*) FROM agent_messages"), 1);
}

#[tokio::test]
async fn cancel_aborts_the_model_call_and_an_ended_run_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let brain = |r: &ModelRequest| if r.messages.len() == 1 { Act::Hang } else { text("done") };
    let w = World::open(dir.path(), vec![agent("a", "")], brain, fine);
    let run = w.begin("h1", "hi").await;
    reached(&w.model.begun, 1).await;
    assert_eq!(w.runs("ada").cancel("t", &run.id).await.unwrap(), Cancellation::Stopped);
    assert_eq!(w.until_event(&run).await.status, RunStatus::Cancelled);
    let second = w.start("t", "h2", "go on", None).await.unwrap();
    assert_eq!(w.until_event(&second).await.status, RunStatus::Succeeded);
    assert_eq!(w.runs("ada").cancel("t", &second.id).await.unwrap(), Cancellation::Stopped);
    assert_eq!(w.runs("ada").get("t", &second.id).await.unwrap().status, RunStatus::Succeeded);
    assert!(matches!(w.runs("ada").cancel("t", "none").await, Err(RunError::NotFound(_))));
}

#[tokio::test]
async fn cancel_in_a_tool_call_records_that_it_was_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let brain = |_: &ModelRequest| calls(&[("send_member", "{}"), ("publish_state", "{}")]);
    let w = World::open(dir.path(), vec![agent("a", "")], brain, |_: &Caller, _: &str, _: &Value| Act::Hang);
    let run = w.begin("h1", "hi").await;
    reached(&w.tools.begun, 1).await;
    assert_eq!(w.runs("ada").cancel("t", &run.id).await.unwrap(), Cancellation::Stopped);
    let state = w.state().await;
    assert_eq!(state.messages.len(), 4);
    assert!(state.messages[2].text.contains("not_finished") && state.messages[3].text.contains("not_finished"));
    assert_eq!(w.tool_calls().len(), 1);
}

#[tokio::test]
async fn sec_5_another_users_conversation_is_as_one_that_never_was() {
    let dir = tempfile::tempdir().unwrap();
    let agents = vec![agent("a", ""), agent("secret", "users = ['ada']")];
    let w = World::open(dir.path(), agents, hello, fine);
    let run = w.run("h1", "hi").await;
    let bo = w.runs("bo");
    let none = Marker { message_id: "h1".into(), run: None };
    let errors = |thread: &'static str, run: String| {
        let (bo, none) = (bo.clone(), none.clone());
        async move {
            [
                bo.start(thread, &input("h9", "x", None), "key-h1").await.unwrap_err(),
                bo.resume(thread, &[], "key-h1").await.unwrap_err(),
                bo.find(thread, "key-h1").await.unwrap_err(),
                bo.get(thread, &run).await.unwrap_err(),
                bo.state(thread, Some(&none), None).await.unwrap_err(),
                bo.cancel(thread, &run).await.unwrap_err(),
            ]
        }
    };
    let foreign = errors("t", run.id.clone()).await;
    assert_eq!(foreign, errors("never", "never".into()).await);
    assert!(foreign.iter().all(|e| matches!(e, RunError::NotFound(_))));
    assert!(w.agents.conversation("bo", "t", None, 10).is_err());
    assert!(w.agents.conversations("bo", 10).unwrap().is_empty());
    // The same id is free for another user, and the two do not meet.
    bo.create_thread("t", "a", "", "group").await.unwrap();
    assert!(!bo.state("t", Some(&none), None).await.unwrap().found);
    // An agent of other users is as one that does not exist.
    let hidden = bo.create_thread("u", "secret", "", "group").await.unwrap_err();
    assert!(matches!(hidden, RunError::Rejected(_)));
    assert_eq!(w.agents.catalogue("bo").len(), 1);
    assert_eq!(w.agents.catalogue("ada").len(), 2);
}

#[tokio::test]
async fn a_disabled_user_is_denied_at_each_call() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], hello, fine);
    let run = w.run("h1", "hi").await;
    w.disabled.0.lock().unwrap().insert("ada".into());
    let runs = w.runs("ada");
    assert!(matches!(runs.create_thread("u", "a", "", "group").await, Err(RunError::Denied(_))));
    assert!(matches!(w.start("t", "h2", "x", None).await, Err(RunError::Denied(_))));
    assert!(matches!(runs.get("t", &run.id).await, Err(RunError::Denied(_))));
    assert!(matches!(runs.state("t", None, None).await, Err(RunError::Denied(_))));
    assert!(matches!(runs.cancel("t", &run.id).await, Err(RunError::Denied(_))));
    assert_eq!(w.count("SELECT count(*) FROM agent_runs"), 1);
}

#[tokio::test]
async fn a_conversation_is_bound_to_one_agent() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", ""), agent("b", "")], hello, fine);
    let runs = w.runs("ada");
    runs.create_thread("t", "a", "one", "group").await.unwrap();
    runs.create_thread("t", "a", "two", "group").await.unwrap();
    assert!(matches!(runs.create_thread("t", "b", "", "group").await, Err(RunError::Rejected(_))));
    assert!(matches!(runs.create_thread("u", "none", "", "group").await, Err(RunError::Rejected(_))));
    let all = w.agents.conversations("ada", 10).unwrap();
    assert_eq!(all.iter().map(|c| (c.id.as_str(), c.title.as_str())).collect::<Vec<_>>(), [("t", "one")]);
}

#[tokio::test]
async fn a_post_is_repeated_without_a_second_run() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], hello, fine);
    let post = Post { thread: None, agent: Some("a".into()), message_id: "m1".into(), text: "Hello\nthere".into() };
    let one = w.agents.post("ada", post.clone()).await.unwrap();
    let two = w.agents.post("ada", post.clone()).await.unwrap();
    assert_eq!(one, two);
    let other = Post { text: "else".into(), ..post };
    assert_eq!(w.agents.post("ada", other).await, Err(RunError::KeyConflict));
    w.until_event(&Run::new(one.run, RunStatus::Running)).await;
    let page = w.agents.conversation("ada", &one.thread, None, 1).unwrap();
    assert!(page.more && page.conversation.title == "Hello");
    assert_eq!(page.messages[0].provenance, Some(json!({"kind": "person", "user": "ada"})));
    let rest = w.agents.conversation("ada", &one.thread, Some(page.messages[0].number), 10).unwrap();
    assert_eq!((rest.messages.len(), rest.messages[0].role, rest.more), (1, "assistant", false));
}

#[tokio::test]
async fn refused_inputs_store_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], hello, fine);
    w.run("h1", "hi").await;
    let large = "x".repeat(1024 * 1024 + 1);
    for (id, words, answers) in
        [("", "x", None), ("h2", "", None), ("h2", large.as_str(), None), ("h2", "x", Some("q"))]
    {
        assert!(matches!(w.start("t", id, words, answers).await, Err(RunError::Rejected(_))), "{id}");
    }
    let same_id = w.runs("ada").start("t", &input("h1", "x", None), "new key").await;
    assert!(matches!(same_id, Err(RunError::Rejected(_))));
    assert_eq!(w.count("SELECT count(*) FROM agent_messages"), 2);
}
