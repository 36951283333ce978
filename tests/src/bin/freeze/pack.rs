//! Keeps what the killed program left: the data folder without what belongs to
//! a process, a record of what was true in it, and a page that lists it.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use agent_teams_host::config::{DATABASE_NAME, FILE_NAME};
use anyhow::{Context, Result, ensure};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::contents::{Contents, FrozenJob};
use super::program::Program;

/// What a later program must find true.
pub struct Record {
    pub secrets: Value,
    pub views: Value,
    pub writes: Vec<Value>,
}

impl Record {
    /// As JSON that people can compare line by line.
    fn text(&self, frozen: &Contents) -> Result<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
        let lines = |values: &[Value]| values.iter().map(Value::to_string).collect::<Vec<_>>().join(",\n");
        let promises: Vec<Value> = frozen.jobs.iter().filter_map(FrozenJob::promise).collect();
        let views = self.views.as_object().context("no views")?.iter().map(|(owner, teams)| {
            format!("{}: [\n{}\n]", json!(owner), lines(teams.as_array().map_or(&[][..], Vec::as_slice)))
        });
        let parts = [
            ("at_ms", now.to_string()),
            ("secrets", self.secrets.to_string()),
            ("promises", format!("[\n{}\n]", lines(&promises))),
            ("writes", format!("[\n{}\n]", lines(&self.writes))),
            ("views", format!("{{\n{}\n}}", views.collect::<Vec<_>>().join(",\n"))),
        ];
        let parts: Vec<String> = parts.iter().map(|(name, value)| format!("{}: {value}", json!(name))).collect();
        let text = format!("{{\n{}\n}}\n", parts.join(",\n"));
        serde_json::from_str::<Value>(&text).context("the record is not JSON")?;
        Ok(text)
    }
}

/// What of the folder matters to another process.
const KEPT: [&str; 4] = [DATABASE_NAME, FILE_NAME, "cli-token", "workspaces"];

pub fn pack(program: &Program, to: &Path, record: &Record) -> Result<()> {
    let db = Connection::open(program.data.join(DATABASE_NAME))?;
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")?;
    let checked: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    ensure!(checked == "ok", "{checked}");
    let frozen = Contents::read(&db)?;
    frozen.check()?;
    drop(db);
    for name in KEPT {
        copy(&program.data.join(name), &to.join("data").join(name))?;
    }
    fs::write(to.join("record.json"), record.text(&frozen)?)?;
    fs::write(to.join("README.md"), frozen.page()?)?;
    println!("{} jobs of {} teams", frozen.jobs.len(), frozen.teams.len());
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    fs::create_dir_all(to.parent().context("no folder")?)?;
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(())
}
