//! `agent-teams demo` from outside.

mod program;

use program::Folder;
use rusqlite::Connection;
use serde_json::{Value, json};

fn ids(document: &Value) -> Vec<String> {
    let jobs = document["jobs"].as_array().expect("jobs");
    jobs.iter().map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
}

fn runs(folder: &Folder) -> Vec<(String, i64)> {
    let db = Connection::open(folder.database()).expect("the database");
    let mut statement = db.prepare("SELECT id, attempts FROM agent_runs ORDER BY seq").expect("the table");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
    rows.collect::<Result<_, _>>().expect("rows")
}

/// What people are shown, in the order in which it must stand.
const TOLD: [&str; 26] = [
    "The demo acts as their owner",
    "owner → Ada asked Please prepare a short note",
    "Ada → Bo asked ",
    "Ada → Bo completed Three facts",
    "Bo ⇒ Ada (result) returns ",
    "Ada → Cy asked ",
    "Ada → Cy waiting_input waits for an answer: Who will read the note?",
    "(A person must answer before it continues.)",
    "owner (the demo) answers \"People who are new to it.\"",
    "Ada → Cy waiting_input waits for approval: write_file",
    "path = \"note.md\"",
    "text = \"Your request",
    "(A person must answer before it continues.)",
    "owner (the demo) denies \"Not before it is checked.",
    "Ada → Cy completed Your request",
    "Cy ⇒ Ada (result) returns ",
    "owner → Ada asked Please have the note checked",
    "board: task-1 pending Check the note against the facts (by Ada)",
    "board: task-2 pending blocked by task-1: Write the checked note",
    "board: task-1 completed by Bo",
    "Cy is woken the board has changed",
    "board: task-2 in_progress claimed by Cy",
    "waits for approval: write_file",
    "owner (the demo) approves ",
    "board: task-2 completed by Cy",
    "The note is ready: Your request",
];

/// Every line stands after the one before it, whatever the columns are.
#[track_caller]
fn in_order(text: &str, told: &[&str]) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let mut rest = text.as_str();
    for line in told {
        let Some((_, after)) = rest.split_once(line) else { panic!("{line:?} does not follow in {text}") };
        rest = after;
    }
}

/// The tool results of a conversation, in order: tool and text.
fn results(db: &Connection, agent: &str) -> Vec<(String, Value)> {
    let mut statement = db
        .prepare(
            "SELECT m.tool, m.text FROM agent_messages m JOIN agent_threads t ON t.key = m.thread
             WHERE t.agent = ?1 AND m.role = 'tool' ORDER BY m.number",
        )
        .expect("the tables");
    let rows = statement.query_map([agent], |row| Ok((row.get(0)?, row.get::<_, String>(1)?))).expect("rows");
    rows.map(|row| row.expect("a row")).map(|(tool, text)| (tool, serde_json::from_str(&text).expect("JSON"))).collect()
}

