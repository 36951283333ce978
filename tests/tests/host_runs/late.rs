//! A start that the component gives up while the database is still to write
//! it: with the real component, the real agents, and a writer that is held.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use agent_teams_host::agents::builtin::BuiltinAgents;
use agent_teams_host::agents::config::AgentsConfig;
use agent_teams_host::agents::host::ToolHost;
use agent_teams_host::agents::runs::{
    AgentRuns, Cancellation, Capability, Input, InterruptAnswer, Marker, Run, RunError, ThreadState,
};
use agent_teams_host::contract::{CallError, Caller, ToolDef};
use agent_teams_host::engine::{Options, Parts, Plugin, Signals, SystemClock};
use agent_teams_host::storage::database::Database;
use agent_teams_host::storage::{SqliteStore, SqliteTables};
use agent_teams_host::users::UserDirectory;
use async_trait::async_trait;
use serde_json::{Value, json};

struct NoTools;

#[async_trait]
impl ToolHost for NoTools {
    async fn list(&self) -> Result<Vec<ToolDef>, CallError> {
        Ok(Vec::new())
    }
    async fn call(&self, _: Caller, _: &str, _: &str) -> Result<String, CallError> {
        unreachable!("there are no tools")
    }
}

struct Everybody;

impl UserDirectory for Everybody {
    fn enabled(&self, _: &str) -> anyhow::Result<bool> {
        Ok(true)
    }
}

/// The agents, with a writer that is held from the first start on, until the
/// test lets it go.
struct Held {
    runs: Arc<dyn AgentRuns>,
    db: Database,
    hold: Mutex<Option<mpsc::Receiver<()>>>,
}

#[async_trait]
impl AgentRuns for Held {
    async fn create_thread(&self, id: &str, agent: &str, title: &str, _group: &str) -> Result<(), RunError> {
        self.runs.create_thread(id, agent, title, "group").await
    }
    async fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError> {
        let hold = self.hold.lock().expect("not poisoned").take();
        if let Some(wait) = hold {
            drop(self.db.queue(move |_| Ok(wait.recv()?)));
        }
        self.runs.start(thread, input, key).await
    }
    async fn resume(&self, thread: &str, answers: &[InterruptAnswer], key: &str) -> Result<Run, RunError> {
        self.runs.resume(thread, answers, key).await
    }
    async fn find(&self, thread: &str, key: &str) -> Result<Run, RunError> {
        self.runs.find(thread, key).await
    }
    async fn get(&self, thread: &str, run: &str) -> Result<Run, RunError> {
        self.runs.get(thread, run).await
    }
    async fn state(&self, thread: &str, since: Option<&Marker>, after: Option<&str>) -> Result<ThreadState, RunError> {
        self.runs.state(thread, since, after).await
    }
    async fn cancel(&self, thread: &str, run: &str) -> Result<Cancellation, RunError> {
        self.runs.cancel(thread, run).await
    }
}

const AGENTS: &str =
    "[[agents]]\nname = 'a'\nmodel = 'm'\n[models.m]\nkind = 'scripted'\n[[models.m.rules]]\ntext = 'Done.'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_whose_start_was_given_up_comes_to_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = Database::open(&folder.path().join("data.db")).expect("a database");
    let parts = Parts {
        store: Arc::new(SqliteStore::new(db.clone()).expect("a store")),
        signals: Arc::new(Signals::default()),
        settings: "{}".into(),
        clock: Arc::new(SystemClock),
    };
    let cache = Some(concat!(env!("CARGO_TARGET_TMPDIR"), "/compiled").into());
    let options = Options { host_call_time: Duration::from_millis(200), cache, ..Options::default() };
    let plugin = Plugin::load(Plugin::embedded(), parts, options).expect("the component");
    plugin.open().await.expect("open");
    let config: AgentsConfig = toml::from_str(AGENTS).expect("agents");
    let files = folder.path().join("files");
    let tables = SqliteTables::open(db.clone(), Arc::new(SystemClock)).await.expect("the tables");
    let agents = BuiltinAgents::open(tables, config, Arc::new(NoTools), Arc::new(Everybody), files).expect("agents");
    let mut ended = agents.ended();

    let (go, wait) = mpsc::channel();
    let held = Held { runs: agents.capability("ann").runs, db: db.clone(), hold: Mutex::new(Some(wait)) };
    let runs = Capability { owner: "ann".into(), runs: Arc::new(held) };
    let action = async |name: &str, payload: Value| -> Value {
        let answer = plugin.call_action(Caller::owner("ann"), Some(runs.clone()), name, &payload.to_string()).await;
        serde_json::from_str(&answer.unwrap_or_else(|e| panic!("{name}: {e}"))).expect("JSON")
    };
    let members = json!([{"name": "A", "agent": "a"}, {"name": "B", "agent": "a"}]);
    let roster = json!({"request_id": "t", "name": "T", "goal": "g", "members": members});
    let team = action("create", roster).await["team"].clone();
    let member = &team["members"][0]["id"];
    action("send", json!({"team_id": team["id"], "member_id": member, "request_id": "r", "text": "Go."})).await;
    let plan = plugin.plan(Vec::new(), true, Vec::new()).await.expect("a plan");
    for step in &plan.steps {
        // The component cannot write down either what became of it.
        let _ = plugin.advance(&step.team, &step.permit).await;
    }
    let _ = go.send(());

    for _ in 0..100 {
        let shown = action("get", json!({"team_id": team["id"], "details": true})).await;
        if shown["jobs"][0]["status"] == "completed" {
            assert_eq!(shown["jobs"][0]["result"]["text"], "Done.", "{shown}");
            return;
        }
        let plan = plugin.plan(Vec::new(), true, Vec::new()).await.expect("a plan");
        for step in &plan.steps {
            let _ = plugin.advance(&step.team, &step.permit).await;
        }
        // The bound is for a pass that nothing follows.
        let _ = tokio::time::timeout(Duration::from_millis(100), ended.recv()).await;
    }
    panic!("the job does not end: {}", action("get", json!({"team_id": team["id"], "details": true})).await);
}
