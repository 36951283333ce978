//! The agents of a simulation: conversations, runs and keys, as a host keeps
//! them. They outlive the component's process. What really happened in each
//! turn is remembered, so that a stored answer can be held against it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agent_teams_plugin::app::scheduling::plan::Moved;
use agent_teams_plugin::host::{
    Cancellation, Input, Interrupt, InterruptAnswer, Question, Role, Run, RunError, RunStatus, ThreadState,
};

use super::conversation::{Thread, Turn, done, report};

/// How the agents' host behaves for the whole of a seed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manners {
    pub durable_keys: bool,
    pub rewrites: bool,
    pub same_run: bool,
    pub says_interrupted: bool,
    /// Takes an answer to a question that is not open as any other message.
    pub lenient: bool,
}

/// All conversations.
#[derive(Debug, Default)]
pub struct Agents {
    pub manners: Manners,
    pub threads: BTreeMap<String, Thread>,
    /// Runs whose end was announced and not yet handed to the planner.
    pub ended: VecDeque<Moved>,
    /// Owners whose capabilities are revoked for a while.
    pub denied: BTreeSet<String>,
    /// Conversations that are denied for a while.
    pub denied_threads: BTreeSet<String>,
    /// Agents that the catalogue does not have (any more).
    pub gone: BTreeSet<String>,
    /// Agents that were ever gone.
    pub left: BTreeSet<String>,
    /// How often each job's input, or each answer, was admitted.
    pub admitted: BTreeMap<String, u32>,
    /// Which jobs' inputs carried the notice of a cancelled request.
    pub noticed: BTreeMap<String, Vec<String>>,
    /// What was ever asked for under a key, admitted or not.
    pub asked: BTreeMap<(String, String), String>,
    /// Keys that a host without durable ones knew and forgot.
    pub forgotten: BTreeSet<(String, String)>,
    /// Jobs that a person had tried again: their agents may work twice.
    pub leave: BTreeSet<String>,
    /// Some run vanished: whoever tries again sends its message twice.
    pub vanished: bool,
    /// Something that must never be asked of the host, and was.
    pub broken: Option<String>,
    next: u64,
}

type Reply<T> = Result<T, RunError>;

/// Messages of a conversation in one page.
const PAGE: usize = 3;

/// What the agents' host rejects in an answer, though no form forbids it.
pub const REFUSED: &str = "refuse this";

impl Agents {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn thread(&mut self, owner: &str, id: &str) -> Reply<&mut Thread> {
        match self.threads.get_mut(id) {
            None => Err(RunError::NotFound("no such conversation".into())),
            Some(thread) if thread.owner != owner => Err(RunError::Denied("another user's conversation".into())),
            Some(thread) => Ok(thread),
        }
    }

    /// Makes a conversation of a person, outside all teams.
    pub fn outside(&mut self, owner: &str, id: &str) {
        self.threads.entry(id.into()).or_insert_with(|| Thread { owner: owner.into(), ..Thread::default() });
    }

    /// The agent of a conversation, if the catalogue does not have it.
    pub fn gone_from(&self, id: &str) -> Option<&str> {
        self.threads.get(id)?.agent.as_deref().filter(|agent| self.gone.contains(*agent))
    }

    fn in_catalogue(&self, agent: Option<&str>) -> Reply<()> {
        match agent.filter(|agent| self.gone.contains(*agent)) {
            Some(agent) => Err(RunError::Rejected(format!("there is no agent {agent}"))),
            None => Ok(()),
        }
    }

    pub fn create(&mut self, owner: &str, id: &str, agent: &str) -> Reply<()> {
        self.in_catalogue(Some(agent))?;
        match self.threads.get(id) {
            Some(old) if old.owner != owner => Err(RunError::Denied("another user's conversation".into())),
            Some(old) if old.agent.as_deref() != Some(agent) => {
                Err(RunError::Rejected("bound to another agent".into()))
            }
            Some(_) => Ok(()),
            None => {
                let thread = Thread { owner: owner.into(), agent: Some(agent.into()), ..Thread::default() };
                self.threads.insert(id.into(), thread);
                Ok(())
            }
        }
    }

