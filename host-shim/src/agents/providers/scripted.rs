//! The scripted model: rules instead of a model, deterministic and without a
//! network. It calls real tools, so that everything around it is real.
//!
//! A script is a TOML file with `[[rules]]`. The first rule whose conditions
//! all hold gives the reply:
//!
//! ```toml
//! [[rules]]
//! agent = "planner"                # the agent's name
//! human = "*weather*"              # the last human message
//! tool = "send_member"             # the last tool result of this turn is this tool's; "" = there is none yet
//! result = '*"status":"queued"*'   # the text of that result
//! call = 0                         # model calls made before in this run
//! text = "Done: {{result}}"        # the reply's text
//! delay_ms = 200
//! [[rules.calls]]                  # tool calls of the reply
//! tool = "read_file"
//! arguments = { path = "{{after:file: }}" }
//! ```
//!
//! Patterns match the whole text; `*` stands for any text. A condition that is
//! left out holds. In texts and arguments these are filled in:
//!
//! - `{{text}}`: the last human message; `{{after:PREFIX}}`: the rest of the
//!   line after PREFIX in it; `{{human:PATH}}`: a member of the first JSON
//!   object in it that has this path;
//! - `{{result}}`: the last tool result of this turn; `{{json:PATH}}`: a member
//!   of it; `{{run}}`, `{{call}}`: the run's id, the number of the model call.
//!
//! A path is made of members and indexes, `a.b.0`; a step `[k=v]` picks the
//! element of a list whose member `k` is the text `v`. An argument that is one
//! placeholder alone keeps the JSON type of what it finds. `{{…|other}}` gives
//! a text for when nothing is found; without it that is an error.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Finish, Mistake, Model, ModelError, ModelMessage, ModelReply, ModelRequest, NameInUse, Named, Provider, RawCall,
};

/// A scripted model: a rule file, or rules in place.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedConfig {
    /// A TOML file with `[[rules]]`.
    pub script: Option<PathBuf>,
    pub rules: Vec<Rule>,
}

#[async_trait]
impl Provider for ScriptedConfig {
    fn validate(&self) -> Result<(), Mistake> {
        if self.script.is_none() == self.rules.is_empty() {
            return Err(Mistake::new("script", "give either a script or rules"));
        }
        for (i, rule) in self.rules.iter().enumerate() {
            rule.validate().map_err(|message| Mistake::new(format!("rules[{i}]"), message))?;
        }
        Ok(())
    }

    fn resolve_paths(&mut self, base: &Path) {
        if let Some(path) = &mut self.script
            && path.is_relative()
        {
            *path = base.join(&*path);
        }
    }

    /// Those in a script file may be meant for other configurations, too.
    fn names(&self) -> Vec<NameInUse> {
        let of = |(at, rule): (usize, &Rule)| {
            let agent = rule.agent.clone().map(|name| ("agent", Named::Agent(name)));
            let tool = rule.tool.clone().filter(|name| !name.is_empty()).map(|name| ("tool", Named::Tool(name)));
            let named = |(field, names)| NameInUse { field: format!("rules[{at}].{field}"), names };
            agent.into_iter().chain(tool).map(named).collect::<Vec<_>>()
        };
        self.rules.iter().enumerate().flat_map(of).collect()
    }

    fn open(&self) -> anyhow::Result<Arc<dyn Model>> {
        Ok(Arc::new(match &self.script {
            Some(path) => ScriptedModel::load(path).context("script")?,
            None => ScriptedModel::new(self.rules.clone()),
        }))
    }

    async fn probe(&self, _ask: bool) -> Result<String, String> {
        self.open().map_err(|error| format!("{error:#}"))?;
        Ok("a script, which needs no network".into())
    }
}

/// One rule; see the module.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    pub agent: Option<String>,
    pub human: Option<String>,
    pub tool: Option<String>,
    pub result: Option<String>,
    pub call: Option<u32>,
    pub text: String,
    pub calls: Vec<RuleCall>,
    pub delay_ms: u32,
    /// Fail as if the endpoint were unavailable, with this text.
    pub fail: Option<String>,
}

/// A tool call of a rule.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleCall {
    pub tool: String,
    #[serde(default)]
    pub arguments: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    rules: Vec<Rule>,
}

impl Rule {
    /// Refuses a rule that says nothing, and placeholders that do not exist.
    pub fn validate(&self) -> Result<(), String> {
        if self.text.is_empty() && self.calls.is_empty() && self.fail.is_none() {
            return Err("give text, calls or fail".into());
        }
        check_placeholders(&self.text)?;
        self.calls.iter().try_for_each(|c| c.arguments.values().try_for_each(check_value))
    }
}

