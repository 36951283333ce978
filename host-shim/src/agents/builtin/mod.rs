//! The built-in agents: persistent conversations and a tool loop, on an
//! OpenAI-compatible endpoint or on the scripted model.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use tokio::sync::broadcast;

use super::config::AgentsConfig;
use super::runs::{Capability, RunError};
use crate::contract::{CallError, Caller, EndedRun, ToolDef};
use crate::storage::database::Database;

/// Tools that agents get besides the built-in ones: those of the component.
#[async_trait]
pub trait ToolHost: Send + Sync + 'static {
    async fn list(&self) -> Result<Vec<ToolDef>, CallError>;
    /// The answer is JSON text.
    async fn call(&self, caller: Caller, name: &str, arguments: &str) -> Result<String, CallError>;
}

/// Who may act at all; asked at each call.
pub trait UserDirectory: Send + Sync + 'static {
    fn enabled(&self, user: &str) -> bool;
}

/// One entry of the catalogue, as a user sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentCard {
    pub name: String,
    pub display_name: String,
    pub description: String,
}

pub struct BuiltinAgents;

#[allow(unused_variables, clippy::unused_async)]
impl BuiltinAgents {
    /// Opens the agents on the database. Nothing runs before `recover`.
    pub fn open(
        db: Database,
        config: AgentsConfig,
        tools: Arc<dyn ToolHost>,
        users: Arc<dyn UserDirectory>,
        workspaces: PathBuf,
    ) -> anyhow::Result<Arc<Self>> {
        unimplemented!()
    }
    /// Settles or continues every run that a crash left unfinished.
    pub async fn recover(self: &Arc<Self>) -> anyhow::Result<()> {
        unimplemented!()
    }
    /// The agents that this user may run.
    pub fn catalogue(&self, user: &str) -> Vec<AgentCard> {
        unimplemented!()
    }
    /// The capability of one user; every call of it rechecks the user.
    pub fn capability(self: &Arc<Self>, user: &str) -> Capability {
        unimplemented!()
    }
    /// Every run that ends from now on.
    pub fn ended(&self) -> broadcast::Receiver<EndedRun> {
        unimplemented!()
    }
    /// Stops runs at their next safe point and waits for them.
    pub async fn shutdown(&self) {
        unimplemented!()
    }
    /// A user's conversations, newest first.
    pub fn conversations(&self, user: &str, limit: u32) -> Result<Vec<Conversation>, RunError> {
        unimplemented!()
    }
    /// One conversation with its messages after `after`, oldest first.
    pub fn conversation(
        &self,
        user: &str,
        thread: &str,
        after: Option<u64>,
        limit: u32,
    ) -> Result<Transcript, RunError> {
        unimplemented!()
    }
    /// Posts a human message and starts a run with it. `message_id` is the
    /// idempotency key. With `thread` absent a new conversation is made.
    pub async fn post(self: &Arc<Self>, user: &str, post: Post) -> Result<Posted, RunError> {
        unimplemented!()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conversation {
    pub id: String,
    pub agent: String,
    pub title: String,
    /// RFC 3339.
    pub created_at: String,
    pub active_run: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Transcript {
    pub conversation: Conversation,
    pub messages: Vec<TranscriptMessage>,
    /// Whether there are messages after the last one given.
    pub more: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TranscriptMessage {
    pub number: u64,
    pub id: String,
    /// `human`, `assistant` or `tool`.
    pub role: &'static str,
    pub text: String,
    pub run: Option<String>,
    /// Names of the tools that an assistant message calls, with arguments.
    pub tool_calls: Vec<serde_json::Value>,
    /// RFC 3339.
    pub created_at: String,
    pub provenance: Option<serde_json::Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    pub thread: Option<String>,
    /// Needed for a new conversation.
    pub agent: Option<String>,
    pub message_id: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Posted {
    pub thread: String,
    pub run: String,
}
