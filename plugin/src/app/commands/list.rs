//! List the owner's teams.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::Ctx;
use crate::app::shared::{damaged, owned_teams, view};
use crate::domain::error::Result;
use crate::domain::{limits, time};
use crate::store::records::{Job, Need, Work};
use crate::store::{Db, keys, parse, read, readable};

/// Lists your teams, oldest first. `unfinished` counts the jobs that are not
/// finished, `waiting` those among them that need a person: to answer, to
/// decide, or to settle an unknown outcome.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {}

pub fn list(ctx: Ctx, _: &List) -> Result<Value> {
    read(ctx.host, |db| {
        let mut teams = Vec::new();
        let (owned, unreadable) = owned_teams::listed(db, ctx.owner())?;
        let uncounted = owned.iter().any(|(_, head)| head.waiting.is_none() && head.unfinished > 0);
        let counted = if uncounted { count_waiting(db, ctx.owner(), owned.len())? } else { BTreeMap::new() };
        for (team, head) in owned {
            let connected = ctx.connected(&team.id);
            let waiting = head.waiting.unwrap_or_else(|| counted.get(&team.id).copied().unwrap_or(0));
            teams.push(json!({
                "id": team.id, "name": team.name, "goal": team.goal, "revision": head.revision, "ready": head.ready,
                "connected": connected, "reason": view::disconnected(&head, connected), "members": team.members.len(),
                "unfinished": head.unfinished, "waiting": waiting, "created_at": time::rfc3339(team.created_at),
            }));
        }
        for (id, error) in unreadable {
            let shown = damaged::team(ctx, db, &id, &error)?["team"].take();
            teams.push(json!({
                "id": id, "name": shown["name"], "goal": shown["goal"], "revision": shown["revision"], "ready": false,
                "connected": shown["connected"], "reason": shown["reason"],
                "members": shown["members"].as_array().map_or(0, Vec::len),
                "unfinished": shown["counts"]["unfinished"], "waiting": 0, "created_at": null,
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
        let Some(work) = readable(parse::<Work>(&key, &value))? else { continue };
        let waits = match work.need {
            Need::Person => true,
            // `Need::Host` includes jobs of unknown outcome, which need a person.
            Need::Host => readable(db.get::<Job>(&keys::TeamKeys::new(owner, &work.team).job(work.job)))?
                .flatten()
                .is_some_and(|job| job.phase.needs_person()),
            Need::Slot | Need::End => false,
        };
        if waits {
            *found.entry(work.team).or_insert(0) += 1;
        }
    }
    Ok(found)
}
