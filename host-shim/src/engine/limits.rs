//! What one instance may use: memory, tables, instances, the data of one host
//! call, and the time that the guest itself computes.

use std::time::{Duration, Instant};

use wasmtime::ResourceLimiter;

use super::ticker::TICK;

/// Bytes that a guest can hand to the host in one call or one answer.
pub const HOSTCALL_BYTES: usize = 8 << 20;
/// Host objects (transactions, locks, capabilities) that one call may hold.
pub const HOST_OBJECTS: usize = 64;
/// Lines that one call may write to the operator's log.
pub const LOG_LINES: u32 = 256;
/// Linear memories of one component.
pub const MEMORIES: u32 = 1;
/// Core instances of one component: its module and the adapters around it.
pub const CORE_INSTANCES: u32 = 8;
/// Tables of one component.
pub const TABLES: u32 = 4;
/// Elements of one table.
pub const TABLE_ELEMENTS: usize = 20_000;

/// Why the host ended a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    #[error("the guest computed for longer than it may")]
    GuestTime,
    #[error("the guest asked for more memory than it may have")]
    Memory,
}

/// Refuses growth over the bounds. A refusal ends the call: a guest that is
/// told "no" would only abort in its own way, without a reason.
pub struct Limits {
    memory: usize,
}

impl Limits {
    pub fn new(memory: usize) -> Self {
        Self { memory }
    }
}

impl ResourceLimiter for Limits {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.memory { Err(Stopped::Memory.into()) } else { Ok(true) }
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(error.context(Stopped::Memory))
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired > TABLE_ELEMENTS { Err(Stopped::Memory.into()) } else { Ok(true) }
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(error.context(Stopped::Memory))
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        TABLES as usize
    }

    fn memories(&self) -> usize {
        MEMORIES as usize
    }
}

/// Counts the time that the guest itself computes. Host calls stop the clock.
pub struct Meter {
    /// Since when the guest runs, or `None` while the host does.
    since: Option<Instant>,
    used: Duration,
    budget: Duration,
}

impl Meter {
    pub fn new(budget: Duration) -> Self {
        Self { since: Some(Instant::now()), used: Duration::ZERO, budget }
    }

    /// The guest has called the host.
    pub fn pause(&mut self) {
        let now = Instant::now();
        self.count(now);
        self.since = None;
    }

    /// The host answers the guest.
    pub fn resume(&mut self) {
        self.since = Some(Instant::now());
    }

    /// Called about once a tick while the guest computes.
    pub fn tick(&mut self) -> Result<(), Stopped> {
        let now = Instant::now();
        self.count(now);
        self.since = Some(now);
        if self.used > self.budget { Err(Stopped::GuestTime) } else { Ok(()) }
    }

    fn count(&mut self, now: Instant) {
        // The guest yields at every tick, and how long others then run is not
        // its time: one slice counts as one tick at most.
        if let Some(since) = self.since {
            self.used += now.saturating_duration_since(since).min(TICK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_refused_one_byte_over_the_bound() {
        let mut limits = Limits::new(1 << 20);
        assert!(limits.memory_growing(0, 1 << 20, None).unwrap());
        let refused = limits.memory_growing(0, (1 << 20) + 1, None).unwrap_err();
        assert_eq!(refused.downcast_ref::<Stopped>(), Some(&Stopped::Memory));
    }

    #[test]
    fn a_failed_growth_is_a_memory_stop() {
        let refused = Limits::new(0).memory_grow_failed(wasmtime::Error::msg("mmap")).unwrap_err();
        assert_eq!(refused.downcast_ref::<Stopped>(), Some(&Stopped::Memory));
    }

    #[test]
    fn host_time_is_not_guest_time() {
        let mut meter = Meter::new(Duration::from_secs(1));
        meter.pause();
        // As if the host had worked for an hour.
        meter.since = None;
        meter.tick().unwrap();
        meter.used = Duration::from_secs(1);
        meter.since = None;
        assert_eq!(meter.tick(), Ok(()));
        meter.since = Instant::now().checked_sub(Duration::from_secs(3600));
        assert_eq!(meter.tick(), Err(Stopped::GuestTime));
        assert!(meter.used <= Duration::from_secs(1) + TICK, "a slice counts as one tick at most");
    }
}
