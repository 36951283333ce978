//! The demo is killed (SIGKILL) at ever other moments and started again, until
//! it comes to its end; then the host's own tables tell whether anything was
//! lost or happened twice.

mod crash_points;
mod program;

use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use program::Folder;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

/// Data folders, each with its own kills.
const ROUNDS: i64 = 10;
const KILLS_A_ROUND: i64 = 3;
/// Rounds that go on at a time.
const AT_ONCE: usize = 4;
/// Messages that the finished demo leaves in the conversations, at least.
const MESSAGES: i64 = 60;
/// Requests and receipts of the demo.
const JOBS: i64 = 10;
/// A run for each job, and another one for the answer to a question. A run
/// that waited for an approval continues as the same run.
const RUNS: i64 = JOBS + 1;
/// Decisions on calls that need approval.
const APPROVALS: i64 = 2;

/// A small generator of numbers, so that every round can be repeated.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i64 % bound
    }
}

/// Messages stored so far; none while there is no table yet.
fn messages(folder: &Folder) -> i64 {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(folder.database(), flags)
        .and_then(|c| c.query_row("SELECT count(*) FROM agent_messages", [], |row| row.get(0)))
        .unwrap_or(0)
}

/// Lets the demo go on until that many messages are stored, and a little
/// further, then kills it. False: it came to its end before.
fn kill_at(demo: &mut Child, folder: &Folder, stored: i64, further: Duration) -> bool {
    let patience = Instant::now();
    while messages(folder) < stored {
        if demo.try_wait().expect("the demo can be asked").is_some() {
            return false;
        }
        assert!(patience.elapsed() < Duration::from_secs(120), "the demo stands still before message {stored}");
        sleep(Duration::from_millis(1));
    }
    sleep(further);
    demo.kill().expect("SIGKILL");
    demo.wait().expect("it is gone").code().is_none()
}

#[test]
fn killed_at_any_moment_everything_happens_once() {
    // A round mostly waits for its program, so several go on at a time.
    let (next, killed) = (AtomicI64::new(0), AtomicI64::new(0));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let round = next.fetch_add(1, Ordering::Relaxed);
                    if round >= ROUNDS {
                        return;
                    }
                    killed.fetch_add(play(round), Ordering::Relaxed);
                }
            });
        }
    });
    let killed = killed.into_inner();
    assert!(killed >= ROUNDS, "only {killed} kills: the demo ends too fast for this test");
}

/// One data folder: kills, then the end. Answers with the number of kills.
fn play(round: i64) -> i64 {
    let mut seeded = Seeded(round as u64 + 1);
    let folder = Folder::new();
    let (mut stored, mut killed) = (0, 0);
    for _ in 0..KILLS_A_ROUND {
        // Onward from where the last kill was; zero: during the start.
        stored += seeded.below(MESSAGES / KILLS_A_ROUND);
        let further = Duration::from_micros(seeded.below(30_000) as u64);
        let mut demo = folder
            .command(&["--json", "demo"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the demo starts");
        if !kill_at(&mut demo, &folder, stored, further) {
            break;
        }
        killed += 1;
    }
    let end = folder.json(&["demo"]).json();
    check(&folder, &end, round);
    killed
}

/// One run a job, one message a job, everything at its end.
fn check(folder: &Folder, end: &Value, round: i64) {
    let jobs = end["jobs"].as_array().expect("jobs");
    assert_eq!(jobs.len() as i64, JOBS, "round {round}: {end}");
    let db = Connection::open_with_flags(folder.database(), OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the database");
    let count = |sql: &str| -> i64 { db.query_row(sql, [], |row| row.get(0)).expect(sql) };
    assert_eq!(count("SELECT count(*) FROM agent_runs"), RUNS, "round {round}: a run for each message, and no other");
    assert_eq!(count("SELECT count(*) FROM agent_runs WHERE status = 'succeeded'"), RUNS, "round {round}");
    assert_eq!(count("SELECT count(DISTINCT key) FROM agent_runs"), RUNS, "round {round}: no key has two runs");
    assert_eq!(count("SELECT count(*) FROM agent_keys"), RUNS + APPROVALS, "round {round}");
    assert_eq!(count("SELECT count(*) FROM agent_messages WHERE role = 'human'"), RUNS, "round {round}");
    assert_eq!(count("SELECT count(*) FROM agent_approvals"), APPROVALS, "round {round}: each call was asked for once");
    for job in jobs {
        let id = job["id"].as_str().expect("an id");
        assert_eq!(job["status"], "completed", "round {round}: {job}");
        assert_eq!(job["result"]["available"], true, "round {round}: {job}");
        // The frame of a job's message ends with a mark that names the job.
        let delivered: i64 = db
            .query_row(
                "SELECT count(*) FROM agent_messages m JOIN agent_threads t ON t.key = m.thread
                 WHERE m.role = 'human' AND m.text LIKE '%>>> ' || ?1 AND t.id = ?2",
                [id, job["thread"].as_str().expect("a conversation")],
                |row| row.get(0),
            )
            .expect("a count");
        assert_eq!(delivered, 1, "round {round}: {id} reached its conversation once");
    }
    let kinds = |kind: &str| jobs.iter().filter(|job| job["kind"] == kind).count();
    assert_eq!((kinds("request"), kinds("receipt")), (6, 4), "round {round}: {end}");
    // Each task was made, claimed and completed once.
    let tasks = end["tasks"].as_array().expect("tasks");
    let told: Vec<(&str, u64)> = tasks
        .iter()
        .map(|task| (task["status"].as_str().unwrap_or_default(), task["revision"].as_u64().unwrap_or(0)))
        .collect();
    assert_eq!(told, [("completed", 3), ("completed", 3)], "round {round}: {end}");
}
