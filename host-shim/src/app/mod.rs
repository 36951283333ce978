//! One serving process: its parts, in the order in which they are opened, and
//! the order in which they stop.

mod health;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::agents;
use crate::agents::host::{AgentHost, ToolHost};
use crate::agents::names::Known;
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config, DATABASE_NAME, Reconnect};
use crate::contract::{CallError, Caller, ToolDef};
use crate::engine::{self, Plugin, Signals};
use crate::gateway::{self, BindError, Listeners};
use crate::life::{Life, life};
use crate::local::{self, ServerFile};
use crate::storage::database::{Database, InUse};
use crate::storage::{SqliteStore, SqliteTables, Tables};
use crate::users::{Operator, UserDirectory, UserError, Users};
use crate::worker::{self, CapabilityOf, Worker};

pub use health::Part;
use health::{Health, Parts};

/// Compiled code of components, in the data folder.
pub const CACHE_FOLDER: &str = "cache";
/// The files of conversations, in the data folder.
const WORKSPACES_FOLDER: &str = "workspaces";
/// How long a stop waits for steps of teams that are under way.
const WORKER_GRACE: Duration = Duration::from_secs(12);
/// How long it waits for agents, before and after waiting calls are answered.
const AGENTS_GRACE: Duration = Duration::from_secs(10);

/// How long it waits for calls of the component that are under way.
const CALLS_GRACE: Duration = Duration::from_secs(30);
/// How long it waits for the database to empty its log.
const CLOSE_GRACE: Duration = Duration::from_secs(60);

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
    #[error("the component cannot be loaded: {0:#}")]
    Load(anyhow::Error),
    /// The component refuses its settings or its stored records.
    #[error("the component cannot open its records: {0}")]
    Open(CallError),
    #[error("the agents cannot start: {0:#}")]
    Agents(anyhow::Error),
    #[error("{0:#}")]
    Operator(anyhow::Error),
    #[error(transparent)]
    Users(#[from] UserError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error("cannot listen at {address}: {source}; stop what uses it, or set another port in [server] bind")]
    Listen { address: SocketAddr, source: std::io::Error },
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
            Self::Operator(_) => "operator_token",
            Self::Users(_) => "users",
            Self::Bind(_) | Self::Listen { .. } => "bind",
        }
    }
}

