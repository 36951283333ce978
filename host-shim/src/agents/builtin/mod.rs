//! The built-in agents: persistent conversations and a tool loop, on an
//! OpenAI-compatible endpoint or on the scripted model.
//!
//! Everything that a run has done is in the tables before the next step is
//! taken, so a run is always continued from them: after a crash, after a
//! shutdown and between two steps alike (`run_loop`).

mod commands;
mod direct;
mod files;
mod ids;
mod live;
mod outcome;
mod run_loop;
mod schema;
mod state;
mod steps;
mod tables;
mod tools;
mod views;
mod window;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anyhow::Context;
use async_trait::async_trait;
use serde::Serialize;
use tokio::sync::{OnceCell, broadcast};

use super::config::{AgentConfig, AgentsConfig, ConversationsConfig, ModelConfig};
use super::providers::Model;
use super::providers::openai::OpenAiModel;
use super::providers::scripted::ScriptedModel;
use super::runs::Capability;
use crate::contract::{CallError, Caller, EndedRun, ToolDef};
use crate::storage::database::Database;

/// Messages that one run may add; the contract's `state` gives 500 at most.
const MAX_RUN_MESSAGES: u32 = 450;
/// A run whose work was begun this often without getting anywhere is not begun
/// again.
const MAX_ATTEMPTS: u32 = 100;
/// Events that a slow listener may be behind.
const EVENTS: usize = 1024;

/// Tools that agents get besides the built-in ones: those of the component.
#[async_trait]
pub trait ToolHost: Send + Sync + 'static {
    async fn list(&self) -> Result<Vec<ToolDef>, CallError>;
    /// The answer is JSON text.
    async fn call(&self, caller: Caller, name: &str, arguments: &str) -> Result<String, CallError>;
}

/// Who may act at all; asked at each call.
pub trait UserDirectory: Send + Sync + 'static {
    /// An error says that it is not known now: neither act for the user then,
    /// nor treat the user as disabled.
    fn enabled(&self, user: &str) -> anyhow::Result<bool>;
}

/// One entry of the catalogue, as a user sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentCard {
    pub name: String,
    pub display_name: String,
    pub description: String,
}

/// The built-in agents of this process. There is one of them on a database.
pub struct BuiltinAgents {
    db: Database,
    agents: Vec<AgentConfig>,
    models: HashMap<String, Arc<dyn Model>>,
    tools: Arc<dyn ToolHost>,
    /// The component's tools; asked once.
    component_tools: OnceCell<Vec<ToolDef>>,
    users: Arc<dyn UserDirectory>,
    workspaces: PathBuf,
    /// Runs of one user at work at once, of those begun by posts.
    max_direct_runs: u32,
    recovered: direct::Recovered,
    live: Mutex<live::Live>,
    ended: broadcast::Sender<EndedRun>,
}

impl BuiltinAgents {
    /// Opens the agents on the database: checks the configuration, reads
    /// scripts, migrates the tables. Nothing runs before `recover`.
    pub fn open(
        db: Database,
        config: AgentsConfig,
        tools: Arc<dyn ToolHost>,
        users: Arc<dyn UserDirectory>,
        workspaces: PathBuf,
    ) -> anyhow::Result<Arc<Self>> {
        config.validate()?;
        let mut models: HashMap<String, Arc<dyn Model>> = HashMap::new();
        for (name, model) in config.models {
            let model: Arc<dyn Model> = match model {
                ModelConfig::Openai(c) => Arc::new(OpenAiModel::new(c).with_context(|| format!("models.{name}"))?),
                ModelConfig::Scripted(c) => Arc::new(match c.script {
                    Some(path) => ScriptedModel::load(&path).with_context(|| format!("models.{name}.script"))?,
                    None => ScriptedModel::new(c.rules),
                }),
            };
            models.insert(name, model);
        }
        Self::with_models(db, config.agents, &config.conversations, models, tools, users, workspaces)
    }

    /// The same with models that the caller has made, by name.
    pub fn with_models(
        db: Database,
        agents: Vec<AgentConfig>,
        conversations: &ConversationsConfig,
        models: HashMap<String, Arc<dyn Model>>,
        tools: Arc<dyn ToolHost>,
        users: Arc<dyn UserDirectory>,
        workspaces: PathBuf,
    ) -> anyhow::Result<Arc<Self>> {
        db.migrate("agents", schema::STEPS)?;
        Ok(Arc::new(Self {
            db,
            agents,
            models,
            tools,
            component_tools: OnceCell::new(),
            users,
            workspaces,
            max_direct_runs: conversations.max_runs_per_user,
            recovered: direct::Recovered::new(conversations.max_runs_per_user),
            live: Mutex::default(),
            ended: broadcast::channel(EVENTS).0,
        }))
    }

    /// The agents that this user may run, in the order of the configuration.
    pub fn catalogue(&self, user: &str) -> Vec<AgentCard> {
        let allowed = self.agents.iter().filter(|a| a.allows_user(user));
        allowed
            .map(|a| AgentCard {
                name: a.name.clone(),
                display_name: a.display().to_owned(),
                description: a.description.clone(),
            })
            .collect()
    }

    /// The capability of one user; every call of it rechecks the user.
    pub fn capability(self: &Arc<Self>, user: &str) -> Capability {
        Capability { owner: user.to_owned(), runs: Arc::new(commands::UserRuns::new(self.clone(), user)) }
    }

    /// Every run that ends, or stops at an interrupt, from now on. The event
    /// comes after the commit. A receiver that lags learns that it did.
    pub fn ended(&self) -> broadcast::Receiver<EndedRun> {
        self.ended.subscribe()
    }

    fn agent(&self, name: &str) -> Option<&AgentConfig> {
        self.agents.iter().find(|a| a.name == name)
    }

    /// The folder of a conversation; its name says nothing.
    fn workspace(&self, owner: &str, thread: &str) -> PathBuf {
        self.workspaces.join(ids::id("workspace", &[owner, thread]))
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
    /// The run that has stopped to wait for a person's approval. Absent: none.
    pub waiting_run: Option<String>,
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
