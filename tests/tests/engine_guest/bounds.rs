//! The bounds of one call: time, memory, data, host objects.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_teams_host::engine::Options;

use crate::support::{ScriptedRuns, bench, capability, fault, host_error, options, until};

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn data_handed_to_the_host_is_bounded() {
    let bench = bench(options());
    let mib = |n: usize| (n << 20).to_string();
    assert_eq!(bench.act("big-argument", &mib(7)).await.unwrap(), "\"written\"");
    assert_eq!(fault(bench.act("big-argument", &mib(9)).await), "component_trapped");
    assert_eq!(bench.act("big-result", &mib(7)).await.unwrap().len(), (7 << 20) + 2);
    assert_eq!(fault(bench.act("big-result", &mib(9)).await), "component_trapped");
    assert_eq!(fault(bench.act("forged", "").await), "component_trapped");
    bench.assert_healthy().await;
}

#[tokio::test]
async fn host_objects_and_random_bytes_are_bounded() {
    let bench = bench(options());
    assert_eq!(bench.act("hoard", "64").await.unwrap(), "\"64\"");
    assert_eq!(fault(bench.act("hoard", "65").await), "component_trapped");
    assert_eq!(bench.act("hoard", "64").await.unwrap(), "\"64\"", "the locks of the call that failed are free");
    assert_eq!(bench.act("random-bytes", "65536").await.unwrap(), "\"65536\"");
    assert_eq!(fault(bench.act("random-bytes", "65537").await), "component_trapped");
    assert_eq!(fault(bench.act("random-bytes", &u64::MAX.to_string()).await), "component_trapped");
    bench.assert_healthy().await;
}

#[tokio::test]
async fn scans_and_reads_of_many_keys_are_bounded() {
    let bench = bench(options());
    assert_eq!(bench.act("scan", "a|b|10000").await.unwrap(), "\"\"");
    assert!(host_error(bench.act("scan", "a|b|10001").await).contains("TooLarge"));
    assert!(bench.act("get-many", &vec!["k"; 4096].join("|")).await.is_ok());
    assert!(host_error(bench.act("get-many", &vec!["k"; 4097].join("|")).await).contains("TooLarge"));
}

#[tokio::test]
async fn a_hung_agent_run_is_given_up_and_the_guest_learns_that_the_outcome_is_unknown() {
    let bench = bench(Options { host_call_time: Duration::from_millis(50), ..options() });
    let runs = Arc::new(ScriptedRuns::default());
    assert_eq!(host_error(bench.act_with(capability("ann", &runs), "run", "hang").await), "Error::TimedOut");
    assert_eq!(runs.entered.load(Ordering::SeqCst), 1);
    bench.assert_healthy().await;
}

#[tokio::test]
async fn a_wait_for_a_lock_ends_with_the_bound_of_a_host_call() {
    let bench =
        bench(Options { guest_time: LONG, call_time: LONG, host_call_time: Duration::from_millis(50), ..options() });
    let holder = bench.spawn(None, "lock-spin", "L");
    until(|| bench.store.open.load(Ordering::SeqCst) == 1).await;
    assert_eq!(host_error(bench.act("lock", "L|1").await), "Error::Timeout");
    assert_eq!(host_error(bench.act("lock", &format!("L|{}", LONG.as_millis())).await), "Error::Timeout");
    holder.abort();
    assert!(holder.await.unwrap_err().is_cancelled());
    bench.assert_healthy().await;
}

#[tokio::test]
async fn a_commit_without_an_answer_is_unknown() {
    let bench = bench(Options { host_call_time: Duration::from_millis(50), ..options() });
    bench.store.stall.store(true, Ordering::SeqCst);
    assert!(host_error(bench.act("put", "k|v").await).contains("Unknown"));
    bench.store.stall.store(false, Ordering::SeqCst);
    bench.assert_healthy().await;
}

#[tokio::test]
async fn a_call_as_a_whole_is_bounded_also_inside_a_host_call() {
    let bench = bench(Options { call_time: Duration::from_millis(500), host_call_time: LONG, ..options() });
    let runs = Arc::new(ScriptedRuns::default());
    let call = bench.act_with(capability("ann", &runs), "lock-run", "hang|L").await;
    assert_eq!(fault(call), "component_timeout");
    bench.assert_healthy().await;
}

#[tokio::test]
async fn time_in_the_host_is_not_the_guests() {
    let bench = bench(Options { guest_time: Duration::from_millis(100), ..options() });
    let runs = Arc::new(ScriptedRuns::default());
    // The host takes four times what the guest may compute.
    assert_eq!(bench.act_with(capability("ann", &runs), "run", "slow").await.unwrap(), "\"slow/m/key\"");
    assert_eq!(fault(bench.act("spin", "").await), "component_timeout");
}
