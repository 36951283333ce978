//! What becomes of a job whose step fails by what is stored, not by what the
//! host says: a record that cannot be read or is too large, a rule that does
//! not hold. It is the trouble of that job: the others of its team go on.

use alloc::format;

use super::finish::{Ending, finish};
use super::observe::Observation;
use super::record::apply;
use super::rotation::serve;
use super::step::{TeamStep, hold_as};
use crate::app::shared::change::change_team;
use crate::app::shared::heads;
use crate::domain::error::{Cause, Error, Kind, Result};
use crate::domain::job::Failure;
use crate::domain::limits;
use crate::domain::machine::{Event, transition};
use crate::host::Level;
use crate::store::records::Job;
use crate::store::{TeamTx, transact};

/// What a step wanted of the job.
#[derive(Clone, Copy)]
pub enum Wanted<'a> {
    /// To collect it, and what was seen by then.
    Collect(Option<&'a Observation>),
    /// To admit it.
    Admit,
}

/// Holds a job back whose step failed, and gives it up after several such
/// failures in a row. An error that is not the job's ends the step, or, where
/// others were only faster, means nothing. True: something changed.
pub fn after(s: &TeamStep, n: u32, wanted: Wanted, error: Error) -> Result<bool> {
    if !is_the_jobs(s, n, &error)? {
        return Ok(false);
    }
    let level = if error.kind == Kind::Internal && error.damaged_key().is_none() { Level::Error } else { Level::Warn };
    s.host.log(level, &format!("job {n} of team {} is held back ({}): {}", s.team, error.code, error.message));
    match hold_back(s, n, wanted, &error) {
        Ok(changed) => Ok(changed),
        Err(second) if is_the_jobs(s, n, &second)? => put_off(s, n, wanted),
        Err(_) => Ok(false),
    }
}

/// Whether an error is the job's own. The store's is passed on; where others
/// committed first, or the team was deleted, the next plan finds what is left.
fn is_the_jobs(s: &TeamStep, n: u32, error: &Error) -> Result<bool> {
    if [Cause::Contended, Cause::TeamBusy, Cause::NoTeam].iter().any(|cause| error.is(*cause)) {
        s.host.log(Level::Debug, &format!("job {n} of team {}: {}", s.team, error.code));
        return Ok(false);
    }
    match error.kind {
        Kind::Unavailable | Kind::Unknown => Err(error.clone()),
        _ => Ok(true),
    }
}

fn hold_back(s: &TeamStep, n: u32, wanted: Wanted, error: &Error) -> Result<bool> {
    let now = s.host.now_ms();
    change_team(s.host, s.owner, s.team, |team| {
        let Some(mut job) = team.planned_job(n)? else { return Ok(false) };
        let wants_slot = job.phase.wants_slot();
        if job.phase.finished() || wants_slot != matches!(wanted, Wanted::Admit) {
            return Ok(false);
        }
        if job.tries(&error.code) <= limits::FAILURES_TO_GIVE_UP || !give_up(team, &job, wanted, error, now)? {
            job.hold = Some(hold_as(&job, &error.code, &error.message, now));
            team.save_job(&mut job, now)?;
        }
        if wants_slot {
            serve(team.db, s)?;
        }
        team.record_change()?;
        Ok(true)
    })
}

/// Ends the job with the reason. A run that may still be at work is not called
/// failed: its outcome is unknown, and a person settles it. False: there is
/// nothing to give up.
fn give_up(team: &TeamTx, job: &Job, wanted: Wanted, error: &Error, now: u64) -> Result<bool> {
    let failure = Failure { code: error.code.clone().into_owned(), message: error.message.clone() };
    let seen = match wanted {
        Wanted::Admit => {
            let Some(phase) = transition(&job.phase, Event::Failed) else { return Ok(false) };
            let ended = Job { phase, ..job.clone() };
            finish(team, job.phase.run(), ended, Ending::Failed(failure), now)?;
            return Ok(true);
        }
        Wanted::Collect(Some(Observation::Ended { run, .. } | Observation::Asked { run, .. })) => {
            Observation::Ended { run: run.clone(), ending: Ending::Failed(failure) }
        }
        Wanted::Collect(Some(Observation::Never(_))) => Observation::Never(failure),
        Wanted::Collect(_) => Observation::Lost,
    };
    apply(team, job.clone(), &seen, now)
}

/// The job itself cannot be read or written: its place in the work list waits.
fn put_off(s: &TeamStep, n: u32, wanted: Wanted) -> Result<bool> {
    let until = s.host.now_ms().saturating_add(limits::PAUSE_MAX_MS);
    transact(s.host, &s.lock(), |db| {
        if matches!(wanted, Wanted::Admit) {
            serve(db, s)?;
        }
        heads::due_at(db, s.owner, s.team, &[n], until)
    })
}
