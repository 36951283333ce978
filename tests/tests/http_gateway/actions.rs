//! Actions: what passes through, and how refusals and bad bodies are answered.

use agent_teams_host::contract::{CallError, ErrorKind, FaultCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Request, Stream};
use crate::fakes::refusal;
use crate::server::Server;

#[tokio::test]
async fn payload_and_answer_pass_through_as_they_are() {
    let s = Server::start().await;
    let token = s.token("ann").await;
    let payload = "{ \"n\": 12345678901234567890.5, \"t\": \"\\u00e9 研究员 \\ud83d\\ude00\" }";
    for media_type in ["application/json", "application/json; charset=utf-8", "Application/JSON;charset=\"UTF-8\""] {
        let answer = s.action("create_task").bearer(&token).text(media_type, payload).send().await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")), "{media_type}");
        assert_eq!(answer.body, br#"{"answer":  "as given"}"#);
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    let call = s.team.calls().remove(0);
    assert_eq!((call.name.as_str(), call.payload.as_str()), ("create_task", payload));

    let get = async |path: &str| s.get(path).bearer(&token).send().await.json();
    let actions = get("/api/plugins/community.agent-teams/actions").await;
    assert_eq!(actions["actions"][0]["input_schema"], json!({ "type": "object" }));
    assert_eq!(actions["actions"][0]["writes"], false);
    let tools = get("/api/plugins/community.agent-teams/tools").await;
    assert_eq!(tools["tools"][0]["name"], "send_member");
    let mentions = get("/api/plugins/community.agent-teams/mentions?query=%E7%A0%94+a").await;
    assert_eq!(mentions["mentions"][0]["label"], "研 a");
    assert_eq!(mentions["mentions"][0]["team"], "ann");
    assert_eq!(get("/api/agents").await["agents"][0]["display_name"], "ann");
}

#[tokio::test]
async fn every_kind_of_refusal_has_its_status_and_form() {
    let s = Server::start().await;
    let token = s.token("ann").await;
    for (kind, status) in [
        (ErrorKind::Invalid, 400),
        (ErrorKind::NotFound, 404),
        (ErrorKind::Denied, 403),
        (ErrorKind::Conflict, 409),
        (ErrorKind::Limit, 422),
        (ErrorKind::Unavailable, 503),
        (ErrorKind::Unknown, 504),
        (ErrorKind::Internal, 500),
    ] {
        *s.team.fail.lock().unwrap() = Some(CallError::Refused(refusal(kind)));
        let answer = s.action("x").bearer(&token).json(&json!({})).send().await;
        assert_eq!(answer.refusal(), (status, "some_code".into()), "{kind:?}");
        let body = answer.json();
        assert_eq!(body["detail"], "Say what to do.");
        assert_eq!(body["field"], "members[2].name");
        assert_eq!(body["facts"], json!({ "revision": 7 }));
        assert_eq!(answer.header("retry-after").is_some(), kind == ErrorKind::Unavailable, "{kind:?}");
    }
    for (code, status, retry) in [
        (FaultCode::Trapped, 500, false),
        (FaultCode::OutOfMemory, 500, false),
        (FaultCode::TimedOut, 504, false),
        (FaultCode::Busy, 503, true),
        (FaultCode::Stopping, 503, true),
    ] {
        *s.team.fail.lock().unwrap() = Some(CallError::Fault { code, message: "What happened.".into() });
        let answer = s.action("x").bearer(&token).json(&json!({})).send().await;
        assert_eq!(answer.refusal(), (status, code.to_string()));
        assert_eq!(answer.header("retry-after").is_some(), retry, "{code}");
    }
    // A fault of the host itself hurts this call alone.
    let answer = s.action("panic").bearer(&token).json(&json!({})).send().await;
    assert_eq!(answer.refusal(), (500, "internal_error".into()));
    assert_eq!(s.action("x").bearer(&token).json(&json!({})).send().await.status, 200);
}

#[tokio::test]
async fn bodies_are_objects_of_bounded_size_and_valid_unicode() {
    let s = Server::start().await;
    let token = s.token("ann").await;
    let send = async |text: &str| s.action("x").bearer(&token).text("application/json", text).send().await;
    let sized = |size: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(size - 8));
    let bound = 256 * 1024;
    for size in [bound - 1, bound] {
        assert_eq!(send(&sized(size)).await.status, 200, "{size}");
    }
    assert_eq!(send(&sized(bound + 1)).await.refusal(), (413, "body_too_large".into()));
    // Not by what the client says about the size, either.
    let chunked = format!("{:x}\r\n{}\r\n0\r\n\r\n", bound + 1, sized(bound + 1));
    let request = s.action("x").bearer(&token).header("content-type", "application/json");
    let mut socket = TcpStream::connect(s.addr).await.unwrap();
    let _ = socket.write_all(&request.header("transfer-encoding", "chunked").bytes()).await;
    let _ = socket.write_all(chunked.as_bytes()).await;
    assert_eq!(Stream::read_head(socket).await.rest().await.refusal(), (413, "body_too_large".into()));

    let calls = s.team.calls().len();
    for (text, code, field) in [
        ("", "invalid_json", None),
        ("null", "object_required", None),
        ("[]", "object_required", None),
        ("{\"a\":1", "invalid_json", None),
        ("{} x", "invalid_json", None),
        ("{\"a\":1,\"b\":{\"c\":1,\"c\":2}}", "duplicate_member", Some("b.c")),
        ("{\"members\":[{},{\"name\":\"\\ud800\"}]}", "invalid_unicode", Some("members[1].name")),
    ] {
        let answer = send(text).await;
        assert_eq!(answer.refusal(), (400, code.into()), "{text}");
        assert_eq!(answer.json().get("field").and_then(Value::as_str), field, "{text}");
    }
    for (text, code) in [
        (format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200)), "too_deep"),
        ("{\"a\":1e400}".into(), "number_too_large"),
    ] {
        assert_eq!(send(&text).await.refusal(), (400, code.into()));
    }
    let gzip = s.action("x").bearer(&token).header("content-encoding", "gzip").json(&json!({}));
    assert_eq!(gzip.send().await.refusal(), (415, "encoding_unsupported".into()));
    let bytes = s.action("x").bearer(&token).header("content-type", "application/json").body(b"{\"a\":\"\xff\"}");
    assert_eq!(bytes.send().await.refusal(), (400, "invalid_unicode".into()));
    assert_eq!(s.team.calls().len(), calls, "nothing of it reached the component");
}

