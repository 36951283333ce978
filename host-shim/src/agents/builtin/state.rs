//! The part of a conversation from which the component reads a job's result.
//!
//! An instance has little memory, and a step that runs out of it would fail
//! again at each try. So a page is bounded, whatever a turn holds: it has at
//! least one message, and long texts are shortened, with a mark.

use rusqlite::Connection;
use serde_json::{Value, json};

use super::ids::shorten;
use super::tables::{self, Approval, MessageRow, Size, Thread};
use crate::agents::runs::{Interrupt, Marker, Message, Role, RunStatus, ThreadState};

/// Messages in one page.
const MAX_MESSAGES: usize = 500;
/// Bytes of the messages together, if there is more than one.
const MAX_BYTES: usize = 512 * 1024;
/// Bytes shown of one text.
const MAX_TEXT: usize = 64 * 1024;
/// Bytes shown of a tool's result; answers are in assistant messages.
const MAX_TOOL: usize = 1_000;
/// Bytes shown of the arguments that wait for an approval.
const MAX_ARGUMENTS: usize = 32 * 1024;

/// Reads a page of the conversation, from the marker's message on or from the
/// one behind `after`; with neither what is open in it.
pub fn read(
    c: &Connection,
    thread: &Thread,
    since: Option<&Marker>,
    after: Option<&str>,
) -> anyhow::Result<ThreadState> {
    let mut state = ThreadState::default();
    // The number of the message before the page.
    let before = match (since, after) {
        (_, Some(id)) => tables::message(c, thread.key, id)?.map(|message| message.number),
        (Some(marker), None) => find_marker(c, thread.key, marker)?.map(|number| number - 1),
        (None, None) => None,
    };
    if let Some(before) = before {
        state.found = true;
        let (numbers, more) = page(c, thread.key, before)?;
        state.more = more;
        for number in numbers {
            if let Some(row) = tables::message_at(c, thread.key, number)? {
                state.messages.push(message(c, thread.key, row)?);
            }
        }
    }
    if let Some(id) = &thread.active_run
        && let Some(run) = tables::run(c, id)?
    {
        for approval in tables::open_approvals(c, id)? {
            state.interrupts.push(interrupt(approval)?);
        }
        if run.status == RunStatus::Running {
            state.active_run = Some(run.id);
        }
    }
    state.open_question = tables::open_question(c, thread)?.map(|q| q.public(false));
    Ok(state)
}

/// The number of the marker's message.
fn find_marker(c: &Connection, thread: i64, marker: &Marker) -> anyhow::Result<Option<i64>> {
    if let Some(message) = tables::message(c, thread, &marker.message_id)?.filter(|m| m.role == "human") {
        return Ok(Some(message.number));
    }
    let Some(run) = &marker.run else { return Ok(None) };
    Ok(tables::run(c, run)?.filter(|r| r.thread == thread).map(|r| r.message))
}

/// The numbers of the messages behind this one that fit a page, and whether
/// more follow.
fn page(c: &Connection, thread: i64, before: i64) -> anyhow::Result<(Vec<i64>, bool)> {
    let (mut numbers, mut bytes, mut more) = (Vec::new(), 0, false);
    tables::sizes(c, thread, before, |size| {
        bytes += shown(size);
        more = numbers.len() == MAX_MESSAGES || (bytes > MAX_BYTES && !numbers.is_empty());
        if !more {
            numbers.push(size.number);
        }
        !more
    })?;
    Ok((numbers, more))
}

/// Bytes that a message takes in the answer.
fn shown(size: &Size) -> usize {
    size.text.min(longest(&size.role)) + size.question
}

fn longest(role: &str) -> usize {
    if role == "tool" { MAX_TOOL } else { MAX_TEXT }
}

fn message(c: &Connection, thread: i64, row: MessageRow) -> anyhow::Result<Message> {
    let question = match row.question {
        Some(q) => {
            let answered = tables::answered(c, thread, &q.id)?;
            Some(q.public(answered))
        }
        None => None,
    };
    let role = match row.role.as_str() {
        "human" => Role::Human,
        "assistant" => Role::Assistant,
        _ => Role::Tool,
    };
    let text = shorten(&row.text, longest(&row.role)).into_owned();
    Ok(Message {
        shortened: text.len() < row.text.len(),
        id: row.id,
        role,
        text,
        run: Some(row.run),
        origin: None,
        answers: row.answers,
        question,
    })
}

/// What a person is asked to approve. Very long arguments are shown as the
/// beginning of their text; the approval is bound to all of them.
fn interrupt(a: Approval) -> anyhow::Result<Interrupt> {
    let arguments: Value = if a.arguments.len() > MAX_ARGUMENTS {
        json!({ "shortened": shorten(&a.arguments, MAX_ARGUMENTS) })
    } else {
        serde_json::from_str(&a.arguments)?
    };
    let value = json!({ "kind": "approval", "tool": a.tool, "arguments": arguments, "digest": a.digest });
    Ok(Interrupt {
        checkpoint: Some(a.checkpoint),
        id: a.id,
        kind: Some("approval".into()),
        value: value.to_string(),
        preview: None,
        answer_schema: None,
        digest: Some(a.digest),
    })
}
