//! The log of a process that serves: on stderr, levels by `RUST_LOG`.

use tracing_subscriber::EnvFilter;

/// Begins logging. `level` is what is shown when `RUST_LOG` does not say.
/// Harmless when repeated.
pub fn start(level: &str, colors: bool, json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let _ = if json { log.json().try_init() } else { log.with_ansi(colors).try_init() };
}
