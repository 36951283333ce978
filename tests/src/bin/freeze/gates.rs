//! Gates before the agents and before their tools. A gate makes one kind of
//! call about one conversation end as it does on a bad day: without an answer,
//! or with one that leaves it open what has happened.

use std::sync::{Arc, Mutex, MutexGuard};

use agent_teams_host::agents::host::ToolHost;
use agent_teams_host::agents::runs::{
    AgentRuns, Cancellation, Capability, Input, InterruptAnswer, Marker, Run, RunError, ThreadState,
};
use agent_teams_host::contract::{CallError, Caller, ToolDef};
use async_trait::async_trait;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Create,
    Start,
    Resume,
    Find,
    Get,
    Cancel,
    Tool,
}

/// What becomes of a call.
#[derive(Clone, Debug)]
pub enum Then {
    /// It is never answered.
    Silence,
    Fails(RunError),
    /// A cancel is accepted, and no more is said.
    Accepted,
}

#[derive(Clone, Debug)]
pub struct Gate {
    call: Call,
    /// The conversation; of a new one, what its title begins with; of a tool,
    /// a part of the arguments.
    at: String,
    /// The agents carry it out before.
    done: bool,
    then: Then,
}

/// The gates of one process, and the calls that came to one.
#[derive(Default)]
pub struct Gates {
    gates: Mutex<Vec<Gate>>,
    met: Mutex<Vec<(Call, String)>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(|e| e.into_inner())
}

impl Gates {
    /// The call is carried out, but its caller does not learn of it so.
    pub fn after(&self, call: Call, at: &str, then: Then) {
        lock(&self.gates).push(Gate { call, at: at.to_owned(), done: true, then });
    }

    /// The call never reaches the agents.
    pub fn before(&self, call: Call, at: &str, then: Then) {
        lock(&self.gates).push(Gate { call, at: at.to_owned(), done: false, then });
    }

    /// How often this gate was met.
    pub fn times(&self, call: Call, at: &str) -> usize {
        lock(&self.met).iter().filter(|(known, place)| *known == call && place == at).count()
    }

    fn find(&self, call: Call, at: &str) -> Option<Gate> {
        let part = |gate: &&Gate| match call {
            Call::Create => at.starts_with(&gate.at),
            Call::Tool => at.contains(&gate.at),
            _ => at == gate.at,
        };
        lock(&self.gates).iter().filter(|gate| gate.call == call).find(part).cloned()
    }

    fn note(&self, gate: &Gate) {
        lock(&self.met).push((gate.call, gate.at.clone()));
    }

    /// One call through the gates.
    async fn pass<T>(
        &self,
        call: Call,
        at: &str,
        real: impl Future<Output = Result<T, RunError>>,
    ) -> Result<T, RunError> {
        let Some(gate) = self.find(call, at) else { return real.await };
        let answer = if gate.done { Some(real.await) } else { None };
        self.note(&gate);
        match gate.then {
            Then::Fails(error) => Err(error),
            Then::Silence => std::future::pending().await,
            Then::Accepted => answer.unwrap_or(Err(RunError::Other("nothing was done".into()))),
        }
    }
}

/// A capability behind the gates.
pub struct Gated {
    runs: Arc<dyn AgentRuns>,
    gates: Arc<Gates>,
}

impl Gated {
    pub fn wrap(capability: Capability, gates: &Arc<Gates>) -> Capability {
        let Capability { owner, runs } = capability;
        Capability { owner, runs: Arc::new(Self { runs, gates: gates.clone() }) }
    }
}

#[async_trait]
impl AgentRuns for Gated {
    async fn create_thread(&self, id: &str, agent: &str, title: &str, _group: &str) -> Result<(), RunError> {
        self.gates.pass(Call::Create, title, self.runs.create_thread(id, agent, title, "group")).await
    }
    async fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError> {
        self.gates.pass(Call::Start, thread, self.runs.start(thread, input, key)).await
    }
    async fn resume(&self, thread: &str, answers: &[InterruptAnswer], key: &str) -> Result<Run, RunError> {
        self.gates.pass(Call::Resume, thread, self.runs.resume(thread, answers, key)).await
    }
    async fn find(&self, thread: &str, key: &str) -> Result<Run, RunError> {
        self.gates.pass(Call::Find, thread, self.runs.find(thread, key)).await
    }
    async fn get(&self, thread: &str, run: &str) -> Result<Run, RunError> {
        self.gates.pass(Call::Get, thread, self.runs.get(thread, run)).await
    }
    async fn state(&self, thread: &str, since: Option<&Marker>, after: Option<&str>) -> Result<ThreadState, RunError> {
        self.runs.state(thread, since, after).await
    }
    async fn cancel(&self, thread: &str, run: &str) -> Result<Cancellation, RunError> {
        let accepts = self.gates.find(Call::Cancel, thread).is_some_and(|gate| matches!(gate.then, Then::Accepted));
        let answer = self.gates.pass(Call::Cancel, thread, self.runs.cancel(thread, run)).await?;
        Ok(if accepts { Cancellation::Accepted } else { answer })
    }
}

/// The component's tools behind the gates: a call may take effect, and its
/// agent never learn of it.
pub struct GatedTools {
    pub tools: Arc<dyn ToolHost>,
    pub gates: Arc<Gates>,
}

#[async_trait]
impl ToolHost for GatedTools {
    async fn list(&self) -> Result<Vec<ToolDef>, CallError> {
        self.tools.list().await
    }
    async fn call(&self, caller: Caller, name: &str, arguments: &str) -> Result<String, CallError> {
        let answer = self.tools.call(caller, name, arguments).await;
        if let Some(gate) = self.gates.find(Call::Tool, arguments) {
            self.gates.note(&gate);
            std::future::pending().await
        }
        answer
    }
}