#[tokio::test]
async fn unknown_routes_and_wrong_methods_are_typed() {
    let s = Server::start().await;
    let token = s.token("ann").await;
    for path in
        ["/api", "/api/", "/x", "/api/plugins/other/actions", "/api/conversations/a/b/c", "/%ff", "/..%2f..%2fetc"]
    {
        assert_eq!(s.get(path).bearer(&token).send().await.refusal(), (404, "no_such_route".into()), "{path}");
    }
    for action in ["Create", "a-b", "..%2fx", "a%00", "%ff", &"a".repeat(65)] {
        let answer = s.action(action).bearer(&token).json(&json!({})).send().await;
        assert_eq!(answer.refusal(), (404, "action_not_found".into()), "{action}");
    }
    for (method, path, allow) in [
        ("GET", "/api/plugins/community.agent-teams/actions/list", "POST"),
        ("POST", "/api/agents", "GET,HEAD"),
        ("DELETE", "/api/conversations", "GET,HEAD,POST"),
        ("OPTIONS", "/api/me", "GET,HEAD"),
        ("EVIL", "/api/me", "GET,HEAD"),
    ] {
        let answer = Request::new(s.addr, method, path).bearer(&token).send().await;
        assert_eq!(answer.refusal(), (405, "method_not_allowed".into()), "{method} {path}");
        assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
        assert!(answer.header("access-control-allow-origin").is_none());
    }
    for path in ["/api/plugins/community.agent-teams/mentions?q=x", "/api/conversations?limit=x", "/api/events?a=b"] {
        assert_eq!(s.get(path).bearer(&token).send().await.refusal(), (400, "invalid_query".into()), "{path}");
    }
    let long = format!("/api/plugins/community.agent-teams/mentions?query={}", "x".repeat(1001));
    assert_eq!(s.get(&long).bearer(&token).send().await.refusal(), (400, "too_long".into()));
}

#[tokio::test]
async fn a_call_comes_to_its_end_when_its_client_goes_away() {
    let s = Server::start().await;
    let token = s.token("ann").await;
    let mut socket = TcpStream::connect(s.addr).await.unwrap();
    socket.write_all(&s.action("slow").bearer(&token).json(&json!({})).bytes()).await.unwrap();
    s.team.begun.notified().await;
    drop(socket);
    // Another whole request in between: the server has had its turn to notice.
    assert_eq!(s.get("/api/me").bearer(&token).send().await.status, 200);
    s.team.go_on.notify_one();
    s.team.ended.notified().await;
}

