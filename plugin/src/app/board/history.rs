//! Read the board's journal back: who changed what, when, and from which
//! conversation; and what an imported log says of older members and messages.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::view::{self, size};
use super::{as_owner, bad_cursor, look, optional, page_limit};
use crate::app::Ctx;
use crate::domain::error::Result;
use crate::domain::{board, cursor, limits, text};
use crate::store::board::BoardTx;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistoryOf {
    #[default]
    Tasks,
    /// Members of an imported log.
    Members,
    /// Messages of an imported log. They were never delivered here.
    Messages,
}

/// Reads the history of a team's board, newest first: every change of a task
/// with its author, time and conversation. Deleted tasks have theirs, too.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskHistory {
    pub team_id: String,
    /// Absent: tasks. `members` and `messages` are those of an imported log,
    /// oldest first.
    #[serde(default, deserialize_with = "optional")]
    pub of: Option<HistoryOf>,
    /// Only the changes of this task.
    #[serde(default, deserialize_with = "optional")]
    pub task_id: Option<String>,
    /// Only this change, whole.
    #[serde(default, deserialize_with = "optional")]
    pub seq: Option<u32>,
    /// Entries on a page, 1 to 100. Absent: 50.
    #[serde(default, deserialize_with = "optional")]
    pub limit: Option<u32>,
    /// The `nextCursor` of the page before.
    #[serde(default, deserialize_with = "optional")]
    pub cursor: Option<String>,
}

pub fn task_history(ctx: Ctx, args: &TaskHistory) -> Result<Value> {
    let limit = page_limit(args.limit, limits::TASKS_DEFAULT, limits::TASKS_MAX)?;
    let of = args.of.unwrap_or_default();
    look(ctx, &args.team_id, as_owner, |board, _| {
        let team = &board.team.team;
        if let Some(seq) = args.seq {
            let event = board.find_event(seq)?.ok_or_else(|| board::invalid("seq", "There is no such change."))?;
            return Ok(json!({"events": [view::event(team, &event, true)]}));
        }
        let list = format!("{of:?}/{:?}", args.task_id);
        let binding = [ctx.owner(), &team.id, "task_history", &list];
        let from = match args.cursor.as_deref() {
            None => None,
            Some(sealed) => Some(cursor::open(&team.nonce, &binding, sealed).ok_or_else(bad_cursor)?),
        };
        let (name, mut shown, next) = match of {
            HistoryOf::Tasks => events(board, args.task_id.as_deref(), from, limit)?,
            HistoryOf::Members => olds(board, "member", from, limit)?,
            HistoryOf::Messages => olds(board, "message", from, limit)?,
        };
        let left = limits::BOARD_EVENTS.saturating_sub(board.head.borrow().events);
        let mut reply = json!({"changesLeft": left});
        reply[name] = json!(core::mem::take(&mut shown));
        if let Some(next) = next {
            reply["nextCursor"] = json!(cursor::seal(&team.nonce, &binding, next));
        }
        Ok(reply)
    })
}

type Entries = (&'static str, Vec<Value>, Option<u32>);

/// Entries that are read at once.
const BATCH: u32 = 16;

/// Changes below `from`, newest first. The place of one is its number, or,
/// for one task, its revision.
fn events(board: &BoardTx, task: Option<&str>, from: Option<u32>, limit: usize) -> Result<Entries> {
    if let Some(id) = task
        && board.card(id)?.is_none()
    {
        return Err(board::not_found());
    }
    let mut below = from;
    let mut shown = Vec::new();
    let mut used = 1_000;
    loop {
        let seqs: Vec<u32> = match task {
            Some(id) => board.task_events(id, below, BATCH)?,
            None => {
                let top = below.unwrap_or_else(|| board.head.borrow().events.saturating_add(1));
                (top.saturating_sub(BATCH).max(1)..top).rev().collect()
            }
        };
        if seqs.is_empty() {
            return Ok(("events", shown, None));
        }
        for event in board.events(&seqs)? {
            let entry = view::event(&board.team.team, &event, false);
            let bytes = size(&entry) + 1;
            if shown.len() >= limit || (!shown.is_empty() && used + bytes > limits::PAGE_BYTES) {
                return Ok(("events", shown, below));
            }
            used += bytes;
            shown.push(entry);
            let place = if task.is_some() { u32::try_from(event.task.revision).unwrap_or(u32::MAX) } else { event.seq };
            below = Some(place);
        }
    }
}

/// Records of an imported log above `from`, oldest first.
fn olds(board: &BoardTx, kind: &'static str, from: Option<u32>, limit: usize) -> Result<Entries> {
    let name = if kind == "member" { "members" } else { "messages" };
    let mut above = from.unwrap_or(0);
    let mut shown = Vec::new();
    let mut used = 1_000;
    loop {
        let found: Vec<(u32, Value)> = board.olds(kind, above, BATCH)?;
        if found.is_empty() {
            return Ok((name, shown, None));
        }
        for (n, record) in found {
            let record = shortened(record);
            let bytes = size(&record) + 1;
            if shown.len() >= limit || (!shown.is_empty() && used + bytes > limits::PAGE_BYTES) {
                return Ok((name, shown, Some(above)));
            }
            used += bytes;
            shown.push(record);
            above = n;
        }
    }
}

/// A record that alone would fill a page shows the beginning of its JSON.
fn shortened(record: Value) -> Value {
    if size(&record) <= limits::PAGE_BYTES / 2 {
        return record;
    }
    let whole = serde_json::to_string(&record).unwrap_or_default();
    let (beginning, _) = text::excerpt(&whole, limits::PAGE_BYTES / 4);
    json!({"truncated": true, "beginning": beginning})
}
