//! Conversations of the built-in agents, their messages, runs, idempotency keys
//! and approvals. Times are milliseconds since 1970.
//!
//! A turn only adds rows: what it costs does not depend on what was said before.
//! A conversation is named by its owner and id, so nothing of another user can
//! be named at all; `key` is its number in the tables.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number in the tables.
    pub key: i64,
    /// Whose it is.
    pub owner: String,
    /// Its id among its owner's conversations.
    pub id: String,
    /// The agent that it is bound to.
    pub agent: String,
    /// For people.
    pub title: String,
    /// When it was made.
    pub created_ms: i64,
    /// The number of the next message.
    pub next_number: i64,
    /// The run that has not ended. At most one at a time.
    pub active_run: Option<String>,
    /// The number of the tool message whose question is open.
    pub open_question: Option<i64>,
}

/// What a stored run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// It works, or has to be continued.
    Running,
    /// It waits for a decision about a call.
    Interrupted,
    /// It has ended with an answer or a question.
    Succeeded,
    /// It has ended, and `error` says why.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl RunStatus {
    /// The word that is stored.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Of a stored word; one that is not known is a failed run's.
    pub fn of(word: &str) -> Self {
        match word {
            "running" => Self::Running,
            "interrupted" => Self::Interrupted,
            "succeeded" => Self::Succeeded,
            "cancelled" => Self::Cancelled,
            _ => Self::Failed,
        }
    }
}

/// A stored run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Derived from its key.
    pub id: String,
    /// Its conversation's key.
    pub thread: i64,
    /// What it is doing.
    pub status: RunStatus,
    /// Why it failed.
    pub error: Option<String>,
    /// Somebody has cancelled it.
    pub cancel: bool,
    /// The number of the human message that began it.
    pub message: i64,
    /// Model calls that were written.
    pub model_calls: u32,
    /// How often its work was begun since it last got anywhere, without those
    /// times that ended in order: after a crash this attempt stays counted.
    pub attempts: u32,
    /// Working time, without waiting.
    pub spent_ms: i64,
    /// The last tool call, and how often it came in a row.
    pub repeat_digest: Option<String>,
    /// How often that call came in a row.
    pub repeat_count: u32,
    /// The endpoint cut the reply with which it ended.
    pub cut: bool,
}

impl RunRow {
    /// Whether it has ended.
    pub fn ended(&self) -> bool {
        matches!(self.status, RunStatus::Succeeded | RunStatus::Failed | RunStatus::Cancelled)
    }
}

/// How keys begin of runs that a person starts by posting to a conversation.
pub const DIRECT: &str = "post:";

/// A tool call as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredCall {
    /// The host's own; the same after every restart.
    pub id: String,
    /// The tool.
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
    /// Stable, for programs.
    pub code: String,
    /// What the model reads.
    pub message: String,
}

/// A question as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredQuestion {
    /// The call's id.
    pub id: String,
    /// What is asked.
    pub text: String,
    /// Answers to choose from; empty: any text.
    pub options: Vec<String>,
}

/// Who wrote a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    #[default]
    /// A person, or the team on behalf of one.
    Human,
    /// The agent.
    Assistant,
    /// A tool: the result of a call.
    Tool,
}

impl Role {
    /// The word that is stored.
    pub fn word(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// Of a stored word.
    pub fn of(word: &str) -> Option<Self> {
        [Self::Human, Self::Assistant, Self::Tool].into_iter().find(|role| role.word() == word)
    }
}

/// A message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageRow {
    /// Its place in the conversation.
    pub number: i64,
    /// Unique in the conversation.
    pub id: String,
    /// Who wrote it.
    pub role: Role,
    /// Its text.
    pub text: String,
    /// The run that it belongs to.
    pub run: String,
    /// Of an assistant message: its tool calls.
    pub calls: Vec<StoredCall>,
    /// Of a tool message, whose id is the id of the call.
    pub tool: Option<String>,
    /// Of a tool message: the question that it asks.
    pub question: Option<StoredQuestion>,
    /// Of a human message: the question that it answers, and who wrote it.
    pub answers: Option<String>,
    /// Of a human message: who wrote it, as JSON.
    pub provenance: Option<String>,
    /// Given by the tables when it is appended.
    pub created_ms: i64,
}

/// What a message takes, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Its place in the conversation.
    pub number: i64,
    /// Who wrote it.
    pub role: Role,
    /// Bytes of its text, of its question, and of its calls and provenance.
    pub text: usize,
    /// Bytes of its question.
    pub question: usize,
    /// Bytes of its calls and its provenance.
    pub rest: usize,
}

/// A call that waits for a person, or was decided; the id is the call's. A
/// decision is bound to the digest of call, tool and arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The call's id.
    pub id: String,
    /// The run that asks.
    pub run: String,
    /// The assistant message that makes the call.
    pub checkpoint: String,
    /// The tool.
    pub tool: String,
    /// Its arguments, as JSON.
    pub arguments: String,
    /// Of call, tool and arguments.
    pub digest: String,
    /// JSON text.
    pub decision: Option<String>,
}

