//! A disk that is full while a model is at work: its answer is paid for once.

use std::time::Duration;

use agent_teams_host::app::{App, Setup};
use agent_teams_host::config::Config;
use serde_json::{Value, json};

use crate::support::Endpoint;

/// The database file may not grow beyond this many pages; `None`: it is full.
async fn limit(app: &App, pages: Option<i64>) {
    let limited = app.database().write(move |c| {
        let now: i64 = c.query_row("PRAGMA page_count", [], |row| row.get(0))?;
        Ok(c.pragma_update_and_check(None, "max_page_count", pages.unwrap_or(now), |_| Ok(()))?)
    });
    limited.await.expect("limited");
}

struct Client {
    http: reqwest::Client,
    url: String,
    token: String,
}

impl Client {
    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let request = self.http.post(format!("{}{path}", self.url)).bearer_auth(&self.token).json(&body);
        let answer = request.send().await.expect("an answer");
        (answer.status().as_u16(), answer.json().await.expect("JSON"))
    }

    async fn get(&self, path: &str) -> Value {
        let request = self.http.get(format!("{}{path}", self.url)).bearer_auth(&self.token);
        request.send().await.expect("an answer").json().await.expect("JSON")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_costs_one_model_call_and_nothing_is_called_unknown() {
    let answer = "word ".repeat(40_000);
    let endpoint = Endpoint::start(&answer).await;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("agent-teams.toml"), endpoint.config("127.0.0.1:0")).expect("written");
    let config = Config::load(Some(&folder.path().join("agent-teams.toml")), folder.path()).expect("configuration");
    let setup = Setup { data: folder.path().to_owned(), config, component: None, any_port: false };
    let app = App::start(setup).await.expect("started");
    let token = app.users().add_token("local", "test").await.expect("a token").secret;
    let client =
        Client { http: reqwest::Client::builder().no_proxy().build().expect("a client"), url: app.url(), token };

    let begin = json!({"agent": "a", "message_id": "m1", "text": "Write much."});
    let (status, begun) = client.post("/api/conversations", begin).await;
    assert_eq!(status, 200, "{begun}");
    let thread = format!("/api/conversations/{}", begun["thread"].as_str().expect("an id"));
    endpoint.called(1).await;
    limit(&app, None).await;
    // Any number of calls would be answered.
    (0..10).for_each(|_| endpoint.answer());
    while app.database().stats().failures < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(endpoint.calls(), 1, "what the model said is kept, and it is not asked again");

    // What is refused has not happened, and is called so.
    let other = json!({"agent": "a", "message_id": "m2", "text": "x".repeat(90_000)});
    let (status, problem) = client.post("/api/conversations", other).await;
    assert_eq!((status, &problem["code"]), (503, &json!("agents_unavailable")), "{problem}");

    limit(&app, Some(1 << 20)).await;
    loop {
        let read = client.get(&thread).await;
        if read["conversation"]["active_run"].is_null() {
            assert_eq!(read["messages"][1]["text"], answer.as_str());
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(endpoint.calls(), 1);
    app.stop().await;
}
