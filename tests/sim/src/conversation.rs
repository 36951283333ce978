//! One conversation in the agents' host, its runs, and the truth about them.

use std::collections::BTreeMap;

use agent_teams_plugin::host::{Interrupt, Message, Question, Role, Run, RunStatus};

/// One conversation.
#[derive(Debug, Default)]
pub struct Thread {
    pub owner: String,
    /// Nothing: an outside conversation.
    pub agent: Option<String>,
    pub messages: Vec<Message>,
    pub question: Option<Question>,
    /// The run that asked the open question.
    pub asker: Option<String>,
    pub interrupts: Vec<Interrupt>,
    /// The run that stopped at the open interrupts. Absent: it vanished.
    pub stopped: Option<String>,
    pub active: Option<String>,
    pub runs: BTreeMap<String, Turn>,
    pub(crate) keys: BTreeMap<String, (String, String)>,
}

/// A run, and the truth about it.
#[derive(Clone, Debug)]
pub struct Turn {
    pub status: RunStatus,
    pub error: Option<String>,
    /// The job whose input it executes. Nothing: somebody else's turn.
    pub job: Option<String>,
    /// Somebody outside the team's work answered the job's interrupts, and the
    /// host went on in this run.
    pub outside: bool,
    /// What it said last.
    pub answer: Option<String>,
    /// It ended with a question.
    pub asked: bool,
    /// The message that began its turn.
    pub(crate) message: String,
    /// Its turn was spoiled: another human message, or its own is gone.
    pub tainted: bool,
    /// The turn was read after it ended and before it was spoiled.
    pub clean_read: bool,
    pub cancel_wanted: bool,
    /// It ends only when it is cancelled.
    pub stuck: bool,
    pub calls: u32,
}

/// Whether a run with this status has ended, or stopped.
pub fn done(status: RunStatus) -> bool {
    !matches!(status, RunStatus::Pending | RunStatus::Running)
}

/// A run as its host shows it.
pub fn report(id: &str, turn: &Turn) -> Run {
    Run { id: id.into(), status: turn.status, error: turn.error.clone(), cut: false }
}

impl Thread {
    /// A human message; whatever is asked is answered by it.
    pub(crate) fn human(&mut self, id: String, text: &str, run: Option<String>) {
        self.asker = None;
        if let Some(question) = self.question.take() {
            for m in &mut self.messages {
                if let Some(q) = m.question.as_mut().filter(|q| q.id == question.id) {
                    q.answered = true;
                }
            }
        }
        // Whatever was not read yet cannot be told from this message's answer.
        self.spoil();
        self.messages.push(Message { id, role: Role::Human, text: text.into(), shortened: false, run, question: None });
    }

    /// An assistant message.
    pub(crate) fn say(&mut self, id: String, text: &str, run: Option<&str>, question: Option<Question>) {
        let run = run.map(String::from);
        self.messages.push(Message { id, role: Role::Assistant, text: text.into(), shortened: false, run, question });
    }

    fn spoil(&mut self) {
        for turn in self.runs.values_mut() {
            turn.tainted = true;
        }
    }

    /// A turn that goes on is as spoiled as the part before.
    pub(crate) fn spoil_if_followed(&mut self, run: &str) {
        if let Some(turn) = self.runs.get_mut(run) {
            let own = self.messages.iter().position(|m| m.id == turn.message);
            turn.tainted = own.is_none_or(|own| self.messages[own + 1..].iter().any(|m| m.role == Role::Human));
        }
    }

    /// A run begins with the newest human message.
    pub(crate) fn begin(&mut self, run: &str, job: Option<String>) {
        let message = self.messages.iter().rev().find(|m| m.role == Role::Human).map(|m| m.id.clone());
        self.active = Some(run.into());
        self.runs.insert(
            run.into(),
            Turn {
                status: RunStatus::Running,
                error: None,
                job,
                outside: false,
                answer: None,
                asked: false,
                message: message.unwrap_or_default(),
                tainted: false,
                clean_read: false,
                cancel_wanted: false,
                stuck: false,
                calls: 0,
            },
        );
    }

    /// What was asked by interrupts is answered: the turn continues, in `run`.
    pub(crate) fn go_on(&mut self, run: &str, job: Option<String>, outside: bool) {
        let before = self.stopped.take().and_then(|stopped| self.runs.get(&stopped).cloned());
        self.interrupts.clear();
        self.begin(run, job);
        if let Some(turn) = self.runs.get_mut(run) {
            turn.outside = outside;
            if let Some(before) = before {
                turn.message = before.message;
            }
        }
        self.spoil_if_followed(run);
    }

    /// The open interrupts are gone, and nobody has answered them.
    pub(crate) fn withdraw(&mut self) {
        self.interrupts.clear();
        self.stopped = None;
    }

    /// Whether a run is at work, or stopped at interrupts that are still open.
    pub fn lives(&self, run: &str) -> bool {
        self.active.as_deref() == Some(run) || (!self.interrupts.is_empty() && self.stopped.as_deref() == Some(run))
    }

    /// The run that asked what is open here. Absent: nothing is, or the run
    /// vanished.
    pub fn asking(&self) -> Option<&str> {
        let stopped = self.stopped.as_deref().filter(|_| !self.interrupts.is_empty());
        stopped.or(self.asker.as_deref().filter(|_| self.question.is_some()))
    }

    /// Whether the host knows a run that executes a job.
    pub fn executed(&self, job: &str) -> bool {
        self.runs.values().any(|turn| turn.job.as_deref() == Some(job))
    }

    /// The living runs that execute a job.
    pub fn living_runs<'t>(&'t self, job: &'t str) -> impl Iterator<Item = &'t str> {
        let own = self.runs.iter().filter(move |(run, turn)| turn.job.as_deref() == Some(job) && self.lives(run));
        own.filter(|(_, turn)| !turn.outside).map(|(run, _)| run.as_str())
    }
}
