//! The one configuration file, `agent-teams.toml`, and the one data folder.
//!
//! A mistake in the file is reported with the file's name, the line and the
//! key, and nothing is started. Nothing in the file is a secret: keys of model
//! endpoints come from the environment.

mod origin;
mod toml_error;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;
use toml::de::DeTable;

use crate::agents::config::AgentsConfig;
use crate::{agents, engine};

pub use origin::Origin;
use toml_error::Located;

/// The name of the configuration file.
pub const FILE_NAME: &str = "agent-teams.toml";
/// The name of the database file in the data folder.
pub const DATABASE_NAME: &str = "agent-teams.db";

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration {file}: {source}")]
    Read { file: String, source: std::io::Error },
    /// Names the file, the line and the key at fault.
    #[error("{file}, line {line}: {key}{message}", key = key_prefix(.key))]
    Invalid { file: String, line: usize, key: String, message: String },
    #[error("this platform names no data folder; give one with --data DIR")]
    NoDataFolder,
    #[error("cannot use the data folder {folder}: {source}")]
    DataFolder { folder: String, source: std::io::Error },
}

fn key_prefix(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("`{key}`: ") }
}

/// Whether teams with unfinished jobs are connected again after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reconnect {
    /// The host connects them for every enabled user, so that work continues.
    #[default]
    Auto,
    /// They wait until their owner connects them.
    Manual,
}

/// The `[server]` part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where to listen. A loopback address unless users were added.
    pub bind: SocketAddr,
    /// Origins under which people reach the server besides its own address,
    /// for example through a proxy that ends TLS.
    pub public_origins: Vec<Origin>,
    /// Open connections at once; more wait unaccepted.
    pub max_connections: u32,
    /// Live-update streams of one user at once.
    pub max_streams_per_user: u32,
    /// Calls of one user that run at once; more wait.
    pub max_calls_per_user: u32,
}

/// The `[engine]` part: the bounds of one call into the component.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineLimits {
    /// MiB of memory that one instance may use (4 to 4096).
    pub memory_mib: u32,
    /// Seconds that the component may compute in one call (1 to 60).
    pub guest_seconds: u32,
    /// Seconds that one call may take, host calls included (1 to 600).
    pub call_seconds: u32,
    /// Instances at once; further calls wait (2 to 1000). A part of them, at
    /// most 17, serves the background worker alone.
    pub instances: u32,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self { memory_mib: 64, guest_seconds: 5, call_seconds: 30, instances: 64 }
    }
}

impl EngineLimits {
    /// The engine's options; compiled code is kept under `cache`.
    pub fn options(&self, cache: Option<PathBuf>) -> engine::Options {
        engine::Options {
            memory: self.memory_mib as usize * 1024 * 1024,
            guest_time: Duration::from_secs(self.guest_seconds.into()),
            call_time: Duration::from_secs(self.call_seconds.into()),
            instances: self.instances,
            cache,
            ..engine::Options::default()
        }
    }
}

/// The whole configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file it was read from. Absent: there is none and this is the default.
    pub file: Option<PathBuf>,
    pub server: Server,
    pub engine: EngineLimits,
    pub reconnect: Reconnect,
    /// The `[team]` part, a JSON object handed to the component unread.
    pub team: serde_json::Map<String, serde_json::Value>,
    pub agents: AgentsConfig,
    /// What it was parsed from, to find the place of a later mistake.
    source: Source,
}

/// A configuration's text and the name of its file.
#[derive(Clone, Debug, Default)]
struct Source {
    text: String,
    name: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            file: None,
            source: Source::default(),
            server: RawServer::default().check().unwrap_or_else(|_| unreachable!("the default is valid")),
            engine: EngineLimits::default(),
            reconnect: Reconnect::default(),
            team: serde_json::Map::new(),
            agents: AgentsConfig::default(),
        }
    }
}

/// The host's own parts, as written. Agents and models are read apart.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Raw {
    server: RawServer,
    engine: EngineLimits,
    reconnect: Reconnect,
    team: toml::Table,
}

