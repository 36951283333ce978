//! The agents of a simulation: conversations, runs and keys, as a host keeps
//! them. They outlive the component's process. What really happened in each
//! turn is remembered, so that a stored answer can be held against it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agent_teams_plugin::app::plan::EndedRun;
use agent_teams_plugin::host::{
    Cancellation, Input, Interrupt, InterruptAnswer, Message, Question, Role, Run, RunError, RunStatus, ThreadState,
};

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
    pub ended: VecDeque<EndedRun>,
    /// Owners whose capabilities are revoked for a while.
    pub denied: BTreeSet<String>,
    /// Conversations that are denied for a while.
    pub denied_threads: BTreeSet<String>,
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

/// One conversation.
#[derive(Debug, Default)]
pub struct Thread {
    pub owner: String,
    /// Nothing: an outside conversation.
    pub agent: Option<String>,
    pub messages: Vec<Message>,
    pub question: Option<Question>,
    pub interrupts: Vec<Interrupt>,
    pub active: Option<String>,
    pub runs: BTreeMap<String, Turn>,
    keys: BTreeMap<String, (String, String)>,
}

/// A run, and the truth about it.
#[derive(Clone, Debug)]
pub struct Turn {
    pub status: RunStatus,
    pub error: Option<String>,
    /// The job whose input it executes. Nothing: somebody else's turn.
    pub job: Option<String>,
    /// What it said last.
    pub answer: Option<String>,
    /// The message that began its turn.
    message: String,
    /// Its turn was spoiled: another human message, or its own is gone.
    pub tainted: bool,
    /// The turn was read after it ended and before it was spoiled.
    pub clean_read: bool,
    pub cancel_wanted: bool,
    pub calls: u32,
}

type Reply<T> = Result<T, RunError>;

