//! `locks`: named mutual exclusion within this process.

use std::time::Duration;

use wasmtime::Result;
use wasmtime::component::Resource;

use super::State;
use crate::engine::bindings::agent_teams::plugin::locks::{Error, Host, HostGuard};
use crate::engine::lock_table::Guard;

/// The longest name, in bytes.
const MAX_NAME: usize = 1024;

impl Host for State {
    async fn acquire(&mut self, name: String, timeout_ms: u32) -> Result<std::result::Result<Resource<Guard>, Error>> {
        if name.len() > MAX_NAME {
            return Ok(Err(Error::Unavailable(format!("a lock's name has at most {MAX_NAME} bytes"))));
        }
        let wait = Duration::from_millis(timeout_ms.into());
        let table = self.shared.locks.clone();
        match self.bounded(async move { table.acquire(name, wait).await }).await.flatten() {
            Some(guard) => Ok(Ok(self.table.push(guard)?)),
            None => Ok(Err(Error::Timeout)),
        }
    }
}

impl HostGuard for State {
    fn drop(&mut self, guard: Resource<Guard>) -> Result<()> {
        self.table.delete(guard)?;
        Ok(())
    }
}