const HOST_KEYS: [&str; 4] = ["server", "engine", "reconnect", "team"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawServer {
    bind: String,
    public_origins: Vec<String>,
    max_connections: u32,
    max_streams_per_user: u32,
    max_calls_per_user: u32,
}

impl Default for RawServer {
    fn default() -> Self {
        Self {
            bind: "127.0.0.1:8765".into(),
            public_origins: Vec::new(),
            max_connections: 512,
            max_streams_per_user: 16,
            max_calls_per_user: 16,
        }
    }
}

/// A value that parsed but cannot be used: its path and what to do.
struct Wrong(Vec<String>, String);

impl From<agents::config::ConfigError> for Wrong {
    fn from(error: agents::config::ConfigError) -> Self {
        // `agents[1].model` as the path `agents`, `1`, `model`.
        let path = error.key.replace('[', ".").replace(']', "");
        Self(path.split('.').map(str::to_owned).collect(), error.message)
    }
}

impl RawServer {
    fn check(self) -> Result<Server, Wrong> {
        let path = |key: &str| vec!["server".to_owned(), key.to_owned()];
        let bind = self
            .bind
            .parse()
            .map_err(|_| Wrong(path("bind"), "give an IP address and a port, for example \"127.0.0.1:8765\"".into()))?;
        let mut public_origins = Vec::new();
        for (index, text) in self.public_origins.iter().enumerate() {
            let origin = Origin::parse(text).ok_or_else(|| {
                let mut path = path("public_origins");
                path.push(index.to_string());
                Wrong(path, "give an origin and nothing more, for example \"https://teams.example.com\"".into())
            })?;
            public_origins.push(origin);
        }
        for (key, value, max) in [
            ("max_connections", self.max_connections, 100_000),
            ("max_streams_per_user", self.max_streams_per_user, 1_000),
            ("max_calls_per_user", self.max_calls_per_user, 1_000),
        ] {
            check_range(path(key), value, 1, max)?;
        }
        Ok(Server {
            bind,
            public_origins,
            max_connections: self.max_connections,
            max_streams_per_user: self.max_streams_per_user,
            max_calls_per_user: self.max_calls_per_user,
        })
    }
}

fn check_range(path: Vec<String>, value: u32, min: u32, max: u32) -> Result<(), Wrong> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(Wrong(path, format!("give a number from {min} to {max}"))) }
}

impl Config {
    /// Reads the configuration: from `explicit`, or from `agent-teams.toml` in
    /// the current folder, or from the one in the data folder. With none of
    /// the latter two it is the default, which has no agents.
    pub fn load(explicit: Option<&Path>, data: &Path) -> Result<Self, ConfigError> {
        if let Some(file) = explicit {
            return Self::read(file);
        }
        for file in [PathBuf::from(FILE_NAME), data.join(FILE_NAME)] {
            if file.is_file() {
                return Self::read(&file);
            }
        }
        Ok(Self::default())
    }

