//! Waits as the engine holds them: a thousand cost no instance, each is woken
//! by the commit, and a host that stops answers all.

use std::path::PathBuf;
use std::sync::Arc;

use agent_teams_host::contract::{CallError, Caller, FaultCode, TeamRef};
use agent_teams_host::engine::{Options, Parts, Plugin, Signals};
use agent_teams_host::storage::{CommitError, MemoryStore, Store, StoreError, Transaction};
use agent_teams_tests::clock::FakeClock;
use agent_teams_tests::double::Double;
use agent_teams_tests::harness::{Team, parse, roster};
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

struct Bench {
    plugin: Plugin,
    team: Team,
}

/// A store whose commits can be held before anything of them is written.
#[derive(Clone)]
struct Gate {
    inner: Arc<MemoryStore>,
    open: watch::Sender<bool>,
    /// Commits that came to the gate.
    reached: watch::Sender<usize>,
}

impl Gate {
    fn new() -> Self {
        Self { inner: Arc::default(), open: watch::Sender::new(true), reached: watch::Sender::new(0) }
    }

    /// Holds what comes from now on.
    fn close(&self) {
        self.open.send_replace(false);
        self.reached.send_replace(0);
    }

    async fn until_reached(&self) {
        self.reached.subscribe().wait_for(|n| *n > 0).await.expect("the sender lives");
    }
}

struct Held {
    inner: Box<dyn Transaction>,
    gate: Gate,
}

impl Store for Gate {
    fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        Ok(Box::new(Held { inner: self.inner.begin()?, gate: self.clone() }))
    }
}

#[async_trait]
impl Transaction for Held {
    fn get(&mut self, key: &str) -> Result<Option<String>, StoreError> {
        self.inner.get(key)
    }

    fn scan(&mut self, start: &str, end: &str, limit: u32, reverse: bool) -> Result<Vec<(String, String)>, StoreError> {
        self.inner.scan(start, end, limit, reverse)
    }

    fn put(&mut self, key: String, value: String) -> Result<(), StoreError> {
        self.inner.put(key, value)
    }

    fn delete(&mut self, key: String) -> Result<(), StoreError> {
        self.inner.delete(key)
    }

    async fn commit(self: Box<Self>) -> Result<(), CommitError> {
        self.gate.reached.send_modify(|n| *n += 1);
        let mut open = self.gate.open.subscribe();
        open.wait_for(|open| *open).await.expect("the sender lives");
        self.inner.commit().await
    }
}

/// A team whose member `b` has a request, so that others may wait for it.
async fn bench() -> Bench {
    bench_on(Arc::new(MemoryStore::default())).await
}

async fn bench_on(store: Arc<dyn Store>) -> Bench {
    let parts = Parts {
        store,
        signals: Arc::new(Signals::default()),
        settings: "{}".into(),
        clock: Arc::new(FakeClock::default()),
    };
    let options = Options {
        instances: 4,
        cache: Some(PathBuf::from(concat!(env!("OUT_DIR"), "/compiled"))),
        call_time: std::time::Duration::from_secs(120),
        guest_time: std::time::Duration::from_secs(60),
        ..Options::default()
    };
    let plugin = Plugin::load(Plugin::embedded(), parts, options).expect("the component");
    plugin.open().await.expect("open");
    let double = Double::default();
    let act = async |action: &str, payload: Value| {
        let text = plugin
            .call_action(Caller::owner("ann"), Some(double.capability("ann")), action, &payload.to_string())
            .await
            .expect("the action");
        parse(&text)
    };
    let team = Team::from_answer("ann", &act("create", roster("r", &["a", "b"])).await);
    let payload = json!({"team_id": team.id, "member_id": team.members[1].id, "request_id": "q", "text": "Do it."});
    act("send", payload).await;
    assert!(plugin.connected(&TeamRef { owner: "ann".into(), team: team.id.clone() }));
    Bench { plugin, team }
}

impl Bench {
    fn caller(&self, n: usize) -> Caller {
        Caller { owner: "ann".into(), thread: Some(self.team.thread(n).into()), ..Caller::default() }
    }

