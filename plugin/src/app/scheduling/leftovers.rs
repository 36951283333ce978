//! What jobs that have ended left in a conversation: a run that outlived its
//! job, since a person settled it, or interrupts that no job waits for. Nothing
//! else would ever end them, and the conversation would take no other work.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::permit::Admission;
use super::readiness::State;
use super::step::TeamStep;
use crate::app::shared::calling_member;
use crate::domain::error::Result;
use crate::domain::job::Phase;
use crate::host::{Level, ThreadState};
use crate::store::records::{Job, Outlived};
use crate::store::{Db, keys, parse, read, readable, transact};

/// Runs of one conversation that are looked at. A run leaves an entry for as
/// long as its team exists.
const RUNS: u32 = 1_000;

/// Ends what is left in the conversation in which this job wants to start.
/// Gives the conversation as it is then.
pub fn end(s: &TeamStep, planned: &Admission, seen: State) -> Result<State> {
    let thread = planned.thread.as_str();
    let Ok(state) = &seen else { return Ok(seen) };
    if quiet(state) {
        return Ok(seen);
    }
    let (settled, known) = read(s.host, |db| {
        let known = match &state.active_run {
            Some(run) => of_an_ended_job(db, s.owner, thread, run)?.into_iter().collect(),
            None => interrupted(db, s, planned)?,
        };
        Ok((calling_member::outlived(db, s.owner, thread)?, known))
    })?;
    let found = |left: Outlived| {
        let run = left.key.as_deref().and_then(|key| Some(s.runs.find(thread, key).ok()?.id));
        (left, run)
    };
    let settled: Vec<(Outlived, Option<String>)> = settled.into_iter().map(found).collect();
    let of_settled = settled.iter().flat_map(|(left, found)| left.run.iter().chain(found)).cloned();
    let left: Vec<String> = of_settled.chain(known).collect();
    if left.is_empty() {
        return Ok(seen);
    }
    for run in left {
        // Whether it has ended is read from the conversation.
        let ended = s.runs.cancel(thread, &run);
        s.host.log(Level::Info, &format!("run {run} of an ended job is withdrawn from its conversation: {ended:?}"));
    }
    let seen = s.runs.state(thread, None, None);
    if seen.as_ref().is_ok_and(quiet) {
        forget(s, thread, &settled)?;
    }
    Ok(seen)
}

/// What was settled in a conversation has ended there. A run without a name may
/// still make a late call, and is remembered.
fn forget(s: &TeamStep, thread: &str, settled: &[(Outlived, Option<String>)]) -> Result<()> {
    if settled.is_empty() {
        return Ok(());
    }
    transact(s.host, &s.lock(), |db| {
        for (left, found) in settled {
            if let Some(run) = found {
                db.put(&keys::ran(s.owner, thread, run), &(&left.team, left.n))?;
            }
            if found.is_some() || left.key.is_none() {
                calling_member::forget_outlived(db, s.owner, thread, left)?;
            }
        }
        Ok(())
    })
}

/// Nothing runs in the conversation, and nothing is asked there but, maybe, a
/// clarification.
fn quiet(state: &ThreadState) -> bool {
    state.active_run.is_none() && state.interrupts.is_empty()
}

/// The active run, if its job has ended.
fn of_an_ended_job(db: &Db, owner: &str, thread: &str, run: &str) -> Result<Option<String>> {
    let Some((team, n)) = db.get::<(String, u32)>(&keys::ran(owner, thread, run))? else { return Ok(None) };
    let job: Option<Job> = db.get(&keys::TeamKeys::new(owner, &team).job(n))?;
    Ok(job.is_none_or(|job| job.phase.finished()).then(|| run.into()))
}

/// The runs that may have stopped at the open interrupts: those of jobs that
/// ended without an answer, of each team the last, since its jobs run in this
/// conversation in the order of their numbers. (Times do not tell: clocks are
/// set back.)
fn interrupted(db: &Db, s: &TeamStep, planned: &Admission) -> Result<Vec<String>> {
    let this: Option<Job> = db.get(&keys::TeamKeys::new(s.owner, s.team).job(planned.job))?;
    // An answer is for interrupts of its own job.
    if this.is_none_or(|job| job.phase != Phase::Queued) {
        return Ok(Vec::new());
    }
    let mut last: BTreeMap<String, (u32, String)> = BTreeMap::new();
    for (key, value) in db.scan_prefix(&keys::rans(s.owner, &planned.thread), RUNS)? {
        // A record that cannot be read holds up no other work.
        let Some((team, n)) = readable(parse::<(String, u32)>(&key, &value))? else { continue };
        let job = readable(db.get::<Job>(&keys::TeamKeys::new(s.owner, &team).job(n)))?.flatten();
        let Some(job) = job else { continue };
        if let (Phase::Cancelled | Phase::Failed, Some(run)) = (&job.phase, job.ended_run)
            && last.get(&team).is_none_or(|(newest, _)| n > *newest)
        {
            last.insert(team, (n, run));
        }
    }
    Ok(last.into_values().map(|(_, run)| run).collect())
}
