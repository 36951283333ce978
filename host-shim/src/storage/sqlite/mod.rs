//! Everything in one SQLite file: the component's records (here) and the host's
//! own tables.

mod agents;
pub mod database;
mod tables;
mod users;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Rows};

use self::database::{Commits, Database, ReadError, Snapshot, WriteError};
use super::transaction::{Backend, Buffered, Change, Verdict};
use super::{CommitError, Limits, Store, StoreError, Transaction};

pub use tables::SqliteTables;

/// Text compares by its UTF-8 bytes (the default, binary collation). Without
/// rowid, so that a record is found by one search and written in one place.
const STEPS: &[&str] = &["CREATE TABLE kv (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"];

const GET: &str = "SELECT value FROM kv WHERE key = ?1";
const UP: &str = "SELECT key, value FROM kv WHERE key >= ?1 AND key < ?2 ORDER BY key";
const DOWN: &str = "SELECT key, value FROM kv WHERE key >= ?1 AND key < ?2 ORDER BY key DESC";
const PUT: &str = "INSERT INTO kv (key, value) VALUES (?1, ?2) \
    ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE value <> excluded.value";
const DELETE: &str = "DELETE FROM kv WHERE key = ?1";

/// The component's records in the database file. Cheap to clone.
///
/// The table `kv` is only written through here: the check for conflicts knows
/// of no other writer.
#[derive(Clone)]
pub struct SqliteStore {
    db: Database,
    limits: Limits,
}

impl SqliteStore {
    /// Makes or migrates the table. Blocks until that is durable.
    ///
    /// # Errors
    /// As [`Database::migrate`].
    pub fn new(db: Database) -> anyhow::Result<Self> {
        Self::with_limits(db, Limits::default())
    }

    /// [`Self::new`] with other bounds.
    pub fn with_limits(db: Database, limits: Limits) -> anyhow::Result<Self> {
        db.migrate("records", STEPS)?;
        Ok(Self { db, limits })
    }

    /// The database beneath.
    pub fn database(&self) -> &Database {
        &self.db
    }
}

impl Store for SqliteStore {
    fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        // The number first: the snapshot then holds at least the commits up to
        // it. Should one more become visible in between, the check may call
        // that a conflict, and the caller begins again.
        let version = self.db.published();
        let snapshot = self.db.snapshot().map_err(|e| match e {
            ReadError::Sqlite(e) => unavailable(e),
            other => StoreError::Unavailable(other.to_string()),
        })?;
        let open = Open { db: self.db.clone(), snapshot, version };
        Ok(Box::new(Buffered::new(open, self.limits)))
    }
}

/// An open snapshot of the table.
struct Open {
    db: Database,
    snapshot: Snapshot,
    version: u64,
}

impl Backend for Open {
    fn get(&mut self, key: &str) -> Result<Option<String>, StoreError> {
        stored(&self.snapshot, key).map_err(unavailable)
    }

    fn scan(
        &mut self,
        start: &str,
        end: &str,
        reverse: bool,
        visit: &mut dyn FnMut(&str, &str) -> bool,
    ) -> Result<(), StoreError> {
        let sql = if reverse { DOWN } else { UP };
        let mut statement = self.snapshot.prepare_cached(sql).map_err(unavailable)?;
        let rows = statement.query([start, end]).map_err(unavailable)?;
        each(rows, visit).map_err(unavailable)
    }

    async fn commit(self, change: Change) -> Result<(), CommitError> {
        let Self { db, snapshot, .. } = self;
        drop(snapshot);
        let commits = db.commits();
        let publish = commits.clone();
        let (reply, received) = tokio::sync::oneshot::channel();
        db.submit(
            move |conn| apply(conn, &commits, change),
            move |result| {
                publish.publish();
                let _ = reply.send(result);
            },
        );
        match received.await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(CommitError::Conflict),
            Ok(Err(error)) => Err(match error.downcast::<WriteError>() {
                Ok(WriteError::Unknown(why)) => CommitError::Unknown(why),
                Ok(WriteError::NotWritten(why)) => CommitError::Unavailable(why),
                Err(error) => CommitError::Unavailable(error.to_string()),
            }),
            Err(_) => Err(CommitError::Unknown("the writer is gone".into())),
        }
    }

    fn version(&self) -> u64 {
        self.version
    }
}

/// Runs on the writer, in the order of all commits: checks, then writes what
/// differs. False is a conflict.
fn apply(conn: &Connection, commits: &Commits, change: Change) -> anyhow::Result<bool> {
    match change.decide(&commits.recent(), |key| stored(conn, key))? {
        Verdict::Conflict => return Ok(false),
        Verdict::Nothing => return Ok(true),
        Verdict::Apply => {}
    }
    let mut put = conn.prepare_cached(PUT)?;
    let mut delete = conn.prepare_cached(DELETE)?;
    let mut changed = Vec::with_capacity(change.writes.len());
    for (key, value) in change.writes {
        let rows = match value {
            Some(value) => put.execute([&key, &value])?,
            None => delete.execute([&key])?,
        };
        if rows > 0 {
            changed.push(key);
        }
    }
    if !changed.is_empty() {
        commits.recent().push(changed);
    }
    Ok(true)
}

fn stored(conn: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    conn.prepare_cached(GET)?.query_row([key], |row| row.get(0)).optional()
}

fn each(mut rows: Rows<'_>, visit: &mut dyn FnMut(&str, &str) -> bool) -> rusqlite::Result<()> {
    while let Some(row) = rows.next()? {
        if !visit(row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?) {
            break;
        }
    }
    Ok(())
}

#[allow(clippy::needless_pass_by_value)]
/// Callers read what is said here, so it names no file.
fn unavailable(error: rusqlite::Error) -> StoreError {
    tracing::warn!(%error, "a read of the database failed");
    let why = match error.sqlite_error_code() {
        _ if database::damaged(&error) => database::DAMAGED,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "another program holds the database",
        Some(ErrorCode::CannotOpen) => "the database cannot be opened now",
        Some(ErrorCode::SystemIoFailure) => "the disk cannot be read",
        _ => "the database cannot answer",
    };
    StoreError::Unavailable(why.into())
}
