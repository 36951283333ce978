//! The capability through which the component runs agents, as a trait: the
//! built-in agents implement it, other agent servers can, and tests do.
//! The rules of each call are those of `wit/agent-runs.wit`.

use async_trait::async_trait;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    #[error("denied: {0}")]
    Denied(String),
    #[error("not found: {0}")]
    NotFound(String),
    #[error("busy: {0}")]
    Busy(String),
    #[error("rejected: {0}")]
    Rejected(String),
    #[error("the key was used with other bytes")]
    KeyConflict,
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// The user has as many runs at work as may be. Nothing happened.
    #[error("too many runs: {0}")]
    TooMany(String),
    #[error("no answer in time")]
    TimedOut,
    #[error("{0}")]
    Other(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunStatus {
    Pending,
    Running,
    Interrupted,
    Succeeded,
    Failed,
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub id: String,
    pub thread: String,
    pub status: RunStatus,
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    pub message_id: String,
    pub text: String,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    pub checkpoint: Option<String>,
    pub active_run: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    pub message_id: String,
    pub run: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancellation {
    Stopped,
    Accepted,
}

/// Runs of agents on behalf of one user.
///
/// Each call checks that the user may still do this. `start` and `resume` look
/// up their key before anything else. `find` may answer
/// [`NotFound`](RunError::NotFound) only if nothing was or will be admitted for
/// an attempt made so far. `examples/agent-host.rs` implements all of it.
///
/// ```
/// use agent_teams_host::agents::runs::{AgentRuns, Input, Run, RunError, RunStatus};
///
/// /// Sends one message, and sends it again under the same key should the reply be lost.
/// async fn ask(runs: &dyn AgentRuns, thread: &str, text: &str) -> Result<RunStatus, RunError> {
///     let key = "question-1";
///     let input = Input {
///         message_id: key.into(),
///         text: text.into(),
///         answers: None,
///         provenance: r#"{"from":"example"}"#.into(),
///     };
///     runs.create_thread(thread, "echo", "An example").await?;
///     let run: Run = match runs.start(thread, &input, key).await {
///         Err(RunError::TimedOut) => match runs.find(thread, key).await {
///             Err(RunError::NotFound(_)) => runs.start(thread, &input, key).await?,
///             found => found?,
///         },
///         started => started?,
///     };
///     Ok(runs.get(thread, &run.id).await?.status)
/// }
/// ```
#[async_trait]
pub trait AgentRuns: Send + Sync + 'static {
    async fn create_thread(&self, id: &str, agent: &str, title: &str) -> Result<(), RunError>;
    async fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError>;
    async fn resume(&self, thread: &str, answers: &[InterruptAnswer], key: &str) -> Result<Run, RunError>;
    async fn find(&self, thread: &str, key: &str) -> Result<Run, RunError>;
    async fn get(&self, thread: &str, run: &str) -> Result<Run, RunError>;
    async fn state(&self, thread: &str, since: Option<&Marker>) -> Result<ThreadState, RunError>;
    async fn cancel(&self, thread: &str, run: &str) -> Result<Cancellation, RunError>;
}

/// A capability as the host holds it: the runs, and whose they are.
#[derive(Clone)]
pub struct Capability {
    pub owner: String,
    pub runs: std::sync::Arc<dyn AgentRuns>,
}
