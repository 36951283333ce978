//! The host, through the component's imports.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::bindings::agent_teams::plugin::{agent_runs, connections, locks, log, settings, signals, storage};
use crate::bindings::wasi::clocks::wall_clock;
use crate::bindings::wasi::random::random;
use crate::host::{
    Cancellation, CommitError, Guard, Host, Input, Interrupt, InterruptAnswer, Level, LockTimeout, Message, NotOwner,
    Question, Role, Run, RunError, RunStatus, Runs, StoreError, ThreadState, Tx,
};

/// The imports.
pub struct Imports;

struct Transaction(storage::Transaction);

fn store_error(error: storage::Error) -> StoreError {
    match error {
        storage::Error::NotFound => StoreError::Unavailable("the host answered not-found out of place".to_string()),
        storage::Error::Expired => StoreError::Expired,
        storage::Error::TooLarge(what) => StoreError::TooLarge(what),
        storage::Error::Unavailable(why) => StoreError::Unavailable(why),
    }
}

impl Tx for Transaction {
    fn get(&self, key: &str) -> Result<Option<String>, StoreError> {
        match self.0.get(key) {
            Ok(value) => Ok(Some(value)),
            Err(storage::Error::NotFound) => Ok(None),
            Err(error) => Err(store_error(error)),
        }
    }

    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<String>>, StoreError> {
        self.0.get_many(keys).map_err(store_error)
    }

    fn scan(&self, start: &str, end: &str, limit: u32, reverse: bool) -> Result<Vec<(String, String)>, StoreError> {
        let entries = self.0.scan(start, end, limit, reverse).map_err(store_error)?;
        Ok(entries.into_iter().map(|e| (e.key, e.value)).collect())
    }

    fn put(&self, key: &str, value: &str) -> Result<(), StoreError> {
        self.0.put(key, value).map_err(store_error)
    }

    fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.0.delete(key).map_err(store_error)
    }

    fn commit(self: Box<Self>) -> Result<(), CommitError> {
        storage::Transaction::commit(self.0).map_err(|error| match error {
            storage::CommitError::Conflict => CommitError::Conflict,
            storage::CommitError::Unavailable(why) => CommitError::Unavailable(why),
            storage::CommitError::Unknown(why) => CommitError::Unknown(why),
        })
    }
}

