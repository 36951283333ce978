//! An agent host as the rest of the host sees it: which agents there are, the
//! capability to run them, and their conversations for people. The built-in
//! agents are the first; another kind implements [`AgentHost`] and gets its line
//! in [`super::open`].

use async_trait::async_trait;
use serde::Serialize;
use tokio::sync::broadcast;

use super::runs::{Capability, RunError};
use crate::contract::{CallError, Caller, EndedRun, ToolDef};

/// Tools that agents get besides the built-in ones: those of the component.
#[async_trait]
pub trait ToolHost: Send + Sync + 'static {
    /// The tools of a profile, in a stable order. `profile` names a set that
    /// fits a model (`full`, or another that `agent-runs.describe` gives); a name
    /// that is not known gives the full set.
    async fn list(&self) -> Result<Vec<ToolDef>, CallError>;
    /// The answer is JSON text.
    async fn call(&self, caller: Caller, name: &str, arguments: &str) -> Result<String, CallError>;
}

/// The agents of this process.
#[async_trait]
pub trait AgentHost: Send + Sync + 'static {
    /// The agents that this user may run.
    fn catalogue(&self, user: &str) -> Vec<AgentCard>;

    /// The capability of one user.
    fn capability(&self, user: &str) -> Capability;

    /// The user's newest conversations. Reads the database; not to be called on
    /// an asynchronous thread.
    fn conversations(&self, user: &str, limit: u32) -> Result<Vec<Conversation>, RunError>;

    /// A page of one conversation, from the message after `after` on. Reads the
    /// database, as above.
    fn conversation(&self, user: &str, thread: &str, after: Option<u64>, limit: u32) -> Result<Transcript, RunError>;

    /// Whether the user may have one more run at work by posting; `post` itself
    /// decides it again. Reads the database, as above.
    fn room(&self, user: &str) -> Result<(), RunError>;

    /// A person's message in a conversation, which starts a run. The same
    /// message id with the same text is the same post.
    async fn post(&self, user: &str, post: Post) -> Result<Posted, RunError>;

    /// Every run that ends, or stops at an interrupt, from now on. The event
    /// comes after the commit. A receiver that lags learns that it did.
    fn ended(&self) -> broadcast::Receiver<EndedRun>;

    /// Continues what the last process left, once everything else has started,
    /// and looks after all runs from then on. A host of which nothing lives in
    /// this process has nothing to do.
    async fn recover(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Stops all runs in order; what they have done is stored.
    async fn shutdown(&self) {}
}

/// One entry of the catalogue, as a user sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentCard {
    /// The agent's name, as conversations are bound to it.
    pub name: String,
    /// The name to show.
    pub display_name: String,
    /// For people and for agents that choose one.
    pub description: String,
}

/// One conversation of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conversation {
    /// Its id.
    pub id: String,
    /// The agent that it is bound to.
    pub agent: String,
    /// For people.
    pub title: String,
    /// RFC 3339.
    pub created_at: String,
    /// The run at work. Absent: none.
    pub active_run: Option<String>,
    /// The run that has stopped to wait for a person's approval. Absent: none.
    pub waiting_run: Option<String>,
}

/// A conversation with some of its messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Transcript {
    /// The conversation.
    pub conversation: Conversation,
    /// The messages, oldest first.
    pub messages: Vec<TranscriptMessage>,
    /// Whether there are messages after the last one given.
    pub more: bool,
}

/// One message, as people read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TranscriptMessage {
    /// Its place in the conversation.
    pub number: u64,
    /// Its id.
    pub id: String,
    /// `human`, `assistant` or `tool`.
    pub role: &'static str,
    /// Its text.
    pub text: String,
    /// The run that it belongs to.
    pub run: Option<String>,
    /// Names of the tools that an assistant message calls, with arguments.
    pub tool_calls: Vec<serde_json::Value>,
    /// RFC 3339.
    pub created_at: String,
    /// Who wrote a human message, as the host knows it.
    pub provenance: Option<serde_json::Value>,
}

/// A message of a person, to a conversation or to a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// The conversation. Absent: a new one.
    pub thread: Option<String>,
    /// Needed for a new conversation.
    pub agent: Option<String>,
    /// The idempotency key: the same post again answers the same.
    pub message_id: String,
    /// The message.
    pub text: String,
}

/// What a post began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Posted {
    /// The conversation.
    pub thread: String,
    /// The run.
    pub run: String,
}
