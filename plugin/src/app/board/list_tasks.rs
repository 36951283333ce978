//! List the tasks that are not deleted, in the order in which they were made.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::view::{Around, size};
use super::{Names, as_member, as_owner, bad_cursor, get_task, hide_team, look, optional, page_limit};
use crate::app::Ctx;
use crate::app::shared::board_digest;
use crate::app::shared::team_arg::OwnTeam;
use crate::domain::board::{self, People, Status};
use crate::domain::error::{Error, Result};
use crate::domain::{cursor, limits, text};
use crate::store::board::{BoardTx, Card};
use crate::store::records::Head;
use crate::store::{keys, read};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Listed {
    Pending,
    InProgress,
    Completed,
}

/// Lists the tasks of your team's board in the order in which they were made.
/// Descriptions are cut to their beginning: get_team_task gives the whole. To
/// find work, list with ready true, then claim one with its revision. List
/// again after each wait: others work at the same time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTeamTasks {
    /// The team's id, as given in your request. Absent: your own team.
    #[serde(default)]
    pub team_id: OwnTeam,
    /// Only tasks in this state.
    #[serde(default, deserialize_with = "optional")]
    pub status: Option<Listed>,
    /// Only tasks of this member (exact name or id), of "lead", or "unowned".
    #[serde(default, deserialize_with = "optional")]
    pub owner: Option<String>,
    /// True: only pending tasks whose blockers are all completed. False: only
    /// the others.
    #[serde(default, deserialize_with = "optional")]
    pub ready: Option<bool>,
    /// The nextCursor of the page before, with the same filters.
    #[serde(default, deserialize_with = "optional")]
    pub cursor: Option<String>,
    /// Tasks on a page, 1 to 100. Absent: 50.
    #[serde(default, deserialize_with = "optional")]
    pub limit: Option<u32>,
}

/// Reads a team's board: its counts and a page of its tasks, or one task
/// whole.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tasks {
    pub team_id: String,
    /// Only this task, whole, also when it is deleted.
    #[serde(default, deserialize_with = "optional")]
    pub task_id: Option<String>,
    #[serde(default, deserialize_with = "optional")]
    pub status: Option<Listed>,
    /// A member's id or exact name, a conversation, "lead" or "unowned".
    #[serde(default, deserialize_with = "optional")]
    pub owner: Option<String>,
    #[serde(default, deserialize_with = "optional")]
    pub ready: Option<bool>,
    /// The `nextCursor` of the page before, with the same filters.
    #[serde(default, deserialize_with = "optional")]
    pub cursor: Option<String>,
    /// Tasks on a page, 1 to 256. Absent: 256.
    #[serde(default, deserialize_with = "optional")]
    pub limit: Option<u32>,
    /// The team's revision that the caller has: if nothing changed since, the
    /// answer says so and no more.
    #[serde(default, deserialize_with = "optional")]
    pub revision: Option<u64>,
}

struct Filter<'a> {
    status: Option<Listed>,
    owner: Option<&'a str>,
    ready: Option<bool>,
}

struct Page<'a> {
    list: &'static str,
    cursor: Option<&'a str>,
    limit: usize,
    bytes: usize,
}

/// The tool.
pub fn list_team_tasks(ctx: Ctx, args: &ListTeamTasks) -> Result<Value> {
    let filter = Filter { status: args.status, owner: args.owner.as_deref(), ready: args.ready };
    let limit = page_limit(args.limit, limits::TASKS_DEFAULT, limits::TASKS_MAX)?;
    let page = Page { list: "list_team_tasks", cursor: args.cursor.as_deref(), limit, bytes: limits::PAGE_BYTES };
    look(ctx, &args.team_id, as_member, |board, _| {
        let live = board.live()?;
        let mut reply = list(ctx, board, &live, &filter, &page)?;
        let head = board.head.borrow();
        let left = limits::BOARD_EVENTS.saturating_sub(head.events);
        if left < limits::BOARD_EVENTS_WARN {
            reply["changesLeft"] = json!(left);
        }
        if let Some(failure) = head.import.as_ref().filter(|i| i.shows_failure(&head)).and_then(|i| i.failure.as_ref())
        {
            reply["failure"] = json!(text::excerpt(&failure.message, 500).0);
        }
        Ok(reply)
    })
    .map_err(hide_team)
}

