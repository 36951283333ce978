//! A step whose time was over before the host had been asked everything. What
//! it did say is stored, and a mark from which the next step continues: so a job
//! moves also where each call of the host takes as long as it may.

use super::observe::{self, Attempt, Observation};
use super::record::apply;
use super::step::{TeamStep, hold};
use super::timed::Cut;
use crate::app::shared::change::change_team;
use crate::domain::error::Result;
use crate::domain::hold_code::HoldCode;
use crate::domain::job::{Hold, Phase};
use crate::host::{Run, RunStatus};
use crate::store::records::{Frozen, Job};
use crate::store::{TeamTx, transact};

/// From where the next step continues; stored as the code of the job's hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// The frozen input was not sent.
    NotSent,
    /// The same, where an earlier attempt may have been admitted.
    NotSentAgain,
    /// The run has ended, and what it left behind was not read.
    Unread,
    /// The same for a run that stopped at an interrupt.
    UnreadInterrupt,
}

impl Mark {
    const ALL: [Self; 4] = [Self::NotSent, Self::NotSentAgain, Self::Unread, Self::UnreadInterrupt];

    fn code(self) -> &'static str {
        match self {
            Self::NotSent => "not_sent",
            Self::NotSentAgain => "not_sent_again",
            Self::Unread => "result_unread",
            Self::UnreadInterrupt => "interrupt_unread",
        }
    }

    /// The mark of a job, if it has one.
    fn of(job: &Job) -> Option<Self> {
        let hold = job.hold.as_ref()?;
        Self::ALL.into_iter().find(|mark| mark.code() == hold.code)
    }
}

/// Stores what is known of a job. `again`: a person wants its input sent once
/// more. True: something changed.
pub fn store(s: &TeamStep, n: u32, cut: &Cut, again: bool) -> Result<bool> {
    let now = s.host.now_ms();
    change_team(s.host, s.owner, s.team, |team| {
        let Some(mut job) = team.planned_job(n)? else { return Ok(false) };
        let mut changed = false;
        if let Cut::Named(run) = cut {
            changed = apply(team, job, &Observation::Started { run: run.id.clone() }, now)?;
            job = team.job(n)?;
        }
        if let Some(hold) = mark(&job, cut, again, now) {
            job.hold = Some(hold);
            team.save_job(&mut job, now)?;
            changed = true;
        }
        if changed {
            team.record_change()?;
        }
        Ok(changed)
    })
}

/// Where the next step continues, if it is not at the beginning.
fn mark(job: &Job, cut: &Cut, again: bool, now: u64) -> Option<Hold> {
    let at_once = |mark: Mark, message: &str| {
        let (code, tries) = (mark.code().into(), job.tries(mark.code()));
        Some(Hold { code, message: message.into(), tries, next_at: now })
    };
    match (&job.phase, cut) {
        (Phase::Starting | Phase::Resuming { .. }, Cut::NotSent) => {
            let mark = if again { Mark::NotSentAgain } else { Mark::NotSent };
            at_once(mark, "The host takes long to answer; it is asked to start in the next step.")
        }
        (Phase::Starting | Phase::Resuming { .. }, Cut::Sent) => {
            let message = "The host takes long to answer; it is asked again with the same key.";
            Some(hold(job, HoldCode::HostSlow, message, now))
        }
        (Phase::Running { run }, Cut::Named(ended)) if *run == ended.id => {
            let message = "The host takes long to answer; what the run left behind is read in the next step.";
            match ended.status {
                RunStatus::Succeeded => at_once(Mark::Unread, message),
                RunStatus::Interrupted => at_once(Mark::UnreadInterrupt, message),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether the input that is still to be sent may have been admitted before.
pub fn sends_again(job: &Job) -> bool {
    Mark::of(job) == Some(Mark::NotSentAgain)
}

/// Continues where the last step stopped. Nothing: there is no mark, so all is
/// asked from the beginning.
pub fn go_on(s: &TeamStep, job: &Job, frozen: Option<&Frozen>) -> Result<Option<Observation>> {
    let Some(mark) = Mark::of(job) else { return Ok(None) };
    let unread = |run: &str, status| {
        let run = Run { id: run.into(), status, error: None, cut: false };
        Ok(Some(observe::look(s.runs, job, &run)))
    };
    match (mark, &job.phase, frozen) {
        (Mark::Unread, Phase::Running { run }, _) => unread(run, RunStatus::Succeeded),
        (Mark::UnreadInterrupt, Phase::Running { run }, _) => unread(run, RunStatus::Interrupted),
        (Mark::NotSentAgain, _, Some(frozen)) if frozen.insist => s.insist(job, frozen).map(Some),
        (Mark::NotSentAgain, _, Some(frozen)) => send(s, job, frozen, Attempt::Again).map(Some),
        (Mark::NotSent, _, Some(frozen)) => send(s, job, frozen, Attempt::First).map(Some),
        _ => Ok(None),
    }
}

/// The mark is used up before the input is sent: after a crash in between, the
/// key is looked up as for any other input that may have been sent.
fn send(s: &TeamStep, job: &Job, frozen: &Frozen, attempt: Attempt) -> Result<Observation> {
    let now = s.host.now_ms();
    let taken = transact(s.host, &s.lock(), |db| {
        let team = TeamTx::load(db, s.owner, s.team)?;
        let Some(mut fresh) = team.planned_job(job.n)? else { return Ok(false) };
        if fresh.id != job.id || fresh.phase != job.phase || fresh.hold != job.hold {
            return Ok(false);
        }
        fresh.hold = None;
        team.save_job(&mut fresh, now)?;
        team.record_change()?;
        Ok(true)
    })?;
    Ok(if taken { observe::send(s.runs, job, frozen, attempt) } else { Observation::Nothing })
}
