//! Random transactions, several open at once, against a model that is too
//! simple to be wrong: each answer and each verdict must be the model's.

use std::collections::BTreeMap;

use agent_teams_host::storage::{CommitError, Limits, Store, Transaction};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{Make, retry};

#[derive(Clone, Debug)]
enum Step {
    Begin(usize),
    Get(usize, String),
    Scan(usize, String, String, u32, bool),
    Put(usize, String, u8),
    Delete(usize, String),
    Commit(usize),
    Drop(usize),
}

type Map = BTreeMap<String, String>;

fn apply(map: &mut Map, key: &str, value: Option<&String>) {
    match value {
        Some(value) => drop(map.insert(key.to_owned(), value.clone())),
        None => drop(map.remove(key)),
    }
}

/// One open transaction of the model.
struct Model {
    snapshot: Map,
    /// How many commits there were when it began.
    since: usize,
    writes: BTreeMap<String, Option<String>>,
    /// Start and end (exclusive) of everything looked at.
    looked: Vec<(String, String)>,
}

impl Model {
    fn view(&self) -> Map {
        let mut map = self.snapshot.clone();
        for (key, value) in &self.writes {
            apply(&mut map, key, value.as_ref());
        }
        map
    }

    fn scan(&mut self, start: &str, end: &str, limit: u32, reverse: bool) -> Vec<(String, String)> {
        let mut all: Vec<_> =
            self.view().into_iter().filter(|(key, _)| start <= key.as_str() && key.as_str() < end).collect();
        if reverse {
            all.reverse();
        }
        all.truncate(limit as usize);
        let cut = all.len() == limit as usize;
        let looked = match all.last() {
            _ if limit == 0 => return all,
            Some((last, _)) if cut && reverse => (last.clone(), end.to_owned()),
            Some((last, _)) if cut => (start.to_owned(), format!("{last}\0")),
            _ => (start.to_owned(), end.to_owned()),
        };
        self.looked.push(looked);
        all
    }

    fn looked_at(&self, key: &str) -> bool {
        self.looked.iter().any(|(start, end)| start.as_str() <= key && key < end.as_str())
    }
}

pub async fn random_transactions_match_the_model(make: Make) {
    let slot = || 0..3_usize;
    let key = || prop::sample::select(vec!["", "a", "b", "b\0", "队", "🦀"]).prop_map(str::to_owned);
    let step = prop_oneof![
        1 => slot().prop_map(Step::Begin),
        3 => (slot(), key()).prop_map(|(s, k)| Step::Get(s, k)),
        3 => (slot(), key(), key(), 0..5_u32, any::<bool>()).prop_map(|(s, a, b, n, r)| Step::Scan(s, a, b, n, r)),
        4 => (slot(), key(), 0..2_u8).prop_map(|(s, k, v)| Step::Put(s, k, v)),
        2 => (slot(), key()).prop_map(|(s, k)| Step::Delete(s, k)),
        4 => slot().prop_map(Step::Commit),
        1 => slot().prop_map(Step::Drop),
    ];
    let mut runner = TestRunner::new(Config { cases: 100, failure_persistence: None, ..Config::default() });
    let handle = tokio::runtime::Handle::current();
    let store = make(Limits::default());
    let result = tokio::task::block_in_place(|| {
        runner.run(&prop::collection::vec(step, 1..120), |steps| {
            handle.block_on(compare(&*store, &steps));
            Ok(())
        })
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

async fn compare(store: &dyn Store, steps: &[Step]) {
    // One store for all cases: each begins by emptying it.
    retry(store, |tx| {
        for (key, _) in tx.scan("", "\u{10ffff}", 99, false).unwrap() {
            tx.delete(key).unwrap();
        }
    })
    .await;
    let mut state = Map::new();
    let mut history: Vec<Vec<String>> = Vec::new();
    let mut open: BTreeMap<usize, (Box<dyn Transaction>, Model)> = BTreeMap::new();
    for step in steps {
        // A slot that is not open begins with whatever is asked of it, so that
        // hardly a step is wasted.
        let begin = |state: &Map, history: &[Vec<String>]| {
            let model =
                Model { snapshot: state.clone(), since: history.len(), writes: BTreeMap::new(), looked: Vec::new() };
            (store.begin().unwrap(), model)
        };
        if let Step::Get(slot, ..) | Step::Scan(slot, ..) | Step::Put(slot, ..) | Step::Delete(slot, ..) = step {
            open.entry(*slot).or_insert_with(|| begin(&state, &history));
        }
        match step {
            Step::Begin(slot) => drop(open.insert(*slot, begin(&state, &history))),
            Step::Drop(slot) => drop(open.remove(slot)),
            Step::Get(slot, key) => {
                let Some((tx, model)) = open.get_mut(slot) else { continue };
                assert_eq!(tx.get(key).unwrap(), model.view().get(key).cloned());
                if !model.writes.contains_key(key) {
                    model.looked.push((key.clone(), format!("{key}\0")));
                }
            }
            Step::Scan(slot, start, end, limit, reverse) => {
                let Some((tx, model)) = open.get_mut(slot) else { continue };
                let expected = model.scan(start, end, *limit, *reverse);
                assert_eq!(tx.scan(start, end, *limit, *reverse).unwrap(), expected);
            }
            Step::Put(slot, key, value) => {
                let Some((tx, model)) = open.get_mut(slot) else { continue };
                tx.put(key.clone(), value.to_string()).unwrap();
                model.writes.insert(key.clone(), Some(value.to_string()));
            }
            Step::Delete(slot, key) => {
                let Some((tx, model)) = open.get_mut(slot) else { continue };
                tx.delete(key.clone()).unwrap();
                model.writes.insert(key.clone(), None);
            }
            Step::Commit(slot) => {
                let Some((tx, model)) = open.remove(slot) else { continue };
                let changed = history[model.since..].concat();
                let conflict = changed.iter().any(|key| model.looked_at(key));
                let idle =
                    model.writes.iter().all(|(key, value)| !changed.contains(key) && state.get(key) == value.as_ref());
                let committed = tx.commit().await;
                if conflict && !idle {
                    assert_eq!(committed, Err(CommitError::Conflict));
                    continue;
                }
                assert_eq!(committed, Ok(()));
                let mut keys = Vec::new();
                for (key, value) in model.writes {
                    if state.get(&key) != value.as_ref() {
                        apply(&mut state, &key, value.as_ref());
                        keys.push(key);
                    }
                }
                history.push(keys);
            }
        }
    }
    drop(open);
    let stored: Map = store.begin().unwrap().scan("", "\u{10ffff}", 99, false).unwrap().into_iter().collect();
    assert_eq!(stored, state);
}
