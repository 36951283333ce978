//! `connections`: which team may use which capability, in this process.

use std::collections::HashMap;
use std::sync::Mutex;

use wasmtime::Result;
use wasmtime::component::Resource;

use super::State;
use crate::agents::runs::Capability;
use crate::contract::TeamRef;
use crate::engine::bindings::agent_teams::plugin::connections::{Error, Host};
use crate::engine::resources::Runs;

/// The bound capabilities: at most one a team.
#[derive(Default)]
pub struct Connections(Mutex<HashMap<TeamRef, Capability>>);

impl Connections {
    fn map(&self) -> std::sync::MutexGuard<'_, HashMap<TeamRef, Capability>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// False, and nothing is bound, if the capability is not that owner's.
    pub fn bind(&self, team: TeamRef, capability: Capability) -> bool {
        let own = capability.owner == team.owner;
        if own {
            self.map().insert(team, capability);
        }
        own
    }

    pub fn lookup(&self, team: &TeamRef) -> Option<Capability> {
        self.map().get(team).cloned()
    }

    pub fn forget(&self, team: &TeamRef) {
        self.map().remove(team);
    }

    /// Forgets every capability of this owner.
    pub fn forget_owner(&self, owner: &str) {
        self.map().retain(|team, _| team.owner != owner);
    }
}

impl Host for State {
    fn bind(&mut self, owner: String, team: String, runs: Resource<Runs>) -> Result<std::result::Result<(), Error>> {
        let capability = self.table.get(&runs)?.0.clone();
        let bound = self.shared.connections.bind(TeamRef { owner, team }, capability);
        Ok(if bound { Ok(()) } else { Err(Error::NotOwner) })
    }

    fn lookup(&mut self, owner: String, team: String) -> Result<std::result::Result<Resource<Runs>, Error>> {
        match self.shared.connections.lookup(&TeamRef { owner, team }) {
            Some(capability) => Ok(Ok(self.table.push(Runs(capability))?)),
            None => Ok(Err(Error::NotConnected)),
        }
    }

    fn forget(&mut self, owner: String, team: String) -> Result<()> {
        self.shared.connections.forget(&TeamRef { owner, team });
        Ok(())
    }
}
