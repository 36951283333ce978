//! Agents that answer at once, in memory: what is measured is the teams.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use agent_teams_host::agents::runs::{
    AgentRuns, Cancellation, Capability, Input, Interrupt, InterruptAnswer, Marker, Message, Role, Run, RunError,
    RunStatus, ThreadState,
};
use agent_teams_host::contract::EndedRun;
use async_trait::async_trait;
use tokio::sync::broadcast;

/// All agents of the workload. Clones are the same agents.
#[derive(Clone)]
pub struct Agents {
    /// For whom runs are started.
    owner: String,
    inner: Arc<Mutex<Inner>>,
    /// Announces ends to a worker, if one listens.
    announce: broadcast::Sender<EndedRun>,
}

struct Inner {
    answer: String,
    /// Runs stay running until they are released.
    delay: bool,
    /// Runs stop at an interrupt.
    interrupt: bool,
    threads: HashMap<String, Thread>,
    runs: HashMap<String, Started>,
    running: Vec<String>,
    ended: Vec<EndedRun>,
    /// When each run was started and ended, in order, where that is asked for.
    journal: Option<Vec<Mark>>,
}

struct Started {
    run: Run,
    owner: String,
    thread: String,
}

#[derive(Default)]
struct Thread {
    messages: Vec<Message>,
    interrupts: Vec<Interrupt>,
}

/// Something that happened to a run.
#[derive(Clone, Debug)]
pub struct Mark {
    pub at: Instant,
    pub thread: String,
    pub ended: bool,
}

impl Agents {
    pub fn new(answer: &str) -> Self {
        let inner = Inner {
            answer: answer.into(),
            delay: false,
            interrupt: false,
            threads: HashMap::new(),
            runs: HashMap::new(),
            running: Vec::new(),
            ended: Vec::new(),
            journal: None,
        };
        Self { owner: String::new(), inner: Arc::new(Mutex::new(inner)), announce: broadcast::channel(4096).0 }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What a user may do with them.
    pub fn capability(&self, owner: &str) -> Capability {
        Capability { owner: owner.into(), runs: Arc::new(self.of(owner)) }
    }

    /// The same agents, for a user.
    pub fn of(&self, owner: &str) -> Self {
        Self { owner: owner.into(), ..self.clone() }
    }

    pub fn subscribe(&self) -> broadcast::Receiver<EndedRun> {
        self.announce.subscribe()
    }

    pub fn set_delay(&self, delay: bool) {
        self.inner().delay = delay;
    }

    pub fn set_interrupt(&self, interrupt: bool) {
        self.inner().interrupt = interrupt;
    }

    /// Begins a record of starts and ends.
    pub fn keep_journal(&self) {
        self.inner().journal = Some(Vec::new());
    }

    /// What happened since then.
    pub fn journal(&self) -> Vec<Mark> {
        self.inner().journal.clone().unwrap_or_default()
    }

    /// A conversation that belongs to no team.
    pub fn create(&self, thread: &str) {
        self.inner().threads.entry(thread.into()).or_default();
    }

    /// The ends that were not handed to a plan yet.
    pub fn take_ended(&self) -> Vec<EndedRun> {
        std::mem::take(&mut self.inner().ended)
    }

    /// Ends the run that has waited longest.
    pub fn release_one(&self) {
        let mut inner = self.inner();
        if !inner.running.is_empty() {
            let run = inner.running.remove(0);
            inner.end(&run, &self.announce);
        }
    }

    /// Ends every run that waits for it.
    pub fn release(&self) {
        let mut inner = self.inner();
        for run in std::mem::take(&mut inner.running) {
            inner.end(&run, &self.announce);
        }
    }
}

impl Inner {
    fn mark(&mut self, thread: &str, ended: bool) {
        if let Some(journal) = &mut self.journal {
            journal.push(Mark { at: Instant::now(), thread: thread.into(), ended });
        }
    }

