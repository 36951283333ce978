//! The harness of the tests from outside: a scriptable host of agents, a
//! native host of the component's logic, the component over real storage, and
//! a client of the served program.

pub mod clock;
pub mod double;
pub mod harness;
pub mod http;
pub mod native;
pub mod reading;

/// The simulation: a crate of its own, so that it is built without an engine.
pub use agent_teams_sim as sim;

/// A component with the contract and none of the logic, which behaves and
/// misbehaves on request; see `tests/guest`.
pub fn guest_component() -> &'static [u8] {
    include_bytes!(concat!(env!("OUT_DIR"), "/test_guest.wasm"))
}