    /// What the earlier plugin has begun: a run that the host knows under the
    /// job's id, in a conversation that it made. Gives the run.
    pub fn legacy(&mut self, owner: &str, id: &str, agent: &str, job: &str, input: &Input) -> String {
        let run = format!("run-{}", self.number());
        let thread = self.threads.entry(id.into()).or_default();
        (thread.owner, thread.agent) = (owner.into(), Some(agent.into()));
        thread.human(input.message_id.clone(), &input.text, self.manners.rewrites.then(|| run.clone()));
        thread.begin(&run, Some(job.into()));
        thread.keys.insert(job.into(), (format!("{input:?}"), run.clone()));
        *self.admitted.entry(format!("input of {job}")).or_default() += 1;
        run
    }

    fn known(&mut self, owner: &str, id: &str, key: &str, bytes: &str) -> Reply<Option<Run>> {
        let thread = self.thread(owner, id)?;
        let Some((first, run)) = thread.keys.get(key).cloned() else { return Ok(None) };
        if first != bytes {
            return Err(RunError::KeyConflict);
        }
        Ok(thread.runs.get(&run).map(|turn| report(&run, turn)))
    }

    /// Starts a run that executes `job`. True: it is new.
    pub fn start(
        &mut self,
        owner: &str,
        id: &str,
        job: Option<String>,
        input: &Input,
        key: &str,
    ) -> Reply<(Run, bool)> {
        let bytes = format!("{input:?}");
        if let Some(run) = self.known(owner, id, key, &bytes)? {
            return Ok((run, false));
        }
        // A run that asked and vanished may be tried again as it was.
        let vanished = self.vanished;
        let (number, manners) = (self.number(), self.manners);
        let agent = self.thread(owner, id)?.agent.clone();
        self.in_catalogue(agent.as_deref())?;
        let thread = self.thread(owner, id)?;
        if thread.active.is_some() {
            return Err(RunError::Busy("it is at work".into()));
        }
        if !thread.interrupts.is_empty() {
            return Err(RunError::Busy("an interrupt is open".into()));
        }
        match (&input.answers, &thread.question) {
            (Some(_), _) if input.text.contains(REFUSED) => {
                return Err(RunError::Rejected("that answer is refused".into()));
            }
            (Some(asked), Some(open)) if *asked == open.id => {}
            (Some(_), _) if manners.lenient => {}
            (Some(_), _) => return Err(RunError::Rejected("that question is not open".into())),
            _ => {}
        }
        if thread.question.is_some() && input.answers.is_none() && !vanished {
            self.broken.get_or_insert(format!("an input is admitted in {id} while a question is open there"));
        }
        let thread = self.thread(owner, id)?;
        let run = format!("run-{number}");
        thread.human(
            if manners.rewrites { format!("host-{number}") } else { input.message_id.clone() },
            &input.text,
            manners.rewrites.then(|| run.clone()),
        );
        thread.begin(&run, job.clone());
        thread.keys.insert(key.into(), (bytes, run.clone()));
        let what = match &input.answers {
            None => format!("input of {}", job.as_deref().unwrap_or_default()),
            Some(question) => format!("answer to {question}"),
        };
        // What the earlier plugin had sent under its job's id is started anew.
        let job = job.unwrap_or_default();
        let mut forgot = |key: &str| self.forgotten.remove(&(id.to_string(), key.to_string()));
        let again = forgot(key) || forgot(&job);
        if !again || !self.leave.remove(&job) {
            *self.admitted.entry(what).or_default() += 1;
        }
        self.get(owner, id, &run).map(|run| (run, true))
    }

    /// Something is asked for under a key: for ever the same thing.
    pub fn ask(&mut self, thread: &str, key: &str, bytes: String) {
        let first = self.asked.entry((thread.into(), key.into())).or_insert_with(|| bytes.clone());
        if *first != bytes {
            self.broken.get_or_insert(format!("the key {key} is used in {thread} with other bytes than before"));
        }
    }

