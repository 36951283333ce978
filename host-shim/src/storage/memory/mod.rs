//! The component's records in the memory of the process: for tests, and for
//! trying things out. Same rules as the database, nothing survives.

mod agents;
mod tables;
mod users;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use super::recent::Recent;
use super::transaction::{Backend, Buffered, Change, Verdict};
use super::{CommitError, Limits, Store, StoreError, Transaction};

pub use tables::MemoryTables;

/// What a commit shall do instead of what it would do. For tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitFault {
    /// Answers "conflict"; nothing is written.
    Conflict,
    /// Answers "unavailable"; nothing is written.
    NotWritten,
    /// Answers "unknown", and it was written (unless it conflicts).
    UnknownWritten,
    /// Answers "unknown", and nothing was written.
    UnknownNotWritten,
}

/// Records in memory. Cheap to clone; clones share the records.
#[derive(Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    limits: Limits,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store with other bounds.
    pub fn with_limits(limits: Limits) -> Self {
        Self { state: Arc::default(), limits }
    }

    /// For tests: the next commit that has writes, and that no earlier fault
    /// is meant for, behaves as `fault` says.
    pub fn fail_next(&self, fault: CommitFault) {
        lock(&self.state).faults.push_back(fault);
    }
}

impl Store for MemoryStore {
    fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        let mut state = lock(&self.state);
        let version = state.recent.newest();
        *state.open.entry(version).or_default() += 1;
        drop(state);
        let open = Open { state: self.state.clone(), version };
        Ok(Box::new(Buffered::new(open, self.limits)))
    }
}

/// The values of one key, oldest first, each with the commit that set it;
/// none where it was deleted.
type Versions = Vec<(u64, Option<Arc<str>>)>;

#[derive(Default)]
struct State {
    records: BTreeMap<String, Versions>,
    recent: Recent,
    /// How many snapshots are open at each version.
    open: BTreeMap<u64, usize>,
    /// Keys with something to forget once no snapshot is older than the
    /// commit named.
    stale: VecDeque<(u64, String)>,
    faults: VecDeque<CommitFault>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(|e| e.into_inner())
}

/// The value as of `version`.
fn at(versions: &Versions, version: u64) -> Option<&str> {
    versions.iter().rev().find(|(since, _)| *since <= version).and_then(|(_, value)| value.as_deref())
}

impl State {
    fn newest(&self, key: &str) -> Option<&str> {
        self.records.get(key).and_then(|versions| at(versions, u64::MAX))
    }

    /// Checks and writes; false is a conflict.
    fn apply(&mut self, change: Change) -> bool {
        let current = |key: &str| Ok::<_, std::convert::Infallible>(self.newest(key).map(str::to_owned));
        let Ok(verdict) = change.decide(&self.recent, current);
        if verdict != Verdict::Apply {
            return verdict == Verdict::Nothing;
        }
        let changed: Vec<_> =
            change.writes.into_iter().filter(|(key, value)| self.newest(key) != value.as_deref()).collect();
        if changed.is_empty() {
            return true;
        }
        let version = self.recent.push(changed.iter().map(|(key, _)| key.clone()).collect());
        for (key, value) in changed {
            let versions = self.records.entry(key.clone()).or_default();
            versions.push((version, value.map(Arc::from)));
            self.stale.push_back((version, key));
        }
        self.forget();
        true
    }

    /// Drops the values that no open or later snapshot can see.
    fn forget(&mut self) {
        let oldest = self.open.keys().next().copied().unwrap_or(u64::MAX);
        while self.stale.front().is_some_and(|(version, _)| *version <= oldest) {
            let Some((version, key)) = self.stale.pop_front() else { break };
            let Some(versions) = self.records.get_mut(&key) else { continue };
            versions.retain(|(since, _)| *since >= version);
            if matches!(versions.as_slice(), [(_, None)]) {
                self.records.remove(&key);
            }
        }
    }
}

/// An open snapshot.
struct Open {
    state: Arc<Mutex<State>>,
    version: u64,
}

