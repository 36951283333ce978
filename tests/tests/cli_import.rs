//! `agent-teams import`: a file of the earlier plugin, with the database at
//! hand and through a running server; and `import-tasks`: session logs.

mod program;

use std::path::PathBuf;

use program::Folder;
use rusqlite::Connection;
use serde_json::{Value, json};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/legacy/teams.sqlite");

fn outcomes(report: &Value) -> Vec<&str> {
    report["rows"].as_array().expect("rows").iter().map(|r| r["outcome"].as_str().expect("an outcome")).collect()
}

/// The sample with three rows that cannot be taken.
fn damaged(folder: &Folder) -> PathBuf {
    let file = folder.path().join("damaged.sqlite");
    std::fs::copy(SAMPLE, &file).expect("copies");
    let db = Connection::open(&file).expect("opens");
    db.execute_batch(
        "INSERT INTO teams VALUES ('x1', 'alice', 'no json');
         INSERT INTO teams VALUES ('x2', 'alice', x'ff00');
         INSERT INTO teams VALUES ('x3', 'alice', '{\"id\": \"x3\", \"name\": \"n\", \"goal\": \"g\", \"members\": []}');",
    )
    .expect("writes");
    file
}

#[test]
fn a_file_is_taken_over_row_by_row_and_once() {
    let folder = Folder::new();
    let before = std::fs::read(SAMPLE).expect("reads");
    let dry = folder.json(&["import", SAMPLE, "--owner", "alice=local", "--dry-run"]).json();
    assert_eq!(outcomes(&dry), ["would_import"; 4]);
    let done = folder.json(&["import", SAMPLE, "--owner", "alice=local"]).json();
    assert_eq!(outcomes(&done), ["imported"; 4], "the dry run changed nothing");
    assert_eq!((&done["rows"][0]["owner"], &done["rows"][0]["old_owner"]), (&"local".into(), &"alice".into()));
    assert_eq!(done["rows"][3]["owner"], "bob", "each row under its owner");
    let again = folder.json(&["import", SAMPLE, "--owner", "alice=local"]).json();
    assert_eq!(outcomes(&again), ["unchanged"; 4]);
    assert_eq!(std::fs::read(SAMPLE).expect("reads"), before, "the file is only read");

    let server = folder.serve();
    let teams = folder.json(&["teams", "list"]).json();
    let mut names: Vec<&str> =
        teams["teams"].as_array().expect("teams").iter().map(|t| t["name"].as_str().expect("a name")).collect();
    names.sort_unstable();
    assert_eq!(names, ["Archive", "Archive without messages", "Release"], "bob's team is bob's");
    let archive = folder.json(&["jobs", "list", "08f1b88a33c5bb4768debd600afa6b95"]).json();
    assert!(archive.to_string().contains("An old answer"), "{archive}");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn damaged_rows_are_reported_and_the_others_taken() {
    let folder = Folder::new();
    let file = damaged(&folder);
    let file = file.to_str().expect("a path");
    let ended = folder.json(&["import", file]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).expect("a document");
    let expected = ["imported", "imported", "imported", "imported", "damaged", "damaged", "refused"];
    assert_eq!(outcomes(&report), expected);
    assert_eq!(report["failed"], 3);
    assert_eq!(report["rows"][6]["error"]["code"], "damaged_document");
    assert_eq!(report["rows"][6]["error"]["field"], "team.members");
    let people = folder.run(&["import", file]);
    assert_eq!(people.code, Some(1));
    assert_eq!(people.stdout.lines().count(), 7, "a line a row: {}", people.stdout);
    assert!(people.stdout.contains("unchanged") && people.stdout.contains("x2"), "{}", people.stdout);
    assert_eq!(folder.json(&["import", "nowhere.sqlite"]).refused(1)["field"], "file");
    assert_eq!(folder.json(&["import", SAMPLE, "--owner", "alice"]).code, Some(2));
}

#[test]
fn a_running_server_takes_only_its_users_own_rows() {
    let folder = Folder::new();
    let server = folder.serve();
    let ended = folder.json(&["import", SAMPLE, "--owner", "alice=local"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).expect("a document");
    assert_eq!(outcomes(&report), ["imported", "imported", "imported", "skipped"]);
    assert_eq!(report["rows"][3]["error"]["code"], "other_owner");
    let teams = folder.json(&["teams", "list"]).json();
    assert_eq!(teams["teams"].as_array().map(Vec::len), Some(3));
    assert_eq!(server.stop(), Some(0));
    // The rest with the database at hand.
    let report = folder.json(&["import", SAMPLE, "--owner", "alice=local"]).json();
    assert_eq!(outcomes(&report), ["unchanged", "unchanged", "unchanged", "imported"]);
}

/// A team at the earlier plugin's bounds, with the inputs that it kept of
/// every job.
fn full_team(folder: &Folder) -> PathBuf {
    let jobs: Vec<Value> = (0..200)
        .map(|n| {
            let receipt = n % 2 == 1;
            json!({
                "id": format!("job{n:03}"), "root": format!("job{:03}", n - n % 2), "member_id": "m1", "thread_id": "t1",
                "source": null, "kind": if receipt { "receipt" } else { "request" }, "status": "completed",
                "text": "研".repeat(2_000), "run_id": format!("run{n}"), "result": "答".repeat(2_000),
                "parent_id": if receipt { json!(format!("job{:03}", n - 1)) } else { Value::Null },
                "input": {"messages": [{"role": "user", "id": format!("team-{n}"), "content": "x".repeat(20_000)}]},
            })
        })
        .collect();
    let messages: Vec<Value> = (0..100)
        .map(|n| json!({"job_id": format!("job{:03}", 2 * n), "kind": "completed", "text": "答".repeat(2_000)}))
        .collect();
    let member =
        |n: u32| json!({"id": format!("m{n}"), "name": format!("M{n}"), "agent": "a", "thread_id": format!("t{n}")});
    let document = json!({
        "id": "full", "name": "Full", "goal": "g", "ready": true, "members": [member(1), member(2)], "jobs": jobs,
        "messages": messages,
    });
    let file = folder.path().join("full.sqlite");
    let db = Connection::open(&file).expect("opens");
    db.execute_batch("CREATE TABLE teams (id TEXT PRIMARY KEY, owner TEXT NOT NULL, data TEXT NOT NULL)")
        .expect("makes");
    db.execute("INSERT INTO teams VALUES ('full', 'local', ?1)", [document.to_string()]).expect("writes");
    file
}

#[test]
fn a_team_at_its_bounds_is_taken_over_either_way() {
    for served in [false, true] {
        let folder = Folder::new();
        let file = full_team(&folder);
        let server = served.then(|| folder.serve());
        let report = folder.json(&["import", file.to_str().expect("a path")]).json();
        assert_eq!(outcomes(&report), ["imported"], "{report}");
        let row = &report["rows"][0];
        assert_eq!((&row["requests"], &row["receipts"], &row["messages"]), (&json!(100), &json!(100), &json!(100)));
        drop(server);
    }
}

const LOGS: [&str; 2] = [
    concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/board/session-v1.jsonl"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/board/session-v2.jsonl"),
];

/// A team whose board was never used.
fn team(folder: &Folder, name: &str) {
    folder.json(&["teams", "create", name, "--goal", "g", "--member", "Ada=planner", "--member", "Bo=writer"]).json();
}

/// The owner's view of a board, over HTTP as any program would.
fn tasks(folder: &Folder, team: &str) -> Value {
    let listed = folder.json(&["teams", "list"]).json();
    let teams = listed["teams"].as_array().expect("teams");
    let id = &teams.iter().find(|t| t["name"] == team).expect("the team")["id"];
    let db = Connection::open(folder.database()).expect("the database");
    let mut query =
        db.prepare("SELECT value FROM kv WHERE key LIKE 'team/%/' || ?1 || '/live/%' ORDER BY key").expect("the table");
    let rows = query.query_map([id.as_str()], |row| row.get::<_, String>(0)).expect("rows");
    rows.map(|row| serde_json::from_str::<Value>(&row.expect("a row")).expect("JSON")).collect()
}

#[test]
fn the_logs_of_both_versions_become_the_history_of_a_board() {
    let folder = Folder::new();
    let server = folder.serve();
    for (log, name, ignored, live) in [(LOGS[0], "First", 1, 1), (LOGS[1], "Second", 2, 2)] {
        let before = std::fs::read(log).expect("reads");
        team(&folder, name);
        let report = folder.json(&["import-tasks", name, log]).json();
        let import = &report["import"];
        assert_eq!((&import["done"], import.get("failure")), (&json!(true), None), "{report}");
        assert_eq!((&import["taskRecords"], &import["memberRecords"]), (&json!(5), &json!(2)), "{report}");
        assert_eq!((&import["messages"], &import["ignored"]), (&json!(1), &json!(ignored)), "{report}");
        assert_eq!((&import["lines"], &report["tasks"]), (&json!(11), &json!(live)), "{report}");
        let board = tasks(&folder, name);
        assert_eq!(board.as_array().map(Vec::len), Some(live), "{board}");
        assert_eq!(board[0]["status"], "completed", "{board}");
        // Again, and for people.
        assert_eq!(folder.json(&["import-tasks", name, log]).json(), report, "a second import changes nothing");
        let people = folder.run(&["import-tasks", &name.to_lowercase(), log]);
        assert_eq!((people.code, people.stderr.as_str()), (Some(0), ""), "no progress into a pipe");
        assert!(
            people.stdout.contains("11 lines read") && people.stdout.contains("5 changes of tasks"),
            "{}",
            people.stdout
        );
        assert!(people.stdout.contains("never delivered: 2 records of members, 1 message"), "{}", people.stdout);
        assert_eq!(std::fs::read(log).expect("reads"), before, "the file is only read");
    }
    // Nothing of it was delivered to anybody.
    assert_eq!(folder.json(&["jobs", "list", "First"]).json()["jobs"], json!([]));
    let other = folder.json(&["import-tasks", "First", LOGS[1]]).refused(1);
    assert_eq!(other["code"], "TEAM_BOARD_NOT_EMPTY");
    assert_eq!(server.stop(), Some(0));
    assert_eq!(folder.json(&["import-tasks", "First", LOGS[0]]).refused(3)["code"], "server_unreachable");
}

#[test]
fn the_first_record_that_is_not_accepted_is_named_and_the_state_before_it_can_be_taken() {
    let folder = Folder::new();
    let log = std::fs::read_to_string(LOGS[1]).expect("reads");
    // The second revision of task-1, twice.
    let mut lines: Vec<&str> = log.lines().collect();
    lines.insert(9, lines[8]);
    let file = folder.path().join("twice.jsonl");
    std::fs::write(&file, lines.join("\n")).expect("writes");
    let file = file.to_str().expect("a path");
    let server = folder.serve();
    team(&folder, "Board");
    let ended = folder.json(&["import-tasks", "Board", file]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).expect("a document");
    assert_eq!(report["import"]["failure"]["line"], 10, "{report}");
    let people = folder.run(&["import-tasks", "Board", file]);
    assert_eq!(people.code, Some(1));
    assert!(
        people.stdout.contains("Line 10 was not accepted: ") && people.stdout.contains("--accept"),
        "{}",
        people.stdout
    );
    let board = tasks(&folder, "Board");
    assert_eq!((&board[0]["status"], &board[1]["status"]), (&json!("in_progress"), &json!("pending")), "{board}");
    let accepted = folder.json(&["import-tasks", "Board", "--accept"]).json();
    assert_eq!(accepted["import"]["accepted"], true);
    assert_eq!(folder.run(&["import-tasks", "Board", "--accept"]).code, Some(0), "once more is no harm");
    // What the command line cannot mean.
    assert_eq!(folder.json(&["import-tasks", "Board"]).code, Some(2));
    assert_eq!(folder.json(&["import-tasks", "Board", file, "--accept"]).code, Some(2));
    assert_eq!(folder.json(&["import-tasks", "Nobody", file]).refused(1)["field"], "team_id");
    assert_eq!(folder.json(&["import-tasks", "Board", "nowhere.jsonl"]).refused(1)["field"], "file");
    drop(server);
}

#[test]
fn a_long_log_goes_in_parts_and_one_without_a_header_needs_its_teams_id() {
    let folder = Folder::new();
    let server = folder.serve();
    let records: Vec<String> = std::fs::read_to_string(LOGS[0])
        .expect("reads")
        .lines()
        .skip(1)
        .flat_map(|line| [line.to_owned(), json!({"type": "noise", "data": "研".repeat(60_000)}).to_string()])
        .collect();
    let file = folder.path().join("long.jsonl");
    std::fs::write(&file, records.join("\r\n")).expect("writes");
    let file = file.to_str().expect("a path");
    team(&folder, "Long");
    assert_eq!(folder.json(&["import-tasks", "Long", file]).refused(1)["field"], "source");
    let report = folder.json(&["import-tasks", "Long", file, "--source", "lead"]).json();
    let import = &report["import"];
    assert!(import["parts"].as_u64() > Some(5), "{report}");
    assert_eq!((&import["taskRecords"], &import["lines"], &import["ignored"]), (&json!(5), &json!(20), &json!(11)));
    assert_eq!(import["done"], true);
    assert_eq!(folder.json(&["import-tasks", "Long", file, "--source", "lead"]).json(), report);
    drop(server);
}
