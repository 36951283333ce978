//! `signals`: moves topics on and reads their positions. Nothing waits here.

use wasmtime::Result;

use super::State;
use crate::engine::bindings::agent_teams::plugin::signals::Host;

impl Host for State {
    fn publish(&mut self, owner: String, topic: String, revision: u64) -> Result<()> {
        self.shared.parts.signals.publish(&owner, &topic, revision);
        Ok(())
    }

    fn position(&mut self, owner: String, topic: String) -> Result<u64> {
        Ok(self.shared.parts.signals.position(&owner, &topic))
    }
}
