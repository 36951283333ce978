//! The one writer: a thread that runs queued writes in the order they came,
//! each in a savepoint of its own, and makes many of them durable with one
//! commit and so with one fsync.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::{Shared, WriteError, schema, temporary};

/// Writes that share one commit at most.
const GROUP: usize = 256;
/// Writes in a group from which others are waited for: so many callers at once
/// have more on the way, and one sync for all of them costs less than many.
const GATHER_FROM: usize = 6;
/// How long the next one is waited for then, and all of them together.
const GATHER_NEXT: Duration = Duration::from_micros(50);
const GATHER_ALL: Duration = Duration::from_micros(400);
/// Pages written since the last checkpoint after which one is made as soon as
/// no caller waits.
const CHECKPOINT_IDLE: u64 = 1_000;
/// The same, also while others wait.
const CHECKPOINT_BUSY: u64 = 8_000;
/// How often a store whose last outcome is unknown is tried again.
const DOUBT_PAUSE: Duration = Duration::from_secs(1);

pub(super) enum Message {
    Run(Box<dyn Job>),
    Close,
}

/// What became of a group of writes.
#[derive(Clone, Debug)]
pub(super) enum Fate {
    Durable,
    NotWritten(Arc<str>),
    Unknown(Arc<str>),
}

/// What a write says of itself when it has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    Keep,
    Undo,
    /// Undo; it is the store that refused, not the write.
    Refused,
}

/// One queued write.
pub(super) trait Job: Send {
    fn run(&mut self, conn: &Connection) -> Ran;
    /// Tells its caller.
    fn finish(self: Box<Self>, fate: Fate);
}

/// A closure and the way back to its caller. The reply is called exactly once,
/// on the writer's thread, or wherever the job is dropped.
pub(super) struct Closure<T, F, R: FnOnce(anyhow::Result<T>)> {
    work: Option<F>,
    result: Option<anyhow::Result<T>>,
    reply: Option<R>,
}

impl<T, F, R: FnOnce(anyhow::Result<T>)> Closure<T, F, R> {
    pub(super) fn new(work: F, reply: R) -> Self {
        Self { work: Some(work), result: None, reply: Some(reply) }
    }

    fn answer(&mut self, result: anyhow::Result<T>) {
        if let Some(reply) = self.reply.take() {
            reply(result);
        }
    }
}

impl<T, F, R> Job for Closure<T, F, R>
where
    T: Send,
    F: FnOnce(&Connection) -> anyhow::Result<T> + Send,
    R: FnOnce(anyhow::Result<T>) + Send,
{
    fn run(&mut self, conn: &Connection) -> Ran {
        self.result = self.work.take().map(|work| work(conn));
        match &self.result {
            Some(Ok(_)) => Ran::Keep,
            Some(Err(error)) if temporary(error) => Ran::Refused,
            _ => Ran::Undo,
        }
    }

    fn finish(mut self: Box<Self>, fate: Fate) {
        let result = match (fate, self.result.take()) {
            (Fate::Durable, Some(result)) => result,
            (Fate::Durable, None) => Err(WriteError::NotWritten("the write panicked".into()).into()),
            // Also for one that refused: it may have refused because of what
            // a neighbour wrote that is not there now.
            (Fate::NotWritten(why), _) => Err(WriteError::NotWritten(why.to_string()).into()),
            (Fate::Unknown(why), Some(Ok(_))) => Err(WriteError::Unknown(why.to_string()).into()),
            (Fate::Unknown(why), _) => Err(WriteError::NotWritten(why.to_string()).into()),
        };
        self.answer(result);
    }
}

impl<T, F, R: FnOnce(anyhow::Result<T>)> Drop for Closure<T, F, R> {
    fn drop(&mut self) {
        // Only reached without an answer when the writer is closed or gone.
        let error = match self.work {
            Some(_) => WriteError::NotWritten("the database is closed".into()),
            None => WriteError::Unknown("the writer is gone".into()),
        };
        self.answer(Err(error.into()));
    }
}

pub(super) struct Writer {
    conn: Connection,
    queue: Receiver<Message>,
    shared: Arc<Shared>,
    /// Pages in the log, as SQLite told after the newest commit.
    log_pages: Arc<AtomicU64>,
    seen_pages: u64,
    since_checkpoint: u64,
    /// Whether COMMIT is allowed: never inside a write, which would split the
    /// group.
    may_commit: Arc<AtomicBool>,
}

