//! Agents: the catalogue, the capability to run them, and the built-in ones.

pub mod builtin;
pub mod config;
#[warn(missing_docs)]
pub mod host;
pub mod names;
pub mod providers;
#[warn(missing_docs)]
pub mod runs;

use std::path::PathBuf;
use std::sync::Arc;

use config::AgentsConfig;
use host::{AgentHost, ToolHost};

use crate::storage::Tables;
use crate::users::UserDirectory;

/// Opens the agents of a configuration, whatever their kinds. `workspaces`: the
/// folder below which each conversation has one for its files.
pub fn open(
    tables: Tables,
    config: AgentsConfig,
    tools: Arc<dyn ToolHost>,
    users: Arc<dyn UserDirectory>,
    workspaces: PathBuf,
) -> anyhow::Result<Arc<dyn AgentHost>> {
    let agents = builtin::BuiltinAgents::open(tables, config, tools, users, workspaces)?;
    Ok(Arc::new(agents))
}
