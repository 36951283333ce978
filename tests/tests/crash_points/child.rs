//! The process that dies: it opens the folder, does what of the job is not done
//! yet, always with the same request ids, and reports what it found at the end.
//! It plans and advances by itself, one step after the other, so that the
//! points come in the same order each time.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agent_teams_host::agents::builtin::BuiltinAgents;
use agent_teams_host::agents::host::ToolHost;
use agent_teams_host::agents::runs::Capability;
use agent_teams_host::config::Config;
use agent_teams_host::contract::{CallError, Caller, EndedRun, ToolDef};
use agent_teams_host::engine::{Options, Parts, Plugin, Signals, SystemClock};
use agent_teams_host::storage::database::Database;
use agent_teams_host::storage::{SqliteStore, SqliteTables};
use agent_teams_host::users::UserDirectory;
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::points::{Asked, Points, Stored};
use super::{AT, FOLDER, REPORT};

/// The database file in the folder.
pub const DATABASE: &str = "data.sqlite";
const OWNER: &str = "ann";

const AGENTS: &str = r#"
[[agents]]
name = "lead"
model = "m"
[[agents]]
name = "helper"
model = "m"

[models.m]
kind = "scripted"

# The request: a task on the board, then a question to a peer.
[[models.m.rules]]
agent = "lead"
human = "[Agent team request]*"
tool = ""
[[models.m.rules.calls]]
tool = "create_team_task"
arguments = { team_id = "{{human:team_id}}", subject = "by a member", description = "d" }
[[models.m.rules]]
agent = "lead"
human = "[Agent team request]*"
tool = "create_team_task"
[[models.m.rules.calls]]
tool = "send_member"
arguments = { team_id = "{{human:team_id}}", member = "Bo", request_id = "facts", text = "Facts, please." }
[[models.m.rules]]
agent = "lead"
human = "[Agent team request]*"
text = "I have asked Bo."
[[models.m.rules]]
agent = "lead"
text = "The facts are in."

# The peer: facts, a question of its own, or work without end.
[[models.m.rules]]
agent = "helper"
human = "*\nFacts, please.*"
text = "Three facts."
[[models.m.rules]]
agent = "helper"
human = "*\nPaint it.*"
tool = ""
[[models.m.rules.calls]]
tool = "ask_clarification"
arguments = { question = "Which colour?" }
[[models.m.rules]]
agent = "helper"
human = "*\nTake your time.*"
text = "Too late."
delay_ms = 3600000
[[models.m.rules]]
agent = "helper"
text = "Blue it is."
"#;

/// A folder with the agents in it and nothing done yet.
pub fn new_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("agent-teams.toml"), AGENTS).expect("written");
    folder
}

/// The component's tools for the agents, with the wrapped capability.
struct Tools {
    plugin: Plugin,
    runs: OnceLock<Capability>,
}

#[async_trait]
impl ToolHost for Tools {
    async fn list(&self) -> Result<Vec<ToolDef>, CallError> {
        self.plugin.tools("full").await
    }
    async fn call(&self, caller: Caller, name: &str, arguments: &str) -> Result<String, CallError> {
        self.plugin.call_tool(caller, self.runs.get().cloned(), name, arguments).await
    }
}

struct Everybody;

impl UserDirectory for Everybody {
    fn enabled(&self, _: &str) -> anyhow::Result<bool> {
        Ok(true)
    }
}

/// Runs only in a process that a test of the module above has started.
#[test]
fn the_job() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let at = std::env::var(AT).ok().and_then(|at| at.parse().ok()).expect("a point");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let report = runtime.block_on(async { Child::open(folder.into(), Points::new(at)).await.job().await });
    println!("{REPORT}{report}");
    // The agent that never ends is not waited for.
    runtime.shutdown_background();
}

struct Child {
    plugin: Plugin,
    runs: Capability,
    ended: broadcast::Receiver<EndedRun>,
    team: String,
    _agents: Arc<BuiltinAgents>,
}

