//! The capability through which the component runs agents, as a trait: the
//! built-in agents implement it, other agent servers can, and tests do.
//! The rules of each call are those of `wit/agent-runs.wit`.

use async_trait::async_trait;

/// Why a call of an agent host did not succeed. Each case says whether anything
/// happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The user may not do this. Nothing happened.
    #[error("denied: {0}")]
    Denied(String),
    /// There is no such thing; for `find` a promise that nothing was or will be
    /// admitted under the key.
    #[error("not found: {0}")]
    NotFound(String),
    /// Something runs in the conversation, or an interrupt is open. Nothing happened.
    #[error("busy: {0}")]
    Busy(String),
    /// This input can never be admitted. Nothing happened.
    #[error("rejected: {0}")]
    Rejected(String),
    /// The key was used with another input. Nothing happened.
    #[error("the key was used with other bytes")]
    KeyConflict,
    /// Not now; nothing happened.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// This host cannot do it. Nothing happened.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// The user has as many runs at work as may be. Nothing happened.
    #[error("too many runs: {0}")]
    TooMany(String),
    /// No answer in time: it may or may not have happened.
    #[error("no answer in time")]
    TimedOut,
    /// It may or may not have happened.
    #[error("{0}")]
    Other(String),
}

/// The state of a run. Terminal: `succeeded`, `failed`, `cancelled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunStatus {
    /// Admitted, and not begun.
    Pending,
    /// At work.
    Running,
    /// Stopped at an interrupt; the run continues when it is resumed.
    Interrupted,
    /// Ended with an answer, or at an interrupt on some hosts.
    Succeeded,
    /// The run's `failure` says why.
    Failed,
    /// Ended by a cancel.
    Cancelled,
    /// Stopped by the host itself.
    Suspended,
    /// Done outside of this host.
    Outside,
}

/// A run as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Unique in the conversation.
    pub id: String,
    /// Its state.
    pub status: RunStatus,
    /// Why it failed; for [`RunStatus::Suspended`] why it was stopped.
    pub failure: Option<Failure>,
    /// Whether the model's reply was cut by a bound of its endpoint.
    pub cut: bool,
    /// Absent: not counted.
    pub usage: Option<Usage>,
    /// What it has made so far; may be empty.
    pub files: Vec<File>,
}

impl Run {
    /// A run of which no more is known than its state.
    pub fn new(id: impl Into<String>, status: RunStatus) -> Self {
        Self { id: id.into(), status, failure: None, cut: false, usage: None, files: Vec::new() }
    }
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A short stable code.
    pub code: String,
    /// A clause for people.
    pub text: String,
}

/// What a run has used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Calls of a model.
    pub calls: u32,
    /// Tokens read, those from a cache among them.
    pub input_tokens: u64,
    /// Tokens read from a cache.
    pub cached_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Currency (ISO 4217) and millionths of its unit.
    pub cost: Option<(String, u64)>,
}

/// A file that a run has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// A relative path.
    pub name: String,
    /// For example `text/markdown`.
    pub media_type: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal; the host gives the file by it.
    pub sha256: String,
}

/// The human message that a run is started with. All its bytes belong to the
/// key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// Chosen by the caller; unique in the conversation. A host may rewrite
    /// it, but then stamps the run's id on the message.
    pub message_id: String,
    /// What must be read.
    pub text: String,
    /// Background in whole lines, most important first; may be empty.
    pub context: String,
    /// The open question (its id) that this message answers. Absent: none.
    pub answers: Option<String>,
    /// JSON text.
    pub provenance: String,
    /// A W3C `traceparent`.
    pub trace: Option<String>,
}

/// An answer to one open interrupt, named by checkpoint and id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptAnswer {
    /// That of the interrupt.
    pub checkpoint: Option<String>,
    /// That of the interrupt.
    pub id: String,
    /// JSON text.
    pub value: String,
}

