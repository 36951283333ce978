//! The double as the host's trait.

use agent_teams_host::agents::runs as host;
use agent_teams_plugin::host as guest;
use async_trait::async_trait;

use super::model::{Call, Inner};
use super::script::Method;
use super::{Double, Gate, rules};

/// The double's runs on behalf of one user.
pub struct DoubleRuns {
    double: Double,
    owner: String,
}

impl Double {
    /// The host lists its agents: these. At first it does not list them.
    pub fn list_agents(&self, names: &[&str]) {
        self.inner().listed = Some(names.iter().map(|name| (*name).into()).collect());
    }

    /// What the host answers when it is asked for its agents.
    pub(crate) fn listed(&self) -> Result<Vec<String>, guest::RunError> {
        self.inner().listed.clone().ok_or_else(|| guest::RunError::Unsupported("this double lists no agents".into()))
    }

    /// A capability of this user.
    pub fn capability(&self, owner: &str) -> host::Capability {
        let runs = DoubleRuns { double: self.clone(), owner: owner.into() };
        host::Capability { owner: owner.into(), runs: std::sync::Arc::new(runs) }
    }

    async fn wait(&self, epoch: u64) {
        self.inner().hanging += 1;
        // A caller that goes away while it waits is not hanging any more.
        let _leave = Leave(self.clone());
        loop {
            let notified = self.0.notify.notified();
            if self.inner().hang_epoch != epoch {
                return;
            }
            notified.await;
        }
    }
}

struct Leave(Double);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.inner().hanging -= 1;
    }
}

impl DoubleRuns {
    async fn call<T>(
        &self,
        call: Call,
        act: impl FnOnce(&mut Inner) -> Result<T, guest::RunError> + Send,
    ) -> Result<T, host::RunError> {
        let (n, effect) = self.double.begin(call);
        if let Some(epoch) = self.double.hang(&effect, Gate::Before) {
            self.double.wait(epoch).await;
        }
        let result = self.double.perform(&self.owner, n, effect.clone(), act);
        if let Some(epoch) = self.double.hang(&effect, Gate::After) {
            self.double.wait(epoch).await;
        }
        result.map_err(error)
    }

    fn begin(&self, method: Method, thread: &str) -> Call {
        Call::new(&self.owner, method, thread)
    }
}

#[async_trait]
impl host::AgentRuns for DoubleRuns {
    async fn agents(&self) -> Result<Vec<String>, host::RunError> {
        self.double.listed().map_err(error)
    }

    async fn create_thread(&self, id: &str, agent: &str, _title: &str, _group: &str) -> Result<(), host::RunError> {
        let call = self.begin(Method::CreateThread, id).input(agent.into());
        self.call(call, |inner| rules::create_thread(inner, &self.owner, id, agent)).await
    }

    async fn describe(&self, _thread: &str) -> Result<host::Description, host::RunError> {
        let durable_keys = !self.double.inner().forgetful;
        Ok(host::Description { tool_profile: "full".into(), durable_keys, ..host::Description::default() })
    }

    async fn start(&self, thread: &str, input: &host::Input, key: &str) -> Result<host::Run, host::RunError> {
        let input = guest::Input {
            message_id: input.message_id.clone(),
            text: input.text.clone(),
            context: input.context.clone(),
            answers: input.answers.clone(),
            provenance: input.provenance.clone(),
        };
        let call = self.begin(Method::Start, thread).key(key).input(format!("{input:?}"));
        let started = self.call(call, |inner| rules::start(inner, &self.owner, thread, &input, key)).await?;
        Ok(run(started))
    }

    async fn resume(
        &self,
        thread: &str,
        answers: &[host::InterruptAnswer],
        key: &str,
    ) -> Result<host::Run, host::RunError> {
        let answers: Vec<guest::InterruptAnswer> = answers
            .iter()
            .map(|a| guest::InterruptAnswer {
                checkpoint: a.checkpoint.clone(),
                id: a.id.clone(),
                value: a.value.clone(),
            })
            .collect();
        let call = self.begin(Method::Resume, thread).key(key).input(format!("{answers:?}"));
        let resumed = self.call(call, |inner| rules::resume(inner, &self.owner, thread, &answers, key)).await?;
        Ok(run(resumed))
    }

