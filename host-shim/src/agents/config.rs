//! The `[[agents]]`, `[models.NAME]` and `[conversations]` parts of
//! `agent-teams.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use super::providers::{Mistake, ModelConfig};

/// The tools that every host has; component tools come on top.
pub const BUILTIN_TOOLS: [&str; 4] = [ASK, "list_files", "read_file", "write_file"];
/// The tool that ends a turn with a question.
pub const ASK: &str = "ask_clarification";
/// In `tools` and `approve`: all tools of the component, as a group.
pub const EXTENSIONS: &str = "extensions";

const MAX_NAME_CHARS: usize = 128;
const MAX_NAME_BYTES: usize = 256;

/// Agents and models as configured. Call `validate` before use.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentsConfig {
    pub agents: Vec<AgentConfig>,
    pub models: BTreeMap<String, ModelConfig>,
    pub conversations: ConversationsConfig,
}

/// The `[conversations]` part.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConversationsConfig {
    /// Runs of one user at work at once, of those that the user began by
    /// posting to conversations (1 to 1000). Jobs of teams are bounded apart.
    pub max_runs_per_user: u32,
}

impl Default for ConversationsConfig {
    fn default() -> Self {
        Self { max_runs_per_user: 8 }
    }
}

/// What runs an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentKind {
    /// This program's own loop, on a model endpoint.
    #[default]
    Builtin,
}

/// One agent: who it is, which model it runs on, what it may do.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    /// What runs it.
    #[serde(default)]
    pub kind: AgentKind,
    /// Unique; at most 128 characters and 256 bytes. A conversation is bound
    /// to it forever.
    pub name: String,
    /// For people. Default: the name.
    #[serde(default)]
    pub display_name: String,
    #[serde(default)]
    pub description: String,
    /// The system text of every model call.
    #[serde(default)]
    pub instructions: String,
    /// A name under `[models]`.
    pub model: String,
    /// Tools it may call: names, or `extensions` for all of the component's.
    /// Absent: all.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Tools that run only after a person has approved the exact call: names,
    /// or `extensions` for all of the component's.
    #[serde(default)]
    pub approve: Vec<String>,
    /// Users who may run it. Absent: every user.
    #[serde(default)]
    pub users: Option<Vec<String>>,
    /// Bound of one model input, in tokens as estimated by the host.
    #[serde(default = "default_context_tokens")]
    pub context_tokens: u32,
    /// Bound of model calls in one run.
    #[serde(default = "default_max_model_calls")]
    pub max_model_calls: u32,
    /// Bound of a run's working time, in minutes; time spent waiting for an
    /// approval does not count.
    #[serde(default = "default_max_minutes")]
    pub max_minutes: u32,
}

fn default_context_tokens() -> u32 {
    32_768
}
fn default_max_model_calls() -> u32 {
    50
}
fn default_max_minutes() -> u32 {
    60
}

impl AgentConfig {
    /// The name to show.
    pub fn display(&self) -> &str {
        if self.display_name.is_empty() { &self.name } else { &self.display_name }
    }

    /// Whether this user may run it.
    pub fn allows_user(&self, user: &str) -> bool {
        self.users.as_ref().is_none_or(|users| users.iter().any(|u| u == user))
    }

    /// Whether it may call this tool.
    pub fn allows_tool(&self, name: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| named(tools, name))
    }

    /// Whether this tool waits for a person.
    pub fn needs_approval(&self, name: &str) -> bool {
        named(&self.approve, name)
    }

    /// Why this name under `approve` would change nothing.
    fn idle_approval(&self, name: &str) -> Option<String> {
        if name == ASK {
            return Some(format!("{ASK:?} asks a person anyway; leave it out here"));
        }
        let allowed = match name {
            EXTENSIONS => self.tools.as_ref().is_none_or(|t| t.iter().any(|t| !BUILTIN_TOOLS.contains(&t.as_str()))),
            name => self.allows_tool(name),
        };
        (!allowed).then(|| format!("{name:?} is not among this agent's tools"))
    }
}

/// Whether a list of tools names this one, by itself or as one of a group.
fn named(list: &[String], tool: &str) -> bool {
    let builtin = BUILTIN_TOOLS.contains(&tool);
    list.iter().any(|name| name == tool || (!builtin && name == EXTENSIONS))
}

/// A mistake in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct ConfigError {
    /// The key at fault, for example `agents[1].model`.
    pub key: String,
    pub message: String,
}

pub(super) fn fault(key: String, message: impl Into<String>) -> ConfigError {
    ConfigError { key, message: message.into() }
}

impl AgentsConfig {
    /// Makes relative script paths relative to `base` (the folder of the
    /// configuration file).
    pub fn resolve_paths(&mut self, base: &Path) {
        for model in self.models.values_mut() {
            model.provider_mut().resolve_paths(base);
        }
    }

