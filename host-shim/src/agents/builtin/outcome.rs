//! What a step of a run came to, and the one commit that writes it.
//!
//! An outcome is kept in memory until it is written, and written as often as it
//! takes: while the disk is full, no model is asked again and no tool is called
//! again. A write that may have happened is repeated like any other, so each
//! looks first whether what it would write is there already.

use std::sync::Arc;
use std::time::Duration;

use super::steps::{MAX_REPEATS, append_result, ask, count_repeats, going, last_calls, take_calls};
use super::{BuiltinAgents, ids, tools};
use crate::agents::providers::{Finish, ModelReply};
use crate::contract::EndedRun;
use crate::storage::tables::agents::{
    AgentRows, MessageRow, Role, RunRow, RunStatus, StoredCall, StoredQuestion, Thread,
};

/// Bytes stored of one assistant text.
const MAX_TEXT: usize = 256 * 1024;

/// An outcome that is not written yet.
#[derive(Clone)]
pub struct Pending {
    outcome: Arc<Outcome>,
    /// Working time since the write before.
    spent: Duration,
}

pub enum Outcome {
    /// Of the model call with this number, counted from 0.
    Reply {
        call: u32,
        reply: ModelReply,
    },
    /// Of a tool call: the one result that it gets.
    Result {
        call: StoredCall,
        text: String,
    },
    /// A tool call that ends the turn with a question.
    Question {
        call: StoredCall,
        question: StoredQuestion,
    },
    /// The run waits for a person's word on `call`, and on all of `asking`.
    Ask {
        call: String,
        asking: Vec<StoredCall>,
    },
    End {
        status: RunStatus,
        why: Option<String>,
    },
}

/// What a written outcome means for the run's task.
pub enum Kept {
    Go,
    /// The run has ended, or waits; of the conversation with this id.
    Left(Place),
    /// The run has to be ended for this reason.
    Fail(String),
    /// There is no such run.
    Gone,
}

impl Pending {
    pub fn new(outcome: Outcome, spent: Duration) -> Self {
        Self { outcome: Arc::new(outcome), spent }
    }

    pub fn end(status: RunStatus, why: Option<String>) -> Self {
        Self::new(Outcome::End { status, why }, Duration::ZERO)
    }

    pub fn failed(why: impl Into<String>) -> Self {
        Self::end(RunStatus::Failed, Some(why.into()))
    }

    fn write(&self, rows: &dyn AgentRows, run: &str) -> anyhow::Result<Kept> {
        if let Outcome::End { status, why } = &*self.outcome {
            return match rows.run(run)? {
                Some(run) => Ok(Kept::Left(end(rows, &run, *status, why.as_deref())?)),
                None => Ok(Kept::Gone),
            };
        }
        let Some(run) = going(rows, run)? else { return Ok(Kept::Go) };
        let kept = match &*self.outcome {
            Outcome::Reply { call, .. } if run.model_calls != *call => return Ok(Kept::Go),
            Outcome::Result { call, .. } | Outcome::Question { call, .. }
                if rows.message(run.thread, &call.id)?.is_some() =>
            {
                return Ok(Kept::Go);
            }
            Outcome::Reply { reply, .. } => keep_reply(rows, &run, reply)?,
            Outcome::Result { call, text } => {
                append_result(rows, &run, call, tools::bounded(text.clone()))?;
                Kept::Go
            }
            Outcome::Question { call, question } => keep_question(rows, &run, call, question)?,
            Outcome::Ask { call, asking } => keep_ask(rows, &run, call, asking)?,
            Outcome::End { .. } => Kept::Go,
        };
        rows.progress(&run.id, self.spent)?;
        Ok(kept)
    }
}

