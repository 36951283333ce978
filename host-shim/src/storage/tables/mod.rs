//! The host's own tables: users and the conversations of the built-in agents.
//!
//! A room's tables are one trait of reads and writes ([`UserRows`],
//! [`AgentRows`]), used inside a transaction. What a row means and which writes
//! belong together is decided by the room, in one function for every database.
//! A database implements [`TableStore`] and the traits; one suite of contract
//! tests holds SQLite and the memory to the same answers.

pub mod agents;
pub mod users;

use std::sync::{Arc, Mutex};

use anyhow::Context;
use async_trait::async_trait;
use futures_util::future::BoxFuture;

use crate::life::Life;

pub use super::failure::{LastWrites, NotNow, WriteError, outcome_unknown, temporary};
pub use agents::AgentRows;
pub use users::UserRows;

/// The tables of every room, inside one transaction.
pub trait Rows: UserRows + AgentRows {}

impl<R: UserRows + AgentRows> Rows for R {}

/// A function of one transaction that reads and writes.
pub type Writing = Box<dyn FnOnce(&dyn Rows) -> anyhow::Result<()> + Send>;

/// A database of the host's tables. [`Tables`] is how it is used.
#[async_trait]
pub trait TableStore: Send + Sync + 'static {
    /// Calls `f` once on one snapshot, which holds every write that had returned
    /// before. Writing is refused there. Blocks for as long as `f` does.
    ///
    /// # Errors
    /// The error of `f`, or one of the database's own; with [`NotNow`] as its
    /// context where the same may succeed later.
    fn read(&self, f: &mut dyn FnMut(&dyn Rows) -> anyhow::Result<()>) -> anyhow::Result<()>;

    /// Runs `f` in a transaction of its own, which is durable when the future
    /// is ready. Queued when this returns: every write queued later sees what
    /// this one wrote. If the future is dropped, the write still happens. An
    /// error of `f` undoes its writes alone.
    ///
    /// # Errors
    /// As [`Self::read`], or a [`WriteError`].
    fn queue(&self, f: Writing) -> BoxFuture<'static, anyhow::Result<()>>;

    /// Writes a row that means nothing: whether the store takes writes now.
    async fn probe(&self) -> anyhow::Result<()>;

    /// Whether the store refused the last write that would have changed it.
    /// Before anything expensive whose outcome must be written, find out by
    /// [`Self::probe`] whether it still does.
    fn last_write_failed(&self) -> bool;

    /// When writes last went well and ill.
    fn last_writes(&self) -> LastWrites;

    /// What nothing can be written without. It ends when the store is closed,
    /// unless it has a fault.
    fn writer(&self) -> &Life;
}

/// The host's tables, wherever they are kept. Cheap to clone.
#[derive(Clone)]
pub struct Tables(Arc<dyn TableStore>);

impl Tables {
    /// The tables that this store keeps.
    pub fn new(store: impl TableStore) -> Self {
        Self(Arc::new(store))
    }

    /// What `f` gives on one snapshot; see [`TableStore::read`].
    pub fn read<T>(&self, f: impl FnOnce(&dyn Rows) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let (mut f, mut out) = (Some(f), None);
        self.0.read(&mut |rows| {
            let f = f.take().context("a read is run once")?;
            out = Some(f(rows)?);
            Ok(())
        })?;
        out.context("a read was not run")
    }

    /// What `f` gives in a transaction of its own; see [`TableStore::queue`].
    pub fn queue<T, F>(&self, f: F) -> impl Future<Output = anyhow::Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Rows) -> anyhow::Result<T> + Send + 'static,
    {
        let out = Arc::new(Mutex::new(None));
        let slot = out.clone();
        let written = self.0.queue(Box::new(move |rows| {
            let value = f(rows)?;
            *slot.lock().unwrap_or_else(|e| e.into_inner()) = Some(value);
            Ok(())
        }));
        async move {
            written.await?;
            out.lock().unwrap_or_else(|e| e.into_inner()).take().context("a write was not run")
        }
    }

    /// [`Self::queue`], awaited.
    pub async fn write<T, F>(&self, f: F) -> anyhow::Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Rows) -> anyhow::Result<T> + Send + 'static,
    {
        self.queue(f).await
    }
}

impl std::ops::Deref for Tables {
    type Target = dyn TableStore;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
