//! The contract of `storage` (`wit/storage.wit`), held against every backend.

mod limits;
mod migration;
mod model;
mod tables;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use agent_teams_host::storage::database::Database;
use agent_teams_host::storage::{CommitError, Limits, MemoryStore, SqliteStore, Store, Transaction};
use limits::*;
use model::*;

/// A store under test, and what must live as long as it.
struct Subject {
    store: Arc<dyn Store>,
    _folder: Option<tempfile::TempDir>,
}

impl std::ops::Deref for Subject {
    type Target = dyn Store;
    fn deref(&self) -> &Self::Target {
        self.store.as_ref()
    }
}

fn memory(limits: Limits) -> Subject {
    Subject { store: Arc::new(MemoryStore::with_limits(limits)), _folder: None }
}

fn sqlite(limits: Limits) -> Subject {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(&folder.path().join("test.db")).unwrap();
    Subject { store: Arc::new(SqliteStore::with_limits(db, limits).unwrap()), _folder: Some(folder) }
}

type Make = fn(Limits) -> Subject;

/// Every test runs once on each backend.
macro_rules! contract {
    ($($name:ident)*) => {
        mod on_memory {
            $(#[test] fn $name() { super::run(super::$name(super::memory)); })*
        }
        mod on_sqlite {
            $(#[test] fn $name() { super::run(super::$name(super::sqlite)); })*
        }
    };
}

contract! {
    own_writes_are_read_back
    a_snapshot_does_not_move
    a_new_transaction_sees_the_last_commit
    scans_go_both_ways_with_limits
    scans_merge_own_writes
    keys_are_ordered_by_bytes
    odd_texts_are_kept
    a_changed_read_is_a_conflict
    a_read_of_nothing_is_a_read
    write_skew_is_caught
    phantoms_are_caught_where_it_looked
    phantoms_are_caught_going_down
    blind_writes_do_not_conflict
    an_equal_value_wakes_no_conflict
    a_commit_without_effect_always_succeeds
    a_commit_without_writes_always_succeeds
    dropping_undoes_everything
    concurrent_counters_lose_nothing
    concurrent_transfers_keep_the_sum
    an_abandoned_commit_is_whole
    bounds_hold_exactly
    the_whole_transaction_is_bounded
    what_is_read_is_bounded
    a_refused_write_leaves_the_transaction_usable
    old_transactions_expire
    random_transactions_match_the_model
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap().block_on(test);
}

/// Puts (or deletes) and commits.
async fn write(store: &dyn Store, writes: &[(&str, Option<&str>)]) {
    let mut tx = store.begin().unwrap();
    for (key, value) in writes {
        match value {
            Some(value) => tx.put((*key).into(), (*value).into()).unwrap(),
            None => tx.delete((*key).into()).unwrap(),
        }
    }
    tx.commit().await.unwrap();
}

async fn fill(store: &dyn Store, keys: &[&str]) {
    let writes: Vec<_> = keys.iter().map(|key| (*key, Some("1"))).collect();
    write(store, &writes).await;
}

fn get(store: &dyn Store, key: &str) -> Option<String> {
    store.begin().unwrap().get(key).unwrap()
}

fn keys(tx: &mut Box<dyn Transaction>, start: &str, end: &str, limit: u32, reverse: bool) -> Vec<String> {
    tx.scan(start, end, limit, reverse).unwrap().into_iter().map(|(key, _)| key).collect()
}

async fn own_writes_are_read_back(make: Make) {
    let store = make(Limits::default());
    fill(&*store, &["a"]).await;
    let mut tx = store.begin().unwrap();
    assert_eq!(tx.get("a").unwrap().as_deref(), Some("1"));
    tx.put("a".into(), "2".into()).unwrap();
    tx.put("b".into(), String::new()).unwrap();
    assert_eq!(tx.get("a").unwrap().as_deref(), Some("2"));
    assert_eq!(tx.get("b").unwrap().as_deref(), Some(""));
    tx.delete("a".into()).unwrap();
    assert_eq!(tx.get("a").unwrap(), None);
    tx.put("a".into(), "3".into()).unwrap();
    tx.delete("b".into()).unwrap();
    tx.delete("absent".into()).unwrap();
    tx.commit().await.unwrap();
    assert_eq!(get(&*store, "a").as_deref(), Some("3"));
    assert_eq!(get(&*store, "b"), None);
}

async fn a_snapshot_does_not_move(make: Make) {
    let store = make(Limits::default());
    fill(&*store, &["a", "b"]).await;
    let mut before = store.begin().unwrap();
    write(&*store, &[("a", Some("2")), ("b", None), ("c", Some("1"))]).await;
    assert_eq!(before.get("a").unwrap().as_deref(), Some("1"));
    assert_eq!(keys(&mut before, "", "z", 10, false), ["a", "b"]);
    let mut after = store.begin().unwrap();
    assert_eq!(keys(&mut after, "", "z", 10, false), ["a", "c"]);
    write(&*store, &[("a", None), ("c", None)]).await;
    assert_eq!(keys(&mut before, "", "z", 10, true), ["b", "a"]);
    assert_eq!(after.get("a").unwrap().as_deref(), Some("2"));
    before.commit().await.unwrap();
    assert_eq!(keys(&mut store.begin().unwrap(), "", "z", 10, false), [""; 0]);
}

async fn a_new_transaction_sees_the_last_commit(make: Make) {
    let store = make(Limits::default());
    for n in 0..100 {
        // Read and written: an older snapshot would show, or would conflict.
        let mut tx = store.begin().unwrap();
        let old = tx.get("n").unwrap();
        assert_eq!(old, (n > 0).then(|| (n - 1).to_string()));
        tx.put("n".into(), n.to_string()).unwrap();
        tx.commit().await.unwrap();
    }
}

async fn scans_go_both_ways_with_limits(make: Make) {
    let store = make(Limits::default());
    fill(&*store, &["a", "b", "c", "d"]).await;
    let mut tx = store.begin().unwrap();
    assert_eq!(tx.scan("a", "c", 1, false).unwrap(), [("a".to_owned(), "1".to_owned())]);
    for (start, end, limit, up, down) in [
        ("", "z", 9, "abcd", "dcba"),
        ("b", "d", 9, "bc", "cb"),
        ("a\0", "c\0", 9, "bc", "cb"),
        ("", "z", 2, "ab", "dc"),
        ("", "z", 4, "abcd", "dcba"),
        ("", "z", u32::MAX, "abcd", "dcba"),
        ("", "z", 0, "", ""),
        ("b", "b", 9, "", ""),
        ("c", "b", 9, "", ""),
        ("e", "z", 9, "", ""),
    ] {
        assert_eq!(keys(&mut tx, start, end, limit, false).concat(), up, "{start:?}..{end:?} {limit}");
        assert_eq!(keys(&mut tx, start, end, limit, true).concat(), down, "{start:?}..{end:?} {limit}");
    }
}

async fn scans_merge_own_writes(make: Make) {
    let store = make(Limits::default());
    fill(&*store, &["b", "d", "f", "h"]).await;
    let mut tx = store.begin().unwrap();
    for key in ["a", "c", "d", "i"] {
        tx.put(key.into(), "own".into()).unwrap();
    }
    for key in ["b", "h", "g"] {
        tx.delete(key.into()).unwrap();
    }
    let all: Vec<_> = [("a", "own"), ("c", "own"), ("d", "own"), ("f", "1"), ("i", "own")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
    let backwards: Vec<_> = all.iter().rev().cloned().collect();
    for limit in 0..7 {
        let expected = &all[..all.len().min(limit)];
        assert_eq!(tx.scan("", "z", limit as u32, false).unwrap(), expected);
        let expected = &backwards[..all.len().min(limit)];
        assert_eq!(tx.scan("", "z", limit as u32, true).unwrap(), expected);
    }
    assert_eq!(keys(&mut tx, "c", "f", 9, false).concat(), "cd");
    assert_eq!(keys(&mut tx, "c", "f", 9, true).concat(), "dc");
}

async fn keys_are_ordered_by_bytes(make: Make) {
    let store = make(Limits::default());
    // By UTF-16 units the emoji would come before U+FFFD; without regard to
    // case "a" before "B".
    let ordered = ["", "B", "a", "a\0", "a\0b", "ab", "é", "任务", "团队", "\u{fffd}", "🦀", "🦀队"];
    assert!(ordered.is_sorted());
    let mut mixed = ordered;
    mixed.reverse();
    mixed.swap(1, 7);
    fill(&*store, &mixed).await;
    let mut tx = store.begin().unwrap();
    assert_eq!(keys(&mut tx, "", "\u{10ffff}", 99, false), ordered);
    assert_eq!(keys(&mut tx, "任", "\u{fffd}", 99, true), ["团队", "任务"]);
    // The same order among own writes.
    let other = make(Limits::default());
    let mut tx = other.begin().unwrap();
    for key in mixed {
        tx.put(key.into(), "1".into()).unwrap();
    }
    assert_eq!(keys(&mut tx, "", "\u{10ffff}", 99, false), ordered);
}

async fn odd_texts_are_kept(make: Make) {
    let store = make(Limits::default());
    let values = ["", "\0", "a\0b", "\u{feff}x", "'; DROP TABLE kv; --", "%_*", "🦀\u{10ffff}", "1", "1.0", "null"];
    for value in values {
        write(&*store, &[(value, Some(value))]).await;
    }
    for value in values {
        assert_eq!(get(&*store, value).as_deref(), Some(value));
    }
}

async fn a_changed_read_is_a_conflict(make: Make) {
    for change in [Some("2"), None] {
        let store = make(Limits::default());
        fill(&*store, &["a", "b"]).await;
        let mut tx = store.begin().unwrap();
        tx.get("a").unwrap();
        tx.put("mine".into(), "1".into()).unwrap();
        write(&*store, &[("b", Some("2"))]).await;
        write(&*store, &[("a", change)]).await;
        assert_eq!(tx.commit().await, Err(CommitError::Conflict));
        assert_eq!(get(&*store, "mine"), None);
        // What it had read is as it was again: still a change since.
        let mut tx = store.begin().unwrap();
        tx.get("b").unwrap();
        tx.put("mine".into(), "1".into()).unwrap();
        write(&*store, &[("b", Some("3"))]).await;
        write(&*store, &[("b", Some("2"))]).await;
        assert_eq!(tx.commit().await, Err(CommitError::Conflict));
    }
}

async fn a_read_of_nothing_is_a_read(make: Make) {
    let store = make(Limits::default());
    let mut tx = store.begin().unwrap();
    assert_eq!(tx.get("name").unwrap(), None);
    tx.put("name".into(), "mine".into()).unwrap();
    write(&*store, &[("name", Some("theirs"))]).await;
    assert_eq!(tx.commit().await, Err(CommitError::Conflict));
    assert_eq!(get(&*store, "name").as_deref(), Some("theirs"));
}

async fn write_skew_is_caught(make: Make) {
    let store = make(Limits::default());
    fill(&*store, &["a", "b"]).await;
    let (mut one, mut two) = (store.begin().unwrap(), store.begin().unwrap());
    // Each may take one away if the other is there.
    one.get("b").unwrap();
    two.get("a").unwrap();
    one.delete("a".into()).unwrap();
    two.delete("b".into()).unwrap();
    one.commit().await.unwrap();
    assert_eq!(two.commit().await, Err(CommitError::Conflict));
    assert_eq!(get(&*store, "b").as_deref(), Some("1"));
}

/// Scans, lets somebody else write `key`, and says how the commit went.
async fn scan_against(
    store: &dyn Store,
    (start, end): (&str, &str),
    limit: u32,
    reverse: bool,
    key: &str,
) -> Result<(), CommitError> {
    let mut tx = store.begin().unwrap();
    tx.scan(start, end, limit, reverse).unwrap();
    tx.put("result".into(), format!("{key} {limit}")).unwrap();
    let old = get(store, key);
    write(store, &[(key, Some("changed"))]).await;
    let result = tx.commit().await;
    write(store, &[(key, old.as_deref())]).await;
    result
}

async fn phantoms_are_caught_where_it_looked(make: Make) {
    let store = make(Limits::default());
    fill(&*store, &["b", "d", "f"]).await;
    for (limit, key, seen) in [
        (9, "a", false),
        (9, "b", true),
        (9, "c", true),
        (9, "g", true),
        (9, "h", false),
        // Three entries are there: reaching the limit, it looked no further.
        (3, "f", true),
        (3, "f\0", false),
        (2, "c", true),
        (2, "d", true),
        (2, "d\0", false),
        (2, "f", false),
        (0, "c", false),
    ] {
        let expected = if seen { Err(CommitError::Conflict) } else { Ok(()) };
        assert_eq!(scan_against(&*store, ("b", "h"), limit, false, key).await, expected, "{limit} {key:?}");
    }
}

async fn phantoms_are_caught_going_down(make: Make) {
    let store = make(Limits::default());
    fill(&*store, &["b", "d", "f"]).await;
    for (limit, key, seen) in [
        (9, "a", true),
        (9, "g", true),
        (9, "h", false),
        (2, "g", true),
        (2, "f", true),
        (2, "e", true),
        (2, "d", true),
        (2, "c\u{10ffff}", false),
        (2, "b", false),
    ] {
        let expected = if seen { Err(CommitError::Conflict) } else { Ok(()) };
        assert_eq!(scan_against(&*store, ("a", "h"), limit, true, key).await, expected, "{limit} {key:?}");
    }
}

async fn blind_writes_do_not_conflict(make: Make) {
    let store = make(Limits::default());
    let (mut one, mut two) = (store.begin().unwrap(), store.begin().unwrap());
    one.put("a".into(), "one".into()).unwrap();
    // Reading one's own write is no read of the store.
    assert_eq!(one.get("a").unwrap().as_deref(), Some("one"));
    two.put("a".into(), "two".into()).unwrap();
    two.commit().await.unwrap();
    one.commit().await.unwrap();
    assert_eq!(get(&*store, "a").as_deref(), Some("one"));
}

async fn an_equal_value_wakes_no_conflict(make: Make) {
    let store = make(Limits::default());
    fill(&*store, &["a", "b"]).await;
    let mut tx = store.begin().unwrap();
    keys(&mut tx, "", "z", 9, false);
    tx.put("b".into(), "2".into()).unwrap();
    write(&*store, &[("a", Some("1")), ("absent", None)]).await;
    tx.commit().await.unwrap();
}

async fn a_commit_without_effect_always_succeeds(make: Make) {
    let store = make(Limits::default());
    fill(&*store, &["a", "b"]).await;
    let mut tx = store.begin().unwrap();
    tx.get("a").unwrap();
    tx.put("b".into(), "1".into()).unwrap();
    tx.delete("absent".into()).unwrap();
    write(&*store, &[("a", Some("2"))]).await;
    tx.commit().await.unwrap();
    // But not when the written key itself was changed meanwhile: then writing
    // it did mean something.
    let mut tx = store.begin().unwrap();
    tx.get("a").unwrap();
    tx.put("b".into(), "2".into()).unwrap();
    write(&*store, &[("a", Some("3")), ("b", Some("2"))]).await;
    assert_eq!(tx.commit().await, Err(CommitError::Conflict));
}

async fn a_commit_without_writes_always_succeeds(make: Make) {
    let store = make(Limits::default());
    fill(&*store, &["a"]).await;
    store.begin().unwrap().commit().await.unwrap();
    let mut tx = store.begin().unwrap();
    tx.get("a").unwrap();
    write(&*store, &[("a", Some("2"))]).await;
    tx.commit().await.unwrap();
}

async fn dropping_undoes_everything(make: Make) {
    let store = make(Limits::default());
    // More often than there are connections.
    for _ in 0..600 {
        let mut tx = store.begin().unwrap();
        tx.put("a".into(), "1".into()).unwrap();
        tx.get("b").unwrap();
    }
    assert_eq!(get(&*store, "a"), None);
}

/// Runs `f` in a transaction until it commits.
async fn retry(store: &dyn Store, mut f: impl FnMut(&mut Box<dyn Transaction>)) {
    loop {
        let mut tx = store.begin().unwrap();
        f(&mut tx);
        match tx.commit().await {
            Ok(()) => return,
            Err(CommitError::Conflict) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    }
}

fn number(tx: &mut Box<dyn Transaction>, key: &str) -> i64 {
    tx.get(key).unwrap().map_or(0, |text| text.parse().unwrap())
}

async fn concurrent_counters_lose_nothing(make: Make) {
    let store = Arc::new(make(Limits::default()));
    let writers: Vec<_> = (0..16)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                for _ in 0..25 {
                    retry(&**store, |tx| {
                        let n = number(tx, "n");
                        tx.put("n".into(), (n + 1).to_string()).unwrap();
                    })
                    .await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(get(&**store, "n").as_deref(), Some("400"));
}

async fn concurrent_transfers_keep_the_sum(make: Make) {
    let store = Arc::new(make(Limits::default()));
    let accounts: Vec<_> = (0..8).map(|n| format!("account/{n}")).collect();
    write(&**store, &accounts.iter().map(|key| (key.as_str(), Some("10"))).collect::<Vec<_>>()).await;
    let sum = |tx: &mut Box<dyn Transaction>| -> i64 {
        tx.scan("account/", "account0", 99, false).unwrap().iter().map(|(_, n)| n.parse::<i64>().unwrap()).sum()
    };
    let tasks: Vec<_> = (0..8_usize)
        .map(|task| {
            let (store, accounts) = (store.clone(), accounts.clone());
            tokio::spawn(async move {
                for step in 0..30_usize {
                    let (from, to) = (&accounts[(task * 5 + step) % 8], &accounts[(task * 3 + step * 7 + 1) % 8]);
                    if from == to {
                        continue;
                    }
                    retry(&**store, |tx| {
                        let (a, b) = (number(tx, from), number(tx, to));
                        if a > 0 {
                            tx.put(from.clone(), (a - 1).to_string()).unwrap();
                            tx.put(to.clone(), (b + 1).to_string()).unwrap();
                        }
                    })
                    .await;
                    assert_eq!(sum(&mut store.begin().unwrap()), 80);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(sum(&mut store.begin().unwrap()), 80);
}

async fn an_abandoned_commit_is_whole(make: Make) {
    let store = make(Limits::default());
    for n in 0..50 {
        let mut tx = store.begin().unwrap();
        tx.put("a".into(), n.to_string()).unwrap();
        tx.put("b".into(), n.to_string()).unwrap();
        let mut commit: Pin<Box<dyn Future<Output = _> + Send>> = tx.commit();
        // Begun, then given up.
        let _ = commit.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(commit);
        let mut tx = store.begin().unwrap();
        assert_eq!(tx.get("a").unwrap(), tx.get("b").unwrap());
    }
    // It does not stand in anybody's way for longer than it lasts.
    retry(&*store, |tx| {
        tx.get("a").unwrap();
        tx.put("a".into(), "end".into()).unwrap();
    })
    .await;
}
