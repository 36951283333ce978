//! The eight changes of a task. Rights are checked before state, except for a
//! claim, whose refusal must tell who was faster.

use alloc::format;
use alloc::string::String;

use super::create::{DESCRIPTION, SUBJECT, checked_blockers, checked_scopes, checked_text};
use super::{Actor, Bounds, Graph, People, Status, Task, error, graph};
use crate::domain::error::Result;
use crate::domain::text;

/// All actions by name.
pub const ACTIONS: [&str; 8] =
    ["claim", "release", "edit", "set_dependencies", "complete", "reopen", "reassign", "delete"];

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Claim,
    Release,
    Edit,
    SetDependencies,
    Complete,
    Reopen,
    Reassign,
    Delete,
}

impl Action {
    /// In the order of [`ACTIONS`].
    const ALL: [Self; 8] = [
        Self::Claim,
        Self::Release,
        Self::Edit,
        Self::SetDependencies,
        Self::Complete,
        Self::Reopen,
        Self::Reassign,
        Self::Delete,
    ];

    fn named(name: &str) -> Result<Self> {
        let at = ACTIONS.iter().position(|action| *action == name);
        at.map(|at| Self::ALL[at]).ok_or_else(|| {
            let (shown, _) = text::excerpt(name, 60);
            let message = format!("There is no action \"{shown}\". The actions are: {}.", ACTIONS.join(", "));
            error::invalid("action", message)
        })
    }
}

/// A change, as it was sent. Fields that its action does not use are ignored.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    pub action: &'a str,
    pub subject: Option<&'a str>,
    pub description: Option<&'a str>,
    pub blocked_by: Option<&'a [String]>,
    pub write_scopes: Option<&'a [String]>,
    pub owner: Option<&'a str>,
}

/// What a change is decided with.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    pub graph: &'a dyn Graph,
    pub people: &'a dyn People,
    pub bounds: &'a Bounds,
}

/// The next revision of `task`, or why there is none. Changes nothing by
/// itself.
pub fn update(task: &Task, expected: u64, change: &Change, actor: Actor, around: Around) -> Result<Task> {
    let Around { graph, people, bounds } = around;
    if task.revision != expected {
        return Err(error::stale(task, expected, people));
    }
    if task.status == Status::Deleted {
        return Err(error::deleted(task));
    }
    let mine_or_lead = || {
        let mine = task.owner_id.as_deref() == Some(actor.id);
        if mine || actor.lead { Ok(()) } else { Err(error::unauthorized(task, people)) }
    };
    let from = |status: Status| {
        let fits = task.status == status;
        if fits { Ok(()) } else { Err(error::invalid_transition(task, change.action, status.as_str(), people)) }
    };
    let mut next = task.clone();
    match Action::named(change.action)? {
        Action::Claim => {
            if let Some(owner) = task.owner_id.as_deref().filter(|owner| *owner != actor.id) {
                return Err(error::already_claimed(task, owner, people));
            }
            startable(task, graph, people)?;
            next.status = Status::InProgress;
            next.owner_id = Some(actor.id.into());
        }
        Action::Release => {
            mine_or_lead()?;
            from(Status::InProgress)?;
            next.status = Status::Pending;
            next.owner_id = None;
        }
        Action::Edit => {
            mine_or_lead()?;
            edit(&mut next, change, bounds)?;
        }
        Action::SetDependencies => {
            mine_or_lead()?;
            let blocked_by = change.blocked_by.ok_or_else(|| {
                error::invalid("blocked_by", "set_dependencies needs `blocked_by`: the whole list, or [] for none.")
            })?;
            next.blocked_by = checked_blockers(graph, &task.id, blocked_by, &task.blocked_by, bounds)?;
        }
        Action::Complete => {
            mine_or_lead()?;
            from(Status::InProgress)?;
            next.status = Status::Completed;
        }
        Action::Reopen => {
            mine_or_lead()?;
            from(Status::Completed)?;
            next.status = Status::Pending;
            next.owner_id = None;
        }
        Action::Reassign => reassign(task, &mut next, change, actor, around)?,
        Action::Delete => {
            mine_or_lead()?;
            if let Some(dependant) = graph.first_dependant(&task.id)? {
                return Err(error::has_dependents(&task.id, &dependant));
            }
            next.status = Status::Deleted;
        }
    }
    next.revision += 1;
    Ok(next)
}

fn edit(next: &mut Task, change: &Change, bounds: &Bounds) -> Result<()> {
    if change.subject.is_none() && change.description.is_none() && change.write_scopes.is_none() {
        let message = "edit needs at least one of `subject`, `description` and `write_scopes`.";
        return Err(error::invalid("subject", message));
    }
    if let Some(subject) = change.subject {
        next.subject = checked_text("subject", subject, SUBJECT)?;
    }
    if let Some(description) = change.description {
        next.description = checked_text("description", description, DESCRIPTION)?;
    }
    if let Some(scopes) = change.write_scopes {
        next.write_scopes = checked_scopes(scopes, bounds)?;
    }
    Ok(())
}

fn reassign(task: &Task, next: &mut Task, change: &Change, actor: Actor, around: Around) -> Result<()> {
    let Around { graph, people, .. } = around;
    if !actor.lead {
        return Err(error::lead_required());
    }
    if !matches!(task.status, Status::Pending | Status::InProgress) {
        return Err(error::invalid_transition(task, "reassign", "pending or in_progress", people));
    }
    let name = change.owner.map(text::trim).filter(|name| !name.is_empty());
    let Some(name) = name else {
        next.status = Status::Pending;
        next.owner_id = None;
        return Ok(());
    };
    if !graph::ready(graph, &task.blocked_by)? {
        return Err(error::blocked(task, &waiting_for(task, graph)?, people));
    }
    let owner = people.find(name).ok_or_else(|| error::member_not_found(name, people))?;
    next.status = Status::InProgress;
    next.owner_id = Some(owner);
    Ok(())
}

/// Only a pending task whose blockers are all completed can be started.
fn startable(task: &Task, graph: &dyn Graph, people: &dyn People) -> Result<()> {
    if task.status != Status::Pending {
        let why = format!("it is {}, not pending", task.status.as_str());
        return Err(error::blocked(task, &why, people));
    }
    if !graph::ready(graph, &task.blocked_by)? {
        return Err(error::blocked(task, &waiting_for(task, graph)?, people));
    }
    Ok(())
}

/// Names the blockers that are not completed, and what they are instead.
fn waiting_for(task: &Task, graph: &dyn Graph) -> Result<String> {
    let nodes = graph.nodes(&task.blocked_by)?;
    let mut why = String::from("it waits for ");
    let open = task.blocked_by.iter().zip(nodes).filter_map(|(id, node)| {
        let status = node.map_or("missing", |n| n.status.as_str());
        (status != "completed").then_some((id, status))
    });
    for (i, (id, status)) in open.enumerate() {
        if i == 8 {
            why.push_str(" and others");
            break;
        }
        why.push_str(&format!("{}{id} ({status})", if i > 0 { ", " } else { "" }));
    }
    Ok(why)
}
