//! Admit one job: look at its conversation, freeze its input with a slot,
//! then ask the host.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use super::advance::{Admission, Step, hold};
use super::finish::{Ending, finish};
use super::input::freeze;
use super::leftovers;
use super::observe::{self, Attempt, Seen, say};
use super::timed::Timed;
use crate::app::commands::connect;
use crate::app::shared::heads;
use crate::app::topic;
use crate::domain::error::Result;
use crate::domain::job::{Failure, Phase, Wait};
use crate::domain::machine::{Event, step};
use crate::domain::schedule;
use crate::host::{RunError, ThreadState};
use crate::store::records::{Frozen, Job, Slot};
use crate::store::{Db, TeamTx, keys, readable, transact};

/// What the conversation says before anything is sent there.
pub enum Ready {
    Yes,
    /// The interrupts that the job's answer is for are not open any more: it is
    /// not sent, and the job follows whatever became of them.
    AnsweredElsewhere,
    /// Not now.
    Hold {
        code: &'static str,
        message: String,
        disconnect: bool,
    },
    Never(Failure),
}

/// What an attempt has stored.
enum Tried {
    /// Frozen, with a slot: the host is asked next, to start it or, without
    /// `send`, what became of it.
    Frozen { job: Box<Job>, frozen: Frozen, send: bool },
    /// Back in the queue, with a reason.
    Held { code: &'static str, message: String, disconnect: bool },
    /// It can never start.
    Failed,
}

/// Tries to start one job. True: something changed.
///
/// The conversation is looked at first; then one commit, which reads of what
/// teams share only the conversation's head, this slot and the round, freezes
/// the input and takes the slot, or says why not. The attempt counts as the
/// owner's turn.
pub fn admit(s: &Step, planned: &Admission) -> Result<bool> {
    let timed = Timed::new(s.host, s.runs);
    let s = &Step { runs: &timed, ..*s };
    let seen = connect::agent_is_back(s, planned, s.runs.state(&planned.thread, None))?;
    let seen = leftovers::end(s, planned, seen)?;
    let now = s.host.now_ms();
    let tried = transact(s.host, &s.lock(), |db| {
        let team = TeamTx::load(db, s.owner, s.team)?;
        let Some(mut job) = team.planned_job(planned.job)? else { return Ok(None) };
        let Some(phase) = step(&job.phase, Event::Freeze) else { return Ok(None) };
        if job.thread != planned.thread || !may_start(db, s, &job, planned)? {
            return Ok(None);
        }
        let is = ready(&seen, &job);
        let tried = match is {
            Ready::Yes | Ready::AnsweredElsewhere => {
                let frozen = freeze(&team, &mut job)?;
                job.phase = phase;
                team.take_slot(&mut job, planned.slot, now)?;
                team.save_job(&mut job, now)?;
                serve(db, s)?;
                Tried::Frozen { job: Box::new(job), frozen, send: matches!(is, Ready::Yes) }
            }
            Ready::Hold { code, message, disconnect } => {
                job.hold = Some(hold(&job, code, &message, now));
                team.save_job(&mut job, now)?;
                serve(db, s)?;
                Tried::Held { code, message, disconnect }
            }
            Ready::Never(failure) => {
                let before = job.phase.clone();
                let Some(phase) = step(&before, Event::Failed) else { return Ok(None) };
                job.phase = phase;
                finish(&team, before.run(), job, Ending::Failed(failure), now)?;
                Tried::Failed
            }
        };
        Ok(Some((tried, team.finish()?)))
    })?;
    let Some((tried, revision)) = tried else { return Ok(false) };
    s.host.publish(s.owner, &topic(s.team), revision);
    match tried {
        Tried::Frozen { job, frozen, send } => {
            if s.permit.full {
                crate::app::board::wait::nudge(s.host);
            }
            let seen = match (send, seen) {
                (false, Ok(state)) => observe::answered_elsewhere(s.runs, &job, &state, "it was answered or withdrawn"),
                _ => observe::send(s.runs, &job, &frozen, Attempt::First),
            };
            s.conclude(planned.job, seen, timed.cut(), false)?;
        }
        Tried::Held { code, message, disconnect: true } => {
            connect::disconnected(s.host, s.owner, s.team, &observe::as_disconnect(code, &message))?;
        }
        Tried::Held { .. } | Tried::Failed => {}
    }
    Ok(true)
}

/// The owner's turn is over without an attempt, since the team cannot take a
/// step now. True: the round has changed.
pub fn pass_over(s: &Step, planned: &Admission) -> Result<bool> {
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

/// A conversation that is busy or has an open question takes nothing new, and
/// an answer is for its own question only.
pub fn ready(seen: &core::result::Result<ThreadState, RunError>, job: &Job) -> Ready {
    let state = match seen {
        Ok(state) => state,
        // A fresh conversation has no state yet.
        Err(RunError::NotFound(_)) => return Ready::Yes,
        Err(error) => {
            return match observe::not_admitted(job, error) {
                Seen::NotNow { code, message, disconnect } => Ready::Hold { code, message, disconnect },
                Seen::Never(failure) => Ready::Never(failure),
                _ => Ready::Hold { code: "host_unavailable", message: say(error), disconnect: false },
            };
        }
    };
    // Whatever runs there now may be what another answer has started.
    if let Phase::Answered { answer, .. } | Phase::Resuming { answer, .. } = &job.phase
        && let Wait::Interrupts { .. } = answer.wait
        && !observe::still_open(&answer.wait, state)
    {
        return Ready::AnsweredElsewhere;
    }
    if state.active_run.is_some() {
        let message = String::from("The conversation is busy with a run outside the team's work.");
        return Ready::Hold { code: "conversation_busy", message, disconnect: false };
    }
    let open = || state.open_question.is_some() || !state.interrupts.is_empty();
    match &job.phase {
        Phase::Answered { answer, .. } | Phase::Resuming { answer, .. } => {
            if observe::still_open(&answer.wait, state) {
                Ready::Yes
            } else {
                Ready::Never(changed())
            }
        }
        _ if open() => Ready::Hold {
            code: "conversation_has_open_question",
            message:
                "A question in this conversation is not answered; it blocks new work there until somebody answers it."
                    .into(),
            disconnect: false,
        },
        _ => Ready::Yes,
    }
}

fn changed() -> Failure {
    Failure {
        code: "clarification_changed".into(),
        message: "The question was answered or replaced in the conversation itself. Inspect the conversation.".into(),
    }
}

/// Whether this job may start now: it is the first of its conversation and was
/// not tried since the plan was made, the slot that was planned for it is free,
/// and every owner before its own in the round has a slot in the same plan. So steps of one plan
/// may run in any order, and a plan that is out of date passes nobody over.
fn may_start(db: &Db, s: &Step, job: &Job, planned: &Admission) -> Result<bool> {
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

/// An owner's place in the round.
struct Turn {
    owner: String,
    /// It can take its turn: not all that it has to start is in teams that rest.
    ready: bool,
}

/// The stored round: those for whom this step was planned, with new ones last,
/// and those who have joined it since. Whoever has nothing to start drops out;
/// whoever rests keeps its place, and nobody waits for it.
fn round(db: &Db, s: &Step) -> Result<Vec<Turn>> {
    let (planned, resting) = (&s.permit.round, &s.permit.resting);
    let stored: Vec<String> = readable(db.get(keys::ROUND))?.flatten().unwrap_or_default();
    let mut round: Vec<Turn> = Vec::with_capacity(stored.len());
    for owner in stored {
        let ready = planned.contains(&owner) || heads::asks(db, s.host, &owner, resting)?;
        let rests = || resting.iter().any(|(o, _)| *o == owner);
        if ready || (rests() && heads::asks(db, s.host, &owner, &[])?) {
            round.push(Turn { owner, ready });
        }
    }
    for owner in planned {
        if !round.iter().any(|turn| turn.owner == *owner) {
            round.push(Turn { owner: owner.clone(), ready: true });
        }
    }
    Ok(round)
}

/// The owner had its attempt: it goes to the end of the round.
pub fn serve(db: &Db, s: &Step) -> Result<()> {
    let round = round(db, s)?.into_iter().map(|turn| turn.owner).collect();
    db.put(keys::ROUND, &schedule::served(round, s.owner))
}
