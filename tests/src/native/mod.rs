//! A native host of the component's logic: an in-memory store with optimistic
//! commits, real locks, a process-local table of capabilities, signals, a
//! fake clock and seeded randomness.

mod forward;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use agent_teams_plugin::host::{
    Cancellation, Guard, Host, Input, InterruptAnswer, Level, LockTimeout, NotOwner, Run, RunError, Runs, StoreError,
    ThreadState, Tx,
};

pub use forward::{Cost, Forward};
pub use store::{CommitFault, MemoryStore};

use crate::clock::FakeClock;
use crate::double::{Call, Double, Method, rules};

/// What lives in the process alone: capabilities, topics, held locks.
#[derive(Default)]
struct Process {
    connections: Mutex<BTreeMap<(String, String), NativeRuns>>,
    topics: Mutex<BTreeMap<(String, String), u64>>,
    locks: Mutex<BTreeSet<String>>,
    freed: Condvar,
}

/// A host in this process. Clones are the same host.
#[derive(Clone)]
pub struct NativeHost {
    store: MemoryStore,
    process: Arc<Process>,
    clock: FakeClock,
    random: Arc<Mutex<u64>>,
    settings: Arc<Mutex<String>>,
    log: Arc<Mutex<Vec<(Level, String)>>>,
}

impl NativeHost {
    /// A host over a store; the same seed gives the same random bytes.
    pub fn new(store: MemoryStore, clock: FakeClock, seed: u64) -> Self {
        Self {
            store,
            process: Arc::default(),
            clock,
            random: Arc::new(Mutex::new(seed)),
            settings: Arc::new(Mutex::new(String::new())),
            log: Arc::default(),
        }
    }

    /// The deployment's settings, as JSON text.
    pub fn set_settings(&self, settings: &str) {
        *lock(&self.settings) = settings.into();
    }

    /// The process ends and another one begins: connections, topics and locks
    /// are gone, the store is not.
    pub fn restarted(&self) -> Self {
        Self { process: Arc::default(), ..self.clone() }
    }

    pub fn store(&self) -> &MemoryStore {
        &self.store
    }

    pub fn clock(&self) -> &FakeClock {
        &self.clock
    }

    /// The capability of a user, for this process's table.
    pub fn runs(&self, double: &Double, owner: &str) -> NativeRuns {
        NativeRuns { double: double.clone(), owner: owner.into(), process: self.process.clone() }
    }

    /// What the component wrote to the log.
    pub fn log_lines(&self) -> Vec<(Level, String)> {
        lock(&self.log).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

struct Held<'a> {
    process: &'a Process,
    name: String,
}

impl Guard for Held<'_> {}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        lock(&self.process.locks).remove(&self.name);
        self.process.freed.notify_all();
    }
}

impl Host for NativeHost {
    fn begin(&self) -> Result<Box<dyn Tx + '_>, StoreError> {
        Ok(Box::new(self.store.begin()?))
    }

    fn lock(&self, name: &str, timeout_ms: u32) -> Result<Box<dyn Guard + '_>, LockTimeout> {
        let until = Instant::now() + Duration::from_millis(timeout_ms.into());
        let mut locks = lock(&self.process.locks);
        while locks.contains(name) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(LockTimeout);
            }
            locks = self.process.freed.wait_timeout(locks, left).unwrap_or_else(|e| e.into_inner()).0;
        }
        locks.insert(name.into());
        Ok(Box::new(Held { process: &self.process, name: name.into() }))
    }

    fn lookup(&self, owner: &str, team: &str) -> Option<Box<dyn Runs + '_>> {
        let found = lock(&self.process.connections).get(&(owner.into(), team.into())).cloned()?;
        Some(Box::new(found))
    }

    fn forget(&self, owner: &str, team: &str) {
        lock(&self.process.connections).remove(&(owner.into(), team.into()));
    }

    fn publish(&self, owner: &str, topic: &str, _revision: u64) {
        *lock(&self.process.topics).entry((owner.into(), topic.into())).or_default() += 1;
    }

    fn position(&self, owner: &str, topic: &str) -> u64 {
        lock(&self.process.topics).get(&(owner.into(), topic.into())).copied().unwrap_or(0)
    }

    fn settings(&self) -> String {
        lock(&self.settings).clone()
    }

    fn log(&self, level: Level, message: &str) {
        lock(&self.log).push((level, message.into()));
    }

    fn now_ms(&self) -> u64 {
        self.clock.now()
    }

    fn random(&self, bytes: usize) -> Vec<u8> {
        let mut state = lock(&self.random);
        (0..bytes).map(|_| (splitmix(&mut state) >> 24) as u8).collect()
    }
}

/// The next number of the SplitMix64 sequence.
pub fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The double's runs on behalf of one user, in one process.
#[derive(Clone)]
pub struct NativeRuns {
    double: Double,
    owner: String,
    process: Arc<Process>,
}

impl NativeRuns {
    fn begin(&self, method: Method, thread: &str) -> Call {
        Call::new(&self.owner, method, thread)
    }
}

impl Runs for NativeRuns {
    fn bind(&self, owner: &str, team: &str) -> Result<(), NotOwner> {
        if owner != self.owner {
            return Err(NotOwner);
        }
        lock(&self.process.connections).insert((owner.into(), team.into()), self.clone());
        Ok(())
    }

    fn agents(&self) -> Result<Vec<String>, RunError> {
        self.double.listed()
    }

    fn create_thread(&self, id: &str, agent: &str, _title: &str, _group: &str) -> Result<(), RunError> {
        let call = self.begin(Method::CreateThread, id).input(agent.into());
        self.double.blocking(&self.owner, call, |inner| rules::create_thread(inner, &self.owner, id, agent))
    }

    fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError> {
        let call = self.begin(Method::Start, thread).key(key).input(format!("{input:?}"));
        self.double.blocking(&self.owner, call, |inner| rules::start(inner, &self.owner, thread, input, key))
    }

    fn resume(&self, thread: &str, answers: &[InterruptAnswer], key: &str) -> Result<Run, RunError> {
        let call = self.begin(Method::Resume, thread).key(key).input(format!("{answers:?}"));
        self.double.blocking(&self.owner, call, |inner| rules::resume(inner, &self.owner, thread, answers, key))
    }

    fn find(&self, thread: &str, key: &str) -> Result<Run, RunError> {
        let call = self.begin(Method::Find, thread).key(key);
        self.double.blocking(&self.owner, call, |inner| rules::find(inner, &self.owner, thread, key))
    }

    fn get(&self, thread: &str, run: &str) -> Result<Run, RunError> {
        let call = self.begin(Method::Get, thread).run(run);
        self.double.blocking(&self.owner, call, |inner| rules::get(inner, &self.owner, thread, run))
    }

    fn state(
        &self,
        thread: &str,
        since: Option<(&str, Option<&str>)>,
        after: Option<&str>,
    ) -> Result<ThreadState, RunError> {
        let call = self.begin(Method::State, thread);
        self.double.blocking(&self.owner, call, |inner| rules::state(inner, &self.owner, thread, since, after))
    }

    fn cancel(&self, thread: &str, run: &str) -> Result<Cancellation, RunError> {
        let call = self.begin(Method::Cancel, thread).run(run);
        self.double.blocking(&self.owner, call, |inner| rules::cancel(inner, &self.owner, thread, run))
    }
}
