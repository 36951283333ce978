//! Ends a job whose record, or whose team's, cannot be read: its slot and its
//! place in the conversation are given back. What it was is not known any
//! more, so no receipt is sent.

use alloc::string::String;

use serde_json::{Value, json};

use super::damaged::{self, DAMAGED};
use super::view;
use crate::app::{Ctx, topic};
use crate::domain::error::{Error, Result};
use crate::domain::job::{Failure, JobKind, Phase, Source};
use crate::domain::{limits, time};
use crate::store::records::{Job, MessageKind, NewJob, Slot, Work};
use crate::store::{Db, TeamTx, commit_lock, keys, parse, readable, transact};

/// What is left of an unfinished job without its own record.
struct Remains {
    n: u32,
    slot: Option<String>,
    /// The entry of the work list, with its conversation and place.
    work: Option<(String, String, u32)>,
}

/// Ends the job. `error`: what cannot be read; it is answered where nothing of
/// an unfinished job is left to end.
pub fn job(ctx: Ctx, team: &str, id: &str, error: &Error) -> Result<Value> {
    let (owner, now) = (ctx.owner(), ctx.now());
    let (reply, revision) = transact(ctx.host, &commit_lock(owner, team), |db| {
        let at = keys::TeamKeys::new(owner, team);
        let n: Option<u32> = readable(db.get(&at.job_id(id)))?.flatten();
        let Some(remains) = n.map(|n| remains(db, owner, team, n)).transpose()?.flatten() else {
            return Err(error.clone());
        };
        // Something else is damaged; the job itself can be read.
        if TeamTx::load(db, owner, team).is_ok_and(|team| team.job(remains.n).is_ok()) {
            return Err(error.clone());
        }
        let Remains { n, slot, work } = &remains;
        for key in slot.iter().chain(work.iter().map(|(key, ..)| key)).chain(&[at.input(*n), at.answer(*n)]) {
            db.delete(key)?;
        }
        let why = damaged::reason(error.damaged_key().unwrap_or(""));
        let Some(team) = readable(TeamTx::load(db, owner, team))? else {
            let mut reply = damaged::nothing_of(id, *n, &Value::Null);
            reply["thread"] = json!(work.as_ref().map_or("", |(_, thread, _)| thread));
            reply["error"] = json!({"code": DAMAGED, "message": why["message"]});
            reply["completed_at"] = json!(time::rfc3339(now));
            return Ok((reply, None));
        };
        let job = replace(&team, id, &remains, &why, now)?;
        let revision = team.record_change()?;
        Ok((view::job(ctx, &team, &job, true)?, Some(revision)))
    })?;
    ctx.host.publish(owner, &topic(team), revision.unwrap_or(0));
    Ok(json!({"job": reply}))
}

fn remains(db: &Db, owner: &str, team: &str, n: u32) -> Result<Option<Remains>> {
    let mut found = Remains { n, slot: None, work: None };
    for (key, value) in db.scan_prefix(keys::slots(), limits::MANY_SLOTS)? {
        let slot = readable(parse::<Slot>(&key, &value))?;
        if slot.is_some_and(|slot| slot.owner == owner && slot.team == team && slot.n == n) {
            found.slot = Some(key);
        }
    }
    let most = limits::TEAMS_PER_OWNER as u32 * (limits::REQUESTS_PER_TEAM + limits::RECEIPTS_PER_TEAM);
    for (key, value) in db.scan_prefix(&keys::work_owner(owner), most)? {
        let work = readable(parse::<Work>(&key, &value))?;
        if work.is_some_and(|work| work.team == team && work.job == n) {
            let mut parts = key.rsplit('/');
            let seq = parts.next().and_then(|seq| seq.parse().ok()).unwrap_or(0);
            let thread = parts.next().map(keys::unpart).unwrap_or_default();
            found.work = Some((key, thread, seq));
        }
    }
    Ok((found.slot.is_some() || found.work.is_some()).then_some(found))
}

/// A finished record in place of the one that cannot be read.
fn replace(team: &TeamTx, id: &str, remains: &Remains, why: &Value, now: u64) -> Result<Job> {
    let n = remains.n;
    let (thread, seq) = remains.work.as_ref().map_or(("", 0), |(_, thread, seq)| (thread.as_str(), *seq));
    let record = Job {
        n,
        root: n,
        seq,
        phase: Phase::Failed,
        failure: Some(Failure { code: DAMAGED.into(), message: why["message"].as_str().unwrap_or("").into() }),
        completed_at: Some(now),
        ..Job::queued(NewJob {
            id: id.into(),
            kind: JobKind::Request,
            member: team.team.member_of_thread(thread).map(|m| m.id.clone()),
            thread: thread.into(),
            source: Source::Owner,
            request_id: String::new(),
            digest: String::new(),
            created_at: 0,
        })
    };
    team.db.put(&team.keys.job(n), &record)?;
    team.add_message(MessageKind::Notice, n, now)?;
    let mut head = team.head.borrow_mut();
    head.unfinished = head.unfinished.saturating_sub(1);
    // Whether it was counted among those that wait is not known.
    head.waiting = None;
    Ok(record)
}
