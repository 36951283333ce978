//! One operation measured many times, and its line of JSON.

use std::time::{Duration, Instant};

use agent_teams_host::storage::database::{Database, Stats};
use serde_json::{Map, Value, json};

/// What the process has used up to now.
#[derive(Clone, Copy, Default)]
struct Used {
    cpu: Duration,
    /// Bytes handed to the system in writes, whatever file they went to.
    written: u64,
    stats: Stats,
}

impl Used {
    /// Before a sample: the CPU time last, so that asking does not count.
    fn before(db: &Database) -> Self {
        Self { stats: db.stats(), written: written(), cpu: cpu() }
    }

    /// After a sample: the CPU time first.
    fn after(db: &Database) -> Self {
        Self { cpu: cpu(), stats: db.stats(), written: written() }
    }

    fn add(&mut self, before: &Used, after: &Used) {
        self.cpu += after.cpu.saturating_sub(before.cpu);
        self.written += after.written.saturating_sub(before.written);
        self.stats.commits += after.stats.commits - before.stats.commits;
        self.stats.wal_pages += after.stats.wal_pages - before.stats.wal_pages;
        self.stats.wal_bytes += after.stats.wal_bytes - before.stats.wal_bytes;
        self.stats.checkpoints += after.stats.checkpoints - before.stats.checkpoints;
    }
}

/// CPU time of this process, all threads together. Zero where unknown.
pub fn cpu() -> Duration {
    #[cfg(unix)]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a value of the right type that lives here.
        if unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) } == 0 {
            return Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0));
        }
    }
    Duration::ZERO
}

/// Bytes that this process has written, where the system tells.
fn written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    text.lines().find_map(|l| l.strip_prefix("wchar: ")).and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// The samples of one operation.
pub struct Cell {
    op: String,
    times: Vec<Duration>,
    used: Used,
    extra: Map<String, Value>,
}

impl Cell {
    pub fn new(op: impl Into<String>) -> Self {
        Self { op: op.into(), times: Vec::new(), used: Used::default(), extra: Map::new() }
    }

    /// Measures one call; what is done between two calls does not count.
    pub async fn sample<T>(&mut self, db: &Database, work: impl Future<Output = T>) -> T {
        let before = Used::before(db);
        let start = Instant::now();
        let result = work.await;
        let took = start.elapsed();
        self.used.add(&before, &Used::after(db));
        self.times.push(took);
        result
    }

    /// Measures many calls at once: `work` gives the time of each.
    pub async fn samples(&mut self, db: &Database, work: impl Future<Output = Vec<Duration>>) -> Duration {
        let before = Used::before(db);
        let start = Instant::now();
        let times = work.await;
        let took = start.elapsed();
        self.used.add(&before, &Used::after(db));
        self.times.extend(times);
        took
    }

    /// Adds the samples of another cell.
    pub fn merge(&mut self, other: &Cell) {
        self.times.extend(&other.times);
        self.used.add(&Used::default(), &other.used);
    }

    /// A further figure for the line.
    pub fn note(&mut self, name: &str, value: impl Into<Value>) {
        self.extra.insert(name.into(), value.into());
    }

    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Time of all samples together.
    pub fn total(&self) -> Duration {
        self.times.iter().sum()
    }

    /// CPU time a sample.
    pub fn cpu_each(&self) -> Duration {
        self.used.cpu / u32::try_from(self.times.len().max(1)).unwrap_or(u32::MAX)
    }

    /// The sample below which `share` of all lie.
    pub fn percentile(&self, share: f64) -> Duration {
        let mut times = self.times.clone();
        times.sort();
        let last = times.len().saturating_sub(1);
        let place = ((times.len() as f64 * share).ceil() as usize).saturating_sub(1).min(last);
        times.get(place).copied().unwrap_or_default()
    }

    /// Prints the line.
    pub fn print(self) {
        let n = self.times.len();
        let each = |total: f64| round(total / n.max(1) as f64);
        let micros = |d: Duration| round(d.as_secs_f64() * 1e6);
        let stats = self.used.stats;
        let mut line = json!({
            "op": self.op,
            "n": n,
            "total_s": round(self.total().as_secs_f64() * 1e3) / 1e3,
            "mean_us": each(micros(self.total())),
            "min_us": micros(self.percentile(0.0)),
            "p50_us": micros(self.percentile(0.5)),
            "p99_us": micros(self.percentile(0.99)),
            "cpu_us": each(micros(self.used.cpu)),
            "bytes_written": each(self.used.written as f64),
            "fsyncs": each((stats.commits + 2 * stats.checkpoints) as f64),
            "commits": each(stats.commits as f64),
            "wal_pages": each(stats.wal_pages as f64),
            "wal_bytes": each(stats.wal_bytes as f64),
            "checkpoints": stats.checkpoints,
        });
        if let Some(object) = line.as_object_mut() {
            object.extend(self.extra);
        }
        println!("{line}");
    }
}

/// Three digits after the point, and no more of them than that.
pub fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
