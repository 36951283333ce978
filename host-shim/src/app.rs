//! One serving process: its parts, in the order in which they are opened, and
//! the order in which they stop.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use async_trait::async_trait;

use crate::agents::builtin::{BuiltinAgents, ToolHost, UserDirectory};
use crate::config::{self, Config, DATABASE_NAME, Reconnect};
use crate::contract::{CallError, Caller, ToolDef};
use crate::engine::{self, LoadError, Plugin, Signals, SystemClock};
use crate::gateway::{self, BindError};
use crate::storage::SqliteStore;
use crate::storage::database::{Database, InUse};
use crate::users::{UserError, Users};
use crate::worker::{self, CapabilityOf, Worker};

/// Compiled code of components, in the data folder.
const CACHE_FOLDER: &str = "cache";
/// The files of conversations, in the data folder.
const WORKSPACES_FOLDER: &str = "workspaces";
/// How long a stop waits for steps of teams that are under way.
const WORKER_GRACE: Duration = Duration::from_secs(12);

/// What a process is started with.
pub struct Setup {
    /// The data folder; made if it is missing.
    pub data: PathBuf,
    pub config: Config,
    /// A component in the place of the built-in one.
    pub component: Option<PathBuf>,
    /// Take any free port when the configured one is taken.
    pub any_port: bool,
}

/// Why a process cannot start. Whatever was opened is closed again.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] config::ConfigError),
    /// Says which process has it.
    #[error("{0}; stop that process first, or use another data folder")]
    InUse(InUse),
    #[error("{0:#}")]
    Database(anyhow::Error),
    #[error("cannot read the component {file}: {source}")]
    ComponentFile { file: String, source: std::io::Error },
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The component refuses its settings or its stored records.
    #[error("the component cannot open its records: {0}")]
    Open(CallError),
    #[error("the agents cannot start: {0:#}")]
    Agents(anyhow::Error),
    #[error(transparent)]
    Users(#[from] UserError),
    #[error(transparent)]
    Bind(#[from] BindError),
}

impl StartError {
    /// Stable and machine-readable.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Config(_) => "configuration",
            Self::InUse(_) => "database_in_use",
            Self::Database(_) => "database",
            Self::ComponentFile { .. } | Self::Load(_) => "component",
            Self::Open(_) => "component_open",
            Self::Agents(_) => "agents",
            Self::Users(_) => "users",
            Self::Bind(_) => "bind",
        }
    }
}

/// A process that serves. Use `stop`; dropping it instead is a crash, which
/// the next start repairs.
pub struct App {
    first_start: bool,
    users: Arc<Users>,
    plugin: Plugin,
    agents: Arc<BuiltinAgents>,
    worker: Worker,
    gateway: Gateway,
    db: Database,
}

impl App {
    /// Opens everything and begins to serve.
    pub async fn start(setup: Setup) -> Result<Self, StartError> {
        if let Some(warning) = config::prepare_data_folder(&setup.data)? {
            tracing::warn!("{warning}");
        }
        let db = Database::open(&setup.data.join(DATABASE_NAME)).map_err(|error| match error.downcast::<InUse>() {
            Ok(in_use) => StartError::InUse(in_use),
            Err(error) => StartError::Database(error),
        })?;
        let started = Self::start_on(db.clone(), setup).await;
        if started.is_err() {
            // The data folder is free again before anyone hears of it.
            close(db).await;
        }
        started
    }

