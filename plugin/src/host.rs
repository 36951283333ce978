//! What the application reaches outside itself, as traits: the component's
//! imports implement them, and so do the hosts of tests and simulations. The
//! rules of each call are those of the contract (`wit/`).

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The snapshot is gone: begin again.
    Expired,
    TooLarge(String),
    Unavailable(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitError {
    /// Something that was read has changed; nothing was written.
    Conflict,
    /// Nothing was written.
    Unavailable(String),
    /// It may or may not have been written.
    Unknown(String),
}

/// One unit of work on one snapshot; dropping it undoes everything.
pub trait Tx {
    fn get(&self, key: &str) -> Result<Option<String>, StoreError>;
    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<String>>, StoreError>;
    fn scan(&self, start: &str, end: &str, limit: u32, reverse: bool) -> Result<Vec<(String, String)>, StoreError>;
    fn put(&self, key: &str, value: &str) -> Result<(), StoreError>;
    fn delete(&self, key: &str) -> Result<(), StoreError>;
    fn commit(self: Box<Self>) -> Result<(), CommitError>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    Denied(String),
    NotFound(String),
    Busy(String),
    Rejected(String),
    KeyConflict,
    Unavailable(String),
    Unsupported(String),
    TimedOut,
    Other(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    Pending,
    Running,
    Interrupted,
    Succeeded,
    Failed,
    Cancelled,
    /// Stopped by the host, which can continue it.
    Suspended,
    /// The work is done outside of the host.
    Outside,
}

/// A run, as far as the application looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub id: String,
    pub status: RunStatus,
    /// Why it failed, for people.
    pub error: Option<String>,
    /// The model's reply was cut.
    pub cut: bool,
}

/// The human message that a run is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    pub message_id: String,
    pub text: String,
    /// Background in whole lines; may be empty.
    pub context: String,
    pub answers: Option<String>,
    /// JSON text.
    pub provenance: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptAnswer {
    pub checkpoint: Option<String>,
    pub id: String,
    /// JSON text.
    pub value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Human,
    Assistant,
    Tool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub id: String,
    pub text: String,
    pub options: Vec<String>,
    pub answered: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub id: String,
    pub role: Role,
    pub text: String,
    /// The host shortened the text.
    pub shortened: bool,
    pub run: Option<String>,
    pub question: Option<Question>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    pub checkpoint: Option<String>,
    pub id: String,
    /// JSON text.
    pub value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadState {
    pub found: bool,
    pub messages: Vec<Message>,
    pub more: bool,
    pub interrupts: Vec<Interrupt>,
    pub open_question: Option<Question>,
    pub active_run: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancellation {
    Stopped,
    Accepted,
}

/// The capability: runs of the host's agents on behalf of one user.
pub trait Runs {
    /// Enters this capability into the host's table for an owner's team.
    fn bind(&self, owner: &str, team: &str) -> Result<(), NotOwner>;
    /// The names of the agents that this user may use.
    fn agents(&self) -> Result<Vec<String>, RunError> {
        Err(RunError::Unsupported("this host does not list its agents".into()))
    }
    /// `group`: the team.
    fn create_thread(&self, id: &str, agent: &str, title: &str, group: &str) -> Result<(), RunError>;
    fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError>;
    fn resume(&self, thread: &str, answers: &[InterruptAnswer], key: &str) -> Result<Run, RunError>;
    fn find(&self, thread: &str, key: &str) -> Result<Run, RunError>;
    fn get(&self, thread: &str, run: &str) -> Result<Run, RunError>;
    /// `since`: the message id of the marker and the run that may be stamped
    /// on it instead. `after`: the last message of the page before.
    fn state(
        &self,
        thread: &str,
        since: Option<(&str, Option<&str>)>,
        after: Option<&str>,
    ) -> Result<ThreadState, RunError>;
    fn cancel(&self, thread: &str, run: &str) -> Result<Cancellation, RunError>;
}

/// A held lock; dropping it releases it.
pub trait Guard {}

/// The lock was not to be had; nothing happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockTimeout;

/// The capability belongs to another owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotOwner;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// Everything outside.
pub trait Host {
    fn begin(&self) -> Result<Box<dyn Tx + '_>, StoreError>;
    fn lock(&self, name: &str, timeout_ms: u32) -> Result<Box<dyn Guard + '_>, LockTimeout>;
    fn lookup(&self, owner: &str, team: &str) -> Option<Box<dyn Runs + '_>>;
    fn forget(&self, owner: &str, team: &str);
    fn publish(&self, owner: &str, topic: &str, revision: u64);
    fn position(&self, owner: &str, topic: &str) -> u64;
    /// JSON text.
    fn settings(&self) -> String;
    fn log(&self, level: Level, message: &str);
    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn now_ms(&self) -> u64;
    fn random(&self, bytes: usize) -> Vec<u8>;
}
