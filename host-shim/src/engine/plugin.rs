//! The component as the rest of the host calls it.

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::Resource;

use super::call::{Core, malformed, within};
use super::capabilities::State;
use super::convert;
use super::parking::{Next, Waits};
use super::resources::Runs;
use super::{Options, Parts};
use crate::agents::runs::Capability;
use crate::contract::{
    ActionDef, Asset, AssetInfo, CallError, Caller, EndedRun, Info, MentionHit, MentionMessage, Plan, Step, TeamRef,
    ToolDef,
};

/// The loaded component. Cheap to clone; every method makes a fresh instance.
///
/// Every method can fail with [`CallError::Fault`]: `component_trapped`,
/// `component_memory` and `component_timeout` leave open whether the call took
/// effect, `component_busy` and `host_stopping` say that nothing happened,
/// `call_waited_too_long` ends a call that waits for an event.
/// A future that is dropped ends its call, and releases what it held.
#[derive(Clone)]
pub struct Plugin(Arc<Core>);

impl Plugin {
    /// Compiles the component (or loads its code from the cache) and links it.
    /// No guest code runs. Fails, naming both versions, on a component of
    /// another contract version.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    ///
    /// use agent_teams_host::contract::Caller;
    /// use agent_teams_host::engine::{Options, Parts, Plugin, Signals, SystemClock};
    /// use agent_teams_host::storage::MemoryStore;
    ///
    /// # async fn example() -> anyhow::Result<()> {
    /// let parts = Parts {
    ///     store: Arc::new(MemoryStore::new()),
    ///     signals: Arc::new(Signals::default()),
    ///     settings: "{}".into(),
    ///     clock: Arc::new(SystemClock),
    /// };
    /// let plugin = Plugin::load(Plugin::embedded(), parts, Options::default())?;
    /// plugin.open().await?;
    /// let teams = plugin.call_action(Caller::owner("ann"), None, "list", "{}").await?;
    /// # drop(teams);
    /// # Ok(())
    /// # }
    /// ```
    pub fn load(component: &[u8], parts: Parts, options: Options) -> anyhow::Result<Self> {
        Ok(Self(Arc::new(Core::load(component, parts, options)?)))
    }

