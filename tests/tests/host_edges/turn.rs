//! A turn that is larger than an instance's memory comes to its end.

use serde_json::json;

use crate::endpoint::{Endpoint, calling, text};
use crate::program::Folder;

/// Model calls of the turn, and the text beside each: 10 MB in all.
const CALLS: usize = 40;
const TEXT: usize = 250_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_larger_than_an_instances_memory_has_its_result() {
    let endpoint = Endpoint::start(|n, _| match n {
        ..CALLS => calling(&"x".repeat(TEXT), "read_file", &json!({ "path": format!("file-{n}") })),
        _ => text("The answer."),
    })
    .await;
    let folder = Folder::with(&format!(
        "[server]\nbind = \"127.0.0.1:0\"\n[engine]\nmemory_mib = 8\n\
         [[agents]]\nname = \"writer\"\nmodel = \"main\"\nmax_model_calls = 100\n{}",
        endpoint.model()
    ));
    let _server = folder.serve();
    folder.json(&["teams", "create", "T", "--goal", "g", "--member", "Ada=writer", "--member", "Bo=writer"]).json();
    let sent = folder.json(&["send", "T", "Ada", "Work for long."]).json();
    let job = sent["job"]["id"].as_str().unwrap();
    loop {
        let shown = folder.json(&["jobs", "show", "T", job]).json();
        match shown["job"]["status"].as_str().unwrap() {
            "completed" => {
                assert_eq!(shown["job"]["result"]["text"], "The answer.");
                break;
            }
            "queued" | "starting" | "running" => {}
            _ => panic!("{shown}"),
        }
        let log = std::fs::read_to_string(folder.log()).unwrap();
        assert!(!log.contains("component_"), "a step fails: {log}");
    }
    assert_eq!(endpoint.requests().len(), CALLS + 1);
}
