//! How jobs move and end, held against what the agents know.

use agent_teams_plugin::domain::job::{JobKind, Phase, Wait};
use agent_teams_plugin::domain::limits;
use agent_teams_plugin::host::RunStatus;
use agent_teams_plugin::store::keys;
use agent_teams_plugin::store::records::Job;

use super::agents::Agents;
use super::check::{Change, Check, Checker, TeamKey, TeamMirror};
use super::conversation::{Thread, Turn};

impl Checker {
    pub(crate) fn check_ending(
        &self,
        at: &TeamKey,
        mirror: &TeamMirror,
        job: &Job,
        changes: &[Change],
        agents: &Agents,
    ) -> Check {
        let id = &job.id;
        let key = keys::TeamKeys::new(&at.0, &at.1).result(job.n);
        let stored = changes.iter().find(|(k, ..)| *k == key).and_then(|(_, _, new)| new.as_deref());
        // A run may vanish after it was seen to end.
        let lost = |run: &str| agents.vanished && agents.turn(&job.thread, run).is_none();
        match (&job.phase, stored, &job.result) {
            (Phase::Completed, Some(_), Some(meta)) if lost(&meta.run) => {}
            (Phase::Completed, Some(answer), Some(meta)) => {
                let Some(turn) = agents.turn(&job.thread, &meta.run) else {
                    return Err(format!("{id} has an answer of {}, which nobody knows", meta.run));
                };
                if turn.asked {
                    return Err(format!("{id} is completed with the question of {}", meta.run));
                }
                if turn.job.as_deref() != Some(id) {
                    return Err(format!("{id} has the answer of {}, which executed {:?}", meta.run, turn.job));
                }
                // A turn that somebody outside has brought to its end is still this one.
                let turns = || agents.threads.get(&job.thread).into_iter().flat_map(|t| t.runs.values());
                let outside = turns().filter(|t| t.outside && t.job.as_deref() == Some(id));
                let mut said = outside.chain([turn]).map(|t| t.answer.as_deref().unwrap_or("").trim());
                let said = said.find(|said| said.starts_with(answer) && !answer.is_empty());
                let Some(said) = said.filter(|_| answer.len() <= limits::ANSWER_BYTES) else {
                    return Err(format!("{id} has an answer that its run did not give"));
                };
                if meta.truncated != Some(said.len() > limits::ANSWER_BYTES) {
                    return Err(format!("whether the answer of {id} was cut is wrong"));
                }
                if !turn.clean_read && !agents.vanished {
                    return Err(format!("the answer of {id} cannot be attributed, and was"));
                }
            }
            (Phase::Completed, ..) => return Err(format!("{id} is completed without an answer")),
            (Phase::Failed, None, None) if job.failure.is_none() => return Err(format!("{id} failed for no reason")),
            (Phase::Failed, None, None) if job.failure.as_ref().is_some_and(|f| f.code == "not_attributable") => {
                // An interrupt that was answered in the conversation itself spoils the turn too.
                let turns = || agents.threads.get(&job.thread).into_iter().flat_map(|t| t.runs.values());
                let mut own = turns().filter(|turn| turn.job.as_deref() == Some(id)).peekable();
                if !agents.vanished
                    && own.peek().is_some()
                    && own.all(|turn| !turn.tainted && turn.status != RunStatus::Interrupted)
                {
                    return Err(format!("the answer of {id} could be attributed, and was not"));
                }
            }
            (Phase::Failed, None, None) if job.failure.as_ref().is_some_and(|f| f.code == "no_answer") => {
                let turns = || agents.threads.get(&job.thread).into_iter().flat_map(|t| t.runs.values());
                let said = |turn: &Turn| turn.answer.as_deref().is_some_and(|said| !said.trim().is_empty());
                let mut own = turns().filter(|turn| turn.job.as_deref() == Some(id)).peekable();
                if !agents.vanished && own.peek().is_some() && own.all(said) {
                    return Err(format!("{id} failed without an answer, and its run gave one"));
                }
            }
            (Phase::Cancelled, None, None) => {
                let thread = agents.threads.get(&job.thread);
                if let Some((thread, run)) = thread.and_then(|t| Some((t, t.living_runs(id).next()?))) {
                    let how = if thread.active.is_some() { "at work" } else { "stopped at an interrupt that is open" };
                    return Err(format!("{id} is called cancelled while its {run} is {how}"));
                }
            }
            (_, None, None) => {}
            _ => return Err(format!("{id} is {} and has an answer", job.phase.status())),
        }
        let receipts = mirror.jobs.values().filter(|j| j.kind == JobKind::Receipt && j.parent == Some(job.n)).count();
        let told = job.kind == JobKind::Request && job.source.thread().is_some() && job.phase != Phase::Cancelled;
        if receipts != usize::from(told) {
            return Err(format!("{id} ended as {} and has {receipts} receipts", job.phase.status()));
        }
        Ok(())
    }