    /// The component built with this host.
    pub fn embedded() -> &'static [u8] {
        include_bytes!(concat!(env!("OUT_DIR"), "/agent_teams.wasm"))
    }

    /// Name, versions and bounds of the component.
    pub async fn info(&self) -> Result<Info, CallError> {
        let _admitted = self.0.admit()?;
        let mut call = self.0.instance("info").await?;
        let guest = call.guest.agent_teams_plugin_lifecycle();
        let answer = within(call.deadline, guest.call_info(&mut call.store)).await;
        convert::info(call.end(answer)?)
    }

    /// Makes the component ready; called once, before anything is served.
    pub async fn open(&self) -> Result<(), CallError> {
        let _admitted = self.0.admit()?;
        let mut call = self.0.instance("open").await?;
        let guest = call.guest.agent_teams_plugin_lifecycle();
        let answer = within(call.deadline, guest.call_init(&mut call.store)).await;
        Ok(call.end(answer)??)
    }

    /// The tools of a profile (`full`: all), in a stable order.
    pub async fn tools(&self, profile: &str) -> Result<Vec<ToolDef>, CallError> {
        let _admitted = self.0.admit()?;
        let mut call = self.0.instance("tools").await?;
        let guest = call.guest.agent_teams_plugin_tools();
        let answer = within(call.deadline, guest.call_list(&mut call.store, profile)).await;
        call.end(answer)?.into_iter().map(convert::tool).collect()
    }

    /// Calls a tool and waits out a parked call; the answer is JSON text.
    pub async fn call_tool(
        &self,
        caller: Caller,
        runs: Option<Capability>,
        name: &str,
        arguments: &str,
    ) -> Result<String, CallError> {
        let _admitted = self.0.admit()?;
        let owner = caller.owner.clone();
        let (caller, arguments) = (caller.into(), arguments.to_owned());
        let mut call = self.0.instance("call_tool").await?;
        let runs = runs.map(|runs| lend(&mut call.store, runs)).transpose()?;
        let guest = call.guest.agent_teams_plugin_tools();
        let answer = within(call.deadline, guest.call_call(&mut call.store, &caller, runs, name, &arguments)).await;
        let mut outcome = call.end(answer)??;

        let mut waits = Waits::new(&self.0, &owner, "call_tool");
        loop {
            let (token, wake) = match waits.next(outcome).await? {
                Next::Done(json) => return Ok(json),
                Next::Resume { token, wake } => (token, wake),
            };
            let mut call = self.0.instance_even_closing("resume_tool").await?;
            let guest = call.guest.agent_teams_plugin_tools();
            let answer = within(call.deadline, guest.call_resume_call(&mut call.store, &caller, &token, wake)).await;
            outcome = call.end(answer)??;
        }
    }

    /// Members of the owner's teams whose names match.
    pub async fn search_mentions(&self, caller: Caller, query: &str) -> Result<Vec<MentionHit>, CallError> {
        let _admitted = self.0.admit()?;
        let mut call = self.0.instance("search_mentions").await?;
        let guest = call.guest.agent_teams_plugin_mentions();
        let answer = within(call.deadline, guest.call_search(&mut call.store, &caller.into(), query)).await;
        Ok(call.end(answer)??.into_iter().map(MentionHit::from).collect())
    }

    /// Sends a message to every member that it mentions, or to none. The
    /// answer is JSON text.
    pub async fn dispatch_mention(
        &self,
        caller: Caller,
        runs: Capability,
        message: MentionMessage,
    ) -> Result<String, CallError> {
        let _admitted = self.0.admit()?;
        let mut call = self.0.instance("dispatch_mention").await?;
        let runs = lend(&mut call.store, runs)?;
        let guest = call.guest.agent_teams_plugin_mentions();
        let (caller, message) = (caller.into(), message.into());
        let work = guest.call_dispatch(&mut call.store, &caller, runs, &message);
        let answer = within(call.deadline, work).await;
        Ok(call.end(answer)??)
    }

    /// All actions, in a stable order.
    pub async fn actions(&self) -> Result<Vec<ActionDef>, CallError> {
        let _admitted = self.0.admit()?;
        let mut call = self.0.instance("actions").await?;
        let guest = call.guest.agent_teams_plugin_actions();
        let answer = within(call.deadline, guest.call_list(&mut call.store)).await;
        call.end(answer)?.into_iter().map(convert::action).collect()
    }

    /// Calls an action and waits out a parked call; the answer is JSON text.
    pub async fn call_action(
        &self,
        caller: Caller,
        runs: Option<Capability>,
        action: &str,
        payload: &str,
    ) -> Result<String, CallError> {
        let _admitted = self.0.admit()?;
        let owner = caller.owner.clone();
        let (caller, payload) = (caller.into(), payload.to_owned());
        let mut call = self.0.instance("call_action").await?;
        let runs = runs.map(|runs| lend(&mut call.store, runs)).transpose()?;
        let guest = call.guest.agent_teams_plugin_actions();
        let answer = within(call.deadline, guest.call_call(&mut call.store, &caller, runs, action, &payload)).await;
        let mut outcome = call.end(answer)??;

        let mut waits = Waits::new(&self.0, &owner, "call_action");
        loop {
            let (token, wake) = match waits.next(outcome).await? {
                Next::Done(json) => return Ok(json),
                Next::Resume { token, wake } => (token, wake),
            };
            let mut call = self.0.instance_even_closing("resume_action").await?;
            let guest = call.guest.agent_teams_plugin_actions();
            let answer = within(call.deadline, guest.call_resume_call(&mut call.store, &caller, &token, wake)).await;
            outcome = call.end(answer)??;
        }
    }

    /// The page's files.
    pub async fn assets(&self) -> Result<Vec<AssetInfo>, CallError> {
        let _admitted = self.0.admit()?;
        let mut call = self.0.instance("assets").await?;
        let guest = call.guest.agent_teams_plugin_assets();
        let answer = within(call.deadline, guest.call_list(&mut call.store)).await;
        Ok(call.end(answer)?.into_iter().map(AssetInfo::from).collect())
    }

    /// One file of the page; an unknown path is refused as not found.
    pub async fn asset(&self, path: &str) -> Result<Asset, CallError> {
        let _admitted = self.0.admit()?;
        let mut call = self.0.instance("asset").await?;
        let guest = call.guest.agent_teams_plugin_assets();
        let answer = within(call.deadline, guest.call_read(&mut call.store, path)).await;
        Ok(call.end(answer)??.into())
    }

    /// What to do next. Changes nothing, so it may be repeated freely.
    /// `resting`: teams whose last step failed and that are let rest for now.
    pub async fn plan(&self, ended: Vec<EndedRun>, sweep: bool, resting: Vec<TeamRef>) -> Result<Plan, CallError> {
        let _admitted = self.0.admit()?;
        let resting: Vec<_> = resting.into_iter().map(Into::into).collect();
        let ended: Vec<_> = ended.into_iter().map(Into::into).collect();
        let mut call = self.0.worker_instance("plan").await?;
        let guest = call.guest.agent_teams_plugin_worker();
        let answer = within(call.deadline, guest.call_plan(&mut call.store, &ended, sweep, &resting)).await;
        Ok(call.end(answer)??.into())
    }

    /// Admits what the plan has put together, in one commit, and says which
    /// steps start it. Harmless when repeated.
    pub async fn admit(&self, batch: &[u8]) -> Result<Vec<Step>, CallError> {
        let _admitted = self.0.admit()?;
        let mut call = self.0.worker_instance("admit").await?;
        let guest = call.guest.agent_teams_plugin_worker();
        let answer = within(call.deadline, guest.call_admit(&mut call.store, batch)).await;
        Ok(call.end(answer)??.into_iter().map(Step::from).collect())
    }

    /// One bounded step of one team; harmless when repeated. True: something
    /// changed, so plan again.
    pub async fn advance(&self, team: &TeamRef, permit: &[u8]) -> Result<bool, CallError> {
        let _admitted = self.0.admit()?;
        let mut call = self.0.worker_instance("advance").await?;
        let guest = call.guest.agent_teams_plugin_worker();
        let work = guest.call_advance(&mut call.store, &team.owner, &team.team, permit);
        let answer = within(call.deadline, work).await;
        Ok(call.end(answer)??)
    }

    /// Binds a capability to a team and makes its conversations; harmless
    /// when repeated.
    pub async fn connect(&self, team: &TeamRef, runs: Capability) -> Result<(), CallError> {
        let _admitted = self.0.admit()?;
        let mut call = self.0.worker_instance("connect").await?;
        let runs = lend(&mut call.store, runs)?;
        let guest = call.guest.agent_teams_plugin_worker();
        let work = guest.call_connect(&mut call.store, &team.owner, &team.team, runs);
        let answer = within(call.deadline, work).await;
        Ok(call.end(answer)??)
    }

    /// Who holds the slots, as JSON text.
    pub async fn slots(&self) -> Result<String, CallError> {
        let _admitted = self.0.admit()?;
        let mut call = self.0.instance("slots").await?;
        let guest = call.guest.agent_teams_plugin_operator();
        let answer = within(call.deadline, guest.call_slots(&mut call.store)).await;
        let slots = call.end(answer)??.into_iter().map(convert::held_slot).collect();
        Ok(serde_json::Value::Array(slots).to_string())
    }

    /// The settled job, as JSON text.
    pub async fn settle(&self, team: &TeamRef, job: &str) -> Result<String, CallError> {
        let _admitted = self.0.admit()?;
        let mut call = self.0.instance("settle").await?;
        let guest = call.guest.agent_teams_plugin_operator();
        let work = guest.call_settle(&mut call.store, &team.owner, &team.team, job);
        let answer = within(call.deadline, work).await;
        Ok(convert::settled(call.end(answer)??).to_string())
    }

    /// Whether a capability is bound to this team in this process.
    pub fn connected(&self, team: &TeamRef) -> bool {
        self.0.shared.connections.lookup(team).is_some()
    }

    /// Takes away every capability bound to this owner's teams (for a user
    /// who was disabled). Calls under way keep what they hold; the agents
    /// check the user at each call.
    pub fn forget(&self, owner: &str) {
        self.0.shared.connections.forget_owner(owner);
    }

    /// Instances that run now. Parked calls hold none.
    pub fn running(&self) -> usize {
        self.0.running()
    }

    /// Calls that wait for an event now.
    pub fn parked(&self) -> usize {
        self.0.parked()
    }

    /// Answers parked calls at once with "closed", refuses new calls with
    /// `host_stopping`, and returns when every call has answered.
    pub async fn shutdown(&self) {
        self.0.shutdown().await;
    }
}

/// Lends a capability for one call: the store keeps it, the guest borrows it.
fn lend(store: &mut Store<State>, runs: Capability) -> Result<Resource<Runs>, CallError> {
    let kept = store.data_mut().table.push(Runs(runs)).map_err(|_| malformed("lend", "no room for a capability"))?;
    Ok(Resource::new_borrow(kept.rep()))
}
