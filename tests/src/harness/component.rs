//! The built component in its engine, over SQLite in a temporary folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_teams_host::contract::{CallError, Caller, EndedRun, MentionMessage, Plan, Refusal, Step, TeamRef};
use agent_teams_host::engine::{Options, Parts, Plugin, Signals};
use agent_teams_host::storage::database::Database;
use agent_teams_host::storage::{SqliteStore, Store};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::clock::FakeClock;
use crate::double::Double;

/// How a component world differs from the usual.
#[derive(Clone, Debug)]
pub struct ComponentOptions {
    /// The deployment's settings, as JSON text.
    pub settings: String,
    /// The bound of one call of the host of agents.
    pub host_call_time: Duration,
}

impl Default for ComponentOptions {
    fn default() -> Self {
        Self { settings: "{}".into(), host_call_time: Duration::from_secs(60) }
    }
}

/// What ends with the process.
struct Open {
    plugin: Plugin,
    store: Arc<SqliteStore>,
    database: Database,
}

pub(super) struct Component {
    runtime: Runtime,
    folder: TempDir,
    clock: FakeClock,
    options: ComponentOptions,
    /// Absent only while it restarts.
    open: Option<Open>,
}

/// A refusal is an answer; a fault of the component is a failed test.
fn refusal(error: CallError) -> Refusal {
    match error {
        CallError::Refused(refusal) => refusal,
        CallError::Fault { code, message } => panic!("the component failed: {code}: {message}"),
    }
}

impl Component {
    pub fn new(clock: FakeClock, options: ComponentOptions) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut component = Self { runtime, folder, clock, options, open: None };
        component.start();
        component
    }

    fn start(&mut self) {
        let database = Database::open(&self.folder.path().join("data.sqlite")).expect("a database");
        let store = Arc::new(SqliteStore::new(database.clone()).expect("a store"));
        let parts = Parts {
            store: store.clone(),
            signals: Arc::new(Signals::default()),
            settings: self.options.settings.clone(),
            clock: Arc::new(self.clock.clone()),
        };
        let options = Options {
            host_call_time: self.options.host_call_time,
            call_time: Duration::from_secs(120),
            guest_time: Duration::from_secs(60),
            instances: 8,
            cache: Some(PathBuf::from(concat!(env!("OUT_DIR"), "/compiled"))),
            ..Options::default()
        };
        let plugin =
            self.runtime.block_on(async { Plugin::load(Plugin::embedded(), parts, options) }).expect("the component");
        self.open = Some(Open { plugin, store, database });
        self.open().unwrap_or_else(|e| panic!("open: {e}"));
    }

    pub fn settings(&self) -> String {
        self.options.settings.clone()
    }

    pub fn restart(&mut self, settings: &str) {
        if let Some(open) = self.open.take() {
            self.runtime.block_on(open.plugin.shutdown());
            drop((open.plugin, open.store));
            open.database.close();
        }
        self.options.settings = settings.into();
        self.start();
    }

    fn plugin(&self) -> &Plugin {
        &self.open.as_ref().expect("open").plugin
    }

    /// A stored record, past the component.
    pub fn raw(&self, key: &str) -> Option<String> {
        let store = &self.open.as_ref().expect("open").store;
        store.begin().expect("a transaction").get(key).expect("read")
    }

    /// Writes a record past the component.
    pub fn put_raw(&self, key: &str, value: &str) {
        let store = &self.open.as_ref().expect("open").store;
        let mut tx = store.begin().expect("a transaction");
        tx.put(key.into(), value.into()).expect("written");
        self.runtime.block_on(tx.commit()).expect("committed");
    }

    pub fn open(&self) -> Result<(), Refusal> {
        self.runtime.block_on(self.plugin().open()).map_err(refusal)
    }

    pub fn action(
        &self,
        double: &Double,
        caller: &Caller,
        runs: bool,
        action: &str,
        payload: &str,
    ) -> Result<String, Refusal> {
        let runs = runs.then(|| double.capability(&caller.owner));
        self.runtime.block_on(self.plugin().call_action(caller.clone(), runs, action, payload)).map_err(refusal)
    }

    pub fn tool(&self, caller: &Caller, tool: &str, arguments: &str) -> Result<String, Refusal> {
        self.runtime.block_on(self.plugin().call_tool(caller.clone(), None, tool, arguments)).map_err(refusal)
    }

    pub fn mention(&self, double: &Double, caller: &Caller, message: MentionMessage) -> Result<String, Refusal> {
        let runs = double.capability(&caller.owner);
        self.runtime.block_on(self.plugin().dispatch_mention(caller.clone(), runs, message)).map_err(refusal)
    }

    pub fn plan(&self, ended: Vec<EndedRun>, sweep: bool, resting: &[TeamRef]) -> Result<Plan, Refusal> {
        self.runtime.block_on(self.plugin().plan(ended, sweep, resting.to_vec())).map_err(refusal)
    }

    pub fn advance(&self, step: &Step) -> Result<bool, Refusal> {
        self.runtime.block_on(self.plugin().advance(&step.team, &step.permit)).map_err(refusal)
    }

    pub fn slots(&self) -> Result<String, Refusal> {
        self.runtime.block_on(self.plugin().slots()).map_err(refusal)
    }

    pub fn settle(&self, owner: &str, team: &str, job: &str) -> Result<String, Refusal> {
        let team = TeamRef { owner: owner.into(), team: team.into() };
        self.runtime.block_on(self.plugin().settle(&team, job)).map_err(refusal)
    }

    pub fn connect(&self, double: &Double, owner: &str, team: &str) -> Result<(), Refusal> {
        let team = TeamRef { owner: owner.into(), team: team.into() };
        self.runtime.block_on(self.plugin().connect(&team, double.capability(owner))).map_err(refusal)
    }
}
