//! The rules of the tool loop.

use super::*;
use crate::agents::builtin::Post;
use crate::agents::providers::ModelMessage;
use crate::agents::runs::Role;

/// Replies in turn by the number of the model call.
fn in_turn(
    acts: fn(u32) -> Act<ModelReply, ModelError>,
) -> impl Fn(&ModelRequest) -> Act<ModelReply, ModelError> + Send + Sync {
    move |r: &ModelRequest| acts(r.call)
}

fn results(request: &ModelRequest) -> Vec<(String, String)> {
    let result = |m: &ModelMessage| match m {
        ModelMessage::Tool { name, text, .. } => Some((name.clone(), text.clone())),
        _ => None,
    };
    request.messages.iter().filter_map(result).collect()
}

#[tokio::test]
async fn tools_run_with_the_hosts_ids_and_the_answer_ends_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let brain = in_turn(|n| match n {
        0 => calls(&[("send_member", r#"{"text":"hi"}"#), ("write_file", r#"{"path":"a.txt","text":"one"}"#)]),
        1 => calls(&[("read_file", r#"{"path":"a.txt"}"#)]),
        _ => text("done"),
    });
    let w = World::open(dir.path(), vec![agent("a", "")], brain, fine);
    let run = w.run("h1", "go").await;
    assert_eq!(run.status, RunStatus::Succeeded);
    let (caller, name, arguments) = w.tool_calls().remove(0);
    assert_eq!((name.as_str(), arguments), ("send_member", json!({"text": "hi"})));
    let call = format!("{}-2-0", run.id);
    let expected = Caller {
        owner: "ada".into(),
        thread: Some("t".into()),
        ancestors: vec![],
        run: Some(run.id.clone()),
        call: Some(call.clone()),
        ..Caller::default()
    };
    assert_eq!(caller, expected);
    let last = w.requests().pop().unwrap();
    let results = results(&last);
    assert_eq!(results[0], ("send_member".into(), r#"{"ok":true}"#.into()));
    assert!(results[2].1.contains("\"text\":\"one\""));
    assert!(matches!(&last.messages[1], ModelMessage::Assistant { calls, .. } if calls[0].id == call));
}

#[tokio::test]
async fn prov_4_every_call_gets_one_result_in_order_and_the_question_ends_the_turn() {
    let dir = tempfile::tempdir().unwrap();
    let brain = in_turn(|_| {
        calls(&[
            ("send_member", r#"{"n":1}"#),
            ("ask_clarification", r#"{"question":"Which colour?","options":["red","blue"]}"#),
            ("send_member", r#"{"n":2}"#),
            ("publish_state", "{}"),
            ("no_such_tool", "{}"),
            ("ask_clarification", r#"{"question":"And which size?"}"#),
        ])
    });
    let hand = |_: &Caller, name: &str, _: &Value| {
        if name == "publish_state" { Act::Do(Err(refusal("stale_revision"))) } else { Act::Do(Ok("{}".into())) }
    };
    let w = World::open(dir.path(), vec![agent("a", "")], brain, hand);
    let run = w.run("h1", "go").await;
    assert_eq!(run.status, RunStatus::Succeeded);
    let state = w.state().await;
    let tools: Vec<_> = state.messages.iter().filter(|m| m.role == Role::Tool).collect();
    let ids: Vec<_> = tools.iter().map(|m| m.id.clone()).collect();
    assert_eq!(ids, [0, 2, 3, 4, 5, 1].map(|i| format!("{}-2-{i}", run.id)));
    let stale: Value = serde_json::from_str(&tools[2].text).unwrap();
    assert_eq!(stale["error"]["code"], "stale_revision");
    assert_eq!(stale["error"]["detail"]["revision"], 7);
    assert!(tools[3].text.contains("unknown_tool") && tools[3].text.contains("send_member"));
    assert!(tools[4].text.contains("one_question"));
    let question = state.open_question.unwrap();
    assert_eq!((question.text.as_str(), question.options.len(), question.answered), ("Which colour?", 2, false));
    assert_eq!(tools[5].question.as_ref(), Some(&question));
    assert_eq!(w.tool_calls().len(), 3);
}

fn asks_then_answers(r: &ModelRequest) -> Act<ModelReply, ModelError> {
    let humans = r.messages.iter().filter(|m| matches!(m, ModelMessage::Human { .. })).count();
    if humans == 1 { calls(&[("ask_clarification", r#"{"question":"Which colour?"}"#)]) } else { text("blue it is") }
}

#[tokio::test]
async fn a_question_is_answered_once_by_the_message_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], asks_then_answers, fine);
    w.run("h1", "paint").await;
    let question = w.state().await.open_question.unwrap();
    assert!(matches!(w.start("t", "h2", "blue", Some("other")).await, Err(RunError::Rejected(_))));
    let run = w.start("t", "h2", "blue", Some(&question.id)).await.unwrap();
    assert_eq!(w.until_event(&run).await.status, RunStatus::Succeeded);
    let state = w.state().await;
    assert_eq!(state.open_question, None);
    assert!(state.messages[2].question.as_ref().unwrap().answered);
    assert!(matches!(w.start("t", "h3", "red", Some(&question.id)).await, Err(RunError::Rejected(_))));
    let last = w.requests().pop().unwrap();
    assert!(results(&last)[0].1.contains("Which colour?"));
    assert_eq!(last.messages.last(), Some(&ModelMessage::Human { text: "blue".into() }));
}

#[tokio::test]
async fn a_person_who_speaks_in_the_conversation_closes_its_question() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], asks_then_answers, fine);
    w.run("h1", "paint").await;
    let question = w.state().await.open_question.unwrap();
    let post = Post { thread: Some("t".into()), agent: None, message_id: "p1".into(), text: "never mind".into() };
    let posted = w.agents.post("ada", post).await.unwrap();
    w.until_event(&Run::new(posted.run, RunStatus::Running)).await;
    let state = w.state().await;
    assert_eq!(state.open_question, None);
    assert!(!state.messages[2].question.as_ref().unwrap().answered);
    assert!(matches!(w.start("t", "h2", "blue", Some(&question.id)).await, Err(RunError::Rejected(_))));
}

#[tokio::test]
async fn prov_2_and_7_calls_with_bad_arguments_do_not_run_and_replay_as_valid_json() {
    let dir = tempfile::tempdir().unwrap();
    let brain = in_turn(|n| match n {
        0 => calls(&[("send_member", r#"{"path":"a"#), ("send_member", "not json"), ("send_member", "[1]")]),
        1 => calls(&[("send_member", "")]),
        _ => text("done"),
    });
    let w = World::open(dir.path(), vec![agent("a", "")], brain, fine);
    assert_eq!(w.run("h1", "go").await.status, RunStatus::Succeeded);
    assert_eq!(w.tool_calls().iter().map(|c| c.2.clone()).collect::<Vec<_>>(), [json!({})]);
    let last = w.requests().pop().unwrap();
    for (_, result) in &results(&last)[..3] {
        assert!(result.contains("invalid_arguments"), "{result}");
    }
    for message in &last.messages {
        if let ModelMessage::Assistant { calls, .. } = message {
            assert!(calls.iter().all(|c| c.arguments == "{}"));
        }
    }
}

#[tokio::test]
async fn prov_5_nothing_of_a_cut_reply_runs() {
    let dir = tempfile::tempdir().unwrap();
    let brain = in_turn(|n| match n {
        0 => Act::Do(Ok(reply(&[("send_member", r#"{"text":"hal"}"#)], Finish::Cut))),
        _ => text("done"),
    });
    let w = World::open(dir.path(), vec![agent("a", "")], brain, fine);
    assert_eq!(w.run("h1", "go").await.status, RunStatus::Succeeded);
    assert!(w.tool_calls().is_empty());
    assert!(results(&w.requests()[1])[0].1.contains("reply_cut"));
}

#[tokio::test]
async fn an_answer_that_the_endpoint_cut_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let cut = || Act::Do(Ok(ModelReply { text: "The price is 4".into(), ..reply(&[], Finish::Cut) }));
    let brain = move |r: &ModelRequest| if r.messages.len() == 1 { cut() } else { text("whole") };
    let w = World::open(dir.path(), vec![agent("a", "")], brain, fine);
    let cut = w.run("h1", "go").await;
    assert_eq!((cut.status, cut.cut), (RunStatus::Succeeded, true));
    let run = w.start("t", "h2", "again", None).await.unwrap();
    assert!(!w.until_event(&run).await.cut);
}

#[tokio::test]
async fn loop_6_the_same_call_again_and_again_ends_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], |_: &_| calls(&[("send_member", "{\"a\":1}")]), fine);
    assert_failed(&w.run("h1", "go").await, "limit_repeated_call: the tool send_member");
    assert_eq!(w.tool_calls().len(), 16);
    // The conversation goes on afterwards, with a whole history.
    let run = w.start("t", "h2", "again", None).await.unwrap();
    assert_failed(&w.until_event(&run).await, "limit_repeated_call");
    for request in w.requests() {
        let calls: usize = request
            .messages
            .iter()
            .map(|m| match m {
                ModelMessage::Assistant { calls, .. } => calls.len(),
                _ => 0,
            })
            .sum();
        assert_eq!(calls, results(&request).len());
    }
}

#[tokio::test]
async fn limits_end_the_run_with_their_name() {
    let dir = tempfile::tempdir().unwrap();
    let brain = |r: &ModelRequest| calls(&[("send_member", &format!("{{\"n\":{}}}", r.call))]);
    let w = World::open(dir.path(), vec![agent("a", "max_model_calls = 3")], brain, fine);
    assert_failed(&w.run("h1", "go").await, "limit_model_calls");
    assert_eq!((w.requests().len(), w.tool_calls().len()), (3, 3));
    let many = vec![("send_member", "{}"); 40];
    drop(w);
    let dir = tempfile::tempdir().unwrap();
    let brain = move |r: &ModelRequest| if r.call == 0 { calls(&many) } else { text("done") };
    let w = World::open(dir.path(), vec![agent("a", "")], brain, fine);
    assert_eq!(w.run("h1", "go").await.status, RunStatus::Succeeded);
    assert_eq!(w.tool_calls().len(), 15);
    assert!(results(&w.requests()[1])[15].1.contains("too_many_calls"));
}

#[tokio::test]
async fn a_runs_time_is_bounded_over_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let brain = in_turn(|n| if n == 0 { calls(&[("send_member", "{}")]) } else { text("late") });
    let w =
        World::open(dir.path(), vec![agent("a", "max_minutes = 1")], brain, |_: &Caller, _: &str, _: &Value| Act::Hang);
    let run = w.begin("h1", "go").await;
    reached(&w.tools.begun, 1).await;
    w.agents.shutdown().await;
    w.db.write(|c| Ok(c.execute("UPDATE agent_runs SET spent_ms = 60000", [])?)).await.unwrap();
    drop(w);
    let w = World::open(dir.path(), vec![agent("a", "max_minutes = 1")], |_: &_| text("late"), fine);
    w.agents.recover().await.unwrap();
    assert_failed(&w.until_event(&run).await, "limit_minutes");
    assert!(w.tool_calls().is_empty());
}

#[tokio::test]
async fn a_provider_that_fails_ends_the_run_with_the_class_of_the_error() {
    let dir = tempfile::tempdir().unwrap();
    let brain = |r: &ModelRequest| {
        if r.messages.len() == 1 {
            Act::Do(Err(ModelError::Unavailable("status 500, after 5 attempts".into())))
        } else {
            text("back again")
        }
    };
    let w = World::open(dir.path(), vec![agent("a", "")], brain, fine);
    assert_failed(&w.run("h1", "go").await, "provider_unavailable: status 500");
    let run = w.start("t", "h2", "again", None).await.unwrap();
    assert_eq!(w.until_event(&run).await.status, RunStatus::Succeeded);
}

#[tokio::test]
async fn tools_that_the_agent_may_not_use_are_neither_shown_nor_run() {
    let dir = tempfile::tempdir().unwrap();
    let brain = in_turn(|n| match n {
        0 => calls(&[
            ("write_file", r#"{"path":"a","text":"x"}"#),
            ("send_member", "{}"),
            ("ask_clarification", r#"{"question":"?"}"#),
        ]),
        _ => text("done"),
    });
    let w = World::open(dir.path(), vec![agent("a", "tools = ['read_file', 'publish_state']")], brain, fine);
    assert_eq!(w.run("h1", "go").await.status, RunStatus::Succeeded);
    let shown: Vec<String> = w.requests()[0].tools.iter().map(|t| t.name.clone()).collect();
    assert_eq!(shown, ["read_file", "publish_state"]);
    assert!(results(&w.requests()[1]).iter().all(|(_, text)| text.contains("unknown_tool")));
    assert!(w.tool_calls().is_empty());
    assert_eq!(w.state().await.open_question, None);
}

#[tokio::test]
async fn a_long_tool_result_is_cut_with_a_mark_and_faults_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let brain = in_turn(|n| match n {
        0 => calls(&[("send_member", "{}"), ("publish_state", "{}")]),
        _ => text("done"),
    });
    let hand = |_: &Caller, name: &str, _: &Value| match name {
        "send_member" => Act::Do(Ok("研".repeat(30_000))),
        _ => Act::Do(Err(CallError::Fault { code: FaultCode::Trapped, message: "The call failed.".into() })),
    };
    let w = World::open(dir.path(), vec![agent("a", "context_tokens = 60000")], brain, hand);
    assert_eq!(w.run("h1", "go").await.status, RunStatus::Succeeded);
    let results = results(&w.requests()[1]);
    assert!(results[0].1.len() < 33_000 && results[0].1.ends_with("bytes shown]"));
    assert!(results[1].1.contains("component_trapped"));
}

#[tokio::test]
async fn a_call_that_may_have_happened_is_repeated_as_the_same_call_before_the_model_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let brain = in_turn(|n| match n {
        0 => calls(&[("send_member", r#"{"n":1}"#), ("publish_state", "{}")]),
        _ => text("done"),
    });
    let tries = std::sync::atomic::AtomicUsize::new(0);
    let hand = move |_: &Caller, name: &str, _: &Value| {
        let fault = |code| Act::Do(Err(CallError::Fault { code, message: "It may have happened.".into() }));
        match (name, tries.fetch_add(1, Ordering::SeqCst)) {
            ("send_member", 0) => fault(FaultCode::TimedOut),
            ("send_member", 1) => fault(FaultCode::Trapped),
            ("send_member", 2) => fault(FaultCode::OutOfMemory),
            ("send_member", _) => Act::Do(Ok(r#"{"job":"one"}"#.into())),
            // Here repeating does not help.
            (_, 4) => fault(FaultCode::WaitedTooLong),
            _ => panic!("repeated"),
        }
    };
    let w = World::open(dir.path(), vec![agent("a", "")], brain, hand);
    let run = w.run("h1", "go").await;
    assert_eq!(run.status, RunStatus::Succeeded);
    let ids: Vec<_> = w.tool_calls().into_iter().map(|(caller, ..)| caller.call.unwrap()).collect();
    let (one, two) = (format!("{}-2-0", run.id), format!("{}-2-1", run.id));
    assert_eq!(ids, [one.clone(), one.clone(), one.clone(), one, two]);
    let results = results(&w.requests()[1]);
    assert_eq!(results[0].1, r#"{"job":"one"}"#);
    assert!(results[1].1.contains("call_waited_too_long"));
}

#[tokio::test]
async fn that_the_component_cannot_say_its_tools_now_does_not_end_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(dir.path(), vec![agent("a", "")], in_turn(|_| text("done")), fine);
    w.tools.unlisted.store(2, Ordering::SeqCst);
    assert_eq!(w.run("h1", "go").await.status, RunStatus::Succeeded);
}
