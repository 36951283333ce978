//! The one database file: the component's records and the host's own tables,
//! so that a backup is one consistent copy.
//!
//! SQLite in WAL mode with `synchronous=FULL`: what was answered as written
//! survives a power cut. One thread writes; writes that wait together share one
//! commit and its one fsync. Readers have connections of their own and never
//! wait for the writer, nor it for them.

mod backup;
mod check;
mod lock;
mod readers;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use rusqlite::{Connection, ErrorCode, OpenFlags};

pub use backup::backup_file;
pub use check::check_file;
pub use lock::InUse;
pub(super) use readers::{ReadError, Snapshot};
pub use schema::TooNew;

use crate::life::{Life, life};
pub use crate::storage::failure::{LastWrites, WriteError, outcome_unknown};
use crate::storage::recent::Recent;
use readers::Readers;
use writer::{Closure, Fate, Job, Message, Writer};

/// Flags of every connection: it is used by one thread at a time, so SQLite
/// needs no lock of its own.
const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
/// How long SQLite waits for a lock of another process (a backup tool, say).
const BUSY: Duration = Duration::from_secs(5);
/// Prepared statements kept by each connection.
const STATEMENTS: usize = 128;
/// Writes that may wait in the queue; one more is refused. Callers give up long
/// before so many are done, and what they gave up must not fill the memory.
const MAX_QUEUED: usize = 4096;
/// Bytes of a page, and of the head that a page gets in the log.
const PAGE: u32 = 4096;
const FRAME_HEAD: u32 = 24;

/// Whether this error says that the file itself is damaged: no repetition helps.
pub fn damaged(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// What is told of a damaged file, in place of SQLite's words.
pub const DAMAGED: &str =
    "the database file is damaged; stop the server, run `agent-teams doctor --deep`, and restore a backup";

/// Whether this error of a read or a write says that the database cannot do it
/// now, so that the same may succeed later. Any other says something about the
/// data or about the caller's own function.
pub fn temporary(error: &anyhow::Error) -> bool {
    let by_sqlite = |error: &rusqlite::Error| {
        matches!(
            error.sqlite_error_code(),
            Some(
                ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::OutOfMemory
                    | ErrorCode::ReadOnly
                    | ErrorCode::OperationInterrupted
                    | ErrorCode::SystemIoFailure
                    | ErrorCode::DiskFull
                    | ErrorCode::CannotOpen
                    | ErrorCode::FileLockingProtocolFailed
            )
        )
    };
    if error.is::<WriteError>() {
        return true;
    }
    match error.downcast_ref::<ReadError>() {
        Some(ReadError::Sqlite(error)) => by_sqlite(error),
        Some(ReadError::Closed | ReadError::Busy | ReadError::InDoubt) => true,
        None => error.downcast_ref().is_some_and(by_sqlite),
    }
}

/// Counters since the file was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Writes that became durable, also those that changed nothing.
    pub writes: u64,
    /// Commits that changed the file: each is one fsync of the log.
    pub commits: u64,
    /// Pages written to the log.
    pub wal_pages: u64,
    /// Bytes written to the log.
    pub wal_bytes: u64,
    /// Checkpoints: each is one fsync of the log and one of the file.
    pub checkpoints: u64,
    /// Times that the store itself refused to write: a full disk, a lock of
    /// another process, a failed sync.
    pub failures: u64,
}

/// What the writer, the readers and the handle share.
#[derive(Default)]
struct Shared {
    recent: Mutex<Recent>,
    /// The newest commit that every new snapshot sees.
    published: AtomicU64,
    doubt: AtomicBool,
    /// Writes that wait in the queue.
    queued: AtomicUsize,
    writes: AtomicU64,
    commits: AtomicU64,
    pages: AtomicU64,
    checkpoints: AtomicU64,
    failures: AtomicU64,
    last: Mutex<LastWrites>,
    /// Whether the store refused the last write that would have changed the file.
    failing: AtomicBool,
    /// What the next commits shall meet.
    #[cfg(test)]
    faults: Mutex<std::collections::VecDeque<Fault>>,
}

