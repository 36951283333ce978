//! `agent-runs`: the delegated capability. Every call is bounded in time; one
//! that is given up answers `timed-out`, since its outcome is unknown.

use std::sync::Arc;

use wasmtime::Result;
use wasmtime::component::Resource;

use super::State;
use crate::agents::runs::{self, AgentRuns, RunError};
use crate::engine::bindings::agent_teams::plugin::agent_runs::{
    Cancellation, Cost, Description, Error, Failure, File, Host, HostRuns, Input, Interrupt, InterruptAnswer, Marker,
    Message, Origin, Question, Role, Run, RunStatus, ThreadState, Usage,
};
use crate::engine::resources::Runs;

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
    async fn agents(&mut self, this: Resource<Runs>) -> Reply<Vec<String>> {
        let runs = self.runs(&this)?;
        self.run_call(runs.agents()).await
    }

    async fn create_thread(
        &mut self,
        this: Resource<Runs>,
        id: String,
        agent: String,
        title: String,
        group: String,
    ) -> Reply<()> {
        let runs = self.runs(&this)?;
        self.run_call(runs.create_thread(&id, &agent, &title, &group)).await
    }

    async fn delete_thread(&mut self, this: Resource<Runs>, id: String) -> Reply<()> {
        let runs = self.runs(&this)?;
        self.run_call(runs.delete_thread(&id)).await
    }

    async fn describe(&mut self, this: Resource<Runs>, thread: String) -> Reply<Description> {
        let runs = self.runs(&this)?;
        self.run_call(runs.describe(&thread)).await
    }

    async fn start(&mut self, this: Resource<Runs>, thread: String, input: Input, key: String) -> Reply<Run> {
        let runs = self.runs(&this)?;
        let input = input.into();
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

    async fn steer(
        &mut self,
        this: Resource<Runs>,
        thread: String,
        run: String,
        input: Input,
        key: String,
    ) -> Reply<()> {
        let runs = self.runs(&this)?;
        let input = input.into();
        self.run_call(runs.steer(&thread, &run, &input, &key)).await
    }

    async fn go_on(&mut self, this: Resource<Runs>, thread: String, run: String, key: String) -> Reply<Run> {
        let runs = self.runs(&this)?;
        self.run_call(runs.go_on(&thread, &run, &key)).await
    }

    async fn find(&mut self, this: Resource<Runs>, thread: String, key: String) -> Reply<Run> {
        let runs = self.runs(&this)?;
        self.run_call(runs.find(&thread, &key)).await
    }

    async fn get(&mut self, this: Resource<Runs>, thread: String, run: String) -> Reply<Run> {
        let runs = self.runs(&this)?;
        self.run_call(runs.get(&thread, &run)).await
    }

    async fn state(
        &mut self,
        this: Resource<Runs>,
        thread: String,
        since: Option<Marker>,
        after: Option<String>,
    ) -> Reply<ThreadState> {
        let runs = self.runs(&this)?;
        let since = since.map(|m| runs::Marker { message_id: m.message_id, run: m.run });
        self.run_call(runs.state(&thread, since.as_ref(), after.as_deref())).await
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
            RunError::Unsupported(what) => Self::Unsupported(what),
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
            runs::RunStatus::Suspended => {
                RunStatus::Suspended(run.failure.as_ref().map(|why| why.text.clone()).unwrap_or_default())
            }
            runs::RunStatus::Outside => RunStatus::Outside,
        };
        let failure = run.failure.filter(|_| matches!(status, RunStatus::Failed));
        Self {
            id: run.id,
            status,
            failure: failure.map(|why| Failure { code: why.code, text: why.text }),
            cut: run.cut,
            usage: run.usage.map(Usage::from),
            files: run.files.into_iter().map(File::from).collect(),
        }
    }
}

impl From<Input> for runs::Input {
    fn from(input: Input) -> Self {
        Self {
            message_id: input.message_id,
            text: input.text,
            context: input.context,
            answers: input.answers,
            provenance: input.provenance,
            trace: input.trace,
        }
    }
}

impl From<runs::Usage> for Usage {
    fn from(usage: runs::Usage) -> Self {
        Self {
            calls: usage.calls,
            input_tokens: usage.input_tokens,
            cached_tokens: usage.cached_tokens,
            output_tokens: usage.output_tokens,
            cost: usage.cost.map(|(currency, micros)| Cost { currency, micros }),
        }
    }
}

impl From<runs::File> for File {
    fn from(file: runs::File) -> Self {
        Self { name: file.name, media_type: file.media_type, bytes: file.bytes, sha256: file.sha256 }
    }
}

impl From<runs::Description> for Description {
    fn from(known: runs::Description) -> Self {
        Self {
            window: known.window,
            tool_profile: known.tool_profile,
            durable_keys: known.durable_keys,
            steer: known.steer,
            usage: known.usage,
            groups: known.groups,
            files: known.files,
            asks: known.asks,
            team_tools: known.team_tools,
        }
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
            shortened: message.shortened,
            run: message.run,
            origin: message.origin.map(|origin| match origin {
                runs::Origin::Start => Origin::Start,
                runs::Origin::Answer => Origin::Answer,
                runs::Origin::Steer => Origin::Steer,
                runs::Origin::Direct => Origin::Direct,
            }),
            answers: message.answers,
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
            interrupts: state.interrupts.into_iter().map(Interrupt::from).collect(),
            open_question: state.open_question.map(Question::from),
            active_run: state.active_run,
        }
    }
}

impl From<runs::Interrupt> for Interrupt {
    fn from(interrupt: runs::Interrupt) -> Self {
        Self {
            checkpoint: interrupt.checkpoint,
            id: interrupt.id,
            kind: interrupt.kind,
            value: interrupt.value,
            preview: interrupt.preview,
            answer_schema: interrupt.answer_schema,
            digest: interrupt.digest,
        }
    }
}