    /// The host forgets its keys, where they are not durable, of one
    /// conversation or of all; its runs it knows.
    pub fn forget_keys(&mut self, only: Option<&str>) {
        if self.manners.durable_keys {
            return;
        }
        for (id, thread) in self.threads.iter_mut().filter(|(id, _)| only.is_none_or(|only| *id == only)) {
            let keys = std::mem::take(&mut thread.keys);
            self.forgotten.extend(keys.into_keys().map(|key| (id.clone(), key)));
        }
    }

    /// Answers interrupts for `job`. True: the run is new or continues.
    pub fn resume(
        &mut self,
        owner: &str,
        id: &str,
        job: Option<String>,
        answers: &[InterruptAnswer],
        key: &str,
    ) -> Reply<(Run, bool)> {
        let bytes = format!("{answers:?}");
        if let Some(run) = self.known(owner, id, key, &bytes)? {
            return Ok((run, false));
        }
        let (number, manners) = (self.number(), self.manners);
        let agent = self.thread(owner, id)?.agent.clone();
        self.in_catalogue(agent.as_deref())?;
        let thread = self.thread(owner, id)?;
        if thread.active.is_some() {
            return Err(RunError::Busy("it is at work".into()));
        }
        let open = |a: &InterruptAnswer| thread.interrupts.iter().any(|i| i.id == a.id && i.checkpoint == a.checkpoint);
        if thread.interrupts.is_empty() || !answers.iter().all(open) || answers.len() != thread.interrupts.len() {
            return Err(RunError::Rejected("those interrupts are not open".into()));
        }
        if answers.iter().any(|a| a.value.contains(REFUSED)) {
            return Err(RunError::Rejected("that answer is refused".into()));
        }
        let what: Vec<String> = thread.interrupts.iter().map(|i| format!("answer to {}", i.id)).collect();
        let run = match &thread.stopped {
            Some(run) if manners.same_run => run.clone(),
            _ => format!("run-{number}"),
        };
        thread.go_on(&run, job, false);
        thread.keys.insert(key.into(), (bytes, run.clone()));
        for what in what {
            *self.admitted.entry(what).or_default() += 1;
        }
        self.get(owner, id, &run).map(|run| (run, true))
    }

    pub fn find(&mut self, owner: &str, id: &str, key: &str) -> Reply<Run> {
        let durable = self.manners.durable_keys;
        let thread = self.thread(owner, id)?;
        let found = thread.keys.get(key).and_then(|(_, run)| Some(report(run, thread.runs.get(run)?)));
        found.ok_or_else(|| match durable {
            true => RunError::NotFound("no run under this key".into()),
            false => RunError::Other("this host keeps no keys for ever".into()),
        })
    }

    pub fn get(&mut self, owner: &str, id: &str, run: &str) -> Reply<Run> {
        let thread = self.thread(owner, id)?;
        thread.runs.get(run).map(|turn| report(run, turn)).ok_or_else(|| RunError::NotFound("no such run".into()))
    }

    pub fn state(
        &mut self,
        owner: &str,
        id: &str,
        since: Option<(&str, Option<&str>)>,
        after: Option<&str>,
    ) -> Reply<ThreadState> {
        let thread = self.thread(owner, id)?;
        if thread.messages.is_empty() {
            return Err(RunError::NotFound("no state yet".into()));
        }
        let marked = |(message, run): (&str, Option<&str>)| {
            thread
                .messages
                .iter()
                .position(|m| m.role == Role::Human && (m.id == message || (run.is_some() && m.run.as_deref() == run)))
        };
        let from = match after {
            Some(after) => thread.messages.iter().position(|m| m.id == after).map(|place| place + 1),
            None => since.and_then(marked),
        };
        let rest = from.map(|from| &thread.messages[from..]).unwrap_or_default();
        let (messages, more) = (rest[..rest.len().min(PAGE)].to_vec(), rest.len() > PAGE);
        if !more && (since.is_some() || after.is_some()) {
            for turn in thread.runs.values_mut().filter(|turn| done(turn.status)) {
                turn.clean_read |= !turn.tainted;
            }
        }
        Ok(ThreadState {
            found: from.is_some(),
            messages,
            more,
            interrupts: thread.interrupts.clone(),
            open_question: thread.question.clone(),
            active_run: thread.active.clone(),
        })
    }

