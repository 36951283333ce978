//! What the double remembers: conversations, runs, keys and calls.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agent_teams_plugin::host::{Interrupt, Message, Question, Role, Run, RunError, RunStatus};

use crate::clock::FakeClock;

use super::script::{Effect, Fault, Method, Turn};

/// A conversation.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    pub owner: String,
    pub agent: String,
    pub messages: Vec<Message>,
    pub interrupts: Vec<Interrupt>,
    /// Something that no team knows runs here.
    pub occupied: bool,
}

impl Thread {
    /// The question that is open at the end of the conversation.
    pub fn open_question(&self) -> Option<Question> {
        self.messages.iter().rev().find_map(|m| m.question.clone()).filter(|q| !q.answered)
    }

    pub(super) fn answer_questions(&mut self) {
        for question in self.messages.iter_mut().filter_map(|m| m.question.as_mut()) {
            question.answered = true;
        }
    }
}

/// A run that was admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    pub owner: String,
    pub thread: String,
    pub run: String,
    pub key: String,
    /// The human text, or the values of the answered interrupts.
    pub text: String,
}

/// A call as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub owner: String,
    pub method: Method,
    pub thread: String,
    /// The idempotency key of a start, resume or find.
    pub key: Option<String>,
    /// The run of a get or cancel.
    pub run: Option<String>,
    /// The exact input of a start or resume.
    pub input: Option<String>,
    /// How it was answered, if not well.
    pub error: Option<RunError>,
}

impl Call {
    pub(crate) fn new(owner: &str, method: Method, thread: &str) -> Self {
        Self { owner: owner.into(), method, thread: thread.into(), key: None, run: None, input: None, error: None }
    }

    pub(crate) fn key(mut self, key: &str) -> Self {
        self.key = Some(key.into());
        self
    }

    pub(crate) fn run(mut self, run: &str) -> Self {
        self.run = Some(run.into());
        self
    }

    pub(crate) fn input(mut self, input: String) -> Self {
        self.input = Some(input);
        self
    }
}

#[derive(Clone, Debug)]
pub(super) struct RunRecord {
    pub thread: String,
    pub status: RunStatus,
    pub error: Option<String>,
    pub turn: Turn,
}

#[derive(Clone, Debug)]
pub(super) struct Known {
    pub digest: String,
    pub run: String,
}

pub(crate) struct Inner {
    pub(super) threads: BTreeMap<String, Thread>,
    pub(super) runs: BTreeMap<String, RunRecord>,
    /// Run ids, oldest first.
    pub(super) order: Vec<String>,
    /// By conversation and key.
    pub(super) keys: BTreeMap<(String, String), Known>,
    pub(super) scripts: BTreeMap<String, VecDeque<Turn>>,
    pub(super) default_turn: Turn,
    pub(super) faults: Vec<Fault>,
    pub(super) revoked: BTreeSet<String>,
    pub(super) gone_agents: BTreeSet<String>,
    /// The agents that the host lists. Absent: it does not list them.
    pub(super) listed: Option<Vec<String>>,
    pub(super) hold: bool,
    pub(super) rewrite: bool,
    pub(super) stamp: bool,
    pub(super) interrupts_succeed: bool,
    pub(super) resume_same_run: bool,
    pub(super) cancel_accepts: bool,
    pub(super) forgetful: bool,
    pub(super) fresh_has_state: bool,
    /// Messages of a conversation in one page.
    pub(super) page: usize,
    pub(super) ended: Vec<(String, String, String)>,
    pub(super) calls: Vec<Call>,
    pub(super) admissions: Vec<Admission>,
    pub(super) violations: Vec<String>,
    pub(super) hang_epoch: u64,
    pub(super) hanging: usize,
    /// How long each call takes, on this clock.
    pub(super) slow: Option<(FakeClock, u64)>,
    counter: u64,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            threads: BTreeMap::new(),
            runs: BTreeMap::new(),
            order: Vec::new(),
            keys: BTreeMap::new(),
            scripts: BTreeMap::new(),
            default_turn: Turn::Answer("ok".into()),
            faults: Vec::new(),
            revoked: BTreeSet::new(),
            gone_agents: BTreeSet::new(),
            listed: None,
            hold: false,
            rewrite: false,
            stamp: false,
            interrupts_succeed: false,
            resume_same_run: false,
            cancel_accepts: false,
            forgetful: false,
            fresh_has_state: false,
            page: 500,
            ended: Vec::new(),
            calls: Vec::new(),
            admissions: Vec::new(),
            violations: Vec::new(),
            hang_epoch: 0,
            hanging: 0,
            slow: None,
            counter: 0,
        }
    }
}

impl Inner {
    pub(super) fn next_id(&mut self, kind: &str) -> String {
        self.counter += 1;
        format!("{kind}-{}", self.counter)
    }

    pub(super) fn thread(&mut self, owner: &str, id: &str, agent: &str) {
        self.threads.entry(id.into()).or_insert_with(|| Thread {
            owner: owner.into(),
            agent: agent.into(),
            ..Thread::default()
        });
    }

    /// What was scripted for this call, used up.
    pub(super) fn meet(&mut self, method: Method, thread: &str) -> Option<Effect> {
        let fits = |f: &Fault| f.method == method && f.thread.as_deref().is_none_or(|t| t == thread);
        let place = self.faults.iter().position(fits)?;
        let fault = &mut self.faults[place];
        fault.times = fault.times.saturating_sub(1);
        let effect = fault.effect.clone();
        if fault.times == 0 {
            self.faults.remove(place);
        }
        Some(effect)
    }

    pub(super) fn is_running(&self, run: &str) -> bool {
        self.runs.get(run).is_some_and(|r| r.status == RunStatus::Running)
    }

