//! Put a task on the board.

use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Who, as_member, as_owner, bounds, change, hide_team, optional, settled, view};
use crate::app::Ctx;
use crate::app::shared::team_arg::OwnTeam;
use crate::app::shared::{calling_member, idempotency};
use crate::domain::board::{self, Bounds, NewTask};
use crate::domain::error::{Error, Result};
use crate::domain::{ids, limits, text};
use crate::store::board::{BoardTx, TaskEvent};

/// Puts a task on your team's shared board. It is pending and nobody holds it:
/// whoever wants to do it claims it. Creating a task starts nobody. Returns the
/// task with its id and revision.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTeamTask {
    /// The team's id, as given in your request. Absent: your own team.
    #[serde(default)]
    pub team_id: OwnTeam,
    /// One line; at most 200 characters.
    pub subject: String,
    /// Everything that whoever does it needs to know; at most 16,384
    /// characters.
    pub description: String,
    /// Ids of tasks that must be completed first; at most 64.
    #[serde(default, deserialize_with = "optional")]
    pub blocked_by: Option<Vec<String>>,
    /// Relative paths under which the work will write, such as "src/pages"; at
    /// most 32. They only warn others and lock nothing.
    #[serde(default, deserialize_with = "optional")]
    pub write_scopes: Option<Vec<String>>,
}

/// Puts a task on a team's board, as the lead.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTask {
    pub team_id: String,
    /// At most 200 UTF-16 units.
    pub subject: String,
    /// At most 16,384 UTF-16 units.
    pub description: String,
    /// Ids of tasks that must be completed first; at most 64.
    #[serde(default, deserialize_with = "optional")]
    pub blocked_by: Option<Vec<String>>,
    /// Relative paths under which the work will write; at most 32.
    #[serde(default, deserialize_with = "optional")]
    pub write_scopes: Option<Vec<String>>,
    /// Names this creation, so that a retry makes no second task.
    #[serde(default, deserialize_with = "optional")]
    pub request_id: Option<String>,
}

/// The tool.
pub fn create_team_task(ctx: Ctx, args: &CreateTeamTask) -> Result<Value> {
    let new = NewTask {
        subject: &args.subject,
        description: &args.description,
        blocked_by: args.blocked_by.as_deref().unwrap_or(&[]),
        write_scopes: args.write_scopes.as_deref().unwrap_or(&[]),
    };
    let bounds = bounds(ctx)?;
    let digest = digest(&args.team_id, &new);
    change(ctx, &args.team_id, as_member, |board, caller| {
        let me = calling_member::speaker(ctx, board.team)?;
        if let idempotency::Call::Again(reply) = idempotency::recall(ctx, board.team, &me, &digest)? {
            return Ok((reply, false));
        }
        let event = add(ctx, board, caller, &new, &bounds)?;
        let reply = view::task(board, &event)?;
        idempotency::remember(ctx, board.team, &digest, &reply)?;
        Ok((reply, true))
    })
    .map_err(hide_team)
}

/// The action.
pub fn create_task(ctx: Ctx, args: &CreateTask) -> Result<Value> {
    let new = NewTask {
        subject: &args.subject,
        description: &args.description,
        blocked_by: args.blocked_by.as_deref().unwrap_or(&[]),
        write_scopes: args.write_scopes.as_deref().unwrap_or(&[]),
    };
    let bounds = bounds(ctx)?;
    let request = args.request_id.as_deref();
    let request = request.map(|id| text::bounded("request_id", id, limits::REQUEST_ID)).transpose()?;
    let digest = digest(&args.team_id, &new);
    change(ctx, &args.team_id, as_owner, |board, caller| {
        if let Some(request) = &request
            && let Some((made, id)) = board.made(request)?
        {
            if made != digest {
                return Err(Error::conflict(
                    "request_id_reused",
                    "This request_id made another task. Use a new one, or the same content.",
                )
                .at("request_id")
                .with(json!({"task_id": id})));
            }
            let (_, event) = board.task(&id)?.ok_or_else(|| Error::internal("a task of this board is missing"))?;
            return Ok((json!({"task": view::task(board, &event)?, "created": false}), false));
        }
        let event = add(ctx, board, caller, &new, &bounds)?;
        if let Some(request) = &request {
            board.put_made(request, &digest, &event.task.id)?;
        }
        Ok((json!({"task": view::task(board, &event)?, "created": true}), true))
    })
}

fn digest(team: &str, new: &NewTask) -> String {
    let list = |list: &[String]| serde_json::to_string(list).unwrap_or_default();
    ids::digest("create_task", &[team, new.subject, new.description, &list(new.blocked_by), &list(new.write_scopes)])
}

fn add(ctx: Ctx, board: &BoardTx, who: &Who, new: &NewTask, bounds: &Bounds) -> Result<TaskEvent> {
    settled(board)?;
    let (live, next) = {
        let head = board.head.borrow();
        (u64::from(head.live), head.next)
    };
    let task = board::create(board, live, next, new, bounds)?;
    board.append(None, task, who.stamp(ctx.now()))
}
