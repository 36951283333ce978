//! Conversations: reading, posting, and mentions with the order and the
//! repetition that the gateway promises.

use agent_teams_host::agents::runs::RunError;
use agent_teams_host::contract::{CallError, ErrorKind};
use serde_json::{Value, json};

use crate::client::{Request, Response};
use crate::fakes::refusal;
use crate::server::Server;

fn post(s: &Server, token: &str, thread: &str, body: &Value) -> Request {
    s.post(&format!("/api/conversations/{thread}/messages")).bearer(token).json(body)
}

fn message(id: &str, mentions: &[(&str, &str)]) -> Value {
    let mentions: Vec<_> = mentions.iter().map(|(team, member)| json!({ "team": team, "member": member })).collect();
    json!({ "message_id": id, "text": format!("text of {id}"), "mentions": mentions })
}

#[tokio::test]
async fn dup_8_a_message_that_is_sent_again_is_one_message_and_one_run() {
    let s = Server::start().await;
    let token = s.token("ann").await;
    s.agents.add_thread("ann", "c1");
    let body = json!({ "message_id": "m1", "text": "hello", "mentions": null });
    // The connection breaks before the answer is read; the client sends again.
    drop(post(&s, &token, "c1", &body).open().await);
    let answers: Vec<Response> =
        [post(&s, &token, "c1", &body).send().await, post(&s, &token, "c1", &body).send().await].into();
    for answer in &answers {
        assert_eq!((answer.status, answer.json()), (200, json!({ "thread": "c1", "run": "run-m1" })));
    }
    assert_eq!(s.agents.threads()["c1"].messages, [("m1".to_owned(), "hello".to_owned())]);
    let other = post(&s, &token, "c1", &json!({ "message_id": "m1", "text": "hello!" })).send().await;
    assert_eq!(other.refusal(), (409, "message_id_conflict".into()));
}

#[tokio::test]
async fn a_conversation_begins_once_for_one_message_id() {
    let s = Server::start().await;
    let (ann, bob) = (s.token("ann").await, s.token("bob").await);
    let begin = async |token: &str, agent: &str, id: &str| {
        let body = json!({ "agent": agent, "message_id": id, "text": "First line\nsecond" });
        s.post("/api/conversations").bearer(token).json(&body).send().await
    };
    let first = begin(&ann, "writer", "m1").await.json();
    assert_eq!(begin(&ann, "writer", "m1").await.json(), first);
    assert_eq!(begin(&ann, "reader", "m1").await.refusal(), (409, "message_id_conflict".into()));
    assert_ne!(begin(&ann, "writer", "m2").await.json()["thread"], first["thread"]);
    assert_ne!(begin(&bob, "writer", "m1").await.json()["thread"], first["thread"]);
    let unknown = begin(&ann, "nobody", "m3").await;
    assert_eq!(unknown.refusal(), (404, "agent_not_found".into()));
    assert_eq!(unknown.json()["field"], "agent");

    let thread = first["thread"].as_str().unwrap();
    assert_eq!(s.agents.threads()[thread].title, "First line");
    let list = s.get("/api/conversations").bearer(&ann).send().await.json();
    assert_eq!(list["conversations"].as_array().unwrap().len(), 2);
    let read = s.get(&format!("/api/conversations/{thread}?after=0&limit=1")).bearer(&ann).send().await.json();
    assert_eq!(read["messages"][0]["id"], "m1");
    assert_eq!(read["conversation"]["agent"], "writer");
}

#[tokio::test]
async fn anothers_conversation_is_answered_as_one_that_never_was() {
    let s = Server::start().await;
    let bob = s.token("bob").await;
    s.agents.add_thread("ann", "c1");
    let read = async |thread: &str| s.get(&format!("/api/conversations/{thread}")).bearer(&bob).send().await;
    let mentioned = message("m1", &[("t", "a")]);
    for (foreign, absent) in [
        (read("c1").await, read("never").await),
        (
            post(&s, &bob, "c1", &message("m1", &[])).send().await,
            post(&s, &bob, "never", &message("m1", &[])).send().await,
        ),
        (post(&s, &bob, "c1", &mentioned).send().await, post(&s, &bob, "never", &mentioned).send().await),
    ] {
        assert_eq!(foreign.refusal(), (404, "conversation_not_found".into()));
        assert_eq!((foreign.status, &foreign.body), (absent.status, &absent.body));
    }
    assert_eq!(read(&"x".repeat(300)).await.status, 404);
    assert!(s.team.calls().is_empty());
}

