//! What an observation of the host changes about a job, inside a transaction.

use alloc::string::String;

use super::finish::{Ending, finish};
use super::input;
use super::observe::Observation;
use super::step::hold;
use crate::domain::error::Result;
use crate::domain::hold_code::HoldCode;
use crate::domain::job::{Hold, Phase, Wait};
use crate::domain::limits;
use crate::domain::machine::{Event, transition};
use crate::store::records::{Frozen, Job};
use crate::store::{TeamTx, keys, readable};

/// Applies an observation to a job inside a transaction. False: it came late
/// and changed nothing.
pub fn apply(team: &TeamTx, mut job: Job, seen: &Observation, now: u64) -> Result<bool> {
    let before = job.phase.clone();
    let waiting =
        matches!((&before, seen), (Phase::Waiting { .. }, Observation::Later { .. } | Observation::Ended { .. }));
    if !before.holds_slot() && !waiting {
        return Ok(false);
    }
    let seen = match seen {
        Observation::Overtaken(seen) => {
            job.note = Some(OVERTAKEN.into());
            seen
        }
        seen => seen,
    };
    if seen.run().is_some() {
        team.head.borrow_mut().disconnects = 0;
    }
    if let Some(run) = seen.run().filter(|run| before.run() != Some(run)) {
        team.db.put(&keys::ran(team.owner, &job.thread, run), &(&team.team.id, job.n))?;
    }
    if let Observation::Later { code, message, .. } = seen {
        if let Some(same) = job.hold.as_ref().filter(|h| h.code == code.as_str() && h.message == *message)
            && limits::pause_ms(same.tries) == limits::PAUSE_MAX_MS
        {
            // Nothing is new but the time of the next look.
            team.look_again(&job, now + limits::PAUSE_MAX_MS)?;
            return Ok(false);
        }
        job.hold = Some(hold(&job, *code, message, now));
        team.save_job(&mut job, now)?;
        return Ok(true);
    }
    let Some((event, ending)) = event(team, &mut job, seen)? else { return Ok(false) };
    let Some(phase) = transition(&job.phase, event) else { return Ok(false) };
    job.phase = phase;
    job.hold = match seen {
        Observation::NotNow { code, message, .. } => Some(hold(&job, *code, message, now)),
        // Until the next answer, with nothing to look at before.
        Observation::Refused { message } => {
            Some(Hold { next_at: 0, ..hold(&job, HoldCode::AnswerRefused, message, now) })
        }
        // Keep polling for the run, with growing backoff.
        Observation::Lost => Some(hold(&job, HoldCode::OutcomeUnknown, UNKNOWN, now)),
        _ => None,
    };
    match seen {
        Observation::NotNow { .. } if job.phase == Phase::Queued => {
            // The next input is made anew, and one key carries one input only.
            job.refused += 1;
        }
        Observation::Refused { .. } => {
            // Its request id stays with it: one key carries one answer only.
            job.answer = None;
            team.db.delete(&team.keys.answer(job.n))?;
            team.db.delete(&team.keys.input(job.n))?;
        }
        _ => {}
    }
    if let Some(run) = seen.run() {
        // The run of the newest message; an answered interrupt continues in another.
        if job.message_run.is_none() {
            job.message_run = Some(run.into());
        }
        // The notices that its input carried have arrived with the run.
        if before.attempt().is_none() {
            drop_notices(team, &job)?;
        }
    }
    if job.phase.finished() {
        let ending = ending.unwrap_or(Ending::Cancelled { note: None });
        finish(team, seen.run().or(before.run()), job, ending, now)?;
        return Ok(true);
    }
    team.save_job(&mut job, now)?;
    Ok(true)
}

/// What an observation means for a job, and how the job ends if it does.
fn event(team: &TeamTx, job: &mut Job, seen: &Observation) -> Result<Option<(Event, Option<Ending>)>> {
    let ends = matches!(
        seen,
        Observation::Ended { .. } | Observation::Asked { .. } | Observation::Stopped { .. } | Observation::Never(_)
    );
    if job.phase.cancelling() && ends {
        return Ok(Some(match seen {
            // Seen before the cancel came in: the interrupts are still open.
            Observation::Asked { run, wait: Wait::Interrupts { .. } } => (Event::Started { run: run.clone() }, None),
            _ => (Event::Stopped, None),
        }));
    }
    let event = match seen {
        Observation::Nothing | Observation::Later { .. } | Observation::Stopped { .. } | Observation::Overtaken(_) => {
            return Ok(None);
        }
        Observation::Started { run } => Event::Started { run: run.clone() },
        Observation::Ended { run, ending } => {
            let event = match ending {
                Ending::Completed { .. } => Event::Completed { run: run.clone() },
                _ => Event::Failed,
            };
            return Ok(Some((event, Some(ending.clone()))));
        }
        Observation::Asked { run, wait } => Event::Asked { run: run.clone(), wait: wait.clone() },
        Observation::NotNow { .. } => Event::NotAdmitted,
        Observation::Never(failure) => return Ok(Some((Event::Failed, Some(Ending::Failed(failure.clone()))))),
        Observation::Refused { .. } => Event::AnswerRefused,
        Observation::Lost => Event::Lost { key: run_key(team, job)?, answer: job.answer.clone() },
        Observation::CancelAccepted { run } => {
            // The run may have been found only now.
            if let Some(phase) = transition(&job.phase, Event::Started { run: run.clone() }) {
                job.phase = phase;
            }
            Event::CancelAccepted
        }
    };
    Ok(Some((event, None)))
}

const OVERTAKEN: &str = "The question was answered in the conversation itself before the answer given here arrived; that \
     first answer counts.";

const UNKNOWN: &str =
    "The outcome of its run is unknown. Look at the conversation, then settle the job as failed or try again.";

/// The key of a job's newest attempt.
pub fn run_key(team: &TeamTx, job: &Job) -> Result<String> {
    Ok(match &job.phase {
        Phase::Answered { answer, .. } | Phase::Resuming { answer, .. } => answer.key.clone(),
        Phase::Cancelling { key, .. } | Phase::Unknown { key, .. } => key.clone(),
        // What runs may have begun with an answer: the frozen input knows.
        _ => match readable(team.db.get::<Frozen>(&team.keys.input(job.n)))?.flatten() {
            Some(frozen) => frozen.key,
            None => input::next_key(team, job),
        },
    })
}

/// The notices that an input carried have arrived with its run.
fn drop_notices(team: &TeamTx, job: &Job) -> Result<()> {
    if let Some(frozen) = readable(team.db.get::<Frozen>(&team.keys.input(job.n)))?.flatten() {
        for n in frozen.notices {
            team.db.delete(&team.keys.notice(&job.thread, n))?;
        }
    }
    Ok(())
}
