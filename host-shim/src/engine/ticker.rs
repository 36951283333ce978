//! The engine's clock: moves Wasmtime's epoch on, so that a guest which never
//! calls the host still yields and can be stopped.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How long a guest computes at most before others get their turn.
pub const TICK: Duration = Duration::from_millis(10);

/// A thread that ticks until this is dropped. One engine has one.
pub struct Ticker {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Ticker {
    pub fn start(engine: &wasmtime::Engine) -> std::io::Result<Self> {
        let engine = engine.weak();
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("epoch-ticker".into()).spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(TICK) {
                let Some(engine) = engine.upgrade() else { return };
                engine.increment_epoch();
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
