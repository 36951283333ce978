//! Data folders that were written by earlier programs and killed in the middle
//! of their work (`cargo freeze`). The present program opens a copy: all work
//! comes to its end once, and nothing is lost.

mod compare;
mod frozen;
mod people;
#[path = "../program/mod.rs"]
mod program;
mod tables;

use std::time::{Duration, Instant};

use agent_teams_tests::reading;
use serde_json::{Value, json};

use frozen::{Frozen, Running};

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn format_1_is_as_it_was_frozen() {
    let frozen = Frozen::format(1);
    frozen.is("data/agent-teams.db", "74d0e9c78a4395f250c0c749a2f0e7a21f1cb426578c87263107461661f3a101");
    frozen.is("data/agent-teams.toml", "7ad2d3ff182fafbeda3eca77359ae731225bdabb0d8cee0d50d4e3d692fba903");
    frozen.is("record.json", "8aab4b748a5d714be0ac9bbbab7ca81d472be76706ac190391c9981d4c0d0ceb");
}

#[test]
fn work_of_format_1_ends_once_and_nothing_is_lost() {
    let frozen = Frozen::format(1);
    let folder = frozen.copy();
    // The work of a disabled user ends like all other, once the user is enabled.
    folder.run(&["users", "enable", "cleo"]);
    let running = frozen.serve(folder);
    let mut people = people::People::new(&running);
    people.reconnect();
    people.let_all_end();
    let after = running.views();
    compare::nothing_is_lost(&frozen, &after);
    compare::each_job_ended_once(&frozen, &after);
    compare::each_job_ended_as_expected(&frozen, &after);
    compare::results_returned_once(&frozen, &after);
    repeat_writes(&frozen, &running, &after);
    let folder = running.stop();
    let tables = tables::Tables::open(&frozen, &folder);
    tables.nothing_is_lost();
    tables.nothing_is_left();
    tables.each_input_ran_once(&after);
    tables.repeated_calls_are_the_same();
    tables.notices_are_told_once();
    tables.an_approval_without_a_job_stays_open();
}

/// What owners have sent, sent again, makes nothing new.
fn repeat_writes(frozen: &Frozen, running: &Running, after: &Value) {
    for write in frozen.writes() {
        let (user, path) = (write["user"].as_str().expect("a user"), write["path"].as_str().expect("a path"));
        let reply = running.client(user).post(path, &write["body"]).and_then(|reply| reply.ok());
        let reply = reply.unwrap_or_else(|e| panic!("{write}: {e:#}"));
        assert_eq!(reading::made(&reply), write["made"], "{write} makes the same again");
    }
    let count = |views: &Value| {
        let teams = views.as_object().expect("owners").values().flat_map(|teams| teams.as_array().expect("teams"));
        teams.map(|team| (team["jobs"].as_array().map(Vec::len), team["tasks"].as_array().map(Vec::len))).collect()
    };
    let (before, now): (Vec<_>, Vec<_>) = (count(after), count(&running.views()));
    assert_eq!(now, before, "nothing was made");
}

#[test]
fn members_of_format_1_with_an_approval_of_an_ended_job_work_again() {
    let frozen = Frozen::format(1);
    let running = frozen.serve(frozen.copy());
    let ann = running.client("ann");
    let ask = |action: &str, payload: Value| ann.action(action, &payload);
    let team = running.team("ann", "Dead");
    let ended = frozen.jobs("ann", "Dead");
    for member in ["Ada", "Bo"] {
        let id = team["members"].as_array().and_then(|all| all.iter().find(|m| m["name"] == member));
        let id = &id.expect("a member")["id"];
        let text = json!({"team_id": team["id"], "member_id": id, "request_id": member, "text": "Hello."});
        let sent = ask("send", text).expect("sent");
        let begun = Instant::now();
        loop {
            let jobs = reading::jobs(&ask, team["id"].as_str().expect("an id")).expect("jobs");
            let job = jobs.iter().find(|job| job["id"] == sent["job"]["id"]).expect("the job");
            if job["status"] == "completed" {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{member} does not work again: {job}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    // What has ended stays as it ended; nothing is open any more.
    let jobs = reading::jobs(&ask, team["id"].as_str().expect("an id")).expect("jobs");
    for old in &ended {
        let new = jobs.iter().find(|job| job["id"] == old["id"]).expect("the job");
        compare::contains(new, old).unwrap_or_else(|e| panic!("{}: {e}", old["request_id"]));
    }
    let tables = tables::Tables::open(&frozen, &running.stop());
    for job in ended.iter().filter(|job| job["status"] != "completed") {
        tables.run_is(job["run_id"].as_str().expect("a run"), "cancelled");
    }
}

#[test]
fn users_tokens_and_sessions_of_format_1_are_known() {
    let frozen = Frozen::format(1);
    let folder = frozen.copy();
    let users = folder.json(&["users", "list"]).json();
    let told: Vec<(&str, bool)> = users["users"]
        .as_array()
        .expect("users")
        .iter()
        .map(|user| (user["id"].as_str().unwrap_or_default(), user["enabled"] == true))
        .collect();
    let expected = [("ann", true), ("ben", true), ("cleo", false), ("dana", true), ("eve", true), ("local", true)];
    assert_eq!(told, expected);
    let running = frozen.serve(folder);
    for user in ["ann", "ben", "dana", "eve"] {
        let me = running.client(user).get("/api/me").and_then(|reply| reply.ok()).expect(user);
        assert_eq!((&me["user"], &me["via"]), (&json!(user), &json!("token")));
    }
    let me = running.with_session("ann").get("/api/me").and_then(|reply| reply.ok()).expect("a session");
    assert_eq!((&me["user"], &me["via"]), (&json!("ann"), &json!("session")));
    let status = |client: agent_teams_tests::http::Client| client.get("/api/me").expect("an answer").status;
    assert_eq!(status(running.with_token(frozen.secret("/revoked"))), 401, "a revoked token stays revoked");
    assert_eq!(status(running.client("cleo")), 403, "a disabled user stays disabled");
    // The token of the command line.
    assert_eq!(running.folder().json(&["teams", "list"]).json()["teams"], json!([]));
    // Users see their own teams.
    let team = &running.team("eve", "Unknown")["id"];
    let reply = running.client("ann").action("get", &json!({"team_id": team}));
    assert!(reply.is_err(), "a team of another user: {reply:?}");
}
