//! The records of an older history.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::board::Task;

/// One record of a team.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    Task(Task),
    Member(HistoricalMember),
    Queued(Message),
    Delivered { message: String, target: String },
}

/// A message of the older mailbox. It is kept to be read and never delivered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub id: String,
    pub sender_id: String,
    pub sender_name: String,
    pub target_id: String,
    /// Blocks as they were written.
    pub content: Vec<Value>,
    /// How it was to be delivered; version 1 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberPhase {
    Provisioning,
    Active,
    Failed,
}

/// A member as an earlier build recorded it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoricalMember {
    pub id: String,
    pub name: String,
    pub description: String,
    pub provider: String,
    /// `fresh` or `fork`.
    pub context: String,
    pub phase: MemberPhase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
