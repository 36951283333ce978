//! Growing pauses, one a name.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// Attempts that did not help, by name, and until when each name pauses.
pub struct Backoff<K> {
    min: Duration,
    max: Duration,
    names: HashMap<K, Pause>,
}

struct Pause {
    attempts: u32,
    until: Instant,
}

impl<K: Hash + Eq + Clone> Backoff<K> {
    pub fn new(min: Duration, max: Duration) -> Self {
        Self { min, max, names: HashMap::new() }
    }

    /// Notes one more attempt in a row and answers with the pause that
    /// follows: `min`, doubled with each attempt, at most `max`.
    pub fn add(&mut self, name: &K, now: Instant) -> Duration {
        let pause = self.names.entry(name.clone()).or_insert(Pause { attempts: 0, until: now });
        let length = self.min.saturating_mul(1 << pause.attempts.min(16)).min(self.max);
        pause.attempts += 1;
        pause.until = now + length;
        length
    }

    /// When the name's pause ends, if it has not yet.
    pub fn until(&self, name: &K, now: Instant) -> Option<Instant> {
        self.names.get(name).map(|p| p.until).filter(|until| *until > now)
    }

    /// The names that pause now.
    pub fn pausing(&self, now: Instant) -> Vec<K> {
        self.names.iter().filter(|(_, pause)| pause.until > now).map(|(name, _)| name.clone()).collect()
    }

    /// When the first of the pauses ends.
    pub fn first_end(&self, now: Instant) -> Option<Instant> {
        self.names.values().map(|pause| pause.until).filter(|until| *until > now).min()
    }

    pub fn clear(&mut self, name: &K) {
        self.names.remove(name);
    }

    /// Forgets every name but those for which `keep` holds.
    pub fn retain(&mut self, keep: impl Fn(&K) -> bool) {
        self.names.retain(|name, _| keep(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_bound_and_start_anew_after_success() {
        let mut pauses = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        let now = Instant::now();
        let lengths: Vec<u64> = (0..8).map(|_| pauses.add(&"a", now).as_secs()).collect();
        assert_eq!(lengths, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pauses.until(&"a", now), Some(now + Duration::from_secs(60)));
        assert_eq!(pauses.until(&"b", now), None);
        pauses.clear(&"a");
        assert_eq!(pauses.add(&"a", now).as_secs(), 1);
        assert_eq!(pauses.until(&"a", now + Duration::from_secs(1)), None);
    }

    #[test]
    fn many_attempts_do_not_overflow() {
        let mut pauses = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        let now = Instant::now();
        for _ in 0..100 {
            assert!(pauses.add(&1, now) <= Duration::from_secs(60));
        }
    }
}
