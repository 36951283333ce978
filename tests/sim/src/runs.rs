//! The capability of a simulation: the agents behind a host that refuses,
//! loses replies, takes its time, and lets others act while it is asked.

use agent_teams_plugin::host::{Cancellation, Input, InterruptAnswer, NotOwner, Run, RunError, Runs, ThreadState};

use super::answers;
use super::world::World;

/// A capability, bound to one owner.
pub struct Capability<'w> {
    pub world: &'w World,
    pub owner: String,
}

impl Capability<'_> {
    /// One call of the host: it may refuse, die before or after, or lose the
    /// reply.
    fn call<T>(
        &self,
        name: &str,
        thread: &str,
        act: impl FnOnce(&World) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let world = self.world;
        world.check_outside(name);
        world.takes_time(name, thread);
        world.crash_point("before a call of the host");
        world.curse(&self.owner);
        world.dwell();
        world.reenter();
        let denied = {
            let agents = world.agents.borrow();
            agents.denied.contains(&self.owner) || agents.denied_threads.contains(thread)
        };
        // It changes something, so that a lost reply matters.
        let writes = matches!(name, "create-thread" | "start" | "answer" | "resume" | "cancel");
        let answers = matches!(name, "answer" | "resume");
        let reply = if denied {
            Err(RunError::Denied("revoked for a while".into()))
        } else if world.fault(world.knobs.host_refuses) {
            Err(self.refusal(name))
        } else {
            let reply = act(world);
            if writes {
                world.reenter();
            }
            world.crash_point("after a call of the host");
            let lost = if answers { world.knobs.answers_lost } else { 0 };
            if world.fault(world.knobs.reply_lost.max(lost)) {
                world.note(|| format!("  {name} {thread}: the reply is lost"));
                if writes && world.fault(world.knobs.forgets) {
                    world.agents.borrow_mut().forget_keys(Some(thread));
                }
                Err(if world.chance(700) { RunError::TimedOut } else { RunError::Other("a broken answer".into()) })
            } else {
                reply
            }
        };
        world.note(|| match &reply {
            Ok(_) => format!("  {name} {thread}: ok"),
            Err(e) => format!("  {name} {thread}: {e:?}"),
        });
        reply
    }

    /// What the host is asked to run must have been stored before.
    fn check_frozen(&self, thread: &str, key: &str, input: Option<&Input>) {
        let (world, forgets) = (self.world, !self.world.knobs.durable_keys);
        let broken = world.checker.borrow().frozen(&world.store.borrow(), &self.owner, thread, (key, input), forgets);
        if let Some(broken) = broken {
            world.violate(broken);
        }
    }

    /// A refusal that means: nothing happened (or, for the last two, no answer).
    fn refusal(&self, call: &str) -> RunError {
        let why = String::from("injected");
        let starts = matches!(call, "start" | "answer" | "resume");
        match self.world.below(if starts { 7 } else { 4 }) {
            0 => RunError::Unavailable(why),
            1 => RunError::TimedOut,
            2 => RunError::Other(why),
            4 => RunError::Busy(why),
            5 if self.world.chance(300) => RunError::Rejected(why),
            _ => RunError::Unavailable(why),
        }
    }
}

impl Runs for Capability<'_> {
    fn bind(&self, owner: &str, team: &str) -> Result<(), NotOwner> {
        if owner != self.owner {
            return Err(NotOwner);
        }
        self.world.bind(owner, team);
        Ok(())
    }

    fn create_thread(&self, id: &str, agent: &str, _title: &str, _group: &str) -> Result<(), RunError> {
        self.call("create-thread", id, |w| w.agents.borrow_mut().create(&self.owner, id, agent))
    }

    fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError> {
        // Before anything else: was it stored before the host is asked?
        self.check_frozen(thread, key, Some(input));
        self.world.agents.borrow_mut().ask(thread, key, format!("{input:?}"));
        self.world.check_answers();
        let name = if input.answers.is_some() { "answer" } else { "start" };
        let job = executed(input).or_else(|| self.world.checker.borrow().executing(&self.owner, thread));
        self.call(name, thread, |w| {
            let (run, new) = w.agents.borrow_mut().start(&self.owner, thread, job.clone(), input, key)?;
            if new {
                w.note(|| format!("  {} begins in {thread}: {}", run.id, input.provenance));
                w.check_admission(&self.owner, thread, job.as_deref().unwrap_or_default(), input);
                w.reenter();
            }
            // The run may have ended by the time the host answers.
            w.agents.borrow_mut().get(&self.owner, thread, &run.id)
        })
    }

    fn resume(&self, thread: &str, answers: &[InterruptAnswer], key: &str) -> Result<Run, RunError> {
        self.check_frozen(thread, key, None);
        self.world.agents.borrow_mut().ask(thread, key, format!("{answers:?}"));
        self.world.check_answers();
        let job = self.world.checker.borrow().executing(&self.owner, thread);
        self.call("resume", thread, |w| {
            if w.knobs.outsiders && w.fault(w.knobs.foreign) {
                w.note(|| format!("  somebody is first to answer in {thread}"));
                let works_on = w.chance(500);
                w.agents.borrow_mut().answer_interrupts(thread, works_on);
            }
            let (run, new) = w.agents.borrow_mut().resume(&self.owner, thread, job, answers, key)?;
            if new {
                w.note(|| format!("  {} continues in {thread}", run.id));
                w.check_answers();
                w.reenter();
            }
            w.agents.borrow_mut().get(&self.owner, thread, &run.id)
        })
    }

    fn find(&self, thread: &str, key: &str) -> Result<Run, RunError> {
        self.call("find", thread, |w| {
            answers::cancel_meanwhile(w, &self.owner, thread);
            w.agents.borrow_mut().find(&self.owner, thread, key)
        })
    }

    fn get(&self, thread: &str, run: &str) -> Result<Run, RunError> {
        self.call("get", thread, |w| w.agents.borrow_mut().get(&self.owner, thread, run))
    }

    fn state(
        &self,
        thread: &str,
        since: Option<(&str, Option<&str>)>,
        after: Option<&str>,
    ) -> Result<ThreadState, RunError> {
        self.call("state", thread, |w| w.agents.borrow_mut().state(&self.owner, thread, since, after))
    }

    fn cancel(&self, thread: &str, run: &str) -> Result<Cancellation, RunError> {
        self.world.check_cancel(&self.owner, thread, run);
        let noted = self.world.fault(self.world.knobs.cancel_accepted);
        self.call("cancel", thread, |w| w.agents.borrow_mut().cancel(&self.owner, thread, run, noted))
    }
}

/// The job that an input says it is for. An input that was frozen by the
/// earlier plugin says nothing.
fn executed(input: &Input) -> Option<String> {
    let provenance: serde_json::Value = serde_json::from_str(&input.provenance).unwrap_or_default();
    provenance["job_id"].as_str().map(String::from)
}
