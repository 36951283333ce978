//! The engine: runs the component with Wasmtime, one fresh instance a call.
//! Nothing outside this folder knows Wasmtime.

mod signals;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::agents::runs::Capability;
use crate::contract::{
    ActionDef, Asset, AssetInfo, CallError, Caller, EndedRun, Info, MentionHit, MentionMessage, Plan, TeamRef, ToolDef,
};
use crate::storage::Store;

pub use signals::{SignalEvent, Signals};

/// The wall clock given to the component; tests give their own.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn now_ms(&self) -> u64;
}

/// The machine's clock.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
    }
}

/// What the component is given.
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub signals: Arc<Signals>,
    /// JSON object, handed to the component unread.
    pub settings: String,
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
    /// Instances at once; further calls queue.
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

/// The loaded component. Cheap to clone; every method makes a fresh instance.
#[derive(Clone)]
pub struct Plugin;

#[allow(unused_variables, clippy::unused_async)]
impl Plugin {
    pub fn load(component: &[u8], parts: Parts, options: Options) -> anyhow::Result<Self> {
        unimplemented!()
    }
    /// The component built with this host.
    pub fn embedded() -> &'static [u8] {
        unimplemented!()
    }
    pub async fn info(&self) -> Result<Info, CallError> {
        unimplemented!()
    }
    pub async fn open(&self) -> Result<(), CallError> {
        unimplemented!()
    }
    pub async fn tools(&self) -> Result<Vec<ToolDef>, CallError> {
        unimplemented!()
    }
    /// Calls a tool and waits out a parked call; the answer is JSON text.
    pub async fn call_tool(
        &self,
        caller: Caller,
        runs: Option<Capability>,
        name: &str,
        arguments: &str,
    ) -> Result<String, CallError> {
        unimplemented!()
    }
    pub async fn search_mentions(&self, caller: Caller, query: &str) -> Result<Vec<MentionHit>, CallError> {
        unimplemented!()
    }
    /// The answer is JSON text.
    pub async fn dispatch_mention(
        &self,
        caller: Caller,
        runs: Capability,
        message: MentionMessage,
    ) -> Result<String, CallError> {
        unimplemented!()
    }
    pub async fn actions(&self) -> Result<Vec<ActionDef>, CallError> {
        unimplemented!()
    }
    /// Calls an action and waits out a parked call; the answer is JSON text.
    pub async fn call_action(
        &self,
        caller: Caller,
        runs: Option<Capability>,
        action: &str,
        payload: &str,
    ) -> Result<String, CallError> {
        unimplemented!()
    }
    pub async fn assets(&self) -> Result<Vec<AssetInfo>, CallError> {
        unimplemented!()
    }
    pub async fn asset(&self, path: &str) -> Result<Asset, CallError> {
        unimplemented!()
    }
    pub async fn plan(&self, ended: Vec<EndedRun>, sweep: bool) -> Result<Plan, CallError> {
        unimplemented!()
    }
    /// True: something changed, so plan again.
    pub async fn advance(&self, team: &TeamRef, permit: &str) -> Result<bool, CallError> {
        unimplemented!()
    }
    pub async fn connect(&self, team: &TeamRef, runs: Capability) -> Result<(), CallError> {
        unimplemented!()
    }
    /// Who holds the slots, as JSON text.
    pub async fn slots(&self) -> Result<String, CallError> {
        unimplemented!()
    }
    /// The settled job, as JSON text.
    pub async fn settle(&self, team: &TeamRef, job: &str) -> Result<String, CallError> {
        unimplemented!()
    }
    /// Answers parked calls at once with "closed" and refuses new calls with
    /// `host_stopping`.
    pub async fn shutdown(&self) {
        unimplemented!()
    }
}