    fn wait(&self) -> JoinHandle<Result<String, CallError>> {
        let (plugin, caller) = (self.plugin.clone(), self.caller(0));
        let arguments = json!({"team_id": self.team.id, "timeout_ms": 3_600_000}).to_string();
        tokio::spawn(async move { plugin.call_tool(caller, None, "wait_for_team_tasks", &arguments).await })
    }

    fn create(&self) -> JoinHandle<Result<String, CallError>> {
        let (plugin, caller) = (self.plugin.clone(), self.caller(1));
        let new = json!({"team_id": self.team.id, "subject": "s", "description": "d"}).to_string();
        tokio::spawn(async move { plugin.call_tool(caller, None, "create_team_task", &new).await })
    }

    async fn tasks(&self) -> Value {
        let payload = json!({"team_id": self.team.id}).to_string();
        let text = self.plugin.call_action(Caller::owner("ann"), None, "tasks", &payload).await.expect("reads");
        parse(&text)["tasks"].clone()
    }

    async fn until_parked(&self, n: usize) {
        while self.plugin.parked() != n || self.plugin.running() != 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_waits_hold_no_instance_and_one_commit_ends_them_all() {
    let bench = bench().await;
    let waits: Vec<_> = (0..1_000).map(|_| bench.wait()).collect();
    bench.until_parked(1_000).await;
    assert_eq!(bench.plugin.running(), 0);
    let new = json!({"team_id": bench.team.id, "subject": "s", "description": "d"}).to_string();
    bench.plugin.call_tool(bench.caller(1), None, "create_team_task", &new).await.expect("create");
    for wait in waits {
        assert_eq!(wait.await.expect("no panic").expect("an answer"), "{\"timedOut\":false}");
    }
    assert_eq!((bench.plugin.parked(), bench.plugin.running()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_94_and_96_a_wait_that_is_given_up_leaves_the_others() {
    let bench = bench().await;
    let (given_up, other) = (bench.wait(), bench.wait());
    bench.until_parked(2).await;
    given_up.abort();
    given_up.await.expect_err("cancelled");
    bench.until_parked(1).await;
    let new = json!({"team_id": bench.team.id, "subject": "s", "description": "d"}).to_string();
    bench.plugin.call_tool(bench.caller(0), None, "create_team_task", &new).await.expect("create");
    assert_eq!(other.await.expect("no panic").expect("an answer"), "{\"timedOut\":false}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_99_shutdown_answers_every_wait() {
    let bench = bench().await;
    let waits: Vec<_> = (0..10).map(|_| bench.wait()).collect();
    bench.until_parked(10).await;
    bench.plugin.shutdown().await;
    for wait in waits {
        assert_eq!(wait.await.expect("no panic").expect("an answer"), "{\"timedOut\":false}");
    }
    let refused = bench.wait().await.expect("no panic").expect_err("stopped");
    assert!(matches!(refused, CallError::Fault { code: FaultCode::Stopping, .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_95_a_commit_that_is_held_wakes_nobody_until_it_is_durable() {
    let gate = Gate::new();
    let bench = bench_on(Arc::new(gate.clone())).await;
    let wait = bench.wait();
    bench.until_parked(1).await;
    gate.close();
    let create = bench.create();
    gate.until_reached().await;
    assert_eq!(bench.plugin.parked(), 1);
    assert!(!wait.is_finished() && !create.is_finished(), "nobody is told before it is durable");
    assert_eq!(bench.tasks().await, json!([]));
    gate.open.send_replace(true);
    create.await.expect("no panic").expect("created");
    assert_eq!(wait.await.expect("no panic").expect("an answer"), "{\"timedOut\":false}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_given_up_before_its_commit_changes_nothing() {
    let gate = Gate::new();
    let bench = bench_on(Arc::new(gate.clone())).await;
    let wait = bench.wait();
    bench.until_parked(1).await;
    gate.close();
    let create = bench.create();
    gate.until_reached().await;
    create.abort();
    create.await.expect_err("cancelled");
    bench.until_parked(1).await;
    gate.open.send_replace(true);
    assert_eq!(bench.tasks().await, json!([]));
    assert!(!wait.is_finished(), "nobody is woken");
    // The number was not used up, and the board's lock is free.
    let made = bench.create().await.expect("no panic").expect("created");
    assert_eq!(parse(&made)["id"], "task-1");
    wait.await.expect("no panic").expect("woken by the second");
}