fn check_value(value: &Value) -> Result<(), String> {
    match value {
        Value::String(s) => check_placeholders(s),
        Value::Array(a) => a.iter().try_for_each(check_value),
        Value::Object(o) => o.values().try_for_each(check_value),
        _ => Ok(()),
    }
}

fn check_placeholders(text: &str) -> Result<(), String> {
    pieces(text).into_iter().try_for_each(|piece| match piece {
        Piece::Text(_) => Ok(()),
        Piece::Placeholder(p) => {
            let name = p.split('|').next().unwrap_or_default().split(':').next().unwrap_or_default();
            if ["text", "after", "human", "result", "json", "run", "call"].contains(&name) {
                Ok(())
            } else {
                Err(format!("there is no placeholder {{{{{p}}}}}"))
            }
        }
    })
}

enum Piece<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

fn pieces(mut text: &str) -> Vec<Piece<'_>> {
    let mut out = Vec::new();
    while let Some((before, rest)) = text.split_once("{{") {
        let Some((inside, after)) = rest.split_once("}}") else { break };
        if !before.is_empty() {
            out.push(Piece::Text(before));
        }
        out.push(Piece::Placeholder(inside));
        text = after;
    }
    if !text.is_empty() {
        out.push(Piece::Text(text));
    }
    out
}

/// Whether the whole text matches; `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// What the rules look at.
struct View<'a> {
    request: &'a ModelRequest,
    human: &'a str,
    tool: Option<(&'a str, &'a str)>,
}

impl<'a> View<'a> {
    fn new(request: &'a ModelRequest) -> Self {
        let mut view = Self { request, human: "", tool: None };
        for message in request.messages.iter().rev() {
            match message {
                ModelMessage::Human { text } => {
                    view.human = text;
                    break;
                }
                ModelMessage::Tool { name, text, .. } if view.tool.is_none() => view.tool = Some((name, text)),
                _ => {}
            }
        }
        view
    }

    fn holds(&self, rule: &Rule) -> bool {
        let glob = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|p| matches(p, text));
        let (tool, result) = self.tool.unwrap_or_default();
        glob(&rule.agent, &self.request.agent)
            && glob(&rule.human, self.human)
            && glob(&rule.tool, tool)
            && glob(&rule.result, result)
            && rule.call.is_none_or(|c| c == self.request.call)
    }

    fn find(&self, placeholder: &str) -> Option<Value> {
        let (kind, argument) = placeholder.split_once(':').unwrap_or((placeholder, ""));
        match kind {
            "text" => Some(self.human.into()),
            "after" => {
                let (_, rest) = self.human.split_once(argument)?;
                Some(rest.lines().next().unwrap_or_default().trim().into())
            }
            "human" => objects(self.human).find_map(|o| lookup(&o, argument).cloned()),
            "result" => Some(self.tool?.1.into()),
            "json" => lookup(&serde_json::from_str(self.tool?.1).ok()?, argument).cloned(),
            "run" => Some(self.request.run.as_str().into()),
            "call" => Some(self.request.call.to_string().into()),
            _ => None,
        }
    }

    fn resolve(&self, placeholder: &str) -> Result<Value, ModelError> {
        let (what, other) = match placeholder.split_once('|') {
            Some((what, other)) => (what, Some(other)),
            None => (placeholder, None),
        };
        self.find(what)
            .or_else(|| other.map(Value::from))
            .ok_or_else(|| ModelError::Misconfigured(format!("the script's {{{{{placeholder}}}}} finds nothing")))
    }

    fn fill(&self, text: &str) -> Result<Value, ModelError> {
        let pieces = pieces(text);
        if let [Piece::Placeholder(p)] = pieces[..] {
            return self.resolve(p);
        }
        let mut out = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(t) => out.push_str(t),
                Piece::Placeholder(p) => out.push_str(&plain(self.resolve(p)?)),
            }
        }
        Ok(out.into())
    }

    fn fill_value(&self, value: &Value) -> Result<Value, ModelError> {
        Ok(match value {
            Value::String(s) => self.fill(s)?,
            Value::Array(a) => a.iter().map(|v| self.fill_value(v)).collect::<Result<_, _>>()?,
            Value::Object(o) => Value::Object(
                o.iter().map(|(k, v)| Ok((k.clone(), self.fill_value(v)?))).collect::<Result<_, ModelError>>()?,
            ),
            other => other.clone(),
        })
    }
}

fn plain(value: Value) -> String {
    match value {
        Value::String(s) => s,
        other => other.to_string(),
    }
}

/// Every JSON object that begins somewhere in the text.
fn objects(text: &str) -> impl Iterator<Item = Value> + '_ {
    text.match_indices('{').filter_map(|(at, _)| {
        serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>().next()?.ok().filter(Value::is_object)
    })
}

