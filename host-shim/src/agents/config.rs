//! The `[[agents]]` and `[[models]]` parts of `agent-teams.toml`.

/// Agents and models as configured.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentsConfig {}
