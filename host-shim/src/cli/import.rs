//! `import`: takes over the teams of an earlier plugin's database file.
//!
//! The rows are read here and handed to the component as they are: what they
//! mean, and what a dry run would do, is the component's to say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use super::Place;
use super::client::Client;
use super::fail::{Exit, Fail};
use super::offline::open_database;
use super::output::{Output, Tone, clean};
use crate::app;
use crate::config::Config;
use crate::contract::{CallError, Caller};
use crate::engine::{Parts, Plugin, Signals, SystemClock};
use crate::local::ServerFile;
use crate::storage::SqliteStore;
use crate::storage::database::Database;

/// The component's action for one row.
const ACTION: &str = "import_team";

#[derive(Debug, Args)]
#[command(
    after_help = "Each row is imported by itself: damaged ones are reported, the others taken. A second import of the\nsame file changes nothing. With a running server only the rows of its token's user are taken over;\nstop the server to take over all rows, each under its owner.\n\nExamples:\n  agent-teams import teams.sqlite --dry-run\n  agent-teams import teams.sqlite --owner 7f3a=local"
)]
pub struct Import {
    /// The earlier plugin's SQLite file. It is only read.
    file: PathBuf,
    /// The user here who owns what OLD owned there. May be repeated.
    #[arg(long = "owner", value_name = "OLD=NEW", value_parser = owner_pair)]
    owners: Vec<(String, String)>,
    /// Say what would happen, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Another component than the one that is built in.
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
}

fn owner_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok((old.into(), new.into())),
        _ => Err("give the old owner and the user here, as OLD=NEW".into()),
    }
}

/// One row of the file, or why it cannot be read.
struct Row {
    id: String,
    owner: String,
    document: Result<Value, String>,
}

/// Where the rows go.
enum Target {
    /// A running server, as the user of the token.
    Server { client: Client, user: String },
    /// The data folder's database, held by this process alone.
    Offline { plugin: Plugin, db: Database },
}

pub async fn run(place: &Place, args: Import, output: &Output) -> Result<Exit, Fail> {
    let file = args.file.clone();
    let rows = tokio::task::spawn_blocking(move || read_rows(&file))
        .await
        .map_err(|e| Fail::open("import_file", e.to_string()))??;
    let owners: BTreeMap<String, String> = args.owners.iter().cloned().collect();
    let target = Target::open(place, args.component).await?;
    let bar = output.progress("importing");
    let mut reports = Vec::with_capacity(rows.len());
    let count = rows.len();
    for (n, row) in rows.into_iter().enumerate() {
        bar.set_message(clean(&format!("importing: row {} of {count}", n + 1)));
        let owner = owners.get(&row.owner).cloned().unwrap_or_else(|| row.owner.clone());
        let report = match row.document {
            Ok(document) => target.import(&owner, &row.owner, document, args.dry_run).await,
            Err(why) => json!({ "outcome": "damaged", "error": { "code": "damaged_row", "message": why } }),
        };
        reports.push(labelled(report, &row.id, &row.owner, &owner));
    }
    bar.finish_and_clear();
    target.close().await;
    let failed = reports.iter().filter(|r| !taken(r)).count();
    output.answer(&json!({ "rows": reports, "failed": failed, "dry_run": args.dry_run }), || {
        if reports.is_empty() {
            return "The file has no teams.".into();
        }
        let lines = reports.iter().map(|report| line(output, report)).collect::<Vec<_>>();
        lines.join("\n")
    });
    Ok(if failed == 0 { Exit::Ok } else { Exit::Refused })
}

