//! The commands: each reads a snapshot, decides with the domain's functions,
//! commits all its writes at once, and only then acts on the outside. One
//! command a file.

pub mod board;
pub mod commands;
pub mod scheduling;
pub mod settings;
pub mod shared;

use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value;

use crate::domain::error::{Error, Result};
use crate::domain::limits;
use crate::host::{Host, Runs};

/// Who calls, as the host vouches for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub owner: String,
    pub thread: Option<String>,
    pub ancestors: Vec<String>,
    pub run: Option<String>,
    pub call: Option<String>,
}

/// What a command has at hand.
#[derive(Clone, Copy)]
pub struct Ctx<'a> {
    pub host: &'a dyn Host,
    pub caller: &'a Caller,
    /// The capability that came with the call. Absent: the caller may not run
    /// agents.
    pub runs: Option<&'a dyn Runs>,
}

impl<'a> Ctx<'a> {
    /// Whether this process holds a capability for the team.
    pub fn connected(&self, team: &str) -> bool {
        self.host.lookup(self.owner(), team).is_some()
    }

    pub fn owner(&self) -> &'a str {
        &self.caller.owner
    }

    /// The capability, or the refusal for a caller without one.
    pub fn require_runs(&self) -> Result<&'a dyn Runs> {
        self.runs.ok_or_else(|| {
            Error::denied("no_capability", "This caller may read teams but not run agents. Sign in as a user.")
        })
    }

    pub fn now(&self) -> u64 {
        self.host.now_ms()
    }
}

/// How a command answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Done(Value),
    Park(Park),
}

impl From<Value> for Reply {
    fn from(value: Value) -> Self {
        Self::Done(value)
    }
}

/// A call that waits without an instance; see the contract's `parked`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Park {
    pub topic: String,
    /// The topic's position, read before the snapshot.
    pub seen: u64,
    pub timeout_ms: u32,
    pub token: String,
}

/// Why a parked call is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    Signalled,
    TimedOut,
    Closed,
}

/// A caller whose parts can be parts of a key.
pub fn check_caller(caller: &Caller) -> Result<()> {
    let fits = |text: &str, bytes: usize| !text.is_empty() && text.len() <= bytes;
    let ok = fits(&caller.owner, limits::OWNER_BYTES)
        && caller.thread.as_deref().is_none_or(|t| fits(t, limits::THREAD_BYTES))
        && caller.ancestors.iter().all(|t| fits(t, limits::THREAD_BYTES))
        && caller.run.as_deref().is_none_or(|run| fits(run, limits::THREAD_BYTES))
        && caller.call.as_deref().is_none_or(|call| fits(call, limits::THREAD_BYTES));
    if ok { Ok(()) } else { Err(Error::denied("bad_caller", "The host gave no usable identity for this call.")) }
}

/// The topic of a team's changes.
pub fn topic(team: &str) -> String {
    alloc::format!("team/{team}")
}
