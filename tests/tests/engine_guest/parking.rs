//! Calls that wait: woken once, by the right thing, and costing no instance.

use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_teams_host::contract::Caller;
use agent_teams_host::engine::Options;

use crate::support::{bench, fault, options, until};

const HOUR_MS: &str = "3600000";

#[tokio::test]
async fn a_signal_wakes_a_parked_call() {
    let bench = bench(options());
    let parked = bench.spawn(None, "park", &format!("t|{HOUR_MS}|token"));
    // The position is read while the call runs; after it, it is parked.
    until(|| bench.plugin.parked() == 1).await;
    bench.signals.publish("bob", "t", 1);
    bench.signals.publish("ann", "u", 1);
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert!(!parked.is_finished(), "another owner's topic, or another topic, wakes nobody");
    bench.act("publish", "t|1").await.unwrap();
    assert_eq!(parked.await.unwrap().unwrap(), "\"ann token Wake::Signalled\"");
}

#[tokio::test]
async fn a_tool_call_parks_too() {
    let bench = bench(options());
    let woken = bench.plugin.call_tool(Caller::owner("ann"), None, "park", "t|1|token").await;
    assert_eq!(woken.unwrap(), "\"ann token Wake::TimedOut\"");
}

#[tokio::test]
async fn a_topic_that_moved_in_between_wakes_at_once() {
    let bench = bench(options());
    let woken = bench.act("park-late", &format!("t|{HOUR_MS}|token")).await;
    assert_eq!(woken.unwrap(), "\"ann token Wake::Signalled\"");
}

#[tokio::test]
async fn a_parked_call_ends_when_its_time_is_over() {
    let bench = bench(options());
    assert_eq!(bench.act("park", "t|5|token").await.unwrap(), "\"ann token Wake::TimedOut\"");
    assert_eq!(bench.act("park", "t|0|token").await.unwrap(), "\"ann token Wake::TimedOut\"");
}

#[tokio::test]
async fn a_thousand_parked_calls_hold_no_instance() {
    let bench = bench(Options { instances: 2, ..options() });
    let parked: Vec<_> = (0..1000).map(|n| bench.spawn(None, "park", &format!("t{}|{HOUR_MS}|{n}", n % 10))).collect();
    until(|| bench.plugin.parked() == 1000).await;
    assert_eq!(bench.plugin.running(), 0);
    bench.assert_healthy().await;
    for topic in 0..10 {
        bench.act("publish", &format!("t{topic}|1")).await.unwrap();
    }
    for (n, call) in parked.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap(), format!("\"ann {n} Wake::Signalled\""));
    }
    assert_eq!(bench.plugin.parked(), 0);
}

#[tokio::test]
async fn a_trap_on_resuming_is_that_calls_own() {
    let bench = bench(options());
    assert_eq!(fault(bench.act("park-late", "t|5|panic").await), "component_trapped");
    bench.assert_healthy().await;
}

#[tokio::test]
async fn shutdown_answers_parked_calls_and_refuses_new_ones() {
    let bench = bench(options());
    let parked: Vec<_> = (0..20).map(|n| bench.spawn(None, "park", &format!("t|{HOUR_MS}|{n}"))).collect();
    until(|| bench.plugin.parked() == 20).await;
    bench.plugin.shutdown().await;
    for (n, call) in parked.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap(), format!("\"ann {n} Wake::Closed\""));
    }
    assert_eq!(fault(bench.act("echo", "").await), "host_stopping");
    assert!(bench.plugin.info().await.is_err());
    bench.plugin.shutdown().await;
}

#[tokio::test]
async fn shutdown_waits_for_calls_that_run() {
    let bench = bench(Options { guest_time: Duration::from_millis(200), ..options() });
    let running = bench.spawn(None, "lock-spin", "L");
    until(|| bench.store.open.load(Ordering::SeqCst) == 1).await;
    bench.plugin.shutdown().await;
    assert_eq!(bench.store.open.load(Ordering::SeqCst), 0, "the call has ended, and what it held is free");
    assert_eq!(fault(running.await.unwrap()), "component_timeout");
}

#[tokio::test]
async fn a_call_that_parks_without_end_is_paced_and_ends_with_the_host() {
    let bench = bench(options());
    let endless = bench.spawn(None, "park", "t|0|again~t");
    // More resumptions than are free; then each waits its turn.
    until(|| bench.plugin.parked() == 1).await;
    for _ in 0..200 {
        bench.act("echo", "").await.unwrap();
    }
    bench.plugin.shutdown().await;
    assert_eq!(fault(endless.await.unwrap()), "host_stopping");
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_nothing_behind() {
    let bench = bench(options());
    let parked = bench.spawn(None, "park", &format!("t|{HOUR_MS}|token"));
    until(|| bench.plugin.parked() == 1).await;
    parked.abort();
    assert!(parked.await.unwrap_err().is_cancelled());
    assert_eq!(bench.plugin.parked(), 0);
    // It would wait for ever for a call that nobody awaits.
    bench.plugin.shutdown().await;
}
