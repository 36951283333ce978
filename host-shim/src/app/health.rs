//! Whether this process can do what it is there for: its parts live, and the
//! store can be read and written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::gateway::HealthApi;
use crate::life::Life;
use crate::storage::Tables;
use crate::users::Users;

/// How old a write may be that shows that the store takes writes, and how long
/// one that it refused counts.
const FRESH: Duration = Duration::from_secs(10);
/// How long a write that is tried may take.
const PROBE_TIME: Duration = Duration::from_secs(3);

/// A part without which the process cannot serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Worker,
    Http,
    Writer,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Worker => "the background worker",
            Self::Http => "the HTTP server",
            Self::Writer => "the database's writer",
        })
    }
}

/// The parts that must not end before the process stops.
#[derive(Clone)]
pub struct Parts {
    pub worker: Life,
    pub http: Life,
    pub writer: Life,
}

impl Parts {
    /// Waits until one has ended.
    pub async fn broken(&self) -> Part {
        tokio::select! {
            () = self.worker.end() => Part::Worker,
            () = self.http.end() => Part::Http,
            () = self.writer.end() => Part::Writer,
        }
    }
}

/// What `/healthz` asks.
pub struct Health {
    tables: Tables,
    users: Arc<Users>,
    worker: Life,
    fresh: Duration,
    probe_time: Duration,
    probe: Mutex<Probe>,
}

/// The write by which the store is tried.
#[derive(Default)]
struct Probe {
    /// The last answer.
    last: Option<(Instant, bool)>,
    /// One that has not come back; another would only wait behind it.
    running: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Health {
    pub fn new(tables: Tables, users: Arc<Users>, worker: Life) -> Self {
        Self { tables, users, worker, fresh: FRESH, probe_time: PROBE_TIME, probe: Mutex::default() }
    }

    /// Whether the store takes writes: seen by those of others, or tried, at
    /// most once in ten seconds.
    async fn writable(&self) -> bool {
        let recent = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() < self.fresh);
        if self.tables.writer().has_ended() {
            return false;
        }
        let mut probe = self.probe.lock().await;
        let writes = self.tables.last_writes();
        if recent(writes.refused) {
            return false;
        }
        if recent(writes.done) && !self.tables.last_write_failed() {
            return true;
        }
        if let Some((at, answer)) = probe.last
            && at.elapsed() < self.fresh
        {
            return answer;
        }
        let tables = self.tables.clone();
        let mut write = probe.running.take().unwrap_or_else(|| tokio::spawn(async move { tables.probe().await }));
        let answer = match tokio::time::timeout(self.probe_time, &mut write).await {
            Ok(done) => matches!(done, Ok(Ok(()))),
            Err(_) => {
                probe.running = Some(write);
                false
            }
        };
        probe.last = Some((Instant::now(), answer));
        answer
    }
}

#[async_trait]
impl HealthApi for Health {
    async fn check(&self) -> Result<(), &'static str> {
        if self.worker.has_ended() {
            return Err("The background worker has ended; the server must be started again.");
        }
        let users = self.users.clone();
        if !matches!(tokio::task::spawn_blocking(move || users.any_added()).await, Ok(Ok(_))) {
            return Err("The database cannot be read.");
        }
        if !self.writable().await {
            return Err("The database cannot be written; see the server's log and its disk.");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use rusqlite::ffi::SQLITE_FULL;

    use super::*;
    use crate::clock::SystemClock;
    use crate::life::life;
    use crate::storage::SqliteTables;
    use crate::storage::database::Database;

    /// What is seen of the writes of others counts for `fresh`.
    async fn health(db: &Database, fresh: Duration) -> (Health, crate::life::Living) {
        let tables = SqliteTables::open(db.clone(), Arc::new(SystemClock)).await.unwrap();
        let users = Users::new(tables.clone(), Arc::new(SystemClock));
        let (living, worker) = life();
        let health = Health { fresh, probe_time: Duration::from_millis(50), ..Health::new(tables, users, worker) };
        (health, living)
    }

    fn open() -> (tempfile::TempDir, Database) {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::open(&folder.path().join("test.db")).unwrap();
        (folder, db)
    }

    #[tokio::test]
    async fn the_store_is_tried_when_no_write_of_others_shows_that_it_takes_them() {
        let (_folder, db) = open();
        let (health, _worker) = health(&db, Duration::ZERO).await;
        let before = db.stats().commits;
        assert_eq!(health.check().await, Ok(()));
        assert_eq!(db.stats().commits, before + 1, "a write was tried");
        db.fail_commits(&[SQLITE_FULL]);
        assert!(health.check().await.unwrap_err().contains("written"));
        assert_eq!(health.check().await, Ok(()));
    }

    #[tokio::test]
    async fn what_others_wrote_or_could_not_write_is_known_without_a_try() {
        let (_folder, db) = open();
        let (health, _worker) = health(&db, Duration::from_secs(3600)).await;
        let before = db.stats().commits;
        assert_eq!(health.check().await, Ok(()));
        assert_eq!(db.stats().commits, before, "nothing was tried");
        db.fail_commits(&[SQLITE_FULL]);
        db.probe().await.unwrap_err();
        assert!(health.check().await.is_err());
        // The next write may have been small enough.
        db.probe().await.unwrap();
        assert!(health.check().await.is_err());
    }

    #[tokio::test]
    async fn a_store_that_does_not_answer_is_not_tried_again_and_again() {
        let (_folder, db) = open();
        let (health, _worker) = health(&db, Duration::ZERO).await;
        let (go, wait) = mpsc::channel::<()>();
        let held = db.queue(move |_| Ok(wait.recv()?));
        let before = db.stats().writes;
        for _ in 0..3 {
            assert!(health.check().await.is_err());
        }
        go.send(()).unwrap();
        held.await.unwrap();
        assert_eq!(health.check().await, Ok(()));
        db.probe().await.unwrap();
        assert_eq!(db.stats().writes, before + 3, "the one that held it up, one try, and the last");
    }

    #[tokio::test]
    async fn a_worker_or_a_writer_that_has_ended_is_told() {
        let (_folder, db) = open();
        let (health, worker) = health(&db, FRESH).await;
        assert_eq!(health.check().await, Ok(()));
        drop(worker);
        assert!(health.check().await.unwrap_err().contains("worker"));
        db.close();
        assert!(!health.writable().await);
    }
}
