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
    #[error("unsupported: {0}")]
    Unsupported(String),
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
    /// Stopped by the host itself.
    Suspended,
    /// Done outside of this host.
    Outside,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub id: String,
    pub status: RunStatus,
    /// Why it failed; for [`RunStatus::Suspended`] why it was stopped.
    pub failure: Option<Failure>,
    /// Whether the model's reply was cut by a bound of its endpoint.
    pub cut: bool,
    /// Absent: not counted.
    pub usage: Option<Usage>,
    pub files: Vec<File>,
}

impl Run {
    /// A run of which no more is known than its state.
    pub fn new(id: impl Into<String>, status: RunStatus) -> Self {
        Self { id: id.into(), status, failure: None, cut: false, usage: None, files: Vec::new() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A short stable code.
    pub code: String,
    /// A clause for people.
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub calls: u32,
    pub input_tokens: u64,
    pub cached_tokens: u64,
    pub output_tokens: u64,
    /// Currency (ISO 4217) and millionths of its unit.
    pub cost: Option<(String, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub name: String,
    pub media_type: String,
    pub bytes: u64,
    pub sha256: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    pub message_id: String,
    pub text: String,
    /// Background in whole lines, most important first; may be empty.
    pub context: String,
    pub answers: Option<String>,
    /// JSON text.
    pub provenance: String,
    /// A W3C `traceparent`.
    pub trace: Option<String>,
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

/// How a human message came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Start,
    Answer,
    Steer,
    Direct,
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
    /// Whether the text was shortened to fit the page.
    pub shortened: bool,
    pub run: Option<String>,
    pub origin: Option<Origin>,
    pub answers: Option<String>,
    pub question: Option<Question>,
}

impl Message {
    /// A message of which no more is known.
    pub fn new(id: impl Into<String>, role: Role, text: impl Into<String>) -> Self {
        let (id, text) = (id.into(), text.into());
        Self { id, role, text, shortened: false, run: None, origin: None, answers: None, question: None }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupt {
    pub checkpoint: Option<String>,
    pub id: String,
    pub kind: Option<String>,
    /// JSON text.
    pub value: String,
    pub preview: Option<String>,
    /// JSON Schema of the answer.
    pub answer_schema: Option<String>,
    pub digest: Option<String>,
}

/// What a conversation's agent and its host can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The model's window, in tokens.
    pub window: Option<u32>,
    pub tool_profile: String,
    pub durable_keys: bool,
    pub steer: bool,
    pub usage: bool,
    pub groups: bool,
    pub files: bool,
    pub asks: bool,
    pub team_tools: bool,
}

/// A page of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadState {
    pub found: bool,
    pub messages: Vec<Message>,
    /// More messages follow the last of these.
    pub more: bool,
    pub interrupts: Vec<Interrupt>,
    pub open_question: Option<Question>,
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
///         context: String::new(),
///         answers: None,
///         provenance: r#"{"from":"example"}"#.into(),
///         trace: None,
///     };
///     runs.create_thread(thread, "echo", "An example", "examples").await?;
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
    async fn create_thread(&self, id: &str, agent: &str, title: &str, group: &str) -> Result<(), RunError>;

    /// Optional.
    async fn delete_thread(&self, _id: &str) -> Result<(), RunError> {
        Err(unsupported("delete-thread"))
    }

    /// Without it, nothing optional is promised.
    async fn describe(&self, _thread: &str) -> Result<Description, RunError> {
        Ok(Description { tool_profile: "full".into(), ..Description::default() })
    }
    async fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError>;
    async fn resume(&self, thread: &str, answers: &[InterruptAnswer], key: &str) -> Result<Run, RunError>;

    /// Optional.
    async fn steer(&self, _thread: &str, _run: &str, _input: &Input, _key: &str) -> Result<(), RunError> {
        Err(unsupported("steer"))
    }

    /// Optional.
    async fn go_on(&self, _thread: &str, _run: &str, _key: &str) -> Result<Run, RunError> {
        Err(unsupported("go-on"))
    }

    async fn find(&self, thread: &str, key: &str) -> Result<Run, RunError>;
    async fn get(&self, thread: &str, run: &str) -> Result<Run, RunError>;
    async fn state(&self, thread: &str, since: Option<&Marker>, after: Option<&str>) -> Result<ThreadState, RunError>;
    async fn cancel(&self, thread: &str, run: &str) -> Result<Cancellation, RunError>;
}

fn unsupported(call: &str) -> RunError {
    RunError::Unsupported(format!("this host has no `{call}`"))
}

/// A capability as the host holds it: the runs, and whose they are.
#[derive(Clone)]
pub struct Capability {
    pub owner: String,
    pub runs: std::sync::Arc<dyn AgentRuns>,
}
