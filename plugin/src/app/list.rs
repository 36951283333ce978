//! List the owner's teams.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Ctx, view};
use crate::domain::error::Result;
use crate::domain::{limits, time};
use crate::store::records::{Head, Job, Need, Team, Work};
use crate::store::{Db, keys, parse, read};

/// Lists your teams, oldest first. `unfinished` counts the jobs that are not
/// finished, `waiting` those among them that need a person: to answer, to
/// decide, or to settle an outcome that nobody knows.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {}

pub fn list(ctx: Ctx, _: &List) -> Result<Value> {
    read(ctx.host, |db| {
        let mut teams = Vec::new();
        let owned = owned(db, ctx.owner())?;
        let uncounted = owned.iter().any(|(_, head)| head.waiting.is_none() && head.unfinished > 0);
        let counted = if uncounted { count_waiting(db, ctx.owner(), owned.len())? } else { BTreeMap::new() };
        for (team, head) in owned {
            let connected = view::connected(ctx, &team.id);
            let waiting = head.waiting.unwrap_or_else(|| counted.get(&team.id).copied().unwrap_or(0));
            teams.push(json!({
                "id": team.id, "name": team.name, "goal": team.goal, "revision": head.revision, "ready": head.ready,
                "connected": connected, "reason": view::disconnected(&head, connected), "members": team.members.len(),
                "unfinished": head.unfinished, "waiting": waiting, "created_at": time::rfc3339(team.created_at),
            }));
        }
        Ok(json!({"teams": teams}))
    })
}

/// How many unfinished jobs of each team need a person, from the work list: for
/// teams whose head does not count them.
fn count_waiting(db: &Db, owner: &str, teams: usize) -> Result<BTreeMap<String, u32>> {
    let most = teams as u32 * (limits::REQUESTS_PER_TEAM + limits::RECEIPTS_PER_TEAM);
    let mut found = BTreeMap::new();
    for (key, value) in db.scan_prefix(&keys::work_owner(owner), most)? {
        let work: Work = parse(&key, &value)?;
        let waits = match work.need {
            Need::Person => true,
            // What the host must be asked about may be what nobody knows.
            Need::Host => db
                .get::<Job>(&keys::TeamKeys::new(owner, &work.team).job(work.job))?
                .is_some_and(|job| job.phase.needs_person()),
            Need::Slot | Need::End => false,
        };
        if waits {
            *found.entry(work.team).or_insert(0) += 1;
        }
    }
    Ok(found)
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