fn lookup<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|s| !s.is_empty()).try_fold(value, |at, step| {
        if let Some((key, wanted)) = step.strip_prefix('[').and_then(|s| s.strip_suffix(']')?.split_once('=')) {
            return at.as_array()?.iter().find(|e| e.get(key).and_then(Value::as_str) == Some(wanted));
        }
        match at {
            Value::Array(a) => a.get(step.parse::<usize>().ok()?),
            other => other.get(step),
        }
    })
}

/// A model that follows rules.
pub struct ScriptedModel {
    rules: Vec<Rule>,
}

impl ScriptedModel {
    /// The rules must have been validated.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    /// Reads and checks a script; the error names the rule.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let script: Script = toml::from_str(text)?;
        for (i, rule) in script.rules.iter().enumerate() {
            rule.validate().map_err(|m| anyhow::anyhow!("rules[{i}]: {m}"))?;
        }
        Ok(Self::new(script.rules))
    }

    /// Reads a script file.
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read the script {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("in the script {}", path.display()))
    }
}

#[async_trait]
impl Model for ScriptedModel {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let view = View::new(request);
        let Some(rule) = self.rules.iter().find(|r| view.holds(r)) else {
            return Err(ModelError::Misconfigured(format!("no rule of the script fits agent {:?}", request.agent)));
        };
        if rule.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(u64::from(rule.delay_ms))).await;
        }
        if let Some(why) = &rule.fail {
            return Err(ModelError::Unavailable(why.clone()));
        }
        let mut calls = Vec::new();
        for call in &rule.calls {
            let arguments = view.fill_value(&Value::Object(call.arguments.clone()))?;
            calls.push(RawCall { name: call.tool.clone(), arguments: arguments.to_string() });
        }
        Ok(ModelReply { text: plain(view.fill(&rule.text)?), calls, finish: Finish::Stop })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(messages: Vec<ModelMessage>) -> ModelRequest {
        ModelRequest { agent: "planner".into(), run: "r1".into(), call: 2, messages, ..ModelRequest::default() }
    }

    fn human(text: &str) -> ModelMessage {
        ModelMessage::Human { text: text.into() }
    }

    fn result(name: &str, text: &str) -> ModelMessage {
        ModelMessage::Tool { call: "c".into(), name: name.into(), text: text.into() }
    }

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("a", "a", true),
            ("*", "anything", true),
            ("*b*", "abc", true),
            ("a*c", "abc", true),
            ("a*c", "ab", false),
            ("a*a", "a", false),
            ("*x*y*", "a y x", false),
            ("*研*", "一研究", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[tokio::test]
    async fn the_first_rule_that_fits_replies_with_filled_templates() {
        let model = ScriptedModel::parse(
            r#"
            [[rules]]
            agent = "writer"
            text = "never"
            [[rules]]
            tool = "send_member"
            result = '*"ok":true*'
            text = "job {{json:job.id}} of {{human:team.id}} in {{run}}/{{call}}"
            [[rules]]
            tool = ""
            human = "*file: *"
            [[rules.calls]]
            tool = "send_member"
            arguments = { team = "{{human:team.id}}", n = "{{human:team.members.[name=Bo].n}}", text = "read {{after:file: }}!", x = "{{json:a|none}}" }
            "#,
        )
        .unwrap();
        let text = "Context {broken {\"other\":1} {\"team\":{\"id\":\"t1\",\"members\":[{\"name\":\"Bo\",\"n\":7}]}}\nfile: a.txt \nend";
        let reply = model.complete(&request(vec![human(text)])).await.unwrap();
        assert_eq!(reply.calls.len(), 1);
        let arguments: Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
        assert_eq!(arguments, serde_json::json!({"team": "t1", "n": 7, "text": "read a.txt!", "x": "none"}));
        let after = vec![human(text), result("send_member", r#"{"ok":true,"job":{"id":"j1"}}"#)];
        assert_eq!(model.complete(&request(after)).await.unwrap().text, "job j1 of t1 in r1/2");
        let none = model.complete(&request(vec![human("else")])).await;
        assert!(matches!(none, Err(ModelError::Misconfigured(_))));
        let empty = model.complete(&request(vec![human("file: x")])).await;
        assert!(matches!(empty, Err(ModelError::Misconfigured(_))), "{empty:?}");
    }

    #[test]
    fn mistakes_in_a_script_are_named() {
        let error = |text: &str| format!("{:#}", ScriptedModel::parse(text).err().unwrap());
        assert!(error("[[rules]]\ntext='{{member:Ada}}'").contains("rules[0]"));
        assert!(error("[[rules]]\nagent='a'").contains("rules[0]"));
        assert!(error("[[rules]]\ntext='a'\nother=1").contains("other"));
    }
}
