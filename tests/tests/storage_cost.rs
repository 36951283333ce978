//! What a durable commit costs. Not run by default: figures, not verdicts.
//! `cargo test --release -p agent-teams-tests --test storage_cost -- --ignored --nocapture`

use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_teams_host::storage::database::{Database, Stats};
use agent_teams_host::storage::{SqliteStore, Store};

/// CPU time of this process, where the system tells.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<u64> =
        text.rsplit(')').next().unwrap_or_default().split_whitespace().filter_map(|f| f.parse().ok()).collect();
    // After the name: state, ten numbers, then user and system time in 1/100 s.
    let ticks = fields.get(10).unwrap_or(&0) + fields.get(11).unwrap_or(&0);
    Duration::from_millis(ticks * 10)
}

async fn commit(store: &SqliteStore, caller: usize, n: usize) {
    let mut tx = store.begin().unwrap();
    for part in 0..5 {
        tx.get(&format!("team/{caller}/{part}")).unwrap();
        tx.put(format!("team/{caller}/{part}"), format!("{{\"value\":{n},\"text\":\"{}\"}}", "x".repeat(200))).unwrap();
    }
    tx.commit().await.unwrap();
}

fn report(name: &str, mut times: Vec<Duration>, total: Duration, cpu: Duration, before: Stats, after: Stats) {
    times.sort();
    let n = times.len();
    let micros = |d: Duration| d.as_micros();
    println!(
        "{{\"op\":\"{name}\",\"n\":{n},\"total_s\":{:.3},\"per_s\":{:.0},\"mean_us\":{},\"min_us\":{},\"p50_us\":{},\"p99_us\":{},\"cpu_us\":{},\"wal_bytes\":{},\"fsyncs\":{:.3}}}",
        total.as_secs_f64(),
        n as f64 / total.as_secs_f64(),
        micros(times.iter().sum::<Duration>()) / n as u128,
        micros(times[0]),
        micros(times[n / 2]),
        micros(times[n * 99 / 100]),
        micros(cpu) / n as u128,
        (after.wal_bytes - before.wal_bytes) / n as u64,
        (after.commits - before.commits) as f64 / n as f64,
    );
}

#[test]
#[ignore = "prints figures"]
fn durable_commits() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = Arc::new(SqliteStore::new(Database::open(&folder.path().join("cost.db")).unwrap()).unwrap());
    for callers in [1_usize, 8, 64] {
        let each = if callers == 1 { 2000 } else { 6400 / callers };
        let (before, cpu_before, start) = (store.database().stats(), cpu(), Instant::now());
        let times = runtime.block_on(async {
            let tasks: Vec<_> = (0..callers)
                .map(|caller| {
                    let store = store.clone();
                    tokio::spawn(async move {
                        let mut times = Vec::with_capacity(each);
                        for n in 0..each {
                            let start = Instant::now();
                            commit(&store, caller, n).await;
                            times.push(start.elapsed());
                        }
                        times
                    })
                })
                .collect();
            let mut all = Vec::new();
            for task in tasks {
                all.extend(task.await.unwrap());
            }
            all
        });
        let name = format!("commit of 5 puts, {callers} callers");
        report(&name, times, start.elapsed(), cpu() - cpu_before, before, store.database().stats());
    }
    let (before, cpu_before, start) = (store.database().stats(), cpu(), Instant::now());
    let times = (0..20_000)
        .map(|n| {
            let start = Instant::now();
            let mut tx = store.begin().unwrap();
            for part in 0..5 {
                tx.get(&format!("team/{}/{part}", n % 64)).unwrap();
            }
            start.elapsed()
        })
        .collect();
    report("begin and 5 gets", times, start.elapsed(), cpu() - cpu_before, before, store.database().stats());
}
