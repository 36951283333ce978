//! A start that fails uses nothing up.

use std::net::TcpListener;

use rusqlite::Connection;

use crate::program::Folder;
use crate::support::Endpoint;

const ANY: &str = "127.0.0.1:0";

fn attempts(folder: &Folder) -> i64 {
    let db = Connection::open(folder.database()).expect("the database");
    db.query_row("SELECT attempts FROM agent_runs", [], |row| row.get(0)).expect("one run")
}

#[test]
fn a_start_that_fails_counts_no_attempt_and_asks_no_model() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let endpoint = runtime.block_on(Endpoint::start("At last."));
    let folder = Folder::with(&endpoint.config(ANY));
    let configure = |bind: &str| {
        std::fs::write(folder.path().join("agent-teams.toml"), endpoint.config(bind)).expect("written");
    };
    let killed = folder.serve();
    folder
        .json(&["teams", "create", "T", "--goal", "g", "--member", "A=a", "--member", "B=a", "--request-id", "t"])
        .json();
    folder.json(&["send", "T", "A", "Think.", "--request-id", "r"]).json();
    runtime.block_on(endpoint.called(1));
    drop(killed);
    let before = attempts(&folder);

    let taken = TcpListener::bind(ANY).expect("a port");
    configure(&taken.local_addr().expect("an address").to_string());
    for _ in 0..3 {
        assert_eq!(folder.json(&["serve"]).refused(3)["code"], "bind");
        assert_eq!((attempts(&folder), endpoint.calls()), (before, 1));
    }

    configure(ANY);
    let server = folder.serve();
    runtime.block_on(endpoint.called(2));
    endpoint.answer();
    endpoint.answer();
    let sent = folder.json(&["send", "T", "A", "Think.", "--request-id", "r", "--wait"]).json();
    assert_eq!(sent["job"]["result"]["text"], "At last.", "{sent}");
    assert_eq!(server.stop(), Some(0));
    assert_eq!(endpoint.calls(), 2);
}

#[test]
fn the_first_start_that_succeeds_is_the_first_start() {
    let taken = TcpListener::bind(ANY).expect("a port");
    let config = |bind: &str| format!("[server]\nbind = \"{bind}\"\n");
    let folder = Folder::with(&config(&taken.local_addr().expect("an address").to_string()));
    assert_eq!(folder.json(&["serve"]).refused(3)["code"], "bind");
    std::fs::write(folder.path().join("agent-teams.toml"), config(ANY)).expect("written");
    let server = folder.serve();
    assert!(server.announced["sign_in_link"].is_string(), "{}", server.announced);
}
