//! A model endpoint of this test: it answers what it is told to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What the endpoint does with a request.
pub enum Reply {
    /// Answers with this assistant message.
    Message(Value),
    /// Never answers.
    Silence,
}

/// Serves `POST /v1/chat/completions` on a free port of this machine.
pub struct Endpoint {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Endpoint {
    /// `reply` gets the number of the request, counted from 0, and its body.
    pub async fn start(reply: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static) -> Self {
        let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (kept, reply) = (requests.clone(), Arc::new(reply));
        let respond = move |body: axum::Json<Value>| {
            let reply = {
                let mut kept = kept.lock().unwrap();
                kept.push(body.0.clone());
                reply(kept.len() - 1, &body)
            };
            async move {
                match reply {
                    Reply::Message(message) => said(&message),
                    Reply::Silence => std::future::pending().await,
                }
            }
        };
        let app = axum::Router::new().route("/v1/chat/completions", axum::routing::post(respond));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, requests }
    }

    /// The `[models.main]` part of a configuration.
    pub fn model(&self) -> String {
        format!("[models.main]\nkind = \"openai\"\nbase_url = \"http://{}/v1\"\nmodel = \"small\"\n", self.address)
    }

    /// The bodies that came.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

fn said(message: &Value) -> Response {
    axum::Json(json!({ "choices": [{ "message": message, "finish_reason": "stop" }] })).into_response()
}

/// An assistant message that calls a tool.
pub fn calling(text: &str, tool: &str, arguments: &Value) -> Reply {
    let function = json!({ "name": tool, "arguments": arguments.to_string() });
    let calls = json!([{ "id": "c", "type": "function", "function": function }]);
    Reply::Message(json!({ "role": "assistant", "content": text, "tool_calls": calls }))
}

/// An assistant message without tool calls.
pub fn text(text: &str) -> Reply {
    Reply::Message(json!({ "role": "assistant", "content": text }))
}
