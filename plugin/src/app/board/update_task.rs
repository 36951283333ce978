//! Change a task: one of eight actions, against the revision that was read.

use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Names, Who, as_member, as_owner, bounds, change, hide_team, optional, settled, view};
use crate::app::Ctx;
use crate::app::shared::team_arg::OwnTeam;
use crate::app::shared::{calling_member, idempotency};
use crate::domain::board::{self, ACTIONS, Around, Bounds, Change};
use crate::domain::error::Result;
use crate::domain::ids;
use crate::store::board::{BoardTx, TaskEvent};

/// Changes a task on your team's board. Take a task with "claim" when it is
/// ready, then do the work, then "complete" it; "release" gives it back. Send
/// the revision that you last read: if somebody was faster, nothing changes and
/// you are told what the task is now. Returns the task with its new revision.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateTeamTask {
    /// The team's id, as given in your request. Absent: your own team.
    #[serde(default)]
    pub team_id: OwnTeam,
    /// The task's id, such as "task-3".
    pub task_id: String,
    /// The revision that you last read.
    pub expected_revision: u64,
    /// claim: take a ready task. release: give it back. edit: change subject,
    /// description or write_scopes. set_dependencies: replace blocked_by.
    /// complete: it is done. reopen: it is not. reassign (lead only): give it to
    /// `owner`, or to nobody. delete: take it off the board.
    #[schemars(extend("enum" = ACTIONS))]
    pub action: String,
    /// For edit.
    #[serde(default, deserialize_with = "optional")]
    pub subject: Option<String>,
    /// For edit.
    #[serde(default, deserialize_with = "optional")]
    pub description: Option<String>,
    /// For set_dependencies: the whole list.
    #[serde(default, deserialize_with = "optional")]
    pub blocked_by: Option<Vec<String>>,
    /// For edit: the whole list.
    #[serde(default, deserialize_with = "optional")]
    pub write_scopes: Option<Vec<String>>,
    /// For reassign: a member's exact name or id, or "lead". Leave it out to
    /// assign it to nobody.
    #[serde(default, deserialize_with = "optional")]
    pub owner: Option<String>,
}

/// Changes a task on a team's board, as the lead. The reply is its next
/// revision; a stale `expected_revision` changes nothing.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateTask {
    pub team_id: String,
    pub task_id: String,
    /// The revision that was last read.
    pub expected_revision: u64,
    #[schemars(extend("enum" = ACTIONS))]
    pub action: String,
    /// For edit.
    #[serde(default, deserialize_with = "optional")]
    pub subject: Option<String>,
    /// For edit.
    #[serde(default, deserialize_with = "optional")]
    pub description: Option<String>,
    /// For set_dependencies: the whole list.
    #[serde(default, deserialize_with = "optional")]
    pub blocked_by: Option<Vec<String>>,
    /// For edit: the whole list.
    #[serde(default, deserialize_with = "optional")]
    pub write_scopes: Option<Vec<String>>,
    /// For reassign: a member's id or exact name, or "lead". Absent: nobody.
    #[serde(default, deserialize_with = "optional")]
    pub owner: Option<String>,
}

macro_rules! change_of {
    ($args:ident) => {
        Change {
            action: &$args.action,
            subject: $args.subject.as_deref(),
            description: $args.description.as_deref(),
            blocked_by: $args.blocked_by.as_deref(),
            write_scopes: $args.write_scopes.as_deref(),
            owner: $args.owner.as_deref(),
        }
    };
}

/// The tool.
pub fn update_team_task(ctx: Ctx, args: &UpdateTeamTask) -> Result<Value> {
    let asked = change_of!(args);
    let bounds = bounds(ctx)?;
    let digest = digest(args, &asked);
    change(ctx, &args.team_id, as_member, |board, caller| {
        let me = calling_member::speaker(ctx, board.team)?;
        if let idempotency::Call::Again(reply) = idempotency::recall(ctx, board.team, &me, &digest)? {
            return Ok((reply, false));
        }
        let event = apply(ctx, board, caller, (&args.task_id, args.expected_revision), &asked, &bounds)?;
        let reply = view::task(board, &event)?;
        idempotency::remember(ctx, board.team, &digest, &reply)?;
        Ok((reply, true))
    })
    .map_err(hide_team)
}

/// The action.
pub fn update_task(ctx: Ctx, args: &UpdateTask) -> Result<Value> {
    let asked = change_of!(args);
    let bounds = bounds(ctx)?;
    change(ctx, &args.team_id, as_owner, |board, caller| {
        let event = apply(ctx, board, caller, (&args.task_id, args.expected_revision), &asked, &bounds)?;
        Ok((json!({"task": view::task(board, &event)?}), true))
    })
}

fn digest(args: &UpdateTeamTask, asked: &Change) -> String {
    let rest = json!([
        args.expected_revision,
        asked.subject,
        asked.description,
        asked.blocked_by,
        asked.write_scopes,
        asked.owner
    ]);
    let rest = serde_json::to_string(&rest).unwrap_or_default();
    ids::digest("update_task", &[&args.team_id, &args.task_id, asked.action, &rest])
}

fn apply(
    ctx: Ctx,
    board: &BoardTx,
    who: &Who,
    (id, expected): (&str, u64),
    asked: &Change,
    bounds: &Bounds,
) -> Result<TaskEvent> {
    settled(board)?;
    let (card, event) = board.task(id)?.ok_or_else(board::not_found)?;
    let names = Names(&board.team.team);
    let around = Around { graph: board, people: &names, bounds };
    let next = board::update(&event.task, expected, asked, who.actor(), around)?;
    board.append(Some((&card, &event.task)), next, who.stamp(ctx.now()))
}
