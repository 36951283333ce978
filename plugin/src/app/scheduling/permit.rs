//! What a plan allows the step of one team: data alone. It travels through the
//! host as an opaque text.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// What one step may do, as planned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    /// Jobs to ask the host about.
    pub collect: Vec<u32>,
    /// Jobs that may try to start, in order.
    pub admit: Vec<Admission>,
    /// The round of owners as planned.
    pub round: Vec<String>,
    /// No slot is left once everything planned is admitted.
    pub full: bool,
    /// Teams (owner, id) in backoff; the rotation skips them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backing_off: Vec<(String, String)>,
}

/// A job that may try to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    pub job: u32,
    /// Its conversation.
    pub thread: String,
    /// Since when it may try, as the plan read it: a job that has been tried
    /// since then is planned anew.
    pub due: u64,
    /// The slot that was planned for it.
    pub slot: u32,
    /// Owners that were planned before this one, each with a slot of its own in
    /// the same plan: they may come before its owner in the rotation.
    pub after: Vec<(String, u32)>,
}
