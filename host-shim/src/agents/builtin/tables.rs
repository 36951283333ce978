//! Reads and writes of the tables, each inside a transaction of the caller.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids;
use crate::agents::runs::{Failure, Question, Run, RunStatus};

type Sql<T> = rusqlite::Result<T>;

/// A conversation.
#[derive(Clone, Debug)]
pub struct Thread {
    pub key: i64,
    pub owner: String,
    pub id: String,
    pub agent: String,
    pub title: String,
    pub created_ms: i64,
    pub next_number: i64,
    pub active_run: Option<String>,
    pub open_question: Option<i64>,
}

const THREAD: &str = "key, owner, id, agent, title, created_ms, next_number, active_run, open_question";

fn thread_row(row: &Row<'_>) -> Sql<Thread> {
    Ok(Thread {
        key: row.get(0)?,
        owner: row.get(1)?,
        id: row.get(2)?,
        agent: row.get(3)?,
        title: row.get(4)?,
        created_ms: row.get(5)?,
        next_number: row.get(6)?,
        active_run: row.get(7)?,
        open_question: row.get(8)?,
    })
}

pub fn thread(c: &Connection, owner: &str, id: &str) -> Sql<Option<Thread>> {
    c.prepare_cached(&format!("SELECT {THREAD} FROM agent_threads WHERE owner = ? AND id = ?"))?
        .query_row([owner, id], thread_row)
        .optional()
}

pub fn thread_by_key(c: &Connection, key: i64) -> Sql<Thread> {
    c.prepare_cached(&format!("SELECT {THREAD} FROM agent_threads WHERE key = ?"))?.query_row([key], thread_row)
}

pub fn threads(c: &Connection, owner: &str, limit: u32) -> Sql<Vec<Thread>> {
    c.prepare_cached(&format!("SELECT {THREAD} FROM agent_threads WHERE owner = ? ORDER BY key DESC LIMIT ?"))?
        .query_map(params![owner, limit], thread_row)?
        .collect()
}

pub fn insert_thread(c: &Connection, owner: &str, id: &str, agent: &str, title: &str) -> Sql<()> {
    c.execute(
        "INSERT INTO agent_threads (owner, id, agent, title, created_ms) VALUES (?, ?, ?, ?, ?)",
        params![owner, id, agent, title, ids::now_ms()],
    )?;
    Ok(())
}

/// A stored run.
#[derive(Clone, Debug)]
pub struct RunRow {
    pub id: String,
    pub thread: i64,
    pub status: RunStatus,
    pub error: Option<String>,
    pub cancel: bool,
    pub message: i64,
    pub model_calls: u32,
    /// How often its work was begun since it last got anywhere, without those
    /// times that ended in order: after a crash this attempt stays counted.
    pub attempts: u32,
    pub spent_ms: i64,
    pub repeat_digest: Option<String>,
    pub repeat_count: u32,
}

impl RunRow {
    pub fn ended(&self) -> bool {
        matches!(self.status, RunStatus::Succeeded | RunStatus::Failed | RunStatus::Cancelled)
    }

    pub fn public(self) -> Run {
        let failure = self.error.map(|text| Failure { code: "failed".into(), text });
        Run { failure, ..Run::new(self.id, self.status) }
    }
}

const RUN: &str =
    "id, thread, status, error, cancel, message, model_calls, attempts, spent_ms, repeat_digest, repeat_count";

fn run_row(row: &Row<'_>) -> Sql<RunRow> {
    let status: String = row.get(2)?;
    Ok(RunRow {
        id: row.get(0)?,
        thread: row.get(1)?,
        status: match status.as_str() {
            "running" => RunStatus::Running,
            "interrupted" => RunStatus::Interrupted,
            "succeeded" => RunStatus::Succeeded,
            "cancelled" => RunStatus::Cancelled,
            _ => RunStatus::Failed,
        },
        error: row.get(3)?,
        cancel: row.get(4)?,
        message: row.get(5)?,
        model_calls: row.get(6)?,
        attempts: row.get(7)?,
        spent_ms: row.get(8)?,
        repeat_digest: row.get(9)?,
        repeat_count: row.get(10)?,
    })
}

fn status_word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Pending | RunStatus::Running => "running",
        RunStatus::Interrupted => "interrupted",
        RunStatus::Succeeded => "succeeded",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "cancelled",
        RunStatus::Suspended => "suspended",
        RunStatus::Outside => "outside",
    }
}

pub fn run(c: &Connection, id: &str) -> Sql<Option<RunRow>> {
    c.prepare_cached(&format!("SELECT {RUN} FROM agent_runs WHERE id = ?"))?.query_row([id], run_row).optional()
}