/// The action.
pub fn tasks(ctx: Ctx, args: &Tasks) -> Result<Value> {
    if let Some(known) = args.revision {
        if !text::is_id(&args.team_id) {
            return Err(Error::no_team());
        }
        let head: Option<Head> = read(ctx.host, |db| db.get(&keys::TeamKeys::new(ctx.owner(), &args.team_id).head()))?;
        if head.ok_or_else(Error::no_team)?.revision == known {
            return Ok(json!({"unchanged": true, "revision": known}));
        }
    }
    let filter = Filter { status: args.status, owner: args.owner.as_deref(), ready: args.ready };
    let limit = page_limit(args.limit, limits::OWNER_TASKS_MAX, limits::OWNER_TASKS_MAX)?;
    let page = Page { list: "tasks", cursor: args.cursor.as_deref(), limit, bytes: limits::OWNER_PAGE_BYTES };
    look(ctx, &args.team_id, as_owner, |board, _| {
        let revision = board.team.head.borrow().revision;
        if let Some(id) = &args.task_id {
            return Ok(json!({"revision": revision, "task": get_task::whole(board, id)?}));
        }
        let live = board.live()?;
        let mut reply = list(ctx, board, &live, &filter, &page)?;
        reply["revision"] = json!(revision);
        reply["board"] = board_digest::report(board, &live);
        Ok(reply)
    })
}

/// Events that are read at once for a page; each may be large.
const BATCH: usize = 16;

fn list(ctx: Ctx, board: &BoardTx, live: &[Card], filter: &Filter, page: &Page) -> Result<Value> {
    let team = &board.team.team;
    let owner = filter.owner.map(|name| owner_filter(board, live, name)).transpose()?;
    let filters = format!("{:?}/{:?}/{:?}", filter.status, filter.owner, filter.ready);
    let binding = [ctx.owner(), &team.id, page.list, &filters];
    let after = match page.cursor {
        None => 0,
        Some(sealed) => cursor::open(&team.nonce, &binding, sealed).ok_or_else(bad_cursor)?,
    };
    let around = Around::new(board, live)?;
    let matches = |card: &&Card| {
        let status = match filter.status {
            None => true,
            Some(Listed::Pending) => card.status == Status::Pending,
            Some(Listed::InProgress) => card.status == Status::InProgress,
            Some(Listed::Completed) => card.status == Status::Completed,
        };
        let owned = owner.as_ref().is_none_or(|owner| card.owner == *owner);
        card.place > after && status && owned && filter.ready.is_none_or(|ready| around.ready(card) == ready)
    };
    let chosen: Vec<&Card> = live.iter().filter(matches).collect();
    let mut shown: Vec<Value> = Vec::new();
    // Room for the fields around the tasks.
    let mut used = 1_000;
    let mut last = after;
    'page: for batch in chosen.chunks(BATCH) {
        let events = board.events(&batch.iter().map(|c| c.event).collect::<Vec<_>>())?;
        for (card, event) in batch.iter().zip(events) {
            let view = around.excerpt(team, &event, limits::EXCERPT_BYTES);
            let bytes = size(&view) + 1;
            if shown.len() >= page.limit || (!shown.is_empty() && used + bytes > page.bytes) {
                break 'page;
            }
            used += bytes;
            last = card.place;
            shown.push(view);
        }
    }
    let more = shown.len() < chosen.len();
    let mut reply = json!({"tasks": shown});
    if more {
        reply["nextCursor"] = json!(cursor::seal(&team.nonce, &binding, last));
    }
    Ok(reply)
}

/// The owner that a filter names; `None`: without an owner.
fn owner_filter(board: &BoardTx, live: &[Card], name: &str) -> Result<Option<String>> {
    let names = Names(&board.team.team);
    let name = text::trim(name);
    if name == "unowned" {
        return Ok(None);
    }
    if let Some(owner) = names.find(name) {
        return Ok(Some(owner));
    }
    if live.iter().any(|card| card.owner.as_deref() == Some(name)) {
        return Ok(Some(name.to_string()));
    }
    Err(board::member_not_found(name, &names))
}
