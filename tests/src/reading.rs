//! What an owner can read, whole: all pages of everything that a team has.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

/// Calls an action of the component for one owner.
pub type Ask<'a> = &'a dyn Fn(&str, Value) -> Result<Value>;

/// All teams, as [`team`] reads them.
pub fn teams(ask: Ask) -> Result<Vec<Value>> {
    let listed = ask("list", json!({}))?;
    let teams = listed["teams"].as_array().context("no teams")?;
    teams.iter().map(|listed| team(ask, listed["id"].as_str().context("a team without an id")?)).collect()
}

/// Roster and counts, every job with its whole texts, the shared record, the
/// public state, and the board with its journal. The oldest come first.
pub fn team(ask: Ask, id: &str) -> Result<Value> {
    let tasks = pages(ask, "tasks", json!({"team_id": id}), "tasks")?;
    let whole = |task: &Value| Ok(ask("tasks", json!({"team_id": id, "task_id": task["id"]}))?["task"].clone());
    Ok(json!({
        "team": ask("get", json!({"team_id": id, "limit": 1}))?["team"],
        "jobs": newest_first(pages(ask, "get", json!({"team_id": id, "limit": 200, "details": true}), "jobs")?),
        "messages": newest_first(pages(ask, "history", json!({"team_id": id, "limit": 20}), "messages")?),
        "state": ask("state", json!({"team_id": id}))?["entries"],
        "board": ask("tasks", json!({"team_id": id}))?["board"],
        "tasks": tasks.iter().map(whole).collect::<Result<Vec<_>>>()?,
        "events": newest_first(pages(ask, "task_history", json!({"team_id": id}), "events")?),
        "old_members": pages(ask, "task_history", json!({"team_id": id, "of": "members"}), "members")?,
        "old_messages": pages(ask, "task_history", json!({"team_id": id, "of": "messages"}), "messages")?,
    }))
}

/// Only the jobs, oldest first.
pub fn jobs(ask: Ask, team: &str) -> Result<Vec<Value>> {
    let payload = json!({"team_id": team, "limit": 200, "details": true});
    Ok(newest_first(pages(ask, "get", payload, "jobs")?))
}

fn newest_first(mut records: Vec<Value>) -> Vec<Value> {
    records.reverse();
    records
}

/// The records of all pages of a list.
fn pages(ask: Ask, action: &str, mut payload: Value, field: &str) -> Result<Vec<Value>> {
    let mut records = Vec::new();
    loop {
        let mut page = ask(action, payload.clone())?;
        let found = page[field].as_array_mut().with_context(|| format!("{action} answers without {field}"))?;
        records.append(found);
        let next = page.get("next_cursor").or_else(|| page.get("nextCursor"));
        match next.filter(|next| !next.is_null()) {
            Some(next) => payload["cursor"] = next.clone(),
            None => return Ok(records),
        }
    }
}

/// Where the answer to a write names what it made.
const MADE: [&str; 6] = ["/team/id", "/job/id", "/task/id", "/thread", "/run", "/mentions/jobs/0/job_id"];

/// What the answer to a write says that it made, by place: the same write, sent
/// again, makes the same.
pub fn made(reply: &Value) -> Value {
    let mut found = Map::new();
    for place in MADE {
        if let Some(name) = reply.pointer(place).filter(|name| name.is_string()) {
            found.insert(place.to_owned(), name.clone());
        }
    }
    Value::Object(found)
}