struct Held(#[allow(dead_code)] locks::Guard);

impl Guard for Held {}

/// A capability, lent for a call or owned by this instance.
pub struct Capability<R>(pub R);

fn run_error(error: agent_runs::Error) -> RunError {
    match error {
        agent_runs::Error::Denied(why) => RunError::Denied(why),
        agent_runs::Error::NotFound(why) => RunError::NotFound(why),
        agent_runs::Error::Busy(why) => RunError::Busy(why),
        agent_runs::Error::Rejected(why) => RunError::Rejected(why),
        agent_runs::Error::KeyConflict => RunError::KeyConflict,
        agent_runs::Error::Unavailable(why) => RunError::Unavailable(why),
        agent_runs::Error::Unsupported(why) => RunError::Unsupported(why),
        agent_runs::Error::TimedOut => RunError::TimedOut,
        agent_runs::Error::Other(why) => RunError::Other(why),
    }
}

fn run(run: agent_runs::Run) -> Run {
    let status = match run.status {
        agent_runs::RunStatus::Pending => RunStatus::Pending,
        agent_runs::RunStatus::Running => RunStatus::Running,
        agent_runs::RunStatus::Interrupted => RunStatus::Interrupted,
        agent_runs::RunStatus::Succeeded => RunStatus::Succeeded,
        agent_runs::RunStatus::Failed => RunStatus::Failed,
        agent_runs::RunStatus::Cancelled => RunStatus::Cancelled,
        agent_runs::RunStatus::Suspended(_) => RunStatus::Suspended,
        agent_runs::RunStatus::Outside => RunStatus::Outside,
    };
    Run { id: run.id, status, error: run.failure.map(|failure| failure.text), cut: run.cut }
}

fn question(question: agent_runs::Question) -> Question {
    Question { id: question.id, text: question.text, options: question.options, answered: question.answered }
}

fn message(message: agent_runs::Message) -> Message {
    let role = match message.role {
        agent_runs::Role::Human => Role::Human,
        agent_runs::Role::Assistant => Role::Assistant,
        agent_runs::Role::Tool => Role::Tool,
    };
    Message {
        id: message.id,
        role,
        text: message.text,
        shortened: message.shortened,
        run: message.run,
        question: message.question.map(question),
    }
}

impl<R: core::borrow::Borrow<agent_runs::Runs>> Runs for Capability<R> {
    fn bind(&self, owner: &str, team: &str) -> Result<(), NotOwner> {
        connections::bind(owner, team, self.0.borrow()).map_err(|_| NotOwner)
    }

    fn agents(&self) -> Result<Vec<String>, RunError> {
        self.0.borrow().agents().map_err(run_error)
    }

    fn create_thread(&self, id: &str, agent: &str, title: &str, group: &str) -> Result<(), RunError> {
        self.0.borrow().create_thread(id, agent, title, group).map_err(run_error)
    }

    fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError> {
        let input = agent_runs::Input {
            message_id: input.message_id.clone(),
            text: input.text.clone(),
            context: input.context.clone(),
            answers: input.answers.clone(),
            provenance: input.provenance.clone(),
            trace: None,
        };
        self.0.borrow().start(thread, &input, key).map(run).map_err(run_error)
    }

    fn resume(&self, thread: &str, answers: &[InterruptAnswer], key: &str) -> Result<Run, RunError> {
        let answers: Vec<agent_runs::InterruptAnswer> = answers
            .iter()
            .map(|a| agent_runs::InterruptAnswer {
                checkpoint: a.checkpoint.clone(),
                id: a.id.clone(),
                value: a.value.clone(),
            })
            .collect();
        self.0.borrow().resume(thread, &answers, key).map(run).map_err(run_error)
    }

    fn find(&self, thread: &str, key: &str) -> Result<Run, RunError> {
        self.0.borrow().find(thread, key).map(run).map_err(run_error)
    }

    fn get(&self, thread: &str, id: &str) -> Result<Run, RunError> {
        self.0.borrow().get(thread, id).map(run).map_err(run_error)
    }

    fn state(
        &self,
        thread: &str,
        since: Option<(&str, Option<&str>)>,
        after: Option<&str>,
    ) -> Result<ThreadState, RunError> {
        let marker = since.map(|(message, run)| agent_runs::Marker {
            message_id: message.to_string(),
            run: run.map(ToString::to_string),
        });
        let state = self.0.borrow().state(thread, marker.as_ref(), after).map_err(run_error)?;
        Ok(ThreadState {
            found: state.found,
            messages: state.messages.into_iter().map(message).collect(),
            more: state.more,
            interrupts: state
                .interrupts
                .into_iter()
                .map(|i| Interrupt { checkpoint: i.checkpoint, id: i.id, value: i.value })
                .collect(),
            open_question: state.open_question.map(question),
            active_run: state.active_run,
        })
    }

    fn cancel(&self, thread: &str, id: &str) -> Result<Cancellation, RunError> {
        match self.0.borrow().cancel(thread, id).map_err(run_error)? {
            agent_runs::Cancellation::Stopped => Ok(Cancellation::Stopped),
            agent_runs::Cancellation::Accepted => Ok(Cancellation::Accepted),
        }
    }
}

impl Host for Imports {
    fn begin(&self) -> Result<Box<dyn Tx + '_>, StoreError> {
        Ok(Box::new(Transaction(storage::begin().map_err(store_error)?)))
    }

    fn lock(&self, name: &str, timeout_ms: u32) -> Result<Box<dyn Guard + '_>, LockTimeout> {
        Ok(Box::new(Held(locks::acquire(name, timeout_ms).map_err(|_| LockTimeout)?)))
    }

    fn lookup(&self, owner: &str, team: &str) -> Option<Box<dyn Runs + '_>> {
        Some(Box::new(Capability(connections::lookup(owner, team).ok()?)))
    }

    fn forget(&self, owner: &str, team: &str) {
        connections::forget(owner, team);
    }

    fn publish(&self, owner: &str, topic: &str, revision: u64) {
        signals::publish(owner, topic, revision);
    }

    fn position(&self, owner: &str, topic: &str) -> u64 {
        signals::position(owner, topic)
    }

    fn settings(&self) -> String {
        settings::get()
    }

    fn log(&self, level: Level, message: &str) {
        let level = match level {
            Level::Debug => log::Level::Debug,
            Level::Info => log::Level::Info,
            Level::Warn => log::Level::Warn,
            Level::Error => log::Level::Error,
        };
        log::write(level, message);
    }

    fn now_ms(&self) -> u64 {
        let now = wall_clock::now();
        now.seconds * 1000 + u64::from(now.nanoseconds / 1_000_000)
    }

    fn random(&self, bytes: usize) -> Vec<u8> {
        random::get_random_bytes(bytes as u64)
    }
}
