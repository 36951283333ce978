//! The tables of the built-in agents in the database file.

use std::time::Duration;

use anyhow::Context;
use rusqlite::{Row, named_params, params};

use super::tables::SqliteRows;
use crate::storage::tables::agents::{AgentRows, Approval, DIRECT, MessageRow, Role, RunRow, RunStatus, Size, Thread};

type Sql<T> = rusqlite::Result<T>;

/// Migration steps of the module `agents`, in order; a published one is never
/// edited.
pub(super) const STEPS: &[&str] = &[
    "
CREATE TABLE agent_threads (
  key INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  id TEXT NOT NULL,
  agent TEXT NOT NULL,
  title TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  next_number INTEGER NOT NULL DEFAULT 1,
  -- The run that has not ended. At most one at a time.
  active_run TEXT,
  -- Number of the tool message whose question is open.
  open_question INTEGER,
  UNIQUE (owner, id)
) STRICT;

CREATE TABLE agent_messages (
  thread INTEGER NOT NULL REFERENCES agent_threads (key),
  number INTEGER NOT NULL,
  id TEXT NOT NULL,
  role TEXT NOT NULL,
  text TEXT NOT NULL,
  run TEXT NOT NULL,
  -- Assistant: its calls, as JSON.
  tool_calls TEXT,
  -- Tool: which one. The message's id is the id of the call.
  tool TEXT,
  -- Tool: the question that it asks, as JSON.
  question TEXT,
  -- Human: the question that it answers, and who wrote it.
  answers TEXT,
  provenance TEXT,
  created_ms INTEGER NOT NULL,
  UNIQUE (thread, number)
) STRICT;
CREATE UNIQUE INDEX agent_messages_id ON agent_messages (thread, id);
CREATE INDEX agent_messages_answers ON agent_messages (thread, answers) WHERE answers IS NOT NULL;

CREATE TABLE agent_runs (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  thread INTEGER NOT NULL REFERENCES agent_threads (key),
  -- The key that started it. A key has one row, which is never deleted.
  key TEXT NOT NULL,
  -- running, interrupted, succeeded, failed, cancelled
  status TEXT NOT NULL,
  error TEXT,
  cancel INTEGER NOT NULL DEFAULT 0,
  -- Number of the human message that began it.
  message INTEGER NOT NULL,
  model_calls INTEGER NOT NULL DEFAULT 0,
  -- How often its work was begun: 1, and once more after each restart.
  attempts INTEGER NOT NULL DEFAULT 1,
  spent_ms INTEGER NOT NULL DEFAULT 0,
  -- The last tool call and how often it came in a row.
  repeat_digest TEXT,
  repeat_count INTEGER NOT NULL DEFAULT 0,
  started_ms INTEGER NOT NULL,
  ended_ms INTEGER,
  UNIQUE (thread, key)
) STRICT;
CREATE INDEX agent_runs_open ON agent_runs (seq) WHERE ended_ms IS NULL;

-- Every key of `start` and `resume`, with the digest of what came with it.
CREATE TABLE agent_keys (
  thread INTEGER NOT NULL REFERENCES agent_threads (key),
  key TEXT NOT NULL,
  digest TEXT NOT NULL,
  run TEXT NOT NULL,
  PRIMARY KEY (thread, key)
) STRICT, WITHOUT ROWID;

-- Calls that wait for a person, and what was decided. The id is the call's;
-- a decision is bound to the digest of call, tool and arguments.
CREATE TABLE agent_approvals (
  id TEXT PRIMARY KEY,
  run TEXT NOT NULL,
  checkpoint TEXT NOT NULL,
  tool TEXT NOT NULL,
  arguments TEXT NOT NULL,
  digest TEXT NOT NULL,
  decision TEXT,
  decided_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_approvals_run ON agent_approvals (run);
",
    "
-- Whether the endpoint cut the reply with which the run ended.
ALTER TABLE agent_runs ADD COLUMN cut INTEGER NOT NULL DEFAULT 0;
",
];

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

const RUN: &str =
    "id, thread, status, error, cancel, message, model_calls, attempts, spent_ms, repeat_digest, repeat_count, cut";

fn run_row(row: &Row<'_>) -> Sql<RunRow> {
    let status: String = row.get(2)?;
    Ok(RunRow {
        id: row.get(0)?,
        thread: row.get(1)?,
        status: RunStatus::of(&status),
        error: row.get(3)?,
        cancel: row.get(4)?,
        message: row.get(5)?,
        model_calls: row.get(6)?,
        attempts: row.get(7)?,
        spent_ms: row.get(8)?,
        repeat_digest: row.get(9)?,
        repeat_count: row.get(10)?,
        cut: row.get(11)?,
    })
}

/// That a run (alias `r`) is a direct one at work, as a condition: one that
/// has stopped to wait for a person is not at work.
fn direct_at_work() -> String {
    format!("r.ended_ms IS NULL AND r.status = 'running' AND r.key GLOB '{DIRECT}*'")
}

const MESSAGE: &str = "number, id, role, text, run, tool_calls, tool, question, answers, provenance, created_ms";

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> Sql<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|t| serde_json::from_str(&t))
        .transpose()
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(e)))
}

