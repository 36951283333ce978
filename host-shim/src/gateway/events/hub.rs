//! Passes signals on to the streams of their owner.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;

use crate::engine::{SignalEvent, Signals};
use crate::life::{Life, life};

/// Topics that one stream holds back before it says "anything may have changed".
const MAX_PENDING: usize = 256;
/// Teams whose newest revision is remembered. Forgetting one costs an event.
const MAX_NEWEST: usize = 10_000;

/// What a stream tells its client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    Topic {
        topic: String,
        revision: u64,
    },
    /// Anything may have changed. `newest`: the revision of the stream's team,
    /// if this process has seen one.
    Gap {
        newest: Option<u64>,
    },
}

/// All open streams of this process.
pub(in crate::gateway) struct Hub {
    per_owner: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    owners: HashMap<String, HashMap<u64, Arc<Stream>>>,
    /// The newest revision by owner and team.
    newest: HashMap<(String, String), u64>,
}

struct Stream {
    team: Option<String>,
    pending: Mutex<Pending>,
    wake: Notify,
}

#[derive(Default)]
struct Pending {
    gap: bool,
    topics: BTreeMap<String, u64>,
}

impl Hub {
    /// Starts passing signals on; ends with the signals or when the hub is
    /// dropped and another signal comes. The second is the life of that task.
    pub(in crate::gateway) fn start(signals: &Signals, per_owner: usize) -> (Arc<Self>, Life) {
        let (living, life) = life();
        let hub = Arc::new(Self { per_owner, state: Mutex::default() });
        let weak = Arc::downgrade(&hub);
        let mut events = signals.subscribe();
        tokio::spawn(async move {
            let _living = living;
            loop {
                let event = events.recv().await;
                let Some(hub) = weak.upgrade() else { return };
                match event {
                    Ok(event) => hub.deliver(event),
                    Err(RecvError::Lagged(_)) => hub.gap(),
                    Err(RecvError::Closed) => return,
                }
            }
        });
        (hub, life)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A new stream of this owner, of one team or of everything. None: the
    /// owner has as many as may be.
    pub(super) fn subscribe(self: &Arc<Self>, owner: &str, team: Option<&str>) -> Option<Subscription> {
        let mut state = self.lock();
        state.next += 1;
        let id = state.next;
        let streams = state.owners.entry(owner.to_owned()).or_default();
        if streams.len() >= self.per_owner {
            return None;
        }
        let stream = Arc::new(Stream { team: team.map(str::to_owned), pending: Mutex::default(), wake: Notify::new() });
        streams.insert(id, stream.clone());
        Some(Subscription { hub: Arc::downgrade(self), owner: owner.to_owned(), id, stream })
    }

    fn deliver(&self, event: SignalEvent) {
        let mut state = self.lock();
        let team = team_of(&event.topic);
        if state.newest.len() >= MAX_NEWEST {
            state.newest.clear();
        }
        let newest = state.newest.entry((event.owner.clone(), team.to_owned())).or_default();
        // Signals may come out of order; and a team that was deleted and made
        // again counts from one. Zero says that no revision belongs to it.
        *newest = if event.revision == 1 { 1 } else { event.revision.max(*newest) };
        let Some(streams) = state.owners.get(&event.owner) else { return };
        for stream in streams.values() {
            if stream.team.as_deref().is_none_or(|wanted| wanted == team) {
                stream.add(&event.topic, event.revision);
            }
        }
    }

    /// Signals were lost: every stream says so, and no revision is known.
    fn gap(&self) {
        let mut state = self.lock();
        state.newest.clear();
        state.owners.values().flat_map(HashMap::values).for_each(|stream| stream.add_gap());
    }
}

/// The team a topic belongs to: the topic's last part. A topic is the team's
/// id, or has it at the end after `:` or `/`.
fn team_of(topic: &str) -> &str {
    topic.rsplit([':', '/']).next().unwrap_or(topic)
}

impl Stream {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn add(&self, topic: &str, revision: u64) {
        let mut pending = self.pending();
        if !pending.gap {
            if pending.topics.len() >= MAX_PENDING && !pending.topics.contains_key(topic) {
                pending.topics.clear();
                pending.gap = true;
            } else {
                let newest = pending.topics.entry(topic.to_owned()).or_default();
                *newest = revision.max(*newest);
            }
        }
        drop(pending);
        self.wake.notify_one();
    }

