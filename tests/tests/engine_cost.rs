//! What a call of the shipped component costs, as a measurement.

use std::sync::Arc;

use agent_teams_host::engine::{Options, Parts, Plugin, Signals, SystemClock};
use agent_teams_host::storage::{Store, StoreError, Transaction};

/// A store that cannot be opened: nothing measured here needs one.
struct NoStore;

impl Store for NoStore {
    fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        Err(StoreError::Unavailable("there is none here".into()))
    }
}

/// Prints what an empty call costs; run it alone, with `--ignored --nocapture`.
#[tokio::test]
#[ignore = "a measurement, not a test"]
async fn cost_of_an_empty_call() {
    let parts = Parts {
        store: Arc::new(NoStore),
        signals: Arc::new(Signals::default()),
        settings: "{}".into(),
        clock: Arc::new(SystemClock),
    };
    let start = std::time::Instant::now();
    let plugin = Plugin::load(Plugin::embedded(), parts, Options::default()).unwrap();
    println!("load without cache: {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    for (rounds, warm) in [(1000, true), (20_000, false)] {
        let start = std::time::Instant::now();
        for _ in 0..rounds {
            plugin.info().await.unwrap();
        }
        if !warm {
            println!("info: {:.1} µs a call", start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds));
        }
    }
}
