//! What the gateway needs from the rest of the host, as two traits: so that
//! it is tested without the component and without agents.

use std::sync::Arc;

use async_trait::async_trait;

use crate::agents::builtin::{AgentCard, BuiltinAgents, Conversation, Post, Posted, Transcript};
use crate::agents::runs::{Capability, RunError};
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

/// Agents and conversations, as the gateway calls them. See [`BuiltinAgents`]
/// for each method.
#[async_trait]
pub trait AgentsApi: Send + Sync + 'static {
    /// The agents that this user may run.
    fn catalogue(&self, user: &str) -> Vec<AgentCard>;
    /// The capability of one user.
    fn capability(&self, user: &str) -> Capability;
    /// Reads the database; not to be called on an asynchronous thread.
    fn conversations(&self, user: &str, limit: u32) -> Result<Vec<Conversation>, RunError>;
    /// Reads the database; not to be called on an asynchronous thread.
    fn conversation(&self, user: &str, thread: &str, after: Option<u64>, limit: u32) -> Result<Transcript, RunError>;
    /// Whether the user may have one more run at work by posting; `post` itself
    /// decides it again. Reads the database, as above.
    fn room(&self, user: &str) -> Result<(), RunError>;
    async fn post(&self, user: &str, post: Post) -> Result<Posted, RunError>;
}

#[async_trait]
impl AgentsApi for Arc<BuiltinAgents> {
    fn catalogue(&self, user: &str) -> Vec<AgentCard> {
        BuiltinAgents::catalogue(self, user)
    }
    fn capability(&self, user: &str) -> Capability {
        BuiltinAgents::capability(self, user)
    }
    fn conversations(&self, user: &str, limit: u32) -> Result<Vec<Conversation>, RunError> {
        BuiltinAgents::conversations(self, user, limit)
    }
    fn conversation(&self, user: &str, thread: &str, after: Option<u64>, limit: u32) -> Result<Transcript, RunError> {
        BuiltinAgents::conversation(self, user, thread, after, limit)
    }
    fn room(&self, user: &str) -> Result<(), RunError> {
        BuiltinAgents::room(self, user)
    }
    async fn post(&self, user: &str, post: Post) -> Result<Posted, RunError> {
        BuiltinAgents::post(self, user, post).await
    }
}
