//! The tools and actions by name: parse, call the command, shape the reply.
//! The same on every target; `component` maps it to the contract.

pub mod actions;
pub mod schema;
pub mod tools;

use alloc::format;
use alloc::string::{String, ToString};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::app::{Park, Reply};
use crate::domain::error::{Error, Result};

/// A tool or an action as it is described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: &'static str,
    pub description: String,
    /// JSON Schema, as compact JSON.
    pub schema: String,
    /// Whether it may change anything.
    pub writes: bool,
}

/// How a call ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Compact JSON.
    Done(String),
    /// It waits, and `resume` goes on with it.
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
    let value: Value = match serde_json::from_str(if arguments.is_empty() { "{}" } else { arguments }) {
        Ok(value) => value,
        Err(e) => {
            return Err(Error::invalid(
                "bad_json",
                "",
                format!("The arguments are not valid JSON ({e}). Send one JSON object."),
            ));
        }
    };
    if !value.is_object() {
        return Err(Error::invalid("bad_json", "", "The arguments must be one JSON object."));
    }
    serde_json::from_value(value).map_err(|e| wrong(&e.to_string()))
}

/// Turns the parser's words into a refusal that names the field.
fn wrong(message: &str) -> Error {
    let quoted = message.split('`').nth(1).unwrap_or("").to_string();
    let code = if message.starts_with("unknown field") {
        "unknown_field"
    } else if message.starts_with("missing field") {
        "missing_field"
    } else {
        "wrong_type"
    };
    let field = if code == "wrong_type" { String::new() } else { quoted };
    Error::invalid(code, field, format!("The arguments are wrong: {message}."))
}
