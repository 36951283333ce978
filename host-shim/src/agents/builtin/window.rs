//! The part of a conversation that a model is shown.
//!
//! The newest whole turns that fit are sent, the present turn always; all are
//! stored. A turn is a human message and everything up to the next one. Only
//! tool results (and the arguments that a model itself wrote) are ever
//! shortened, with a visible mark.
//!
//! Sizes are estimated: a token for every three bytes, plus four for each
//! message. That is too high for English and about right for Chinese, so the
//! input stays under the bound with common tokenizers.

use serde_json::Value;

use super::ids::shorten;
use crate::agents::providers::{ModelCall, ModelMessage};
use crate::storage::tables::agents::{AgentRows, MessageRow, Role, RunRow, StoredCall};

/// Estimated tokens of a text.
pub fn tokens(bytes: usize) -> usize {
    bytes.div_ceil(3)
}

/// Estimated tokens of messages.
pub fn size(messages: &[ModelMessage]) -> usize {
    messages.iter().map(message_size).sum()
}

fn message_size(message: &ModelMessage) -> usize {
    4 + match message {
        ModelMessage::Human { text } => tokens(text.len()),
        ModelMessage::Assistant { text, calls } => {
            let calls = calls.iter().map(|c| 8 + tokens(c.id.len() + c.name.len() + c.arguments.len()));
            tokens(text.len()) + calls.sum::<usize>()
        }
        ModelMessage::Tool { call, text, .. } => tokens(call.len() + text.len()),
    }
}

/// Bytes kept of a tool result in an earlier turn.
const EARLIER_RESULT: usize = 2_000;
/// What results of the present turn are cut to, one step after another, until
/// the turn fits.
const RESULT_STEPS: [usize; 4] = [usize::MAX, 8_000, 2_000, 400];

/// Builds the input for the next model call of `run` in at most `budget`
/// estimated tokens. More are used only if the present human message alone,
/// with the last step of the turn at its shortest, is larger.
pub fn build(rows: &dyn AgentRows, run: &RunRow, budget: usize) -> anyhow::Result<Vec<ModelMessage>> {
    let present = rows.messages_from(run.thread, run.message, super::MAX_RUN_MESSAGES * 2)?;
    let mut window = present_turn(&present, budget);
    let mut left = budget.saturating_sub(size(&window));
    let mut earlier: Vec<Vec<ModelMessage>> = Vec::new();
    let mut turn: Vec<MessageRow> = Vec::new();
    let mut turn_bytes = 0;
    rows.messages_back(run.thread, run.message, &mut |message| {
        turn_bytes +=
            if message.role == Role::Tool { message.text.len().min(EARLIER_RESULT) } else { message.text.len() };
        let human = message.role == Role::Human;
        turn.push(message);
        if tokens(turn_bytes) > left {
            return false;
        }
        if human {
            turn.reverse();
            let rendered = render(&turn, EARLIER_RESULT);
            let size = size(&rendered);
            if size > left {
                return false;
            }
            left -= size;
            earlier.push(rendered);
            turn.clear();
            turn_bytes = 0;
        }
        true
    })?;
    let included = earlier.iter().flatten().any(|m| asks(m, &present));
    if !included {
        name_question(rows, run.thread, &present, &mut window)?;
    }
    let mut messages: Vec<ModelMessage> = earlier.into_iter().rev().flatten().collect();
    messages.append(&mut window);
    Ok(messages)
}

/// Whether this message asks the question that the present turn answers.
fn asks(message: &ModelMessage, present: &[MessageRow]) -> bool {
    let answers = present.first().and_then(|m| m.answers.as_deref());
    matches!(message, ModelMessage::Tool { call, .. } if Some(call.as_str()) == answers)
}

/// An answer whose question has left the window is shown with it.
fn name_question(
    rows: &dyn AgentRows,
    thread: i64,
    present: &[MessageRow],
    window: &mut [ModelMessage],
) -> anyhow::Result<()> {
    let Some(id) = present.first().and_then(|m| m.answers.as_deref()) else { return Ok(()) };
    let question = rows.message(thread, id)?.and_then(|m| m.question);
    if let (Some(question), Some(ModelMessage::Human { text })) = (question, window.first_mut()) {
        *text = format!("You asked earlier:\n{}\n\nThe answer:\n{text}", question.text);
    }
    Ok(())
}

fn present_turn(rows: &[MessageRow], budget: usize) -> Vec<ModelMessage> {
    let mut messages = Vec::new();
    for max in RESULT_STEPS {
        messages = render(rows, max);
        if size(&messages) <= budget {
            return messages;
        }
    }
    // Still too large: leave out whole steps, the oldest first, but the last.
    let mut left_out = 0;
    while size(&messages) > budget {
        let mut steps =
            messages.iter().enumerate().skip(1).filter(|(_, m)| matches!(m, ModelMessage::Assistant { .. }));
        let (Some((first, _)), Some((second, _))) = (steps.next(), steps.next()) else { break };
        messages.drain(first..second);
        left_out += 1;
    }
    if left_out > 0
        && let Some(ModelMessage::Tool { text, .. }) =
            messages.iter_mut().find(|m| matches!(m, ModelMessage::Tool { .. }))
    {
        *text = format!("[{left_out} earlier steps of this turn are left out]\n{text}");
    }
    messages
}

/// Messages as a model reads them; every call has exactly one result.
fn render(rows: &[MessageRow], max: usize) -> Vec<ModelMessage> {
    let mut out = Vec::new();
    for row in rows {
        match row.role {
            Role::Human => out.push(ModelMessage::Human { text: row.text.clone() }),
            Role::Assistant => {
                out.push(ModelMessage::Assistant {
                    text: row.text.clone(),
                    calls: row.calls.iter().map(|c| replay(c, max)).collect(),
                });
                for call in &row.calls {
                    let result = rows.iter().find(|r| r.role == Role::Tool && r.id == call.id);
                    let text = match result {
                        Some(r) => shorten(&r.text, max).into_owned(),
                        None => super::tools::error_text("no_result", "This call has no result.", None),
                    };
                    out.push(ModelMessage::Tool { call: call.id.clone(), name: call.name.clone(), text });
                }
            }
            Role::Tool => {}
        }
    }
    out
}

fn replay(call: &StoredCall, max: usize) -> ModelCall {
    let mut arguments = call.arguments.clone();
    if max < usize::MAX {
        shorten_value(&mut arguments, max);
    }
    ModelCall { id: call.id.clone(), name: call.name.clone(), arguments: arguments.to_string() }
}

fn shorten_value(value: &mut Value, max: usize) {
    match value {
        Value::String(s) if s.len() > max => *s = shorten(s, max).into_owned(),
        Value::Array(a) => a.iter_mut().for_each(|v| shorten_value(v, max)),
        Value::Object(o) => o.values_mut().for_each(|v| shorten_value(v, max)),
        _ => {}
    }
}
