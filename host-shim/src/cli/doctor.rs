//! `doctor`: looks whether everything needed is there, in the same way as the
//! real work does it, and says what to do where it is not.

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::Place;
use super::client::Client;
use super::fail::{Exit, Fail};
use super::output::{Output, Tone, clean};
use crate::agents::config::{BUILTIN_TOOLS, EXTENSIONS};
use crate::agents::names::Known;
use crate::app;
use crate::config::{Config, DATABASE_NAME, SAMPLE, prepare_data_folder};
use crate::engine::{CONTRACT, Parts, Plugin, Signals, SystemClock};
use crate::storage::database::{Database, InUse, check_file};
use crate::storage::{MemoryStore, SqliteTables};
use crate::users::Users;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 0: everything is fine. 1: at least one check failed; each says what to do.\n\nExamples:\n  agent-teams doctor\n  agent-teams doctor --models\n  agent-teams doctor --deep\n  agent-teams doctor --sample > agent-teams.toml"
)]
pub struct Doctor {
    /// Also ask each configured model for a word; this may cost a little.
    #[arg(long)]
    models: bool,
    /// Also read every page and index of the database; this may take minutes.
    #[arg(long)]
    deep: bool,
    /// Print a commented configuration to begin with, and check nothing.
    #[arg(long)]
    sample: bool,
    /// Another component than the one that is built in.
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
}

/// What was found, check by check.
struct Findings<'a> {
    output: &'a Output,
    rows: Vec<Value>,
    failed: bool,
}

impl Findings<'_> {
    /// Notes and shows one check: what was found, or what to do.
    fn note<T>(&mut self, check: &str, result: Result<(T, String), String>) -> Option<T> {
        let (value, ok, text) = match result {
            Ok((value, found)) => (Some(value), true, found),
            Err(advice) => (None, false, advice),
        };
        let (mark, tone) = if ok { ("ok  ", Tone::Good) } else { ("FAIL", Tone::Bad) };
        self.output.say(format!("{}  {}: {}", self.output.tone(tone, mark), clean(check), clean(&text)));
        self.rows.push(json!({ "check": check, "ok": ok, "text": text }));
        self.failed |= !ok;
        value
    }
}

pub async fn run(place: &Place, args: Doctor, output: &Output) -> Result<Exit, Fail> {
    if args.sample {
        output.answer(&json!({ "sample": SAMPLE }), || SAMPLE.trim_end().to_owned());
        return Ok(Exit::Ok);
    }
    let mut findings = Findings { output, rows: Vec::new(), failed: false };
    findings.note("data folder", data_folder(place));
    let config = findings.note("configuration", configuration(place));
    let database = findings.note("database", database(place).await).unwrap_or(Found::Unusable);
    if args.deep {
        findings.note("database pages", deep(place).await);
    }
    match (&config, &database) {
        (_, Found::Served) => drop(findings.note("server", server(place).await)),
        (Some(config), _) => drop(findings.note("port", port(config))),
        _ => {}
    }
    let plugin = findings.note("component", component(args.component, config.as_ref()).await);
    if let Some(config) = &config {
        let tools: Option<Vec<String>> = match &plugin {
            Some(plugin) => plugin.tools("full").await.map(|tools| tools.into_iter().map(|t| t.name).collect()).ok(),
            None => None,
        };
        let users = if let Found::Users(users) = &database { Some(users.as_slice()) } else { None };
        let known = tools.as_deref().map(|tools| Known { tools, users });
        for (index, agent) in config.agents.agents.iter().enumerate() {
            findings.note(&format!("agent {}", agent.name), check_agent(config, index, known.as_ref()));
        }
        for (name, model) in &config.agents.models {
            let found = match known.as_ref().map(|known| config.agents.check_model(name, known)) {
                Some(Err(error)) => Err(config.agents_error(error).to_string()),
                _ => model.provider().probe(args.models).await.map(|found| ((), found)),
            };
            findings.note(&format!("model {name}"), found);
        }
    }
    if let Some(plugin) = plugin {
        plugin.shutdown().await;
    }
    let Findings { rows, failed, .. } = findings;
    if output.json {
        output.document(&json!({ "ok": !failed, "checks": rows }));
    }
    Ok(if failed { Exit::Refused } else { Exit::Ok })
}

fn data_folder(place: &Place) -> Result<((), String), String> {
    let folder = place.data.display();
    if let Some(warning) = prepare_data_folder(&place.data).map_err(|e| format!("{e}; name another with --data"))? {
        return Err(warning);
    }
    let probe = place.data.join(format!("doctor-{}.tmp", std::process::id()));
    std::fs::write(&probe, b"ok")
        .and_then(|()| std::fs::remove_file(&probe))
        .map_err(|e| format!("{folder} cannot be written: {e}; change its owner, or name another with --data"))?;
    Ok(((), format!("{folder} can be written")))
}

