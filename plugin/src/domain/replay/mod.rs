//! Session logs of another host, read as history: which records belong to a
//! team, how strictly they are read, and which order of them is possible.
//!
//! One record after another is applied to what came before. The first that
//! cannot be is named, and nothing after it counts.

mod content;
mod fields;
mod history;
mod line;
mod payload;
mod record;
#[cfg(test)]
mod tests;

use alloc::format;
use alloc::string::String;

use serde_json::Value;

use super::board::{self, Fault, Graph, Status, Task};
use super::error::Result;

pub use history::{check_delivered, check_member, check_queued};
pub use line::{Line, Selected, read_line, select};
pub use payload::parse_record;
pub use record::{HistoricalMember, MemberPhase, Message, Record};

/// Bytes of one record that a store takes.
pub const LINE_BYTES: usize = 256 * 1024;
/// Bytes of an id in a record.
pub const ID_BYTES: usize = 256;

/// Checks a task record against what was replayed before. `before`: the task
/// as it then was. The words for a record that cannot follow.
pub fn check_task(graph: &dyn Graph, before: Option<&Task>, task: &Task) -> Result<Option<String>> {
    let id = &task.id;
    match before {
        None if task.revision != 1 => {
            return Ok(Some(format!("the first record of {id} has revision {}, not 1", task.revision)));
        }
        Some(before) if task.revision != before.revision + 1 => {
            return Ok(Some(format!("{id} goes from revision {} to {}", before.revision, task.revision)));
        }
        _ => {}
    }
    if task.status == Status::Deleted {
        let dependant = graph.first_dependant(id)?;
        return Ok(dependant.map(|d| format!("{d} is blocked by {id}, which is missing or deleted")));
    }
    let live = before.filter(|t| t.status != Status::Deleted);
    let edges = live.map_or(&[][..], |t| &t.blocked_by);
    let fault = board::check_blockers(graph, id, &task.blocked_by, edges)?;
    Ok(fault.map(|fault| match fault {
        Fault::Cycle(through) => format!("{id} waits for itself through {through}"),
        Fault::Twice(blocker) => format!("{id} lists {blocker} twice as a blocker"),
        Fault::Missing(blocker) => format!("{id} is blocked by {blocker}, which is missing or deleted"),
    }))
}

/// A non-empty string within the store's bound for ids.
fn id(value: &Value) -> Option<String> {
    value.as_str().filter(|s| !s.is_empty() && s.len() <= ID_BYTES).map(String::from)
}

/// A whole number that JSON keeps exactly, however it is written.
fn integer(value: &Value) -> Option<u64> {
    let n = match value.as_u64() {
        Some(n) => n,
        None => {
            let n = value.as_f64()?;
            let whole = n >= 0.0 && n <= board::MAX_SAFE as f64 && n % 1.0 == 0.0;
            if !whole {
                return None;
            }
            n as u64
        }
    };
    (n <= board::MAX_SAFE).then_some(n)
}