/// Runs that have not ended, oldest first, by id.
pub fn open_runs(c: &Connection) -> Sql<Vec<RunRow>> {
    c.prepare(&format!("SELECT {RUN} FROM agent_runs WHERE ended_ms IS NULL ORDER BY seq"))?
        .query_map([], run_row)?
        .collect()
}

/// How keys begin of runs that a person starts by posting to a conversation.
pub const DIRECT: &str = "post:";

/// That a run (alias `r`) is a direct one at work, as a condition: one that
/// has stopped to wait for a person is not at work.
fn direct_at_work() -> String {
    format!("r.ended_ms IS NULL AND r.status = 'running' AND r.key GLOB '{DIRECT}*'")
}

/// How many direct runs of this user are at work.
pub fn direct_runs(c: &Connection, owner: &str) -> Sql<u32> {
    c.prepare_cached(&format!(
        "SELECT count(*) FROM agent_runs r JOIN agent_threads t ON t.key = r.thread
         WHERE {} AND t.owner = ?",
        direct_at_work()
    ))?
    .query_row([owner], |row| row.get(0))
}

/// Whose direct run this is. None: it is none, or it is not at work.
pub fn direct_owner(c: &Connection, run: &str) -> Sql<Option<String>> {
    c.prepare_cached(&format!(
        "SELECT t.owner FROM agent_runs r JOIN agent_threads t ON t.key = r.thread
         WHERE {} AND r.id = ?",
        direct_at_work()
    ))?
    .query_row([run], |row| row.get(0))
    .optional()
}

/// Makes the run and makes it the active one of its conversation.
pub fn insert_run(c: &Connection, id: &str, thread: i64, key: &str, message: i64) -> Sql<()> {
    c.execute(
        "INSERT INTO agent_runs (id, thread, key, status, message, started_ms) VALUES (?, ?, ?, 'running', ?, ?)",
        params![id, thread, key, message, ids::now_ms()],
    )?;
    c.execute("UPDATE agent_threads SET active_run = ? WHERE key = ?", params![id, thread])?;
    Ok(())
}

pub fn set_status(c: &Connection, run: &str, status: RunStatus) -> Sql<()> {
    c.execute("UPDATE agent_runs SET status = ? WHERE id = ?", [status_word(status), run])?;
    Ok(())
}

/// A run that waited is worked on again.
pub fn set_going(c: &Connection, run: &str) -> Sql<()> {
    c.execute("UPDATE agent_runs SET status = 'running', attempts = 1 WHERE id = ?", [run])?;
    Ok(())
}

/// A run got somewhere: attempts are counted anew.
pub fn progress(c: &Connection, run: &str, spent: Duration) -> Sql<()> {
    let spent = i64::try_from(spent.as_millis()).unwrap_or(i64::MAX);
    c.execute("UPDATE agent_runs SET spent_ms = spent_ms + ?, attempts = 0 WHERE id = ?", params![spent, run])?;
    Ok(())
}

pub fn count_attempt(c: &Connection, run: &str) -> Sql<()> {
    c.execute("UPDATE agent_runs SET attempts = attempts + 1 WHERE id = ? AND ended_ms IS NULL", [run])?;
    Ok(())
}

/// An attempt that ends in order does not count.
pub fn uncount_attempt(c: &Connection, run: &str) -> Sql<()> {
    c.execute("UPDATE agent_runs SET attempts = max(attempts - 1, 0) WHERE id = ? AND ended_ms IS NULL", [run])?;
    Ok(())
}

/// `repeats`: how often the last call came in a row, as `digest`.
pub fn count_model_call(c: &Connection, run: &str, digest: Option<&str>, repeats: u32) -> Sql<()> {
    c.execute(
        "UPDATE agent_runs SET model_calls = model_calls + 1, repeat_digest = ?, repeat_count = ? WHERE id = ?",
        params![digest, repeats, run],
    )?;
    Ok(())
}

/// Ends a run for ever and frees its conversation.
pub fn end_run(c: &Connection, run: &RunRow, status: RunStatus, error: Option<&str>) -> Sql<()> {
    c.execute(
        "UPDATE agent_runs SET status = ?, error = ?, ended_ms = ? WHERE id = ?",
        params![status_word(status), error, ids::now_ms(), run.id],
    )?;
    c.execute(
        "UPDATE agent_threads SET active_run = NULL WHERE key = ? AND active_run = ?",
        params![run.thread, run.id],
    )?;
    Ok(())
}

/// The digest and the run of a key.
pub fn key(c: &Connection, thread: i64, key: &str) -> Sql<Option<(String, String)>> {
    c.prepare_cached("SELECT digest, run FROM agent_keys WHERE thread = ? AND key = ?")?
        .query_row(params![thread, key], |r| Ok((r.get(0)?, r.get(1)?)))
        .optional()
}

pub fn insert_key(c: &Connection, thread: i64, key: &str, digest: &str, run: &str) -> Sql<()> {
    c.execute(
        "INSERT INTO agent_keys (thread, key, digest, run) VALUES (?, ?, ?, ?)",
        params![thread, key, digest, run],
    )?;
    Ok(())
}

