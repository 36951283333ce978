//! Delete a team that has nothing unfinished. Conversations stay.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Ctx, topic};
use crate::domain::error::{Error, Result};
use crate::domain::limits;
use crate::host::Level;
use crate::store::records::Job;
use crate::store::{TeamTx, commit_lock, keys, parse, step_lock, transact};

/// Deletes a finished team's records. The members' conversations stay.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    pub team_id: String,
}

/// Records removed in one commit. The scan reads their values, too, and the
/// largest have 256 KiB.
const CHUNK: u32 = 96;

pub fn delete(ctx: Ctx, delete: &Delete) -> Result<Value> {
    let (owner, id) = (ctx.owner(), delete.team_id.as_str());
    let _step = ctx.host.lock(&step_lock(owner, id), limits::LOCK_MS).map_err(|_| {
        Error::unavailable("team_busy", "The team is talking to the host; nothing happened. Try again.")
    })?;
    // The roster goes first, with the whole decision: from then on the team
    // does not exist, and what is left of it is swept away in bounded commits.
    let lock = commit_lock(owner, id);
    transact(ctx.host, &lock, |db| {
        let team = TeamTx::load(db, owner, id)?;
        let unfinished = team.head.borrow().unfinished;
        if unfinished > 0 {
            return Err(Error::conflict(
                "team_not_finished",
                format!(
                    "{unfinished} jobs of this team are not finished. Cancel them or let them end, then delete it."
                ),
            ));
        }
        forget_runs(&team)?;
        db.delete(&team.keys.team())?;
        db.delete(&team.keys.head())?;
        db.delete(&keys::list_entry(owner, team.team.created_at, id))
    })?;
    ctx.host.forget(owner, id);
    ctx.host.publish(owner, &topic(id), 0);
    // The team is gone: what cannot be swept now is swept when its name is used
    // again, and is no failure of this call.
    if let Err(error) = sweep(ctx, id) {
        ctx.host.log(Level::Info, &format!("records of the deleted team {id} are left: {}", error.code));
    }
    Ok(json!({"deleted": true, "team_id": id}))
}

/// Removes which runs executed this team's jobs; these records lie under their
/// conversations. At most two hundred jobs are looked at.
fn forget_runs(team: &TeamTx) -> Result<()> {
    let jobs = team.head.borrow().jobs;
    let numbers: Vec<String> = (1..=jobs).map(|n| team.keys.job(n)).collect();
    let mut threads: Vec<String> = team.team.members.iter().map(|m| m.thread.clone()).collect();
    for job in team.db.get_many::<Job>(&numbers)?.into_iter().flatten() {
        if !threads.contains(&job.thread) {
            threads.push(job.thread);
        }
    }
    for thread in threads {
        for prefix in [keys::rans(team.owner, &thread), keys::outlived_in(team.owner, &thread)] {
            for (key, value) in team.db.scan_prefix(&prefix, 4_000)? {
                let (of, _): (String, u32) = parse(&key, &value)?;
                if of == team.team.id {
                    team.db.delete(&key)?;
                }
            }
        }
    }
    Ok(())
}

/// Removes what a deleted team left behind, unless a team of the same id has
/// been made since. `create` calls it too, for a crash in the middle.
pub fn sweep(ctx: Ctx, id: &str) -> Result<()> {
    let keys = keys::TeamKeys::new(ctx.owner(), id);
    loop {
        let left = transact(ctx.host, &commit_lock(ctx.owner(), id), |db| {
            if db.get_text(&keys.team())?.is_some() {
                return Ok(0);
            }
            let entries = db.scan_prefix(keys.prefix(), CHUNK)?;
            for (key, _) in &entries {
                db.delete(key)?;
            }
            Ok(entries.len())
        })?;
        if left < CHUNK as usize {
            return Ok(());
        }
    }
}