    /// Checks everything that can be checked without a file or the network;
    /// the error names the key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if !(1..=1000).contains(&self.conversations.max_runs_per_user) {
            return Err(fault("conversations.max_runs_per_user".into(), "give a number from 1 to 1000"));
        }
        for (name, model) in &self.models {
            let wrong = model.provider().validate();
            wrong.map_err(|Mistake { field, message }| fault(format!("models.{name}.{field}"), message))?;
        }
        let mut names = BTreeSet::new();
        for (i, agent) in self.agents.iter().enumerate() {
            let key = |field: &str| format!("agents[{i}].{field}");
            validate_name(&agent.name).map_err(|m| fault(key("name"), m))?;
            if !names.insert(&agent.name) {
                return Err(fault(key("name"), format!("two agents are named {:?}", agent.name)));
            }
            if !self.models.contains_key(&agent.model) {
                let known = self.models.keys().cloned().collect::<Vec<_>>().join(", ");
                return Err(fault(
                    key("model"),
                    format!("there is no [models.{}]; the models are: {known}", agent.model),
                ));
            }
            for name in &agent.approve {
                if let Some(why) = agent.idle_approval(name) {
                    return Err(fault(key("approve"), why));
                }
            }
            for (field, value) in [("max_model_calls", agent.max_model_calls), ("max_minutes", agent.max_minutes)] {
                if value == 0 {
                    return Err(fault(key(field), "must be at least 1"));
                }
            }
            if agent.context_tokens < 1024 {
                return Err(fault(key("context_tokens"), "must be at least 1024"));
            }
        }
        Ok(())
    }
}

fn validate_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.trim() != name {
        return Err("must not be empty or begin or end with white space".into());
    }
    if name.chars().count() > MAX_NAME_CHARS || name.len() > MAX_NAME_BYTES {
        return Err(format!("is longer than {MAX_NAME_CHARS} characters or {MAX_NAME_BYTES} bytes"));
    }
    if name.chars().any(char::is_control) {
        return Err("must not contain control characters".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> AgentsConfig {
        toml::from_str(text).unwrap()
    }

    const MODELS: &str = "[models.m]\nkind = 'scripted'\n[[models.m.rules]]\ntext = 'hello'\n";

    fn error(agents: &str) -> ConfigError {
        parse(&format!("{agents}\n{MODELS}")).validate().unwrap_err()
    }

    #[test]
    fn a_full_example_is_read() {
        let config = parse(
            r#"
            [[agents]]
            name = "writer"
            model = "local"
            tools = ["write_file", "extensions"]
            approve = ["write_file"]
            users = ["ada"]
            [models.local]
            kind = "openai"
            base_url = "http://127.0.0.1:8080/v1"
            model = "small"
            api_key_env = "MODEL_KEY"
            "#,
        );
        config.validate().unwrap();
        let agent = &config.agents[0];
        assert_eq!((agent.context_tokens, agent.max_model_calls, agent.max_minutes), (32_768, 50, 60));
        assert!(agent.allows_tool("send_member") && !agent.allows_tool("read_file"));
        assert!(agent.allows_user("ada") && !agent.allows_user("bo"));
    }

    #[test]
    fn mistakes_name_their_key() {
        assert_eq!(error("[[agents]]\nname='a'\nmodel='x'").key, "agents[0].model");
        assert_eq!(error("[[agents]]\nname=' a'\nmodel='m'").key, "agents[0].name");
        let twice = "[[agents]]\nname='a'\nmodel='m'\n[[agents]]\nname='a'\nmodel='m'";
        assert_eq!(error(twice).key, "agents[1].name");
        let approve = "[[agents]]\nname='a'\nmodel='m'\ntools=['read_file']\napprove=['write_file']";
        assert_eq!(error(approve).key, "agents[0].approve");
        assert_eq!(error("[[agents]]\nname='a'\nmodel='m'\nmax_minutes=0").key, "agents[0].max_minutes");
        let url = parse("[models.m]\nkind='openai'\nbase_url='http://u:p@h/v1'\nmodel='x'").validate().unwrap_err();
        assert_eq!(url.key, "models.m.base_url");
        assert!(!url.to_string().contains("u:p"));
        let key = parse("[models.m]\nkind='openai'\nbase_url='http://h/v1'\nmodel='x'\napi_key_env='sk-1'");
        assert_eq!(key.validate().unwrap_err().key, "models.m.api_key_env");
    }

    #[test]
    fn a_group_of_tools_can_need_approval_and_an_idle_approval_is_refused() {
        let config = parse(&format!("[[agents]]\nname='a'\nmodel='m'\napprove=['extensions','write_file']\n{MODELS}"));
        config.validate().unwrap();
        let needs = |tool| config.agents[0].needs_approval(tool);
        assert!(needs("send_member") && needs("write_file") && !needs("read_file"));
        for idle in ["approve=['ask_clarification']", "tools=['read_file']\napprove=['extensions']"] {
            assert_eq!(error(&format!("[[agents]]\nname='a'\nmodel='m'\n{idle}")).key, "agents[0].approve");
        }
    }

    #[test]
    fn unknown_fields_are_refused() {
        for text in [
            "[[agents]]\nname='a'\nmodel='m'\ncolour='red'",
            "[models.m]\nkind='openai'\nbase_url='http://h/v1'\nmodel='x'\napi_key='k'",
            "[models.m]\nkind='scripted'\nscript='f'\nother=1",
        ] {
            assert!(toml::from_str::<AgentsConfig>(text).is_err(), "{text}");
        }
    }
}