#[tokio::test]
async fn mentions_are_dispatched_from_the_conversation_before_the_post() {
    let s = Server::start().await;
    let token = s.token("ann").await;
    s.agents.add_thread("ann", "c1");
    let body = message("m1", &[("t1", "a"), ("t2", "b")]);
    let answer = post(&s, &token, "c1", &body).send().await.json();
    assert_eq!(answer, json!({ "thread": "c1", "run": "run-m1", "mentions": { "jobs": ["t1/a", "t2/b"] } }));
    let call = s.team.calls().remove(0);
    assert_eq!((call.caller.owner.as_str(), call.caller.thread.as_deref()), ("ann", Some("c1")));
    assert_eq!((call.capability.as_str(), call.name.as_str()), ("ann", "dispatch m1"));

    // Refused: nothing is posted, and the mention at fault is named.
    let fault =
        agent_teams_host::contract::Refusal { field: Some("references[1]".into()), ..refusal(ErrorKind::NotFound) };
    *s.team.fail.lock().unwrap() = Some(CallError::Refused(fault));
    let refused = post(&s, &token, "c1", &message("m2", &[("t1", "a"), ("t9", "z")])).send().await;
    assert_eq!(refused.refusal(), (404, "some_code".into()));
    assert_eq!(refused.json()["field"], "mentions[1]");
    assert_eq!(s.agents.threads()["c1"].messages.len(), 1);

    // A new conversation has its id before the dispatch.
    let mut body = message("m3", &[("t1", "a")]);
    body["agent"] = "writer".into();
    let begun = s.post("/api/conversations").bearer(&token).json(&body).send().await.json();
    assert_eq!(s.team.calls().last().unwrap().caller.thread.as_deref(), begun["thread"].as_str());
}

#[tokio::test]
async fn a_busy_conversation_is_refused_before_the_dispatch_but_a_repetition_is_not() {
    let s = Server::start().await;
    let token = s.token("ann").await;
    s.agents.add_thread("ann", "c1");
    let body = message("m1", &[("t1", "a")]);
    s.agents.threads().get_mut("c1").unwrap().active_run = Some("r".into());
    let busy = post(&s, &token, "c1", &body).send().await;
    assert_eq!(busy.refusal(), (409, "conversation_busy".into()));
    assert!(s.team.calls().is_empty() && busy.json().get("facts").is_none());

    s.agents.threads().get_mut("c1").unwrap().active_run = None;
    assert_eq!(post(&s, &token, "c1", &body).send().await.status, 200);
    s.agents.threads().get_mut("c1").unwrap().active_run = Some("run-m1".into());
    assert_eq!(post(&s, &token, "c1", &body).send().await.status, 200);
    assert_eq!(s.agents.threads()["c1"].messages.len(), 1);
}

#[tokio::test]
async fn the_run_of_a_conversation_can_be_stopped_by_its_name_and_by_its_owner_alone() {
    let s = Server::start().await;
    let (ann, bob) = (s.token("ann").await, s.token("bob").await);
    s.agents.add_thread("ann", "c1");
    s.agents.threads().get_mut("c1").unwrap().active_run = Some("r1".into());
    let stop = async |token: &str, run: &str| {
        s.post("/api/conversations/c1/stop").bearer(token).json(&json!({ "run": run })).send().await
    };
    let refused = stop(&bob, "r1").await;
    assert_eq!(refused.refusal(), (404, "run_not_found".into()));
    assert_eq!(stop(&ann, "r0").await.json(), refused.json());
    assert!(s.agents.threads()["c1"].active_run.is_some());
    assert_eq!(stop(&ann, "r1").await.json(), json!({ "thread": "c1", "run": "r1", "stopped": true }));
    assert!(s.agents.threads()["c1"].active_run.is_none());
    let unknown =
        s.post("/api/conversations/c1/stop").bearer(&ann).json(&json!({ "run": "r", "now": true })).send().await;
    assert_eq!(unknown.status, 400);
}