/// A tool call as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredCall {
    pub id: String,
    pub name: String,
    /// Always a JSON object.
    pub arguments: Value,
    /// Why it is not executed. Absent: it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// What is wrong with a call as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    pub code: String,
    pub message: String,
}

/// A question as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredQuestion {
    pub id: String,
    pub text: String,
    pub options: Vec<String>,
}

impl StoredQuestion {
    pub fn public(self, answered: bool) -> Question {
        Question { id: self.id, text: self.text, options: self.options, answered }
    }
}

/// A message.
#[derive(Clone, Debug, Default)]
pub struct MessageRow {
    pub number: i64,
    pub id: String,
    pub role: String,
    pub text: String,
    pub run: String,
    pub calls: Vec<StoredCall>,
    /// Of a tool message, whose id is the id of the call.
    pub tool: Option<String>,
    pub question: Option<StoredQuestion>,
    pub answers: Option<String>,
    pub provenance: Option<String>,
    pub created_ms: i64,
}

const MESSAGE: &str = "number, id, role, text, run, tool_calls, tool, question, answers, provenance, created_ms";

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> Sql<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|t| serde_json::from_str(&t))
        .transpose()
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(e)))
}

fn message_row(row: &Row<'_>) -> Sql<MessageRow> {
    Ok(MessageRow {
        number: row.get(0)?,
        id: row.get(1)?,
        role: row.get(2)?,
        text: row.get(3)?,
        run: row.get(4)?,
        calls: json(row, 5)?.unwrap_or_default(),
        tool: row.get(6)?,
        question: json(row, 7)?,
        answers: row.get(8)?,
        provenance: row.get(9)?,
        created_ms: row.get(10)?,
    })
}

/// Takes the next number of the conversation.
pub fn next_number(c: &Connection, thread: i64) -> Sql<i64> {
    c.prepare_cached("UPDATE agent_threads SET next_number = next_number + 1 WHERE key = ? RETURNING next_number - 1")?
        .query_row([thread], |r| r.get(0))
}

/// Adds a message under the number that it carries.
pub fn append(c: &Connection, thread: i64, m: &MessageRow) -> anyhow::Result<()> {
    let calls = if m.calls.is_empty() { None } else { Some(serde_json::to_string(&m.calls)?) };
    let question = m.question.as_ref().map(serde_json::to_string).transpose()?;
    c.prepare_cached(
        "INSERT INTO agent_messages (thread, number, id, role, text, run, tool_calls, tool, question,
            answers, provenance, created_ms)
         VALUES (:thread, :number, :id, :role, :text, :run, :calls, :tool, :question,
            :answers, :provenance, :now)",
    )?
    .execute(named_params! {
        ":thread": thread, ":number": m.number, ":id": m.id, ":role": m.role, ":text": m.text, ":run": m.run,
        ":calls": calls, ":tool": m.tool, ":question": question,
        ":answers": m.answers, ":provenance": m.provenance, ":now": ids::now_ms(),
    })?;
    Ok(())
}

pub fn message(c: &Connection, thread: i64, id: &str) -> Sql<Option<MessageRow>> {
    c.prepare_cached(&format!("SELECT {MESSAGE} FROM agent_messages WHERE thread = ? AND id = ?"))?
        .query_row(params![thread, id], message_row)
        .optional()
}

pub fn message_at(c: &Connection, thread: i64, number: i64) -> Sql<Option<MessageRow>> {
    c.prepare_cached(&format!("SELECT {MESSAGE} FROM agent_messages WHERE thread = ? AND number = ?"))?
        .query_row(params![thread, number], message_row)
        .optional()
}

/// Up to `limit` messages with a number of `from` or more, oldest first.
pub fn messages_from(c: &Connection, thread: i64, from: i64, limit: u32) -> Sql<Vec<MessageRow>> {
    c.prepare_cached(&format!(
        "SELECT {MESSAGE} FROM agent_messages WHERE thread = ? AND number >= ? ORDER BY number LIMIT ?"
    ))?
    .query_map(params![thread, from, limit], message_row)?
    .collect()
}

/// What a message takes, without reading it.
pub struct Size {
    pub number: i64,
    pub role: String,
    /// Bytes of its text, of its question, and of its calls and provenance.
    pub text: usize,
    pub question: usize,
    pub rest: usize,
}

const SIZE: &str = "number, role, octet_length(text), coalesce(octet_length(question), 0),
    coalesce(octet_length(tool_calls), 0) + coalesce(octet_length(provenance), 0)";

fn size_row(row: &Row<'_>) -> Sql<Size> {
    let bytes = |column| Ok::<_, rusqlite::Error>(row.get::<_, u32>(column)? as usize);
    Ok(Size { number: row.get(0)?, role: row.get(1)?, text: bytes(2)?, question: bytes(3)?, rest: bytes(4)? })
}

