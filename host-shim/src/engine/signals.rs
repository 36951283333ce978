//! The process's topics: positions that grow, and whoever listens.

use std::collections::HashMap;
use std::sync::Mutex;

use tokio::sync::broadcast;

/// A topic moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalEvent {
    pub owner: String,
    pub topic: String,
    pub position: u64,
    /// The team's revision after the change.
    pub revision: u64,
}

/// Topics by owner and name. Nothing is stored; a signal is a hint.
pub struct Signals {
    positions: Mutex<HashMap<(String, String), u64>>,
    events: broadcast::Sender<SignalEvent>,
}

impl Default for Signals {
    fn default() -> Self {
        Self { positions: Mutex::default(), events: broadcast::channel(1024).0 }
    }
}

impl Signals {
    pub fn publish(&self, owner: &str, topic: &str, revision: u64) {
        let position = {
            let mut positions = self.positions.lock().unwrap_or_else(|e| e.into_inner());
            let position = positions.entry((owner.to_owned(), topic.to_owned())).or_insert(0);
            *position += 1;
            *position
        };
        let _ = self.events.send(SignalEvent { owner: owner.to_owned(), topic: topic.to_owned(), position, revision });
    }

    pub fn position(&self, owner: &str, topic: &str) -> u64 {
        let positions = self.positions.lock().unwrap_or_else(|e| e.into_inner());
        positions.get(&(owner.to_owned(), topic.to_owned())).copied().unwrap_or(0)
    }

    /// All signals from now on, of every owner: whoever serves them filters
    /// by owner. A receiver that lags learns that it did.
    pub fn subscribe(&self) -> broadcast::Receiver<SignalEvent> {
        self.events.subscribe()
    }
}
