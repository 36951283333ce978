//! `settings`: the deployment's settings, unread by the host.

use wasmtime::Result;

use super::State;
use crate::engine::bindings::agent_teams::plugin::settings::Host;

impl Host for State {
    fn get(&mut self) -> Result<String> {
        Ok(self.shared.parts.settings.clone())
    }
}
