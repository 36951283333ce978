//! `agent-runs`: the delegated capability. Every call is bounded in time; one
//! that is given up answers `timed-out`, since its outcome is unknown.

use std::sync::Arc;

use wasmtime::Result;
use wasmtime::component::Resource;

use super::State;
use crate::agents::runs::{self, AgentRuns, Capability, RunError};
use crate::engine::bindings::agent_teams::plugin::agent_runs::{
    Cancellation, Error, Host, HostRuns, Input, Interrupt, InterruptAnswer, Marker, Message, Question, Role, Run,
    RunStatus, ThreadState,
};

/// A capability in the hands of a guest: its own (from a lookup) or lent for
/// one call.
pub struct Runs(pub Capability);

type Reply<T> = Result<std::result::Result<T, Error>>;

impl State {
    fn runs(&self, runs: &Resource<Runs>) -> Result<Arc<dyn AgentRuns>> {
        Ok(self.table.get(runs)?.0.runs.clone())
    }

    async fn run_call<T, U: From<T>>(
        &mut self,
        work: impl Future<Output = std::result::Result<T, RunError>> + Send,
    ) -> Reply<U> {
        Ok(match self.bounded(work).await {
            Some(done) => done.map(U::from).map_err(Error::from),
            None => Err(Error::TimedOut),
        })
    }
}

impl Host for State {}

impl HostRuns for State {
    async fn create_thread(&mut self, this: Resource<Runs>, id: String, agent: String, title: String) -> Reply<()> {
        let runs = self.runs(&this)?;
        self.run_call(runs.create_thread(&id, &agent, &title)).await
    }

    async fn start(&mut self, this: Resource<Runs>, thread: String, input: Input, key: String) -> Reply<Run> {
        let runs = self.runs(&this)?;
        let input = runs::Input {
            message_id: input.message_id,
            text: input.text,
            answers: input.answers,
            provenance: input.provenance,
        };
        self.run_call(runs.start(&thread, &input, &key)).await
    }

    async fn resume(
        &mut self,
        this: Resource<Runs>,
        thread: String,
        answers: Vec<InterruptAnswer>,
        key: String,
    ) -> Reply<Run> {
        let runs = self.runs(&this)?;
        let answers: Vec<_> = answers
            .into_iter()
            .map(|a| runs::InterruptAnswer { checkpoint: a.checkpoint, id: a.id, value: a.value })
            .collect();
        self.run_call(runs.resume(&thread, &answers, &key)).await
    }

    async fn find(&mut self, this: Resource<Runs>, thread: String, key: String) -> Reply<Run> {
        let runs = self.runs(&this)?;
        self.run_call(runs.find(&thread, &key)).await
    }

    async fn get(&mut self, this: Resource<Runs>, thread: String, run: String) -> Reply<Run> {
        let runs = self.runs(&this)?;
        self.run_call(runs.get(&thread, &run)).await
    }

    async fn state(&mut self, this: Resource<Runs>, thread: String, since: Option<Marker>) -> Reply<ThreadState> {
        let runs = self.runs(&this)?;
        let since = since.map(|m| runs::Marker { message_id: m.message_id, run: m.run });
        self.run_call(runs.state(&thread, since.as_ref())).await
    }

    async fn cancel(&mut self, this: Resource<Runs>, thread: String, run: String) -> Reply<Cancellation> {
        let runs = self.runs(&this)?;
        self.run_call(runs.cancel(&thread, &run)).await
    }

    async fn drop(&mut self, this: Resource<Runs>) -> Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Denied(why) => Self::Denied(why),
            RunError::NotFound(what) => Self::NotFound(what),
            RunError::Busy(why) => Self::Busy(why),
            RunError::Rejected(why) => Self::Rejected(why),
            RunError::KeyConflict => Self::KeyConflict,
            RunError::Unavailable(why) | RunError::TooMany(why) => Self::Unavailable(why),
            RunError::TimedOut => Self::TimedOut,
            RunError::Other(why) => Self::Other(why),
        }
    }
}

impl From<runs::Run> for Run {
    fn from(run: runs::Run) -> Self {
        let status = match run.status {
            runs::RunStatus::Pending => RunStatus::Pending,
            runs::RunStatus::Running => RunStatus::Running,
            runs::RunStatus::Interrupted => RunStatus::Interrupted,
            runs::RunStatus::Succeeded => RunStatus::Succeeded,
            runs::RunStatus::Failed => RunStatus::Failed,
            runs::RunStatus::Cancelled => RunStatus::Cancelled,
        };
        Self { id: run.id, thread: run.thread, status, error: run.error }
    }
}

impl From<runs::Cancellation> for Cancellation {
    fn from(cancellation: runs::Cancellation) -> Self {
        match cancellation {
            runs::Cancellation::Stopped => Self::Stopped,
            runs::Cancellation::Accepted => Self::Accepted,
        }
    }
}

impl From<runs::Question> for Question {
    fn from(q: runs::Question) -> Self {
        Self { id: q.id, text: q.text, options: q.options, answered: q.answered }
    }
}

impl From<runs::Message> for Message {
    fn from(message: runs::Message) -> Self {
        let role = match message.role {
            runs::Role::Human => Role::Human,
            runs::Role::Assistant => Role::Assistant,
            runs::Role::Tool => Role::Tool,
        };
        Self {
            id: message.id,
            role,
            text: message.text,
            run: message.run,
            question: message.question.map(Question::from),
        }
    }
}

impl From<runs::ThreadState> for ThreadState {
    fn from(state: runs::ThreadState) -> Self {
        Self {
            found: state.found,
            messages: state.messages.into_iter().map(Message::from).collect(),
            more: state.more,
            interrupts: state
                .interrupts
                .into_iter()
                .map(|i| Interrupt { checkpoint: i.checkpoint, id: i.id, value: i.value })
                .collect(),
            open_question: state.open_question.map(Question::from),
            checkpoint: state.checkpoint,
            active_run: state.active_run,
        }
    }
}
