//! The loop on OpenAI-compatible servers of many habits, over real sockets.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;

use super::*;
use crate::agents::config::AgentsConfig;

type Handler = Arc<dyn Fn(usize, &HeaderMap, &Value) -> Response + Send + Sync>;

/// Serves on a free port of this machine; the handler gets the number of the
/// request, counted from 0.
async fn serve(
    handler: impl Fn(usize, &HeaderMap, &Value) -> Response + Send + Sync + 'static,
) -> (String, Arc<AtomicUsize>) {
    let handler: Handler = Arc::new(handler);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let respond = move |headers: HeaderMap, body: Bytes| {
        let (handler, n) = (handler.clone(), counted.fetch_add(1, Ordering::SeqCst));
        async move { handler(n, &headers, &serde_json::from_slice(&body).unwrap()) }
    };
    let app = axum::Router::new().route("/v1/chat/completions", axum::routing::post(respond));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (format!("http://{address}/v1"), count)
}

fn json_reply(body: Value) -> Response {
    axum::Json(body).into_response()
}

fn sse_reply(chunks: Vec<String>) -> Response {
    let stream = futures_util::stream::iter(chunks).map(Ok::<_, std::io::Error>);
    ([("content-type", "text/event-stream; charset=utf-8")], Body::from_stream(stream)).into_response()
}

fn status(code: u16, body: Value) -> Response {
    (StatusCode::from_u16(code).unwrap(), axum::Json(body)).into_response()
}

fn said(text: &str) -> Response {
    json_reply(json!({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}))
}

struct Host {
    _dir: tempfile::TempDir,
    agents: Arc<BuiltinAgents>,
    tools: Arc<FakeTools>,
}

impl Host {
    fn open(url: &str, more: &str) -> Self {
        let config = format!(
            "[[agents]]\nname='a'\nmodel='m'\ninstructions='Be brief.'\n\
             [models.m]\nkind='openai'\nbase_url='{url}'\nmodel='small'\nbackoff_ms=1\n{more}"
        );
        let config: AgentsConfig = toml::from_str(&config).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(&dir.path().join("data.db")).unwrap();
        let tools = Arc::new(FakeTools::new(Box::new(fine)));
        let users = Arc::new(FakeUsers::default());
        let agents = BuiltinAgents::open(open_tables(&db), config, tools.clone(), users, dir.path().join("w")).unwrap();
        Self { _dir: dir, agents, tools }
    }

    async fn run(&self, id: &str, words: &str) -> (Run, Vec<String>) {
        let runs = self.agents.capability("ada").runs;
        let mut ended = self.agents.ended();
        runs.create_thread("t", "a", "", "group").await.unwrap();
        let run = runs.start("t", &input(id, words, None), id).await.unwrap();
        while ended.recv().await.unwrap().run != run.id {}
        let texts = self.agents.conversation("ada", "t", None, 500).unwrap().messages;
        (runs.get("t", &run.id).await.unwrap(), texts.into_iter().map(|m| m.text).collect())
    }
}

/// What strict servers demand of every request.
fn assert_strict(body: &Value) {
    let messages = body["messages"].as_array().unwrap();
    let mut open: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    for (i, message) in messages.iter().enumerate() {
        assert!(message["content"].is_string(), "content is a string: {message}");
        let role = message["role"].as_str().unwrap();
        assert_eq!(role == "system", i == 0, "the system message comes first, alone: {message}");
        match role {
            "tool" => assert_eq!(open.remove(0), message["tool_call_id"].as_str().unwrap()),
            _ => assert!(open.is_empty(), "calls without results before {message}"),
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
            assert!(arguments.is_object() && call["type"] == "function");
            let id = call["id"].as_str().unwrap().to_owned();
            assert!(!id.is_empty() && seen.insert(id.clone()), "ids are unique");
            open.push(id);
        }
    }
    assert!(open.is_empty());
}