/// An error of a commit that did not happen, or that did.
#[cfg(test)]
struct Fault {
    error: rusqlite::Error,
    committed: bool,
}

impl Shared {
    fn in_doubt(&self) -> bool {
        self.doubt.load(Ordering::SeqCst)
    }

    fn set_doubt(&self, doubt: bool) {
        self.doubt.store(doubt, Ordering::SeqCst);
    }

    /// The store itself refused a write.
    fn failed(&self) {
        self.failing.store(true, Ordering::SeqCst);
        self.last().refused = Some(Instant::now());
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// A write has changed the file.
    fn succeeded(&self) {
        self.failing.store(false, Ordering::SeqCst);
        self.last().done = Some(Instant::now());
    }

    fn last(&self) -> MutexGuard<'_, LastWrites> {
        self.last.lock().unwrap_or_else(|e| e.into_inner())
    }

    #[cfg(test)]
    fn fault(&self) -> Option<Fault> {
        self.faults.lock().unwrap_or_else(|e| e.into_inner()).pop_front()
    }
}

/// A handle on the open database. Cheap to clone; when the last one is
/// dropped, waiting writes are finished and the file is closed.
#[derive(Clone)]
pub struct Database {
    handle: Arc<Handle>,
}

struct Handle {
    path: PathBuf,
    queue: Sender<Message>,
    readers: Arc<Readers>,
    shared: Arc<Shared>,
    writer: Life,
    open: Mutex<Option<Open>>,
}

/// What [`Database::close`] takes away, in this order.
struct Open {
    writer: JoinHandle<()>,
    _lock: lock::ProcessLock,
}

