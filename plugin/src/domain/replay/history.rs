//! The older roster and mailbox: which order of records is possible. Neither
//! gives anyone a right, and nothing of them is delivered.

use alloc::format;
use alloc::string::String;

use super::record::{HistoricalMember, MemberPhase, Message};

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