    async fn find(&self, thread: &str, key: &str) -> Result<host::Run, host::RunError> {
        let call = self.begin(Method::Find, thread).key(key);
        Ok(run(self.call(call, |inner| rules::find(inner, &self.owner, thread, key)).await?))
    }

    async fn get(&self, thread: &str, id: &str) -> Result<host::Run, host::RunError> {
        let call = self.begin(Method::Get, thread).run(id);
        Ok(run(self.call(call, |inner| rules::get(inner, &self.owner, thread, id)).await?))
    }

    async fn state(
        &self,
        thread: &str,
        since: Option<&host::Marker>,
        after: Option<&str>,
    ) -> Result<host::ThreadState, host::RunError> {
        let since = since.map(|m| (m.message_id.as_str(), m.run.as_deref()));
        let call = self.begin(Method::State, thread);
        Ok(state(self.call(call, |inner| rules::state(inner, &self.owner, thread, since, after)).await?))
    }

    async fn cancel(&self, thread: &str, id: &str) -> Result<host::Cancellation, host::RunError> {
        let call = self.begin(Method::Cancel, thread).run(id);
        let cancelled = self.call(call, |inner| rules::cancel(inner, &self.owner, thread, id)).await?;
        Ok(match cancelled {
            guest::Cancellation::Stopped => host::Cancellation::Stopped,
            guest::Cancellation::Accepted => host::Cancellation::Accepted,
        })
    }
}

fn run(run: guest::Run) -> host::Run {
    let status = match run.status {
        guest::RunStatus::Pending => host::RunStatus::Pending,
        guest::RunStatus::Running => host::RunStatus::Running,
        guest::RunStatus::Interrupted => host::RunStatus::Interrupted,
        guest::RunStatus::Succeeded => host::RunStatus::Succeeded,
        guest::RunStatus::Failed => host::RunStatus::Failed,
        guest::RunStatus::Cancelled => host::RunStatus::Cancelled,
        guest::RunStatus::Suspended => host::RunStatus::Suspended,
        guest::RunStatus::Outside => host::RunStatus::Outside,
    };
    let failure = run.error.map(|text| host::Failure { code: "failed".into(), text });
    host::Run { failure, cut: run.cut, ..host::Run::new(run.id, status) }
}

fn question(q: guest::Question) -> host::Question {
    host::Question { id: q.id, text: q.text, options: q.options, answered: q.answered }
}

fn state(state: guest::ThreadState) -> host::ThreadState {
    let message = |m: guest::Message| host::Message {
        id: m.id,
        role: match m.role {
            guest::Role::Human => host::Role::Human,
            guest::Role::Assistant => host::Role::Assistant,
            guest::Role::Tool => host::Role::Tool,
        },
        text: m.text,
        shortened: m.shortened,
        run: m.run,
        origin: None,
        answers: None,
        question: m.question.map(question),
    };
    let interrupt = |i: guest::Interrupt| host::Interrupt {
        checkpoint: i.checkpoint,
        id: i.id,
        kind: None,
        value: i.value,
        preview: None,
        answer_schema: None,
        digest: None,
    };
    host::ThreadState {
        found: state.found,
        messages: state.messages.into_iter().map(message).collect(),
        more: state.more,
        interrupts: state.interrupts.into_iter().map(interrupt).collect(),
        open_question: state.open_question.map(question),
        active_run: state.active_run,
    }
}

fn error(error: guest::RunError) -> host::RunError {
    match error {
        guest::RunError::Denied(why) => host::RunError::Denied(why),
        guest::RunError::NotFound(why) => host::RunError::NotFound(why),
        guest::RunError::Busy(why) => host::RunError::Busy(why),
        guest::RunError::Rejected(why) => host::RunError::Rejected(why),
        guest::RunError::KeyConflict => host::RunError::KeyConflict,
        guest::RunError::Unavailable(why) => host::RunError::Unavailable(why),
        guest::RunError::Unsupported(what) => host::RunError::Unsupported(what),
        guest::RunError::TimedOut => host::RunError::TimedOut,
        guest::RunError::Other(why) => host::RunError::Other(why),
    }
}
