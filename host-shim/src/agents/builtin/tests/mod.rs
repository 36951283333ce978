//! Tests of the built-in agents with a model and tools that are told what to
//! do, on a real database in a temporary folder.

mod approvals;
mod direct;
mod growth;
mod late;
mod loop_rules;
mod openai;
mod recovery;
mod scripted;
mod sizes;
mod starts;
mod store_faults;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};

use super::{BuiltinAgents, ToolHost, UserDirectory};
use crate::agents::config::{AgentConfig, ConversationsConfig};
use crate::agents::providers::{Finish, Model, ModelError, ModelReply, ModelRequest, RawCall};
use crate::agents::runs::{AgentRuns, Input, Run, RunError, RunStatus, ThreadState};
use crate::clock::SystemClock;
use crate::contract::{CallError, Caller, EndedRun, ErrorKind, FaultCode, Refusal, ToolDef};
use crate::storage::database::Database;
use crate::storage::{SqliteTables, Tables};

/// Direct runs of one user at once in these tests.
pub const MAX_DIRECT: u32 = 3;

/// What the fake model or tool does.
pub enum Act<T, E> {
    Do(Result<T, E>),
    /// Never answers; whoever calls gives up or is ended.
    Hang,
}

pub fn text(text: &str) -> Act<ModelReply, ModelError> {
    Act::Do(Ok(ModelReply { text: text.into(), ..ModelReply::default() }))
}

pub fn calls(calls: &[(&str, &str)]) -> Act<ModelReply, ModelError> {
    Act::Do(Ok(reply(calls, Finish::Stop)))
}

pub fn reply(calls: &[(&str, &str)], finish: Finish) -> ModelReply {
    let raw = |(name, arguments): &(&str, &str)| RawCall { name: (*name).into(), arguments: (*arguments).into() };
    ModelReply { text: String::new(), calls: calls.iter().map(raw).collect(), finish }
}

type Brain = Box<dyn Fn(&ModelRequest) -> Act<ModelReply, ModelError> + Send + Sync>;
type Hand = Box<dyn Fn(&Caller, &str, &Value) -> Act<String, CallError> + Send + Sync>;

pub struct FakeModel {
    brain: Brain,
    pub requests: Mutex<Vec<ModelRequest>>,
    /// How many calls have begun.
    pub begun: watch::Sender<usize>,
}

#[async_trait]
impl Model for FakeModel {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        self.requests.lock().unwrap().push(request.clone());
        let act = (self.brain)(request);
        self.begun.send_modify(|n| *n += 1);
        match act {
            Act::Do(result) => result,
            Act::Hang => std::future::pending().await,
        }
    }
}

pub struct FakeTools {
    hand: Hand,
    /// How often the tools cannot be listed.
    pub unlisted: AtomicUsize,
    pub calls: Mutex<Vec<(Caller, String, Value)>>,
    pub begun: watch::Sender<usize>,
}

impl FakeTools {
    pub fn new(hand: Hand) -> Self {
        Self { hand, unlisted: AtomicUsize::new(0), calls: Mutex::default(), begun: watch::channel(0).0 }
    }
}

#[async_trait]
impl ToolHost for FakeTools {
    async fn list(&self) -> Result<Vec<ToolDef>, CallError> {
        if self.unlisted.load(Ordering::SeqCst) > 0 {
            self.unlisted.fetch_sub(1, Ordering::SeqCst);
            return Err(CallError::Fault { code: FaultCode::Busy, message: "Too many calls at once.".into() });
        }
        let def = |name: &str| ToolDef {
            name: name.into(),
            description: "A tool of the component.".into(),
            input_schema: json!({"type": "object"}),
            ..ToolDef::default()
        };
        Ok(vec![def("send_member"), def("publish_state")])
    }

    async fn call(&self, caller: Caller, name: &str, arguments: &str) -> Result<String, CallError> {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        self.calls.lock().unwrap().push((caller.clone(), name.into(), arguments.clone()));
        let act = (self.hand)(&caller, name, &arguments);
        self.begun.send_modify(|n| *n += 1);
        match act {
            Act::Do(result) => result,
            Act::Hang => std::future::pending().await,
        }
    }
}

/// The disabled ones; whether they cannot be read, and how often that was met.
#[derive(Default)]
pub struct FakeUsers(pub Mutex<HashSet<String>>, pub AtomicBool, pub watch::Sender<usize>);

impl FakeUsers {
    /// Whether they cannot be read.
    pub fn hide(&self, hidden: bool) {
        self.1.store(hidden, Ordering::SeqCst);
    }

    /// Counts the questions that could not be answered.
    pub fn unanswered(&self) -> &watch::Sender<usize> {
        &self.2
    }
}

impl UserDirectory for FakeUsers {
    fn enabled(&self, user: &str) -> anyhow::Result<bool> {
        if self.1.load(Ordering::SeqCst) {
            self.2.send_modify(|n| *n += 1);
            anyhow::bail!("the users cannot be read");
        }
        Ok(!self.0.lock().unwrap().contains(user))
    }
}

/// One host on a folder; another can be opened on the same folder later.
pub struct World {
    pub db: Database,
    pub tables: Tables,
    pub model: Arc<FakeModel>,
    pub tools: Arc<FakeTools>,
    pub disabled: Arc<FakeUsers>,
    pub agents: Arc<BuiltinAgents>,
    pub ended: tokio::sync::Mutex<broadcast::Receiver<EndedRun>>,
}

