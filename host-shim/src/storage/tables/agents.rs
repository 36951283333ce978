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
    pub key: i64,
    pub owner: String,
    pub id: String,
    pub agent: String,
    pub title: String,
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
    Running,
    Interrupted,
    Succeeded,
    Failed,
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
    pub id: String,
    /// Its conversation's key.
    pub thread: i64,
    pub status: RunStatus,
    pub error: Option<String>,
    /// Somebody has cancelled it.
    pub cancel: bool,
    /// The number of the human message that began it.
    pub message: i64,
    pub model_calls: u32,
    /// How often its work was begun since it last got anywhere, without those
    /// times that ended in order: after a crash this attempt stays counted.
    pub attempts: u32,
    pub spent_ms: i64,
    /// The last tool call, and how often it came in a row.
    pub repeat_digest: Option<String>,
    pub repeat_count: u32,
}

impl RunRow {
    pub fn ended(&self) -> bool {
        matches!(self.status, RunStatus::Succeeded | RunStatus::Failed | RunStatus::Cancelled)
    }
}

/// How keys begin of runs that a person starts by posting to a conversation.
pub const DIRECT: &str = "post:";

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

/// Who wrote a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    #[default]
    Human,
    Assistant,
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
    pub number: i64,
    pub id: String,
    pub role: Role,
    pub text: String,
    pub run: String,
    pub calls: Vec<StoredCall>,
    /// Of a tool message, whose id is the id of the call.
    pub tool: Option<String>,
    pub question: Option<StoredQuestion>,
    /// Of a human message: the question that it answers, and who wrote it.
    pub answers: Option<String>,
    pub provenance: Option<String>,
    /// Given by the tables when it is appended.
    pub created_ms: i64,
}

/// What a message takes, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub number: i64,
    pub role: Role,
    /// Bytes of its text, of its question, and of its calls and provenance.
    pub text: usize,
    pub question: usize,
    pub rest: usize,
}

/// A call that waits for a person, or was decided; the id is the call's. A
/// decision is bound to the digest of call, tool and arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// The tables of the built-in agents, inside a transaction. Inserting what
/// exists under the same id, key or number is an error, and so is a row of a
/// conversation that does not exist. Changing what does not exist changes
/// nothing.
pub trait AgentRows {
    /// The conversation of this owner and id.
    fn thread(&self, owner: &str, id: &str) -> anyhow::Result<Option<Thread>>;
    fn thread_by_key(&self, key: i64) -> anyhow::Result<Thread>;
    /// An owner's conversations, newest first.
    fn threads(&self, owner: &str, limit: u32) -> anyhow::Result<Vec<Thread>>;
    fn insert_thread(&self, owner: &str, id: &str, agent: &str, title: &str) -> anyhow::Result<()>;
    fn set_open_question(&self, thread: i64, number: Option<i64>) -> anyhow::Result<()>;

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
    fn set_status(&self, run: &str, status: RunStatus) -> anyhow::Result<()>;
    /// Notes that somebody has cancelled it.
    fn set_cancelled(&self, run: &str) -> anyhow::Result<()>;
    /// A run that waited is worked on again.
    fn set_going(&self, run: &str) -> anyhow::Result<()>;
    /// A run got somewhere: attempts are counted anew.
    fn progress(&self, run: &str, spent: Duration) -> anyhow::Result<()>;
    fn count_attempt(&self, run: &str) -> anyhow::Result<()>;
    /// An attempt that ends in order does not count.
    fn uncount_attempt(&self, run: &str) -> anyhow::Result<()>;
    /// `repeats`: how often the last call came in a row, as `digest`.
    fn count_model_call(&self, run: &str, digest: Option<&str>, repeats: u32) -> anyhow::Result<()>;
    /// Ends a run forever and frees its conversation.
    fn end_run(&self, run: &RunRow, status: RunStatus, error: Option<&str>) -> anyhow::Result<()>;

    /// The digest and the run of an idempotency key.
    fn key(&self, thread: i64, key: &str) -> anyhow::Result<Option<(String, String)>>;
    fn insert_key(&self, thread: i64, key: &str, digest: &str, run: &str) -> anyhow::Result<()>;

    /// Takes the next number of the conversation.
    fn next_number(&self, thread: i64) -> anyhow::Result<i64>;
    /// Adds a message under the number that it carries.
    fn append(&self, thread: i64, message: &MessageRow) -> anyhow::Result<()>;
    fn message(&self, thread: i64, id: &str) -> anyhow::Result<Option<MessageRow>>;
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

    fn insert_approval(&self, approval: &Approval) -> anyhow::Result<()>;
    fn approval(&self, id: &str) -> anyhow::Result<Option<Approval>>;
    /// The undecided approvals of a run, in the order of their calls. They count
    /// only while it has not ended.
    fn open_approvals(&self, run: &str) -> anyhow::Result<Vec<Approval>>;
    /// Writes a decision. False: there was one already, and it is kept.
    fn decide(&self, id: &str, decision: &str) -> anyhow::Result<bool>;
}
