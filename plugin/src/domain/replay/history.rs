//! The older roster and mailbox: which order of records is possible. Neither
//! gives anyone a right, and nothing of them is delivered.

use alloc::format;
use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::payload::Message;

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

/// Checks a member record. `before`: the member as it then was; `namesake`:
/// the id of another member with this name.
pub fn check_member(
    before: Option<&HistoricalMember>,
    namesake: Option<&str>,
    member: &HistoricalMember,
) -> Option<String> {
    let id = &member.id;
    match before {
        None if member.phase != MemberPhase::Provisioning => {
            Some(format!("the first record of member {id} is not provisioning"))
        }
        None => namesake.map(|other| format!("members {other} and {id} have one name")),
        Some(before) => {
            let kept = |m: &HistoricalMember| (m.name.clone(), m.provider.clone(), m.context.clone());
            if kept(before) != kept(member) {
                return Some(format!("member {id} changes its name, provider or context"));
            }
            let moves = before.phase == MemberPhase::Provisioning && member.phase != MemberPhase::Provisioning;
            (!moves).then(|| format!("member {id} cannot go from {:?} to {:?}", before.phase, member.phase))
        }
    }
}

/// Checks a message that is queued: it must be the first of its id.
pub fn check_queued(known: bool, id: &str) -> Option<String> {
    known.then(|| format!("message {id} is queued twice"))
}

/// Checks a delivery: the message is queued, for this target, and not yet
/// delivered.
pub fn check_delivered(message: Option<(&Message, bool)>, id: &str, target: &str) -> Option<String> {
    match message {
        None => Some(format!("message {id} is delivered but was never queued")),
        Some((message, _)) if message.target_id != target => {
            Some(format!("message {id} is delivered to another target"))
        }
        Some((_, true)) => Some(format!("message {id} is delivered twice")),
        Some(_) => None,
    }
}
