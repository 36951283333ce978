//! `/healthz` does not call a server healthy that can write nothing.

use rusqlite::Connection;
use serde_json::json;

use crate::client::{Request, Response};
use crate::program::{Folder, Server};

async fn health(server: &Server) -> Response {
    Request::new(server.address(), "GET", "/healthz").send().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_written_is_no_health() {
    let folder = Folder::with("[server]\nbind = \"127.0.0.1:0\"\n");
    folder.json(&["users", "add", "ada"]).json();
    let token = folder.json(&["tokens", "add", "ada", "laptop"]).json();
    let token = token["token"]["secret"].as_str().unwrap();
    let server = folder.serve();
    assert_eq!(health(&server).await.json(), json!({ "status": "ok" }));

    // Another program keeps the database for itself.
    let other = Connection::open(folder.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let link = Request::new(server.address(), "POST", "/api/sign-in-link").bearer(token).json(&json!({}));
    assert_eq!(link.send().await.status, 503);
    let ill = health(&server).await;
    assert_eq!(ill.refusal(), (503, "unhealthy".into()));
    assert!(ill.json()["detail"].as_str().unwrap().contains("cannot be written"), "{ill:?}");

    other.execute_batch("ROLLBACK").unwrap();
    while health(&server).await.status != 200 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(link.send().await.status, 200);
}
