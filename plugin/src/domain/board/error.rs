//! The refusals of the board. Their codes are part of its contract.

use alloc::format;
use alloc::string::String;

use serde_json::json;

use super::{People, Task};
use crate::domain::error::{Error, Kind};

/// An argument that cannot be right.
pub fn invalid(field: &str, message: impl Into<String>) -> Error {
    Error::invalid("TEAM_INVALID_ARGUMENT", field, message)
}

/// The one answer for a task that this board never had, whatever the id.
pub fn not_found() -> Error {
    Error::new(
        Kind::NotFound,
        "TEAM_TASK_NOT_FOUND",
        "There is no such task on this team's board. List the tasks to see their ids.",
    )
    .at("task_id")
}

/// A blocker that is missing or deleted.
pub fn no_blocker(id: &str) -> Error {
    let (shown, _) = crate::domain::text::excerpt(id, 100);
    Error::new(
        Kind::NotFound,
        "TEAM_TASK_NOT_FOUND",
        format!("There is no such task to wait for: {shown}. List the tasks to see their ids."),
    )
    .at("blocked_by")
}

/// The board's answer to a conversation that is not a member of such a team:
/// the same whether the team exists or not.
pub fn not_member() -> Error {
    Error::denied(
        "TEAM_NOT_MEMBER",
        "This conversation belongs to no member of such a team. Use the team_id that your request names.",
    )
    .at("team_id")
}

pub fn task_limit(tasks: u64) -> Error {
    Error::limit(
        "TEAM_TASK_LIMIT",
        format!("The board takes no more tasks: {tasks} are not deleted, or no number is left. Delete a finished one."),
    )
}

pub fn history_limit(events: u32) -> Error {
    Error::limit(
        "TEAM_TASK_HISTORY_LIMIT",
        format!(
            "The board's history has its {events} events; nothing more can change on it. Make a new team to go on."
        ),
    )
}

pub fn stale(task: &Task, expected: u64, people: &dyn People) -> Error {
    let held = match &task.owner_id {
        Some(owner) => format!("{}, held by {}", task.status.as_str(), people.name(owner)),
        None => task.status.as_str().into(),
    };
    let message = format!(
        "This is a stale team task: you expected revision {expected} of {}, and it is at revision {} ({held}). Read it, then \
         decide again.",
        task.id, task.revision
    );
    Error::conflict("TEAM_TASK_STALE_REVISION", message).at("expected_revision").with(facts(task, people))
}

pub fn deleted(task: &Task) -> Error {
    Error::conflict("TEAM_TASK_DELETED", format!("{} is deleted; nothing changes it any more.", task.id)).at("task_id")
}

pub fn unauthorized(task: &Task, people: &dyn People) -> Error {
    let message = match &task.owner_id {
        Some(owner) => format!("Only {} or the lead may do this with {}.", people.name(owner), task.id),
        None => format!("Nobody holds {}; only the lead may do this. Claim it first.", task.id),
    };
    Error::denied("TEAM_TASK_UNAUTHORIZED", message).with(facts(task, people))
}

pub fn lead_required() -> Error {
    Error::denied("TEAM_LEAD_REQUIRED", "Only the lead may give a task to somebody. Claim it, or ask the lead.")
}

pub fn already_claimed(task: &Task, owner: &str, people: &dyn People) -> Error {
    let message = format!("{} is held by {}. Choose another task.", task.id, people.name(owner));
    Error::conflict("TEAM_TASK_ALREADY_CLAIMED", message).with(facts(task, people))
}

pub fn blocked(task: &Task, why: &str, people: &dyn People) -> Error {
    Error::conflict("TEAM_TASK_BLOCKED", format!("{} cannot be started: {why}.", task.id)).with(facts(task, people))
}

pub fn invalid_transition(task: &Task, action: &str, from: &str, people: &dyn People) -> Error {
    let message = format!("{action} needs a task that is {from}; {} is {}.", task.id, task.status.as_str());
    Error::conflict("TEAM_TASK_INVALID_TRANSITION", message).at("action").with(facts(task, people))
}

pub fn has_dependents(id: &str, dependant: &str) -> Error {
    Error::conflict(
        "TEAM_TASK_HAS_DEPENDENTS",
        format!("{id} still blocks {dependant}. Take it out of that task's blockers first."),
    )
    .with(json!({"task_id": id, "dependant": dependant}))
}

pub fn cycle(id: &str, through: &str) -> Error {
    Error::conflict(
        "TEAM_TASK_DEPENDENCY_CYCLE",
        format!("{id} would wait for itself through {through}. Leave {through} out of its blockers."),
    )
    .at("blocked_by")
}

pub fn bad_scope(raw: &str, why: &str) -> Error {
    let quoted = serde_json::to_string(raw).unwrap_or_default();
    let (shown, _) = crate::domain::text::excerpt(&quoted, 300);
    Error::invalid("TEAM_INVALID_WRITE_SCOPE", "write_scopes", format!("{shown} is no write scope: {why}."))
}

pub fn member_not_found(name: &str, people: &dyn People) -> Error {
    let (shown, _) = crate::domain::text::excerpt(name, 200);
    Error::new(
        Kind::NotFound,
        "TEAM_MEMBER_NOT_FOUND",
        format!("Nobody here is called \"{shown}\". Use one of these exactly: {}.", people.all()),
    )
    .at("owner")
}

/// Whether the commit reached the store is unknown.
pub fn unconfirmed() -> Error {
    Error::new(
        Kind::Unknown,
        "TEAM_TASK_PERSISTENCE_UNCONFIRMED",
        "Whether this change was stored is unknown. Read the task (or the list) before you try again: its revision tells.",
    )
}

fn facts(task: &Task, people: &dyn People) -> serde_json::Value {
    let mut facts = json!({"task_id": task.id, "revision": task.revision, "status": task.status});
    if let Some(owner) = &task.owner_id {
        facts["ownerId"] = json!(owner);
        facts["ownerName"] = json!(people.name(owner));
    }
    facts
}
