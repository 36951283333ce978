//! Requests to a model on this machine never pass a proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::TcpListener;

use crate::endpoint::{Endpoint, text};
use crate::program::Folder;

/// Something that takes connections in the place of a proxy, and hangs up.
async fn proxy() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    (format!("http://{address}"), connections)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_never_sees_requests_to_a_model_on_this_machine() {
    let endpoint = Endpoint::start(|_, _| text("ready")).await;
    let (proxy, seen) = proxy().await;
    let folder = Folder::with(&format!("[server]\nbind = \"127.0.0.1:0\"\n{}max_retries = 0\n", endpoint.model()));
    let mut command = folder.command(&["--json", "doctor", "--models"]);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        command.env(name, &proxy);
    }
    command.env_remove("NO_PROXY").env_remove("no_proxy");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let model = found["checks"].as_array().unwrap().iter().find(|c| c["check"] == "model main").unwrap().clone();
    assert_eq!(model["ok"], true, "{found}");
    assert_eq!(endpoint.requests().len(), 1, "the endpoint was asked itself");
    assert_eq!(seen.load(Ordering::SeqCst), 0, "and the proxy saw nothing");
}