fn role(row: &Row<'_>, column: usize) -> Sql<Role> {
    let word: String = row.get(column)?;
    let unknown = || format!("there is no role {word:?}").into();
    let of = Role::of(&word);
    of.ok_or_else(|| rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, unknown()))
}

fn message_row(row: &Row<'_>) -> Sql<MessageRow> {
    Ok(MessageRow {
        number: row.get(0)?,
        id: row.get(1)?,
        role: role(row, 2)?,
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

const SIZE: &str = "number, role, octet_length(text), coalesce(octet_length(question), 0),
    coalesce(octet_length(tool_calls), 0) + coalesce(octet_length(provenance), 0)";

fn size_row(row: &Row<'_>) -> Sql<Size> {
    let bytes = |column| Ok::<_, rusqlite::Error>(row.get::<_, u32>(column)? as usize);
    Ok(Size { number: row.get(0)?, role: role(row, 1)?, text: bytes(2)?, question: bytes(3)?, rest: bytes(4)? })
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

impl AgentRows for SqliteRows<'_> {
    fn thread(&self, owner: &str, id: &str) -> anyhow::Result<Option<Thread>> {
        let sql = format!("SELECT {THREAD} FROM agent_threads WHERE owner = ? AND id = ?");
        self.one(&sql, [owner, id], thread_row)
    }

    fn thread_by_key(&self, key: i64) -> anyhow::Result<Thread> {
        let sql = format!("SELECT {THREAD} FROM agent_threads WHERE key = ?");
        self.one(&sql, [key], thread_row)?.context("a run's conversation is missing")
    }

    fn threads(&self, owner: &str, limit: u32) -> anyhow::Result<Vec<Thread>> {
        let sql = format!("SELECT {THREAD} FROM agent_threads WHERE owner = ? ORDER BY key DESC LIMIT ?");
        self.all(&sql, params![owner, limit], thread_row)
    }

    fn insert_thread(&self, owner: &str, id: &str, agent: &str, title: &str) -> anyhow::Result<()> {
        self.set(
            "INSERT INTO agent_threads (owner, id, agent, title, created_ms) VALUES (?, ?, ?, ?, ?)",
            params![owner, id, agent, title, self.now_ms],
        )
    }

    fn set_open_question(&self, thread: i64, number: Option<i64>) -> anyhow::Result<()> {
        self.set("UPDATE agent_threads SET open_question = ? WHERE key = ?", params![number, thread])
    }

    fn run(&self, id: &str) -> anyhow::Result<Option<RunRow>> {
        self.one(&format!("SELECT {RUN} FROM agent_runs WHERE id = ?"), [id], run_row)
    }

    fn open_runs(&self) -> anyhow::Result<Vec<RunRow>> {
        self.all(&format!("SELECT {RUN} FROM agent_runs WHERE ended_ms IS NULL ORDER BY seq"), [], run_row)
    }

    fn direct_runs(&self, owner: &str) -> anyhow::Result<u32> {
        let sql = format!(
            "SELECT count(*) FROM agent_runs r JOIN agent_threads t ON t.key = r.thread
             WHERE {} AND t.owner = ?",
            direct_at_work()
        );
        Ok(self.one(&sql, [owner], |row| row.get(0))?.unwrap_or(0))
    }

    fn direct_owner(&self, run: &str) -> anyhow::Result<Option<String>> {
        let sql = format!(
            "SELECT t.owner FROM agent_runs r JOIN agent_threads t ON t.key = r.thread
             WHERE {} AND r.id = ?",
            direct_at_work()
        );
        self.one(&sql, [run], |row| row.get(0))
    }

    fn insert_run(&self, id: &str, thread: i64, key: &str, message: i64) -> anyhow::Result<()> {
        self.set(
            "INSERT INTO agent_runs (id, thread, key, status, message, started_ms) VALUES (?, ?, ?, 'running', ?, ?)",
            params![id, thread, key, message, self.now_ms],
        )?;
        self.set("UPDATE agent_threads SET active_run = ? WHERE key = ?", params![id, thread])
    }

    fn set_status(&self, run: &str, status: RunStatus) -> anyhow::Result<()> {
        self.set("UPDATE agent_runs SET status = ? WHERE id = ?", [status.word(), run])
    }

    fn set_cancelled(&self, run: &str) -> anyhow::Result<()> {
        self.set("UPDATE agent_runs SET cancel = 1 WHERE id = ?", [run])
    }

    fn set_going(&self, run: &str) -> anyhow::Result<()> {
        self.set("UPDATE agent_runs SET status = 'running', attempts = 1 WHERE id = ?", [run])
    }

    fn progress(&self, run: &str, spent: Duration) -> anyhow::Result<()> {
        let spent = i64::try_from(spent.as_millis()).unwrap_or(i64::MAX);
        self.set("UPDATE agent_runs SET spent_ms = spent_ms + ?, attempts = 0 WHERE id = ?", params![spent, run])
    }

    fn count_attempt(&self, run: &str) -> anyhow::Result<()> {
        self.set("UPDATE agent_runs SET attempts = attempts + 1 WHERE id = ? AND ended_ms IS NULL", [run])
    }

    fn uncount_attempt(&self, run: &str) -> anyhow::Result<()> {
        self.set("UPDATE agent_runs SET attempts = max(attempts - 1, 0) WHERE id = ? AND ended_ms IS NULL", [run])
    }

    fn count_model_call(&self, run: &str, digest: Option<&str>, repeats: u32) -> anyhow::Result<()> {
        self.set(
            "UPDATE agent_runs SET model_calls = model_calls + 1, repeat_digest = ?, repeat_count = ? WHERE id = ?",
            params![digest, repeats, run],
        )
    }

    fn set_cut(&self, run: &str) -> anyhow::Result<()> {
        self.set("UPDATE agent_runs SET cut = 1 WHERE id = ?", [run])
    }

    fn end_run(&self, run: &RunRow, status: RunStatus, error: Option<&str>) -> anyhow::Result<()> {
        self.set(
            "UPDATE agent_runs SET status = ?, error = ?, ended_ms = ? WHERE id = ?",
            params![status.word(), error, self.now_ms, run.id],
        )?;
        self.set(
            "UPDATE agent_threads SET active_run = NULL WHERE key = ? AND active_run = ?",
            params![run.thread, run.id],
        )
    }

    fn key(&self, thread: i64, key: &str) -> anyhow::Result<Option<(String, String)>> {
        let sql = "SELECT digest, run FROM agent_keys WHERE thread = ? AND key = ?";
        self.one(sql, params![thread, key], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn insert_key(&self, thread: i64, key: &str, digest: &str, run: &str) -> anyhow::Result<()> {
        self.set(
            "INSERT INTO agent_keys (thread, key, digest, run) VALUES (?, ?, ?, ?)",
            params![thread, key, digest, run],
        )
    }

    fn next_number(&self, thread: i64) -> anyhow::Result<i64> {
        let sql = "UPDATE agent_threads SET next_number = next_number + 1 WHERE key = ? RETURNING next_number - 1";
        self.one(sql, [thread], |row| row.get(0))?.context("the conversation is missing")
    }

    fn append(&self, thread: i64, m: &MessageRow) -> anyhow::Result<()> {
        let calls = if m.calls.is_empty() { None } else { Some(serde_json::to_string(&m.calls)?) };
        let question = m.question.as_ref().map(serde_json::to_string).transpose()?;
        self.set(
            "INSERT INTO agent_messages (thread, number, id, role, text, run, tool_calls, tool, question,
                answers, provenance, created_ms)
             VALUES (:thread, :number, :id, :role, :text, :run, :calls, :tool, :question,
                :answers, :provenance, :now)",
            named_params! {
                ":thread": thread, ":number": m.number, ":id": m.id, ":role": m.role.word(), ":text": m.text,
                ":run": m.run, ":calls": calls, ":tool": m.tool, ":question": question,
                ":answers": m.answers, ":provenance": m.provenance, ":now": self.now_ms,
            },
        )
    }

    fn message(&self, thread: i64, id: &str) -> anyhow::Result<Option<MessageRow>> {
        let sql = format!("SELECT {MESSAGE} FROM agent_messages WHERE thread = ? AND id = ?");
        self.one(&sql, params![thread, id], message_row)
    }

    fn message_at(&self, thread: i64, number: i64) -> anyhow::Result<Option<MessageRow>> {
        let sql = format!("SELECT {MESSAGE} FROM agent_messages WHERE thread = ? AND number = ?");
        self.one(&sql, params![thread, number], message_row)
    }

    fn messages_from(&self, thread: i64, from: i64, limit: u32) -> anyhow::Result<Vec<MessageRow>> {
        let sql =
            format!("SELECT {MESSAGE} FROM agent_messages WHERE thread = ? AND number >= ? ORDER BY number LIMIT ?");
        self.all(&sql, params![thread, from, limit], message_row)
    }

    fn messages_back(&self, thread: i64, before: i64, take: &mut dyn FnMut(MessageRow) -> bool) -> anyhow::Result<()> {
        let sql = format!("SELECT {MESSAGE} FROM agent_messages WHERE thread = ? AND number < ? ORDER BY number DESC");
        self.each(&sql, params![thread, before], message_row, take)
    }

    fn sizes_from(&self, thread: i64, from: i64, limit: u32) -> anyhow::Result<Vec<Size>> {
        let sql = format!("SELECT {SIZE} FROM agent_messages WHERE thread = ? AND number >= ? ORDER BY number LIMIT ?");
        self.all(&sql, params![thread, from, limit], size_row)
    }

    fn sizes(&self, thread: i64, after: i64, take: &mut dyn FnMut(&Size) -> bool) -> anyhow::Result<()> {
        let sql = format!("SELECT {SIZE} FROM agent_messages WHERE thread = ? AND number > ? ORDER BY number");
        self.each(&sql, params![thread, after], size_row, |size| take(&size))
    }

    fn answered(&self, thread: i64, question: &str) -> anyhow::Result<bool> {
        let sql = "SELECT 1 FROM agent_messages WHERE thread = ? AND answers = ?";
        Ok(self.conn.prepare_cached(sql)?.exists(params![thread, question])?)
    }

    fn insert_approval(&self, a: &Approval) -> anyhow::Result<()> {
        self.set(
            "INSERT INTO agent_approvals (id, run, checkpoint, tool, arguments, digest) VALUES (?, ?, ?, ?, ?, ?)",
            [&a.id, &a.run, &a.checkpoint, &a.tool, &a.arguments, &a.digest],
        )
    }

    fn approval(&self, id: &str) -> anyhow::Result<Option<Approval>> {
        self.one(&format!("SELECT {APPROVAL} FROM agent_approvals WHERE id = ?"), [id], approval_row)
    }

    fn open_approvals(&self, run: &str) -> anyhow::Result<Vec<Approval>> {
        let sql = format!(
            "SELECT {APPROVAL} FROM agent_approvals WHERE run = ? AND decision IS NULL ORDER BY length(id), id"
        );
        self.all(&sql, [run], approval_row)
    }

    fn decide(&self, id: &str, decision: &str) -> anyhow::Result<bool> {
        let sql = "UPDATE agent_approvals SET decision = ?, decided_ms = ? WHERE id = ? AND decision IS NULL";
        Ok(self.change(sql, params![decision, self.now_ms, id])? == 1)
    }
}
