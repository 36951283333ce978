//! A new task.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::graph::{Fault, check_blockers};
use super::{Bounds, Graph, Status, Task, error, scopes};
use crate::domain::error::{Error, Result};
use crate::domain::text;

/// UTF-16 code units of a trimmed subject.
pub const SUBJECT: usize = 200;
/// UTF-16 code units of a trimmed description.
pub const DESCRIPTION: usize = 16_384;

/// What a new task is made of, as it was sent.
#[derive(Clone, Copy, Debug)]
pub struct NewTask<'a> {
    pub subject: &'a str,
    pub description: &'a str,
    pub blocked_by: &'a [String],
    pub write_scopes: &'a [String],
}

/// Makes the task `task-<next>`: pending, unowned, revision 1. `live`:
/// tasks that are not deleted.
pub fn create(graph: &dyn Graph, live: u64, next: u64, new: &NewTask, bounds: &Bounds) -> Result<Task> {
    let id = format!("task-{next}");
    if live >= bounds.tasks || graph.nodes(core::slice::from_ref(&id))?[0].is_some() {
        return Err(error::task_limit(live));
    }
    let subject = checked_text("subject", new.subject, SUBJECT)?;
    let description = checked_text("description", new.description, DESCRIPTION)?;
    let blocked_by = checked_blockers(graph, &id, new.blocked_by, &[], bounds)?;
    let write_scopes = checked_scopes(new.write_scopes, bounds)?;
    Ok(Task {
        id,
        revision: 1,
        subject,
        description,
        status: Status::Pending,
        owner_id: None,
        blocked_by,
        write_scopes,
    })
}

/// Trimmed, not empty, within its bound, without U+0000.
pub fn checked_text(field: &str, raw: &str, bound: usize) -> Result<String> {
    let trimmed = text::trim(raw);
    if trimmed.is_empty() {
        return Err(error::invalid(field, format!("`{field}` must not be empty.")));
    }
    let units = trimmed.encode_utf16().count();
    if units > bound {
        return Err(error::invalid(
            field,
            format!("`{field}` has {units} UTF-16 units; at most {bound} are allowed. Shorten it."),
        ));
    }
    if trimmed.contains('\0') {
        return Err(error::invalid(field, format!("`{field}` must not contain the character U+0000.")));
    }
    Ok(trimmed.into())
}

/// A list of blockers that is allowed.
pub fn checked_blockers(
    graph: &dyn Graph,
    id: &str,
    blocked_by: &[String],
    before: &[String],
    bounds: &Bounds,
) -> Result<Vec<String>> {
    if blocked_by.len() > bounds.blockers {
        return Err(error::invalid(
            "blocked_by",
            format!("A task has at most {} blockers, not {}.", bounds.blockers, blocked_by.len()),
        ));
    }
    match check_blockers(graph, id, blocked_by, before)? {
        None => Ok(blocked_by.to_vec()),
        Some(fault) => Err(refusal(id, fault)),
    }
}

fn refusal(id: &str, fault: Fault) -> Error {
    match fault {
        Fault::Cycle(through) => error::cycle(id, &through),
        Fault::Twice(blocker) => error::invalid("blocked_by", format!("{blocker} is listed twice as a blocker.")),
        Fault::Missing(blocker) => error::no_blocker(&blocker),
    }
}

/// Scopes in their stored form, each once.
pub fn checked_scopes(raw: &[String], bounds: &Bounds) -> Result<Vec<String>> {
    let mut out: Vec<String> = Vec::new();
    for one in raw {
        let scope = scopes::normalise(one).ok_or_else(|| {
            error::bad_scope(one, "give a relative path like \"src/pages\", without \".\", \"..\" or a drive")
        })?;
        if scope.len() > bounds.scope_bytes {
            return Err(error::bad_scope(one, &format!("at most {} bytes are allowed", bounds.scope_bytes)));
        }
        if scope.contains('\0') {
            return Err(error::bad_scope(one, "it must not contain the character U+0000"));
        }
        if out.contains(&scope) {
            continue;
        }
        if out.len() == bounds.scopes {
            return Err(error::bad_scope(one, &format!("a task has at most {} scopes", bounds.scopes)));
        }
        out.push(scope);
    }
    Ok(out)
}
