//! Names in the configuration that only the running host can check: tools and
//! users. One that exists nowhere would match nothing, in silence: a misspelt tool
//! under `approve` would be a tool that runs without an approval.

use super::config::{AgentConfig, AgentsConfig, BUILTIN_TOOLS, ConfigError, EXTENSIONS, fault};
use super::providers::{NameInUse, Named};

/// Near names that a refusal offers.
const OFFERED: usize = 3;

/// What exists.
pub struct Known<'a> {
    /// The component's tools.
    pub tools: &'a [String],
    /// The users. Absent: they cannot be looked up now and are not checked.
    pub users: Option<&'a [String]>,
}

impl AgentsConfig {
    /// Refuses the first name that does not exist; the error names the key,
    /// whose name it is, and what was probably meant.
    pub fn check_names(&self, known: &Known<'_>) -> Result<(), ConfigError> {
        (0..self.agents.len()).try_for_each(|index| self.check_agent(index, known))?;
        self.models.keys().try_for_each(|model| self.check_model(model, known))
    }

    /// The same for one agent, by its place in the configuration.
    pub fn check_agent(&self, index: usize, known: &Known<'_>) -> Result<(), ConfigError> {
        let Some(agent) = self.agents.get(index) else { return Ok(()) };
        let key = |field: &str, at: usize| format!("agents[{index}].{field}[{at}]");
        for (field, names) in [("tools", agent.tools.as_deref().unwrap_or_default()), ("approve", &agent.approve)] {
            for (at, name) in names.iter().enumerate() {
                if name != EXTENSIONS && !known.tool(name) {
                    let near = nearest(name, known.tool_names().chain([EXTENSIONS]));
                    return Err(fault(key(field, at), format!("{}: there is no tool {name:?}; {near}", whose(agent))));
                }
            }
        }
        let (Some(wanted), Some(users)) = (&agent.users, known.users) else { return Ok(()) };
        for (at, name) in wanted.iter().enumerate() {
            if !users.contains(name) {
                let near = nearest(name, users.iter().map(String::as_str));
                let add = format!("or add this one with `agent-teams users add {name}`");
                let message = format!("{}: there is no user {name:?}; {near}; {add}", whose(agent));
                return Err(fault(key("users", at), message));
            }
        }
        Ok(())
    }

    /// The same for what a model's settings name.
    pub fn check_model(&self, model: &str, known: &Known<'_>) -> Result<(), ConfigError> {
        let Some(config) = self.models.get(model) else { return Ok(()) };
        for NameInUse { field, names } in config.provider().names() {
            let (kind, name, near) = match &names {
                Named::Agent(name) if !self.agents.iter().any(|agent| agent.name == *name) => {
                    ("agent", name, nearest(name, self.agents.iter().map(|agent| agent.name.as_str())))
                }
                Named::Tool(name) if !known.tool(name) => ("tool", name, nearest(name, known.tool_names())),
                Named::Agent(_) | Named::Tool(_) => continue,
            };
            return Err(fault(format!("models.{model}.{field}"), format!("there is no {kind} {name:?}; {near}")));
        }
        Ok(())
    }
}

fn whose(agent: &AgentConfig) -> String {
    format!("agent {:?}", agent.name)
}

impl Known<'_> {
    fn tool_names(&self) -> impl Iterator<Item = &str> {
        BUILTIN_TOOLS.into_iter().chain(self.tools.iter().map(String::as_str))
    }

    fn tool(&self, name: &str) -> bool {
        self.tool_names().any(|tool| tool == name)
    }
}

/// The existing names that are most like a wrong one, for its refusal.
fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    if names.is_empty() {
        return "there is none at all".into();
    }
    names.sort_by_key(|name| strsim::osa_distance(wrong, name));
    names.dedup();
    names.truncate(OFFERED);
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    format!("the nearest are {}", quoted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &str = "[models.m]\nkind = 'scripted'\n[[models.m.rules]]\ntext = 'hello'\n";

    fn check(text: &str) -> Result<(), ConfigError> {
        let config: AgentsConfig = toml::from_str(&format!("{text}\n{MODEL}")).unwrap();
        config.validate().unwrap();
        let (tools, users) = (["send_member".to_owned(), "read_team_state".into()], ["ada".to_owned()]);
        config.check_names(&Known { tools: &tools, users: Some(&users) })
    }

    fn refused(agent: &str) -> ConfigError {
        check(&format!("[[agents]]\nname = 'a'\nmodel = 'm'\n{agent}")).unwrap_err()
    }

    #[test]
    fn names_that_exist_are_taken() {
        for agent in [
            "",
            "tools = []",
            "tools = ['extensions', 'read_file']\napprove = ['send_member', 'read_file']",
            "approve = ['extensions', 'write_file']\nusers = ['ada']",
            "users = []",
        ] {
            check(&format!("[[agents]]\nname = 'a'\nmodel = 'm'\n{agent}")).unwrap();
        }
    }

    #[test]
    fn a_name_that_exists_nowhere_is_refused_with_the_nearest() {
        let error = refused("approve = ['read_file', 'write_flie']");
        assert_eq!(error.key, "agents[0].approve[1]");
        assert!(error.message.contains("agent \"a\"") && error.message.contains("\"write_flie\""), "{error}");
        assert!(error.message.contains("the nearest are \"write_file\""), "{error}");
        let error = refused("tools = ['sendmember']");
        assert_eq!(error.key, "agents[0].tools[0]");
        assert!(error.message.contains("the nearest are \"send_member\""), "{error}");
        assert_eq!(refused("tools = ['extension']").key, "agents[0].tools[0]");
        let error = refused("users = ['ada', 'Ada']");
        assert_eq!(error.key, "agents[0].users[1]");
        assert!(error.message.contains("\"ada\"") && error.message.contains("users add Ada"), "{error}");
    }

    #[test]
    fn conditions_of_rules_name_agents_and_tools() {
        let script = |rule: &str| {
            let agent = "[[agents]]\nname = 'a'\nmodel = 's'";
            let rules = "[models.s]\nkind = 'scripted'\n[[models.s.rules]]\ntext = 'x'";
            check(&format!("{agent}\n{rules}\n{rule}"))
        };
        script("agent = 'a'\ntool = 'send_member'").unwrap();
        script("tool = ''").unwrap();
        assert_eq!(script("agent = 'b'").unwrap_err().key, "models.s.rules[0].agent");
        assert_eq!(script("tool = 'send_membr'").unwrap_err().key, "models.s.rules[0].tool");
    }
}