    fn add_gap(&self) {
        let mut pending = self.pending();
        pending.topics.clear();
        pending.gap = true;
        drop(pending);
        self.wake.notify_one();
    }
}

/// One stream's place in the hub; dropping it gives the place back.
pub(super) struct Subscription {
    hub: Weak<Hub>,
    owner: String,
    id: u64,
    stream: Arc<Stream>,
}

impl Subscription {
    pub(super) fn of_one_team(&self) -> bool {
        self.stream.team.is_some()
    }

    /// The newest revision of the stream's team that this process has seen.
    pub(super) fn newest(&self) -> Option<u64> {
        let team = self.stream.team.clone()?;
        self.hub.upgrade()?.lock().newest.get(&(self.owner.clone(), team)).copied().filter(|&revision| revision > 0)
    }

    /// Makes the next change a gap.
    pub(super) fn mark_gap(&self) {
        self.stream.add_gap();
    }

    /// Waits for a change. Safe to drop while it waits.
    pub(super) async fn next(&mut self) -> Change {
        loop {
            let wake = self.stream.wake.notified();
            let taken = {
                let mut pending = self.stream.pending();
                if std::mem::take(&mut pending.gap) { Some(None) } else { pending.topics.pop_first().map(Some) }
            };
            match taken {
                Some(Some((topic, revision))) => return Change::Topic { topic, revision },
                Some(None) => return Change::Gap { newest: self.newest() },
                None => wake.await,
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let Some(hub) = self.hub.upgrade() else { return };
        let mut state = hub.lock();
        if let Some(streams) = state.owners.get_mut(&self.owner) {
            streams.remove(&self.id);
            if streams.is_empty() {
                state.owners.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(owner: &str, topic: &str, revision: u64) -> SignalEvent {
        SignalEvent { owner: owner.into(), topic: topic.into(), position: revision, revision }
    }

    fn hub(per_owner: usize) -> Arc<Hub> {
        Arc::new(Hub { per_owner, state: Mutex::default() })
    }

    #[tokio::test]
    async fn a_stream_gets_its_owners_topics_only_and_the_newest_of_each() {
        let hub = hub(8);
        let mut all = hub.subscribe("ann", None).unwrap();
        let mut one = hub.subscribe("ann", Some("t1")).unwrap();
        hub.deliver(event("bob", "team:t1", 9));
        for revision in 1..=3 {
            hub.deliver(event("ann", "team:t1", revision));
        }
        // Out of order, and one without a revision.
        hub.deliver(event("ann", "team:t1", 2));
        hub.deliver(event("ann", "team:t1", 0));
        hub.deliver(event("ann", "team:t2", 7));
        assert_eq!(all.next().await, Change::Topic { topic: "team:t1".into(), revision: 3 });
        assert_eq!(all.next().await, Change::Topic { topic: "team:t2".into(), revision: 7 });
        assert_eq!(one.next().await, Change::Topic { topic: "team:t1".into(), revision: 3 });
        assert!(one.stream.pending().topics.is_empty() && all.stream.pending().topics.is_empty());
        assert_eq!(one.newest(), Some(3));
        hub.deliver(event("ann", "team:t1", 1));
        assert_eq!(one.newest(), Some(1));
        hub.deliver(event("ann", "team:t3", 0));
        assert_eq!(hub.subscribe("ann", Some("t3")).unwrap().newest(), None);
    }

    #[tokio::test]
    async fn too_many_topics_and_lost_signals_become_one_gap() {
        let hub = hub(8);
        let mut all = hub.subscribe("ann", None).unwrap();
        for number in 0..=MAX_PENDING {
            hub.deliver(event("ann", &format!("t{number}"), 1));
        }
        assert_eq!(all.next().await, Change::Gap { newest: None });
        assert!(all.stream.pending().topics.is_empty());
        let mut one = hub.subscribe("ann", Some("t1")).unwrap();
        assert_eq!(one.newest(), Some(1));
        hub.gap();
        assert_eq!(one.next().await, Change::Gap { newest: None });
    }

    #[test]
    fn places_are_bounded_and_given_back() {
        let hub = hub(2);
        let first = hub.subscribe("ann", None).unwrap();
        let _second = hub.subscribe("ann", None).unwrap();
        assert!(hub.subscribe("ann", None).is_none());
        assert!(hub.subscribe("bob", None).is_some());
        drop(first);
        assert!(hub.subscribe("ann", None).is_some());
    }
}
