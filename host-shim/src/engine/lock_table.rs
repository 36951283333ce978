//! Named locks of this process, first come first served. A name is in the table
//! only while something holds or wants it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

type Lock = Arc<tokio::sync::Mutex<()>>;

/// All locks of the process that are held or wanted.
#[derive(Default)]
pub struct LockTable(Mutex<HashMap<String, Lock>>);

impl LockTable {
    /// Takes a place in the queue for `name`.
    fn place(self: &Arc<Self>, name: String) -> Place {
        let mut locks = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let lock = locks.entry(name.clone()).or_default().clone();
        Place { table: self.clone(), name, lock: Some(lock) }
    }

    /// Waits for the lock up to `wait`; zero takes it only if it is free.
    pub async fn acquire(self: &Arc<Self>, name: String, wait: Duration) -> Option<Guard> {
        let place = self.place(name);
        let lock = place.lock.clone()?;
        let held = match lock.clone().try_lock_owned() {
            Ok(held) => held,
            Err(_) if wait.is_zero() => return None,
            Err(_) => tokio::time::timeout(wait, lock.lock_owned()).await.ok()?,
        };
        Some(Guard { _held: held, _place: place })
    }

    /// How many names are held or wanted.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).len()
    }
}

/// An interest in a name; the last one to be dropped removes the name.
struct Place {
    table: Arc<LockTable>,
    name: String,
    lock: Option<Lock>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut locks = self.table.0.lock().unwrap_or_else(|e| e.into_inner());
        self.lock = None;
        // New places are made under this same mutex, so a count of one (the
        // table's own) means that no holder is left.
        if locks.get(&self.name).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.name);
        }
    }
}

/// A held lock. Dropping it wakes the next in line. (Field order matters: the
/// lock is released before the place is given up.)
pub struct Guard {
    _held: OwnedMutexGuard<()>,
    _place: Place,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn a_free_lock_is_taken_and_a_held_one_is_not() {
        let table = Arc::new(LockTable::default());
        let held = table.acquire("a".into(), Duration::ZERO).await.unwrap();
        assert!(table.acquire("a".into(), Duration::ZERO).await.is_none());
        assert!(table.acquire("b".into(), Duration::ZERO).await.is_some());
        drop(held);
        assert!(table.acquire("a".into(), Duration::ZERO).await.is_some());
    }

    #[tokio::test]
    async fn the_table_forgets_names_that_nobody_holds_or_wants() {
        let table = Arc::new(LockTable::default());
        let held = table.acquire("a".into(), Duration::ZERO).await.unwrap();
        assert!(table.acquire("a".into(), Duration::from_millis(5)).await.is_none(), "held for the whole time");
        assert_eq!(table.len(), 1);
        drop(held);
        assert_eq!(table.len(), 0);
    }

    #[tokio::test]
    async fn a_waiter_that_gives_up_is_passed_over_and_the_order_is_kept() {
        let table = Arc::new(LockTable::default());
        let held = table.acquire("a".into(), LONG).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiters = Vec::new();
        for n in 0..5 {
            let (table, order) = (table.clone(), order.clone());
            waiters.push(tokio::spawn(async move {
                let guard = table.acquire("a".into(), LONG).await.unwrap();
                order.lock().unwrap().push(n);
                drop(guard);
            }));
            // The test's one thread runs the task until it waits in line.
            tokio::task::yield_now().await;
        }
        waiters.remove(2).abort();
        tokio::task::yield_now().await;
        drop(held);
        for waiter in waiters {
            waiter.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 3, 4]);
        assert_eq!(table.len(), 0);
    }
}
