//! A model endpoint that counts its calls and answers when it is told to.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

#[derive(Clone)]
pub struct Endpoint {
    pub url: String,
    calls: watch::Sender<usize>,
    answers: Arc<Semaphore>,
    text: Arc<str>,
}

impl Endpoint {
    /// Every call gets this text, once it may.
    pub async fn start(text: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let endpoint = Self {
            url: format!("http://{}/v1", listener.local_addr().expect("an address")),
            calls: watch::channel(0).0,
            answers: Arc::new(Semaphore::new(0)),
            text: text.into(),
        };
        let routes = Router::new().route("/v1/chat/completions", post(answer)).with_state(endpoint.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        endpoint
    }

    pub fn calls(&self) -> usize {
        *self.calls.borrow()
    }

    /// Waits until it has been called this often.
    pub async fn called(&self, times: usize) {
        self.calls.subscribe().wait_for(|calls| *calls >= times).await.expect("the endpoint lives");
    }

    /// Answers one more call.
    pub fn answer(&self) {
        self.answers.add_permits(1);
    }

    /// The configuration of a host with the one agent `a`, who runs on this.
    pub fn config(&self, bind: &str) -> String {
        format!(
            "[server]\nbind = \"{bind}\"\n\n[[agents]]\nname = \"a\"\ndescription = \"d\"\ninstructions = \"i\"\n\
             model = \"m\"\n\n[models.m]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"x\"\nbackoff_ms = 1\n",
            self.url
        )
    }
}

async fn answer(State(endpoint): State<Endpoint>) -> Response {
    endpoint.calls.send_modify(|calls| *calls += 1);
    if let Ok(permit) = endpoint.answers.acquire().await {
        permit.forget();
    }
    let message = json!({"role": "assistant", "content": &*endpoint.text});
    axum::Json(json!({"choices": [{"message": message, "finish_reason": "stop"}]})).into_response()
}
