//! The part of a conversation from which the component reads a job's result.
//!
//! An instance has little memory, and a step that runs out of it would fail
//! again at each try. So a page is bounded, whatever a turn holds: it has at
//! least one message, and long texts are shortened, with a mark.

use serde_json::{Value, json};

use super::ids::shorten;
use crate::agents::runs::{self, Interrupt, Marker, Message, Question, Run, ThreadState};
use crate::storage::tables::agents::{
    AgentRows, Approval, MessageRow, Role, RunRow, RunStatus, Size, StoredQuestion, Thread,
};

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

impl From<RunRow> for Run {
    fn from(row: RunRow) -> Self {
        let status = match row.status {
            RunStatus::Running => runs::RunStatus::Running,
            RunStatus::Interrupted => runs::RunStatus::Interrupted,
            RunStatus::Succeeded => runs::RunStatus::Succeeded,
            RunStatus::Failed => runs::RunStatus::Failed,
            RunStatus::Cancelled => runs::RunStatus::Cancelled,
        };
        let failure = row.error.map(|text| runs::Failure { code: code(&text).into(), text });
        Run { failure, cut: row.cut, ..Run::new(row.id, status) }
    }
}

/// The stable word with which the host's reasons begin.
fn code(why: &str) -> &str {
    let word = why.split_once(':').map_or("", |(word, _)| word);
    if !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') { word } else { "failed" }
}

fn public(question: StoredQuestion, answered: bool) -> Question {
    Question { id: question.id, text: question.text, options: question.options, answered }
}

/// Reads a page of the conversation, from the marker's message on or from the
/// one behind `after`; with neither what is open in it.
pub fn read(
    rows: &dyn AgentRows,
    thread: &Thread,
    since: Option<&Marker>,
    after: Option<&str>,
) -> anyhow::Result<ThreadState> {
    let mut state = ThreadState::default();
    // The number of the message before the page.
    let before = match (since, after) {
        (_, Some(id)) => rows.message(thread.key, id)?.map(|message| message.number),
        (Some(marker), None) => find_marker(rows, thread.key, marker)?.map(|number| number - 1),
        (None, None) => None,
    };
    if let Some(before) = before {
        state.found = true;
        let (numbers, more) = page(rows, thread.key, before)?;
        state.more = more;
        for number in numbers {
            if let Some(row) = rows.message_at(thread.key, number)? {
                state.messages.push(message(rows, thread.key, row)?);
            }
        }
    }
    if let Some(id) = &thread.active_run
        && let Some(run) = rows.run(id)?
    {
        for approval in rows.open_approvals(id)? {
            state.interrupts.push(interrupt(approval)?);
        }
        if run.status == RunStatus::Running {
            state.active_run = Some(run.id);
        }
    }
    state.open_question = rows.open_question(thread)?.map(|q| public(q, false));
    Ok(state)
}

/// The number of the marker's message.
fn find_marker(rows: &dyn AgentRows, thread: i64, marker: &Marker) -> anyhow::Result<Option<i64>> {
    if let Some(message) = rows.message(thread, &marker.message_id)?.filter(|m| m.role == Role::Human) {
        return Ok(Some(message.number));
    }
    let Some(run) = &marker.run else { return Ok(None) };
    Ok(rows.run(run)?.filter(|r| r.thread == thread).map(|r| r.message))
}

/// The numbers of the messages behind this one that fit a page, and whether
/// more follow.
fn page(rows: &dyn AgentRows, thread: i64, before: i64) -> anyhow::Result<(Vec<i64>, bool)> {
    let (mut numbers, mut bytes, mut more) = (Vec::new(), 0, false);
    rows.sizes(thread, before, &mut |size| {
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
    size.text.min(longest(size.role)) + size.question
}

fn longest(role: Role) -> usize {
    if role == Role::Tool { MAX_TOOL } else { MAX_TEXT }
}

fn message(rows: &dyn AgentRows, thread: i64, row: MessageRow) -> anyhow::Result<Message> {
    let question = match row.question {
        Some(q) => {
            let answered = rows.answered(thread, &q.id)?;
            Some(public(q, answered))
        }
        None => None,
    };
    let role = match row.role {
        Role::Human => runs::Role::Human,
        Role::Assistant => runs::Role::Assistant,
        Role::Tool => runs::Role::Tool,
    };
    let text = shorten(&row.text, longest(row.role)).into_owned();
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