/// A process that serves. Use `stop`; dropping it instead is a crash, which
/// the next start repairs.
pub struct App {
    first_start: bool,
    data: PathBuf,
    users: Arc<Users>,
    operator: Arc<Operator>,
    plugin: Plugin,
    agents: Arc<dyn AgentHost>,
    worker: Worker,
    server: config::Server,
    address: SocketAddr,
    http: Http,
    parts: Parts,
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
        let data = setup.data.clone();
        let started = Self::start_on(db.clone(), setup).await;
        if started.is_err() {
            // The data folder is free again before anyone hears of it, and
            // nothing leads to a server that is not there.
            let _ = local::leave(&data);
            close(db).await;
        }
        started
    }

    async fn start_on(db: Database, setup: Setup) -> Result<Self, StartError> {
        let Setup { data, mut config, component, any_port } = setup;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let tables = SqliteTables::open(db.clone(), clock.clone()).await.map_err(StartError::Database)?;
        let users = Users::new(tables.clone(), clock.clone());
        let signals = Arc::new(Signals::default());
        let plugin = load(
            component,
            engine::Parts {
                store: Arc::new(SqliteStore::new(db.clone()).map_err(StartError::Database)?),
                signals: signals.clone(),
                settings: settings(&config),
                clock,
            },
            config.engine.options(Some(data.join(CACHE_FOLDER))),
        )?;
        plugin.open().await.map_err(StartError::Open)?;
        check_names(&config, &plugin, &users).await?;
        let base = config.file.as_deref().and_then(|file| file.parent()).unwrap_or(&data).to_owned();
        config.agents.resolve_paths(&base);
        let agents = open_agents(&tables, &config, &plugin, &users, &data)?;

        // A start that fails uses nothing up: what can fail comes first, then
        // what happens once (the first user), and last the unfinished runs.
        let server = config.server.clone();
        let listeners = listen(&server, &users, any_port, &data).await?;
        let address =
            listeners.tcp.local_addr().map_err(|source| StartError::Listen { address: server.bind, source })?;
        let operator = Arc::new(Operator::in_folder(&data).map_err(StartError::Operator)?);
        let first_start = users.first_start().await?;
        users.admit_cli(&data).await?;
        // From here on a command may come; it is answered when all is ready.
        let public = server.public_origins.first().map(ToString::to_string);
        ServerFile { url: gateway::local_origin(&server, address), pid: std::process::id(), public }
            .write(&data)
            .map_err(|source| config::ConfigError::DataFolder { folder: data.display().to_string(), source })?;

        // Both are listened to before anything can happen: runs that a crash
        // left behind may end while they are being recovered.
        let (ended, changes) = (agents.ended(), signals.subscribe());
        agents.recover().await.map_err(StartError::Agents)?;

        let reconnect = (config.reconnect == Reconnect::Auto).then(|| capability_of(&agents, &users));
        let worker = Worker::start(Arc::new(plugin.clone()), ended, changes, reconnect, worker::Options::default());
        let http = Http::start(
            gateway::Parts {
                team: Arc::new(plugin.clone()),
                agents: agents.clone(),
                users: users.clone(),
                signals: signals.clone(),
                operator: operator.clone(),
                health: Arc::new(Health::new(tables.clone(), users.clone(), worker.life())),
            },
            server.clone(),
            listeners,
        );
        let parts = Parts { worker: worker.life(), http: http.life.clone(), writer: tables.writer().clone() };
        Ok(Self { first_start, data, users, operator, plugin, agents, worker, server, address, http, parts, db })
    }

    /// Waits until a part breaks down without which the process cannot serve.
    /// Nothing in it can mend that; a new start repairs what was left.
    pub async fn broken(&self) -> Part {
        self.parts.broken().await
    }

    /// Stops in order: no new HTTP calls, no new steps, then the agents at
    /// their next safe point, then the component, which answers calls that
    /// wait; last the database is released, so that another process can start.
    /// Every wait is bounded.
    pub async fn stop(self) {
        let Self { data, users, operator, plugin, agents, worker, http: Http { stop, task: http, .. }, db, .. } = self;
        if let Err(error) = local::leave(&data) {
            tracing::warn!(%error, "what leads to this server stays in the data folder");
        }
        let _ = stop.send(());
        worker.shutdown(WORKER_GRACE).await;
        // A run may sit in a tool call that waits for an event; it gets its
        // answer when the component closes, and what it did not finish is
        // taken up by the next start.
        let agents_stopped = agents.shutdown();
        tokio::pin!(agents_stopped);
        let early = tokio::time::timeout(AGENTS_GRACE, &mut agents_stopped).await.is_ok();
        if tokio::time::timeout(CALLS_GRACE, plugin.shutdown()).await.is_err() {
            tracing::warn!("some calls of the component did not end in time; they end with the process");
        }
        if !early {
            let _ = tokio::time::timeout(AGENTS_GRACE, agents_stopped).await;
        }
        match http.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the HTTP server ended with an error"),
            Err(error) => tracing::error!(%error, "the HTTP server broke down"),
        }
        operator.leave();
        users.dismiss_cli();
        drop((users, plugin));
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

    pub fn agents(&self) -> &Arc<dyn AgentHost> {
        &self.agents
    }

    pub fn database(&self) -> &Database {
        &self.db
    }

    /// Where the server listens, for example `http://127.0.0.1:8765`.
    pub fn url(&self) -> String {
        gateway::local_origin(&self.server, self.address)
    }

    /// Where the page is.
    pub fn page(&self) -> String {
        format!("{}{}", self.url(), gateway::PAGE_PATH)
    }
}

/// Every name in the configuration must exist: one that matches nothing would
/// switch off, in silence, what it was written for.
async fn check_names(config: &Config, plugin: &Plugin, users: &Users) -> Result<(), StartError> {
    let tools: Vec<String> =
        plugin.tools("full").await.map_err(StartError::Open)?.into_iter().map(|t| t.name).collect();
    let users = users.ids()?;
    let known = Known { tools: &tools, users: Some(&users) };
    Ok(config.agents.check_names(&known).map_err(|error| config.agents_error(error))?)
}

/// Closing empties the log into the file, which may take a while.
async fn close(db: Database) {
    let closed = tokio::task::spawn_blocking(move || db.close());
    if tokio::time::timeout(CLOSE_GRACE, closed).await.is_err() {
        tracing::warn!("the database did not close in time; the next start repairs it");
    }
}

