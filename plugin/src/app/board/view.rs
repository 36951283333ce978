//! How a task looks from outside: what is stored, and what follows from the
//! tasks around it.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Value, json};

use super::Names;
use crate::domain::board::{Graph, Status, overlap};
use crate::domain::error::Result;
use crate::domain::{limits, text, time};
use crate::store::board::{Author, BoardTx, Card, Doing, TaskEvent};
use crate::store::records::Team;

/// A task with all that is known about it.
pub fn task(board: &BoardTx, event: &TaskEvent) -> Result<Value> {
    let task = &event.task;
    let nodes = board.nodes(&task.blocked_by)?;
    let status = |id: &String, i: usize| {
        let status = nodes[i].as_ref().map(|n| n.status);
        (id.clone(), status)
    };
    let blockers: Vec<_> = task.blocked_by.iter().enumerate().map(|(i, id)| status(id, i)).collect();
    let dependants = board.dependants(&task.id, limits::BOARD_EVENTS)?;
    Ok(shape(&board.team.team, event, &blockers, &dependants, &board.doing()?))
}

/// The live part of a board, read once for many views.
pub struct Around {
    statuses: BTreeMap<String, Status>,
    dependants: BTreeMap<String, Vec<String>>,
    doing: Vec<Doing>,
}

impl Around {
    pub fn new(board: &BoardTx, live: &[Card]) -> Result<Self> {
        let mut dependants: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for card in live {
            for blocker in &card.blocked_by {
                dependants.entry(blocker.clone()).or_default().push(card.id.clone());
            }
        }
        let statuses = live.iter().map(|c| (c.id.clone(), c.status)).collect();
        Ok(Self { statuses, dependants, doing: board.doing()? })
    }

    pub fn ready(&self, card: &Card) -> bool {
        let done = |id: &String| self.statuses.get(id) == Some(&Status::Completed);
        card.status == Status::Pending && card.blocked_by.iter().all(done)
    }

    /// A view with the beginning of the description, of at most `bytes`
    /// bytes.
    pub fn excerpt(&self, team: &Team, event: &TaskEvent, bytes: usize) -> Value {
        let none = Vec::new();
        let task = &event.task;
        // What is not live is deleted: nothing else can block a live task.
        let status = |id: &String| (id.clone(), Some(self.statuses.get(id).copied().unwrap_or(Status::Deleted)));
        let blockers: Vec<_> = task.blocked_by.iter().map(status).collect();
        let dependants = self.dependants.get(&task.id).unwrap_or(&none);
        shorten(shape(team, event, &blockers, dependants, &self.doing), bytes)
    }
}

fn shape(
    team: &Team,
    event: &TaskEvent,
    blockers: &[(String, Option<Status>)],
    dependants: &[String],
    doing: &[Doing],
) -> Value {
    let task = &event.task;
    let open: Vec<Value> = blockers
        .iter()
        .filter(|(_, status)| *status != Some(Status::Completed))
        .map(|(id, status)| json!({"id": id, "status": status.map_or("missing", Status::as_str)}))
        .collect();
    let overlaps = |other: &&Doing| {
        other.id != task.id && other.scopes.iter().any(|a| task.write_scopes.iter().any(|b| overlap(a, b)))
    };
    let warnings: Vec<String> =
        doing.iter().filter(overlaps).map(|other| format!("write scopes overlap with {}", other.id)).collect();
    let mut view = json!({
        "id": task.id, "revision": task.revision, "subject": task.subject, "description": task.description,
        "status": task.status, "blockedBy": task.blocked_by, "writeScopes": task.write_scopes,
        "ready": task.status == Status::Pending && open.is_empty(),
        "openBlockers": open, "dependants": dependants, "writeScopeWarnings": warnings,
        "updatedAt": time::rfc3339(event.at),
    });
    put_owner(&mut view, team, task.owner_id.as_deref());
    view
}

fn put_owner(view: &mut Value, team: &Team, owner: Option<&str>) {
    if let Some(owner) = owner {
        view["ownerId"] = json!(owner);
        if let Some(name) = Names(team).known(owner) {
            view["ownerName"] = json!(name);
        }
    }
}

/// One entry of the journal. `whole`: with its description in full.
pub fn event(team: &Team, event: &TaskEvent, whole: bool) -> Value {
    let author = match &event.author {
        Author::Owner => json!({"kind": "lead"}),
        Author::Import => json!({"kind": "import"}),
        Author::Member { member, thread } => json!({
            "kind": "member", "member_id": member, "member": team.member(member).map(|m| m.name.as_str()), "thread": thread,
        }),
    };
    let mut task = json!(event.task);
    put_owner(&mut task, team, event.task.owner_id.as_deref());
    if !whole {
        task = shorten(task, limits::EXCERPT_BYTES);
    }
    let mut view = json!({"seq": event.seq, "at": time::rfc3339(event.at), "author": author, "task": task});
    if let Some(run) = &event.run {
        view["run_id"] = json!(run);
    }
    if let Some(seq) = event.source_seq {
        view["sourceSeq"] = json!(seq);
    }
    view
}

/// Bytes of one task in a list.
const ITEM_BYTES: usize = 12_000;

/// Cuts the description to its beginning, and whatever else is too long for a
/// list; `truncated` then says so.
fn shorten(mut view: Value, bytes: usize) -> Value {
    let mut truncated = false;
    for (field, bytes) in [("description", bytes), ("subject", 800)] {
        let Some(whole) = view[field].as_str() else { continue };
        let (shown, cut) = text::excerpt(whole, bytes);
        if cut {
            view[field] = json!(shown);
            truncated = true;
        }
    }
    let lists = ["writeScopes", "blockedBy", "openBlockers", "dependants", "writeScopeWarnings"];
    while size(&view) > ITEM_BYTES {
        let longest = lists.iter().copied().max_by_key(|field| size(&view[*field])).unwrap_or("writeScopes");
        let Some(list) = view[longest].as_array_mut().filter(|list| !list.is_empty()) else { break };
        let half = list.len() / 2;
        list.truncate(half);
        truncated = true;
    }
    if truncated {
        view["truncated"] = json!(true);
    }
    view
}

/// Bytes of compact JSON.
pub fn size(value: &Value) -> usize {
    serde_json::to_string(value).map_or(0, |text| text.len())
}