impl Backend for Open {
    fn get(&mut self, key: &str) -> Result<Option<String>, StoreError> {
        let state = lock(&self.state);
        Ok(state.records.get(key).and_then(|versions| at(versions, self.version)).map(str::to_owned))
    }

    fn scan(
        &mut self,
        start: &str,
        end: &str,
        reverse: bool,
        visit: &mut dyn FnMut(&str, &str) -> bool,
    ) -> Result<(), StoreError> {
        let state = lock(&self.state);
        let mut range = state.records.range::<str, _>((Bound::Included(start), Bound::Excluded(end)));
        while let Some((key, versions)) = if reverse { range.next_back() } else { range.next() } {
            if let Some(value) = at(versions, self.version)
                && !visit(key, value)
            {
                break;
            }
        }
        Ok(())
    }

    async fn commit(self, change: Change) -> Result<(), CommitError> {
        let mut state = lock(&self.state);
        let fault = state.faults.pop_front();
        match fault {
            Some(CommitFault::Conflict) => return Err(CommitError::Conflict),
            Some(CommitFault::NotWritten) => return Err(CommitError::Unavailable("asked for by a test".into())),
            Some(CommitFault::UnknownNotWritten) => return Err(CommitError::Unknown("asked for by a test".into())),
            Some(CommitFault::UnknownWritten) | None => {}
        }
        if !state.apply(change) {
            return Err(CommitError::Conflict);
        }
        match fault {
            Some(_) => Err(CommitError::Unknown("asked for by a test".into())),
            None => Ok(()),
        }
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        if let Some(count) = state.open.get_mut(&self.version) {
            *count -= 1;
            if *count == 0 {
                state.open.remove(&self.version);
                state.forget();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn write(store: &MemoryStore, key: &str, value: Option<&str>) -> Result<(), CommitError> {
        let mut tx = store.begin().unwrap();
        match value {
            Some(value) => tx.put(key.into(), value.into()).unwrap(),
            None => tx.delete(key.into()).unwrap(),
        }
        tx.commit().await
    }

    fn get(store: &MemoryStore, key: &str) -> Option<String> {
        store.begin().unwrap().get(key).unwrap()
    }

    #[tokio::test]
    async fn faults_do_what_they_say_once_and_in_order() {
        let store = MemoryStore::new();
        let faults = [
            CommitFault::Conflict,
            CommitFault::NotWritten,
            CommitFault::UnknownNotWritten,
            CommitFault::UnknownWritten,
        ];
        faults.into_iter().for_each(|fault| store.fail_next(fault));
        // Without writes there is nothing that could fail.
        store.begin().unwrap().commit().await.unwrap();
        assert_eq!(write(&store, "a", Some("1")).await, Err(CommitError::Conflict));
        assert!(matches!(write(&store, "a", Some("1")).await, Err(CommitError::Unavailable(_))));
        assert!(matches!(write(&store, "a", Some("1")).await, Err(CommitError::Unknown(_))));
        assert_eq!(get(&store, "a"), None);
        assert!(matches!(write(&store, "a", Some("1")).await, Err(CommitError::Unknown(_))));
        assert_eq!(get(&store, "a").as_deref(), Some("1"));
        write(&store, "a", Some("2")).await.unwrap();
    }

    #[tokio::test]
    async fn what_nobody_can_see_is_forgotten() {
        let store = MemoryStore::new();
        write(&store, "a", Some("0")).await.unwrap();
        write(&store, "gone", Some("0")).await.unwrap();
        let mut old = store.begin().unwrap();
        for n in 1..100 {
            write(&store, "a", Some(&n.to_string())).await.unwrap();
        }
        write(&store, "gone", None).await.unwrap();
        assert_eq!(old.get("a").unwrap().as_deref(), Some("0"));
        assert_eq!(old.get("gone").unwrap().as_deref(), Some("0"));
        drop(old);
        let state = lock(&store.state);
        assert_eq!(state.records.len(), 1);
        assert_eq!(state.records["a"].len(), 1);
        assert!(state.stale.is_empty() && state.open.is_empty());
    }
}