fn calls_in(body: &Value) -> usize {
    body["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "tool").count()
}

async fn dialogue(reply: impl Fn(usize) -> Response + Send + Sync + 'static) {
    let (url, count) = serve(move |_, _, body| {
        assert_strict(body);
        reply(calls_in(body))
    })
    .await;
    let host = Host::open(&url, "max_retries = 0");
    let (run, texts) = host.run("h1", "go").await;
    assert_eq!(run.status, RunStatus::Succeeded, "{run:?}");
    assert_eq!(texts.last().unwrap(), "all done");
    assert_eq!(host.tools.calls.lock().unwrap().len(), 5);
    assert_eq!(count.load(Ordering::SeqCst), 6);
}

fn whole(message: Value) -> Response {
    json_reply(
        json!({"id": "x", "unknown": {"a": 1}, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}),
    )
}

#[tokio::test]
async fn prov_3_servers_that_send_whole_replies() {
    for ids in [None, Some(""), Some("same")] {
        for parts in [false, true] {
            dialogue(move |n| {
                let content = |text: &str| if parts { json!([{"type": "text", "text": text}]) } else { json!(text) };
                if n == 5 {
                    return whole(json!({"role": "assistant", "content": content("all done"), "tool_calls": null}));
                }
                let mut call = json!({"type": "function", "function": {"name": "send_member", "arguments": format!("{{\"n\":{n}}}")}});
                if let Some(id) = ids {
                    call["id"] = json!(id);
                }
                if parts {
                    call["function"]["arguments"] = json!({"n": n});
                }
                let content = if parts { content("") } else { Value::Null };
                whole(json!({"role": "assistant", "content": content, "tool_calls": [call]}))
            })
            .await;
        }
    }
}

#[tokio::test]
async fn prov_3_servers_that_stream() {
    for id in [json!(null), json!("same")] {
        dialogue(move |n| {
            let delta = |delta: Value| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}));
            let end = |why: &str| format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [{"delta": {}, "finish_reason": why}]}));
            if n == 5 {
                return sse_reply(vec![delta(json!({"role": "assistant", "content": "all "})), ": ping\n\n".into(), delta(json!({"content": "done"})), end("stop")]);
            }
            let first = delta(json!({"content": null, "tool_calls": [{"index": 0, "id": id, "function": {"name": "send_member", "arguments": ""}}]}));
            let (head, tail) = first.split_at(first.len() / 2);
            sse_reply(vec![
                head.into(),
                tail.into(),
                delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"n\":"}}]})),
                delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": format!("{n}}}")}}]})),
                end("tool_calls"),
            ])
        })
        .await;
    }
}

#[tokio::test]
async fn prov_2_cut_arguments_are_replayed_to_a_strict_server_as_valid_json() {
    let (url, _) = serve(|n, _, body| {
        assert_strict(body);
        if n == 0 {
            let call = json!({"id": "1", "function": {"name": "send member!", "arguments": "{\"path\":\"a"}});
            return whole(json!({"content": null, "tool_calls": [call]}));
        }
        let result = body["messages"][3]["content"].as_str().unwrap();
        assert!(result.contains("invalid_arguments"), "{result}");
        assert_eq!(body["messages"][2]["tool_calls"][0]["function"]["name"], "send_member_");
        said("all done")
    })
    .await;
    let host = Host::open(&url, "max_retries = 0");
    let (run, texts) = host.run("h1", "go").await;
    assert_eq!((run.status, texts.last().unwrap().as_str()), (RunStatus::Succeeded, "all done"));
    assert!(host.tools.calls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn prov_5_a_streamed_call_with_finish_reason_length_does_not_run() {
    let (url, _) = serve(|n, _, _| {
        if n > 0 {
            return said("all done");
        }
        sse_reply(vec![format!(
            "data: {}\n\n",
            json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "1", "function": {"name": "send_member", "arguments": "{}"}}]}, "finish_reason": "length"}]})
        )])
    })
    .await;
    let host = Host::open(&url, "max_retries = 0");
    let (run, texts) = host.run("h1", "go").await;
    assert_eq!(run.status, RunStatus::Succeeded);
    assert!(texts[2].contains("reply_cut") && host.tools.calls.lock().unwrap().is_empty());
}

#[tokio::test]
async fn uni_2_a_lone_surrogate_is_repaired_and_the_next_turns_succeed() {
    let (url, _) = serve(|_, _, body| {
        assert_strict(body);
        let text = r#"{"choices":[{"message":{"content":"a\ud83db","tool_calls":[]},"finish_reason":"stop"}]}"#;
        ([("content-type", "application/json")], text).into_response()
    })
    .await;
    let host = Host::open(&url, "max_retries = 0");
    for turn in 0..4 {
        let (run, texts) = host.run(&format!("h{turn}"), "go").await;
        assert_eq!((run.status, texts.last().unwrap().as_str()), (RunStatus::Succeeded, "a\u{fffd}b"));
    }
}

