//! List the owner's teams.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::Ctx;
use crate::app::shared::{damaged, view};
use crate::domain::error::{Error, Result};
use crate::domain::{limits, time};
use crate::store::records::{Head, Job, Need, Team, Work};
use crate::store::{Db, keys, parse, read, readable};

/// Lists your teams, oldest first. `unfinished` counts the jobs that are not
/// finished, `waiting` those among them that need a person: to answer, to
/// decide, or to settle an outcome that nobody knows.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {}

pub fn list(ctx: Ctx, _: &List) -> Result<Value> {
    read(ctx.host, |db| {
        let mut teams = Vec::new();
        let (owned, unreadable) = listed(db, ctx.owner())?;
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
            // What the host must be asked about may be what nobody knows.
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

/// The owner's teams that can be read, oldest first: two records each, whatever
/// their history.
pub fn owned(db: &Db, owner: &str) -> Result<Vec<(Team, Head)>> {
    Ok(listed(db, owner)?.0)
}

/// Those, and the ids of the others with what is wrong.
type Listed = (Vec<(Team, Head)>, Vec<(String, Error)>);

fn listed(db: &Db, owner: &str) -> Result<Listed> {
    let entries = db.scan_prefix(&keys::list(owner), limits::TEAMS_PER_OWNER as u32 + 1)?;
    let ids: Vec<&str> = entries.iter().filter_map(|(key, _)| keys::listed_team(key)).collect();
    let at: Vec<keys::TeamKeys> = ids.iter().map(|id| keys::TeamKeys::new(owner, id)).collect();
    let teams = db.get_each::<Team>(&at.iter().map(|k| k.team()).collect::<Vec<String>>())?;
    let heads = db.get_each::<Head>(&at.iter().map(|k| k.head()).collect::<Vec<String>>())?;
    let (mut owned, mut damaged) = (Vec::new(), Vec::new());
    for ((id, team), head) in ids.into_iter().zip(teams).zip(heads) {
        match (team, head) {
            (Some(Ok(team)), Some(Ok(head))) => owned.push((team, head)),
            (Some(Err(error)), _) | (_, Some(Err(error))) => damaged.push((id.into(), error)),
            _ => {}
        }
    }
    Ok((owned, damaged))
}
