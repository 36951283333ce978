//! The capability of a simulation: the agents behind a host that refuses,
//! loses replies, and lets others act while it is asked.

use agent_teams_plugin::host::{Cancellation, Input, InterruptAnswer, NotOwner, Run, RunError, Runs, ThreadState};

use super::world::World;

/// A capability, bound to one owner.
pub struct Capability<'w> {
    pub world: &'w World,
    pub owner: String,
}

impl Capability<'_> {
    /// One call of the host: it may refuse, die before or after, or lose the
    /// reply. `writes`: it changes something, so that a lost reply matters.
    fn call<T>(
        &self,
        name: &str,
        thread: &str,
        writes: bool,
        act: impl FnOnce(&World) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let world = self.world;
        world.check_outside(name);
        world.crash_point("before a call of the host");
        world.curse(&self.owner);
        world.reenter();
        let denied = {
            let agents = world.agents.borrow();
            agents.denied.contains(&self.owner) || agents.denied_threads.contains(thread)
        };
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
            if world.fault(world.knobs.reply_lost) {
                world.note(|| format!("  {name} {thread}: the reply is lost"));
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

    /// A refusal that means: nothing happened (or, for the last two, no answer).
    fn refusal(&self, call: &str) -> RunError {
        let why = String::from("injected");
        let starts = matches!(call, "start" | "resume");
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

    fn create_thread(&self, id: &str, agent: &str, _title: &str) -> Result<(), RunError> {
        self.call("create-thread", id, true, |w| w.agents.borrow_mut().create(&self.owner, id, agent))
    }

    fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError> {
        // Before anything else: was it stored before the host is asked?
        let broken =
            self.world.checker.borrow().frozen(&self.world.store.borrow(), &self.owner, thread, key, Some(input));
        if let Some(broken) = broken {
            self.world.violate(broken);
        }
        self.world.agents.borrow_mut().ask(thread, key, format!("{input:?}"));
        self.world.check_answers();
        self.call("start", thread, true, |w| {
            let (run, new) = w.agents.borrow_mut().start(&self.owner, thread, input, key)?;
            if new {
                w.note(|| format!("  {} begins in {thread}: {}", run.id, input.provenance));
                w.check_admission(&self.owner, thread, input);
                w.reenter();
            }
            // The run may have ended by the time the host answers.
            w.agents.borrow_mut().get(&self.owner, thread, &run.id)
        })
    }

    fn resume(&self, thread: &str, answers: &[InterruptAnswer], key: &str) -> Result<Run, RunError> {
        let broken = self.world.checker.borrow().frozen(&self.world.store.borrow(), &self.owner, thread, key, None);
        if let Some(broken) = broken {
            self.world.violate(broken);
        }
        self.world.agents.borrow_mut().ask(thread, key, format!("{answers:?}"));
        self.world.check_answers();
        let job = self.world.checker.borrow().executing(&self.owner, thread);
        self.call("resume", thread, true, |w| {
            let (run, new) = w.agents.borrow_mut().resume(&self.owner, thread, job, answers, key)?;
            if new {
                w.note(|| format!("  {} goes on in {thread}", run.id));
                w.check_answers();
                w.reenter();
            }
            w.agents.borrow_mut().get(&self.owner, thread, &run.id)
        })
    }

    fn find(&self, thread: &str, key: &str) -> Result<Run, RunError> {
        self.call("find", thread, false, |w| w.agents.borrow_mut().find(&self.owner, thread, key))
    }

    fn get(&self, thread: &str, run: &str) -> Result<Run, RunError> {
        self.call("get", thread, false, |w| w.agents.borrow_mut().get(&self.owner, thread, run))
    }

    fn state(&self, thread: &str, since: Option<(&str, Option<&str>)>) -> Result<ThreadState, RunError> {
        self.call("state", thread, false, |w| w.agents.borrow_mut().state(&self.owner, thread, since))
    }

    fn cancel(&self, thread: &str, run: &str) -> Result<Cancellation, RunError> {
        let noted = self.world.fault(self.world.knobs.cancel_accepted);
        self.call("cancel", thread, true, |w| w.agents.borrow_mut().cancel(&self.owner, thread, run, noted))
    }
}
