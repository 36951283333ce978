//! The shared task board: a graph of tasks with owners and revisions. Every
//! rule is a function of the current task, the tasks around it and the caller.

mod create;
mod error;
mod graph;
mod scopes;
mod task;
#[cfg(test)]
mod tests;
mod update;

use alloc::string::String;

use super::error::Result;

pub use create::{DESCRIPTION, SUBJECT};
pub use create::{NewTask, create};
pub use error::*;
pub use graph::{Fault, check_blockers, ready};
pub use scopes::{normalise, overlap};
pub use task::{LEAD, MAX_SAFE, Status, Task, TaskNumber, next_number, number};
pub use update::{ACTIONS, Around, Change, update};

/// Bounds of one board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Tasks that are not deleted.
    pub tasks: u64,
    pub blockers: usize,
    pub scopes: usize,
    /// UTF-8 bytes of one scope.
    pub scope_bytes: usize,
}

/// Who acts on the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor<'a> {
    /// What `ownerId` becomes when this caller claims a task.
    pub id: &'a str,
    /// Whether it has the rights of the lead.
    pub lead: bool,
}

/// What the rules look at in a task that is not the one being changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub status: Status,
    pub blocked_by: alloc::vec::Vec<String>,
}

/// The tasks around the one being changed, before the change.
pub trait Graph {
    /// The tasks with these ids, in this order; tombstones too. `None`: there
    /// never was such a task.
    fn nodes(&self, ids: &[String]) -> Result<alloc::vec::Vec<Option<Node>>>;
    /// The first task in board order that is not deleted and lists `id` as a
    /// blocker.
    fn first_dependant(&self, id: &str) -> Result<Option<String>>;
}

/// Names of owners, for assignment and for refusals.
pub trait People {
    /// The owner id of a member (by id, exact name or conversation) or of the
    /// lead.
    fn find(&self, name: &str) -> Option<String>;
    /// How an owner is called.
    fn name(&self, owner: &str) -> String;
    /// All names that [`People::find`] knows, for a refusal.
    fn all(&self) -> String;
}
