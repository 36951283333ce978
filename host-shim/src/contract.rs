//! The contract's words in plain Rust: what crosses between the component and
//! the rest of the host. Only `engine` knows how they travel.

use serde::Serialize;

/// Who makes a call. Made from what the host has authenticated and from
/// nothing else; see `wit/types.wit`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub owner: String,
    pub thread: Option<String>,
    pub ancestors: Vec<String>,
    pub run: Option<String>,
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
    Invalid,
    NotFound,
    Denied,
    Conflict,
    Limit,
    Unavailable,
    Unknown,
    Internal,
    Unsupported,
}

/// A refusal by the component (or, with `Unavailable` and `Internal`, by the
/// host around it).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
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
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The component trapped, ran out of memory or out of time, or the host
    /// could not start it. Only this call is hurt. The code is one of
    /// `component_trapped`, `component_timeout`, `component_memory`,
    /// `component_busy`, `call_waited_too_long`, `host_stopping`; the message
    /// names no path and no secret.
    #[error("{code}: {message}")]
    Fault { code: &'static str, message: String },
}

impl CallError {
    /// Whether the call may have taken effect although it failed.
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.kind == ErrorKind::Unknown,
            Self::Fault { code, .. } => matches!(*code, "component_trapped" | "component_timeout" | "component_memory"),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolDef {
    pub name: String,
    pub title: String,
    pub description: String,
    pub input_schema: serde_json::Value,
    pub output_schema: Option<serde_json::Value>,
    pub read_only: bool,
    pub idempotent: bool,
    pub destructive: bool,
    /// What rules about approval name.
    pub command: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionDef {
    pub name: String,
    pub description: String,
    pub input_schema: serde_json::Value,
    pub output_schema: Option<serde_json::Value>,
    pub read_only: bool,
    /// Without a capability it is denied.
    pub needs_runs: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MentionHit {
    pub team: String,
    pub member: String,
    pub label: String,
    pub description: String,
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MentionReference {
    pub team: String,
    pub member: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MentionMessage {
    pub id: String,
    pub text: String,
    pub references: Vec<MentionReference>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssetInfo {
    pub path: String,
    pub media_type: String,
    pub sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    pub media_type: String,
    pub body: Vec<u8>,
}

/// A run that ended, or stopped at an interrupt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRun {
    pub owner: String,
    pub thread: String,
    pub run: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TeamRef {
    pub owner: String,
    pub team: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub team: TeamRef,
    /// Opaque.
    pub permit: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Opaque; for `Plugin::admit`.
    pub batch: Option<Vec<u8>>,
    pub steps: Vec<Step>,
    pub connect: Vec<TeamRef>,
    pub next_ms: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Info {
    pub name: String,
    pub version: String,
    pub contract: String,
    pub store_format: u32,
    pub limits: serde_json::Value,
}
