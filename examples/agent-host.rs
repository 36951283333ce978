//! An agent host of one's own: `Echo` implements [`AgentRuns`], the capability
//! through which the component runs agents. Its agents answer a request with the
//! request's last line. The worker carries one request from the send to its
//! result.
//!
//! ```sh
//! cargo run --release --example agent-host
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use agent_teams_host::agents::runs::{
    AgentRuns, Cancellation, Capability, Input, InterruptAnswer, Marker, Message, Role, Run, RunError, RunStatus,
    ThreadState,
};
use agent_teams_host::contract::{Caller, EndedRun};
use agent_teams_host::engine::{Options, Parts, Plugin, Signals, SystemClock};
use agent_teams_host::storage::MemoryStore;
use agent_teams_host::worker::{self, Worker};
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::broadcast;

const AGENT: &str = "echo";

/// A conversation: its messages, and the runs by the keys that started them.
#[derive(Default)]
struct Thread {
    messages: Vec<Message>,
    runs: HashMap<String, (Input, Run)>,
}

/// Runs of one user. A real host keeps conversations and keys in a database:
/// only a host whose keys survive a restart may answer `NotFound` from `find`.
struct Echo {
    owner: String,
    threads: Mutex<HashMap<String, Thread>>,
    ended: broadcast::Sender<EndedRun>,
}

impl Echo {
    /// Looks at a conversation that exists.
    fn with<T>(&self, thread: &str, look: impl FnOnce(&mut Thread) -> Result<T, RunError>) -> Result<T, RunError> {
        let mut threads = self.threads.lock().expect("not poisoned");
        look(threads.get_mut(thread).ok_or_else(|| RunError::NotFound(thread.into()))?)
    }
}

#[async_trait]
impl AgentRuns for Echo {
    async fn create_thread(&self, id: &str, agent: &str, _title: &str, _group: &str) -> Result<(), RunError> {
        if agent != AGENT {
            return Err(RunError::Rejected(format!("there is no agent {agent}")));
        }
        self.threads.lock().expect("not poisoned").entry(id.into()).or_default();
        Ok(())
    }

    async fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError> {
        let run = self.with(thread, |found| {
            // The key comes first: the same key with the same input is the same run.
            if let Some((known, run)) = found.runs.get(key) {
                return if known == input { Ok(run.clone()) } else { Err(RunError::KeyConflict) };
            }
            let id = format!("{thread}-run-{}", found.runs.len() + 1);
            let run = Run::new(id.clone(), RunStatus::Succeeded);
            let message =
                |id: String, role, text: &str| Message { run: Some(run.id.clone()), ..Message::new(id, role, text) };
            // A real host stores the message, the run and its key in one commit,
            // and calls a model afterwards.
            // The text of the request is in front of the message's closing mark.
            let echo = input.text.lines().rev().nth(1).unwrap_or("(nothing)");
            found.messages.push(message(input.message_id.clone(), Role::Human, &input.text));
            found.messages.push(message(format!("{id}-answer"), Role::Assistant, echo));
            found.runs.insert(key.into(), (input.clone(), run.clone()));
            Ok(run)
        })?;
        // A hint that makes the worker plan again; it would find out by itself later.
        let _ = self.ended.send(EndedRun { owner: self.owner.clone(), thread: thread.into(), run: run.id.clone() });
        Ok(run)
    }

    async fn resume(&self, _: &str, _: &[InterruptAnswer], _: &str) -> Result<Run, RunError> {
        Err(RunError::Rejected("these agents never stop at an interrupt".into()))
    }

    async fn find(&self, thread: &str, key: &str) -> Result<Run, RunError> {
        self.with(thread, |found| match found.runs.get(key) {
            Some((_, run)) => Ok(run.clone()),
            None => Err(RunError::NotFound(key.into())),
        })
    }

    async fn get(&self, thread: &str, run: &str) -> Result<Run, RunError> {
        self.with(thread, |found| {
            let known = found.runs.values().find(|(_, known)| known.id == run);
            known.map(|(_, run)| run.clone()).ok_or_else(|| RunError::NotFound(run.into()))
        })
    }

    async fn state(&self, thread: &str, since: Option<&Marker>, after: Option<&str>) -> Result<ThreadState, RunError> {
        self.with(thread, |found| {
            // These conversations are short: one page holds all of one.
            let place = |id: &str| found.messages.iter().position(|m| m.id == id);
            let at = match after {
                Some(after) => place(after).map(|at| at + 1),
                None => since.and_then(|marker| place(&marker.message_id)),
            };
            let messages = at.map_or_else(Vec::new, |at| found.messages[at..].to_vec());
            Ok(ThreadState { found: at.is_some(), messages, ..ThreadState::default() })
        })
    }

    async fn cancel(&self, thread: &str, run: &str) -> Result<Cancellation, RunError> {
        self.get(thread, run).await.map(|_| Cancellation::Stopped)
    }
}

#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let signals = Arc::new(Signals::default());
    let parts = Parts {
        store: Arc::new(MemoryStore::new()),
        signals: signals.clone(),
        settings: "{}".into(),
        clock: Arc::new(SystemClock),
    };
    let plugin = Plugin::load(Plugin::embedded(), parts, Options::default())?;
    plugin.open().await?;

    // Runs that end and records that change make the worker plan.
    let (ended, ends) = broadcast::channel(64);
    let mut changes = signals.subscribe();
    let worker = Worker::start(Arc::new(plugin.clone()), ends, signals.subscribe(), None, worker::Options::default());

    // A capability is bound to one user; the component never sees another's.
    let ann = Capability {
        owner: "ann".into(),
        runs: Arc::new(Echo { owner: "ann".into(), threads: Mutex::default(), ended }),
    };
    let act = async |action: &str, payload: Value| -> anyhow::Result<Value> {
        let caller = Caller::owner("ann");
        let answer = plugin.call_action(caller, Some(ann.clone()), action, &payload.to_string()).await?;
        Ok(serde_json::from_str(&answer)?)
    };
    let members = json!([{"name": "Ada", "agent": AGENT}, {"name": "Bo", "agent": AGENT}]);
    let create = json!({"request_id": "team-1", "name": "Echoes", "goal": "Say it again.", "members": members});
    let team = act("create", create).await?["team"].clone();
    let send = json!({"team_id": team["id"], "member_id": team["members"][0]["id"], "request_id": "r1", "text": "Hello, Ada!"});
    let sent = act("send", send).await?["job"].clone();

    // A change is a hint to read again.
    let done = loop {
        let view = act("get", json!({"team_id": team["id"], "details": true})).await?;
        let job = view["jobs"].as_array().into_iter().flatten().find(|job| job["id"] == sent["id"]);
        match job {
            Some(job) if job["status"] == "completed" => break job.clone(),
            _ => _ = changes.recv().await?,
        }
    };
    println!("{}: {}", done["status"], done["result"]["text"]);

    worker.shutdown(std::time::Duration::from_secs(1)).await;
    plugin.shutdown().await;
    Ok(())
}
