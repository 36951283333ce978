//! One user's posts to conversations do not take the models from everybody.

use serde_json::{Value, json};

use crate::client::{Request, Response};
use crate::endpoint::{Endpoint, Reply};
use crate::program::{Folder, Server};

/// As many as one user may have at work, by default.
const MOST: usize = 8;

async fn post(server: &Server, token: &str, id: &str) -> Response {
    let body = json!({ "agent": "writer", "message_id": id, "text": "hello" });
    Request::new(server.address(), "POST", "/api/conversations").bearer(token).json(&body).send().await
}

async fn posted(server: &Server, token: &str, id: &str) -> Value {
    let answer = post(server, token, id).await;
    assert_eq!(answer.status, 200, "{id}: {}", answer.json());
    answer.json()
}

async fn refused(server: &Server, token: &str, id: &str) {
    let answer = post(server, token, id).await;
    assert_eq!(answer.refusal(), (429, "too_many_runs".into()), "{id}");
    let problem = answer.json();
    assert!(problem["detail"].as_str().unwrap().contains("when one of them has ended"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_begins_so_many_runs_by_posts_and_a_restart_does_not_forget_them() {
    let endpoint = Endpoint::start(|_, _| Reply::Silence).await;
    let folder = Folder::with(&format!(
        "[server]\nbind = \"127.0.0.1:0\"\n[[agents]]\nname = \"writer\"\nmodel = \"main\"\n{}",
        endpoint.model()
    ));
    let token = |user: &str| {
        folder.json(&["users", "add", user]).json();
        let token = folder.json(&["tokens", "add", user, "laptop"]).json();
        token["token"]["secret"].as_str().unwrap().to_owned()
    };
    let (ada, bo) = (token("ada"), token("bo"));
    let server = folder.serve();
    let mut first = Value::Null;
    for n in 0..MOST {
        first = posted(&server, &ada, &format!("m{n}")).await;
    }
    refused(&server, &ada, "one-more").await;
    assert_eq!(posted(&server, &ada, &format!("m{}", MOST - 1)).await, first, "what was begun is answered as before");
    posted(&server, &bo, "m0").await;

    drop(server); // kill -9
    let server = folder.serve();
    refused(&server, &ada, "one-more").await;
    posted(&server, &bo, "m1").await;
}