/// Who wrote a message. A host leaves out messages of any other kind, such
/// as system messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A person, or the team on behalf of one.
    Human,
    /// The agent.
    Assistant,
    /// The result of a call.
    Tool,
}

/// How a human message came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It started a run (`start`).
    Start,
    /// It answers a question (`start` with `answers`).
    Answer,
    /// It was added to a run under way (`steer`).
    Steer,
    /// A person wrote it in the conversation itself.
    Direct,
}

/// A clarification that an agent asked by ending its turn with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Unique in the conversation.
    pub id: String,
    /// What is asked; a very long text is shortened by the component.
    pub text: String,
    /// Suggested answers; may be empty.
    pub options: Vec<String>,
    /// Whether a later message has answered it.
    pub answered: bool,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Unique in the conversation.
    pub id: String,
    /// Who wrote it.
    pub role: Role,
    /// All text parts, joined. Valid Unicode: the host replaces what is not.
    pub text: String,
    /// Whether the text was shortened to fit the page.
    pub shortened: bool,
    /// The run that the host stamped on the message. Absent: not stamped.
    pub run: Option<String>,
    /// Absent: not known, or not a human message.
    pub origin: Option<Origin>,
    /// The question that this message answers. Absent: none.
    pub answers: Option<String>,
    /// The question that this message asks. Absent: it asks none.
    pub question: Option<Question>,
}

impl Message {
    /// A message of which no more is known.
    pub fn new(id: impl Into<String>, role: Role, text: impl Into<String>) -> Self {
        let (id, text) = (id.into(), text.into());
        Self { id, role, text, shortened: false, run: None, origin: None, answers: None, question: None }
    }
}

/// An open interrupt: the run waits for an explicit JSON value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupt {
    /// Names the interrupt together with its id. Absent: the id is enough.
    pub checkpoint: Option<String>,
    /// Unique among those of its checkpoint.
    pub id: String,
    /// What kind of answer is wanted (for example `approval`). Absent: what
    /// `value` says.
    pub kind: Option<String>,
    /// JSON text.
    pub value: String,
    /// What would happen, in words for people. Absent: `value` must do.
    pub preview: Option<String>,
    /// JSON Schema of the answer.
    pub answer_schema: Option<String>,
    /// A digest of everything that the answer counts for, where `value` shows
    /// it in part. Absent: `value` is all of it.
    pub digest: Option<String>,
}

/// What a conversation's agent and its host can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The model's window, in tokens.
    pub window: Option<u32>,
    /// The profile of tools that fits the model; given to `tools.list`.
    pub tool_profile: String,
    /// Whether a key is known for as long as its conversation, so that `find`
    /// may answer `not-found`.
    pub durable_keys: bool,
    /// Whether `steer` works.
    pub steer: bool,
    /// Whether runs tell their usage.
    pub usage: bool,
    /// Whether conversations of one group share what belongs to it (files).
    pub groups: bool,
    /// Whether runs tell their files.
    pub files: bool,
    /// Whether the agent can ask a person.
    pub asks: bool,
    /// Whether the agent has the team's tools.
    pub team_tools: bool,
}

/// A page of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadState {
    /// Whether the marker's message was found. If not, `messages` is empty.
    pub found: bool,
    /// In order, from the marker's message or the one behind `after`; at most
    /// 500, and small enough for an instance's memory. A single long text may
    /// be shortened, which it says.
    pub messages: Vec<Message>,
    /// More messages follow the last of these.
    pub more: bool,
    /// All interrupts that are open now.
    pub interrupts: Vec<Interrupt>,
    /// The question of the conversation's last turn, if nothing has answered
    /// it, whatever caused that turn. Absent: none.
    pub open_question: Option<Question>,
    /// The run that is under way in this conversation. Absent: none. A run that
    /// stopped at an interrupt, or that is suspended, is not under way.
    pub active_run: Option<String>,
}

