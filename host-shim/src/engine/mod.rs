//! The engine: runs the component with Wasmtime, one fresh instance a call.
//! Nothing outside this folder knows Wasmtime.

mod bindings;
mod cache;
mod call;
mod capabilities;
mod component;
mod convert;
mod limits;
mod lock_table;
mod parking;
mod plugin;
mod resources;
mod signals;
mod ticker;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::storage::Store;

pub use crate::clock::{Clock, SystemClock};
pub use component::CONTRACT;
pub use plugin::Plugin;
pub use signals::{SignalEvent, Signals};

/// What the component is given.
pub struct Parts {
    /// Keeps its records.
    pub store: Arc<dyn Store>,
    /// The topics of this process.
    pub signals: Arc<Signals>,
    /// JSON object, handed to the component unread.
    pub settings: String,
    /// Tells it the time.
    pub clock: Arc<dyn Clock>,
}

/// Bounds of one call, and where compiled code is kept.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of linear memory an instance may use.
    pub memory: usize,
    /// Time the guest itself may compute in one call.
    pub guest_time: Duration,
    /// Time one call may take as a whole, host calls included, without waits
    /// of parked calls.
    pub call_time: Duration,
    /// Time one host call (an agent run call, a lock) may take.
    pub host_call_time: Duration,
    /// Instances at once; further calls queue. Two at least, since the
    /// background worker has some for itself.
    pub instances: u32,
    /// Folder for compiled code. Absent: compile at each start.
    pub cache: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            guest_time: Duration::from_secs(5),
            call_time: Duration::from_secs(30),
            host_call_time: Duration::from_secs(9),
            instances: 64,
            cache: None,
        }
    }
}

/// Calls that the background worker makes at once at most: its steps and a plan.
const WORKER_CALLS: u32 = 17;

impl Options {
    /// Instances at once.
    fn places(&self) -> u32 {
        self.instances.max(2)
    }

    /// Those of them that only the background worker takes.
    fn worker_places(&self) -> u32 {
        (self.places() / 3).clamp(1, WORKER_CALLS)
    }
}

/// Why a component cannot be loaded. Nothing has run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It implements another version of the contract.
    #[error(
        "this component implements agent-teams:plugin {component}, this host implements {host}: \
         use a component of the same minor version that is not newer than the host"
    )]
    Contract {
        /// The component's version.
        component: String,
        /// The version of this host.
        host: &'static str,
    },
    /// It is a component, and not of this contract.
    #[error("this component does not implement agent-teams:plugin")]
    NotAPlugin,
    /// The bytes cannot be compiled or linked.
    #[error("not a component that this host can run: {0}")]
    Component(String),
    /// This machine cannot run WebAssembly so.
    #[error("the WebAssembly engine cannot start: {0}")]
    Engine(String),
}

impl LoadError {
    fn component(error: wasmtime::Error) -> Self {
        Self::Component(format!("{error:#}"))
    }

    fn engine(error: wasmtime::Error) -> Self {
        Self::Engine(format!("{error:#}"))
    }
}
