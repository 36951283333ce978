//! What one call does to others: nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_teams_host::contract::TeamRef;
use agent_teams_host::engine::Options;

use crate::support::{Bench, ScriptedRuns, bench, capability, fault, options, until};

fn quick() -> Bench {
    bench(Options { guest_time: Duration::from_millis(200), ..options() })
}

#[tokio::test]
async fn inst_3_every_misbehaviour_ends_its_own_call_with_a_code() {
    let bench = quick();
    for (action, code) in [
        ("panic", "component_trapped"),
        ("recurse", "component_trapped"),
        ("not-json", "component_trapped"),
        ("forged", "component_trapped"),
        ("hog", "component_memory"),
        ("spin", "component_timeout"),
        ("lock-trap", "component_trapped"),
        ("lock-spin", "component_timeout"),
    ] {
        assert_eq!(fault(bench.act(action, "L").await), code, "{action}");
        bench.assert_healthy().await;
    }
}

#[tokio::test]
async fn inst_6_misbehaving_calls_at_once_hurt_no_other() {
    let bench = quick();
    let mut bad = Vec::new();
    for action in ["panic", "recurse", "hog", "hog", "hog", "spin", "spin", "lock-trap", "lock-spin", "forged"] {
        bad.push(bench.spawn(None, action, action));
    }
    for n in 0..200 {
        assert!(bench.act("echo", &n.to_string()).await.unwrap().ends_with(&format!(" {n}\"")));
    }
    for call in bad {
        assert!(fault(call.await.unwrap()).starts_with("component_"));
    }
    bench.assert_healthy().await;
}

#[tokio::test]
async fn a_spinning_call_lets_others_run_on_the_same_thread() {
    let bench =
        bench(Options { guest_time: Duration::from_secs(3600), call_time: Duration::from_secs(3600), ..options() });
    let spinning = bench.spawn(None, "lock-spin", "L");
    until(|| bench.store.open.load(Ordering::SeqCst) == 1).await;
    assert_eq!(
        crate::support::host_error(bench.act("lock", "L|0").await),
        "Error::Timeout",
        "the spinner holds the lock"
    );
    assert_eq!(bench.act("put", "k|v").await.unwrap(), "\"put\"");
    assert_eq!(bench.act("get", "k").await.unwrap(), "\"v\"");
    assert_eq!(bench.plugin.running(), 1);
    // Whoever called goes away: the call ends, and what it held is free.
    spinning.abort();
    assert!(spinning.await.unwrap_err().is_cancelled());
    bench.assert_healthy().await;
}

#[tokio::test]
async fn a_call_inside_an_agent_run_lets_others_run_and_keeps_its_lock() {
    let bench = bench(Options { host_call_time: Duration::from_secs(3600), ..options() });
    let runs = ScriptedRuns::gated();
    let waiting = bench.spawn(Some(capability("ann", &runs)), "lock-run", "gate|L");
    until(|| runs.entered.load(Ordering::SeqCst) == 1).await;
    assert_eq!(crate::support::host_error(bench.act("lock", "L|0").await), "Error::Timeout");
    // As an agent does from inside its own run.
    assert_eq!(bench.act("put", "k|v").await.unwrap(), "\"put\"");
    let next = bench.spawn(None, "lock", "L|60000");
    runs.gate.as_ref().unwrap().add_permits(1);
    assert_eq!(waiting.await.unwrap().unwrap(), "\"gate/m/key\"");
    assert_eq!(next.await.unwrap().unwrap(), "\"locked\"", "whoever waited has its turn");
    bench.assert_healthy().await;
}

#[tokio::test]
async fn a_flood_waits_in_line() {
    let bench = Arc::new(bench(Options { instances: 2, ..options() }));
    let calls: Vec<_> = (0..300).map(|n| bench.spawn(None, "echo", &n.to_string())).collect();
    for (n, call) in calls.into_iter().enumerate() {
        assert!(call.await.unwrap().unwrap().ends_with(&format!(" {n}\"")));
    }
    bench.assert_healthy().await;
}

#[tokio::test]
async fn a_call_that_finds_no_place_in_time_is_told_that_nothing_happened() {
    let long = Duration::from_secs(3600);
    let bench =
        bench(Options { instances: 1, call_time: Duration::from_millis(300), host_call_time: long, ..options() });
    let runs = Arc::new(ScriptedRuns::default());
    // Each would keep the one place for its whole time.
    let calls: Vec<_> = (0..10).map(|_| bench.spawn(Some(capability("ann", &runs)), "run", "hang")).collect();
    let mut busy = 0;
    for call in calls {
        match fault(call.await.unwrap()).as_str() {
            "component_timeout" => {}
            "component_busy" => busy += 1,
            other => panic!("{other}"),
        }
    }
    assert!(busy > 0);
    assert_eq!(runs.entered.load(Ordering::SeqCst) + busy, 10, "nothing happened for those that were refused");
    bench.assert_healthy().await;
}

#[tokio::test]
async fn the_worker_never_waits_behind_callers() {
    let long = Duration::from_secs(3600);
    let bench =
        bench(Options { instances: 2, call_time: Duration::from_millis(300), host_call_time: long, ..options() });
    let runs = Arc::new(ScriptedRuns::default());
    // Far more than can run; each keeps its place for its whole time, and those
    // behind it are given up.
    let calls: Vec<_> = (0..50).map(|_| bench.spawn(Some(capability("ann", &runs)), "run", "hang")).collect();
    until(|| runs.entered.load(Ordering::SeqCst) > 0).await;
    let team = TeamRef { owner: "ann".into(), team: "t".into() };
    for _ in 0..20 {
        bench.plugin.plan(Vec::new(), true, Vec::new()).await.unwrap();
        bench.plugin.advance(&team, b"").await.unwrap();
    }
    for call in calls {
        fault(call.await.unwrap());
    }
    bench.assert_healthy().await;
}

/// Prints what a fresh call costs; run it alone, with `--ignored --nocapture`.
#[tokio::test]
#[ignore = "a measurement, not a test"]
async fn cost_of_a_fresh_call() {
    let bench = bench(Options::default());
    bench.act("put", "k|v").await.unwrap();
    for (action, payload) in [("echo", "x"), ("get", "k"), ("put", "k|v"), ("lock", "L|0")] {
        let rounds = 20_000;
        for _ in 0..1000 {
            bench.act(action, payload).await.unwrap();
        }
        let start = std::time::Instant::now();
        for _ in 0..rounds {
            bench.act(action, payload).await.unwrap();
        }
        println!("{action}: {:.1} µs a call", start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds));
    }
}
