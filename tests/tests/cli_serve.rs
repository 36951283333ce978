//! `agent-teams serve` and the commands that speak to it, from outside.

mod program;

use program::Folder;
use rusqlite::Connection;

#[test]
fn a_served_team_is_worked_with_from_the_command_line() {
    let folder = Folder::new();
    let server = folder.serve();
    let link = server.announced["sign_in_link"].as_str().expect("the first start prints a link");
    assert!(link.starts_with(&format!("{}/sign-in#", server.url())), "{link}");

    let team = folder
        .json(&[
            "teams",
            "create",
            "Readers",
            "--goal",
            "Explain",
            "--member",
            "Ada=planner",
            "--member",
            "Bo=researcher",
            "--member",
            "bo=writer",
            "--request-id",
            "t1",
        ])
        .json();
    let id = team["team"]["id"].as_str().expect("an id");
    let again = folder.json(&[
        "teams",
        "create",
        "Readers",
        "--goal",
        "Explain",
        "--member",
        "Ada=planner",
        "--member",
        "Bo=researcher",
        "--member",
        "bo=writer",
        "--request-id",
        "t1",
    ]);
    assert_eq!(again.json()["team"]["id"], id, "the same request id makes the team once");
    let listed = folder.json(&["teams", "list"]).json();
    assert_eq!(listed["teams"].as_array().map(Vec::len), Some(1));
    let shown = folder.run(&["teams", "show", "readers"]);
    assert!(shown.stdout.contains("Ada") && shown.stdout.contains(id), "{}", shown.stdout);

    // An answer without the team's name in it is the scripted agent's last rule.
    let sent = folder.json(&["send", "Readers", "Bo", "Hello", "--request-id", "r1", "--wait"]).json();
    assert!(sent["job"]["result"]["text"].as_str().expect("a text").contains("scripted agent"), "{sent}");
    let repeated = folder.json(&["send", id, "Bo", "Hello", "--request-id", "r1", "--wait"]).json();
    assert_eq!(repeated["job"]["id"], sent["job"]["id"]);
    let other = folder.json(&["send", id, "Bo", "Hello!", "--request-id", "r1"]);
    assert_eq!(other.refused(1)["field"], "request_id", "the same key with other content is refused");
    assert_eq!(folder.json(&["send", id, "BO", "x"]).refused(1)["code"], "ambiguous");
    assert_eq!(folder.json(&["send", id, "Zed", "x"]).refused(1)["field"], "member_id");
    assert_eq!(folder.json(&["teams", "show", "Writers"]).refused(1)["code"], "not_found");

    let job = sent["job"]["id"].as_str().expect("an id");
    assert_eq!(folder.json(&["jobs", "show", id, &job[..12]]).json()["job"]["id"], job);
    let settled = folder.json(&["settle", id, job, "--as", "failed"]).json();
    assert_eq!(settled["job"]["status"], "completed", "finished means finished");
    folder.json(&["jobs", "answer", id, job, "yes"]).refused(1);
    assert_eq!(folder.json(&["jobs", "answer", id, job, "--value", "{"]).refused(2)["field"], "value");

    let watched = folder.json(&["watch", id, "--until-idle"]);
    assert_eq!(watched.code, Some(0));
    let lines: Vec<serde_json::Value> =
        watched.stdout.lines().map(|line| serde_json::from_str(line).expect("one document a line")).collect();
    assert!(lines.iter().any(|line| line["job"]["id"] == job), "{}", watched.stdout);

    // The database belongs to the server; a copy can be made all the same.
    assert_eq!(folder.json(&["users", "list"]).refused(3)["code"], "database_in_use");
    assert_eq!(folder.json(&["serve"]).refused(3)["code"], "database_in_use");
    let copy = folder.path().join("copy.db");
    folder.json(&["backup", copy.to_str().expect("UTF-8")]).json();
    let checked: String = Connection::open(&copy)
        .and_then(|db| db.query_row("PRAGMA integrity_check", [], |row| row.get(0)))
        .expect("the copy is a database");
    assert_eq!(checked, "ok");
    assert_eq!(folder.json(&["backup", copy.to_str().expect("UTF-8")]).refused(1)["code"], "file_exists");

    folder.json(&["teams", "delete", "Readers"]).refused(2);
    folder.json(&["teams", "delete", "Readers", "--yes"]).json();
    assert_eq!(folder.json(&["teams", "list"]).json()["teams"].as_array().map(Vec::len), Some(0));

    assert_eq!(server.stop(), Some(0), "an orderly stop");
    assert_eq!(folder.json(&["teams", "list"]).refused(3)["code"], "server_unreachable");
}

#[test]
fn users_and_tokens_let_people_in_and_keep_them_out() {
    let folder = Folder::new();
    folder.json(&["users", "add", "ada"]).json();
    assert_eq!(folder.json(&["users", "add", "ada"]).refused(1)["code"], "user_exists");
    assert_eq!(folder.json(&["users", "add", "Not An Id"]).refused(1)["field"], "user");
    let token = folder.json(&["tokens", "add", "ada", "laptop"]).json();
    let secret = token["token"]["secret"].as_str().expect("a secret").to_owned();
    let listed = folder.run(&["tokens", "list"]);
    assert!(listed.stdout.contains("laptop") && !listed.stdout.contains(&secret), "{}", listed.stdout);

    let ask = |url: &str| {
        let mut command = folder.command(&["--json", "--server", url, "teams", "list"]);
        command.env("AGENT_TEAMS_TOKEN", &secret).output().expect("the program starts").status.code()
    };
    let server = folder.serve();
    assert_eq!(ask(server.url()), Some(0));
    assert_eq!(server.stop(), Some(0));

    folder.json(&["users", "disable", "ada"]).json();
    let server = folder.serve();
    assert_eq!(ask(server.url()), Some(1), "a disabled user is refused");
    assert_eq!(server.stop(), Some(0));

    folder.json(&["users", "enable", "ada"]).json();
    folder.json(&["tokens", "revoke", token["token"]["id"].as_str().expect("an id")]).json();
    let server = folder.serve();
    assert_eq!(ask(server.url()), Some(1), "a revoked token is refused");
}
