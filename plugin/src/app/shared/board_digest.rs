//! The board in a few numbers: for the shared context and beside its tasks.

use alloc::collections::BTreeMap;

use serde_json::{Value, json};

use crate::domain::board::Status;
use crate::domain::error::Result;
use crate::domain::limits;
use crate::store::TeamTx;
use crate::store::board::{BoardTx, Card, Import};

#[derive(Default)]
struct Counts {
    ready: u32,
    blocked: u32,
    in_progress: u32,
    completed: u32,
}

fn count(live: &[Card]) -> Counts {
    let statuses: BTreeMap<&str, Status> = live.iter().map(|c| (c.id.as_str(), c.status)).collect();
    let mut counts = Counts::default();
    for card in live {
        match card.status {
            Status::Pending => {
                let done = |id: &alloc::string::String| statuses.get(id.as_str()) == Some(&Status::Completed);
                if card.blocked_by.iter().all(done) { counts.ready += 1 } else { counts.blocked += 1 }
            }
            Status::InProgress => counts.in_progress += 1,
            Status::Completed => counts.completed += 1,
            Status::Deleted => {}
        }
    }
    counts
}

/// What every member is told in the shared context.
pub fn digest(team: &TeamTx) -> Result<Value> {
    let board = BoardTx::load(team)?;
    let Counts { ready, blocked, in_progress, completed } = count(&board.live()?);
    let mut digest = json!({"ready": ready, "in_progress": in_progress, "blocked": blocked, "completed": completed});
    let left = limits::BOARD_EVENTS.saturating_sub(board.head.borrow().events);
    if left < limits::BOARD_EVENTS_WARN {
        digest["changes_left"] = json!(left);
    }
    Ok(digest)
}

/// What the owner sees above the tasks.
pub fn report(board: &BoardTx, live: &[Card]) -> Value {
    let Counts { ready, blocked, in_progress, completed } = count(live);
    let head = board.head.borrow();
    let mut report = json!({
        "tasks": head.live, "ready": ready, "inProgress": in_progress, "blocked": blocked, "completed": completed,
        "changes": head.events, "changesLeft": limits::BOARD_EVENTS.saturating_sub(head.events),
    });
    if let Some(import) = &head.import {
        report["import"] = import_report(import);
        if let (Some(failure), true) = (&import.failure, import.shows_failure(&head)) {
            report["failure"] = json!({"line": failure.line, "message": failure.message});
        }
    }
    report
}

/// What came of an import.
pub fn import_report(import: &Import) -> Value {
    let mut report = json!({
        "source": import.source, "parts": import.parts, "lines": import.lines, "done": import.done,
        "taskRecords": import.tasks, "memberRecords": import.members, "messages": import.messages,
        "deliveries": import.deliveries, "ignored": import.ignored, "accepted": import.accepted,
    });
    if let Some(failure) = &import.failure {
        report["failure"] = json!({"line": failure.line, "message": failure.message});
    }
    report
}