#[tokio::test]
async fn temporary_failures_are_retried_and_permanent_ones_are_not() {
    let cut = || sse_reply(vec![format!("data: {}\n\n", json!({"choices": [{"delta": {"content": "half an ans"}}]}))]);
    let (url, count) = serve(move |n, _, _| match n {
        0 => status(500, json!({"error": {"message": "oops"}})),
        1 => ([("retry-after", "0")], status(429, json!({}))).into_response(),
        2 => cut(),
        3 => said("not json").map(|_| Body::from("{")),
        _ => said("all done"),
    })
    .await;
    let (run, texts) = Host::open(&url, "").run("h1", "go").await;
    assert_eq!((run.status, texts.last().unwrap().as_str()), (RunStatus::Succeeded, "all done"));
    assert_eq!(count.load(Ordering::SeqCst), 5);

    // rst_3: a stream that always breaks uses up its attempts and says so.
    let (url, count) = serve(move |_, _, _| cut()).await;
    let host = Host::open(&url, "max_retries = 2");
    let (run, texts) = host.run("h1", "go").await;
    assert_failed(&run, "provider_unavailable: the reply was cut off, after 3 attempts");
    assert_eq!((count.load(Ordering::SeqCst), texts.len()), (3, 1));

    for code in [400, 401, 403, 404] {
        let (url, count) =
            serve(move |_, _, _| status(code, json!({"error": {"message": "your key is sk-123"}}))).await;
        let (run, _) = Host::open(&url, "").run("h1", "go").await;
        assert_failed(&run, &format!("provider_refused: status {code}"));
        assert!(!run.failure.unwrap().text.contains("sk-123"));
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn a_server_that_never_answers_or_is_not_there_is_given_up() {
    let (url, _) = serve(|_, _, _| {
        let stream = futures_util::stream::pending::<Result<String, std::io::Error>>();
        ([("content-type", "text/event-stream")], Body::from_stream(stream)).into_response()
    })
    .await;
    let (run, _) = Host::open(&url, "max_retries = 0\ntimeout_seconds = 1").run("h1", "go").await;
    assert_failed(&run, "provider_unavailable: the reply stopped in the middle");
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/v1", listener.local_addr().unwrap())
    };
    let (run, _) = Host::open(&gone, "max_retries = 1").run("h1", "go").await;
    assert_failed(&run, "provider_unavailable: no connection, after 2 attempts");
}

#[tokio::test]
async fn the_key_comes_from_the_environment_and_goes_nowhere_else() {
    let host = Host::open("http://127.0.0.1:9/v1", "api_key_env = 'AGENT_TEAMS_TEST_NO_SUCH_KEY'");
    let (run, _) = host.run("h1", "go").await;
    assert_failed(&run, "provider_misconfigured: the environment variable AGENT_TEAMS_TEST_NO_SUCH_KEY");
    // PATH is set everywhere: it stands for a key here.
    let key = std::env::var("PATH").unwrap();
    let expected = format!("Bearer {key}");
    let (url, _) = serve(move |_, headers, body| {
        let sent = headers["authorization"].to_str().unwrap() == expected;
        assert_eq!((&body["model"], &body["max_tokens"]), (&json!("small"), &json!(99)));
        if sent { said("all done") } else { status(401, json!({})) }
    })
    .await;
    let (run, _) = Host::open(&url, "api_key_env = 'PATH'\nmax_tokens = 99\ntemperature = 0.5").run("h1", "go").await;
    assert_eq!(run.status, RunStatus::Succeeded);
}

#[tokio::test]
async fn context_too_long_is_recognised_and_a_server_without_streams_is_asked_without() {
    let (url, _) = serve(|_, _, body| {
        let text = body["messages"].to_string();
        if body["stream"] == json!(true) {
            status(400, json!({"error": {"message": "stream is not supported with tools"}}))
        } else if text.len() > 3_000 {
            status(400, json!({"error": {"code": "context_length_exceeded", "message": "This model's maximum context length is 1000 tokens."}}))
        } else {
            said(&"x".repeat(1_000))
        }
    })
    .await;
    let host = Host::open(&url, "max_retries = 0");
    for turn in 0..8 {
        assert_eq!(host.run(&format!("h{turn}"), "go").await.0.status, RunStatus::Succeeded, "turn {turn}");
    }
    let (run, _) = host.run("long", &"x".repeat(4_000)).await;
    assert_failed(&run, "context_too_long");
}

/// The words by which an endpoint names its error help the operator; its
/// sentences may hold the key.
#[tokio::test]
async fn a_refusal_carries_the_endpoints_own_words_for_it() {
    let error = |error: Value| move |_: usize, _: &HeaderMap, _: &Value| status(400, json!({"error": error}));
    let named = json!({
        "message": "Unsupported parameter: 'max_tokens' with key sk-123", "type": "invalid_request_error",
        "param": "max_tokens", "code": "unsupported_parameter",
    });
    let (url, _) = serve(error(named)).await;
    let (run, _) = Host::open(&url, "").run("h", "hi").await;
    let why = run.failure.expect("failed");
    assert_eq!(why.code, "provider_refused");
    let words = "(code unsupported_parameter, type invalid_request_error, param max_tokens)";
    assert_eq!(why.text, format!("provider_refused: status 400 {words}"));
    // "Upstream" does not mean streaming, so the request is sent once.
    let odd = json!({"message": "upstream error", "code": "a b", "type": "x".repeat(65), "param": ["y"]});
    let (url, count) = serve(error(odd)).await;
    let (run, _) = Host::open(&url, "").run("h", "hi").await;
    assert_eq!(run.failure.expect("failed").text, "provider_refused: status 400");
    assert_eq!(count.load(Ordering::SeqCst), 1);
}
