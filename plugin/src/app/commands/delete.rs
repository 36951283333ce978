//! Delete a team that has nothing unfinished. Conversations stay.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::shared::{calling_member, deleted_team, heads, owned_teams};
use crate::app::{Ctx, topic};
use crate::domain::error::{Error, Result};
use crate::domain::limits;
use crate::host::Level;
use crate::store::records::{Job, Team};
use crate::store::{Db, TeamTx, commit_lock, keys, parse, read, readable, step_lock, transact};

/// Deletes a finished team's records. The members' conversations stay.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    pub team_id: String,
}

pub fn delete(ctx: Ctx, delete: &Delete) -> Result<Value> {
    let (owner, id) = (ctx.owner(), delete.team_id.as_str());
    // A refusal needs no lock, so it holds up no step of the team.
    read(ctx.host, |db| check(db, owner, id).map(|_| ()))?;
    let _step = ctx
        .host
        .lock(&step_lock(owner, id), limits::LOCK_MS)
        .map_err(|_| Error::team_busy("The team is talking to the host; nothing happened. Try again."))?;
    // The roster goes first, with the whole decision: from then on the team
    // does not exist, and what is left of it is swept away in bounded commits.
    let lock = commit_lock(owner, id);
    transact(ctx.host, &lock, |db| {
        if let Some(team) = check(db, owner, id)? {
            forget_runs(&team)?;
        }
        let at = keys::TeamKeys::new(owner, id);
        db.delete(&at.team())?;
        db.delete(&at.head())?;
        db.put_text(&keys::gone_team(owner, id), "{}")?;
        for (key, _) in db.scan_prefix(&keys::list(owner), limits::TEAMS_PER_OWNER as u32 + 1)? {
            if keys::listed_team(&key) == Some(id) {
                db.delete(&key)?;
            }
        }
        Ok(())
    })?;
    ctx.host.forget(owner, id);
    ctx.host.publish(owner, &topic(id), 0);
    // The team is gone: what cannot be removed now is left to the worker's
    // sweeps, and is not a failure of this call.
    if let Err(error) = deleted_team::purge(ctx.host, owner, id, limits::PURGE_COMMITS) {
        ctx.host.log(Level::Info, &format!("records of the deleted team {id} are left: {}", error.code));
    }
    Ok(json!({"deleted": true, "team_id": id}))
}

/// The team, if it may be deleted. Nothing: its roster or head cannot be read,
/// and none of its jobs is in the work list.
fn check<'d, 'h>(db: &'d Db<'h>, owner: &'d str, id: &str) -> Result<Option<TeamTx<'d, 'h>>> {
    let (team, unfinished) = match TeamTx::load(db, owner, id) {
        Err(error) if error.damaged_key().is_some() => (None, heads::of_team(db, owner, id)?),
        team => {
            let team = team?;
            let unfinished = team.head.borrow().unfinished;
            (Some(team), unfinished)
        }
    };
    if unfinished > 0 {
        return Err(Error::conflict(
            "team_not_finished",
            format!("{unfinished} jobs of this team are not finished. Cancel them or let them end, then delete it."),
        ));
    }
    Ok(team)
}

/// Removes which runs executed this team's jobs; these records are stored under their
/// conversations. In the conversation of another team's member they stay until
/// that team goes: a late call of such a run would be taken for its next job's.
/// At most two hundred jobs are looked at.
fn forget_runs(team: &TeamTx) -> Result<()> {
    let jobs = team.head.borrow().jobs;
    let numbers: Vec<String> = (1..=jobs).map(|n| team.keys.job(n)).collect();
    let mut threads: Vec<String> = team.team.members.iter().map(|m| m.thread.clone()).collect();
    for job in team.db.get_each::<Job>(&numbers)?.into_iter().flatten().flatten() {
        if !threads.contains(&job.thread) {
            threads.push(job.thread);
        }
    }
    let others: Vec<Team> = owned_teams::owned(team.db, team.owner)?.into_iter().map(|(other, _)| other).collect();
    let others: Vec<&Team> = others.iter().filter(|other| other.id != team.team.id).collect();
    threads.retain(|thread| !others.iter().any(|other| other.member_of_thread(thread).is_some()));
    for thread in threads {
        for (key, value) in team.db.scan_prefix(&keys::rans(team.owner, &thread), 4_000)? {
            let of = readable(parse::<(String, u32)>(&key, &value))?;
            if of.is_some_and(|(of, _)| !others.iter().any(|other| other.id == of)) {
                team.db.delete(&key)?;
            }
        }
        for left in
            calling_member::outlived(team.db, team.owner, &thread)?.iter().filter(|left| left.team == team.team.id)
        {
            calling_member::forget_outlived(team.db, team.owner, &thread, left)?;
        }
    }
    Ok(())
}
