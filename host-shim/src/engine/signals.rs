//! The process's topics: positions that grow, and their listeners.

use std::collections::HashMap;
use std::sync::Mutex;

use tokio::sync::{broadcast, watch};

/// Topics that are remembered; beyond it those without a listener and that
/// moved least go.
const MAX_TOPICS: usize = 16 * 1024;

/// A topic moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalEvent {
    /// Whose topic it is.
    pub owner: String,
    /// Its name.
    pub topic: String,
    /// Its new position.
    pub position: u64,
    /// The team's revision after the change.
    pub revision: u64,
}

/// Topics by owner and name. Nothing is stored; a signal is a hint.
pub struct Signals {
    topics: Mutex<Topics>,
    events: broadcast::Sender<SignalEvent>,
}

#[derive(Default)]
struct Topics {
    known: HashMap<(String, String), Topic>,
    /// The position of an unknown topic. It is at least the position of
    /// every topic that was forgotten, so that a position never goes back: a
    /// forgotten topic can only seem to have moved, which is harmless.
    floor: u64,
}

struct Topic {
    position: u64,
    /// Made by the first who waits.
    waiters: Option<watch::Sender<u64>>,
}

impl Topics {
    fn topic(&mut self, owner: &str, topic: &str) -> &mut Topic {
        if self.known.len() >= MAX_TOPICS {
            self.shrink();
        }
        let floor = self.floor;
        self.known
            .entry((owner.to_owned(), topic.to_owned()))
            .or_insert_with(|| Topic { position: floor, waiters: None })
    }

    /// Forgets half of the topics without a listener, lowest positions
    /// first.
    fn shrink(&mut self) {
        let idle = |topic: &Topic| topic.waiters.as_ref().is_none_or(|w| w.receiver_count() == 0);
        let mut positions: Vec<u64> = self.known.values().filter(|t| idle(t)).map(|t| t.position).collect();
        if positions.is_empty() {
            return;
        }
        let middle = positions.len() / 2;
        let bound = *positions.select_nth_unstable(middle).1;
        self.known.retain(|_, topic| topic.position > bound || !idle(topic));
        self.floor = self.floor.max(bound);
    }
}

impl Default for Signals {
    fn default() -> Self {
        Self { topics: Mutex::default(), events: broadcast::channel(1024).0 }
    }
}

impl Signals {
    /// Increments the topic's position and wakes its listeners and those of all topics.
    pub fn publish(&self, owner: &str, topic: &str, revision: u64) {
        let position = {
            let mut topics = self.lock();
            let topic = topics.topic(owner, topic);
            topic.position += 1;
            if let Some(waiters) = &topic.waiters {
                waiters.send_replace(topic.position);
            }
            topic.position
        };
        let _ = self.events.send(SignalEvent { owner: owner.to_owned(), topic: topic.to_owned(), position, revision });
    }

    /// The position of the topic: 0 at first, and it only grows.
    pub fn position(&self, owner: &str, topic: &str) -> u64 {
        let topics = self.lock();
        topics.known.get(&(owner.to_owned(), topic.to_owned())).map_or(topics.floor, |t| t.position)
    }

    /// Waits until the topic's position differs from `seen`; at once if it
    /// already does. No move is missed, and a wait costs no thread.
    pub async fn moved(&self, owner: &str, topic: &str, seen: u64) {
        let mut position = {
            let mut topics = self.lock();
            let topic = topics.topic(owner, topic);
            let position = topic.position;
            topic.waiters.get_or_insert_with(|| watch::Sender::new(position)).subscribe()
        };
        if position.wait_for(|position| *position != seen).await.is_err() {
            // The topic went away, which cannot happen while somebody waits.
            std::future::pending::<()>().await;
        }
    }

    /// All signals from now on, of every owner: the reader filters
    /// by owner. A receiver that lags learns that it did.
    pub fn subscribe(&self) -> broadcast::Receiver<SignalEvent> {
        self.events.subscribe()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Topics> {
        self.topics.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn a_topic_that_moved_before_the_wait_wakes_at_once() {
        let signals = Signals::default();
        let seen = signals.position("ann", "t");
        signals.publish("ann", "t", 1);
        assert!(signals.moved("ann", "t", seen).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_wait_ends_with_its_own_topic_only() {
        let signals = Signals::default();
        let mut wait = std::pin::pin!(signals.moved("ann", "t", 0));
        assert!(wait.as_mut().now_or_never().is_none());
        signals.publish("bob", "t", 1);
        signals.publish("ann", "u", 1);
        assert!(wait.as_mut().now_or_never().is_none());
        signals.publish("ann", "t", 1);
        wait.await;
    }

    #[tokio::test]
    async fn topics_are_bounded_and_positions_never_go_back() {
        let signals = Signals::default();
        for _ in 0..3 {
            signals.publish("ann", "kept", 1);
        }
        let mut wait = std::pin::pin!(signals.moved("ann", "waited", 0));
        assert!(wait.as_mut().now_or_never().is_none());
        for n in 0..3 * MAX_TOPICS {
            signals.publish("ann", &n.to_string(), 1);
        }
        assert!(signals.lock().known.len() <= MAX_TOPICS);
        assert!(signals.position("ann", "kept") >= 3);
        assert!(signals.position("ann", "0") >= 1, "a forgotten topic does not go back");
        assert!(wait.as_mut().now_or_never().is_none(), "a topic that is waited for stays");
        signals.publish("ann", "waited", 1);
        wait.await;
    }
}
