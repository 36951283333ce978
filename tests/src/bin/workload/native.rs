//! The component's logic without the component: compiled natively, over the
//! same store and the same agents. What the sandbox costs is the difference.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_teams_host::agents::runs as host;
use agent_teams_host::storage::{self, SqliteStore, Store};
use agent_teams_plugin::app;
use agent_teams_plugin::app::Ctx;
use agent_teams_plugin::exports::{Outcome, actions, tools};
use agent_teams_plugin::host::{
    Cancellation, CommitError, Guard, Host, Input, InterruptAnswer, Level, LockTimeout, Message, NotOwner, Role, Run,
    RunError, RunStatus, Runs, StoreError, ThreadState, Tx,
};
use anyhow::{Result, anyhow};

use crate::agents::Agents;

/// A host in this process, for one caller at a time.
pub struct Native {
    store: SqliteStore,
    agents: Agents,
    random: AtomicU64,
}

impl Native {
    pub fn new(store: SqliteStore, agents: Agents) -> Self {
        Self { store, agents, random: AtomicU64::new(1) }
    }

    pub fn action(&self, owner: &str, action: &str, payload: &str) -> Result<String> {
        let caller = app::Caller { owner: owner.into(), ..app::Caller::default() };
        let runs = NativeRuns(self.agents.of(owner));
        answer(actions::call(Ctx { host: self, caller: &caller, runs: Some(&runs) }, action, payload))
    }

    pub fn tool(&self, owner: &str, thread: &str, tool: &str, arguments: &str) -> Result<String> {
        let caller = app::Caller { owner: owner.into(), thread: Some(thread.into()), ..app::Caller::default() };
        answer(tools::call(Ctx { host: self, caller: &caller, runs: None }, tool, arguments))
    }

    pub fn mentions(&self, owner: &str, query: &str) -> Result<usize> {
        let caller = app::Caller { owner: owner.into(), ..app::Caller::default() };
        let hits = app::commands::search::hits(Ctx { host: self, caller: &caller, runs: None }, query);
        hits.map(|hits| hits.len()).map_err(|e| anyhow!(e.message))
    }

    pub fn plan(&self) -> Result<usize> {
        app::scheduling::plan::plan(self, &[], false, &[]).map(|plan| plan.steps.len()).map_err(|e| anyhow!(e.message))
    }

    /// Plans, and advances the planned teams.
    pub fn tick(&self) -> Result<()> {
        let ended = self.agents.take_ended();
        let ended: Vec<_> = ended
            .into_iter()
            .map(|e| app::scheduling::plan::Moved { owner: e.owner, thread: e.thread, run: e.run })
            .collect();
        let plan = app::scheduling::plan::plan(self, &ended, false, &[]).map_err(|e| anyhow!(e.message))?;
        for step in plan.steps {
            app::scheduling::advance::advance(self, &step.owner, &step.team, &step.permit)
                .map_err(|e| anyhow!(e.message))?;
        }
        Ok(())
    }
}

fn answer(outcome: agent_teams_plugin::domain::error::Result<Outcome>) -> Result<String> {
    match outcome {
        Ok(Outcome::Done(text)) => Ok(text),
        Ok(Outcome::Park(_)) => Err(anyhow!("the call waits")),
        Err(error) => Err(anyhow!(error.message)),
    }
}

/// Ends an asynchronous call on this thread.
fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(work))
}

fn refused(error: storage::StoreError) -> StoreError {
    match error {
        storage::StoreError::Expired => StoreError::Expired,
        storage::StoreError::TooLarge(what) => StoreError::TooLarge(what),
        storage::StoreError::Unavailable(why) => StoreError::Unavailable(why),
    }
}

struct NativeTx(RefCell<Box<dyn storage::Transaction>>);

impl Tx for NativeTx {
    fn get(&self, key: &str) -> Result<Option<String>, StoreError> {
        self.0.borrow_mut().get(key).map_err(refused)
    }

    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<String>>, StoreError> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    fn scan(&self, start: &str, end: &str, limit: u32, reverse: bool) -> Result<Vec<(String, String)>, StoreError> {
        self.0.borrow_mut().scan(start, end, limit, reverse).map_err(refused)
    }

    fn put(&self, key: &str, value: &str) -> Result<(), StoreError> {
        self.0.borrow_mut().put(key.into(), value.into()).map_err(refused)
    }

    fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.0.borrow_mut().delete(key.into()).map_err(refused)
    }

    fn commit(self: Box<Self>) -> Result<(), CommitError> {
        wait(self.0.into_inner().commit()).map_err(|error| match error {
            storage::CommitError::Conflict => CommitError::Conflict,
            storage::CommitError::Unavailable(why) => CommitError::Unavailable(why),
            storage::CommitError::Unknown(why) => CommitError::Unknown(why),
        })
    }
}

