//! The secrets in the data folder go to its own server alone, also when another
//! process has taken the server's port.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use crate::client::Request;
use crate::program::Folder;

/// Another user of the machine at this address: keeps whatever it is sent.
fn stranger(address: SocketAddr) -> Arc<Mutex<Vec<u8>>> {
    let heard: Arc<Mutex<Vec<u8>>> = Arc::default();
    let listener = TcpListener::bind(address).unwrap();
    let kept = heard.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // Once it has the head of a request, it hangs up.
            stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                let mut kept = kept.lock().unwrap();
                kept.extend_from_slice(&buffer[..count]);
                if kept.ends_with(b"\r\n\r\n") {
                    break;
                }
            }
        }
    });
    heard
}

fn heard(stranger: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&stranger.lock().unwrap()).into_owned()
}

#[test]
fn a_stranger_at_the_port_of_a_killed_server_is_told_nothing() {
    let folder = Folder::new();
    let server = folder.serve();
    let address = server.address();
    folder.json(&["teams", "list"]).json();
    folder.json(&["slots"]).json();
    drop(server); // kill -9: everything that leads to it stays
    let stranger = stranger(address);
    for command in [&["teams", "list"][..], &["slots"], &["send", "T", "Ada", "private words"]] {
        let ended = folder.json(command);
        assert_eq!(heard(&stranger), "", "{command:?}");
        let refused = ended.refused(3);
        assert_eq!(refused["code"], "server_unreachable");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("agent-teams serve") && message.contains("process "), "{message}");
    }

    // The next start takes its place again, at another port.
    let server = folder.serve();
    folder.json(&["teams", "list"]).json();
    assert_eq!(server.stop(), Some(0));
    assert_eq!(heard(&stranger), "");
}

#[test]
fn a_server_that_is_named_is_not_given_the_folders_token() {
    let folder = Folder::new();
    let _server = folder.serve();
    let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let port = TcpListener::bind(address).unwrap().local_addr().unwrap();
    let stranger = stranger(port);
    let refused = folder.json(&["--server", &format!("http://{port}"), "teams", "list"]).refused(3);
    assert_eq!(refused["code"], "no_token");
    assert!(refused["message"].as_str().unwrap().contains("AGENT_TEAMS_TOKEN"), "{refused}");
    assert_eq!(heard(&stranger), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_in_the_folder_is_new_at_each_start_and_leaves_with_the_server() {
    let folder = Folder::new();
    let files = ["cli-token", "operator-token", "server.json", "server.sock"];
    let there = || files.map(|file| folder.path().join(file).exists());
    let server = folder.serve();
    assert_eq!(there(), [true; 4]);
    let first = std::fs::read_to_string(folder.path().join("cli-token")).unwrap();
    let me = async |server: &crate::program::Server, token: &str| {
        Request::new(server.address(), "GET", "/api/me").bearer(token.trim()).send().await
    };
    assert_eq!(me(&server, &first).await.json(), json!({ "user": "local", "via": "token" }));
    drop(server); // kill -9
    let server = folder.serve();
    assert_eq!(me(&server, &first).await.refusal(), (401, "not_signed_in".into()), "taken, it opens nothing");
    let second = std::fs::read_to_string(folder.path().join("cli-token")).unwrap();
    assert_eq!(me(&server, &second).await.status, 200);
    assert_eq!(server.stop(), Some(0));
    assert_eq!(there(), [false; 4]);
    assert_eq!(folder.json(&["teams", "list"]).refused(3)["code"], "server_unreachable");
    assert_eq!(folder.json(&["tokens", "list"]).json()["tokens"], json!([]), "it is stored nowhere");
}

#[test]
fn a_deep_data_folder_is_reached_too() {
    let folder = Folder::new();
    let deep = folder.path().join("d".repeat(100)).join("e".repeat(100));
    std::fs::create_dir_all(deep.parent().unwrap()).unwrap();
    let mut demo = std::process::Command::new(folder.command(&[]).get_program());
    let demo = demo.arg("--data").arg(&deep).args(["--json", "demo"]).output().unwrap();
    assert!(demo.status.success(), "{}", String::from_utf8_lossy(&demo.stderr));
}
