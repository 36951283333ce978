//! The commands: each reads a snapshot, decides with the domain's functions,
//! commits all its writes at once, and only then acts on the outside. One
//! command a file.

pub mod board;
pub mod commands;
pub mod scheduling;
pub mod shared;

use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;
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

/// An owner and conversation that can be part of a key.
pub fn check_caller(caller: &Caller) -> Result<()> {
    let fits = |text: &str, bytes: usize| !text.is_empty() && text.len() <= bytes;
    let ok = fits(&caller.owner, limits::OWNER_BYTES)
        && caller.thread.as_deref().is_none_or(|t| fits(t, limits::THREAD_BYTES))
        && caller.ancestors.iter().all(|t| fits(t, limits::THREAD_BYTES));
    if ok { Ok(()) } else { Err(Error::denied("bad_caller", "The host gave no usable identity for this call.")) }
}

/// How a host reconnects teams after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reconnect {
    Auto,
    Manual,
}

/// The deployment's settings.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Admitted jobs in the whole database, 1 to 64.
    pub slots: u32,
    pub reconnect: Reconnect,
    /// Tasks of one board that are not deleted, from 1.
    pub board_tasks: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { slots: limits::SLOTS, reconnect: Reconnect::Auto, board_tasks: limits::BOARD_TASKS }
    }
}

/// Reads and checks the settings.
pub fn settings(host: &dyn Host) -> Result<Settings> {
    let text = host.settings();
    let settings: Settings = serde_json::from_str(if text.is_empty() { "{}" } else { &text }).map_err(|e| {
        Error::invalid("bad_settings", "settings", alloc::format!("The settings of this component are wrong: {e}."))
    })?;
    if !(1..=64).contains(&settings.slots) {
        return Err(Error::invalid("bad_settings", "slots", "`slots` must be between 1 and 64."));
    }
    if !(1..=crate::domain::board::MAX_SAFE).contains(&settings.board_tasks) {
        return Err(Error::invalid("bad_settings", "board_tasks", "`board_tasks` must be a whole number from 1."));
    }
    Ok(settings)
}

/// The topic of a team's changes.
pub fn topic(team: &str) -> String {
    alloc::format!("team/{team}")
}