pub fn agent(name: &str, more: &str) -> AgentConfig {
    toml::from_str(&format!("name = '{name}'\nmodel = 'm'\n{more}")).unwrap()
}

pub fn refusal(code: &str) -> CallError {
    CallError::Refused(Refusal {
        kind: ErrorKind::Conflict,
        code: code.into(),
        message: "Read it, then decide again.".into(),
        field: Some("revision".into()),
        detail: Some(json!({"revision": 7})),
    })
}

/// The tables of a database.
pub fn open_tables(db: &Database) -> Tables {
    SqliteTables::new(db.clone(), Arc::new(SystemClock)).unwrap().into()
}

impl World {
    pub fn open(
        dir: &std::path::Path,
        agents: Vec<AgentConfig>,
        brain: impl Fn(&ModelRequest) -> Act<ModelReply, ModelError> + Send + Sync + 'static,
        hand: impl Fn(&Caller, &str, &Value) -> Act<String, CallError> + Send + Sync + 'static,
    ) -> Self {
        let db = Database::open(&dir.join("data.db")).unwrap();
        let tables = open_tables(&db);
        let model =
            Arc::new(FakeModel { brain: Box::new(brain), requests: Mutex::default(), begun: watch::channel(0).0 });
        let tools = Arc::new(FakeTools::new(Box::new(hand)));
        let disabled = Arc::new(FakeUsers::default());
        let models: HashMap<String, Arc<dyn Model>> =
            HashMap::from([("m".to_owned(), model.clone() as Arc<dyn Model>)]);
        let agents = BuiltinAgents::with_models(
            tables.clone(),
            agents,
            &ConversationsConfig { max_runs_per_user: MAX_DIRECT },
            models,
            tools.clone(),
            disabled.clone(),
            dir.join("workspaces"),
        )
        .unwrap();
        let ended = tokio::sync::Mutex::new(agents.ended());
        Self { db, tables, model, tools, disabled, agents, ended }
    }

    pub fn runs(&self, user: &str) -> Arc<dyn AgentRuns> {
        self.agents.capability(user).runs
    }

    /// Makes conversation `t` of user `ada` with agent `a`, and starts a run.
    pub async fn begin(&self, id: &str, words: &str) -> Run {
        self.runs("ada").create_thread("t", "a", "A thread", "group").await.unwrap();
        self.start("t", id, words, None).await.unwrap()
    }

    pub async fn start(&self, thread: &str, id: &str, words: &str, answers: Option<&str>) -> Result<Run, RunError> {
        self.runs("ada").start(thread, &input(id, words, answers), &format!("key-{id}")).await
    }

    /// Waits for the event of this run and reads it.
    pub async fn until_event(&self, run: &Run) -> Run {
        let mut ended = self.ended.lock().await;
        let mut event = ended.recv().await.unwrap();
        while event.run != run.id {
            event = ended.recv().await.unwrap();
        }
        drop(ended);
        self.runs(&event.owner).get(&event.thread, &run.id).await.unwrap()
    }

    pub async fn run(&self, id: &str, words: &str) -> Run {
        let run = self.begin(id, words).await;
        self.until_event(&run).await
    }

    pub async fn state(&self) -> ThreadState {
        let marker = crate::agents::runs::Marker { message_id: "h1".into(), run: None };
        self.runs("ada").state("t", Some(&marker), None).await.unwrap()
    }

    /// Holds the writer: what is written from now on waits until the answer is
    /// used or dropped.
    pub async fn hold(&self) -> std::sync::mpsc::Sender<()> {
        let (go, wait) = std::sync::mpsc::channel();
        let (holding, held) = tokio::sync::oneshot::channel();
        drop(self.db.queue(move |_| {
            let _ = holding.send(());
            let _ = wait.recv();
            Ok(())
        }));
        held.await.unwrap();
        go
    }

    pub fn count(&self, sql: &str) -> i64 {
        self.db.read(|c| Ok(c.query_row(sql, [], |r| r.get(0))?)).unwrap()
    }

    pub fn tool_calls(&self) -> Vec<(Caller, String, Value)> {
        self.tools.calls.lock().unwrap().clone()
    }

    pub fn requests(&self) -> Vec<ModelRequest> {
        self.model.requests.lock().unwrap().clone()
    }
}

pub fn input(id: &str, words: &str, answers: Option<&str>) -> Input {
    Input {
        message_id: id.into(),
        text: words.into(),
        answers: answers.map(Into::into),
        provenance: r#"{"kind":"owner"}"#.into(),
        ..Input::default()
    }
}

pub fn fine(_: &Caller, _: &str, _: &Value) -> Act<String, CallError> {
    Act::Do(Ok(r#"{"ok":true}"#.into()))
}

pub fn assert_failed(run: &Run, reason: &str) {
    assert_eq!(run.status, RunStatus::Failed, "{run:?}");
    assert!(run.failure.as_ref().is_some_and(|why| why.text.starts_with(reason)), "{run:?}");
}

/// Begins a call and goes away before it has answered.
pub async fn given_up<T: std::fmt::Debug>(call: impl Future<Output = T>) {
    tokio::select! {
        biased;
        answer = call => panic!("it was to be held: {answer:?}"),
        () = std::future::ready(()) => {}
    }
}

pub async fn reached(sender: &watch::Sender<usize>, count: usize) {
    sender.subscribe().wait_for(|n| *n >= count).await.unwrap();
}
