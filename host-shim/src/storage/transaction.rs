//! The part of a transaction that every backend shares: writes are buffered
//! and seen by the own reads, what was looked at is recorded, bounds and age
//! are checked.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Bound;
use std::time::Instant;

use async_trait::async_trait;

use super::recent::{ReadSet, Recent};
use super::{CommitError, Limits, MAX_BOUND, MAX_KEY, MAX_VALUE, StoreError, Transaction};

/// One open snapshot of a backend. Dropping it frees what it holds.
pub(super) trait Backend: Send + Sized + 'static {
    /// The stored value in this snapshot.
    fn get(&mut self, key: &str) -> Result<Option<String>, StoreError>;

    /// Visits `start` <= key < `end` in this snapshot, ascending or
    /// descending, until `visit` answers false.
    fn scan(
        &mut self,
        start: &str,
        end: &str,
        reverse: bool,
        visit: &mut dyn FnMut(&str, &str) -> bool,
    ) -> Result<(), StoreError>;

    /// Gives up the snapshot, checks and applies `change` as one atomic step,
    /// in the order of all commits (see [`Change::decide`]). Durable when it
    /// returns.
    fn commit(self, change: Change) -> impl Future<Output = Result<(), CommitError>> + Send;

    /// The number of the newest commit that the snapshot surely holds.
    fn version(&self) -> u64;
}

/// What a transaction asks for at its commit.
#[derive(Debug)]
pub(super) struct Change {
    /// See [`Backend::version`].
    pub version: u64,
    pub reads: ReadSet,
    /// The new value of each key; none deletes.
    pub writes: BTreeMap<String, Option<String>>,
}

/// What the check of a [`Change`] says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Write what differs from the stored values.
    Apply,
    /// Success without a write: nothing would change, nor would it have at the
    /// snapshot, so it counts as if done there.
    Nothing,
    Conflict,
}

impl Change {
    /// Compares what was read with what was committed since. `stored` looks up
    /// a value as it is now, with everything that was applied before.
    pub(super) fn decide<E>(
        &self,
        recent: &Recent,
        mut stored: impl FnMut(&str) -> Result<Option<String>, E>,
    ) -> Result<Verdict, E> {
        if !recent.conflicts(self.version, &self.reads) {
            return Ok(Verdict::Apply);
        }
        for (key, value) in &self.writes {
            if !recent.untouched(self.version, key) || stored(key)? != *value {
                return Ok(Verdict::Conflict);
            }
        }
        Ok(Verdict::Nothing)
    }
}

/// A transaction over one snapshot of a backend.
pub(super) struct Buffered<B> {
    /// None once the transaction has expired.
    snapshot: Option<B>,
    began: Instant,
    limits: Limits,
    reads: ReadSet,
    writes: BTreeMap<String, Option<String>>,
    write_bytes: usize,
}

impl<B: Backend> Buffered<B> {
    pub(super) fn new(snapshot: B, limits: Limits) -> Self {
        Self {
            snapshot: Some(snapshot),
            began: Instant::now(),
            limits,
            reads: ReadSet::default(),
            writes: BTreeMap::new(),
            write_bytes: 0,
        }
    }

    /// The snapshot, unless it has expired: then it is freed at once.
    fn open(&mut self) -> Result<&mut B, StoreError> {
        if self.began.elapsed() >= self.limits.max_age {
            self.snapshot = None;
        }
        self.snapshot.as_mut().ok_or(StoreError::Expired)
    }

    fn write(&mut self, key: String, value: Option<String>) -> Result<(), StoreError> {
        self.open()?;
        check("a key", key.len(), MAX_KEY)?;
        let size = |key: &str, value: &Option<String>| key.len() + value.as_ref().map_or(0, String::len);
        check("a value", value.as_ref().map_or(0, String::len), MAX_VALUE)?;
        let replaced = self.writes.get(&key).map_or(0, |old| size(&key, old));
        let total = self.write_bytes - replaced + size(&key, &value);
        check("the writes of a transaction", total, self.limits.max_bytes)?;
        self.write_bytes = total;
        self.writes.insert(key, value);
        Ok(())
    }

