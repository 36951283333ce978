//! What the gateway needs from the rest of the host, as two traits: so that
//! it is tested without the component and without agents.

use async_trait::async_trait;

use crate::agents::runs::Capability;
use crate::contract::{ActionDef, Asset, AssetInfo, CallError, Caller, MentionHit, MentionMessage, TeamRef, ToolDef};
use crate::engine::Plugin;

/// The component, as the gateway calls it. See [`Plugin`] for each method.
#[async_trait]
pub trait TeamApi: Send + Sync + 'static {
    async fn actions(&self) -> Result<Vec<ActionDef>, CallError>;
    /// `payload` and the answer are JSON text.
    async fn call_action(
        &self,
        caller: Caller,
        runs: Capability,
        action: &str,
        payload: &str,
    ) -> Result<String, CallError>;
    async fn tools(&self) -> Result<Vec<ToolDef>, CallError>;
    async fn search_mentions(&self, caller: Caller, query: &str) -> Result<Vec<MentionHit>, CallError>;
    /// The answer is JSON text.
    async fn dispatch_mention(
        &self,
        caller: Caller,
        runs: Capability,
        message: MentionMessage,
    ) -> Result<String, CallError>;
    /// Who holds a slot, of all owners; for the operator. JSON text.
    async fn slots(&self) -> Result<String, CallError>;
    /// Ends a job that holds a slot, as the operator. JSON text.
    async fn settle(&self, team: &TeamRef, job: &str) -> Result<String, CallError>;
    /// Takes away every capability that is bound to this owner's teams.
    fn forget(&self, owner: &str);
    async fn assets(&self) -> Result<Vec<AssetInfo>, CallError>;
    async fn asset(&self, path: &str) -> Result<Asset, CallError>;
}

#[async_trait]
impl TeamApi for Plugin {
    async fn actions(&self) -> Result<Vec<ActionDef>, CallError> {
        Plugin::actions(self).await
    }
    async fn call_action(
        &self,
        caller: Caller,
        runs: Capability,
        action: &str,
        payload: &str,
    ) -> Result<String, CallError> {
        Plugin::call_action(self, caller, Some(runs), action, payload).await
    }
    async fn tools(&self) -> Result<Vec<ToolDef>, CallError> {
        Plugin::tools(self, "full").await
    }
    async fn search_mentions(&self, caller: Caller, query: &str) -> Result<Vec<MentionHit>, CallError> {
        Plugin::search_mentions(self, caller, query).await
    }
    async fn dispatch_mention(
        &self,
        caller: Caller,
        runs: Capability,
        message: MentionMessage,
    ) -> Result<String, CallError> {
        Plugin::dispatch_mention(self, caller, runs, message).await
    }
    async fn slots(&self) -> Result<String, CallError> {
        Plugin::slots(self).await
    }
    async fn settle(&self, team: &TeamRef, job: &str) -> Result<String, CallError> {
        Plugin::settle(self, team, job).await
    }
    fn forget(&self, owner: &str) {
        Plugin::forget(self, owner);
    }
    async fn assets(&self) -> Result<Vec<AssetInfo>, CallError> {
        Plugin::assets(self).await
    }
    async fn asset(&self, path: &str) -> Result<Asset, CallError> {
        Plugin::asset(self, path).await
    }
}

/// Whether the process can serve at all.
#[async_trait]
pub trait HealthApi: Send + Sync + 'static {
    /// What is wrong, in a sentence for anybody.
    async fn check(&self) -> Result<(), &'static str>;
}
