//! Refusals: part of the product, written for the caller that must act on them.

use alloc::borrow::Cow;
use alloc::string::String;

use serde_json::Value;

/// What a refusal means for the caller. Every kind but `Unknown` says that
/// nothing was stored and nothing was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Invalid,
    NotFound,
    Denied,
    Conflict,
    Limit,
    Unavailable,
    Unknown,
    Internal,
    /// This component does not have the function yet.
    Unsupported,
}

/// The errors by which the component itself decides what comes next. All others
/// are only passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A stored record cannot be read.
    Damaged,
    /// The store gave up the snapshot; a new one may do.
    Expired,
    /// Others committed first, too often.
    Contended,
    /// One of the team's locks is held.
    TeamBusy,
    NoTeam,
    /// A record, a transaction or a scan exceeds the store's bound.
    TooLarge,
}

impl Cause {
    /// Its stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Damaged => "damaged_record",
            Self::Expired => "store_expired",
            Self::Contended => "store_contended",
            Self::TeamBusy => "team_busy",
            Self::NoTeam => "team_not_found",
            Self::TooLarge => "record_too_large",
        }
    }
}

/// A refusal with a stable code, a sentence that says what to do, and the
/// argument at fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    pub kind: Kind,
    pub code: Cow<'static, str>,
    pub message: String,
    pub field: Option<String>,
    pub detail: Option<Value>,
}

pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    pub fn new(kind: Kind, code: &'static str, message: impl Into<String>) -> Self {
        Self { kind, code: Cow::Borrowed(code), message: message.into(), field: None, detail: None }
    }

    /// Whether it is one of those by which the component decides.
    pub fn is(&self, cause: Cause) -> bool {
        self.code == cause.code()
    }

    /// An argument that cannot be right.
    pub fn invalid(code: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, code, message).at(field)
    }

    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::Conflict, code, message)
    }

    pub fn denied(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::Denied, code, message)
    }

    pub fn limit(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::Limit, code, message)
    }

    pub fn unavailable(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Kind::Unavailable, code, message)
    }

    /// Somebody else works on this team now; nothing happened.
    pub fn team_busy(message: impl Into<String>) -> Self {
        Self::unavailable(Cause::TeamBusy.code(), message)
    }

    /// A function of the contract that this component does not have yet.
    pub fn unsupported(function: &str) -> Self {
        Self::new(
            Kind::Unsupported,
            "unsupported",
            alloc::format!("This version of the component cannot do `{function}` yet."),
        )
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, "internal", message)
    }

    /// The one answer for a team that does not exist, is another owner's, or
    /// from whose conversations the caller does not speak: nothing in it
    /// depends on which.
    pub fn no_team() -> Self {
        Self::new(Kind::NotFound, Cause::NoTeam.code(), "There is no such team. List the teams to see their ids.")
            .at("team_id")
    }

    /// The one answer for a job that is not in this team.
    pub fn no_job() -> Self {
        Self::new(
            Kind::NotFound,
            "job_not_found",
            "There is no such request or receipt in this team. Read the team to see the ids of its jobs.",
        )
        .at("job_id")
    }

    /// A stored record that cannot be read. Its key names ids alone; what it
    /// holds is never repeated.
    pub fn damaged(key: &str, why: impl core::fmt::Display) -> Self {
        Self::new(
            Kind::Internal,
            Cause::Damaged.code(),
            alloc::format!("The stored record `{key}` cannot be read ({why})."),
        )
        .with(serde_json::json!({"key": key}))
    }

    /// The key of the record that cannot be read, if that is what is wrong.
    pub fn damaged_key(&self) -> Option<&str> {
        let detail = self.detail.as_ref().filter(|_| self.is(Cause::Damaged))?;
        detail["key"].as_str()
    }

    /// Names the argument at fault.
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Adds facts for programs.
    pub fn with(mut self, detail: Value) -> Self {
        self.detail = Some(detail);
        self
    }
}