/// Writes the assistant message. Without calls it is the last one, and the run
/// ends in the same commit.
fn keep_reply(rows: &dyn AgentRows, run: &RunRow, reply: &ModelReply) -> anyhow::Result<Kept> {
    let number = rows.next_number(run.thread)?;
    let calls = take_calls(&run.id, number, reply);
    let (digest, repeats, endless) = count_repeats(run, &calls);
    let last = calls.is_empty();
    let message = MessageRow {
        number,
        id: format!("{}-{number}", run.id),
        role: Role::Assistant,
        text: ids::shorten(&reply.text, MAX_TEXT).into_owned(),
        run: run.id.clone(),
        calls,
        ..MessageRow::default()
    };
    rows.append(run.thread, &message)?;
    rows.count_model_call(&run.id, digest.as_deref(), repeats)?;
    if last {
        if reply.finish == Finish::Cut {
            rows.set_cut(&run.id)?;
        }
        return succeed(rows, run);
    }
    Ok(endless.map_or(Kept::Go, |tool| {
        Kept::Fail(format!(
            "limit_repeated_call: the tool {tool} was called more than {MAX_REPEATS} times in a row with the same \
             arguments"
        ))
    }))
}

fn keep_question(
    rows: &dyn AgentRows,
    run: &RunRow,
    call: &StoredCall,
    question: &StoredQuestion,
) -> anyhow::Result<Kept> {
    let number = rows.next_number(run.thread)?;
    let message = MessageRow {
        number,
        id: call.id.clone(),
        role: Role::Tool,
        text: tools::clarification_text(question),
        run: run.id.clone(),
        tool: Some(call.name.clone()),
        question: Some(question.clone()),
        ..MessageRow::default()
    };
    rows.append(run.thread, &message)?;
    rows.set_open_question(run.thread, Some(number))?;
    succeed(rows, run)
}

fn succeed(rows: &dyn AgentRows, run: &RunRow) -> anyhow::Result<Kept> {
    rows.end_run(run, RunStatus::Succeeded, None)?;
    Ok(Kept::Left(Place::of(rows.thread_by_key(run.thread)?)))
}

/// Asks, unless the answer came before the question was written.
fn keep_ask(rows: &dyn AgentRows, run: &RunRow, call: &str, asking: &[StoredCall]) -> anyhow::Result<Kept> {
    if rows.approval(call)?.is_some_and(|a| a.decision.is_some()) {
        return Ok(Kept::Go);
    }
    for call in asking {
        if rows.approval(&call.id)?.is_none() {
            rows.insert_approval(&ask(&run.id, call))?;
        }
    }
    rows.set_status(&run.id, RunStatus::Interrupted)?;
    Ok(Kept::Left(Place::of(rows.thread_by_key(run.thread)?)))
}

/// Ends a run, if it has not ended: its open calls get results that say so, in
/// the same commit, and approvals that are still open end with it. Answers
/// with its conversation.
pub fn end(rows: &dyn AgentRows, run: &RunRow, status: RunStatus, why: Option<&str>) -> anyhow::Result<Place> {
    let thread = Place::of(rows.thread_by_key(run.thread)?);
    if run.ended() {
        return Ok(thread);
    }
    let (status, why) = if run.cancel { (RunStatus::Cancelled, None) } else { (status, why) };
    let (_, open) = last_calls(rows, run)?;
    for call in open {
        let text = tools::error_text(
            "not_finished",
            "The run ended before this call had a result; whether it had an effect is not known.",
            None,
        );
        append_result(rows, run, &call, text)?;
    }
    rows.end_run(run, status, why)?;
    Ok(thread)
}

/// A conversation and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub owner: String,
    pub thread: String,
}

impl Place {
    pub fn of(thread: Thread) -> Self {
        Self { owner: thread.owner, thread: thread.id }
    }
}

impl BuiltinAgents {
    /// Writes an outcome, once in all, and tells of a run that ended or waits.
    pub(super) async fn keep(&self, run: &str, pending: &Pending) -> anyhow::Result<Kept> {
        let (id, pending) = (run.to_owned(), pending.clone());
        let failed = match &*pending.outcome {
            Outcome::End { status: RunStatus::Failed, why } => why.clone(),
            _ => None,
        };
        let kept = self.tables.write(move |rows| pending.write(rows, &id)).await?;
        if let Kept::Left(place) = &kept {
            if let Some(why) = failed {
                tracing::warn!(run, thread = place.thread, "a run failed: {why}");
            }
            self.announce(place, run);
        }
        Ok(kept)
    }

    /// After the commit only.
    pub(super) fn announce(&self, place: &Place, run: &str) {
        let Place { owner, thread } = place.clone();
        let _ = self.ended.send(EndedRun { owner, thread, run: run.to_owned() });
    }
}
