//! That tokens and sessions are used is written without anybody waiting for it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::Users;
use crate::storage::tables::UserRows;

/// The tokens and sessions whose use waits to be written. However many requests
/// come meanwhile, each has one write in the queue: with a slow disk they must
/// not keep those out that somebody waits for.
#[derive(Clone, Default)]
pub(super) struct Waiting(Arc<Mutex<HashSet<String>>>);

/// A place among them, until it is dropped.
struct Place {
    waiting: Waiting,
    id: String,
}

impl Waiting {
    /// None: this one waits already.
    fn enter(&self, id: &str) -> Option<Place> {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.insert(id.to_owned()).then(|| Place { waiting: self.clone(), id: id.to_owned() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.waiting.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Users {
    /// Queues a write about the token or session `id`. Must be called inside the
    /// runtime. One that fails is logged: a full disk must not lock people out of
    /// reading.
    pub(super) fn note(&self, id: &str, write: impl FnOnce(&dyn UserRows) -> anyhow::Result<()> + Send + 'static) {
        let Some(place) = self.waiting.enter(id) else { return };
        let written = self.tables.queue(move |rows| {
            // Left when this is run, or dropped because the queue is full.
            let _place = place;
            write(rows)
        });
        tokio::spawn(async move {
            if let Err(error) = written.await {
                tracing::warn!(%error, "could not note that a token or a session is used");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_waits_once() {
        let waiting = Waiting::default();
        let first = waiting.enter("a").unwrap();
        assert!(waiting.enter("a").is_none());
        assert!(waiting.enter("b").is_some());
        drop(first);
        assert!(waiting.enter("a").is_some());
    }
}
