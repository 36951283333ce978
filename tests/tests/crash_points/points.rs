//! The places at which a process dies, and the wrappers that pass through them:
//! around the store's commits, and around what the component asks of agents
//! that changes something.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agent_teams_host::agents::runs::{
    AgentRuns, Cancellation, Capability, Input, InterruptAnswer, Marker, Run, RunError, ThreadState,
};
use agent_teams_host::storage::{CommitError, Store, StoreError, Transaction};
use async_trait::async_trait;

/// The points of one process.
pub struct Points {
    passed: AtomicU32,
    at: u32,
}

impl Points {
    pub fn new(at: u32) -> Arc<Self> {
        Arc::new(Self { passed: AtomicU32::new(0), at })
    }

    /// One more point. The process dies here if it is the one: nothing is
    /// closed, nothing is written, no other thread gets any further.
    fn pass(&self) {
        if self.passed.fetch_add(1, Ordering::SeqCst) + 1 == self.at {
            std::process::abort();
        }
    }
}

/// A store with a point before and after each commit that writes.
pub struct Stored<S> {
    pub store: S,
    pub points: Arc<Points>,
}

impl<S: Store> Store for Stored<S> {
    fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        let tx = self.store.begin()?;
        Ok(Box::new(Writes { tx, wrote: false, points: self.points.clone() }))
    }
}

struct Writes {
    tx: Box<dyn Transaction>,
    wrote: bool,
    points: Arc<Points>,
}

#[async_trait]
impl Transaction for Writes {
    fn get(&mut self, key: &str) -> Result<Option<String>, StoreError> {
        self.tx.get(key)
    }
    fn scan(&mut self, start: &str, end: &str, limit: u32, reverse: bool) -> Result<Vec<(String, String)>, StoreError> {
        self.tx.scan(start, end, limit, reverse)
    }
    fn put(&mut self, key: String, value: String) -> Result<(), StoreError> {
        self.wrote = true;
        self.tx.put(key, value)
    }
    fn delete(&mut self, key: String) -> Result<(), StoreError> {
        self.wrote = true;
        self.tx.delete(key)
    }
    async fn commit(self: Box<Self>) -> Result<(), CommitError> {
        if !self.wrote {
            return self.tx.commit().await;
        }
        self.points.pass();
        let done = self.tx.commit().await;
        self.points.pass();
        done
    }
}

/// A capability with a point before and after each call that changes something.
pub struct Asked {
    pub runs: Arc<dyn AgentRuns>,
    pub points: Arc<Points>,
}

impl Asked {
    pub fn wrap(capability: Capability, points: &Arc<Points>) -> Capability {
        let Capability { owner, runs } = capability;
        Capability { owner, runs: Arc::new(Self { runs, points: points.clone() }) }
    }
}

#[async_trait]
impl AgentRuns for Asked {
    async fn create_thread(&self, id: &str, agent: &str, title: &str, _group: &str) -> Result<(), RunError> {
        self.points.pass();
        let done = self.runs.create_thread(id, agent, title, "group").await;
        self.points.pass();
        done
    }
    async fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError> {
        self.points.pass();
        let done = self.runs.start(thread, input, key).await;
        self.points.pass();
        done
    }
    async fn resume(&self, thread: &str, answers: &[InterruptAnswer], key: &str) -> Result<Run, RunError> {
        self.points.pass();
        let done = self.runs.resume(thread, answers, key).await;
        self.points.pass();
        done
    }
    async fn find(&self, thread: &str, key: &str) -> Result<Run, RunError> {
        self.runs.find(thread, key).await
    }
    async fn get(&self, thread: &str, run: &str) -> Result<Run, RunError> {
        self.runs.get(thread, run).await
    }
    async fn state(&self, thread: &str, since: Option<&Marker>, after: Option<&str>) -> Result<ThreadState, RunError> {
        self.runs.state(thread, since, after).await
    }
    async fn cancel(&self, thread: &str, run: &str) -> Result<Cancellation, RunError> {
        self.points.pass();
        let done = self.runs.cancel(thread, run).await;
        self.points.pass();
        done
    }
}
