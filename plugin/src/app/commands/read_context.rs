//! Read the shared context: the members' tool.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::app::Ctx;
use crate::app::shared::calling_member::speaker;
use crate::app::shared::team_arg::OwnTeam;
use crate::app::shared::team_context;
use crate::domain::error::{Error, Result};
use crate::domain::{context, limits};
use crate::store::{TeamTx, read};

/// Shows your team as it is now: goal, members, public state, task board and
/// the most recent messages.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadTeamContext {
    /// The team's id, as given in your request. Absent: your own team.
    #[serde(default)]
    pub team_id: OwnTeam,
}

pub fn read_team_context(ctx: Ctx, args: &ReadTeamContext) -> Result<Value> {
    read(ctx.host, |db| {
        let team = TeamTx::load(db, ctx.owner(), &args.team_id)?;
        speaker(ctx, &team)?;
        let (context, _) = context::fit(team_context::shared_context(&team, None)?, limits::CONTEXT_BYTES);
        serde_json::to_value(context).map_err(|_| Error::internal("the context cannot be written"))
    })
}