/// Reads all rows; one that cannot be read does not stop the others.
fn read_rows(file: &Path) -> Result<Vec<Row>, Fail> {
    let refuse = |why: String| Fail { field: Some("file".into()), ..Fail::refused("import_file", why) };
    let name = file.display();
    if !file.is_file() {
        return Err(refuse(format!("there is no file {name}")));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags).map_err(|e| refuse(format!("{name} cannot be opened: {e}")))?;
    let mut query = db
        .prepare("SELECT id, owner, data FROM teams ORDER BY rowid")
        .map_err(|e| refuse(format!("{name} is not a database of the earlier plugin: {e}")))?;
    let mut found = query.query([]).map_err(|e| refuse(format!("{name} cannot be read: {e}")))?;
    let mut rows = Vec::new();
    loop {
        match found.next() {
            Ok(Some(row)) => rows.push(read_row(row)),
            Ok(None) => return Ok(rows),
            // The rest of the file is out of reach; what came before is not.
            Err(error) => {
                let document = Err(format!("the file cannot be read any further: {error}"));
                rows.push(Row { id: String::new(), owner: String::new(), document });
                return Ok(rows);
            }
        }
    }
}

fn read_row(row: &rusqlite::Row) -> Row {
    let text = |column: usize| -> Result<String, String> {
        let value = row.get_ref(column).map_err(|e| e.to_string())?;
        value.as_str().map(str::to_owned).map_err(|_| format!("column {} is not text", column + 1))
    };
    let document =
        text(2).and_then(|data| serde_json::from_str::<Value>(&data).map_err(|e| format!("its data is not JSON: {e}")));
    let owner = text(1);
    let document = match &owner {
        Ok(_) => document,
        Err(why) => Err(why.clone()),
    };
    let (id, owner) = (text(0).unwrap_or_default(), owner.unwrap_or_default());
    let document = document.and_then(|document| match document.get("id").and_then(Value::as_str) {
        Some(own) if own != id => Err(format!("its data is that of another team, {own}")),
        _ => Ok(document),
    });
    Row { id, owner, document }
}

impl Target {
    /// The server, if one was named or runs on the data folder; else the
    /// database itself.
    async fn open(place: &Place, component: Option<PathBuf>) -> Result<Self, Fail> {
        if place.server.is_some() || ServerFile::read(&place.data).is_some() {
            let client = Client::open(place)?;
            match client.get("/api/me").await {
                Ok(me) => {
                    let user = me["user"].as_str().unwrap_or_default().to_owned();
                    return Ok(Self::Server { client, user });
                }
                // A killed server leaves its file behind.
                Err(fail) if fail.exit == Exit::Unreachable && place.server.is_none() => {}
                Err(fail) => return Err(fail),
            }
        }
        let config = place.config()?;
        let db = open_database(place)?;
        match load(&config, &place.data, component, db.clone()).await {
            Ok(plugin) => Ok(Self::Offline { plugin, db }),
            Err(fail) => {
                db.close();
                Err(fail)
            }
        }
    }

    /// Hands one row over. The report is the component's, or its refusal.
    async fn import(&self, owner: &str, old: &str, document: Value, dry_run: bool) -> Value {
        let payload = json!({ "team": document, "dry_run": dry_run });
        match self {
            Self::Server { user, .. } if user != owner => json!({
                "outcome": "skipped",
                "error": { "code": "other_owner", "message": format!(
                    "it belongs to {old}; this server's token is {user}'s. Map it with --owner {old}={user}, or stop the server"
                ) },
            }),
            Self::Server { client, .. } => match client.write(ACTION, payload).await {
                Ok(report) => report,
                Err(fail) => json!({
                    "outcome": "refused",
                    "error": { "code": fail.code, "message": fail.message, "field": fail.field },
                }),
            },
            Self::Offline { plugin, .. } => {
                let caller = Caller { owner: owner.to_owned(), ..Caller::default() };
                match plugin.call_action(caller, None, ACTION, &payload.to_string()).await {
                    Ok(report) => serde_json::from_str(&report).unwrap_or_else(|_| json!({ "outcome": "imported" })),
                    Err(error) => refused(&error),
                }
            }
        }
    }

    async fn close(self) {
        if let Self::Offline { plugin, db } = self {
            plugin.shutdown().await;
            drop(plugin);
            let _ = tokio::task::spawn_blocking(move || db.close()).await;
        }
    }
}

