//! Admit one job: look at its conversation, freeze its input with a slot,
//! then ask the host.

use alloc::boxed::Box;
use alloc::string::String;

use super::finish::{Ending, finish};
use super::input::freeze;
use super::observe::{self, Attempt};
use super::permit::Admission;
use super::readiness::{Readiness, ready};
use super::rotation::{round, serve};
use super::step::{TeamStep, hold};
use super::timed::Timed;
use super::{connection, leftovers, slots};
use crate::app::shared::heads;
use crate::app::topic;
use crate::domain::error::Result;
use crate::domain::hold_code::HoldCode;
use crate::domain::machine::{Event, transition};
use crate::store::records::{Frozen, Job, Slot};
use crate::store::{Db, TeamTx, keys, readable, transact};

/// What an attempt has stored.
enum Attempted {
    /// Frozen, with a slot: the host is asked next, to start it or, without
    /// `send`, what became of it.
    Frozen { job: Box<Job>, frozen: Frozen, send: bool },
    /// Back in the queue, with a reason.
    Held { code: HoldCode, message: String, disconnect: bool },
    /// It can never start.
    Failed,
}

/// Tries to start one job. True: something changed.
///
/// The conversation is looked at first; then one commit, which reads of what
/// teams share only the conversation's head, this slot and the round, freezes
/// the input and takes the slot, or says why not. The attempt counts as the
/// owner's turn.
pub fn admit(s: &TeamStep, planned: &Admission) -> Result<bool> {
    let timed = Timed::new(s.host, s.runs);
    let s = &TeamStep { runs: &timed, ..*s };
    let seen = connection::agent_is_back(s, planned, s.runs.state(&planned.thread, None, None))?;
    let seen = leftovers::end(s, planned, seen)?;
    let now = s.host.now_ms();
    let tried = transact(s.host, &s.lock(), |db| {
        let team = TeamTx::load(db, s.owner, s.team)?;
        let Some(mut job) = team.planned_job(planned.job)? else { return Ok(None) };
        let Some(phase) = transition(&job.phase, Event::Freeze) else { return Ok(None) };
        if job.thread != planned.thread || !may_start(db, s, &job, planned)? {
            return Ok(None);
        }
        let is = ready(&seen, &job);
        let tried = match is {
            Readiness::Yes | Readiness::AnsweredElsewhere => {
                let frozen = freeze(&team, &mut job)?;
                job.phase = phase;
                team.take_slot(&mut job, planned.slot, now)?;
                team.save_job(&mut job, now)?;
                serve(db, s)?;
                Attempted::Frozen { job: Box::new(job), frozen, send: matches!(is, Readiness::Yes) }
            }
            Readiness::Hold { code, message, disconnect } => {
                job.hold = Some(hold(&job, code, &message, now));
                team.save_job(&mut job, now)?;
                serve(db, s)?;
                Attempted::Held { code, message, disconnect }
            }
            Readiness::Never(failure) => {
                let before = job.phase.clone();
                let Some(phase) = transition(&before, Event::Failed) else { return Ok(None) };
                job.phase = phase;
                finish(&team, before.run(), job, Ending::Failed(failure), now)?;
                Attempted::Failed
            }
        };
        Ok(Some((tried, team.record_change()?)))
    })?;
    let Some((tried, revision)) = tried else { return Ok(false) };
    s.host.publish(s.owner, &topic(s.team), revision);
    match tried {
        Attempted::Frozen { job, frozen, send } => {
            if s.permit.full {
                slots::wake_waiters(s.host, s.owner);
            }
            let seen = match (send, seen) {
                (false, Ok(state)) => observe::answered_elsewhere(s.runs, &job, &state, "it was answered or withdrawn"),
                _ => observe::send(s.runs, &job, &frozen, Attempt::First),
            };
            s.conclude(planned.job, seen, timed.cut(), false)?;
        }
        Attempted::Held { code, message, disconnect: true } => {
            connection::disconnected(s.host, s.owner, s.team, &observe::as_disconnect(code, &message))?;
        }
        Attempted::Held { .. } | Attempted::Failed => {}
    }
    Ok(true)
}

/// The owner's turn ends without an attempt, since the team cannot take a
/// step now. True: the round has changed.
pub fn pass_over(s: &TeamStep, planned: &Admission) -> Result<bool> {
    transact(s.host, &s.lock(), |db| {
        let team = TeamTx::load(db, s.owner, s.team)?;
        let Some(job) = team.planned_job(planned.job)? else { return Ok(false) };
        if !job.phase.wants_slot() || job.thread != planned.thread || !may_start(db, s, &job, planned)? {
            return Ok(false);
        }
        serve(db, s)?;
        Ok(true)
    })
}

/// Whether this job may start now: it is the first of its conversation and was
/// not tried since the plan was made, the slot that was planned for it is free,
/// and every owner before its own in the round has a slot in the same plan. So steps of one plan
/// may run in any order, and a stale plan cannot skip an owner's turn.
fn may_start(db: &Db, s: &TeamStep, job: &Job, planned: &Admission) -> Result<bool> {
    let taken = db.get_text(&keys::slot(planned.slot))?.is_some();
    let head = heads::head(db, s.owner, s.team, job)?;
    if taken || head.is_none_or(|work| work.next_at != planned.due) {
        return Ok(false);
    }
    let round = round(db, s)?;
    for turn in round.iter().filter(|turn| turn.ready).take_while(|turn| turn.owner != s.owner) {
        let Some((_, slot)) = planned.after.iter().find(|(owner, _)| *owner == turn.owner) else { return Ok(false) };
        // Another plan may have given that slot to somebody else; who holds it
        // cannot be read where its record is damaged.
        let held = readable(db.get::<Slot>(&keys::slot(*slot)))?;
        if held.is_none_or(|held| held.is_some_and(|held| held.owner != turn.owner)) {
            return Ok(false);
        }
    }
    Ok(true)
}
