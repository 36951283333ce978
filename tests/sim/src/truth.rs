//! What is asked of the host, and by whom, held against what the agents know.

use agent_teams_plugin::domain::job::{JobKind, Phase};
use agent_teams_plugin::host::Input;

use super::check::Checker;
use super::conversation::Turn;
use super::world::World;

impl World {
    /// A run was admitted: once for its job, in the right conversation, and with
    /// nothing of anybody else's turn in it.
    pub fn check_admission(&self, owner: &str, thread: &str, job: &str, input: &Input) {
        if input.text.contains("FOREIGN") {
            self.violate("a foreign answer travels in an input");
        }
        let checker = self.checker.borrow();
        for told in input.text.split("Notice: your request ").skip(1) {
            let request = told.split(' ').next().unwrap_or("").to_string();
            self.agents.borrow_mut().noticed.entry(request).or_default().push(job.into());
        }
        let broken = match checker.job(owner, job) {
            None => Some(format!("a run was admitted for {job}, which does not exist")),
            Some((_, job)) if job.phase == Phase::Cancelled => {
                Some(format!("a run was admitted for {}, which is called cancelled", job.id))
            }
            Some((at, job)) if job.kind == JobKind::Receipt => {
                let request = job.parent.and_then(|n| checker.teams.get(at)?.jobs.get(&n));
                let carried = |id: &str| input.answers.is_some() || input.text.contains(id);
                let ok = request.is_some_and(|r| r.source.thread() == Some(thread) && carried(&r.id));
                (!ok).then(|| format!("the receipt {} was delivered to {thread}", job.id))
            }
            Some((_, job)) => (job.thread != thread).then(|| format!("{} runs in {thread}", job.id)),
        };
        drop(checker);
        if let Some(broken) = broken {
            self.violate(broken);
        }
        self.check_answers();
    }

    /// Nothing was admitted twice: no job's input, no answer to one question.
    pub fn check_answers(&self) {
        if let Some(broken) = self.agents.borrow_mut().broken.take() {
            self.violate(broken);
        }
        let twice = self.agents.borrow().admitted.iter().find(|(_, n)| **n > 1).map(|(what, _)| what.clone());
        if let Some(what) = twice {
            self.violate(format!("the {what} was admitted twice"));
        }
    }

    /// A run is to be stopped: it is one of the team's, and its job is to be
    /// cancelled or has ended.
    pub fn check_cancel(&self, owner: &str, thread: &str, run: &str) {
        let turn = self.agents.borrow().turn(thread, run).cloned();
        let Some(turn) = turn else { return };
        let broken = match turn.job {
            None => Some(format!("{run}, somebody's own turn, is to be cancelled")),
            Some(id) => self.checker.borrow().job(owner, &id).and_then(|(at, job)| {
                // What became of a cancelled job may be unknown.
                let ending = match job.phase {
                    Phase::Cancelling { .. } => true,
                    Phase::Unknown { .. } => self.checker.borrow().cancelled(at, job.n),
                    _ => job.phase.finished() || self.checker.borrow().retracted.contains(&(at.clone(), job.n)),
                };
                (!ending).then(|| format!("{run} is to be cancelled while its {id} is {}", job.phase.status()))
            }),
        };
        if let Some(broken) = broken {
            self.violate(broken);
        }
    }

    /// A run asked a peer for work; `made`: the job that this made just now.
    /// Says what is wrong.
    pub fn check_handoff(&self, call: &Call, made: Option<&str>) -> Option<String> {
        let checker = self.checker.borrow();
        let agents = self.agents.borrow();
        let turn = agents.turn(&call.thread, &call.run).filter(|turn| !turn.outside);
        let executed = turn.and_then(|turn| checker.job(&call.owner, turn.job.as_deref()?));
        let Some(made) = made else {
            let lives = agents.threads.get(&call.thread).is_some_and(|t| t.active.as_deref() == Some(&call.run));
            let (_, job) = executed.filter(|(_, job)| lives && job.phase.holds_slot())?;
            let late = call.refused.as_deref() == Some("run_ended");
            return late.then(|| {
                format!("a call of {} was refused as late while its {} is {}", call.run, job.id, job.phase.status())
            });
        };
        // One that the host never named is known by its message, if it is there.
        let known = |turn: &Turn| checker.named(&call.run) || !(turn.tainted || agents.manners.rewrites);
        if let Some((_, job)) = executed
            && !job.phase.holds_slot()
            && turn.is_some_and(known)
        {
            return Some(format!(
                "a late call of {}, whose {} is {}, made {made}",
                call.run,
                job.id,
                job.phase.status()
            ));
        }
        descends(&checker, call, turn.and_then(|turn| turn.job.as_deref()), made)
    }
}

/// A call of `send_member`: who made it, and how it was refused.
#[derive(Clone, Debug)]
pub struct Call {
    pub owner: String,
    pub thread: String,
    pub run: String,
    pub refused: Option<String>,
}

/// A handoff descends from the job whose turn made it, while that job is at
/// work, and never from another one.
fn descends(checker: &Checker, call: &Call, executed: Option<&str>, made: &str) -> Option<String> {
    let (at, job) = checker.job(&call.owner, made)?;
    let mirror = checker.teams.get(at)?;
    let parent = job.parent.and_then(|n| mirror.jobs.get(&n));
    if job.source.thread() != Some(&call.thread) {
        return Some(format!("{made} was asked from {} and returns elsewhere", call.thread));
    }
    // A turn that executes another team's job begins a chain of its own here.
    let working =
        executed.and_then(|id| checker.job(&call.owner, id)).filter(|(of, j)| *of == at && j.phase.holds_slot());
    match (working, parent) {
        (Some((_, executed)), Some(parent)) if executed.id == parent.id => None,
        (Some((_, executed)), parent) => Some(format!(
            "{made} was asked during {} ({}) and descends from {:?}",
            executed.id,
            executed.phase.status(),
            parent.map(|p| &p.id)
        )),
        // The run of a job that was settled before the host ever named it is nobody's.
        (None, Some(parent)) if executed.is_some_and(|id| id != parent.id) && checker.named(&call.run) => {
            Some(format!("a late call of {executed:?} was attributed to {}", parent.id))
        }
        _ => None,
    }
}
