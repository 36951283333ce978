//! Connect a team: bind a capability to it and make sure that all its
//! conversations exist.

use alloc::string::String;

use schemars::JsonSchema;
use serde::Deserialize;

use super::get;
use crate::app::Ctx;
use crate::app::scheduling::connection;
use crate::domain::error::Result;
use crate::store::stored;

/// Connects a team again, so that its work continues. Harmless when repeated.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connect {
    pub team_id: String,
}

pub fn connect(ctx: Ctx, connect: &Connect) -> Result<serde_json::Value> {
    let runs = ctx.require_runs()?;
    connection::ensure(ctx.host, ctx.owner(), &connect.team_id, runs)?;
    get::view(ctx, &connect.team_id, &get::Page::default()).map_err(stored)
}