impl Writer {
    pub(super) fn new(mut conn: Connection, queue: Receiver<Message>, shared: Arc<Shared>) -> anyhow::Result<Self> {
        let log_pages = Arc::new(AtomicU64::new(0));
        let may_commit = Arc::new(AtomicBool::new(true));
        // Also turns SQLite's own checkpoints off: they would make one caller
        // in many wait for them.
        let pages_seen = log_pages.clone();
        conn.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            pages_seen.store(u64::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        let allowed = may_commit.clone();
        conn.commit_hook(Some(move || !allowed.load(Ordering::Relaxed)))?;
        Ok(Self { conn, queue, shared, log_pages, seen_pages: 0, since_checkpoint: 0, may_commit })
    }

    /// Serves the queue until it is closed; then empties the log into the file.
    pub(super) fn serve(mut self) {
        while let Some(first) = self.next() {
            if self.shared.in_doubt() {
                first.finish(Fate::NotWritten("the outcome of an earlier write is still unknown".into()));
                continue;
            }
            let closing = self.group(first);
            if closing {
                break;
            }
            self.checkpoint_when_due();
        }
        // Later callers learn that nothing was written: dropping says so.
        while self.queue.try_recv().is_ok() {}
        // Without waiting for reads that are still open.
        let emptied =
            self.conn.busy_timeout(Duration::ZERO).and_then(|()| self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)"));
        if let Err(error) = emptied {
            tracing::warn!(%error, "the log was not emptied at the end; the next start does it");
        }
    }

    /// The next write; none when the queue is closed. Meanwhile a store in
    /// doubt is tried again.
    fn next(&mut self) -> Option<Box<dyn Job>> {
        loop {
            let message = if self.shared.in_doubt() {
                match self.queue.recv_timeout(DOUBT_PAUSE) {
                    Err(RecvTimeoutError::Disconnected) => return None,
                    received => {
                        self.settle();
                        received.ok()
                    }
                }
            } else {
                Some(self.queue.recv().ok()?)
            };
            match message {
                Some(Message::Run(job)) => {
                    self.taken();
                    return Some(job);
                }
                Some(Message::Close) => return None,
                None => {}
            }
        }
    }

    /// Runs one group to its end; says whether the queue was closed meanwhile.
    fn group(&mut self, first: Box<dyn Job>) -> bool {
        if let Err(error) = self.execute("BEGIN IMMEDIATE") {
            self.shared.failed();
            first.finish(Fate::NotWritten(error.to_string().into()));
            return false;
        }
        let mut jobs = Vec::new();
        let mut next = Some(first);
        let mut closing = false;
        let mut broken = None;
        let mut refused = false;
        let mut gathering = None;
        while let Some(mut job) = next.take() {
            match self.run(job.as_mut()) {
                Ok(ran) => refused |= ran == Ran::Refused,
                Err(why) => broken = Some(why),
            }
            jobs.push(job);
            if broken.is_some() || jobs.len() == GROUP {
                break;
            }
            let mut message = self.queue.try_recv().ok();
            if message.is_none() && jobs.len() >= GATHER_FROM {
                let since = *gathering.get_or_insert_with(Instant::now);
                if since.elapsed() < GATHER_ALL {
                    message = self.queue.recv_timeout(GATHER_NEXT).ok();
                }
            }
            match message {
                Some(Message::Run(job)) => {
                    self.taken();
                    next = Some(job);
                }
                Some(Message::Close) => closing = true,
                None => {}
            }
        }
        let fate = match broken {
            None => self.commit(jobs.len()),
            Some(why) => {
                refused = true;
                self.roll_back();
                Fate::NotWritten(why.into())
            }
        };
        if refused {
            self.shared.failed();
        }
        for job in jobs {
            job.finish(fate.clone());
        }
        closing
    }

    /// Runs one write in its savepoint. An error means that the transaction of
    /// the whole group is lost.
    fn run(&self, job: &mut dyn Job) -> Result<Ran, String> {
        self.execute("SAVEPOINT one").map_err(|e| e.to_string())?;
        self.may_commit.store(false, Ordering::Relaxed);
        let kept = catch_unwind(AssertUnwindSafe(|| job.run(&self.conn)));
        self.may_commit.store(true, Ordering::Relaxed);
        if self.conn.is_autocommit() {
            // SQLite undoes everything when, for example, the disk is full.
            return Err("a write of the same group made the database undo the group".into());
        }
        // A panic undoes its write, too.
        let ran = kept.unwrap_or(Ran::Undo);
        if ran != Ran::Keep {
            self.execute("ROLLBACK TO one").map_err(|e| e.to_string())?;
        }
        self.execute("RELEASE one").map_err(|e| e.to_string())?;
        Ok(ran)
    }

    fn commit(&mut self, jobs: usize) -> Fate {
        self.log_pages.store(0, Ordering::Relaxed);
        let Err(error) = self.try_commit() else {
            self.count(jobs);
            return Fate::Durable;
        };
        let why = error.to_string();
        if error.sqlite_error_code() != Some(ErrorCode::ConstraintViolation) {
            self.shared.failed();
        }
        // With these nothing was written, or not the end that makes it count.
        let surely_not = matches!(
            error.sqlite_error_code(),
            Some(
                ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::ConstraintViolation
                    | ErrorCode::DiskFull
            )
        );
        if !surely_not {
            // Readers see the old state now, but after a crash the log might
            // still hold the new one. Until that is settled no read is allowed:
            // what is read back must stay true.
            self.shared.set_doubt(true);
        }
        self.roll_back();
        if surely_not {
            return Fate::NotWritten(why.into());
        }
        self.settle();
        Fate::Unknown(why.into())
    }

    fn try_commit(&self) -> rusqlite::Result<()> {
        #[cfg(test)]
        if let Some(fault) = self.shared.fault() {
            if fault.committed {
                self.execute("COMMIT")?;
            }
            return Err(fault.error);
        }
        self.execute("COMMIT")
    }

    /// Ends the doubt after a commit of unknown outcome: another commit takes
    /// the very place in the log where the first one may have been left.
    fn settle(&mut self) {
        let settled =
            self.execute("BEGIN IMMEDIATE").and_then(|()| schema::touch(&self.conn)).and_then(|()| self.try_commit());
        match settled {
            Ok(()) => {
                self.shared.set_doubt(false);
                self.shared.succeeded();
            }
            Err(error) => {
                tracing::error!(%error, "the database cannot be written; reads and writes are refused meanwhile");
                self.roll_back();
            }
        }
    }

    fn roll_back(&self) {
        if !self.conn.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::error!(%error, "a failed transaction was not undone; the next one will be refused");
        }
    }

