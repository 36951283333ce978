//! Passes of the worker: what waits for one and what does not, whose trouble
//! a step's failure is, and how a process ends in the middle of one.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use agent_teams_host::agents::runs::Capability;
use agent_teams_host::contract::{Caller, EndedRun, TeamRef};
use agent_teams_host::engine::{Options, Parts, Plugin, Signals};
use agent_teams_host::storage::SqliteStore;
use agent_teams_host::storage::database::Database;
use agent_teams_host::worker::{self, Worker};
use agent_teams_plugin::app::scheduling::plan;
use agent_teams_plugin::host::Host;
use agent_teams_tests::clock::FakeClock;
use agent_teams_tests::double::{Double, Effect, Method};
use agent_teams_tests::harness::{World, roster};
use agent_teams_tests::native::{CommitFault, Forward};
use serde_json::{Value, json};
use tokio::sync::broadcast;

#[test]
fn fault_3_a_send_never_waits_for_planning() {
    let w = World::native();
    let team = w.team("ann", &["ada", "bo"]);
    w.send(&team, 0, "first");
    let host = w.native_host().expect("native").clone();
    let (begun, has_begun) = channel();
    let (go_on, gate) = channel::<()>();
    std::thread::scope(|scope| {
        let planning = scope.spawn(move || {
            // A host whose transaction has begun and goes no further until it is told.
            let begin = |_| {
                let tx = host.begin()?;
                let _ = begun.send(());
                let _ = gate.recv();
                Ok(tx)
            };
            plan::plan(&Forward { host: &host, begin }, &[], true, &[])
        });
        has_begun.recv().expect("planning has begun");
        // As long as a pass over any number of teams may take: everybody else continues.
        let queued = w.send(&team, 0, "second");
        w.cancel(&team, &queued).expect("cancelled");
        let other = w.team("bea", &["ada", "bo"]);
        let theirs = w.send(&other, 0, "r");
        w.work();
        assert_eq!(w.status(&other, &theirs), "completed");
        assert!(!planning.is_finished());
        drop(go_on);
        // It planned on its snapshot and locked nothing.
        let plan = planning.join().expect("no panic").expect("a plan");
        assert_eq!(plan.steps.len(), 1);
    });
}

