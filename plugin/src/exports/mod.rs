//! The tools and actions by name: parse, call the command, shape the reply.
//! The same on every target; `component` maps it to the contract.

pub mod actions;
pub mod assets;
pub mod schema;
pub mod tools;

use alloc::format;
use alloc::string::{String, ToString};

use serde::de::DeserializeOwned;

use crate::app::{Park, Reply};
use crate::domain::error::{Error, Kind, Result};

/// What a tool does to what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Reads,
    /// Adds something, once for each request id.
    AddsOnce,
    /// Adds something with each call.
    Adds,
    /// Changes or replaces what others may have made.
    Changes,
}

impl Effect {
    /// Whether the same arguments once more change nothing more.
    pub fn idempotent(self) -> bool {
        self != Self::Adds
    }
}

/// A tool or an action as it is described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: &'static str,
    /// For people; empty for an action.
    pub title: &'static str,
    pub description: String,
    /// JSON Schema, as compact JSON.
    pub schema: String,
    pub effect: Effect,
}

/// How a call ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Compact JSON.
    Done(String),
    /// It waits, and `resume` continues with it.
    Park(Park),
}

impl Outcome {
    fn of(reply: Reply) -> Result<Self> {
        match reply {
            Reply::Done(value) => serde_json::to_string(&value)
                .map(Self::Done)
                .map_err(|e| Error::internal(format!("a reply cannot be written: {e}"))),
            Reply::Park(park) => Ok(Self::Park(park)),
        }
    }
}

/// Parses arguments into their type. Unknown fields, wrong types and invalid
/// JSON are refused by name. An optional argument that is `null` counts as
/// absent.
pub fn parse<T: DeserializeOwned>(arguments: &str) -> Result<T> {
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    if !text.trim_start().starts_with('{') {
        return Err(Error::new(Kind::Invalid, "bad_json", "The arguments must be one JSON object."));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(&mut json).map_err(|e| wrong(&e.path().to_string(), e.inner()))?;
    json.end().map_err(|e| wrong(".", &e))?;
    Ok(parsed)
}

/// Turns the parser's words into a refusal that names the field, as a path.
fn wrong(path: &str, error: &serde_json::Error) -> Error {
    let at = if path == "." { "" } else { path };
    let said = error.to_string();
    // Drop serde's line and column: callers build arguments in code.
    let message = said.rfind(" at line ").map_or(said.as_str(), |end| &said[..end]);
    let named = message.split('`').nth(1).unwrap_or("");
    let code = match () {
        () if !error.is_data() => "bad_json",
        () if message.starts_with("unknown field") => "unknown_field",
        () if message.starts_with("missing field") => "missing_field",
        () if message.starts_with("duplicate field") => "duplicate_field",
        () => "wrong_type",
    };
    let field = match code {
        "bad_json" | "wrong_type" => at.to_string(),
        _ if at == named || at.ends_with(&format!(".{named}")) => at.to_string(),
        _ if at.is_empty() => named.to_string(),
        _ => format!("{at}.{named}"),
    };
    let refusal = Error::new(Kind::Invalid, code, format!("The arguments are wrong: {message}."));
    if field.is_empty() { refusal } else { refusal.at(field) }
}
