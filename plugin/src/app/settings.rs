//! The deployment's settings, as the host gives them.

use serde::Deserialize;

use crate::domain::error::{Error, Result};
use crate::domain::limits;
use crate::host::Host;

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