    /// Cancels a run. One that stopped at interrupts ends with them; a host
    /// whose runs say `succeeded` there withdraws them at once.
    pub fn cancel(&mut self, owner: &str, id: &str, run: &str, only_note: bool) -> Reply<Cancellation> {
        let says = self.manners.says_interrupted;
        let thread = self.thread(owner, id)?;
        let lives = thread.lives(run);
        let Some(turn) = thread.runs.get_mut(run) else { return Err(RunError::NotFound("no such run".into())) };
        if !lives {
            return Ok(Cancellation::Stopped);
        }
        if only_note && (says || !done(turn.status)) {
            turn.cancel_wanted = true;
            return Ok(Cancellation::Accepted);
        }
        self.stop(id, run);
        Ok(Cancellation::Stopped)
    }

    /// A run ends as cancelled, with what it asks.
    pub fn stop(&mut self, id: &str, run: &str) {
        if let Some(thread) = self.threads.get_mut(id).filter(|thread| thread.stopped.as_deref() == Some(run)) {
            thread.withdraw();
        }
        self.end(id, run, RunStatus::Cancelled, None);
    }

    /// Ends a run that is at work. The end is announced.
    pub fn end(&mut self, id: &str, run: &str, status: RunStatus, error: Option<String>) {
        let Some(thread) = self.threads.get_mut(id) else { return };
        if let Some(turn) = thread.runs.get_mut(run) {
            turn.status = status;
            turn.error = error;
        }
        thread.active = None;
        let owner = thread.owner.clone();
        self.ended.push_back(Moved { owner, thread: id.into(), run: run.into() });
    }

    /// The run says something; with a question if one is given.
    pub fn say(&mut self, id: &str, run: &str, text: &str, asks: bool) {
        let number = self.number();
        let Some(thread) = self.threads.get_mut(id) else { return };
        let question = asks.then(|| Question {
            id: format!("question-{number}"),
            text: format!("which of {number}?"),
            options: Vec::new(),
            answered: false,
        });
        thread.question.clone_from(&question);
        thread.asker = asks.then(|| run.into());
        thread.say(format!("said-{number}"), text, Some(run), question);
        if let Some(turn) = thread.runs.get_mut(run) {
            turn.answer = Some(text.into());
            turn.asked = asks;
        }
    }

