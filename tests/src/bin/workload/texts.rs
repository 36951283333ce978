//! The texts of the workload: the same bytes on every machine.

use serde_json::{Value, json};

const SENTENCE: &str = "The quick brown fox jumps over the lazy dog. ";

/// `n` characters that begin with a tag and end with a full stop.
pub fn text(n: usize, tag: &str) -> String {
    let mut text = format!("[{tag}] ");
    while text.len() < n {
        text.push_str(SENTENCE);
    }
    text.truncate(n);
    text.pop();
    text.push('.');
    text
}

/// What an agent answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// ASCII of this many bytes.
    Bytes(usize),
    /// 2,000 Chinese characters, 6,000 bytes.
    Chinese,
}

impl Answer {
    pub fn text(self) -> String {
        match self {
            Self::Bytes(n) => text(n, "answer"),
            Self::Chinese => "\u{6d4b}".repeat(2000),
        }
    }
}

/// The payload of `create` for team number `i` with `members` members.
pub fn team(i: usize, members: usize) -> Value {
    let members: Vec<Value> =
        (0..members).map(|k| json!({"name": format!("Member {k}"), "agent": format!("agent-{k}")})).collect();
    json!({
        "request_id": format!("team-{i}"),
        "name": format!("Team {i:03}"),
        "goal": text(200, &format!("goal {i}")),
        "members": members,
    })
}

/// An owner by number.
pub fn owner(i: usize) -> String {
    format!("owner-{i:02}")
}