    fn count(&mut self, jobs: usize) {
        self.shared.writes.fetch_add(jobs as u64, Ordering::Relaxed);
        // Told by SQLite during the commit, and only if it wrote anything.
        let pages = self.log_pages.load(Ordering::Relaxed);
        if pages == 0 {
            return;
        }
        self.shared.succeeded();
        // Fewer than before: the log was begun anew.
        let written = if pages > self.seen_pages { pages - self.seen_pages } else { pages };
        self.seen_pages = pages;
        self.since_checkpoint += written;
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
        self.shared.pages.fetch_add(written, Ordering::Relaxed);
    }

    /// Copies the log into the file after the callers have been answered.
    /// Never waits for readers: what they still need stays in the log.
    fn checkpoint_when_due(&mut self) {
        let due = match self.since_checkpoint {
            ..CHECKPOINT_IDLE => false,
            CHECKPOINT_IDLE..CHECKPOINT_BUSY => self.shared.queued.load(Ordering::Relaxed) == 0,
            CHECKPOINT_BUSY.. => true,
        };
        if !due {
            return;
        }
        self.since_checkpoint = 0;
        match self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)") {
            Ok(()) => {
                self.shared.checkpoints.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => tracing::warn!(%error, "a checkpoint failed; it is tried again later"),
        }
    }

    fn checkpoint(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.query_row(sql, [], |_| Ok(()))
    }

    fn taken(&self) {
        self.shared.queued.fetch_sub(1, Ordering::Relaxed);
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(|_| ())
    }
}