    fn check_reads(&self, more: usize) -> Result<(), StoreError> {
        check("the keys read by a transaction", self.reads.bytes() + more, self.limits.max_bytes)
    }
}

fn check(what: &str, size: usize, bound: usize) -> Result<(), StoreError> {
    if size <= bound {
        return Ok(());
    }
    Err(StoreError::TooLarge(format!("{what} may have {bound} bytes, not {size}")))
}

/// The entries of one scan, up to a number and a size.
struct Page {
    entries: Vec<(String, String)>,
    limit: usize,
    bytes: usize,
    max_bytes: usize,
}

impl Page {
    fn full(&self) -> bool {
        self.entries.len() >= self.limit || self.bytes > self.max_bytes
    }

    fn add(&mut self, key: &str, value: &str) {
        if !self.full() {
            self.bytes += key.len() + value.len();
            self.entries.push((key.to_owned(), value.to_owned()));
        }
    }
}

#[async_trait]
impl<B: Backend> Transaction for Buffered<B> {
    fn get(&mut self, key: &str) -> Result<Option<String>, StoreError> {
        check("a key", key.len(), MAX_KEY)?;
        self.open()?;
        if let Some(own) = self.writes.get(key) {
            return Ok(own.clone());
        }
        if !self.reads.has_key(key) {
            self.check_reads(key.len())?;
        }
        let value = self.open()?.get(key)?;
        self.reads.add_key(key);
        Ok(value)
    }

    fn scan(&mut self, start: &str, end: &str, limit: u32, reverse: bool) -> Result<Vec<(String, String)>, StoreError> {
        check("a bound of a scan", start.len().max(end.len()), MAX_BOUND)?;
        self.open()?;
        if start >= end || limit == 0 {
            return Ok(Vec::new());
        }
        self.check_reads(start.len() + end.len())?;
        let Some(snapshot) = self.snapshot.as_mut() else { return Err(StoreError::Expired) };
        let mut page = Page {
            entries: Vec::new(),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            bytes: 0,
            max_bytes: self.limits.max_bytes,
        };
        // The stored entries and the own writes are merged in order; where
        // both have a key, the own write counts.
        let range = (Bound::Included(start), Bound::Excluded(end));
        let mut own = self.writes.range::<str, _>(range);
        let mut next_own = || if reverse { own.next_back() } else { own.next() };
        let mut pending = next_own();
        snapshot.scan(start, end, reverse, &mut |key, value| {
            while let Some((own_key, own_value)) = pending {
                let before = if reverse { own_key.as_str() > key } else { own_key.as_str() < key };
                if !before && own_key != key {
                    break;
                }
                if let Some(own_value) = own_value {
                    page.add(own_key, own_value);
                }
                pending = next_own();
                if own_key == key {
                    return !page.full();
                }
            }
            page.add(key, value);
            !page.full()
        })?;
        while let (Some((key, value)), false) = (pending, page.full()) {
            if let Some(value) = value {
                page.add(key, value);
            }
            pending = next_own();
        }
        if page.bytes > page.max_bytes {
            return Err(StoreError::TooLarge(format!(
                "one scan may return {} bytes; ask for fewer entries",
                page.max_bytes
            )));
        }
        // With the limit reached, nothing beyond the last entry was looked at.
        match page.entries.last() {
            Some((last, _)) if page.full() && reverse => self.reads.add_range(last, end),
            // The least key after `last` ends the half-open range.
            Some((last, _)) if page.full() => self.reads.add_range(start, &format!("{last}\0")),
            _ => self.reads.add_range(start, end),
        }
        Ok(page.entries)
    }

    fn put(&mut self, key: String, value: String) -> Result<(), StoreError> {
        self.write(key, Some(value))
    }

    fn delete(&mut self, key: String) -> Result<(), StoreError> {
        self.write(key, None)
    }

    async fn commit(mut self: Box<Self>) -> Result<(), CommitError> {
        if self.writes.is_empty() {
            return Ok(());
        }
        if self.open().is_err() {
            return Err(CommitError::Conflict);
        }
        let Some(snapshot) = self.snapshot.take() else { return Err(CommitError::Conflict) };
        let change = Change { version: snapshot.version(), reads: self.reads, writes: self.writes };
        snapshot.commit(change).await
    }
}
