//! Calls that wait. A parked call holds no instance: it is a timer and a place
//! among the listeners of one topic, and a fresh instance continues it.

use std::time::Duration;

use tokio::time::Instant;

use super::bindings::agent_teams::plugin::types::{Outcome, Parked, Wake};
use super::call::{Core, LONGEST_WAIT, malformed, stopping, waited_too_long};
use crate::contract::CallError;

/// Wake-ups after which a call is resumed at most once per `PACE`: a
/// busy topic, or a guest that parks on a position long past, must not cost
/// the others their instances.
const FREE_WAKES: u32 = 64;
const PACE: Duration = Duration::from_millis(20);
/// The longest topic, in bytes.
const MAX_TOPIC: usize = 1024;

/// The waits of one call.
pub struct Waits<'a> {
    core: &'a Core,
    owner: &'a str,
    name: &'static str,
    /// From the first wait on.
    end: Option<Instant>,
    wakes: u32,
    last: Option<Wake>,
}

/// What to do with an outcome.
pub enum Next {
    Done(String),
    Resume { token: Vec<u8>, wake: Wake },
}

impl<'a> Waits<'a> {
    pub fn new(core: &'a Core, owner: &'a str, name: &'static str) -> Self {
        Self { core, owner, name, end: None, wakes: 0, last: None }
    }

    /// The answer, or, after the wait that the guest asked for, why it continues.
    pub async fn next(&mut self, outcome: Outcome) -> Result<Next, CallError> {
        match outcome {
            Outcome::Done(json) => match serde_json::from_str::<serde::de::IgnoredAny>(&json) {
                Ok(_) => Ok(Next::Done(json)),
                Err(_) => Err(malformed(self.name, "the result is not JSON")),
            },
            Outcome::Park(parked) => {
                let wake = self.wait(&parked).await?;
                Ok(Next::Resume { token: parked.token, wake })
            }
        }
    }

    async fn wait(&mut self, parked: &Parked) -> Result<Wake, CallError> {
        if parked.topic.len() > MAX_TOPIC {
            return Err(malformed(self.name, "the topic is too long"));
        }
        let now = Instant::now();
        let end = *self.end.get_or_insert(now + LONGEST_WAIT);
        match self.last {
            Some(Wake::Closed) => return Err(stopping()),
            Some(Wake::TimedOut) if now >= end => return Err(waited_too_long()),
            _ => {}
        }
        self.wakes += 1;
        let pace = if self.wakes > FREE_WAKES { now + PACE } else { now };
        let timeout = pace.max(end.min(now + Duration::from_millis(parked.timeout_ms.into())));
        let signals = &self.core.shared.parts.signals;
        let moved = async {
            if pace > now {
                tokio::time::sleep_until(pace).await;
            }
            signals.moved(self.owner, &parked.topic, parked.seen).await;
        };
        let _parked = self.core.park();
        let wake = tokio::select! {
            biased;
            () = self.core.closed() => Wake::Closed,
            () = moved => Wake::Signalled,
            () = tokio::time::sleep_until(timeout) => Wake::TimedOut,
        };
        self.last = Some(wake);
        Ok(wake)
    }
}