    async fn start_on(db: Database, setup: Setup) -> Result<Self, StartError> {
        let Setup { data, mut config, component, any_port } = setup;
        let users = Users::open(db.clone(), Arc::new(SystemClock)).await?;
        let first_start = users.first_start().await?;
        users.ensure_cli_token(&data).await?;

        let signals = Arc::new(Signals::default());
        let store = SqliteStore::open(db.clone()).map_err(StartError::Database)?;
        let plugin = load(
            component,
            engine::Parts {
                store: Arc::new(store),
                signals: signals.clone(),
                settings: config.team_json(),
                clock: Arc::new(SystemClock),
            },
            config.engine.options(Some(data.join(CACHE_FOLDER))),
        )?;
        plugin.open().await.map_err(StartError::Open)?;

        let base = config.file.as_deref().and_then(|file| file.parent()).unwrap_or(&data).to_owned();
        config.agents.resolve_paths(&base);
        let tools = Arc::new(PluginTools { plugin: plugin.clone(), agents: OnceLock::new() });
        let directory: Arc<dyn UserDirectory> = users.clone();
        let agents =
            BuiltinAgents::open(db.clone(), config.agents.clone(), tools.clone(), directory, data.join(WORKSPACES_FOLDER))
                .map_err(StartError::Agents)?;
        let _ = tools.agents.set(Arc::downgrade(&agents));

        // Both are listened to before anything can happen: runs that a crash
        // left behind may end while they are being recovered.
        let (ended, changes) = (agents.ended(), signals.subscribe());
        agents.recover().await.map_err(StartError::Agents)?;

        let parts = gateway::Parts {
            team: Arc::new(plugin.clone()),
            agents: Arc::new(agents.clone()),
            users: users.clone(),
            signals: signals.clone(),
        };
        let gateway = match gateway::serve(parts.clone(), &config.server, gateway::Limits::default()).await {
            Err(error) if any_port && error.address_in_use() => {
                config.server.bind.set_port(0);
                gateway::serve(parts, &config.server, gateway::Limits::default()).await?
            }
            other => other?,
        };
        let worker = Worker::start(
            Arc::new(plugin.clone()),
            ended,
            changes,
            (config.reconnect == Reconnect::Auto).then(|| capability_of(&agents, &users)),
            worker::Options::default(),
        );
        Ok(Self { first_start, users, plugin, agents, worker, gateway, db })
    }

    /// Stops in order: no new HTTP calls, no new steps, then the agents at
    /// their next safe point, then the component; last the database is
    /// released, so that another process can start. Every part bounds its own
    /// wait.
    pub async fn stop(self) {
        let Self { users, plugin, agents, worker, gateway, db, .. } = self;
        // Parked calls would keep their connections open: they are answered
        // when the component closes, which calls under way must survive.
        gateway.stop().await;
        worker.shutdown(WORKER_GRACE).await;
        agents.shutdown().await;
        plugin.shutdown().await;
        drop((users, plugin, agents));
        close(db).await;
    }

    /// Whether this start made the first user.
    pub fn first_start(&self) -> bool {
        self.first_start
    }

    pub fn users(&self) -> &Users {
        &self.users
    }

    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    pub fn agents(&self) -> &Arc<BuiltinAgents> {
        &self.agents
    }

    pub fn database(&self) -> &Database {
        &self.db
    }

    /// Where the server listens, for example `http://127.0.0.1:8765`.
    pub fn url(&self) -> String {
        gateway::local_origin(self.gateway.address())
    }

    /// Where the page is.
    pub fn page(&self) -> String {
        format!("{}{}", self.url(), gateway::PAGE_PATH)
    }
}

/// Closing empties the log into the file, which may take a while.
async fn close(db: Database) {
    let _ = tokio::task::spawn_blocking(move || db.close()).await;
}

/// Loads the built-in component, or the one in a file.
pub fn load(file: Option<PathBuf>, parts: engine::Parts, options: engine::Options) -> Result<Plugin, StartError> {
    let bytes = match file {
        None => None,
        Some(file) => Some(
            std::fs::read(&file)
                .map_err(|source| StartError::ComponentFile { file: file.display().to_string(), source })?,
        ),
    };
    Ok(Plugin::load(bytes.as_deref().unwrap_or_else(Plugin::embedded), parts, options)?)
}

/// The capability of a user who may act at all.
fn capability_of(agents: &Arc<BuiltinAgents>, users: &Arc<Users>) -> CapabilityOf {
    let (agents, users) = (agents.clone(), users.clone());
    Arc::new(move |owner| users.enabled(owner).then(|| agents.capability(owner)))
}

/// The component's tools, as the built-in agents call them: with the
/// capability of the user for whom the agent runs.
struct PluginTools {
    plugin: Plugin,
    /// Set right after the agents are opened; weak, since they hold this.
    agents: OnceLock<Weak<BuiltinAgents>>,
}

#[async_trait]
impl ToolHost for PluginTools {
    async fn list(&self) -> Result<Vec<ToolDef>, CallError> {
        self.plugin.tools().await
    }

    async fn call(&self, caller: Caller, name: &str, arguments: &str) -> Result<String, CallError> {
        let agents = self.agents.get().and_then(Weak::upgrade);
        let runs = agents.map(|agents| agents.capability(&caller.owner));
        self.plugin.call_tool(caller, runs, name, arguments).await
    }
}
