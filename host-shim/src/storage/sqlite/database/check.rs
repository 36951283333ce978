//! A look at every page and index of the database file.

use std::path::Path;

use anyhow::Context;
use rusqlite::{Connection, OpenFlags};

use super::schema;

/// Faults that are told at most.
const FAULTS: u32 = 20;

/// What is wrong with the database file at `path`, of this or of another
/// process: nothing, or up to twenty lines. It reads the whole file on one
/// snapshot, while others write, and changes nothing. Blocks until it is done.
///
/// # Errors
/// The file is missing, is not ours, or cannot be read at all.
pub fn check_file(path: &Path) -> anyhow::Result<Vec<String>> {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | super::FLAGS)
        .with_context(|| format!("the database {} cannot be opened", path.display()))?;
    conn.busy_timeout(super::BUSY)?;
    conn.pragma_update(None, "query_only", true)?;
    anyhow::ensure!(!schema::inspect(&conn)?, "the database {} is empty", path.display());
    let snapshot = conn.unchecked_transaction()?;
    let mut faults = Vec::new();
    let mut pages = snapshot.prepare(&format!("PRAGMA integrity_check({FAULTS})"))?;
    for line in pages.query_map([], |row| row.get::<_, String>(0))? {
        faults.push(line?);
    }
    faults.retain(|line| line != "ok");
    let mut references = snapshot.prepare("PRAGMA foreign_key_check")?;
    for table in references.query_map([], |row| row.get::<_, String>(0))?.take(FAULTS as usize) {
        faults.push(format!("a row of {} refers to one that does not exist", table?));
    }
    Ok(faults)
}