fn done(status: RunStatus) -> bool {
    !matches!(status, RunStatus::Pending | RunStatus::Running)
}

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

    pub fn create(&mut self, owner: &str, id: &str, agent: &str) -> Reply<()> {
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

    fn known(&mut self, owner: &str, id: &str, key: &str, bytes: &str) -> Reply<Option<Run>> {
        let thread = self.thread(owner, id)?;
        let Some((first, run)) = thread.keys.get(key).cloned() else { return Ok(None) };
        if first != bytes {
            return Err(RunError::KeyConflict);
        }
        Ok(thread.runs.get(&run).map(|turn| report(&run, turn)))
    }

    /// Starts a run. True: it is new.
    pub fn start(&mut self, owner: &str, id: &str, input: &Input, key: &str) -> Reply<(Run, bool)> {
        let bytes = format!("{input:?}");
        if let Some(run) = self.known(owner, id, key, &bytes)? {
            return Ok((run, false));
        }
        // A run that asked and vanished may be tried again as it was.
        let vanished = self.vanished;
        let (number, manners) = (self.number(), self.manners);
        let thread = self.thread(owner, id)?;
        if thread.active.is_some() {
            return Err(RunError::Busy("it is at work".into()));
        }
        if !thread.interrupts.is_empty() {
            return Err(RunError::Busy("an interrupt is open".into()));
        }
        match (&input.answers, &thread.question) {
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
        let provenance: serde_json::Value = serde_json::from_str(&input.provenance).unwrap_or_default();
        let job = provenance["job_id"].as_str().map(String::from);
        thread.human(
            if manners.rewrites { format!("host-{number}") } else { input.message_id.clone() },
            &input.text,
            manners.rewrites.then(|| run.clone()),
        );
        thread.begin(&run, job.clone(), key, bytes);
        let what = match &input.answers {
            None => format!("input of {}", job.as_deref().unwrap_or_default()),
            Some(question) => format!("answer to {question}"),
        };
        let again = self.forgotten.remove(&(id.to_string(), key.to_string()));
        if !again || !self.leave.remove(job.as_deref().unwrap_or_default()) {
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

    /// The host forgets its keys, where they are not durable; its runs it knows.
    pub fn forget_keys(&mut self) {
        if self.manners.durable_keys {
            return;
        }
        for (id, thread) in &mut self.threads {
            let keys = std::mem::take(&mut thread.keys);
            self.forgotten.extend(keys.into_keys().map(|key| (id.clone(), key)));
        }
    }

    /// Answers interrupts for `job`. True: the run is new or goes on.
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
        let thread = self.thread(owner, id)?;
        if thread.active.is_some() {
            return Err(RunError::Busy("it is at work".into()));
        }
        let open = |a: &InterruptAnswer| thread.interrupts.iter().any(|i| i.id == a.id && i.checkpoint == a.checkpoint);
        if thread.interrupts.is_empty() || !answers.iter().all(open) || answers.len() != thread.interrupts.len() {
            return Err(RunError::Rejected("those interrupts are not open".into()));
        }
        let what: Vec<String> = thread.interrupts.iter().map(|i| format!("answer to {}", i.id)).collect();
        thread.interrupts.clear();
        let before = thread.last_turn().filter(|(_, turn)| done(turn.status) && turn.job == job);
        let run = match &before {
            Some((run, _)) if manners.same_run => run.clone(),
            _ => format!("run-{number}"),
        };
        thread.begin(&run, job, key, bytes);
        if let Some(turn) = thread.runs.get_mut(&run)
            && let Some((_, before)) = before
        {
            turn.message = before.message;
        }
        thread.spoil_if_followed(&run);
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

    pub fn state(&mut self, owner: &str, id: &str, since: Option<(&str, Option<&str>)>) -> Reply<ThreadState> {
        let thread = self.thread(owner, id)?;
        if thread.messages.is_empty() {
            return Err(RunError::NotFound("no state yet".into()));
        }
        let from = since.and_then(|(message, run)| {
            thread
                .messages
                .iter()
                .position(|m| m.role == Role::Human && (m.id == message || (run.is_some() && m.run.as_deref() == run)))
        });
        if since.is_some() {
            for turn in thread.runs.values_mut().filter(|turn| done(turn.status)) {
                turn.clean_read |= !turn.tainted;
            }
        }
        Ok(ThreadState {
            found: from.is_some(),
            messages: from.map(|from| thread.messages[from..].to_vec()).unwrap_or_default(),
            more: false,
            interrupts: thread.interrupts.clone(),
            open_question: thread.question.clone(),
            checkpoint: None,
            active_run: thread.active.clone(),
        })
    }

    pub fn cancel(&mut self, owner: &str, id: &str, run: &str, only_note: bool) -> Reply<Cancellation> {
        let thread = self.thread(owner, id)?;
        let Some(turn) = thread.runs.get_mut(run) else { return Err(RunError::NotFound("no such run".into())) };
        if done(turn.status) {
            return Ok(Cancellation::Stopped);
        }
        if only_note {
            turn.cancel_wanted = true;
            return Ok(Cancellation::Accepted);
        }
        self.end(id, run, RunStatus::Cancelled, None);
        Ok(Cancellation::Stopped)
    }

    /// Ends a run that is at work. The end is announced.
    pub fn end(&mut self, id: &str, run: &str, status: RunStatus, error: Option<String>) {
        let Some(thread) = self.threads.get_mut(id) else { return };
        if let Some(turn) = thread.runs.get_mut(run) {
            turn.status = status;
            turn.error = error;
        }
        thread.active = None;
        self.ended.push_back(EndedRun { thread: id.into(), run: run.into() });
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
        thread.messages.push(Message {
            id: format!("said-{number}"),
            role: Role::Assistant,
            text: text.into(),
            run: Some(run.into()),
            question,
        });
        if let Some(turn) = thread.runs.get_mut(run) {
            turn.answer = Some(text.into());
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
        self.end(id, run, if says { RunStatus::Interrupted } else { RunStatus::Succeeded }, None);
    }

    /// Somebody types in a conversation; whatever is asked there is answered.
    pub fn foreign_message(&mut self, id: &str) {
        let number = self.number();
        let Some(thread) = self.threads.get_mut(id) else { return };
        thread.human(format!("foreign-{number}"), &format!("FOREIGN {number}"), None);
        thread.messages.push(Message {
            id: format!("said-{number}"),
            role: Role::Assistant,
            text: format!("FOREIGN answer {number}"),
            run: None,
            question: None,
        });
    }

    /// Somebody's own turn keeps a conversation busy.
    pub fn foreign_turn(&mut self, id: &str) {
        let number = self.number();
        let Some(thread) = self.threads.get_mut(id) else { return };
        if thread.active.is_some() || !thread.interrupts.is_empty() {
            return;
        }
        thread.human(format!("foreign-{number}"), &format!("FOREIGN {number}"), None);
        thread.begin(&format!("run-{number}"), None, &format!("foreign-{number}"), String::new());
    }

    /// Somebody answers open interrupts in the conversation itself, and the
    /// turn goes on to its end: it is still the same turn.
    pub fn answer_interrupts(&mut self, id: &str) {
        let number = self.number();
        let Some(thread) = self.threads.get_mut(id) else { return };
        if thread.active.is_some() || thread.interrupts.is_empty() {
            return;
        }
        thread.interrupts.clear();
        let text = format!("answer {number} after an answer from outside");
        thread.messages.push(Message {
            id: format!("said-{number}"),
            role: Role::Assistant,
            text: text.clone(),
            run: None,
            question: None,
        });
        if let Some((run, _)) = thread.last_turn()
            && let Some(turn) = thread.runs.get_mut(&run)
        {
            turn.answer = Some(text);
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

    /// The host forgets a run, and, where keys are not durable, its key.
    pub fn vanish(&mut self, id: &str, run: &str) {
        let Some(thread) = self.threads.get_mut(id) else { return };
        let Some(turn) = thread.runs.remove(run) else { return };
        self.vanished = true;
        if thread.active.as_deref() == Some(run) {
            thread.active = None;
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

    /// What really happened in a run.
    pub fn turn(&self, thread: &str, run: &str) -> Option<&Turn> {
        self.threads.get(thread)?.runs.get(run)
    }
}

impl Thread {
    fn human(&mut self, id: String, text: &str, run: Option<String>) {
        if let Some(question) = self.question.take() {
            for m in &mut self.messages {
                if let Some(q) = m.question.as_mut().filter(|q| q.id == question.id) {
                    q.answered = true;
                }
            }
        }
        // Whatever was not read yet cannot be told from this message's answer.
        self.spoil();
        self.messages.push(Message { id, role: Role::Human, text: text.into(), run, question: None });
    }

    fn spoil(&mut self) {
        for turn in self.runs.values_mut() {
            turn.tainted = true;
        }
    }

    /// A turn that goes on is as spoiled as the part before.
    fn spoil_if_followed(&mut self, run: &str) {
        if let Some(turn) = self.runs.get_mut(run) {
            let own = self.messages.iter().position(|m| m.id == turn.message);
            turn.tainted = own.is_none_or(|own| self.messages[own + 1..].iter().any(|m| m.role == Role::Human));
        }
    }

    fn begin(&mut self, run: &str, job: Option<String>, key: &str, bytes: String) {
        let message = self.messages.iter().rev().find(|m| m.role == Role::Human).map(|m| m.id.clone());
        self.keys.insert(key.into(), (bytes, run.into()));
        self.active = Some(run.into());
        self.runs.insert(
            run.into(),
            Turn {
                status: RunStatus::Running,
                error: None,
                job,
                answer: None,
                message: message.unwrap_or_default(),
                tainted: false,
                clean_read: false,
                cancel_wanted: false,
                calls: 0,
            },
        );
    }

    /// The run that began last.
    fn last_turn(&self) -> Option<(String, Turn)> {
        let number = |id: &str| id.rsplit('-').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        self.runs.iter().max_by_key(|(id, _)| number(id)).map(|(id, turn)| (id.clone(), turn.clone()))
    }
}

fn report(id: &str, turn: &Turn) -> Run {
    Run { id: id.into(), status: turn.status, error: turn.error.clone() }
}