    /// The running run of a conversation.
    pub(super) fn active(&self, thread: &str) -> Option<String> {
        self.order.iter().find(|id| self.runs[*id].thread == thread && self.is_running(id)).cloned()
    }

    /// The newest run of a conversation that stopped at an interrupt.
    pub(super) fn interrupted(&self, thread: &str) -> Option<String> {
        let stopped = |r: &RunRecord| r.thread == thread && r.status == RunStatus::Interrupted;
        self.order.iter().rev().find(|id| stopped(&self.runs[*id])).cloned()
    }

    /// The newest run of a conversation.
    pub(super) fn last(&self, thread: &str) -> Option<String> {
        self.order.iter().rev().find(|id| self.runs[*id].thread == thread).cloned()
    }

    /// Somebody answers all open interrupts in the conversation itself.
    pub(super) fn answer_outside(&mut self, owner: &str, thread: &str) {
        let same = self.resume_same_run.then(|| self.interrupted(thread)).flatten();
        let key = self.next_id("outside");
        let run = self.admit(owner, thread, &key, key.clone(), "an answer from outside".into(), same);
        if let Some(conversation) = self.threads.get_mut(thread) {
            conversation.interrupts.clear();
        }
        self.begun(&run);
    }

    pub(super) fn run(&self, id: &str) -> Option<Run> {
        let record = self.runs.get(id)?;
        Some(Run { id: id.into(), status: record.status, error: record.error.clone(), cut: false })
    }

    /// Admits a run under a key: a new one, or `same` going on.
    pub(super) fn admit(
        &mut self,
        owner: &str,
        thread: &str,
        key: &str,
        digest: String,
        text: String,
        same: Option<String>,
    ) -> String {
        let run = same.unwrap_or_else(|| self.next_id("run"));
        if self.admissions.iter().any(|a| a.key == key) {
            self.violations.push(format!("two admissions under the key {key}"));
        }
        let turn = self.scripts.get_mut(thread).and_then(VecDeque::pop_front).unwrap_or(self.default_turn.clone());
        let record = RunRecord { thread: thread.into(), status: RunStatus::Running, error: None, turn };
        if self.runs.insert(run.clone(), record).is_none() {
            self.order.push(run.clone());
        }
        self.keys.insert((thread.into(), key.into()), Known { digest, run: run.clone() });
        self.admissions.push(Admission {
            owner: owner.into(),
            thread: thread.into(),
            run: run.clone(),
            key: key.into(),
            text,
        });
        run
    }

    /// The reply to an admission: the run is under way, even where the double
    /// ends it at once.
    pub(super) fn begun(&mut self, run: &str) -> Run {
        let reply = Run { id: run.into(), status: RunStatus::Running, error: None, cut: false };
        if !self.hold
            && let Some(turn) = self.runs.get(run).map(|r| r.turn.clone())
        {
            self.end(run, turn);
        }
        reply
    }

    pub(super) fn push_human(
        &mut self,
        thread: &str,
        id: &str,
        text: &str,
        run: Option<String>,
        _answers: Option<&str>,
    ) {
        if let Some(conversation) = self.threads.get_mut(thread) {
            // Whoever speaks next has answered, as on most servers.
            conversation.answer_questions();
            // Ids are unique: a message that comes again is the same message.
            conversation.messages.retain(|m| m.id != id);
            conversation.messages.push(Message {
                id: id.into(),
                role: Role::Human,
                text: text.into(),
                run,
                shortened: false,
                question: None,
            });
        }
    }

    pub(super) fn push(&mut self, thread: &str, role: Role, text: &str, question: Option<Question>) {
        let id = self.next_id("msg");
        if let Some(conversation) = self.threads.get_mut(thread) {
            conversation.messages.push(Message { id, role, text: text.into(), shortened: false, run: None, question });
        }
    }

    /// Ends a run with what its turn brings.
    pub(super) fn end(&mut self, run: &str, turn: Turn) {
        let Some(thread) = self.runs.get(run).map(|r| r.thread.clone()) else { return };
        let (status, error) = match turn {
            Turn::Answer(text) => {
                self.push(&thread, Role::Assistant, &text, None);
                (RunStatus::Succeeded, None)
            }
            Turn::Texts(texts) => {
                for (i, text) in texts.iter().enumerate() {
                    if i > 0 {
                        self.push(&thread, Role::Tool, "tool result", None);
                    }
                    self.push(&thread, Role::Assistant, text, None);
                }
                (RunStatus::Succeeded, None)
            }
            Turn::Silent => (RunStatus::Succeeded, None),
            Turn::Ask(text, options) => {
                let id = self.next_id("question");
                let question = Question { id, text: text.clone(), options, answered: false };
                self.push(&thread, Role::Tool, &text, Some(question));
                (RunStatus::Succeeded, None)
            }
            Turn::Interrupt(open) => {
                let checkpoint = Some(self.next_id("checkpoint"));
                if let Some(conversation) = self.threads.get_mut(&thread) {
                    conversation.interrupts = open
                        .into_iter()
                        .map(|(id, value)| Interrupt { checkpoint: checkpoint.clone(), id, value })
                        .collect();
                }
                (if self.interrupts_succeed { RunStatus::Succeeded } else { RunStatus::Interrupted }, None)
            }
            Turn::Fail(why) => (RunStatus::Failed, Some(why)),
            Turn::Cancelled => (RunStatus::Cancelled, None),
        };
        if let Some(record) = self.runs.get_mut(run) {
            record.status = status;
            record.error = error;
        }
        let owner = self.threads.get(&thread).map(|conversation| conversation.owner.clone()).unwrap_or_default();
        self.ended.push((owner, thread, run.into()));
    }
}
