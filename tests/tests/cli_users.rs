//! `users` and `tokens`, with a server on the data folder and without one.

mod program;

use agent_teams_tests::http::Client;
use program::Folder;
use serde_json::{Value, json};

/// The statuses of `GET /api/me` with a token.
fn me(url: &str, token: &str) -> u16 {
    Client::with_token(url, token).expect("an address").get("/api/me").expect("an answer").status
}

#[test]
fn a_second_user_gets_in_while_the_server_runs() {
    let folder = Folder::new();
    let server = folder.serve();
    let added = folder.json(&["users", "add", "ada"]).json();
    assert_eq!((&added["user"]["id"], &added["user"]["enabled"]), (&json!("ada"), &json!(true)));

    // With a link, in a browser.
    let made = folder.json(&["users", "link", "ada"]).json();
    let link = made["sign_in_link"].as_str().expect("a link");
    let secret = link.strip_prefix(&format!("{}/sign-in#", server.url())).unwrap_or_else(|| panic!("{link}"));
    assert!(made["expires_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{made}");
    let session = Client::sign_in(server.url(), secret).expect("signed in");
    let browser = Client::with_session(server.url(), &session).expect("an address");
    let who = browser.get("/api/me").and_then(|reply| reply.ok()).expect("an answer");
    assert_eq!(who, json!({ "user": "ada", "via": "session" }));
    let sessions = folder.json(&["users", "sessions", "ada"]).json();
    assert_eq!(sessions["sessions"][0]["user"], "ada", "{sessions}");
    let proof = session.split_once('.').expect("a secret").1;
    assert!(!sessions.to_string().contains(proof));
    assert!(folder.run(&["users", "sessions"]).stdout.contains("ada"));
    assert_eq!(folder.json(&["users", "end-sessions", "ada"]).json(), json!({ "user": "ada", "ended": 1 }));
    assert_eq!(browser.get("/api/me").expect("an answer").status, 401);

    // With a token, as a program.
    let token = folder.json(&["tokens", "add", "ada", "laptop"]).json();
    let secret = token["token"]["secret"].as_str().expect("a secret");
    assert_eq!(me(server.url(), secret), 200);
    let listed = folder.run(&["tokens", "list", "ada"]).stdout;
    assert!(listed.contains("laptop") && !listed.contains(secret), "{listed}");
    folder.json(&["tokens", "revoke", token["token"]["id"].as_str().expect("an id")]).json();
    assert_eq!(me(server.url(), secret), 401);

    let token = folder.json(&["tokens", "add", "ada", "desk"]).json();
    let secret = token["token"]["secret"].as_str().expect("a secret");
    folder.json(&["users", "disable", "ada"]).json();
    assert_eq!(me(server.url(), secret), 403);
    folder.json(&["users", "enable", "ada"]).json();
    assert_eq!(me(server.url(), secret), 200);
    assert_eq!(folder.run(&["users", "link", "ada"]).stdout.lines().count(), 1, "a line to copy");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_link_leads_to_where_people_on_other_machines_reach_the_server() {
    let folder = Folder::new();
    folder.configure(|text| text.replace("[server]\n", "[server]\npublic_origins = [\"https://teams.example.com\"]\n"));
    let _server = folder.serve();
    folder.json(&["users", "add", "ada"]).json();
    let made = folder.json(&["users", "link", "ada"]).json();
    let link = made["sign_in_link"].as_str().expect("a link");
    assert!(link.starts_with("https://teams.example.com/sign-in#"), "{link}");
}

#[test]
fn a_command_answers_alike_with_and_without_a_server() {
    let refused = |folder: &Folder| {
        let of = |args: &[&str], code| {
            let error = folder.json(args).refused(code);
            (error["code"].clone(), error["field"].clone())
        };
        [
            of(&["users", "add", "Not An Id"], 1),
            of(&["users", "add", "ada"], 1),
            of(&["users", "disable", "stranger"], 1),
            of(&["users", "disable", "../x"], 1),
            of(&["users", "sessions", "stranger"], 1),
            of(&["users", "sessions", "Not An Id"], 1),
            of(&["users", "end-sessions", "stranger"], 1),
            of(&["tokens", "add", "stranger", "x"], 1),
            of(&["tokens", "add", "ada", ""], 1),
            of(&["tokens", "list", "stranger"], 1),
            of(&["tokens", "revoke", "none"], 1),
            of(&["tokens", "revoke", "a/b"], 1),
            of(&["--server", "http://127.0.0.1:1", "users", "list"], 2),
        ]
    };
    let lists = |folder: &Folder| -> [Value; 3] {
        [&["users", "list"][..], &["tokens", "list"], &["users", "sessions"]].map(|args| folder.json(args).json())
    };
    let folder = Folder::new();
    drop(folder.serve()); // The first start, and a kill that leaves its socket behind.
    folder.json(&["users", "add", "ada"]).json();
    folder.json(&["tokens", "add", "ada", "laptop"]).json();
    let (without, listed) = (refused(&folder), lists(&folder));
    assert_eq!(listed[0]["users"].as_array().map(Vec::len), Some(2), "{listed:?}");
    let link = folder.json(&["users", "link", "ada"]).refused(3);
    assert_eq!(link["code"], "server_unreachable");
    assert!(link["message"].as_str().is_some_and(|why| why.contains("agent-teams serve")), "{link}");

    let _server = folder.serve();
    assert_eq!((refused(&folder), lists(&folder)), (without, listed));
    assert_eq!(folder.json(&["users", "link", "stranger"]).refused(1)["code"], "no_user");
    // Who cannot read the operator's secret is told that.
    let private = folder.path().join("operator-token");
    std::fs::remove_file(&private).expect("removed");
    assert_eq!(folder.json(&["users", "list"]).refused(3)["code"], "not_the_operator");
    std::fs::write(&private, "att_x").expect("written");
    assert_eq!(folder.json(&["tokens", "list"]).refused(1)["code"], "operator_only");
}