#[tokio::test]
async fn without_room_for_a_run_nothing_is_dispatched_or_made_but_a_repetition_is_answered() {
    let s = Server::start().await;
    let token = s.token("ann").await;
    let begin = async |id: &str| {
        let body =
            json!({ "agent": "writer", "message_id": id, "text": "x", "mentions": [{ "team": "t", "member": "a" }] });
        s.post("/api/conversations").bearer(&token).json(&body).send().await
    };
    let first = begin("m1").await.json();
    let calls = s.team.calls().len();
    *s.agents.full.lock().unwrap() = true;
    let refused = begin("m2").await;
    assert_eq!(refused.refusal(), (429, "too_many_runs".into()));
    assert!(refused.header("retry-after").is_some() && refused.json().get("facts").is_none(), "{refused:?}");
    let thread = first["thread"].as_str().unwrap();
    let refused = post(&s, &token, thread, &message("m3", &[("t", "a")])).send().await;
    assert_eq!(refused.refusal(), (429, "too_many_runs".into()));
    assert_eq!(s.team.calls().len(), calls, "nothing was dispatched");
    assert_eq!(s.agents.threads().len(), 1, "and no conversation made");
    assert_eq!(begin("m1").await.json()["run"], first["run"]);
}

#[tokio::test]
async fn a_post_that_fails_after_the_dispatch_says_what_happened() {
    let s = Server::start().await;
    let token = s.token("ann").await;
    s.agents.add_thread("ann", "c1");
    for (error, status, code) in [
        (RunError::Busy("x".into()), 409, "conversation_busy"),
        (RunError::Unavailable("/secret/path".into()), 503, "agents_unavailable"),
        (RunError::TimedOut, 504, "outcome_unknown"),
        (RunError::Other("/secret/path".into()), 504, "outcome_unknown"),
        (RunError::Denied("You may not.".into()), 403, "denied"),
        (RunError::Rejected("Too odd.".into()), 400, "rejected"),
    ] {
        *s.agents.fail_post.lock().unwrap() = Some(error);
        let answer = post(&s, &token, "c1", &message("m1", &[("t1", "a")])).send().await;
        assert_eq!(answer.refusal(), (status, code.into()));
        let body = answer.json();
        assert_eq!(body["facts"], json!({ "mentions": { "jobs": ["t1/a"] } }));
        assert!(body["detail"].as_str().unwrap().contains("same message_id"), "{body}");
        assert!(!body.to_string().contains("/secret"), "{body}");
    }
    assert_eq!(post(&s, &token, "c1", &message("m1", &[("t1", "a")])).send().await.status, 200);
    // Every attempt was the same dispatch.
    assert!(s.team.calls().iter().all(|call| call.name == "dispatch m1"));
}

#[tokio::test]
async fn wrong_messages_are_refused_by_field() {
    let s = Server::start().await;
    let token = s.token("ann").await;
    s.agents.add_thread("ann", "c1");
    let id_bytes = "é".repeat(128);
    assert_eq!(post(&s, &token, "c1", &message(&id_bytes, &[])).send().await.status, 200);
    let many = json!(vec![json!({ "team": "t", "member": "m" }); 17]);
    for (body, code, field) in [
        (json!({ "text": "x" }), "text_required", "message_id"),
        (json!({ "message_id": "m", "text": 5 }), "text_required", "text"),
        (json!({ "message_id": "m", "text": " \u{feff}\n" }), "text_required", "text"),
        (json!({ "message_id": "m", "text": "a\u{0}" }), "nul_refused", "text"),
        (json!({ "message_id": "m", "text": "x".repeat(100_001) }), "too_long", "text"),
        (json!({ "message_id": "x".repeat(129), "text": "x" }), "too_long", "message_id"),
        (json!({ "message_id": "研".repeat(86), "text": "x" }), "too_long", "message_id"),
        (json!({ "message_id": "m", "text": "x", "owner": "bob" }), "unknown_field", "owner"),
        (json!({ "message_id": "m", "text": "x", "mentions": "ada" }), "list_required", "mentions"),
        (json!({ "message_id": "m", "text": "x", "mentions": many }), "too_long", "mentions"),
        (json!({ "message_id": "m", "text": "x", "mentions": ["ada"] }), "object_required", "mentions[0]"),
        (
            json!({ "message_id": "m", "text": "x", "mentions": [{ "team": "t" }] }),
            "text_required",
            "mentions[0].member",
        ),
        (
            json!({ "message_id": "m", "text": "x", "mentions": [{ "team": "t", "member": "m", "label": "l" }] }),
            "unknown_field",
            "mentions[0].label",
        ),
        (
            json!({ "message_id": "m", "text": "x", "mentions": [{ "team": "t".repeat(65), "member": "m" }] }),
            "too_long",
            "mentions[0].team",
        ),
    ] {
        let answer = post(&s, &token, "c1", &body).send().await;
        assert_eq!(answer.refusal(), (400, code.into()), "{field}");
        assert_eq!(answer.json()["field"], field);
    }
    assert!(s.team.calls().is_empty());
    assert_eq!(s.agents.threads()["c1"].messages.len(), 1);
}
