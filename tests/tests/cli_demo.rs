//! `agent-teams demo` from outside.

mod program;

use program::Folder;
use rusqlite::Connection;
use serde_json::Value;

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

#[test]
fn the_demo_does_its_job_and_a_second_run_repeats_nothing() {
    let folder = Folder::new();
    let first = folder.run(&["demo"]);
    assert_eq!(first.code, Some(0), "{}{}", first.stdout, first.stderr);
    assert!(!first.stdout.contains('\u{1b}'), "no escape codes into a pipe");
    for told in ["owner → Ada", "Ada → Bo", "Bo ⇒ Ada (result)", "Ada → Cy", "Cy ⇒ Ada (result)", "The note is ready: "]
    {
        assert!(first.stdout.contains(told), "{told:?} in {}", first.stdout);
    }
    assert!(first.stdout.contains("/workspace/extensions/community.agent-teams/teams"));
    assert!(first.stdout.contains("serve --print-link --data"), "how to keep it running");
    let before = runs(&folder);
    assert_eq!(before.len(), 5);

    // The writer's second change of the plan met a conflict and was merged.
    let db = Connection::open(folder.database()).expect("the database");
    let plan: String = db
        .query_row("SELECT value FROM kv WHERE key LIKE 'team/%/state/%'", [], |row| row.get(0))
        .expect("one entry of public state");
    assert!(plan.contains("\"revision\":3") && plan.contains("Cy has written the note"), "{plan}");
    drop(db);

    let second = folder.json(&["demo"]).json();
    assert_eq!(second["repeated"], true);
    assert_eq!(runs(&folder), before, "no run was started and none was touched");
    let third = folder.json(&["demo"]).json();
    assert_eq!(ids(&third), ids(&second), "the same jobs");

    // The researcher's notes are a real file, made by a real tool call.
    let notes = walk(&folder.path().join("workspaces"));
    assert_eq!(notes.iter().filter(|path| path.ends_with("notes.md")).count(), 1, "{notes:?}");
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(walk(&path)) } else { found.push(path) }
    }
    found
}