    /// Reads one file, which must exist.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|source| ConfigError::Read { file: name.clone(), source })?;
        let mut config = Self::parse(&text, &name)?;
        config.file = Some(file.to_owned());
        Ok(config)
    }

    /// Parses the text of a configuration; `name` is the file's name in errors.
    pub fn parse(text: &str, name: &str) -> Result<Self, ConfigError> {
        let located = Located::new(text, name);
        let whole = DeTable::parse(text).map_err(|e| located.error(&e, None))?;
        // The two halves are read apart, so that the owner of the agents' part
        // decides its keys and its mistakes still carry their line.
        let (mut host, mut agents) = (DeTable::new(), DeTable::new());
        for (key, value) in whole.get_ref() {
            let half = if HOST_KEYS.contains(&key.get_ref().as_ref()) { &mut host } else { &mut agents };
            half.insert(key.clone(), value.clone());
        }
        let whole_part = |table| toml::de::Deserializer::from(Spanned::new(whole.span(), table));

        let raw = Raw::deserialize(whole_part(host)).map_err(|e| located.error(&e, Some(&whole)))?;
        let agents = AgentsConfig::deserialize(whole_part(agents)).map_err(|e| {
            let mut error = located.error(&e, Some(&whole));
            if let ConfigError::Invalid { key, message, .. } = &mut error
                && !key.contains('.')
                && message.starts_with("unknown field")
            {
                message.push_str("; the host's own parts are `server`, `engine`, `reconnect` and `team`");
            }
            error
        })?;

        let wrong = |Wrong(path, message): Wrong| located.at(&whole, &path, message);
        agents.validate().map_err(|error| wrong(error.into()))?;
        let engine = raw.engine;
        for (key, value, min, max) in [
            ("memory_mib", engine.memory_mib, 4, 4096),
            ("guest_seconds", engine.guest_seconds, 1, 60),
            ("call_seconds", engine.call_seconds, 1, 600),
            ("instances", engine.instances, 2, 1000),
        ] {
            check_range(vec!["engine".into(), key.into()], value, min, max).map_err(wrong)?;
        }
        let server = raw.server.check().map_err(wrong)?;
        let mut team = serde_json::Map::new();
        for (key, value) in raw.team {
            let value = json(value, &mut vec!["team".to_owned(), key.clone()]).map_err(wrong)?;
            team.insert(key, value);
        }
        let source = Source { text: text.to_owned(), name: name.to_owned() };
        Ok(Self { file: None, server, engine, reconnect: raw.reconnect, team, agents, source })
    }

    /// A mistake that was found in the agents' part after it was parsed, with
    /// file and line.
    pub fn agents_error(&self, error: agents::config::ConfigError) -> ConfigError {
        let Source { text, name } = &self.source;
        let (located, Wrong(path, message)) = (Located::new(text, name), error.into());
        match DeTable::parse(text) {
            Ok(whole) => located.at(&whole, &path, message),
            Err(error) => located.error(&error, None),
        }
    }

    /// The settings for the component, as JSON text.
    pub fn team_json(&self) -> String {
        serde_json::Value::Object(self.team.clone()).to_string()
    }
}

/// TOML as JSON. Dates and numbers that JSON has no form for are refused.
fn json(value: toml::Value, path: &mut Vec<String>) -> Result<serde_json::Value, Wrong> {
    use serde_json::Value as Json;
    Ok(match value {
        toml::Value::String(text) => Json::String(text),
        toml::Value::Integer(number) => Json::from(number),
        toml::Value::Boolean(flag) => Json::Bool(flag),
        toml::Value::Float(number) => serde_json::Number::from_f64(number)
            .map(Json::Number)
            .ok_or_else(|| Wrong(path.clone(), "give a finite number".into()))?,
        toml::Value::Datetime(_) => return Err(Wrong(path.clone(), "give dates as text in quotes".into())),
        toml::Value::Array(items) => {
            let mut array = Vec::with_capacity(items.len());
            for (index, item) in items.into_iter().enumerate() {
                path.push(index.to_string());
                array.push(json(item, path)?);
                path.pop();
            }
            Json::Array(array)
        }
        toml::Value::Table(table) => {
            let mut object = serde_json::Map::new();
            for (key, item) in table {
                path.push(key.clone());
                object.insert(key, json(item, path)?);
                path.pop();
            }
            Json::Object(object)
        }
    })
}

/// The data folder: `given`, or the platform's folder for application data.
/// It is not made yet.
pub fn data_folder(given: Option<&Path>) -> Result<PathBuf, ConfigError> {
    match given {
        Some(folder) => Ok(folder.to_owned()),
        None => directories::ProjectDirs::from("", "", "agent-teams")
            .map(|dirs| dirs.data_dir().to_owned())
            .ok_or(ConfigError::NoDataFolder),
    }
}

/// Makes the data folder with mode 0700. An existing one is left as it is, and
/// a warning for the operator comes back if other people of the machine may
/// look into it.
pub fn prepare_data_folder(folder: &Path) -> Result<Option<String>, ConfigError> {
    let fail = |source| ConfigError::DataFolder { folder: folder.display().to_string(), source };
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(folder).map_err(fail)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder).map_err(fail)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Ok(Some(format!(
                "the data folder {} has mode {mode:04o}: others on this machine may look into it (chmod 700 helps)",
                folder.display()
            )));
        }
    }
    Ok(None)
}

/// What `serve` says when no agents are configured.
pub const NO_AGENTS_HINT: &str = "No agents are configured, so no team can be made yet. Put an agent-teams.toml into \
     the current folder or the data folder (`agent-teams doctor --sample` prints a commented one) and start again.";

/// A commented configuration to begin with.
pub const SAMPLE: &str = include_str!("sample.toml");

#[cfg(test)]
mod tests;
