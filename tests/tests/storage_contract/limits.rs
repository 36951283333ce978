//! Bounds and age.

use std::time::Duration;

use agent_teams_host::storage::{CommitError, Limits, MAX_BOUND, MAX_KEY, MAX_VALUE, StoreError};

use super::{Make, get, write};

pub async fn bounds_hold_exactly(make: Make) {
    let store = make(Limits::default());
    let mut tx = store.begin().unwrap();
    // In ASCII, and in characters of three and four bytes with some left over.
    for unit in ["k", "队", "🦀"] {
        let text = |size: usize| unit.repeat(size / unit.len()) + &"x".repeat(size % unit.len());
        for size in [MAX_KEY - 1, MAX_KEY] {
            tx.put(text(size), "v".into()).unwrap();
            assert_eq!(tx.get(&text(size)).unwrap().as_deref(), Some("v"));
        }
        let long = text(MAX_KEY + 1);
        assert!(matches!(tx.put(long.clone(), "v".into()), Err(StoreError::TooLarge(_))));
        assert!(matches!(tx.delete(long.clone()), Err(StoreError::TooLarge(_))));
        assert!(matches!(tx.get(&long), Err(StoreError::TooLarge(_))));
        tx.scan(&text(MAX_BOUND - 1), &text(MAX_BOUND), 1, false).unwrap();
        assert!(matches!(tx.scan("", &text(MAX_BOUND + 1), 1, false), Err(StoreError::TooLarge(_))));
        for size in [MAX_VALUE - 1, MAX_VALUE] {
            tx.put(format!("{unit}{size}"), text(size)).unwrap();
        }
        assert!(matches!(tx.put("v".into(), text(MAX_VALUE + 1)), Err(StoreError::TooLarge(_))));
    }
    tx.commit().await.unwrap();
    assert_eq!(get(&*store, &format!("队{MAX_VALUE}")).unwrap().len(), MAX_VALUE);
    assert_eq!(get(&*store, &"k".repeat(MAX_KEY)).as_deref(), Some("v"));
    assert_eq!(get(&*store, "v"), None);
}

pub async fn the_whole_transaction_is_bounded(make: Make) {
    let store = make(Limits { max_bytes: 10, ..Limits::default() });
    let mut tx = store.begin().unwrap();
    tx.put("a".into(), "1234".into()).unwrap();
    tx.put("b".into(), "123".into()).unwrap();
    assert!(matches!(tx.put("b".into(), "12345".into()), Err(StoreError::TooLarge(_))));
    tx.put("b".into(), "1234".into()).unwrap();
    assert!(matches!(tx.delete("c".into()), Err(StoreError::TooLarge(_))));
    // A replaced write no longer counts.
    tx.delete("a".into()).unwrap();
    tx.put("c".into(), "123".into()).unwrap();
    tx.commit().await.unwrap();
    let mut tx = store.begin().unwrap();
    assert_eq!(tx.scan("", "z", 9, false).unwrap().len(), 2);
    write(&*store, &[("d", Some("1"))]).await;
    let mut tx = store.begin().unwrap();
    assert!(matches!(tx.scan("", "z", 9, false), Err(StoreError::TooLarge(_))));
    assert_eq!(tx.scan("", "z", 2, false).unwrap().len(), 2);
}

pub async fn what_is_read_is_bounded(make: Make) {
    let store = make(Limits { max_bytes: 10, ..Limits::default() });
    let mut tx = store.begin().unwrap();
    tx.get("12345").unwrap();
    tx.get("abcd").unwrap();
    tx.get("12345").unwrap();
    assert!(matches!(tx.get("xy"), Err(StoreError::TooLarge(_))));
    assert!(matches!(tx.scan("x", "y", 1, true), Err(StoreError::TooLarge(_))));
    tx.get("x").unwrap();
}

pub async fn a_refused_write_leaves_the_transaction_usable(make: Make) {
    let store = make(Limits::default());
    let mut tx = store.begin().unwrap();
    tx.put("a".into(), "1".into()).unwrap();
    assert!(tx.put("a".into(), "x".repeat(MAX_VALUE + 1)).is_err());
    assert_eq!(tx.get("a").unwrap().as_deref(), Some("1"));
    tx.commit().await.unwrap();
    assert_eq!(get(&*store, "a").as_deref(), Some("1"));
}

pub async fn old_transactions_expire(make: Make) {
    let store = make(Limits { max_age: Duration::ZERO, ..Limits::default() });
    let mut tx = store.begin().unwrap();
    assert_eq!(tx.get("a"), Err(StoreError::Expired));
    assert_eq!(tx.scan("a", "b", 1, false), Err(StoreError::Expired));
    assert_eq!(tx.put("a".into(), "1".into()), Err(StoreError::Expired));
    assert_eq!(tx.delete("a".into()), Err(StoreError::Expired));
    tx.commit().await.unwrap();

    let store = make(Limits { max_age: Duration::from_millis(30), ..Limits::default() });
    let mut tx = loop {
        let mut tx = store.begin().unwrap();
        if tx.put("a".into(), "1".into()).is_ok() {
            break tx;
        }
    };
    while tx.get("b") != Err(StoreError::Expired) {
        tokio::task::yield_now().await;
    }
    assert_eq!(tx.commit().await, Err(CommitError::Conflict));
    let value = loop {
        if let Ok(value) = store.begin().unwrap().get("a") {
            break value;
        }
    };
    assert_eq!(value, None);
}