#[test]
fn a_team_whose_steps_fail_holds_back_nobody() {
    let mut w = World::native();
    w.restart_with(r#"{"slots": 1}"#);
    let (bad, good) = (w.team("ann", &["ada", "bo"]), w.team("bea", &["ada", "bo"]));
    w.send(&bad, 0, "r");
    w.clock.advance(1);
    let job = w.send(&good, 0, "r");
    let steps = |w: &World, resting: &[TeamRef]| w.plan_while(Vec::new(), false, resting).steps;
    // It is ann's turn: her step fails, each time.
    for _ in 0..3 {
        let steps = steps(&w, &[]);
        assert_eq!(steps.iter().map(|s| s.team.owner.as_str()).collect::<Vec<_>>(), ["ann"]);
        w.fail_commits([CommitFault::Unavailable]);
        assert_eq!(w.advance(&steps[0]).expect_err("the store is away").code, "store_unavailable");
    }
    // The host lets her team rest, and the turn is the next owner's.
    let ann = TeamRef { owner: "ann".into(), team: bad.id.clone() };
    let steps = steps(&w, &[ann]);
    assert_eq!(steps.iter().map(|s| s.team.owner.as_str()).collect::<Vec<_>>(), ["bea"]);
    assert!(w.advance(&steps[0]).expect("a step"));
    w.sweep();
    assert_eq!(w.status(&good, &job), "completed");
}

/// The component over a database file, as a process has it.
struct Process {
    plugin: Plugin,
    database: Database,
}

impl Process {
    async fn start(folder: &std::path::Path, clock: &FakeClock) -> Self {
        Self::start_with(folder, clock, "{}").await
    }

    async fn start_with(folder: &std::path::Path, clock: &FakeClock, settings: &str) -> Self {
        let database = Database::open(&folder.join("data.sqlite")).expect("the database is free");
        let parts = Parts {
            store: Arc::new(SqliteStore::new(database.clone()).expect("a store")),
            signals: Arc::new(Signals::default()),
            settings: settings.into(),
            clock: Arc::new(clock.clone()),
        };
        let cache = Some(concat!(env!("CARGO_TARGET_TMPDIR"), "/compiled").into());
        let hour = Duration::from_secs(3600);
        let options = Options { cache, host_call_time: hour, call_time: hour, ..Options::default() };
        let plugin = Plugin::load(Plugin::embedded(), parts, options).expect("the component");
        plugin.open().await.expect("open");
        Self { plugin, database }
    }

    async fn action(&self, runs: Capability, action: &str, payload: Value) -> Value {
        let caller = Caller::owner(runs.owner.clone());
        let answer = self.plugin.call_action(caller, Some(runs), action, &payload.to_string()).await;
        serde_json::from_str(&answer.unwrap_or_else(|e| panic!("{action}: {e}"))).expect("JSON")
    }
}

/// Lets other tasks run until it is so.
async fn until(done: impl Fn() -> bool) {
    while !done() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn lifecycle_25_steps_under_way_are_cancelled_and_drained_then_the_database_is_free() {
    let (folder, clock, double) = (tempfile::tempdir().expect("a folder"), FakeClock::default(), Double::default());
    let process = Process::start(folder.path(), &clock).await;
    let mut jobs = Vec::new();
    for owner in ["ann", "bea"] {
        let made = process.action(double.capability(owner), "create", roster("c", &["ada", "bo"])).await;
        let (team, member) = (made["team"]["id"].clone(), made["team"]["members"][0]["id"].clone());
        let send = json!({"team_id": team, "member_id": member, "request_id": "r", "text": "Do it."});
        let sent = process.action(double.capability(owner), "send", send).await;
        jobs.push((owner, team, sent["job"]["id"].clone()));
    }
    // Both runs are admitted, and neither step hears of it.
    double.hold(true);
    double.fault(Method::Start, None, 2, Effect::HangAfter);
    let (ended, signals) = (broadcast::channel::<EndedRun>(4).0, broadcast::channel(4).0);
    let worker = Worker::start(
        Arc::new(process.plugin.clone()),
        ended.subscribe(),
        signals.subscribe(),
        None,
        worker::Options::default(),
    );
    until(|| double.hanging() == 2).await;
    assert_eq!(process.plugin.running(), 2);

    worker.shutdown(Duration::ZERO).await;
    process.plugin.shutdown().await;
    assert_eq!((process.plugin.running(), double.hanging()), (0, 0), "cancelled and drained");
    let Process { plugin, database } = process;
    assert!(Database::open(&folder.path().join("data.sqlite")).is_err(), "it is this process's until it is closed");
    drop(plugin);
    database.close();

    // A second process starts, finds both runs by their keys, and ends.
    double.hold(false);
    double.clear_faults();
    double.release_all();
    let process = Process::start(folder.path(), &clock).await;
    for (owner, team, job) in &jobs {
        let at = TeamRef { owner: (*owner).into(), team: team.as_str().expect("an id").into() };
        process.plugin.connect(&at, double.capability(owner)).await.expect("connected");
        for step in process.plugin.plan(Vec::new(), true, Vec::new()).await.expect("a plan").steps {
            process.plugin.advance(&step.team, &step.permit).await.expect("a step");
        }
        let shown = process.action(double.capability(owner), "get", json!({"team_id": team})).await;
        assert_eq!((&shown["jobs"][0]["id"], &shown["jobs"][0]["status"]), (job, &json!("completed")), "{shown}");
    }
    assert_eq!(double.admissions().len(), 2, "one run each");
}

/// The worker itself, with one slot: it is ann's turn, and her team's lock is
/// held by a connect that the host does not answer.
#[tokio::test]
async fn a_connect_that_hangs_keeps_no_slot_from_others() {
    let (folder, clock, double) = (tempfile::tempdir().expect("a folder"), FakeClock::default(), Double::default());
    let process = Process::start_with(folder.path(), &clock, r#"{"slots": 1}"#).await;
    double.hold(true);
    let mut teams = Vec::new();
    for owner in ["ann", "bea"] {
        let made = process.action(double.capability(owner), "create", roster("c", &["ada", "bo"])).await;
        let (team, member) = (made["team"]["id"].clone(), made["team"]["members"][0].clone());
        let send = json!({"team_id": team, "member_id": member["id"], "request_id": "r", "text": "Do it."});
        process.action(double.capability(owner), "send", send).await;
        clock.advance(1);
        teams.push((team, member["thread"].as_str().expect("a thread").to_owned()));
    }
    double.fault(Method::CreateThread, Some(&teams[0].1), 1, Effect::HangBefore);
    let (plugin, runs, payload) =
        (process.plugin.clone(), double.capability("ann"), json!({"team_id": teams[0].0}).to_string());
    let connecting =
        tokio::spawn(async move { plugin.call_action(Caller::owner("ann"), Some(runs), "connect", &payload).await });
    until(|| double.hanging() == 1).await;
    let (ended, signals) = (broadcast::channel::<EndedRun>(4).0, broadcast::channel(4).0);
    let worker = Worker::start(
        Arc::new(process.plugin.clone()),
        ended.subscribe(),
        signals.subscribe(),
        None,
        worker::Options::default(),
    );
    until(|| double.running_in(&teams[1].1).is_some()).await;
    assert_eq!(double.running_in(&teams[0].1), None);
    double.release_hangs();
    connecting.await.expect("no panic").expect("connected");
    worker.shutdown(Duration::ZERO).await;
    process.plugin.shutdown().await;
}

#[tokio::test]
async fn fault_1_a_caller_that_goes_away_during_a_creation_leaves_nothing_locked() {
    let (folder, clock, double) = (tempfile::tempdir().expect("a folder"), FakeClock::default(), Double::default());
    let process = Process::start(folder.path(), &clock).await;
    double.fault(Method::CreateThread, None, 1, Effect::HangBefore);
    let (plugin, runs) = (process.plugin.clone(), double.capability("ann"));
    let payload = roster("c", &["ada", "bo"]).to_string();
    let creating =
        tokio::spawn(async move { plugin.call_action(Caller::owner("ann"), Some(runs), "create", &payload).await });
    until(|| double.hanging() == 1).await;
    creating.abort();
    assert!(creating.await.expect_err("gone").is_cancelled());
    until(|| process.plugin.running() == 0).await;
    // The same creation by somebody who stays, and the work of others.
    let made = process.action(double.capability("ann"), "create", roster("c", &["ada", "bo"])).await;
    assert_eq!((&made["team"]["ready"], &made["team"]["connected"]), (&json!(true), &json!(true)), "{made}");
    let theirs = process.action(double.capability("bea"), "create", roster("c", &["ada", "bo"])).await;
    assert_eq!(theirs["team"]["ready"], true);
    assert!(process.plugin.plan(Vec::new(), true, Vec::new()).await.expect("a plan").steps.is_empty());
}