/// Sizes of up to `limit` messages with a number of `from` or more, oldest first.
pub fn sizes_from(c: &Connection, thread: i64, from: i64, limit: u32) -> Sql<Vec<Size>> {
    c.prepare_cached(&format!(
        "SELECT {SIZE} FROM agent_messages WHERE thread = ? AND number >= ? ORDER BY number LIMIT ?"
    ))?
    .query_map(params![thread, from, limit], size_row)?
    .collect()
}

/// Sizes of messages with a number above `after`, in order, until `take` says
/// false.
pub fn sizes(c: &Connection, thread: i64, after: i64, mut take: impl FnMut(&Size) -> bool) -> Sql<()> {
    let sql = format!("SELECT {SIZE} FROM agent_messages WHERE thread = ? AND number > ? ORDER BY number");
    let mut statement = c.prepare_cached(&sql)?;
    let mut rows = statement.query(params![thread, after])?;
    while let Some(row) = rows.next()? {
        if !take(&size_row(row)?) {
            break;
        }
    }
    Ok(())
}

/// Messages with a number below `before`, newest first, until `take` says
/// false: only what is looked at is read.
pub fn messages_back(c: &Connection, thread: i64, before: i64, mut take: impl FnMut(MessageRow) -> bool) -> Sql<()> {
    let sql = format!("SELECT {MESSAGE} FROM agent_messages WHERE thread = ? AND number < ? ORDER BY number DESC");
    let mut statement = c.prepare_cached(&sql)?;
    let mut rows = statement.query(params![thread, before])?;
    while let Some(row) = rows.next()? {
        if !take(message_row(row)?) {
            break;
        }
    }
    Ok(())
}

/// Whether a human message answers this question.
pub fn answered(c: &Connection, thread: i64, question: &str) -> Sql<bool> {
    c.prepare_cached("SELECT 1 FROM agent_messages WHERE thread = ? AND answers = ?")?.exists(params![thread, question])
}

/// The open question of a conversation.
pub fn open_question(c: &Connection, thread: &Thread) -> Sql<Option<StoredQuestion>> {
    let Some(number) = thread.open_question else { return Ok(None) };
    Ok(message_at(c, thread.key, number)?.and_then(|m| m.question))
}

pub fn set_open_question(c: &Connection, thread: i64, number: Option<i64>) -> Sql<()> {
    c.execute("UPDATE agent_threads SET open_question = ? WHERE key = ?", params![number, thread])?;
    Ok(())
}

/// A call that waits for a person, or was decided; the id is the call's.
#[derive(Clone, Debug)]
pub struct Approval {
    pub id: String,
    pub run: String,
    pub checkpoint: String,
    pub tool: String,
    pub arguments: String,
    pub digest: String,
    /// JSON text.
    pub decision: Option<String>,
}

const APPROVAL: &str = "id, run, checkpoint, tool, arguments, digest, decision";

fn approval_row(row: &Row<'_>) -> Sql<Approval> {
    Ok(Approval {
        id: row.get(0)?,
        run: row.get(1)?,
        checkpoint: row.get(2)?,
        tool: row.get(3)?,
        arguments: row.get(4)?,
        digest: row.get(5)?,
        decision: row.get(6)?,
    })
}

pub fn insert_approval(c: &Connection, a: &Approval) -> Sql<()> {
    c.execute(
        "INSERT INTO agent_approvals (id, run, checkpoint, tool, arguments, digest) VALUES (?, ?, ?, ?, ?, ?)",
        [&a.id, &a.run, &a.checkpoint, &a.tool, &a.arguments, &a.digest],
    )?;
    Ok(())
}

pub fn approval(c: &Connection, id: &str) -> Sql<Option<Approval>> {
    c.prepare_cached(&format!("SELECT {APPROVAL} FROM agent_approvals WHERE id = ?"))?
        .query_row([id], approval_row)
        .optional()
}

/// The undecided approvals of a run. They count only while it has not ended.
pub fn open_approvals(c: &Connection, run: &str) -> Sql<Vec<Approval>> {
    c.prepare_cached(&format!(
        "SELECT {APPROVAL} FROM agent_approvals WHERE run = ? AND decision IS NULL ORDER BY length(id), id"
    ))?
    .query_map([run], approval_row)?
    .collect()
}

/// Writes a decision. False: there was one already, and it stands.
pub fn decide(c: &Connection, id: &str, decision: &str) -> Sql<bool> {
    let changed = c.execute(
        "UPDATE agent_approvals SET decision = ?, decided_ms = ? WHERE id = ? AND decision IS NULL",
        params![decision, ids::now_ms(), id],
    )?;
    Ok(changed == 1)
}