/// There is one caller, so nothing is ever held by another.
struct Free;

impl Guard for Free {}

impl Host for Native {
    fn begin(&self) -> Result<Box<dyn Tx + '_>, StoreError> {
        Ok(Box::new(NativeTx(RefCell::new(self.store.begin().map_err(refused)?))))
    }

    fn lock(&self, _name: &str, _timeout_ms: u32) -> Result<Box<dyn Guard + '_>, LockTimeout> {
        Ok(Box::new(Free))
    }

    fn lookup(&self, owner: &str, _team: &str) -> Option<Box<dyn Runs + '_>> {
        Some(Box::new(NativeRuns(self.agents.of(owner))))
    }

    fn forget(&self, _owner: &str, _team: &str) {}

    fn publish(&self, _owner: &str, _topic: &str, _revision: u64) {}

    fn position(&self, _owner: &str, _topic: &str) -> u64 {
        0
    }

    fn settings(&self) -> String {
        "{}".into()
    }

    fn log(&self, _level: Level, message: &str) {
        eprintln!("{message}");
    }

    fn now_ms(&self) -> u64 {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
    }

    fn random(&self, bytes: usize) -> Vec<u8> {
        self.random.fetch_add(1, Ordering::Relaxed).to_le_bytes().into_iter().cycle().take(bytes).collect()
    }
}

/// The agents as the component's own trait.
struct NativeRuns(Agents);

impl NativeRuns {
    fn call<T>(&self, work: impl Future<Output = Result<T, host::RunError>>) -> Result<T, RunError> {
        wait(work).map_err(|error| match error {
            host::RunError::NotFound(why) => RunError::NotFound(why),
            other => RunError::Other(other.to_string()),
        })
    }
}

fn run(run: host::Run) -> Run {
    let status = match run.status {
        host::RunStatus::Pending => RunStatus::Pending,
        host::RunStatus::Running => RunStatus::Running,
        host::RunStatus::Interrupted => RunStatus::Interrupted,
        host::RunStatus::Succeeded => RunStatus::Succeeded,
        host::RunStatus::Failed => RunStatus::Failed,
        host::RunStatus::Cancelled => RunStatus::Cancelled,
        host::RunStatus::Suspended => RunStatus::Suspended,
        host::RunStatus::Outside => RunStatus::Outside,
    };
    Run { id: run.id, status, error: run.failure.map(|why| why.text), cut: run.cut }
}

impl Runs for NativeRuns {
    fn bind(&self, _owner: &str, _team: &str) -> Result<(), NotOwner> {
        Ok(())
    }

    fn create_thread(&self, id: &str, agent: &str, title: &str, group: &str) -> Result<(), RunError> {
        self.call(host::AgentRuns::create_thread(&self.0, id, agent, title, group))
    }

    fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError> {
        let input = host::Input {
            message_id: input.message_id.clone(),
            text: input.text.clone(),
            answers: input.answers.clone(),
            provenance: input.provenance.clone(),
            ..host::Input::default()
        };
        self.call(host::AgentRuns::start(&self.0, thread, &input, key)).map(run)
    }

    fn resume(&self, thread: &str, _answers: &[InterruptAnswer], key: &str) -> Result<Run, RunError> {
        self.call(host::AgentRuns::resume(&self.0, thread, &[], key)).map(run)
    }

    fn find(&self, thread: &str, key: &str) -> Result<Run, RunError> {
        self.call(host::AgentRuns::find(&self.0, thread, key)).map(run)
    }

    fn get(&self, thread: &str, id: &str) -> Result<Run, RunError> {
        self.call(host::AgentRuns::get(&self.0, thread, id)).map(run)
    }

    fn state(
        &self,
        thread: &str,
        since: Option<(&str, Option<&str>)>,
        after: Option<&str>,
    ) -> Result<ThreadState, RunError> {
        let since = since.map(|(id, run)| host::Marker { message_id: id.into(), run: run.map(str::to_owned) });
        let state = self.call(host::AgentRuns::state(&self.0, thread, since.as_ref(), after))?;
        let message = |m: host::Message| Message {
            id: m.id,
            role: if m.role == host::Role::Human { Role::Human } else { Role::Assistant },
            text: m.text,
            shortened: m.shortened,
            run: m.run,
            question: None,
        };
        Ok(ThreadState {
            found: state.found,
            messages: state.messages.into_iter().map(message).collect(),
            active_run: state.active_run,
            ..ThreadState::default()
        })
    }

    fn cancel(&self, thread: &str, id: &str) -> Result<Cancellation, RunError> {
        self.call(host::AgentRuns::cancel(&self.0, thread, id)).map(|_| Cancellation::Stopped)
    }
}