/// Listens where the configuration says; with `any_port`, at a free port
/// should that one be taken. And in the data folder.
async fn listen(server: &config::Server, users: &Users, any_port: bool, data: &Path) -> Result<Listeners, StartError> {
    gateway::check_bind(server, users)?;
    let address = server.bind;
    let listener = match TcpListener::bind(address).await {
        Err(error) if any_port && error.kind() == std::io::ErrorKind::AddrInUse => {
            TcpListener::bind(SocketAddr::new(address.ip(), 0)).await
        }
        other => other,
    };
    let tcp = listener.map_err(|source| StartError::Listen { address, source })?;
    let socket = local::Socket::listen(data);
    if let Err(error) = &socket {
        tracing::warn!(
            "commands on this machine reach the server with --server and a token only, since there can be no socket \
             in the data folder: {error}"
        );
    }
    Ok(Listeners { tcp, socket: socket.ok() })
}

/// The HTTP server's task.
struct Http {
    stop: oneshot::Sender<()>,
    task: JoinHandle<anyhow::Result<()>>,
    life: Life,
}

impl Http {
    fn start(parts: gateway::Parts, server: config::Server, listeners: Listeners) -> Self {
        let (living, life) = life();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let _living = living;
            // A sender that is gone is a stop, too.
            let stop = async { drop(stopped.await) };
            gateway::serve(parts, &server, gateway::Limits::default(), listeners, stop).await
        });
        Self { stop, task, life }
    }
}

/// The agents, with the component's tools.
fn open_agents(
    tables: &Tables,
    config: &Config,
    plugin: &Plugin,
    users: &Arc<Users>,
    data: &Path,
) -> Result<Arc<dyn AgentHost>, StartError> {
    let tools = Arc::new(PluginTools { plugin: plugin.clone(), agents: OnceLock::new() });
    let directory: Arc<dyn UserDirectory> = users.clone();
    let workspaces = data.join(WORKSPACES_FOLDER);
    let agents = agents::open(tables.clone(), config.agents.clone(), tools.clone(), directory, workspaces)
        .map_err(StartError::Agents)?;
    let _ = tools.agents.set(Arc::downgrade(&agents));
    Ok(agents)
}

/// What the component is told: the `[team]` part, and whether this host
/// connects teams by itself.
pub fn settings(config: &Config) -> String {
    let mut settings = config.team.clone();
    let reconnect = match config.reconnect {
        Reconnect::Auto => "auto",
        Reconnect::Manual => "manual",
    };
    settings.insert("reconnect".into(), reconnect.into());
    serde_json::Value::Object(settings).to_string()
}

/// Loads the built-in component, or the one in a file.
pub fn load(file: Option<PathBuf>, parts: engine::Parts, options: engine::Options) -> Result<Plugin, StartError> {
    let loaded = match file {
        None => Plugin::load(Plugin::embedded(), parts, options),
        Some(file) => {
            let bytes = std::fs::read(&file)
                .map_err(|source| StartError::ComponentFile { file: file.display().to_string(), source })?;
            Plugin::load(&bytes, parts, options)
        }
    };
    loaded.map_err(StartError::Load)
}

/// The capability of a user who may act at all.
fn capability_of(agents: &Arc<dyn AgentHost>, users: &Arc<Users>) -> CapabilityOf {
    let (agents, users) = (agents.clone(), users.clone());
    Arc::new(move |owner| Ok(users.enabled(owner)?.then(|| agents.capability(owner))))
}

/// The component's tools, as agents call them: with the
/// capability of the user for whom the agent runs.
struct PluginTools {
    plugin: Plugin,
    /// Set right after the agents are opened; weak, since they hold this.
    agents: OnceLock<Weak<dyn AgentHost>>,
}

#[async_trait]
impl ToolHost for PluginTools {
    async fn list(&self) -> Result<Vec<ToolDef>, CallError> {
        self.plugin.tools("full").await
    }

    async fn call(&self, caller: Caller, name: &str, arguments: &str) -> Result<String, CallError> {
        let agents = self.agents.get().and_then(Weak::upgrade);
        let runs = agents.map(|agents| agents.capability(&caller.owner));
        self.plugin.call_tool(caller, runs, name, arguments).await
    }
}
