//! What the loop decides and writes, apart from the loop itself: the next
//! thing to do, the calls of a reply, repetitions, decisions.

use serde_json::Value;

use super::commands::parse_decision;
use super::outcome::Place;
use super::{ids, tools};
use crate::agents::providers::{Finish, ModelReply, RawCall};
use crate::storage::tables::agents::{
    AgentRows, Approval, MessageRow, Problem, Role, RunRow, RunStatus, StoredCall, Thread,
};

/// The same call with the same arguments in a row.
pub const MAX_REPEATS: u32 = 16;
/// Calls taken from one reply.
pub const MAX_CALLS: usize = 16;
/// The state of a run, as read from the tables.
pub enum Situation {
    /// Ended, or waiting for a person, with the id of the conversation; or gone.
    Over(Option<Place>),
    Cancelled,
    Model(Box<At>),
    /// The calls of its last assistant message that have no result yet.
    Tools(Box<At>, Vec<StoredCall>),
}

/// A run that is worked on, and its conversation.
pub struct At {
    pub thread: Thread,
    pub run: RunRow,
}

/// The run, if it may still be worked on.
pub fn going(rows: &dyn AgentRows, run: &str) -> anyhow::Result<Option<RunRow>> {
    Ok(rows.run(run)?.filter(|r| r.status == RunStatus::Running && !r.cancel))
}

/// Whether the run has an assistant message, and the open calls of the last.
pub fn last_calls(rows: &dyn AgentRows, run: &RunRow) -> anyhow::Result<(bool, Vec<StoredCall>)> {
    let mut done = Vec::new();
    let mut last = None;
    rows.messages_back(run.thread, i64::MAX, &mut |m| {
        if m.number <= run.message {
            return false;
        }
        if m.role == Role::Tool {
            done.push(m.id);
            return true;
        }
        last = Some(m.calls);
        false
    })?;
    let found = last.is_some();
    let mut open = last.unwrap_or_default();
    open.retain(|call| !done.contains(&call.id));
    Ok((found, open))
}

/// Reads the state of a run.
pub fn situation(rows: &dyn AgentRows, run: &str) -> anyhow::Result<Situation> {
    let Some(run) = rows.run(run)? else { return Ok(Situation::Over(None)) };
    if run.cancel && !run.ended() {
        return Ok(Situation::Cancelled);
    }
    if run.ended() || run.status == RunStatus::Interrupted {
        return Ok(Situation::Over(Some(Place::of(rows.thread_by_key(run.thread)?))));
    }
    let (_, open) = last_calls(rows, &run)?;
    let at = Box::new(At { thread: rows.thread_by_key(run.thread)?, run });
    Ok(if open.is_empty() { Situation::Model(at) } else { Situation::Tools(at, open) })
}

/// Writes the one result of a call.
pub fn append_result(rows: &dyn AgentRows, run: &RunRow, call: &StoredCall, text: String) -> anyhow::Result<()> {
    let message = MessageRow {
        number: rows.next_number(run.thread)?,
        id: call.id.clone(),
        role: Role::Tool,
        text,
        run: run.id.clone(),
        tool: Some(call.name.clone()),
        ..MessageRow::default()
    };
    rows.append(run.thread, &message)
}

/// The calls of a reply as they are stored: the host's ids, arguments that
/// are always a JSON object, and what is wrong with those that cannot run.
pub fn take_calls(run: &str, number: i64, reply: &ModelReply) -> Vec<StoredCall> {
    let problem = |code: &str, message: String| Some(Problem { code: code.into(), message });
    let total = reply.calls.len();
    let take = |(i, raw): (usize, &RawCall)| {
        let text = raw.arguments.trim();
        let parsed = match text {
            "" | "null" => Ok(Value::Object(serde_json::Map::new())),
            text => serde_json::from_str::<Value>(text),
        };
        let (arguments, mut fault) = match parsed {
            Ok(value @ Value::Object(_)) => (value, None),
            Ok(_) => {
                (serde_json::json!({}), problem("invalid_arguments", "The arguments must be a JSON object.".into()))
            }
            Err(e) => {
                let message = format!("The arguments are not valid JSON ({e}); nothing was run. Call the tool again.");
                (serde_json::json!({}), problem("invalid_arguments", message))
            }
        };
        if reply.finish == Finish::Cut {
            fault = problem(
                "reply_cut",
                "Your reply was cut off at its length limit; nothing was run. Make the call again, shorter.".into(),
            );
        } else if total > MAX_CALLS && i + 1 == MAX_CALLS {
            let message = format!("One message may hold {} calls; from here on none of your {total} was run.", i);
            fault = problem("too_many_calls", message);
        }
        StoredCall {
            id: ids::call(run, number, i),
            name: ids::prefix(&raw.name, 128).to_owned(),
            arguments,
            problem: fault,
        }
    };
    reply.calls.iter().take(MAX_CALLS).enumerate().map(take).collect()
}

/// Counts equal calls in a row, over the whole run; names the tool when there
/// are too many.
pub fn count_repeats(run: &RunRow, calls: &[StoredCall]) -> (Option<String>, u32, Option<String>) {
    let (mut digest, mut count) = (run.repeat_digest.clone(), run.repeat_count);
    let mut endless = None;
    for call in calls {
        let this = Some(ids::id("repeat", &[&call.name, &call.arguments.to_string()]));
        count = if this == digest { count + 1 } else { 1 };
        digest = this;
        if count > MAX_REPEATS {
            endless = Some(call.name.clone());
        }
    }
    (digest, count, endless)
}

fn approval_digest(call: &StoredCall) -> String {
    ids::digest("approval", &[&call.id, &call.name, &call.arguments.to_string()])
}

/// The question to a person whether this very call may run.
pub fn ask(run: &str, call: &StoredCall) -> Approval {
    let checkpoint = call.id.rsplit_once('-').map_or(call.id.as_str(), |(message, _)| message);
    Approval {
        id: call.id.clone(),
        run: run.to_owned(),
        checkpoint: checkpoint.to_owned(),
        tool: call.name.clone(),
        arguments: call.arguments.to_string(),
        digest: approval_digest(call),
        decision: None,
    }
}

/// A decision counts for exactly the call that was shown.
pub fn decided(approval: &Approval, decision: &str, call: &StoredCall) -> Decision {
    let refused = |message: &str| Decision::Refused(tools::error_text("not_approved", message, None));
    if approval.digest != approval_digest(call) {
        return refused("The approval was given for another call; nothing was run.");
    }
    match parse_decision(decision) {
        Ok((true, _)) => Decision::Approved,
        Ok((false, None)) => refused("A person refused this call; nothing was run."),
        Ok((false, Some(note))) => refused(&format!("A person refused this call; nothing was run. They say: {note}")),
        Err(_) => refused("The stored approval cannot be read; nothing was run."),
    }
}

/// What was decided about a call.
pub enum Decision {
    Approved,
    /// With the result text.
    Refused(String),
}
