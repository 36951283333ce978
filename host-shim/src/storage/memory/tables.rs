//! The host's own tables in the memory of the process: for tests, and for trying
//! things out. Same answers as the database; nothing survives.

use std::cell::{RefCell, RefMut};
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::ensure;
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::agents::AgentState;
use super::users::UserState;
use crate::clock::Clock;
use crate::life::{Life, Living, life};
use crate::storage::tables::{LastWrites, Rows, TableStore, Writing};

/// The host's tables in memory. Cheap to clone; clones share the tables.
#[derive(Clone)]
pub struct MemoryTables {
    state: Arc<Mutex<State>>,
    clock: Arc<dyn Clock>,
    writer: Arc<(Living, Life)>,
}

#[derive(Clone, Default)]
pub(super) struct State {
    pub(super) users: UserState,
    pub(super) agents: AgentState,
}

impl MemoryTables {
    /// Empty tables.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { state: Arc::default(), clock, writer: Arc::new(life()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.clock.now_ms()).unwrap_or(i64::MAX)
    }

    /// Whole transactions, one after another; an error undoes all of it.
    fn write(&self, f: Writing) -> anyhow::Result<()> {
        let mut state = self.state();
        let mut next = state.clone();
        f(&MemoryRows { state: RefCell::new(&mut next), now_ms: self.now_ms(), writable: true })?;
        *state = next;
        Ok(())
    }
}

#[async_trait]
impl TableStore for MemoryTables {
    fn read(&self, f: &mut dyn FnMut(&dyn Rows) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut snapshot = self.state().clone();
        f(&MemoryRows { state: RefCell::new(&mut snapshot), now_ms: self.now_ms(), writable: false })
    }

    fn queue(&self, f: Writing) -> BoxFuture<'static, anyhow::Result<()>> {
        std::future::ready(self.write(f)).boxed()
    }

    async fn probe(&self) -> anyhow::Result<()> {
        Ok(())
    }

    fn last_write_failed(&self) -> bool {
        false
    }

    fn last_writes(&self) -> LastWrites {
        LastWrites::default()
    }

    fn writer(&self) -> &Life {
        &self.writer.1
    }
}

/// The tables inside one transaction.
pub(super) struct MemoryRows<'s> {
    state: RefCell<&'s mut State>,
    pub(super) now_ms: i64,
    writable: bool,
}

impl<'s> MemoryRows<'s> {
    /// What is read. No method holds it while it calls another.
    pub(super) fn look(&self) -> RefMut<'_, &'s mut State> {
        self.state.borrow_mut()
    }

    /// What is written.
    pub(super) fn change(&self) -> anyhow::Result<RefMut<'_, &'s mut State>> {
        ensure!(self.writable, "this transaction only reads");
        Ok(self.state.borrow_mut())
    }
}