#[test]
fn the_demo_does_its_job_and_a_second_run_repeats_nothing() {
    let folder = Folder::new();
    let first = folder.run(&["demo"]);
    assert_eq!(first.code, Some(0), "{}{}", first.stdout, first.stderr);
    assert!(!first.stdout.contains('\u{1b}'), "no escape codes into a pipe");
    assert!(
        first.stdout.lines().all(|line| line.starts_with("  cargo run") || line.chars().count() <= 80),
        "{}",
        first.stdout
    );
    in_order(&first.stdout, &TOLD);
    in_order(&first.stdout, &["Cy waits until the board changes", "board: task-1 completed by Bo"]);
    in_order(&first.stdout, &["board: task-1 in_progress claimed by Bo", "board: task-1 completed by Bo"]);
    assert!(first.stdout.contains("/workspace/extensions/community.agent-teams/teams"));
    assert!(first.stdout.contains("serve --print-link --data"), "how to keep it running");
    // A run for each request and receipt, and one for the answer.
    let before = runs(&folder);
    assert_eq!(before.len(), 11);

    // The writer's second change of the plan met a conflict and was merged.
    let db = Connection::open(folder.database()).expect("the database");
    let plan: String = db
        .query_row("SELECT value FROM kv WHERE key LIKE 'team/%/state/%'", [], |row| row.get(0))
        .expect("one entry of public state");
    assert!(plan.contains("\"revision\":3") && plan.contains("Cy has written the note"), "{plan}");

    // The writer was told why its first file was refused, waited for the board,
    // was woken by a change, and wrote the file when it was approved.
    let writer = results(&db, "writer");
    let of = |tool: &str| -> Vec<&Value> { writer.iter().filter(|(t, _)| t == tool).map(|(_, text)| text).collect() };
    let files = of("write_file");
    assert_eq!(files.len(), 2);
    assert_eq!(files[0]["error"]["code"], "not_approved");
    assert!(files[0]["error"]["message"].as_str().expect("a text").contains("Not before it is checked."));
    assert_eq!(files[1]["path"], "note.md");
    let waits = of("wait_for_team_tasks");
    assert!(!waits.is_empty() && waits.iter().all(|w| **w == json!({"timedOut": false})), "{waits:?}");
    drop(db);

    let second = folder.json(&["demo"]).json();
    assert_eq!((&second["repeated"], &second["decided"]), (&json!(true), &json!([])));
    assert_eq!(second["jobs"].as_array().map(Vec::len), Some(10));
    assert_eq!(runs(&folder), before, "no run was started and none was touched");
    let third = folder.json(&["demo"]).json();
    assert_eq!(ids(&third), ids(&second), "the same jobs");
    let people = folder.run(&["demo"]);
    assert!(people.stdout.starts_with("\nThe note is ready: ") && people.stderr.contains("nothing is repeated"));

    // The researcher's notes and the approved note are real files, made by real
    // tool calls; what was refused left none.
    let files = walk(&folder.path().join("workspaces"));
    let of = |name: &str| files.iter().filter(|path| path.ends_with(name)).collect::<Vec<_>>();
    assert_eq!((of("notes.md").len(), of("note.md").len()), (1, 1), "{files:?}");
}

#[test]
fn programs_get_one_document_with_all_that_was_decided() {
    let folder = Folder::new();
    let ended = folder.json(&["demo"]);
    let end = ended.json();
    assert_eq!((end["repeated"].as_bool(), ended.stdout.lines().count()), (Some(false), 1));
    let decided = end["decided"].as_array().expect("decisions");
    assert_eq!(decided.len(), 3, "{end}");
    assert_eq!(decided[0]["question"]["text"], "Who will read the note?");
    assert_eq!(decided[0]["reason"]["code"], "waiting_for_answer");
    let asked = &decided[1]["interrupts"][0]["value"];
    assert_eq!((&asked["kind"], &asked["tool"]), (&json!("approval"), &json!("write_file")));
    assert_eq!(asked["arguments"]["path"], "note.md");
    assert_eq!(
        (&decided[1]["response"]["approved"], &decided[2]["response"]["approved"]),
        (&json!(false), &json!(true))
    );
    assert_ne!(decided[1]["interrupts"][0]["id"], decided[2]["interrupts"][0]["id"], "each decision is for one call");
    let tasks = end["tasks"].as_array().expect("tasks");
    let told: Vec<(&Value, &Value)> = tasks.iter().map(|task| (&task["status"], &task["ownerName"])).collect();
    assert_eq!(told, [(&json!("completed"), &json!("Bo")), (&json!("completed"), &json!("Cy"))]);
    assert_eq!(tasks[1]["blockedBy"], json!(["task-1"]));
    assert!(end["jobs"].as_array().expect("jobs").iter().all(|job| job["status"] == "completed"), "{end}");
}

#[test]
fn the_data_of_another_versions_demo_is_refused_by_name() {
    let folder = Folder::new();
    let server = folder.serve();
    let mut args = vec!["teams", "create", "Other", "--goal", "g", "--request-id", "demo-team"];
    args.extend(["--member", "Ada=planner", "--member", "Bo=writer"]);
    folder.json(&args).json();
    assert_eq!(server.stop(), Some(0));
    assert_eq!(folder.json(&["demo"]).refused(1)["code"], "other_demo");
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(walk(&path)) } else { found.push(path) }
    }
    found
}
