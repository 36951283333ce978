//! The versions of what is stored. The host's own format and each module's
//! tables have a number; steps that are missing are applied, a newer number
//! is refused.

use anyhow::Context;
use rusqlite::{Connection, OptionalExtension, params};

/// Marks the file as ours ("AGTE"), so that a foreign one is never touched.
const APPLICATION_ID: i64 = 0x4147_5445;

/// The steps of the host's format, in order; the number of a format is how
/// many of them were applied. Released steps are never edited.
const FORMAT: &[&str] = &["CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"];

/// Where `meta` keeps the host's format version.
const FORMAT_KEY: &str = "format";

/// The file was written by a newer program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored {what} has version {stored}, and this program knows up to version {known}: use a newer program")]
pub struct TooNew {
    /// Whose format it is.
    pub what: String,
    /// The version in the file.
    pub stored: u32,
    /// The newest version that this program knows.
    pub known: u32,
}

/// Refuses a database that is not ours; says whether it is empty.
pub(super) fn inspect(conn: &Connection) -> anyhow::Result<bool> {
    let id: i64 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let objects: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let empty = objects == 0 && id == 0;
    anyhow::ensure!(empty || id == APPLICATION_ID, "the file is a database of another program");
    Ok(empty)
}

/// Brings the host's own format up to date. The caller has no transaction.
pub(super) fn migrate_format(conn: &Connection, empty: bool) -> anyhow::Result<()> {
    let stored = if empty { 0 } else { version(conn, FORMAT_KEY)? };
    for (number, step) in missing("format", stored, FORMAT)? {
        let tx = conn.unchecked_transaction()?;
        conn.execute_batch(step)?;
        conn.pragma_update(None, "application_id", APPLICATION_ID)?;
        set_version(conn, FORMAT_KEY, number)?;
        tx.commit().with_context(|| format!("format {number} was not written"))?;
    }
    Ok(())
}

/// The number of steps of a module that were applied.
pub(super) fn module_version(conn: &Connection, module: &str) -> rusqlite::Result<u32> {
    version(conn, &module_key(module))
}

/// Applies one step of a module; the caller has the transaction.
pub(super) fn apply_step(conn: &Connection, module: &str, number: u32, step: &str) -> anyhow::Result<()> {
    conn.execute_batch(step).with_context(|| format!("step {number} of the tables of {module}"))?;
    Ok(set_version(conn, &module_key(module), number)?)
}

/// The steps after `stored`, each with the version that it leads to.
pub(super) fn missing<'a>(
    what: &str,
    stored: u32,
    steps: &[&'a str],
) -> Result<impl Iterator<Item = (u32, &'a str)> + use<'a>, TooNew> {
    let known = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    if stored > known {
        return Err(TooNew { what: what.to_owned(), stored, known });
    }
    let rest: Vec<_> = (1..).zip(steps.iter().copied()).filter(|(number, _)| *number > stored).collect();
    Ok(rest.into_iter())
}

/// Overwrites a row that means nothing, so that a commit really writes.
pub(super) fn touch(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute("INSERT INTO meta VALUES ('touched', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1", [])?;
    Ok(())
}

fn module_key(module: &str) -> String {
    format!("module.{module}")
}

fn version(conn: &Connection, key: &str) -> rusqlite::Result<u32> {
    let stored = conn.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0)).optional()?;
    Ok(stored.unwrap_or(0))
}

fn set_version(conn: &Connection, key: &str, number: u32) -> rusqlite::Result<()> {
    conn.execute(
        "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        params![key, number],
    )?;
    Ok(())
}
