//! What the component is given: one file an import of the contract. All of it
//! lives in the store of one call; what must outlive a call is in `Shared`.

pub mod agent_runs;
pub mod connections;
pub mod locks;
mod log;
mod settings;
mod signals;
pub mod storage;
mod wasi;

use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::ResourceTable;

use self::connections::Connections;
use super::limits::{HOST_OBJECTS, LOG_LINES, Limits, Meter};
use super::lock_table::LockTable;
use super::{Options, Parts, bindings};

/// What all calls of one component share.
pub struct Shared {
    pub parts: Parts,
    pub locks: Arc<LockTable>,
    pub connections: Connections,
    pub host_call_time: Duration,
}

/// The host's side of one call. Dropping it releases every lock and undoes
/// every open transaction: after a trap no drop of the guest runs, so this is
/// what cleans up.
pub struct State {
    pub table: ResourceTable,
    pub limits: Limits,
    pub meter: Meter,
    pub shared: Arc<Shared>,
    log_lines_left: u32,
}

impl State {
    pub fn new(shared: Arc<Shared>, options: &Options) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(HOST_OBJECTS);
        Self {
            table,
            limits: Limits::new(options.memory),
            meter: Meter::new(options.guest_time),
            shared,
            log_lines_left: LOG_LINES,
        }
    }

    /// Runs `f` on the host's time.
    fn host<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.meter.pause();
        let value = f(self);
        self.meter.resume();
        value
    }

    /// Awaits `work` on the host's time, for as long as one host call may
    /// take. `None`: it was given up, and what it did is unknown.
    async fn bounded<T>(&mut self, work: impl Future<Output = T> + Send) -> Option<T> {
        self.meter.pause();
        let done = tokio::time::timeout(self.shared.host_call_time, work).await;
        self.meter.resume();
        done.ok()
    }
}

impl bindings::agent_teams::plugin::types::Host for State {}