    /// Which slot a frozen job may hold.
    pub(crate) fn check_slot(&self, at: &TeamKey, before: Option<&Job>, job: &Job, agents: &Agents) -> Check {
        let id = &job.id;
        let own = job.slot.filter(|number| *number < self.limit());
        let froze = before.is_some_and(|b| b.phase.wants_slot())
            && matches!(job.phase, Phase::Starting | Phase::Resuming { .. });
        if froze && own.is_none() {
            return Err(format!("{id} was admitted and holds {:?}, which is no slot of the deployment's", job.slot));
        }
        let moved = before.and_then(|b| b.slot).zip(job.slot).filter(|(was, is)| was != is);
        if let Some((was, is)) = moved {
            return Err(format!("{id} held slot {was} and holds slot {is}"));
        }
        let known = agents.threads.get(&job.thread).is_some_and(|t| t.executed(id));
        if let Some(number) = own
            && self.needs_no_slot(at, job.n)
            && (before.is_none() || !known)
        {
            return Err(format!("{id} was taken over and takes slot {number}; the host has named no run of it"));
        }
        Ok(())
    }

    /// What became of an answer.
    pub(crate) fn check_answer(&self, before: Option<&Job>, job: &Job, agents: &Agents) -> Check {
        let id = &job.id;
        if matches!(job.phase, Phase::Starting) && job.answer.is_some() {
            return Err(format!("{id} asks for its request to be run again, and the newest it sent is an answer"));
        }
        let Some(before) = before.filter(|b| matches!(b.phase, Phase::Answered { .. } | Phase::Resuming { .. })) else {
            return Ok(());
        };
        let (wait, thread) = (before.phase.wait(), agents.threads.get(&job.thread));
        match (&before.phase, &job.phase) {
            (Phase::Resuming { run, answer }, Phase::Waiting { run: asked, wait })
                if run == asked && answer.wait == *wait && job.hold.is_none() =>
            {
                Err(format!("{id} waits again for what was answered and does not say why"))
            }
            (_, Phase::Failed) => {
                let code = job.failure.as_ref().map_or("", |f| f.code.as_str());
                // A person's word, and what no answer will ever reach.
                if matches!(code, "outcome_unknown" | "conversation_denied") || agents.gone_from(&job.thread).is_some()
                {
                    return Ok(());
                }
                if wait.zip(thread).is_some_and(|(wait, thread)| open(wait, thread)) {
                    return Err(format!("{id} failed ({code}) and what it was asked is still open"));
                }
                let answering = thread.and_then(|t| t.active.as_ref()).filter(|run| {
                    let turn = agents.turn(&job.thread, run);
                    turn.is_some_and(|turn| turn.job.as_ref() == Some(id))
                });
                match answering {
                    Some(run) => Err(format!("{id} failed ({code}) while {run}, which continues with it, is at work")),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

/// Whether what a job waits for is still open in its conversation.
pub fn open(wait: &Wait, thread: &Thread) -> bool {
    match wait {
        Wait::Question { id, .. } => thread.question.as_ref().is_some_and(|q| q.id == *id),
        Wait::Interrupts { open } => {
            !open.is_empty() && open.iter().all(|o| thread.interrupts.iter().any(|i| i.id == o.id))
        }
    }
}

/// The life of a job as the specification draws it.
pub fn allowed(from: &Phase, to: &Phase) -> bool {
    let (from, to) = (from.status(), to.status());
    if from == to {
        return true;
    }
    match from {
        "queued" => matches!(to, "running" | "failed" | "cancelled"),
        "running" => to != "resuming",
        // What asks by an interrupt is stopped by its host.
        "waiting_input" => matches!(to, "resuming" | "cancelling" | "cancelled"),
        "resuming" => to != "queued",
        "cancelling" => matches!(to, "cancelled" | "unknown" | "failed"),
        // The host may still say that it never began.
        "unknown" => true,
        _ => false,
    }
}