/// Names a job's own human message: by its id, or, where the host rewrote
/// it, as the human message that carries this run's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// As it was given to `start`.
    pub message_id: String,
    /// The run that it started. Absent: not known.
    pub run: Option<String>,
}

/// What came of a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancellation {
    /// The run has ended.
    Stopped,
    /// The host accepted the cancellation; the run may take a while to end.
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
    /// The names of the agents with which this user may create conversations,
    /// as `create_thread` takes them. Optional: without it, `create_thread` alone
    /// decides.
    async fn agents(&self) -> Result<Vec<String>, RunError> {
        Err(unsupported("agents"))
    }

    /// Creates the conversation `id`, bound to `agent`, or leaves an existing
    /// one with the same agent as it is. `group` names what belongs together
    /// (the team). `rejected`: no such agent (any more), or `id` is bound to
    /// another one. A team that was complete once is connected all the same:
    /// only the members whose conversations are rejected cannot work.
    async fn create_thread(&self, id: &str, agent: &str, title: &str, group: &str) -> Result<(), RunError>;

    /// Optional.
    async fn delete_thread(&self, _id: &str) -> Result<(), RunError> {
        Err(unsupported("delete-thread"))
    }

    /// Without it, nothing optional is promised.
    async fn describe(&self, _thread: &str) -> Result<Description, RunError> {
        Ok(Description { tool_profile: "full".into(), ..Description::default() })
    }
    /// Starts a run with one human message. Looks up `key` before any other
    /// check: the same key with the same bytes answers with the run that it
    /// started, in whatever state; with other bytes it is a `key-conflict`.
    /// Keys of `start`, `resume`, `steer` and `go-on` share one space in each
    /// conversation.
    async fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError>;
    /// Answers open interrupts and continues, in the same run or in a new one.
    /// Keys as for `start`. `rejected`: the host cannot use this answer, and
    /// nothing happened; the caller then reads from `state` whether it is still
    /// asked for.
    async fn resume(&self, thread: &str, answers: &[InterruptAnswer], key: &str) -> Result<Run, RunError>;

    /// Optional.
    async fn steer(&self, _thread: &str, _run: &str, _input: &Input, _key: &str) -> Result<(), RunError> {
        Err(unsupported("steer"))
    }

    /// Optional.
    async fn go_on(&self, _thread: &str, _run: &str, _key: &str) -> Result<Run, RunError> {
        Err(unsupported("go-on"))
    }

    /// The run that `key` started in this conversation. `not-found` is a
    /// promise: nothing was or will be admitted for an attempt made so far
    /// under this key (a later one with the same bytes may be). A host without
    /// durable keys answers `other` for a key that it does not know. The
    /// component asks this before it sends an input again.
    async fn find(&self, thread: &str, key: &str) -> Result<Run, RunError>;
    /// A run as it is now.
    async fn get(&self, thread: &str, run: &str) -> Result<Run, RunError>;
    /// The conversation from `since` on, or from the message behind `after` on;
    /// with neither, the questions and interrupts only. `not-found`: no such
    /// conversation, or no state yet. An `after` that is not in the conversation
    /// (any more) gives `found` as false.
    async fn state(&self, thread: &str, since: Option<&Marker>, after: Option<&str>) -> Result<ThreadState, RunError>;
    /// Ends a run. One that stopped at interrupts ends, too: they are withdrawn,
    /// and `state` does not report them any more. A run that has ended already
    /// stays as it is, and the answer is `stopped`. May be repeated.
    async fn cancel(&self, thread: &str, run: &str) -> Result<Cancellation, RunError>;
}

fn unsupported(call: &str) -> RunError {
    RunError::Unsupported(format!("this host has no `{call}`"))
}

/// A capability as the host holds it: the runs, and whose they are.
#[derive(Clone)]
pub struct Capability {
    /// The user on whose behalf it acts.
    pub owner: String,
    /// The agents as this user may use them.
    pub runs: std::sync::Arc<dyn AgentRuns>,
}
