//! Read one task whole, tombstones included.

use alloc::string::String;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{as_member, hide_team, look, view};
use crate::app::Ctx;
use crate::app::shared::team_arg::OwnTeam;
use crate::domain::board;
use crate::domain::error::Result;
use crate::store::board::BoardTx;

/// Reads one task of your team's board whole: its description, revision,
/// owner, whether it is ready, what it waits for, who waits for it, and whose
/// work its write scopes overlap. A deleted task can still be read.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetTeamTask {
    /// The team's id, as given in your request. Absent: your own team.
    #[serde(default)]
    pub team_id: OwnTeam,
    /// The task's id, such as "task-3".
    pub task_id: String,
}

pub fn get_team_task(ctx: Ctx, args: &GetTeamTask) -> Result<Value> {
    look(ctx, &args.team_id, as_member, |board, _| whole(board, &args.task_id)).map_err(hide_team)
}

/// A task with everything about it.
pub fn whole(board: &BoardTx, id: &str) -> Result<Value> {
    match board.task(id)? {
        Some((_, event)) => view::task(board, &event),
        None => Err(board::not_found()),
    }
}
