//! Connections that only read, each on one snapshot at a time.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, OpenFlags};

use super::Shared;

/// Connections kept open for the next reader.
const IDLE: usize = 16;
/// Snapshots open at once; one more is refused.
const OPEN: usize = 256;

/// Why a snapshot could not be opened.
#[derive(Debug, thiserror::Error)]
pub(in crate::storage) enum ReadError {
    #[error("the database is closed")]
    Closed,
    #[error("too many reads are open")]
    Busy,
    #[error("the outcome of a write is still unknown")]
    InDoubt,
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

pub(super) struct Readers {
    path: PathBuf,
    shared: Arc<Shared>,
    idle: Mutex<Vec<Connection>>,
    open: AtomicUsize,
    closed: AtomicBool,
}

impl Readers {
    pub(super) fn new(path: PathBuf, shared: Arc<Shared>) -> Self {
        Self { path, shared, idle: Mutex::default(), open: AtomicUsize::new(0), closed: AtomicBool::new(false) }
    }

    /// Refuses later snapshots and closes the connections that are not in use.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(|e| e.into_inner()));
        drop(idle);
    }

    fn connection(&self) -> Result<Connection, ReadError> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(ReadError::Closed);
        }
        if self.shared.in_doubt() {
            return Err(ReadError::InDoubt);
        }
        if let Some(idle) = self.idle.lock().unwrap_or_else(|e| e.into_inner()).pop() {
            return Ok(idle);
        }
        // Not opened as read-only: SQLite must be able to make the shared
        // memory of the log. `query_only` refuses writes just as well.
        let conn = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE | super::FLAGS)?;
        conn.busy_timeout(super::BUSY)?;
        conn.pragma_update(None, "cache_size", -1024)?;
        conn.pragma_update(None, "query_only", true)?;
        conn.set_prepared_statement_cache_capacity(super::STATEMENTS);
        Ok(conn)
    }
}

/// A connection inside a read transaction: whatever it reads is one state.
/// Dropping it ends the transaction and gives the connection back.
pub(in crate::storage) struct Snapshot {
    conn: Option<Connection>,
    readers: Arc<Readers>,
}

impl Snapshot {
    /// Opens a snapshot of everything that was committed up to now.
    pub(super) fn open(readers: &Arc<Readers>) -> Result<Self, ReadError> {
        if readers.open.fetch_add(1, Ordering::Relaxed) >= OPEN {
            readers.open.fetch_sub(1, Ordering::Relaxed);
            return Err(ReadError::Busy);
        }
        let mut snapshot = Self { conn: None, readers: readers.clone() };
        let conn = readers.connection()?;
        // BEGIN alone takes no snapshot: SQLite does that at the first read.
        conn.prepare_cached("BEGIN")?.execute([])?;
        let began = conn.prepare_cached("SELECT 1 FROM meta LIMIT 1").and_then(|mut s| s.exists([]));
        snapshot.conn = Some(conn);
        began?;
        Ok(snapshot)
    }
}

impl Deref for Snapshot {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match &self.conn {
            Some(conn) => conn,
            None => unreachable!("a snapshot has its connection until it is dropped"),
        }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.readers.open.fetch_sub(1, Ordering::Relaxed);
        let Some(conn) = self.conn.take() else { return };
        let ended = conn.prepare_cached("ROLLBACK").and_then(|mut s| s.execute([]));
        if ended.is_err() || !conn.is_autocommit() {
            return;
        }
        let mut idle = self.readers.idle.lock().unwrap_or_else(|e| e.into_inner());
        if idle.len() < IDLE && !self.readers.closed.load(Ordering::SeqCst) {
            idle.push(conn);
        }
    }
}
