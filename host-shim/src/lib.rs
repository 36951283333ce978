//! The host of the agent-teams component: it loads the component with
//! Wasmtime, gives it storage, agent runs and the other capabilities of its
//! contract, and offers it over HTTP and on the command line. It knows no rule
//! of teams, jobs or boards.
//!
//! As a library it is for other hosts. [`engine::Plugin`] loads the component
//! and calls it; [`agents::runs::AgentRuns`] is the trait of an agent host;
//! [`worker::Worker`] moves the jobs on; [`storage`] holds the records.
//! `examples/embed.rs` and `examples/agent-host.rs` use them.

pub mod agents;
pub mod app;
pub mod cli;
#[warn(missing_docs)]
pub mod clock;
pub mod config;
#[warn(missing_docs)]
pub mod contract;
#[warn(missing_docs)]
pub mod engine;
pub mod gateway;
mod life;
mod local;
mod outbound;
#[warn(missing_docs)]
pub mod storage;
pub mod users;
#[warn(missing_docs)]
pub mod worker;
