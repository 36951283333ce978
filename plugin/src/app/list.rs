//! List the owner's teams.

use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Ctx, view};
use crate::domain::error::Result;
use crate::domain::{limits, time};
use crate::store::records::{Head, Team};
use crate::store::{Db, keys, read};

/// Lists your teams, oldest first.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {}

pub fn list(ctx: Ctx, _: &List) -> Result<Value> {
    read(ctx.host, |db| {
        let mut teams = Vec::new();
        for (team, head) in owned(db, ctx.owner())? {
            teams.push(json!({
                "id": team.id, "name": team.name, "goal": team.goal, "revision": head.revision, "ready": head.ready,
                "connected": view::connected(ctx, &team.id), "members": team.members.len(),
                "unfinished": head.unfinished, "created_at": time::rfc3339(team.created_at),
            }));
        }
        Ok(json!({"teams": teams}))
    })
}

/// The owner's teams, oldest first: two records each, whatever their history.
pub fn owned(db: &Db, owner: &str) -> Result<Vec<(Team, Head)>> {
    let entries = db.scan_prefix(&keys::list(owner), limits::TEAMS_PER_OWNER as u32 + 1)?;
    let mut at: Vec<keys::TeamKeys> = Vec::new();
    for (key, _) in &entries {
        // list/OWNER/CREATED-TEAM, with 14 digits before the dash.
        if let Some(team) = key.rsplit('/').next().and_then(|last| last.get(15..)) {
            at.push(keys::TeamKeys::new(owner, team));
        }
    }
    let teams: Vec<Option<Team>> = db.get_many(&at.iter().map(|k| k.team()).collect::<Vec<String>>())?;
    let heads: Vec<Option<Head>> = db.get_many(&at.iter().map(|k| k.head()).collect::<Vec<String>>())?;
    Ok(teams.into_iter().zip(heads).filter_map(|(team, head)| Some((team?, head?))).collect())
}