    /// The run stops at interrupts.
    pub fn interrupt(&mut self, id: &str, run: &str, count: usize) {
        let numbers: Vec<u64> = (0..count).map(|_| self.number()).collect();
        let says = self.manners.says_interrupted;
        let Some(thread) = self.threads.get_mut(id) else { return };
        for number in numbers {
            thread.interrupts.push(Interrupt {
                checkpoint: number.is_multiple_of(2).then(|| format!("checkpoint-{number}")),
                id: format!("interrupt-{number}"),
                value: format!(r#"{{"tool":"write_file","number":{number}}}"#),
            });
        }
        thread.stopped = Some(run.into());
        self.end(id, run, if says { RunStatus::Interrupted } else { RunStatus::Succeeded }, None);
    }

    /// Somebody types in a conversation; whatever is asked there is answered.
    pub fn foreign_message(&mut self, id: &str) {
        let number = self.number();
        let Some(thread) = self.threads.get_mut(id) else { return };
        thread.human(format!("foreign-{number}"), &format!("FOREIGN {number}"), None);
        thread.say(format!("said-{number}"), &format!("FOREIGN answer {number}"), None, None);
    }

    /// Somebody's own turn keeps a conversation busy.
    pub fn foreign_turn(&mut self, id: &str) {
        let number = self.number();
        let Some(thread) = self.threads.get_mut(id) else { return };
        if thread.active.is_some() || !thread.interrupts.is_empty() {
            return;
        }
        thread.human(format!("foreign-{number}"), &format!("FOREIGN {number}"), None);
        thread.begin(&format!("run-{number}"), None);
    }

    /// Somebody answers open interrupts in the conversation itself. The turn
    /// continues to its end at once, or (`works_on`) is at work again.
    pub fn answer_interrupts(&mut self, id: &str, works_on: bool) {
        let (number, same_run) = (self.number(), self.manners.same_run);
        let Some(thread) = self.threads.get_mut(id) else { return };
        if thread.active.is_some() || thread.interrupts.is_empty() {
            return;
        }
        for open in &thread.interrupts {
            *self.admitted.entry(format!("answer to {}", open.id)).or_default() += 1;
        }
        let stopped = thread.stopped.clone();
        let job = stopped.as_ref().and_then(|run| thread.runs.get(run)?.job.clone());
        if works_on {
            let run = stopped.filter(|_| same_run);
            let outside = run.is_none();
            return thread.go_on(&run.unwrap_or_else(|| format!("run-{number}")), job, outside);
        }
        thread.withdraw();
        let whose = if job.is_some() { "" } else { "FOREIGN " };
        let text = format!("{whose}answer {number} after an answer from outside");
        thread.say(format!("said-{number}"), &text, None, None);
        if let Some(turn) = stopped.and_then(|run| thread.runs.get_mut(&run)) {
            turn.answer = Some(text);
        }
    }

    /// An agent leaves the catalogue. Its runs fail with it, or hang
    /// (`hangs`): then only a cancel ends them.
    pub fn vanish_agent(&mut self, agent: &str, hangs: bool) {
        self.gone.insert(agent.into());
        self.left.insert(agent.into());
        for (thread, run) in self.at_work() {
            if self.threads[&thread].agent.as_deref() != Some(agent) {
                continue;
            }
            let turn = self.threads.get_mut(&thread).and_then(|t| t.runs.get_mut(&run));
            match turn {
                Some(turn) if hangs => turn.stuck = true,
                _ => self.end(&thread, &run, RunStatus::Failed, Some(format!("{agent} is gone"))),
            }
        }
    }

    /// The conversation is compacted: its older messages are gone.
    pub fn compact(&mut self, id: &str) {
        let Some(thread) = self.threads.get_mut(id) else { return };
        let keep = thread.messages.len().saturating_sub(1);
        thread.messages.drain(..keep);
        for turn in thread.runs.values_mut() {
            turn.tainted |= !thread.messages.iter().any(|m| m.id == turn.message);
        }
    }

    /// The host forgets a run, and, where keys are not durable, its key; with
    /// what the run asks (`all`), or without.
    pub fn vanish(&mut self, id: &str, run: &str, all: bool) {
        let Some(thread) = self.threads.get_mut(id) else { return };
        let Some(turn) = thread.runs.remove(run) else { return };
        self.vanished = true;
        if thread.active.as_deref() == Some(run) {
            thread.active = None;
        }
        if thread.stopped.as_deref() == Some(run) {
            thread.stopped = None;
            if all {
                thread.withdraw();
            }
        }
        thread.keys.retain(|_, (_, known)| known != run);
        if let Some(job) = turn.job {
            // Whoever settles such a job as "retry" has it run again.
            self.admitted.remove(&format!("input of {job}"));
        }
    }

    /// Runs that are at work: conversation and run.
    pub fn at_work(&self) -> Vec<(String, String)> {
        self.threads.iter().filter_map(|(id, t)| Some((id.clone(), t.active.clone()?))).collect()
    }

    /// Runs that can end: those at work, and those that stopped at an interrupt
    /// and of which the host has noted that they are cancelled.
    pub fn can_end(&self) -> Vec<(String, String)> {
        let mut runs = self.at_work();
        let noted = |t: &Thread| {
            let stopped = t.stopped.clone().filter(|run| t.lives(run))?;
            t.runs.get(&stopped).filter(|turn| turn.cancel_wanted).map(|_| stopped)
        };
        runs.extend(self.threads.iter().filter_map(|(id, t)| Some((id.clone(), noted(t)?))));
        runs
    }

    /// Whether somebody's own turn asked the interrupts that are open.
    pub fn foreign_asks(&self, id: &str) -> bool {
        let thread = self.threads.get(id).filter(|t| !t.interrupts.is_empty());
        let turn = thread.and_then(|t| t.runs.get(t.stopped.as_ref()?));
        turn.is_some_and(|turn| turn.job.is_none())
    }

    /// What really happened in a run.
    pub fn turn(&self, thread: &str, run: &str) -> Option<&Turn> {
        self.threads.get(thread)?.runs.get(run)
    }
}