#[tokio::test]
async fn one_users_many_calls_do_not_keep_another_user_waiting() {
    let s = Server::start_with(|server, limits| {
        server.max_calls_per_user = 1;
        limits.queue_time = std::time::Duration::from_millis(20);
    })
    .await;
    let (ann, bob) = (s.token("ann").await, s.token("bob").await);
    let slow = s.action("slow").bearer(&ann).json(&json!({}));
    let slow = tokio::spawn(async move { slow.send().await });
    s.team.begun.notified().await;
    let second = s.action("x").bearer(&ann).json(&json!({})).send().await;
    assert_eq!(second.refusal(), (429, "too_many_calls".into()));
    assert!(second.header("retry-after").is_some());
    assert_eq!(s.action("x").bearer(&bob).json(&json!({})).send().await.status, 200);
    s.team.go_on.notify_one();
    assert_eq!(slow.await.unwrap().status, 200);
    assert_eq!(s.action("x").bearer(&ann).json(&json!({})).send().await.status, 200);
}

#[tokio::test]
async fn a_call_has_its_place_before_anything_of_its_body_is_read() {
    let s = Server::start_with(|server, limits| {
        server.max_calls_per_user = 1;
        limits.queue_time = std::time::Duration::from_millis(20);
        limits.body_time = std::time::Duration::from_secs(1);
    })
    .await;
    let token = s.token("ann").await;
    let slow = s.action("slow").bearer(&token).json(&json!({}));
    let slow = tokio::spawn(async move { slow.send().await });
    s.team.begun.notified().await;
    // Bodies that never come are not waited for, whatever route they go to.
    for path in [
        "/api/plugins/community.agent-teams/actions/import_team",
        "/api/conversations",
        "/api/conversations/c/messages",
        "/api/sign-in-link",
        "/api/sign-out",
    ] {
        let announced = s.post(path).bearer(&token).header("content-length", "200000").text("application/json", "");
        assert_eq!(announced.send().await.refusal(), (429, "too_many_calls".into()), "{path}");
    }
    // And what is only read has a place, too.
    for path in ["/api/conversations", "/api/conversations/c"] {
        assert_eq!(s.get(path).bearer(&token).send().await.refusal(), (429, "too_many_calls".into()), "{path}");
    }
    s.team.go_on.notify_one();
    assert_eq!(slow.await.unwrap().status, 200);
}

#[tokio::test]
async fn slow_clients_are_cut_off() {
    let s = Server::start_with(|_, limits| {
        limits.body_time = std::time::Duration::from_millis(50);
        limits.header_time = std::time::Duration::from_millis(50);
    })
    .await;
    let token = s.token("ann").await;
    let half = s.action("x").bearer(&token).header("content-length", "100").json(&json!({}));
    assert_eq!(half.send().await.refusal(), (408, "body_timeout".into()));
    let mut socket = TcpStream::connect(s.addr).await.unwrap();
    socket.write_all(b"GET /api/me HTTP/1.1\r\nhost: x\r\n").await.unwrap();
    let mut rest = Vec::new();
    let _ = socket.read_to_end(&mut rest).await;
    assert!(!rest.starts_with(b"HTTP/1.1 200"));
    // Too many and too large headers.
    let many = (0..100).fold(s.get("/api/me").bearer(&token), |request, n| request.header(&format!("x-{n}"), "x"));
    assert_eq!(many.send().await.status, 431);
    let large = s.get("/api/me").bearer(&token).header("x", &"x".repeat(64 * 1024));
    assert_eq!(large.send().await.status, 431);
    assert!(s.team.calls().is_empty());
}

#[tokio::test]
async fn a_shutdown_lets_calls_under_way_end() {
    let mut s = Server::start().await;
    let token = s.token("ann").await;
    let slow = s.action("slow").bearer(&token).json(&json!({}));
    let slow = tokio::spawn(async move { slow.send().await });
    s.team.begun.notified().await;
    let _ = s.stop.take().unwrap().send(());
    s.team.go_on.notify_one();
    assert_eq!(slow.await.unwrap().status, 200);
    s.task.await.unwrap().unwrap();
    assert!(TcpStream::connect(s.addr).await.is_err());
}