/// The tables of the built-in agents, inside a transaction. Inserting what
/// exists under the same id, key or number is an error, and so is a row of a
/// conversation that does not exist. Changing what does not exist changes
/// nothing.
pub trait AgentRows {
    /// The conversation of this owner and id.
    fn thread(&self, owner: &str, id: &str) -> anyhow::Result<Option<Thread>>;
    /// The conversation with this number.
    fn thread_by_key(&self, key: i64) -> anyhow::Result<Thread>;
    /// An owner's conversations, newest first.
    fn threads(&self, owner: &str, limit: u32) -> anyhow::Result<Vec<Thread>>;
    /// Adds a conversation.
    fn insert_thread(&self, owner: &str, id: &str, agent: &str, title: &str) -> anyhow::Result<()>;
    /// Sets the message whose question is open, or none.
    fn set_open_question(&self, thread: i64, number: Option<i64>) -> anyhow::Result<()>;

    /// The run with this id.
    fn run(&self, id: &str) -> anyhow::Result<Option<RunRow>>;
    /// Runs that have not ended, oldest first.
    fn open_runs(&self) -> anyhow::Result<Vec<RunRow>>;
    /// How many direct runs of this user are at work: one that has stopped to
    /// wait for a person is not.
    fn direct_runs(&self, owner: &str) -> anyhow::Result<u32>;
    /// Whose direct run this is. Absent: it is not a direct one, or not at work.
    fn direct_owner(&self, run: &str) -> anyhow::Result<Option<String>>;
    /// Inserts the run and makes it the active one of its conversation.
    fn insert_run(&self, id: &str, thread: i64, key: &str, message: i64) -> anyhow::Result<()>;
    /// Sets what it is doing.
    fn set_status(&self, run: &str, status: RunStatus) -> anyhow::Result<()>;
    /// Notes that somebody has cancelled it.
    fn set_cancelled(&self, run: &str) -> anyhow::Result<()>;
    /// A run that waited is worked on again.
    fn set_going(&self, run: &str) -> anyhow::Result<()>;
    /// A run got somewhere: attempts are counted anew.
    fn progress(&self, run: &str, spent: Duration) -> anyhow::Result<()>;
    /// Its work is begun once more; ignored once it has ended.
    fn count_attempt(&self, run: &str) -> anyhow::Result<()>;
    /// An attempt that ends in order does not count.
    fn uncount_attempt(&self, run: &str) -> anyhow::Result<()>;
    /// `repeats`: how often the last call came in a row, as `digest`.
    fn count_model_call(&self, run: &str, digest: Option<&str>, repeats: u32) -> anyhow::Result<()>;
    /// Notes that the endpoint cut the reply with which the run ends.
    fn set_cut(&self, run: &str) -> anyhow::Result<()>;
    /// Ends a run forever and frees its conversation.
    fn end_run(&self, run: &RunRow, status: RunStatus, error: Option<&str>) -> anyhow::Result<()>;

    /// The digest and the run of an idempotency key.
    fn key(&self, thread: i64, key: &str) -> anyhow::Result<Option<(String, String)>>;
    /// Notes an idempotency key with the digest of its input and its run.
    fn insert_key(&self, thread: i64, key: &str, digest: &str, run: &str) -> anyhow::Result<()>;

    /// Takes the next number of the conversation.
    fn next_number(&self, thread: i64) -> anyhow::Result<i64>;
    /// Adds a message under the number that it carries.
    fn append(&self, thread: i64, message: &MessageRow) -> anyhow::Result<()>;
    /// The message with this id.
    fn message(&self, thread: i64, id: &str) -> anyhow::Result<Option<MessageRow>>;
    /// The message with this number.
    fn message_at(&self, thread: i64, number: i64) -> anyhow::Result<Option<MessageRow>>;
    /// Up to `limit` messages with a number of `from` or more, oldest first.
    fn messages_from(&self, thread: i64, from: i64, limit: u32) -> anyhow::Result<Vec<MessageRow>>;
    /// Messages with a number below `before`, newest first, until `take` says
    /// false: only what is looked at is read.
    fn messages_back(&self, thread: i64, before: i64, take: &mut dyn FnMut(MessageRow) -> bool) -> anyhow::Result<()>;
    /// Sizes of up to `limit` messages with a number of `from` or more, oldest first.
    fn sizes_from(&self, thread: i64, from: i64, limit: u32) -> anyhow::Result<Vec<Size>>;
    /// Sizes of messages with a number above `after`, in order, until `take` says
    /// false.
    fn sizes(&self, thread: i64, after: i64, take: &mut dyn FnMut(&Size) -> bool) -> anyhow::Result<()>;
    /// Whether a human message answers this question.
    fn answered(&self, thread: i64, question: &str) -> anyhow::Result<bool>;

    /// The open question of a conversation.
    fn open_question(&self, thread: &Thread) -> anyhow::Result<Option<StoredQuestion>> {
        let Some(number) = thread.open_question else { return Ok(None) };
        Ok(self.message_at(thread.key, number)?.and_then(|m| m.question))
    }

    /// Adds an approval that is not decided.
    fn insert_approval(&self, approval: &Approval) -> anyhow::Result<()>;
    /// The approval of this call.
    fn approval(&self, id: &str) -> anyhow::Result<Option<Approval>>;
    /// The undecided approvals of a run, in the order of their calls. They count
    /// only while it has not ended.
    fn open_approvals(&self, run: &str) -> anyhow::Result<Vec<Approval>>;
    /// Writes a decision. False: there was one already, and it is kept.
    fn decide(&self, id: &str, decision: &str) -> anyhow::Result<bool>;
}
