//! The two WASI interfaces that the component may name: the wall clock and
//! random bytes.

use wasmtime::Result;

use super::State;
use crate::engine::bindings::wasi::clocks::wall_clock::{self, Datetime};
use crate::engine::bindings::wasi::random::random;

/// The most random bytes of one call.
const MAX_RANDOM: u64 = 64 * 1024;

impl wall_clock::Host for State {
    fn now(&mut self) -> Result<Datetime> {
        let ms = self.shared.parts.clock.now_ms();
        Ok(Datetime { seconds: ms / 1000, nanoseconds: (ms % 1000) as u32 * 1_000_000 })
    }

    fn resolution(&mut self) -> Result<Datetime> {
        Ok(Datetime { seconds: 0, nanoseconds: 1_000_000 })
    }
}

impl random::Host for State {
    fn get_random_bytes(&mut self, len: u64) -> Result<Vec<u8>> {
        if len > MAX_RANDOM {
            return Err(wasmtime::Error::msg(format!("at most {MAX_RANDOM} random bytes can be asked for at once")));
        }
        let mut bytes = vec![0; len as usize];
        getrandom::fill(&mut bytes).map_err(|e| wasmtime::Error::msg(e.to_string()))?;
        Ok(bytes)
    }

    fn get_random_u64(&mut self) -> Result<u64> {
        getrandom::u64().map_err(|e| wasmtime::Error::msg(e.to_string()))
    }
}