fn configuration(place: &Place) -> Result<(Config, String), String> {
    let mut config = place.config().map_err(|fail| fail.message)?;
    let base = config.file.as_deref().and_then(|f| f.parent()).unwrap_or(&place.data).to_owned();
    config.agents.resolve_paths(&base);
    config.agents.validate().map_err(|e| e.to_string())?;
    let found = match &config.file {
        Some(file) => format!("{} with {} agents", file.display(), config.agents.agents.len()),
        None => return Err(crate::config::NO_AGENTS_HINT.to_owned()),
    };
    Ok((config, found))
}

/// The database as it was found.
enum Found {
    /// A server has it open.
    Served,
    /// The users in it.
    Users(Vec<String>),
    Unusable,
}

async fn database(place: &Place) -> Result<(Found, String), String> {
    let db = match Database::open(&place.data.join(DATABASE_NAME)) {
        Ok(db) => db,
        Err(error) => {
            return match error.downcast_ref::<InUse>() {
                Some(in_use) => Ok((Found::Served, in_use.to_string())),
                None => Err(format!("{error:#}")),
            };
        }
    };
    let clock = Arc::new(SystemClock);
    let users = match SqliteTables::open(db.clone(), clock.clone()).await {
        Ok(tables) => Users::new(tables, clock).ids().map_err(|e| e.to_string()),
        Err(error) => Err(format!("{error:#}")),
    };
    db.close();
    Ok((Found::Users(users?), "can be opened".into()))
}

/// Reads the whole database file, whether a server has it open or not.
async fn deep(place: &Place) -> Result<((), String), String> {
    let file = place.data.join(DATABASE_NAME);
    let checked = tokio::task::spawn_blocking(move || check_file(&file)).await.map_err(|e| e.to_string())?;
    let faults = checked.map_err(|e| format!("{e:#}; restore a backup"))?;
    match faults.first() {
        None => Ok(((), "all pages and indexes are sound".into())),
        Some(first) => Err(format!(
            "{} faults, the first: {first}; stop the server, keep a copy of the file, and restore a backup",
            faults.len()
        )),
    }
}

fn port(config: &Config) -> Result<((), String), String> {
    let address = config.server.bind;
    TcpListener::bind(address).map(|_| ((), format!("{address} is free"))).map_err(|e| {
        format!("{address} cannot be listened at: {e}; stop what uses it, or set [server] bind to another port")
    })
}

/// The server that holds the database must answer.
async fn server(place: &Place) -> Result<((), String), String> {
    let client = Client::open(place).map_err(|fail| fail.message)?;
    client.get("/api/me").await.map_err(|fail| fail.message)?;
    Ok(((), format!("the server {} answers", client.name())))
}

/// Loads the component as the server does, with empty records.
async fn component(file: Option<PathBuf>, config: Option<&Config>) -> Result<(Plugin, String), String> {
    let parts = Parts {
        store: Arc::new(MemoryStore::new()),
        signals: Arc::new(Signals::default()),
        settings: config.map_or_else(|| "{}".to_owned(), app::settings),
        clock: Arc::new(SystemClock),
    };
    let options = config.map(|config| config.engine.options(None)).unwrap_or_default();
    let plugin = app::load(file, parts, options).map_err(|e| e.to_string())?;
    let info = plugin.info().await.map_err(|e| e.to_string())?;
    plugin.open().await.map_err(|e| format!("it does not open: {e}; look at [team] in the configuration"))?;
    let bounds = info.limits.as_object().map_or(0, |limits| limits.len());
    if bounds == 0 {
        return Err("it reports no limits; use the component of this release".into());
    }
    let found =
        format!("{} {}, contract {} (host: {CONTRACT}), {bounds} limits", info.name, info.version, info.contract);
    Ok((plugin, found))
}

/// Every tool and user that an agent names must exist.
fn check_agent(config: &Config, index: usize, known: Option<&Known<'_>>) -> Result<((), String), String> {
    let Some(known) = known else { return Err("its tools cannot be checked without the component".into()) };
    config.agents.check_agent(index, known).map_err(|error| config.agents_error(error).to_string())?;
    let agent = &config.agents.agents[index];
    let usable = BUILTIN_TOOLS.iter().copied().chain(known.tools.iter().map(String::as_str));
    let count = usable.filter(|tool| agent.allows_tool(tool)).count();
    let mut found = format!("{count} tools, model {}", agent.model);
    if !known.tools.iter().any(|tool| agent.allows_tool(tool)) {
        found.push_str(&format!("; it cannot ask its team mates: add \"{EXTENSIONS}\" to its tools"));
    }
    Ok(((), found))
}
