//! What was committed lately, so that a commit can be checked against
//! everything that was committed since its snapshot.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

/// Keys that the list remembers at most. A snapshot that is older than the
/// list counts as a conflict.
const MAX_KEYS: usize = 65_536;
/// Bytes of keys that the list remembers at most.
const MAX_KEY_BYTES: usize = 16 << 20;

/// What one transaction has looked at: single keys, and half-open ranges.
#[derive(Debug, Default)]
pub(super) struct ReadSet {
    keys: BTreeSet<String>,
    /// Start to end (exclusive). Never overlapping, never touching: a range
    /// that meets others is merged with them when it is added.
    ranges: BTreeMap<String, String>,
    bytes: usize,
}

impl ReadSet {
    /// Bytes of the keys and bounds that were recorded.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.ranges.is_empty()
    }

    pub(super) fn has_key(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    pub(super) fn add_key(&mut self, key: &str) {
        if !self.has_key(key) {
            self.bytes += key.len();
            self.keys.insert(key.to_owned());
        }
    }

    /// Adds `start` <= key < `end`.
    pub(super) fn add_range(&mut self, start: &str, end: &str) {
        if start >= end {
            return;
        }
        let (mut start, mut end) = (start.to_owned(), end.to_owned());
        // The ranges do not overlap, so of those that begin at or before the
        // new end only the last few can meet the new range.
        while let Some((s, e)) = self.ranges.range(..=end.clone()).next_back() {
            if *e < start {
                break;
            }
            let (s, e) = (s.clone(), e.clone());
            self.bytes -= s.len() + e.len();
            self.ranges.remove(&s);
            start = start.min(s);
            end = end.max(e);
        }
        self.bytes += start.len() + end.len();
        self.ranges.insert(start, end);
    }

    /// Whether a write to `key` would change something that was looked at.
    pub(super) fn covers(&self, key: &str) -> bool {
        self.keys.contains(key)
            || self
                .ranges
                .range::<str, _>((Bound::Unbounded, Bound::Included(key)))
                .next_back()
                .is_some_and(|(_, end)| key < end.as_str())
    }
}

/// One commit: the keys whose stored value it changed.
#[derive(Debug)]
struct Committed {
    keys: Vec<String>,
    bytes: usize,
}

/// An exact list of the newest commits, numbered without a gap.
///
/// A number is assigned when a commit has passed its check and its writes are
/// applied, and before it is durable. If it then fails, its entry stays: that
/// can only cost somebody a needless conflict, never miss one.
#[derive(Debug)]
pub(super) struct Recent {
    /// The number of the newest entry.
    newest: u64,
    /// The number just before the oldest entry.
    floor: u64,
    commits: VecDeque<Committed>,
    keys: usize,
    bytes: usize,
    max_keys: usize,
}

impl Default for Recent {
    fn default() -> Self {
        Self::with_max_keys(MAX_KEYS)
    }
}

impl Recent {
    fn with_max_keys(max_keys: usize) -> Self {
        Self { newest: 0, floor: 0, commits: VecDeque::new(), keys: 0, bytes: 0, max_keys }
    }

    /// The number of the newest commit; 0 before the first.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Whether a commit after `version` changed something in `reads`, or the
    /// list no longer reaches back that far.
    pub(super) fn conflicts(&self, version: u64, reads: &ReadSet) -> bool {
        if reads.is_empty() {
            return false;
        }
        match self.since(version) {
            None => true,
            Some(mut keys) => keys.any(|key| reads.covers(key)),
        }
    }

    /// Whether `key` was certainly not changed by any commit after `version`.
    pub(super) fn untouched(&self, version: u64, key: &str) -> bool {
        self.since(version).is_some_and(|mut keys| !keys.any(|k| k == key))
    }

    /// The keys changed after `version`, or none if the list is too short.
    fn since(&self, version: u64) -> Option<impl Iterator<Item = &str>> {
        let skip = usize::try_from(version.checked_sub(self.floor)?).ok()?;
        Some(self.commits.iter().skip(skip).flat_map(|c| c.keys.iter().map(String::as_str)))
    }

    /// Adds a commit and gives its number. A commit that changed nothing needs
    /// no number.
    pub(super) fn push(&mut self, keys: Vec<String>) -> u64 {
        let bytes = keys.iter().map(String::len).sum();
        self.newest += 1;
        self.keys += keys.len();
        self.bytes += bytes;
        self.commits.push_back(Committed { keys, bytes });
        while self.keys > self.max_keys || self.bytes > MAX_KEY_BYTES {
            let Some(oldest) = self.commits.pop_front() else { break };
            self.floor += 1;
            self.keys -= oldest.keys.len();
            self.bytes -= oldest.bytes;
        }
        self.newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(keys: &[&str], ranges: &[(&str, &str)]) -> ReadSet {
        let mut set = ReadSet::default();
        keys.iter().for_each(|k| set.add_key(k));
        ranges.iter().for_each(|(s, e)| set.add_range(s, e));
        set
    }

    #[test]
    fn ranges_merge_and_stay_half_open() {
        let set = reads(&[], &[("c", "f"), ("m", "p"), ("f", "h"), ("a", "b"), ("g", "n")]);
        assert_eq!(set.ranges.len(), 2);
        for (key, inside) in
            [("a", true), ("b", false), ("c", true), ("h", true), ("o", true), ("p", false), ("", false)]
        {
            assert_eq!(set.covers(key), inside, "{key}");
        }
        assert_eq!(set.bytes(), 4);
    }

    #[test]
    fn a_range_swallows_those_inside_it() {
        let set = reads(&["k"], &[("b", "c"), ("d", "e"), ("a", "z"), ("e", "f")]);
        assert_eq!(set.ranges.len(), 1);
        assert!(set.covers("y") && !set.covers("z"));
        assert_eq!(set.bytes(), 3);
    }

    #[test]
    fn an_empty_range_covers_nothing() {
        let set = reads(&[], &[("b", "b"), ("c", "a")]);
        assert!(set.is_empty());
    }

    #[test]
    fn only_later_commits_conflict() {
        let mut recent = Recent::default();
        let one = recent.push(vec!["a".into(), "b".into()]);
        recent.push(vec!["c".into()]);
        assert!(recent.conflicts(0, &reads(&["a"], &[])));
        assert!(!recent.conflicts(one, &reads(&["a"], &[("a", "c")])));
        assert!(recent.conflicts(one, &reads(&[], &[("a", "d")])));
        assert!(!recent.conflicts(recent.newest(), &reads(&[], &[("a", "z")])));
        assert!(recent.untouched(one, "a") && !recent.untouched(0, "a"));
    }

    #[test]
    fn a_snapshot_older_than_the_list_conflicts_unless_it_read_nothing() {
        let mut recent = Recent::with_max_keys(2);
        for key in ["a", "b", "c"] {
            recent.push(vec![key.into()]);
        }
        assert!(recent.conflicts(0, &reads(&["x"], &[])));
        assert!(!recent.conflicts(1, &reads(&["x"], &[])));
        assert!(!recent.conflicts(0, &reads(&[], &[])));
        assert!(!recent.untouched(0, "x"));
        // One commit larger than the whole list leaves an empty list.
        recent.push(vec!["d".into(), "e".into(), "f".into()]);
        assert!(recent.conflicts(3, &reads(&["x"], &[])));
        assert!(!recent.conflicts(4, &reads(&["x"], &[])));
    }
}
