//! A plugin around the test component, with doubles that count and stall.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_teams_host::agents::runs::{
    AgentRuns, Cancellation, Capability, Input, InterruptAnswer, Marker, Run, RunError, RunStatus, ThreadState,
};
use agent_teams_host::contract::{CallError, Caller, ErrorKind};
use agent_teams_host::engine::{Clock, Options, Parts, Plugin, Signals};
use agent_teams_host::storage::{CommitError, Store, StoreError, Transaction};
use async_trait::async_trait;
use tokio::sync::Semaphore;

pub const NOW_MS: u64 = 1_700_000_000_250;

pub struct FixedClock;

impl Clock for FixedClock {
    fn now_ms(&self) -> u64 {
        NOW_MS
    }
}

/// A store that counts its open transactions and can stall commits.
#[derive(Default)]
pub struct CountingStore {
    pub data: Mutex<BTreeMap<String, String>>,
    pub open: AtomicUsize,
    pub stall: AtomicBool,
}

pub struct StoreHandle(pub Arc<CountingStore>);

struct CountingTransaction {
    store: Arc<CountingStore>,
    writes: BTreeMap<String, Option<String>>,
}

impl Store for StoreHandle {
    fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        self.0.open.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(CountingTransaction { store: self.0.clone(), writes: BTreeMap::new() }))
    }
}