async fn load(config: &Config, data: &Path, component: Option<PathBuf>, db: Database) -> Result<Plugin, Fail> {
    let store = SqliteStore::new(db).map_err(|e| Fail::open("database", format!("{e:#}")))?;
    let parts = Parts {
        store: Arc::new(store),
        signals: Arc::new(Signals::default()),
        settings: app::settings(config),
        clock: Arc::new(SystemClock),
    };
    let plugin = app::load(component, parts, config.engine.options(Some(data.join(app::CACHE_FOLDER))))
        .map_err(|e| Fail::open(e.code(), e.to_string()))?;
    plugin.open().await.map_err(|e| Fail::open("component_open", e.to_string()))?;
    Ok(plugin)
}

fn refused(error: &CallError) -> Value {
    match error {
        CallError::Refused(refusal) => json!({
            "outcome": "refused",
            "error": { "code": refusal.code, "message": refusal.message, "field": refusal.field },
        }),
        other => json!({ "outcome": "refused", "error": { "code": "call_failed", "message": other.to_string() } }),
    }
}

/// The report with the row that it is about.
fn labelled(mut report: Value, id: &str, old: &str, owner: &str) -> Value {
    report["row"] = json!(id);
    report["old_owner"] = json!(old);
    report["owner"] = json!(owner);
    report
}

fn taken(report: &Value) -> bool {
    matches!(report["outcome"].as_str(), Some("imported" | "unchanged" | "would_import"))
}

/// One line a row, and one below for each thing to know.
fn line(output: &Output, report: &Value) -> String {
    let outcome = report["outcome"].as_str().unwrap_or("?");
    let tone = match outcome {
        "imported" | "would_import" => Tone::Good,
        "unchanged" => Tone::Faint,
        "skipped" => Tone::Attention,
        _ => Tone::Bad,
    };
    let text = |name: &str| clean(report[name].as_str().unwrap_or("-"));
    let mut line = format!("{}  {}  {}", output.tone(tone, &format!("{outcome:<12}")), text("row"), text("owner"));
    if taken(report) {
        let n = |name: &str| report[name].as_u64().unwrap_or(0);
        line.push_str(&format!(
            "  \"{}\": {} requests, {} receipts, {} unfinished, {} messages",
            text("name"),
            n("requests"),
            n("receipts"),
            n("unfinished"),
            n("messages")
        ));
    }
    if let Some(message) = report["error"]["message"].as_str() {
        line.push_str(&format!("  {}", clean(message)));
    }
    for warning in report["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        line.push_str(&format!("\n              {}", clean(warning)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_given_as_a_pair() {
        assert_eq!(owner_pair("a=b=c"), Ok(("a".into(), "b=c".into())));
        for bad in ["a", "=b", "a=", ""] {
            assert!(owner_pair(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rows_that_cannot_be_read_do_not_stop_the_others() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("teams.sqlite");
        let db = Connection::open(&file).expect("opens");
        db.execute_batch(
            "CREATE TABLE teams (id TEXT PRIMARY KEY, owner TEXT NOT NULL, data TEXT NOT NULL);
             INSERT INTO teams VALUES ('a', 'ann', '{\"id\": \"a\"}');
             INSERT INTO teams VALUES ('b', 'ann', 'not json');
             INSERT INTO teams VALUES ('c', 'ann', x'00ff');
             INSERT INTO teams VALUES ('d', 'ann', '{\"id\": \"a\"}');
             INSERT INTO teams VALUES ('e', 'bob', '{\"id\": \"e\"}');",
        )
        .expect("writes");
        drop(db);
        let before = std::fs::read(&file).expect("reads");
        let rows = read_rows(&file).expect("reads");
        let good: Vec<&str> = rows.iter().filter(|r| r.document.is_ok()).map(|r| r.id.as_str()).collect();
        assert_eq!(good, ["a", "e"]);
        assert_eq!(rows.len(), 5);
        assert_eq!(std::fs::read(&file).expect("reads"), before, "the file is only read");
    }

    #[test]
    fn another_file_is_refused_by_name() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("other");
        assert_eq!(read_rows(&file).err().map(|f| f.code), Some("import_file".into()));
        std::fs::write(&file, "text").expect("writes");
        assert_eq!(read_rows(&file).err().and_then(|f| f.field), Some("file".into()));
    }
}