impl Database {
    /// Opens (or makes) the file, takes the process lock, brings the host's
    /// own format up to date. A missing folder is made with mode 0700; the
    /// file gets mode 0600.
    ///
    /// # Errors
    /// [`InUse`] when it is open already, here or in another process; [`TooNew`]
    /// when a newer program wrote it; a database of another program; whatever
    /// the system says.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        Self::open_file(path).with_context(|| format!("the database {} cannot be opened", path.display()))
    }

    fn open_file(path: &Path) -> anyhow::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            lock::private_folder(folder)?;
        }
        // One file has one lock, whatever path leads to it. An existing file is not
        // opened before the lock is held: closing any descriptor of it would drop
        // the locks that this process has on it elsewhere.
        if !path.try_exists()? {
            drop(lock::private().open(path)?);
        }
        let path = path.canonicalize()?;
        let lock = lock::ProcessLock::acquire(&path)?;
        lock::restrict(&path)?;

        let conn = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE | FLAGS)?;
        conn.busy_timeout(BUSY)?;
        let empty = schema::inspect(&conn)?;
        prepare(&conn)?;
        schema::migrate_format(&conn, empty)?;

        let shared = Arc::new(Shared::default());
        let readers = Arc::new(Readers::new(path.clone(), shared.clone()));
        let (queue, received) = mpsc::channel();
        let writer = Writer::new(conn, received, shared.clone())?;
        let (living, life) = life();
        let writer = std::thread::Builder::new().name("database-writer".into()).spawn(move || {
            let _living = living;
            writer.serve();
        })?;
        let open = Mutex::new(Some(Open { writer, _lock: lock }));
        Ok(Self { handle: Arc::new(Handle { path, queue, readers, shared, writer: life, open }) })
    }

    /// The file, with every link resolved.
    pub fn path(&self) -> &Path {
        &self.handle.path
    }

    /// Brings the tables of one module up to date: runs those of its `steps`
    /// that were not run before, each as one transaction. Step 1 leads to
    /// version 1 and so on; a released step is never edited. Blocks until it
    /// is durable.
    ///
    /// # Errors
    /// [`TooNew`] when more steps were run than the program knows; an error of
    /// a step, which undoes that step alone.
    pub fn migrate(&self, module: &str, steps: &[&str]) -> anyhow::Result<()> {
        let stored = self.read(|conn| Ok(schema::module_version(conn, module)?))?;
        for (number, step) in schema::missing(&format!("tables of {module}"), stored, steps)? {
            let (module, step) = (module.to_owned(), step.to_owned());
            self.write_blocking(move |conn| {
                // Looked at again on the writer: two callers may migrate.
                if schema::module_version(conn, &module)? < number {
                    schema::apply_step(conn, &module, number, &step)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Runs `f` on the writer, inside a transaction of its own that is durable
    /// when this returns; writers that wait share one fsync. An error or a
    /// panic of `f` undoes its writes alone. `f` sees what was written before
    /// it, and must not begin or end transactions (savepoints of its own are
    /// fine). Keep it short: every other write waits.
    ///
    /// If the caller goes away while it waits, the write still happens.
    ///
    /// # Errors
    /// The error of `f` as it is, or a [`WriteError`].
    pub async fn write<T, F>(&self, f: F) -> anyhow::Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> anyhow::Result<T> + Send + 'static,
    {
        self.queue(f).await
    }

    /// [`Self::write`], queued when this returns: every write that is queued
    /// later sees what this one wrote.
    pub fn queue<T, F>(&self, f: F) -> impl Future<Output = anyhow::Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> anyhow::Result<T> + Send + 'static,
    {
        let (reply, received) = tokio::sync::oneshot::channel();
        self.submit(f, move |result| drop(reply.send(result)));
        async { received.await.unwrap_or_else(|_| Err(WriteError::Unknown("the writer is gone".into()).into())) }
    }

    /// [`Self::write`] for callers outside async code: blocks the thread.
    pub fn write_blocking<T, F>(&self, f: F) -> anyhow::Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> anyhow::Result<T> + Send + 'static,
    {
        let (reply, received) = mpsc::sync_channel(1);
        self.submit(f, move |result| drop(reply.send(result)));
        received.recv().unwrap_or_else(|_| Err(WriteError::Unknown("the writer is gone".into()).into()))
    }

    /// Queues a write, or refuses it when too many wait. `reply` is called
    /// exactly once, when its fate is known; normally on the writer's thread,
    /// so it must not wait for anything.
    pub(super) fn submit<T, F, R>(&self, f: F, reply: R)
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> anyhow::Result<T> + Send + 'static,
        R: FnOnce(anyhow::Result<T>) + Send + 'static,
    {
        let job = Box::new(Closure::new(f, reply));
        let queued = &self.handle.shared.queued;
        if queued.fetch_add(1, Ordering::Relaxed) >= MAX_QUEUED {
            queued.fetch_sub(1, Ordering::Relaxed);
            return job.finish(Fate::NotWritten("too many writes are waiting".into()));
        }
        // A closed queue drops the job, and that answers it.
        let _ = self.handle.queue.send(Message::Run(job));
    }

    /// Whether the store refused the last write that would have changed the
    /// file. Before anything expensive whose outcome must be written, find out
    /// by [`Self::probe`] whether it still does.
    pub fn last_write_failed(&self) -> bool {
        self.handle.shared.failing.load(Ordering::SeqCst)
    }

    /// When writes last went well and ill.
    pub fn last_writes(&self) -> LastWrites {
        *self.handle.shared.last()
    }

    /// The life of the writer's thread, which ends when the database is closed,
    /// unless the writer itself has a fault: then nothing can be written.
    pub fn writer(&self) -> &Life {
        &self.handle.writer
    }

    /// Writes a row that means nothing: whether the store takes writes now.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub async fn probe(&self) -> anyhow::Result<()> {
        self.write(|conn| Ok(schema::touch(conn)?)).await
    }

    /// Runs `f` on a reading connection, on one snapshot that holds every
    /// write that had returned before. Writing is refused there. Blocks for as
    /// long as `f` does; other reads and writes go on.
    ///
    /// # Errors
    /// The error of `f` as it is; that the database is closed, that too many
    /// reads (256) are open, or that the outcome of a write is not yet settled.
    pub fn read<T>(&self, f: impl FnOnce(&Connection) -> anyhow::Result<T>) -> anyhow::Result<T> {
        f(&*self.snapshot()?)
    }

    /// A reading connection on one snapshot, for as long as it is kept.
    pub(super) fn snapshot(&self) -> Result<Snapshot, ReadError> {
        Snapshot::open(&self.handle.readers)
    }

    /// The number of the newest commit of records that a snapshot opened after
    /// this call surely holds.
    pub(super) fn published(&self) -> u64 {
        self.handle.shared.published.load(Ordering::SeqCst)
    }

    /// Says what [`Self::submit`]'s functions and replies need, without
    /// keeping the database open.
    pub(super) fn commits(&self) -> Commits {
        Commits { shared: self.handle.shared.clone() }
    }

    /// Copies the database to the new file `target` while it is in use: one
    /// state, as of now. See [`backup_file`]. Blocks until the copy is durable.
    pub fn backup_to(&self, target: &Path, progress: impl FnMut(u64, u64)) -> anyhow::Result<()> {
        backup_file(&self.handle.path, target, progress)
    }

    /// What was written since the file was opened.
    pub fn stats(&self) -> Stats {
        let shared = &self.handle.shared;
        let wal_pages = shared.pages.load(Ordering::Relaxed);
        Stats {
            writes: shared.writes.load(Ordering::Relaxed),
            commits: shared.commits.load(Ordering::Relaxed),
            wal_pages,
            wal_bytes: wal_pages * u64::from(PAGE + FRAME_HEAD),
            checkpoints: shared.checkpoints.load(Ordering::Relaxed),
            failures: shared.failures.load(Ordering::Relaxed),
        }
    }

    /// The next commits fail with these results of SQLite.
    #[cfg(test)]
    pub(crate) fn fail_commits(&self, codes: &[i32]) {
        codes.iter().for_each(|code| self.meet(*code, false));
    }

    /// The next commit happens, and then fails with this result of SQLite.
    #[cfg(test)]
    pub(crate) fn lose_commit(&self, code: i32) {
        self.meet(code, true);
    }

    #[cfg(test)]
    fn meet(&self, code: i32, committed: bool) {
        let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        self.handle.shared.faults.lock().unwrap_or_else(|e| e.into_inner()).push_back(Fault { error, committed });
    }

    /// Finishes the writes that wait, empties the log into the file and frees
    /// the process lock. Later reads and writes are refused; reads that are
    /// open go on to their end. Blocks; a second call does nothing.
    pub fn close(&self) {
        self.handle.close();
    }
}

/// The record of commits, for the functions that run on the writer.
#[derive(Clone)]
pub(super) struct Commits {
    shared: Arc<Shared>,
}

impl Commits {
    pub(super) fn recent(&self) -> MutexGuard<'_, Recent> {
        self.shared.recent.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Lets new snapshots count everything up to now as seen. Called when the
    /// fate of a group is known and before its callers are answered.
    ///
    /// If the group failed this is right too: what was not written is not
    /// there to be missed.
    pub(super) fn publish(&self) {
        let newest = self.recent().newest();
        self.shared.published.fetch_max(newest, Ordering::SeqCst);
    }
}

impl Handle {
    fn close(&self) {
        let open = self.open.lock().unwrap_or_else(|e| e.into_inner()).take();
        let Some(open) = open else { return };
        self.readers.close();
        let _ = self.queue.send(Message::Close);
        // The last handle may be dropped by a write, on the writer itself.
        if open.writer.thread().id() != std::thread::current().id() && open.writer.join().is_err() {
            tracing::error!("the database writer ended by a panic");
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
    }
}

/// Sets what a connection that writes needs.
fn prepare(conn: &Connection) -> anyhow::Result<()> {
    conn.pragma_update(None, "page_size", PAGE)?;
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    anyhow::ensure!(mode == "wal", "the file system does not support the write-ahead log");
    conn.pragma_update(None, "synchronous", "FULL")?;
    // On macOS a plain fsync leaves commits in the disk's cache. No effect elsewhere.
    conn.pragma_update(None, "fullfsync", true)?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.pragma_update(None, "cache_size", -16 * 1024)?;
    // A log that once grew very long is cut after the next checkpoint.
    conn.pragma_update_and_check(None, "journal_size_limit", 64 << 20, |_| Ok(()))?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(())
}