impl Drop for CountingTransaction {
    fn drop(&mut self) {
        self.store.open.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Transaction for CountingTransaction {
    fn get(&mut self, key: &str) -> Result<Option<String>, StoreError> {
        Ok(self.store.data.lock().unwrap().get(key).cloned())
    }
    fn scan(&mut self, start: &str, end: &str, limit: u32, _: bool) -> Result<Vec<(String, String)>, StoreError> {
        let data = self.store.data.lock().unwrap();
        let range = data.range(start.to_owned()..end.to_owned()).take(limit as usize);
        Ok(range.map(|(k, v)| (k.clone(), v.clone())).collect())
    }
    fn put(&mut self, key: String, value: String) -> Result<(), StoreError> {
        self.writes.insert(key, Some(value));
        Ok(())
    }
    fn delete(&mut self, key: String) -> Result<(), StoreError> {
        self.writes.insert(key, None);
        Ok(())
    }
    async fn commit(mut self: Box<Self>) -> Result<(), CommitError> {
        if self.store.stall.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        let mut data = self.store.data.lock().unwrap();
        for (key, value) in std::mem::take(&mut self.writes) {
            match value {
                Some(value) => data.insert(key, value),
                None => data.remove(&key),
            };
        }
        Ok(())
    }
}

/// Agent runs whose `start` does what the conversation's name says: `hang`
/// never answers, `gate` waits for a permit, `slow` takes a while, the rest
/// answer at once.
#[derive(Default)]
pub struct ScriptedRuns {
    pub entered: AtomicUsize,
    pub gate: Option<Semaphore>,
}

impl ScriptedRuns {
    pub fn gated() -> Arc<Self> {
        Arc::new(Self { entered: AtomicUsize::new(0), gate: Some(Semaphore::new(0)) })
    }
}

#[async_trait]
impl AgentRuns for ScriptedRuns {
    async fn create_thread(&self, _: &str, _: &str, _: &str, _group: &str) -> Result<(), RunError> {
        Ok(())
    }
    async fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError> {
        self.entered.fetch_add(1, Ordering::SeqCst);
        match thread {
            "hang" => std::future::pending().await,
            "slow" => tokio::time::sleep(Duration::from_millis(400)).await,
            "gate" => drop(self.gate.as_ref().unwrap().acquire().await),
            "denied" => return Err(RunError::Denied("no".into())),
            "conflict" => return Err(RunError::KeyConflict),
            _ => {}
        }
        let id = format!("{thread}/{}/{key}", input.message_id);
        Ok(Run::new(id, RunStatus::Running))
    }
    async fn resume(&self, _: &str, _: &[InterruptAnswer], _: &str) -> Result<Run, RunError> {
        Err(RunError::Busy("not here".into()))
    }
    async fn find(&self, _: &str, _: &str) -> Result<Run, RunError> {
        Err(RunError::Other("not here".into()))
    }
    async fn get(&self, _: &str, run: &str) -> Result<Run, RunError> {
        Err(RunError::NotFound(run.into()))
    }
    async fn state(&self, _: &str, _: Option<&Marker>, _: Option<&str>) -> Result<ThreadState, RunError> {
        Ok(ThreadState::default())
    }
    async fn cancel(&self, _: &str, _: &str) -> Result<Cancellation, RunError> {
        Ok(Cancellation::Accepted)
    }
}

pub struct Bench {
    pub plugin: Plugin,
    pub store: Arc<CountingStore>,
    pub signals: Arc<Signals>,
}

pub fn options() -> Options {
    Options { memory: 32 << 20, instances: 8, ..Options::default() }
}

pub fn parts(store: &Arc<CountingStore>, signals: &Arc<Signals>, settings: &str) -> Parts {
    Parts {
        store: Arc::new(StoreHandle(store.clone())),
        signals: signals.clone(),
        settings: settings.into(),
        clock: Arc::new(FixedClock),
    }
}

pub fn bench_with(component: &[u8], settings: &str, options: Options) -> anyhow::Result<Bench> {
    let (store, signals) = (Arc::<CountingStore>::default(), Arc::<Signals>::default());
    let plugin = Plugin::load(component, parts(&store, &signals, settings), options)?;
    Ok(Bench { plugin, store, signals })
}

/// A plugin around the test component.
pub fn bench(options: Options) -> Bench {
    bench_with(agent_teams_tests::guest_component(), "{}", options).unwrap()
}

impl Bench {
    pub async fn act(&self, action: &str, payload: &str) -> Result<String, CallError> {
        self.plugin.call_action(Caller::owner("ann"), None, action, payload).await
    }

    pub async fn act_with(&self, runs: Capability, action: &str, payload: &str) -> Result<String, CallError> {
        self.plugin.call_action(Caller::owner("ann"), Some(runs), action, payload).await
    }

    /// Starts an action on a task of its own.
    pub fn spawn(
        &self,
        runs: Option<Capability>,
        action: &str,
        payload: &str,
    ) -> tokio::task::JoinHandle<Result<String, CallError>> {
        let (plugin, action, payload) = (self.plugin.clone(), action.to_owned(), payload.to_owned());
        tokio::spawn(async move { plugin.call_action(Caller::owner("ann"), runs, &action, &payload).await })
    }

    /// That other calls work, and that nothing is left behind.
    pub async fn assert_healthy(&self) {
        assert_eq!(self.act("echo", "hi").await.unwrap(), "\"ann - - - hi\"".replace("- - -", "-  - -"));
        assert_eq!(self.act("lock", "L|0").await.unwrap(), "\"locked\"", "the lock is free");
        assert_eq!(self.store.open.load(Ordering::SeqCst), 0, "no transaction is open");
        assert!(!self.store.data.lock().unwrap().contains_key("dirty"), "nothing was written");
        assert_eq!(self.plugin.running(), 0, "no instance is left");
    }
}

pub fn capability(owner: &str, runs: &Arc<ScriptedRuns>) -> Capability {
    Capability { owner: owner.into(), runs: runs.clone() }
}

/// The code of a fault, or the whole answer if it is something else.
pub fn fault(answer: Result<String, CallError>) -> String {
    match answer {
        Err(CallError::Fault { code, message }) => {
            assert!(!message.contains("secret") && !message.contains('/'), "{message}");
            code.to_string()
        }
        other => format!("{other:?}").chars().take(200).collect(),
    }
}

/// What the guest's refusal says, if it is one of the kind `unavailable`
/// (an error of the host that the guest passed on).
pub fn host_error(answer: Result<String, CallError>) -> String {
    match answer {
        Err(CallError::Refused(refusal)) if refusal.kind == ErrorKind::Unavailable => refusal.message,
        other => panic!("not a host's error: {other:?}"),
    }
}

/// Lets other tasks run until `done`.
pub async fn until(done: impl Fn() -> bool) {
    while !done() {
        tokio::task::yield_now().await;
    }
}