    fn end(&mut self, run: &str, announce: &broadcast::Sender<EndedRun>) {
        let Some(record) = self.runs.get_mut(run) else { return };
        let (owner, name) = (record.owner.clone(), record.thread.clone());
        let record = &mut record.run;
        let thread = self.threads.entry(name.clone()).or_default();
        if self.interrupt {
            record.status = RunStatus::Interrupted;
            thread.interrupts.push(Interrupt {
                id: format!("i-{run}"),
                value: r#"{"tool":"write_file"}"#.into(),
                ..Interrupt::default()
            });
        } else {
            record.status = RunStatus::Succeeded;
            let answer = Message::new(format!("a-{run}"), Role::Assistant, self.answer.clone());
            thread.messages.push(Message { run: Some(run.into()), ..answer });
        }
        self.mark(&name, true);
        let ended = EndedRun { owner, thread: name, run: run.into() };
        // Nobody may be listening.
        let _ = announce.send(ended.clone());
        self.ended.push(ended);
    }

    fn begin(&mut self, owner: &str, thread: &str, key: &str, announce: &broadcast::Sender<EndedRun>) -> Run {
        let run = Run::new(key, RunStatus::Running);
        self.runs.insert(key.into(), Started { run, owner: owner.into(), thread: thread.into() });
        self.mark(thread, false);
        if self.delay {
            self.running.push(key.into());
        } else {
            self.end(key, announce);
        }
        self.runs[key].run.clone()
    }
}

#[async_trait]
impl AgentRuns for Agents {
    async fn create_thread(&self, id: &str, _agent: &str, _title: &str, _group: &str) -> Result<(), RunError> {
        self.inner().threads.entry(id.into()).or_default();
        Ok(())
    }

    async fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError> {
        let mut inner = self.inner();
        if let Some(run) = inner.runs.get(key) {
            return Ok(run.run.clone());
        }
        let message = Message::new(input.message_id.clone(), Role::Human, input.text.clone());
        inner.threads.entry(thread.into()).or_default().messages.push(message);
        Ok(inner.begin(&self.owner, thread, key, &self.announce))
    }

    async fn resume(&self, thread: &str, _answers: &[InterruptAnswer], key: &str) -> Result<Run, RunError> {
        let mut inner = self.inner();
        if let Some(run) = inner.runs.get(key) {
            return Ok(run.run.clone());
        }
        inner.threads.entry(thread.into()).or_default().interrupts.clear();
        Ok(inner.begin(&self.owner, thread, key, &self.announce))
    }

    async fn find(&self, _thread: &str, key: &str) -> Result<Run, RunError> {
        self.inner()
            .runs
            .get(key)
            .map(|known| known.run.clone())
            .ok_or_else(|| RunError::NotFound("no run has this key".into()))
    }

    async fn get(&self, _thread: &str, run: &str) -> Result<Run, RunError> {
        self.inner()
            .runs
            .get(run)
            .map(|known| known.run.clone())
            .ok_or_else(|| RunError::NotFound("no such run".into()))
    }

    async fn state(&self, thread: &str, since: Option<&Marker>, after: Option<&str>) -> Result<ThreadState, RunError> {
        let inner = self.inner();
        let found = inner.threads.get(thread).ok_or_else(|| RunError::NotFound("no such conversation".into()))?;
        let place = |id: &str| found.messages.iter().rposition(|message| message.id == id);
        let from = match after {
            Some(after) => place(after).map(|at| at + 1),
            None => since.and_then(|m| place(&m.message_id)),
        };
        Ok(ThreadState {
            found: from.is_some(),
            messages: from.map(|n| found.messages[n..].to_vec()).unwrap_or_default(),
            interrupts: found.interrupts.clone(),
            active_run: inner.running.iter().find(|run| inner.runs[*run].thread == thread).cloned(),
            ..ThreadState::default()
        })
    }

    async fn cancel(&self, _thread: &str, run: &str) -> Result<Cancellation, RunError> {
        let mut inner = self.inner();
        inner.running.retain(|r| r != run);
        let found = inner.runs.get_mut(run).ok_or_else(|| RunError::NotFound("no such run".into()))?;
        found.run.status = RunStatus::Cancelled;
        Ok(Cancellation::Stopped)
    }
}
