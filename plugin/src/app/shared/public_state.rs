//! What the commands of the public state share.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Value, json};

use super::{team_context, view};
use crate::domain::error::{Error, Kind, Result};
use crate::domain::state::{self, Entry, Stamp, Status};
use crate::domain::{context, limits};
use crate::store::TeamTx;
use crate::store::records::{Job, Member, StateEntry};

/// Who writes now: the member, its conversation, and the job that it executes.
pub fn stamp(me: &Member, during: Option<&Job>, now: u64) -> Stamp {
    let job = during.map(|job| job.id.clone());
    Stamp { member: me.id.clone(), thread: me.thread.clone(), job, earlier: None, at: now }
}

/// Stores an entry among `others`, if all of them together stay within the
/// budgets of the public state and of the shared context.
pub fn store(team: &TeamTx, others: &[StateEntry], changed: &StateEntry) -> Result<()> {
    let mut entries: Vec<&Entry> = others.iter().filter(|e| e.n != changed.n).map(|e| &e.entry).collect();
    entries.push(&changed.entry);
    let views: Vec<Value> = entries.iter().map(|e| view::entry(team, e)).collect();
    state::check_budget(&views)?;
    let active = entries.iter().zip(&views).filter(|(e, _)| e.status == Status::Active).map(|(_, v)| v.clone());
    let shared = team_context::standing_context(team, active.collect());
    let bytes = context::fixed_bytes(&shared);
    if bytes > limits::CONTEXT_BYTES {
        return Err(Error::limit(
            "context_budget",
            format!(
                "With this the team's shared context would take {bytes} bytes as JSON; at most {} are allowed for goal, \
                 members and active entries together. Shorten or archive entries with update_team_state.",
                limits::CONTEXT_BYTES
            ),
        ));
    }
    let mut head = team.head.borrow_mut();
    head.entries = head.entries.max(changed.n);
    head.state_revision += 1;
    drop(head);
    team.db.put(&team.keys.state_entry(changed.n), changed)
}

/// The one answer for an entry that is not in this team.
pub fn no_entry() -> Error {
    Error::new(
        Kind::NotFound,
        "entry_not_found",
        "There is no such entry in this team. Call read_team_state with the team_id alone to see the entries and their ids.",
    )
    .at("entry_id")
}

/// A reply with the entry and the revision of the whole public state.
pub fn reply(team: &TeamTx, entry: &Entry, facts: &[(&str, Value)]) -> Value {
    let mut reply = json!({"entry": view::entry(team, entry), "state_revision": team.head.borrow().state_revision});
    for (name, fact) in facts {
        reply[String::from(*name)] = fact.clone();
    }
    reply
}
