//! A task as it is stored, and its number.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The `ownerId` of the team's owner, who leads the board.
pub const LEAD: &str = "lead";

/// The largest number that every reader of JSON keeps exactly.
pub const MAX_SAFE: u64 = 9_007_199_254_740_991;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    InProgress,
    Completed,
    Deleted,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Deleted => "deleted",
        }
    }
}

/// One whole version of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Task {
    pub id: String,
    /// From 1; one more with each change.
    pub revision: u64,
    pub subject: String,
    pub description: String,
    pub status: Status,
    /// The conversation that holds it, or [`LEAD`]. Absent: unowned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    pub blocked_by: Vec<String>,
    pub write_scopes: Vec<String>,
}

/// What an id says about numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskNumber {
    /// Not of the form `task-<digits>`: it takes no part in numbering.
    None,
    Is(u64),
    /// Too large to be kept exactly.
    TooLarge,
}

/// The number in a task's id. Leading zeros count as written elsewhere, so
/// `task-01` and `task-1` are two tasks with one number.
pub fn number(id: &str) -> TaskNumber {
    let Some(digits) = id.strip_prefix("task-") else { return TaskNumber::None };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return TaskNumber::None;
    }
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return TaskNumber::Is(0);
    }
    match digits.parse::<u64>() {
        Ok(n) if n <= MAX_SAFE => TaskNumber::Is(n),
        _ => TaskNumber::TooLarge,
    }
}

/// The next number to give out, after a task with this id was seen. Numbers
/// are never given out twice.
pub fn next_number(next: u64, id: &str) -> u64 {
    match number(id) {
        TaskNumber::Is(n) => next.max((n + 1).min(MAX_SAFE)),
        _ => next,
    }
}
