//! Blockers: which tasks must be completed first. The graph of tasks that are
//! not deleted never has a cycle.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Graph, Status};
use crate::domain::error::Result;

/// What is wrong with a list of blockers: the first fault in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It lists the task itself, or closes a cycle through this blocker.
    Cycle(String),
    Twice(String),
    /// There is no such task, or it is deleted.
    Missing(String),
}

/// Checks the blockers that task `id` is to have. `before` are those that it
/// has now as a task that is not deleted: they cannot close a cycle.
///
/// The rest of the graph is sound, so only a new edge can close a cycle, and
/// only for a task that others wait for. Cost: the tasks above the new edges.
pub fn check_blockers(graph: &dyn Graph, id: &str, blocked_by: &[String], before: &[String]) -> Result<Option<Fault>> {
    let nodes = graph.nodes(blocked_by)?;
    let mut seen = BTreeSet::new();
    for (blocker, node) in blocked_by.iter().zip(&nodes) {
        if blocker == id {
            return Ok(Some(Fault::Cycle(blocker.clone())));
        }
        if !seen.insert(blocker) {
            return Ok(Some(Fault::Twice(blocker.clone())));
        }
        if node.as_ref().is_none_or(|n| n.status == Status::Deleted) {
            return Ok(Some(Fault::Missing(blocker.clone())));
        }
    }
    let new: Vec<String> = blocked_by.iter().filter(|b| !before.contains(b)).cloned().collect();
    if new.is_empty() || graph.first_dependant(id)?.is_none() {
        return Ok(None);
    }
    for blocker in new {
        if reaches(graph, &blocker, id)? {
            return Ok(Some(Fault::Cycle(blocker)));
        }
    }
    Ok(None)
}

/// Whether following blockers from `from` leads to `to`; level by level, so
/// that a long chain needs no stack.
fn reaches(graph: &dyn Graph, from: &str, to: &str) -> Result<bool> {
    let mut seen: BTreeSet<String> = BTreeSet::from([String::from(from)]);
    let mut level: Vec<String> = seen.iter().cloned().collect();
    while !level.is_empty() {
        let mut next = Vec::new();
        for node in graph.nodes(&level)?.into_iter().flatten().filter(|n| n.status != Status::Deleted) {
            for blocker in node.blocked_by {
                if blocker == to {
                    return Ok(true);
                }
                if seen.insert(blocker.clone()) {
                    next.push(blocker);
                }
            }
        }
        level = next;
    }
    Ok(false)
}

/// Whether every blocker is completed.
pub fn ready(graph: &dyn Graph, blocked_by: &[String]) -> Result<bool> {
    let nodes = graph.nodes(blocked_by)?;
    Ok(nodes.iter().all(|n| n.as_ref().is_some_and(|n| n.status == Status::Completed)))
}
