//! How a job that the host does not end can be ended by its owner.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::job::Phase;
use crate::store::records::Job;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Failed,
    Retry,
}

/// How the owner may settle a job now.
pub fn outcomes(job: &Job, connected: bool) -> &'static [Outcome] {
    match &job.phase {
        Phase::Unknown { .. } => &[Outcome::Failed, Outcome::Retry],
        Phase::Cancelling { accepted, .. } if *accepted || job.hold.is_some() => &[Outcome::Failed],
        // Only a connected host can say what became of it, and that may never be;
        // an imported run may not exist at any host.
        phase if phase.holds_slot() && (!connected || job.slot.is_none()) => &[Outcome::Failed],
        _ => &[],
    }
}
