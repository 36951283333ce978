//! The store of a simulation: an ordered map with snapshots and optimistic
//! commits, as `wit/storage.wit` asks, and with faults at every commit.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::rc::Rc;

use agent_teams_plugin::host::{CommitError, StoreError, Tx};

use super::world::{Frame, World};

type Map = BTreeMap<String, Rc<str>>;

/// One key that a commit changed: before and after.
pub type Change = (String, Option<Rc<str>>, Option<Rc<str>>);

/// The committed state. A snapshot shares the map until somebody writes.
#[derive(Debug, Default)]
pub struct Store {
    map: Rc<Map>,
    version: u64,
    /// What each commit since the oldest open transaction changed.
    log: Vec<(u64, Vec<String>)>,
    open: usize,
}

impl Store {
    /// A committed value.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.map.get(key).map(|v| &**v)
    }

    /// All committed keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.map.keys().map(String::as_str)
    }
}

/// The part of a range that was looked at.
#[derive(Debug)]
struct Looked {
    from: String,
    to: Bound<String>,
}

impl Looked {
    fn holds(&self, key: &str) -> bool {
        key >= self.from.as_str()
            && match &self.to {
                Bound::Included(end) => key <= end.as_str(),
                Bound::Excluded(end) => key < end.as_str(),
                Bound::Unbounded => true,
            }
    }
}

/// One transaction.
pub struct SimTx<'w> {
    world: &'w World,
    snapshot: Rc<Map>,
    version: u64,
    reads: RefCell<BTreeSet<String>>,
    ranges: RefCell<Vec<Looked>>,
    writes: RefCell<BTreeMap<String, Option<Rc<str>>>>,
}

impl<'w> SimTx<'w> {
    /// Opens a transaction on the newest snapshot.
    pub fn begin(world: &'w World) -> Self {
        let mut store = world.store.borrow_mut();
        store.open += 1;
        world.frame(|f: &mut Frame| f.transactions += 1);
        Self {
            world,
            snapshot: store.map.clone(),
            version: store.version,
            reads: RefCell::default(),
            ranges: RefCell::default(),
            writes: RefCell::default(),
        }
    }

    fn conflicts(&self, store: &Store) -> bool {
        if store.version == self.version {
            return false;
        }
        let (reads, ranges) = (self.reads.borrow(), self.ranges.borrow());
        store
            .log
            .iter()
            .filter(|(version, _)| *version > self.version)
            .flat_map(|(_, keys)| keys)
            .any(|key| reads.contains(key) || ranges.iter().any(|r| r.holds(key)))
    }

    /// Writes everything at once; gives what really changed.
    fn apply(&mut self) -> Vec<Change> {
        self.snapshot = Rc::default();
        let mut store = self.world.store.borrow_mut();
        let store = &mut *store;
        let map = Rc::make_mut(&mut store.map);
        let mut changes = Vec::new();
        for (key, new) in self.writes.take() {
            let old = map.get(&key).cloned();
            if old == new {
                continue;
            }
            match &new {
                Some(value) => map.insert(key.clone(), value.clone()),
                None => map.remove(&key),
            };
            changes.push((key, old, new));
        }
        if !changes.is_empty() {
            store.version += 1;
            if store.open > 1 {
                store.log.push((store.version, changes.iter().map(|(key, ..)| key.clone()).collect()));
            }
        }
        changes
    }
}

impl Drop for SimTx<'_> {
    fn drop(&mut self) {
        let mut store = self.world.store.borrow_mut();
        store.open -= 1;
        if store.open == 0 {
            store.log.clear();
        }
        drop(store);
        self.world.frame(|f| f.transactions = f.transactions.saturating_sub(1));
    }
}

impl Tx for SimTx<'_> {
    fn get(&self, key: &str) -> Result<Option<String>, StoreError> {
        if let Some(own) = self.writes.borrow().get(key) {
            return Ok(own.as_deref().map(String::from));
        }
        if self.world.fault(self.world.knobs.expired) {
            return Err(StoreError::Expired);
        }
        self.reads.borrow_mut().insert(key.into());
        Ok(self.snapshot.get(key).map(|v| String::from(&**v)))
    }

    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<String>>, StoreError> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    fn scan(&self, start: &str, end: &str, limit: u32, reverse: bool) -> Result<Vec<(String, String)>, StoreError> {
        if start >= end || limit == 0 {
            return Ok(Vec::new());
        }
        let range = (Bound::Included(start.to_string()), Bound::Excluded(end.to_string()));
        let writes = self.writes.borrow();
        let mut found: Vec<(String, String)> = Vec::new();
        let limit = limit as usize;
        // Enough of the snapshot to fill the page even if every own delete hits it.
        let hidden = writes.range::<String, _>(range.clone()).count();
        let stored: Vec<(&String, &Rc<str>)> = if reverse {
            self.snapshot.range::<String, _>(range.clone()).rev().take(limit + hidden).collect()
        } else {
            self.snapshot.range::<String, _>(range.clone()).take(limit + hidden).collect()
        };
        found.extend(
            stored.iter().filter(|(k, _)| !writes.contains_key(*k)).map(|(k, v)| ((*k).clone(), v.to_string())),
        );
        found
            .extend(writes.range::<String, _>(range).filter_map(|(k, v)| Some((k.clone(), v.as_deref()?.to_string()))));
        found.sort();
        if reverse {
            found.reverse();
        }
        found.truncate(limit);
        let looked = match found.last() {
            Some((last, _)) if found.len() == limit && !reverse => {
                Looked { from: start.into(), to: Bound::Included(last.clone()) }
            }
            Some((last, _)) if found.len() == limit => Looked { from: last.clone(), to: Bound::Excluded(end.into()) },
            _ => Looked { from: start.into(), to: Bound::Excluded(end.into()) },
        };
        self.ranges.borrow_mut().push(looked);
        Ok(found)
    }

    fn put(&self, key: &str, value: &str) -> Result<(), StoreError> {
        assert!(key.len() <= 1024 && value.len() <= 1 << 20, "a key or value over the contract's bound: {key}");
        self.writes.borrow_mut().insert(key.into(), Some(value.into()));
        Ok(())
    }

    fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.writes.borrow_mut().insert(key.into(), None);
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<(), CommitError> {
        if self.writes.borrow().is_empty() {
            return Ok(());
        }
        let world = self.world;
        world.reenter_at_commit();
        world.crash_point("before a commit");
        let knobs = &world.knobs;
        if world.fault(knobs.commit_conflict) {
            return Err(CommitError::Conflict);
        }
        if world.fault(knobs.commit_unavailable) {
            return Err(CommitError::Unavailable("injected".into()));
        }
        if world.fault(knobs.commit_unknown) {
            world.note(|| "  commit: unknown, not written".into());
            return Err(CommitError::Unknown("injected, not written".into()));
        }
        if self.conflicts(&world.store.borrow()) {
            world.note(|| "  commit: a real conflict".into());
            return Err(CommitError::Conflict);
        }
        let changes = self.apply();
        world.committed(&changes);
        world.crash_point("after a commit");
        if world.fault(knobs.commit_unknown) {
            world.note(|| "  commit: unknown, written".into());
            return Err(CommitError::Unknown("injected, written".into()));
        }
        Ok(())
    }
}
