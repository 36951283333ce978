//! The tables of the built-in agents.
//!
//! A turn only adds rows: what it costs does not depend on what was said
//! before. A conversation is named by (owner, id), so that nothing of another
//! user can be named at all.

/// Migration steps of the module `agents`, in order; a published one is never
/// edited.
pub const STEPS: &[&str] = &["
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
  -- The key that started it: one row a key, for ever.
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
"];