impl Child {
    async fn open(folder: PathBuf, points: Arc<Points>) -> Self {
        let config = Config::load(Some(&folder.join("agent-teams.toml")), &folder).expect("the configuration");
        let db = Database::open(&folder.join(DATABASE)).expect("the database");
        let store = SqliteStore::new(db.clone()).expect("the store");
        let parts = Parts {
            store: Arc::new(Stored { store, points: points.clone() }),
            signals: Arc::new(Signals::default()),
            settings: "{}".into(),
            clock: Arc::new(SystemClock),
        };
        let options =
            Options { cache: Some(concat!(env!("CARGO_TARGET_TMPDIR"), "/compiled").into()), ..Options::default() };
        let plugin = Plugin::load(Plugin::embedded(), parts, options).expect("the component");
        plugin.open().await.expect("open");
        let tools = Arc::new(Tools { plugin: plugin.clone(), runs: OnceLock::new() });
        let tables = SqliteTables::open(db, Arc::new(SystemClock)).await.expect("the tables");
        let agents =
            BuiltinAgents::open(tables, config.agents, tools.clone(), Arc::new(Everybody), folder.join("files"))
                .expect("the agents");
        let runs = Asked::wrap(agents.capability(OWNER), &points);
        let _ = tools.runs.set(runs.clone());
        let ended = agents.ended();
        agents.recover().await.expect("recovered");
        Self { plugin, runs, ended, team: String::new(), _agents: agents }
    }

    async fn action(&self, action: &str, payload: Value) -> Value {
        let runs = Some(self.runs.clone());
        let answer = self.plugin.call_action(Caller::owner(OWNER), runs, action, &payload.to_string()).await;
        serde_json::from_str(&answer.unwrap_or_else(|e| panic!("{action}: {e}"))).expect("JSON")
    }

    async fn job(mut self) -> Value {
        let member = |name: &str, agent: &str| json!({"name": name, "agent": agent});
        let roster = json!({
            "request_id": "team", "name": "Crash", "goal": "Survive.",
            "members": [member("Ada", "lead"), member("Bo", "helper"), member("Cy", "helper")],
        });
        let made = self.action("create", roster).await;
        let team = &made["team"];
        self.team = team["id"].as_str().expect("an id").into();
        let members: Vec<&str> =
            team["members"].as_array().expect("members").iter().filter_map(|m| m["id"].as_str()).collect();

        self.send(members[0], "main", "Begin.").await;
        let task = json!({"team_id": self.team, "subject": "by the owner", "description": "d", "request_id": "task"});
        self.action("create_task", task).await;
        self.work(|jobs| jobs.iter().any(|j| j["kind"] == "receipt" && j["status"] == "completed")).await;

        let asked = self.send(members[1], "question", "Paint it.").await;
        let past = |jobs: &[Value]| status(jobs, &asked) != "queued" && status(jobs, &asked) != "running";
        self.work(past).await;
        let answer = json!({"team_id": self.team, "job_id": asked, "request_id": "answer", "response": "Blue."});
        self.action("resume", answer).await;
        self.work(|jobs| status(jobs, &asked) == "completed").await;

        let slow = self.send(members[2], "slow", "Take your time.").await;
        let known = |jobs: &[Value]| jobs.iter().any(|j| j["id"] == slow.as_str() && j["run_id"].is_string());
        self.work(known).await;
        self.action("cancel", json!({"team_id": self.team, "job_id": slow})).await;
        self.work(|jobs| status(jobs, &slow) == "cancelled").await;

        let tasks = self.action("tasks", json!({"team_id": self.team})).await;
        let slots: Value = serde_json::from_str(&self.plugin.slots().await.expect("slots")).expect("JSON");
        json!({"jobs": self.jobs().await, "tasks": tasks, "slots": slots})
    }

    async fn send(&self, member: &str, request: &str, text: &str) -> String {
        let payload = json!({"team_id": self.team, "member_id": member, "request_id": request, "text": text});
        self.action("send", payload).await["job"]["id"].as_str().expect("an id").into()
    }

    async fn jobs(&self) -> Vec<Value> {
        let team = self.action("get", json!({"team_id": self.team, "limit": 200, "details": true})).await;
        team["jobs"].as_array().expect("jobs").clone()
    }

    /// Plans and advances until the jobs are as wanted. When a pass changes
    /// nothing, the end of a run is awaited; the bound is for an end that was
    /// announced before.
    async fn work(&mut self, wanted: impl Fn(&[Value]) -> bool) {
        while !wanted(&self.jobs().await) {
            let plan = self.plugin.plan(Vec::new(), true, Vec::new()).await.expect("a plan");
            for team in &plan.connect {
                self.plugin.connect(team, self.runs.clone()).await.expect("connected");
            }
            let mut changed = false;
            for step in &plan.steps {
                changed |= self.plugin.advance(&step.team, &step.permit).await.expect("a step");
            }
            if !changed {
                let _ = tokio::time::timeout(Duration::from_millis(500), self.ended.recv()).await;
            }
        }
    }
}

fn status<'a>(jobs: &'a [Value], id: &str) -> &'a str {
    jobs.iter().find(|j| j["id"] == id).and_then(|j| j["status"].as_str()).unwrap_or_default()
}
