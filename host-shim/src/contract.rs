//! The contract's words in plain Rust: what crosses between the component and
//! the rest of the host. Only `engine` knows how they travel.

use serde::Serialize;

/// Who makes a call. Made from what the host has authenticated and from
/// nothing else; see `wit/types.wit`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The authenticated user, 1 to 256 bytes. Every record read or written by
    /// the call belongs to this owner; nothing of another owner can be named
    /// through it. A capability that comes with the call belongs to the same
    /// user.
    pub owner: String,
    /// The conversation from which a tool is called, 1 to 256 bytes. Absent:
    /// the owner acts from outside any conversation (the page, the API).
    pub thread: Option<String>,
    /// The conversations above `thread`, nearest first, for an agent that a
    /// member started; 1 to 256 bytes each. The host vouches for each. Empty:
    /// none.
    pub ancestors: Vec<String>,
    /// The run inside which the call is made, 1 to 256 bytes. Absent: none.
    pub run: Option<String>,
    /// Names this call among all calls of `thread`, 1 to 256 bytes, made by the
    /// host from run, message number and index. A repetition of a call after a
    /// crash carries the same id and is answered with the first reply. Absent:
    /// the caller wants no such memory (the owner's actions carry request ids
    /// of their own).
    pub call: Option<String>,
    /// The program that calls for the owner.
    pub client: Option<String>,
    /// A W3C `traceparent`.
    pub trace: Option<String>,
}

impl Caller {
    /// The owner acting from outside any conversation.
    pub fn owner(owner: impl Into<String>) -> Self {
        Self { owner: owner.into(), ..Self::default() }
    }
}

/// What a refusal means for the caller; every kind but `Unknown` says
/// that nothing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The arguments cannot be right; send other ones.
    Invalid,
    /// There is no such thing for this owner (also when another owner has it).
    NotFound,
    /// The caller may not do this.
    Denied,
    /// It contradicts what is stored (same key with other content, a stale
    /// revision, a state that does not allow it). Read, then decide again.
    Conflict,
    /// A bound is reached; the sentence names it.
    Limit,
    /// Nothing happened and the same call may succeed later.
    Unavailable,
    /// It may or may not have happened. Repeating the same call with the
    /// same key is safe and tells which.
    Unknown,
    /// A fault of the component or its stored data.
    Internal,
    /// This component does not have the function yet. Nothing happened.
    Unsupported,
}

/// A refusal by the component (or, with `Unavailable` and `Internal`, by the
/// host around it).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    /// What it means for the caller.
    pub kind: ErrorKind,
    /// Stable and machine-readable.
    pub code: String,
    /// Says what to do.
    pub message: String,
    /// The argument at fault, as a path.
    pub field: Option<String>,
    /// More facts, as a JSON object.
    pub detail: Option<serde_json::Value>,
}

/// How a call into the component failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The component, or the host around it, refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The component trapped, ran out of memory or out of time, or the host
    /// could not start it. Only this call is hurt.
    #[error("{code}: {message}")]
    Fault {
        /// What happened.
        code: FaultCode,
        /// Says what to do; names no path and no secret.
        message: String,
    },
}

/// Why a call has no answer of the component's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultCode {
    /// The component failed, or answered something unreadable.
    Trapped,
    /// It computed, or the whole call took, longer than it may.
    TimedOut,
    /// It needed more memory than it may use.
    OutOfMemory,
    /// Too many calls at once. Nothing happened.
    Busy,
    /// It waited for as long as a call may wait.
    WaitedTooLong,
    /// The host is stopping. Nothing happened.
    Stopping,
}

impl FaultCode {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Trapped, Self::TimedOut, Self::OutOfMemory, Self::Busy, Self::WaitedTooLong, Self::Stopping];

    /// The stable word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trapped => "component_trapped",
            Self::TimedOut => "component_timeout",
            Self::OutOfMemory => "component_memory",
            Self::Busy => "component_busy",
            Self::WaitedTooLong => "call_waited_too_long",
            Self::Stopping => "host_stopping",
        }
    }
}

impl std::fmt::Display for FaultCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl CallError {
    /// Whether the call may have taken effect although it failed.
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.kind == ErrorKind::Unknown,
            Self::Fault { code, .. } => {
                matches!(code, FaultCode::Trapped | FaultCode::TimedOut | FaultCode::OutOfMemory)
            }
        }
    }
}

/// A tool of the component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolDef {
    /// How it is called.
    pub name: String,
    /// For people.
    pub title: String,
    /// For models.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: serde_json::Value,
    /// JSON Schema of its result. Absent: not said.
    pub output_schema: Option<serde_json::Value>,
    /// It changes nothing.
    pub read_only: bool,
    /// Repeating a call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// It may remove something.
    pub destructive: bool,
    /// What rules about approval name.
    pub command: String,
}

/// An action of the component, for programs and the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionDef {
    /// How it is called.
    pub name: String,
    /// For people and programs.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: serde_json::Value,
    /// JSON Schema of its result. Absent: not said.
    pub output_schema: Option<serde_json::Value>,
    /// It changes nothing.
    pub read_only: bool,
    /// Without a capability it is denied.
    pub needs_runs: bool,
}

/// A member that a search for mentions found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MentionHit {
    /// The team's id.
    pub team: String,
    /// The member's id.
    pub member: String,
    /// What to show.
    pub label: String,
    /// More about it, for people.
    pub description: String,
}

/// A mentioned member.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MentionReference {
    /// The team's id.
    pub team: String,
    /// The member's id.
    pub member: String,
}

/// A message that mentions members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MentionMessage {
    /// The message's id, which makes the dispatch idempotent.
    pub id: String,
    /// The whole text.
    pub text: String,
    /// Whom it mentions.
    pub references: Vec<MentionReference>,
}

/// A file of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssetInfo {
    /// Relative, with `/`.
    pub path: String,
    /// For the header of the response.
    pub media_type: String,
    /// SHA-256 of the bytes, in hexadecimal.
    pub sha256: String,
}

/// A file and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    /// For the header of the response.
    pub media_type: String,
    /// The bytes.
    pub body: Vec<u8>,
}

/// A run that ended, or stopped at an interrupt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRun {
    /// Whose run it was.
    pub owner: String,
    /// Its conversation.
    pub thread: String,
    /// Its id.
    pub run: String,
}

/// A team.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TeamRef {
    /// Whose team it is.
    pub owner: String,
    /// Its id.
    pub team: String,
}

/// A step to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The team to advance.
    pub team: TeamRef,
    /// Opaque.
    pub permit: Vec<u8>,
}

/// What the worker shall do next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Opaque; for `Plugin::admit`.
    pub batch: Option<Vec<u8>>,
    /// Teams to advance, each with its permit.
    pub steps: Vec<Step>,
    /// Teams that need a capability first.
    pub connect: Vec<TeamRef>,
    /// When to plan again at the latest, in milliseconds.
    pub next_ms: u32,
}

/// What the component says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Info {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The version of the contract that it was built for.
    pub contract: String,
    /// The format of its records.
    pub store_format: u32,
    /// Its bounds by name, as a JSON object.
    pub limits: serde_json::Value,
}
