//! The real component and the real agents on the real database file, in a
//! process that dies at each commit of the component and around each call that
//! it makes of its agents: at the first point, at the second, and so on, until
//! the process comes to its end before it reaches the point. After each death
//! another process takes the work up, and everything must have happened once.
//!
//! [`child`] is the process: this test binary again, told so by a variable.

mod child;
mod points;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

/// The folder of a child's work, and what makes a process one.
const FOLDER: &str = "CRASH_POINTS_FOLDER";
/// The point at which it dies, counted from 1; zero: it does not.
const AT: &str = "CRASH_POINTS_AT";
/// What a child's last line begins with.
const REPORT: &str = "crash-points-report ";
/// Children at once.
const LANES: u32 = 3;

/// How a child ended.
enum Ended {
    Died,
    /// Its report.
    Finished(Value),
}

fn child(folder: &Path, at: u32) -> Ended {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "crash_points::child::the_job", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(AT, at.to_string())
        .stdin(Stdio::null())
        .output()
        .expect("the child starts");
    if output.status.code().is_none() {
        return Ended::Died;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let report = text.lines().find_map(|line| line.split_once(REPORT)).map(|(_, report)| report);
    let report = report.unwrap_or_else(|| panic!("point {at}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    Ended::Finished(serde_json::from_str(report).expect("JSON"))
}

fn finish(folder: &Path, what: &str) {
    match child(folder, 0) {
        Ended::Finished(report) => check(folder, &report, what),
        Ended::Died => panic!("{what}: the next process died, and nobody told it to"),
    }
}

#[test]
fn dying_at_each_point_everything_happens_once() {
    let next = Arc::new(AtomicU32::new(1));
    let died = Arc::new(Mutex::new(Vec::new()));
    let lanes: Vec<_> = (0..LANES)
        .map(|_| {
            let (next, died) = (next.clone(), died.clone());
            std::thread::spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    let folder = child::new_folder();
                    match child(folder.path(), at) {
                        Ended::Finished(report) => return check(folder.path(), &report, &format!("point {at}")),
                        Ended::Died => finish(folder.path(), &format!("after dying at point {at}")),
                    }
                    died.lock().unwrap_or_else(|e| e.into_inner()).push(at);
                }
            })
        })
        .collect();
    for lane in lanes {
        lane.join().expect("every point is survived");
    }
    let mut died = died.lock().unwrap_or_else(|e| e.into_inner()).clone();
    died.sort_unstable();
    let count = died.len() as u32;
    assert!(died.iter().copied().eq(1..=count), "each point up to the last was met: {died:?}");
    assert!(count >= 60, "only {count} points: the job is too small for this test");
    println!("{count} points survived");
}

#[test]
fn dying_again_and_again_everything_happens_once() {
    // Each process survives one point more than the one before.
    let folder = child::new_folder();
    for at in 1.. {
        match child(folder.path(), at) {
            Ended::Died => {}
            Ended::Finished(report) => {
                assert!(at > 5, "only {at} processes");
                return check(folder.path(), &report, &format!("process {at}"));
            }
        }
    }
}

/// One run a job and answer, one message a run, everything at its end, nothing
/// left over.
fn check(folder: &Path, end: &Value, what: &str) {
    let jobs = end["jobs"].as_array().expect("jobs");
    let named = |request: &str, kind: &str| {
        let mut found = jobs.iter().filter(|j| j["request_id"] == request && j["kind"] == kind);
        let one = found.next().unwrap_or_else(|| panic!("{what}: no {kind} {request}: {end}"));
        assert!(found.next().is_none(), "{what}: two of {kind} {request}: {end}");
        one
    };
    assert_eq!(jobs.len(), 5, "{what}: {end}");
    let (main, asked) = (named("main", "request"), named("facts", "request"));
    let receipt = named("facts", "receipt");
    for job in [main, asked, receipt, named("question", "request")] {
        assert_eq!(job["status"], "completed", "{what}: {job}");
    }
    assert_eq!(named("slow", "request")["status"], "cancelled", "{what}: {end}");
    assert_eq!((&asked["parent_id"], &receipt["parent_id"]), (&main["id"], &asked["id"]), "{what}");
    assert_eq!(receipt["thread"], main["thread"], "{what}: the result goes to whoever asked");
    assert_eq!(receipt["result"]["text"], "The facts are in.", "{what}");
    assert_eq!(named("question", "request")["result"]["text"], "Blue it is.", "{what}");
    assert_eq!(end["slots"], serde_json::json!([]), "{what}: a slot is left");
    let subjects: Vec<&str> =
        end["tasks"]["tasks"].as_array().expect("tasks").iter().filter_map(|t| t["subject"].as_str()).collect();
    assert_eq!(subjects.len(), 2, "{what}: {}", end["tasks"]);
    assert!(subjects.contains(&"by the owner") && subjects.contains(&"by a member"), "{what}: {subjects:?}");

    let file = folder.join(child::DATABASE);
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the database");
    let count = |sql: &str| -> i64 { db.query_row(sql, [], |row| row.get(0)).expect(sql) };
    // Four requests and a receipt, and the answer to the question.
    for (sql, why) in [
        ("SELECT count(*) FROM agent_runs", "one run a job and one for the answer"),
        ("SELECT count(*) FROM agent_keys", "a key for each"),
        ("SELECT count(DISTINCT key) FROM agent_runs", "no key has two runs"),
        ("SELECT count(*) FROM agent_messages WHERE role = 'human'", "one message a run"),
        ("SELECT count(DISTINCT id) FROM agent_messages WHERE role = 'human'", "no message twice"),
    ] {
        assert_eq!(count(sql), 6, "{what}: {why}");
    }
    assert_eq!(count("SELECT count(*) FROM agent_runs WHERE status = 'succeeded'"), 5, "{what}");
    assert_eq!(count("SELECT count(*) FROM agent_runs WHERE status = 'cancelled'"), 1, "{what}");
    for rest in ["work/%", "slot/%", "team/%/input", "team/%/answer"] {
        let sql = format!("SELECT count(*) FROM kv WHERE key LIKE '{rest}'");
        assert_eq!(count(&sql), 0, "{what}: {rest} is left");
    }
}
