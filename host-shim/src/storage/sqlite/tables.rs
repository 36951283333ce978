//! The host's own tables in the database file.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rusqlite::{Connection, OptionalExtension, Params, Row};

use super::database::{Database, temporary};
use super::{agents, users};
use crate::clock::Clock;
use crate::life::Life;
use crate::storage::tables::{LastWrites, NotNow, Rows, TableStore, Tables, WriteError, Writing};

/// The host's tables in the database file. Cheap to clone.
#[derive(Clone)]
pub struct SqliteTables {
    db: Database,
    clock: Arc<dyn Clock>,
}

impl SqliteTables {
    /// Makes or migrates the tables; harmless when repeated. Blocks until that
    /// is durable.
    ///
    /// # Errors
    /// As [`Database::migrate`].
    pub fn new(db: Database, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        db.migrate("users", users::STEPS)?;
        db.migrate("agents", agents::STEPS)?;
        Ok(Self { db, clock })
    }
}

impl SqliteTables {
    /// [`Self::new`] for async callers, as the [`Tables`] that rooms use.
    pub async fn open(db: Database, clock: Arc<dyn Clock>) -> anyhow::Result<Tables> {
        let opened = tokio::task::spawn_blocking(move || Self::new(db, clock)).await??;
        Ok(Tables::new(opened))
    }
}

impl From<SqliteTables> for Tables {
    fn from(tables: SqliteTables) -> Self {
        Self::new(tables)
    }
}

fn now_ms(clock: &dyn Clock) -> i64 {
    i64::try_from(clock.now_ms()).unwrap_or(i64::MAX)
}

/// Says in the common terms what SQLite's error means.
fn marked(error: anyhow::Error) -> anyhow::Error {
    if temporary(&error) && !error.is::<WriteError>() { error.context(NotNow) } else { error }
}

#[async_trait]
impl TableStore for SqliteTables {
    fn read(&self, f: &mut dyn FnMut(&dyn Rows) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.db.read(|conn| f(&SqliteRows { conn, now_ms: now_ms(&*self.clock) })).map_err(marked)
    }

    fn queue(&self, f: Writing) -> BoxFuture<'static, anyhow::Result<()>> {
        let clock = self.clock.clone();
        let written = self.db.queue(move |conn| f(&SqliteRows { conn, now_ms: now_ms(&*clock) }));
        async { written.await.map_err(marked) }.boxed()
    }

    async fn probe(&self) -> anyhow::Result<()> {
        self.db.probe().await
    }

    fn last_write_failed(&self) -> bool {
        self.db.last_write_failed()
    }

    fn last_writes(&self) -> LastWrites {
        self.db.last_writes()
    }

    fn writer(&self) -> &Life {
        self.db.writer()
    }
}

/// The tables inside one transaction.
pub(super) struct SqliteRows<'c> {
    pub(super) conn: &'c Connection,
    pub(super) now_ms: i64,
}

impl SqliteRows<'_> {
    pub(super) fn one<T>(
        &self,
        sql: &str,
        of: impl Params,
        row: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        Ok(self.conn.prepare_cached(sql)?.query_row(of, row).optional()?)
    }

    pub(super) fn all<T>(
        &self,
        sql: &str,
        of: impl Params,
        row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> anyhow::Result<Vec<T>> {
        Ok(self.conn.prepare_cached(sql)?.query_map(of, row)?.collect::<rusqlite::Result<_>>()?)
    }

    /// Calls `take` with one row after another, until it says false.
    pub(super) fn each<T>(
        &self,
        sql: &str,
        of: impl Params,
        row: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
        mut take: impl FnMut(T) -> bool,
    ) -> anyhow::Result<()> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query(of)?;
        while let Some(next) = rows.next()? {
            if !take(row(next)?) {
                break;
            }
        }
        Ok(())
    }

    /// How many rows it changed.
    pub(super) fn change(&self, sql: &str, of: impl Params) -> anyhow::Result<usize> {
        Ok(self.conn.prepare_cached(sql)?.execute(of)?)
    }

    pub(super) fn set(&self, sql: &str, of: impl Params) -> anyhow::Result<()> {
        self.change(sql, of)?;
        Ok(())
    }
}
