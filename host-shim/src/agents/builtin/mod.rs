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
mod state;
mod steps;
mod tools;
mod views;
mod window;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use tokio::sync::{OnceCell, broadcast};

use super::config::{AgentConfig, AgentsConfig, ConversationsConfig};
use super::host::{AgentCard, AgentHost, Conversation, Post, Posted, ToolHost, Transcript};
use super::providers::Model;
use super::runs::{Capability, RunError};
use crate::contract::{EndedRun, ToolDef};
use crate::storage::Tables;
use crate::users::UserDirectory;

/// Messages that one run may add; the contract's `state` gives 500 at most.
const MAX_RUN_MESSAGES: u32 = 450;
/// A run whose work was begun this often without getting anywhere is not begun
/// again.
const MAX_ATTEMPTS: u32 = 100;
/// Events that a slow listener may be behind.
const EVENTS: usize = 1024;

/// The built-in agents of this process. There is one of them on a database.
pub struct BuiltinAgents {
    tables: Tables,
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
    /// scripts. Nothing runs before `recover`.
    pub fn open(
        tables: Tables,
        config: AgentsConfig,
        tools: Arc<dyn ToolHost>,
        users: Arc<dyn UserDirectory>,
        workspaces: PathBuf,
    ) -> anyhow::Result<Arc<Self>> {
        config.validate()?;
        let mut models: HashMap<String, Arc<dyn Model>> = HashMap::new();
        for (name, model) in config.models {
            let model = model.provider().open().with_context(|| format!("models.{name}"))?;
            models.insert(name, model);
        }
        Self::with_models(tables, config.agents, &config.conversations, models, tools, users, workspaces)
    }

    /// The same with models that the caller has made, by name.
    pub fn with_models(
        tables: Tables,
        agents: Vec<AgentConfig>,
        conversations: &ConversationsConfig,
        models: HashMap<String, Arc<dyn Model>>,
        tools: Arc<dyn ToolHost>,
        users: Arc<dyn UserDirectory>,
        workspaces: PathBuf,
    ) -> anyhow::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            tables,
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

/// How often the stored runs are compared with those at work.
const RUNS_CHECKED: Duration = Duration::from_secs(15);

#[async_trait]
impl AgentHost for Arc<BuiltinAgents> {
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
    fn ended(&self) -> broadcast::Receiver<EndedRun> {
        BuiltinAgents::ended(self)
    }
    async fn recover(&self) -> anyhow::Result<()> {
        BuiltinAgents::recover(self).await?;
        self.supervise(RUNS_CHECKED);
        Ok(())
    }
    async fn shutdown(&self) {
        BuiltinAgents::shutdown(self).await;
    }
}
