//! Records in memory: snapshots by version, conflicts by what was read.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use agent_teams_plugin::host::{CommitError, StoreError, Tx};

/// What the next commit meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitFault {
    /// Nothing is written: a conflict.
    Conflict,
    /// Nothing is written: the store is away.
    Unavailable,
    /// It is written, but the caller does not learn that.
    UnknownWritten,
    /// It is not written, and the caller does not learn that.
    UnknownLost,
}

/// The records. Clones are the same store.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    version: u64,
    /// By key: versions and values, oldest first; no value: removed.
    records: BTreeMap<String, Vec<(u64, Option<String>)>>,
    /// Open snapshots by version.
    open: BTreeMap<u64, usize>,
    commits: u64,
    reads: u64,
    faults: VecDeque<CommitFault>,
    begins_fail: u32,
}

impl Inner {
    fn at(&self, key: &str, version: u64) -> Option<&str> {
        let versions = self.records.get(key)?;
        versions.iter().rev().find(|(v, _)| *v <= version)?.1.as_deref()
    }

    fn changed_since(&self, key: &str, version: u64) -> bool {
        self.records.get(key).and_then(|v| v.last()).is_some_and(|(v, _)| *v > version)
    }

    fn write(&mut self, key: &str, value: Option<String>) {
        let oldest = self.open.keys().next().copied().unwrap_or(self.version);
        let version = self.version;
        let versions = self.records.entry(key.into()).or_default();
        versions.push((version, value));
        // What no open snapshot can see goes.
        while versions.len() > 1 && versions[1].0 <= oldest {
            versions.remove(0);
        }
    }
}

impl MemoryStore {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn begin(&self) -> Result<MemoryTx, StoreError> {
        let mut inner = self.inner();
        if inner.begins_fail > 0 {
            inner.begins_fail -= 1;
            return Err(StoreError::Unavailable("scripted".into()));
        }
        let version = inner.version;
        *inner.open.entry(version).or_default() += 1;
        drop(inner);
        Ok(MemoryTx { store: self.clone(), version, local: RefCell::default() })
    }

    /// The next commits that write meet these, in order.
    pub fn fail_commits(&self, faults: impl IntoIterator<Item = CommitFault>) {
        self.inner().faults.extend(faults);
    }

    /// The next `times` transactions cannot begin.
    pub fn fail_begins(&self, times: u32) {
        self.inner().begins_fail = times;
    }

    /// Commits that wrote something.
    pub fn commits(&self) -> u64 {
        self.inner().commits
    }

    /// Records that were read so far.
    pub fn reads(&self) -> u64 {
        self.inner().reads
    }

    /// Everything that is stored, in the order of the keys.
    pub fn dump(&self) -> Vec<(String, String)> {
        let inner = self.inner();
        inner.records.keys().filter_map(|k| Some((k.clone(), inner.at(k, u64::MAX)?.to_owned()))).collect()
    }

    /// Writes a record past the component, such as one of another format.
    pub fn put_raw(&self, key: &str, value: &str) {
        let mut inner = self.inner();
        inner.version += 1;
        inner.write(key, Some(value.into()));
    }
}

/// What one transaction read and wrote.
#[derive(Default)]
struct Local {
    keys: BTreeSet<String>,
    ranges: Vec<(String, String)>,
    writes: BTreeMap<String, Option<String>>,
}

pub(super) struct MemoryTx {
    store: MemoryStore,
    version: u64,
    local: RefCell<Local>,
}

impl Drop for MemoryTx {
    fn drop(&mut self) {
        let mut inner = self.store.inner();
        if let Some(count) = inner.open.get_mut(&self.version) {
            *count -= 1;
            if *count == 0 {
                inner.open.remove(&self.version);
            }
        }
    }
}

impl Tx for MemoryTx {
    fn get(&self, key: &str) -> Result<Option<String>, StoreError> {
        let mut local = self.local.borrow_mut();
        if let Some(written) = local.writes.get(key) {
            return Ok(written.clone());
        }
        local.keys.insert(key.into());
        let mut inner = self.store.inner();
        inner.reads += 1;
        Ok(inner.at(key, self.version).map(Into::into))
    }

    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<String>>, StoreError> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    fn scan(&self, start: &str, end: &str, limit: u32, reverse: bool) -> Result<Vec<(String, String)>, StoreError> {
        if start >= end || limit == 0 {
            return Ok(Vec::new());
        }
        let mut local = self.local.borrow_mut();
        let mut inner = self.store.inner();
        let bounds = (Bound::Included(start.to_owned()), Bound::Excluded(end.to_owned()));
        let mut found: BTreeMap<String, String> = BTreeMap::new();
        for key in inner.records.range(bounds.clone()).map(|(k, _)| k) {
            if let Some(value) = inner.at(key, self.version) {
                found.insert(key.clone(), value.into());
            }
        }
        for (key, value) in local.writes.range(bounds) {
            match value {
                Some(value) => found.insert(key.clone(), value.clone()),
                None => found.remove(key),
            };
        }
        let limit = limit as usize;
        let all = found.len() <= limit;
        let found: Vec<(String, String)> = if reverse {
            found.into_iter().rev().take(limit).collect()
        } else {
            found.into_iter().take(limit).collect()
        };
        inner.reads += found.len() as u64;
        // Only the part that was looked at counts as read.
        let (from, to) = match found.last() {
            Some((last, _)) if !all && reverse => (last.clone(), end.to_owned()),
            Some((last, _)) if !all => (start.to_owned(), format!("{last}\0")),
            _ => (start.to_owned(), end.to_owned()),
        };
        local.ranges.push((from, to));
        Ok(found)
    }

    fn put(&self, key: &str, value: &str) -> Result<(), StoreError> {
        if key.len() > 1024 || value.len() > 1024 * 1024 {
            return Err(StoreError::TooLarge(format!("a record of {} bytes", value.len())));
        }
        self.local.borrow_mut().writes.insert(key.into(), Some(value.into()));
        Ok(())
    }

    fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.local.borrow_mut().writes.insert(key.into(), None);
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<(), CommitError> {
        let local = self.local.take();
        if local.writes.is_empty() {
            return Ok(());
        }
        let mut inner = self.store.inner();
        let fault = inner.faults.pop_front();
        match fault {
            Some(CommitFault::Conflict) => return Err(CommitError::Conflict),
            Some(CommitFault::Unavailable) => return Err(CommitError::Unavailable("scripted".into())),
            Some(CommitFault::UnknownLost) => return Err(CommitError::Unknown("scripted".into())),
            Some(CommitFault::UnknownWritten) | None => {}
        }
        let stale = local.keys.iter().any(|key| inner.changed_since(key, self.version))
            || local.ranges.iter().any(|(from, to)| {
                let bounds = (Bound::Included(from.clone()), Bound::Excluded(to.clone()));
                let mut keys = inner.records.range(bounds).map(|(k, _)| k);
                keys.any(|key| inner.changed_since(key, self.version))
            });
        if stale {
            return Err(CommitError::Conflict);
        }
        inner.version += 1;
        inner.commits += 1;
        for (key, value) in local.writes {
            // A value equal to the stored one costs nothing.
            if inner.at(&key, u64::MAX) != value.as_deref() {
                inner.write(&key, value);
            }
        }
        match fault {
            Some(_) => Err(CommitError::Unknown("scripted".into())),
            None => Ok(()),
        }
    }
}
