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

/// Agents that never come to an end while a test looks.
const BUSY: &str = "[server]\nbind = \"127.0.0.1:0\"\n\n\
    [[agents]]\nname = \"slow\"\ndescription = \"Thinks for long.\"\ninstructions = \"Think.\"\nmodel = \"slow\"\n\n\
    [models.slow]\nkind = \"scripted\"\n\n[[models.slow.rules]]\ntext = \"At last.\"\ndelay_ms = 600000\n";

#[test]
fn the_operator_sees_who_holds_the_slots_of_all_users_and_ends_such_a_job() {
    let folder = Folder::with(BUSY);
    folder.json(&["users", "add", "ada"]).json();
    let token = folder.json(&["tokens", "add", "ada", "laptop"]).json();
    let secret = token["token"]["secret"].as_str().expect("a secret").to_owned();
    assert_eq!(folder.json(&["slots"]).refused(3)["code"], "server_unreachable");
    let server = folder.serve();
    let as_ada = |args: &[&str]| {
        let mut all = vec!["--json"];
        all.extend(args);
        let output = folder.command(&all).env("AGENT_TEAMS_TOKEN", &secret).output().expect("the program starts");
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")
    };
    assert_eq!(folder.run(&["slots"]).stdout, "No job holds a slot.\n");

    let team = as_ada(&["teams", "create", "T", "--goal", "g", "--member", "A=slow", "--member", "B=slow"]);
    let team = team["team"]["id"].as_str().expect("an id");
    let sent = as_ada(&["send", team, "A", "A secret of ada's"]);
    let job = sent["job"]["id"].as_str().expect("an id");
    let queued = as_ada(&["send", team, "A", "Another secret"]);
    let queued = queued["job"]["id"].as_str().expect("an id");
    // The stream of the team's changes ends with the one that is awaited.
    let held = loop {
        let held = folder.json(&["slots"]).json();
        if held["slots"][0]["status"] == "running" {
            break held;
        }
        assert!(held["slots"].as_array().is_some_and(|slots| slots.len() <= 1), "{held}");
    };
    let slot = &held["slots"][0];
    assert_eq!((&slot["owner"], &slot["team"], &slot["job"]), (&"ada".into(), &team.into(), &job.into()), "{held}");
    assert_eq!((&slot["kind"], &slot["connected"]), (&"request".into(), &true.into()), "{held}");
    assert!(slot["since"].as_str().is_some_and(|at| at.ends_with('Z')), "{held}");
    assert!(!held.to_string().contains("secret"), "no texts: {held}");
    let table = folder.run(&["slots"]);
    assert!(table.stdout.lines().any(|l| l.starts_with("ada") || l.contains(" ada ")), "{}", table.stdout);
    assert!(table.stdout.contains(job) && table.stdout.contains("running"), "{}", table.stdout);

    // The operator is whoever reads the folder, and speaks to its server alone.
    let named = folder.json(&["--server", server.url(), "slots"]);
    assert_eq!(named.refused(2)["code"], "usage");
    let private = folder.path().join("operator-token");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&private).expect("a file").permissions());
    assert_eq!(mode & 0o777, 0o600);
    std::fs::rename(&private, folder.path().join("aside")).expect("moved");
    assert_eq!(folder.json(&["slots"]).refused(3)["code"], "not_the_operator");
    std::fs::write(&private, &secret).expect("written");
    assert_eq!(folder.json(&["slots"]).refused(1)["code"], "operator_only", "a user's token is not the operator's");
    std::fs::rename(folder.path().join("aside"), &private).expect("moved");

    let settle =
        |job: &str, outcome: &str, owner: &str| folder.json(&["settle", team, job, "--as", outcome, "--owner", owner]);
    assert_eq!(settle(job, "retry", "ada").refused(2)["field"], "as");
    assert_eq!(settle(job, "failed", "local").refused(1)["code"], "team_not_found");
    assert_eq!(settle(queued, "failed", "ada").refused(1)["code"], "no_slot");
    let settled = settle(&job[..12], "failed", "ada").json();
    assert_eq!((&settled["job"]["id"], &settled["job"]["status"]), (&job.into(), &"failed".into()), "{settled}");
    assert_eq!(settled["job"]["error"]["code"], "outcome_unknown");
    assert!(!settled.to_string().contains("secret"), "no texts: {settled}");
    assert_eq!(settle(job, "failed", "ada").json()["job"]["status"], "failed", "harmless when repeated");

    let shown = as_ada(&["jobs", "show", team, job]);
    assert_eq!(shown["job"]["status"], "failed");
    assert!(shown["job"]["error"]["message"].as_str().is_some_and(|m| m.contains("the operator")), "{shown}");
    assert!(!folder.json(&["slots"]).json().to_string().contains(job));
}
