//! A clock that only moves when a test says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Milliseconds since 1970-01-01T00:00:00Z. Clones are the same clock.
#[derive(Clone, Debug)]
pub struct FakeClock(Arc<AtomicU64>);

impl Default for FakeClock {
    fn default() -> Self {
        // 2026-01-01T00:00:00Z
        Self(Arc::new(AtomicU64::new(1_767_225_600_000)))
    }
}

impl FakeClock {
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Moves on by `ms` milliseconds.
    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl agent_teams_host::engine::Clock for FakeClock {
    fn now_ms(&self) -> u64 {
        self.now()
    }
}
