//! Live updates: whose they are, and what a client gets when it comes (back).
//!
//! That nothing was sent is shown by a later event that arrives first.

use serde_json::json;

use crate::client::{Event, Stream};
use crate::server::Server;

async fn open(s: &Server, token: &str, query: &str) -> Stream {
    let stream = s.get(&format!("/api/events{query}")).bearer(token).open().await;
    assert_eq!(stream.status, 200);
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    stream
}

fn changed(id: Option<&str>, data: serde_json::Value) -> Option<Event> {
    Some(Event { name: "changed".into(), id: id.map(str::to_owned), data })
}

/// Publishes for `owner` and waits until the gateway has passed it on.
async fn settled(s: &Server, owner: &str, token: &str) {
    let mut all = open(s, token, "").await;
    assert_eq!(all.event().await, changed(None, json!({})));
    s.signals.publish(owner, "team:settled", 1);
    while all.event().await.unwrap().id.as_deref() != Some("team:settled:1") {}
}

#[tokio::test]
async fn a_stream_carries_its_owners_topics_alone() {
    let s = Server::start().await;
    let (ann, bob) = (s.token("ann").await, s.token("bob").await);
    let (mut anns, mut bobs) = (open(&s, &ann, "").await, open(&s, &bob, "").await);
    // The same team id, named by somebody else, is just a topic of theirs.
    let mut spying = open(&s, &bob, "?team=t1").await;
    for stream in [&mut anns, &mut bobs, &mut spying] {
        assert_eq!(stream.event().await, changed(None, json!({})));
    }
    s.signals.publish("ann", "team:t1", 5);
    assert_eq!(anns.event().await, changed(Some("team:t1:5"), json!({ "topic": "team:t1", "revision": 5 })));
    s.signals.publish("bob", "team:t1", 1);
    assert_eq!(bobs.event().await, changed(Some("team:t1:1"), json!({ "topic": "team:t1", "revision": 1 })));
    assert_eq!(spying.event().await, changed(Some("1"), json!({ "topic": "team:t1", "revision": 1 })));
}

#[tokio::test]
async fn pag_4_a_revision_that_is_not_the_newest_gets_one_event_at_once() {
    let s = Server::start().await;
    let ann = s.token("ann").await;
    for revision in 40..=45 {
        s.signals.publish("ann", "t1", revision);
    }
    settled(&s, "ann", &ann).await;
    let after = changed(Some("46"), json!({ "topic": "t1", "revision": 46 }));

    for named in ["40", "44", "46", "999", "", "x", "-1", "45.0", "t1:45"] {
        let mut stream = s.get("/api/events?team=t1").bearer(&ann).header("last-event-id", named).open().await;
        assert_eq!(stream.event().await, changed(Some("45"), json!({ "revision": 45 })), "{named}");
    }
    let mut late = open(&s, &ann, "?team=t1&since=40").await;
    assert_eq!(late.event().await, changed(Some("45"), json!({ "revision": 45 })));
    let mut unnamed = open(&s, &ann, "?team=t1").await;
    assert_eq!(unnamed.event().await, changed(Some("45"), json!({ "revision": 45 })));
    // Nothing is known of another team: it may have changed.
    let mut unknown = open(&s, &ann, "?team=t2&since=7").await;
    assert_eq!(unknown.event().await, changed(None, json!({})));

    // The newest one gets nothing until something changes; a reconnect counts
    // more than the address of the first connect.
    let mut current = open(&s, &ann, "?team=t1&since=45").await;
    let again = s.get("/api/events?team=t1&since=40").bearer(&ann).header("last-event-id", "45");
    let mut again = again.open().await;
    s.signals.publish("ann", "t2", 8);
    s.signals.publish("ann", "t1", 46);
    for stream in [&mut current, &mut again, &mut late, &mut unnamed] {
        assert_eq!(stream.event().await, after);
    }
    assert_eq!(unknown.event().await, changed(Some("8"), json!({ "topic": "t2", "revision": 8 })));
}

#[tokio::test]
async fn the_stream_of_everything_always_begins_with_one_event() {
    let s = Server::start().await;
    let ann = s.token("ann").await;
    s.signals.publish("ann", "t1", 3);
    settled(&s, "ann", &ann).await;
    for named in ["t1:3", "t1:2", "x"] {
        let mut stream = s.get("/api/events").bearer(&ann).header("last-event-id", named).open().await;
        assert_eq!(stream.event().await, changed(None, json!({})), "{named}");
    }
}

#[tokio::test]
async fn a_stream_ends_when_its_user_is_not_let_in_any_more() {
    let s = Server::start_with(|_, limits| limits.recheck = std::time::Duration::from_millis(10)).await;
    let token = s.users.add_token("ann", "x").await.unwrap();
    let cookie = s.cookie("ann").await;
    let bob = s.token("bob").await;
    let mut by_token = open(&s, &token.secret, "").await;
    let mut by_session = s.get("/api/events").header("cookie", &cookie).open().await;
    let mut bobs = open(&s, &bob, "").await;
    for stream in [&mut by_token, &mut by_session, &mut bobs] {
        assert!(stream.event().await.is_some());
    }
    s.users.revoke_token(&token.id).await.unwrap();
    // By itself, with no event to wake it.
    assert_eq!(by_token.event().await, None);
    s.post("/api/sign-out").session(&cookie).json(&json!({})).send().await;
    assert_eq!(by_session.event().await, None);
    s.users.set_enabled("bob", false).await.unwrap();
    s.signals.publish("bob", "t", 1);
    assert_eq!(bobs.event().await, None);
}

#[tokio::test]
async fn not_even_the_next_event_reaches_a_disabled_user() {
    let s = Server::start_with(|_, limits| limits.recheck = std::time::Duration::from_secs(3600)).await;
    let bob = s.token("bob").await;
    let mut stream = open(&s, &bob, "").await;
    assert!(stream.event().await.is_some());
    s.users.set_enabled("bob", false).await.unwrap();
    s.signals.publish("bob", "t", 1);
    assert_eq!(stream.event().await, None);
}

#[tokio::test]
async fn streams_of_one_user_are_bounded_and_end_with_the_server() {
    let mut s = Server::start_with(|server, _| server.max_streams_per_user = 2).await;
    let (ann, bob) = (s.token("ann").await, s.token("bob").await);
    let mut first = open(&s, &ann, "").await;
    let mut second = open(&s, &ann, "?team=t1").await;
    let third = s.get("/api/events").bearer(&ann).send().await;
    assert_eq!(third.refusal(), (429, "too_many_streams".into()));
    let mut bobs = open(&s, &bob, "").await;
    for stream in [&mut first, &mut second, &mut bobs] {
        assert!(stream.event().await.is_some());
    }
    let _ = s.stop.take().unwrap().send(());
    for stream in [&mut first, &mut second, &mut bobs] {
        assert_eq!(stream.event().await, None);
    }
    s.task.await.unwrap().unwrap();
}
