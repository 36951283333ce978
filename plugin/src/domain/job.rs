//! A job: one request or one receipt, and the phases of its life.
//!
//! ```text
//! queued ──freeze──► starting ──started──► running ──ended──► completed | failed
//!   ▲  └──not now──┘    │                    │ └─asks──► waiting ──answer──► answered
//!   └────refused────────┘                    ▲                                 │ freeze
//!                                            └────────started──── resuming ◄───┘
//! resuming ──answer refused──► waiting
//! queued, waiting for a clarification ──cancel──► cancelled
//! every other unfinished phase ──cancel──► cancelling ──stopped──► cancelled
//! starting, running, resuming, cancelling ──outcome unknown──► unknown
//! unknown ──settle──► failed | starting | resuming
//! ```
//!
//! A phase that holds a slot is *frozen*: the exact input and its idempotency
//! key were stored before the host was asked.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// Work that somebody asked of a member.
    Request,
    /// The result of a request on its way to the conversation that asked.
    Receipt,
}

/// Who asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// The owner, through the page or the API. Nothing is sent back.
    Owner,
    /// A member of the team, in its own conversation.
    Member { member: String, thread: String },
    /// Another conversation of the owner, by a mention.
    Conversation { thread: String },
}

impl Source {
    /// The conversation to which the result returns.
    pub fn thread(&self) -> Option<&str> {
        match self {
            Source::Owner => None,
            Source::Member { thread, .. } | Source::Conversation { thread } => Some(thread),
        }
    }
}

/// An open question or interrupt for which a job waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Wait {
    /// A clarification: answered with text, as a human message.
    Question { id: String, text: String, options: Vec<String> },
    /// Graph interrupts: answered with explicit JSON.
    Interrupts { open: Vec<OpenInterrupt> },
}

impl Wait {
    /// Names what is asked: an answer is for this and for nothing else.
    pub fn identity(&self) -> String {
        match self {
            Wait::Question { id, .. } => id.clone(),
            Wait::Interrupts { open } => {
                let mut name = String::new();
                for one in open {
                    name.push_str(one.checkpoint.as_deref().unwrap_or(""));
                    name.push('/');
                    name.push_str(&one.id);
                    name.push(' ');
                }
                name
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenInterrupt {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// What is asked, within a bound.
    pub value: Value,
    /// Absent: `value` is the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

/// What is known of a value that was cut when it was stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Bytes of the whole, as JSON text.
    pub bytes: u64,
    /// Digest of the whole, so that two that were cut to the same are not.
    pub digest: String,
}

/// A person's answer to a [`Wait`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The run that asked. Absent: stored before answers named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<String>,
    pub request_id: String,
    /// Digest of the answer, so that the same request id with another answer
    /// is a conflict.
    pub digest: String,
    pub key: String,
    pub wait: Wait,
}

/// The phase of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "at", rename_all = "snake_case")]
pub enum Phase {
    /// Nothing was admitted.
    Queued,
    /// Frozen; whether the run exists is not known yet.
    Starting,
    Running {
        run: String,
    },
    /// The run ended with a question; no slot is held.
    Waiting {
        run: String,
        wait: Wait,
    },
    /// Answered; the answer waits for a slot and was not sent.
    Answered {
        run: String,
        answer: Answer,
    },
    /// The answer is frozen and was sent, or may have been.
    Resuming {
        run: String,
        answer: Answer,
    },
    /// To be stopped.
    Cancelling {
        /// The run to stop: the newest attempt's, or the one that stopped at an
        /// interrupt which nothing has answered. Absent: the host has not named
        /// it yet.
        run: Option<String>,
        /// The key under which the host may know the run.
        key: String,
        /// The host accepted the cancel.
        accepted: bool,
    },
    /// What became of the newest attempt is unknown; a person or the host must say.
    Unknown {
        /// The run of that attempt, once the host has named it.
        run: Option<String>,
        key: String,
        /// The answer whose outcome is unknown; absent if it was the request.
        answer: Option<Answer>,
        /// The owner has cancelled it: whatever is found is stopped.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        cancel: bool,
    },
    Completed,
    Failed,
    Cancelled,
}

impl Phase {
    /// The state as tools, pages and programs see it.
    pub fn status(&self) -> &'static str {
        match self {
            Phase::Queued => "queued",
            Phase::Starting | Phase::Running { .. } => "running",
            Phase::Waiting { .. } => "waiting_input",
            Phase::Answered { .. } | Phase::Resuming { .. } => "resuming",
            Phase::Cancelling { .. } => "cancelling",
            Phase::Unknown { .. } => "unknown",
            Phase::Completed => "completed",
            Phase::Failed => "failed",
            Phase::Cancelled => "cancelled",
        }
    }

    /// Ends as cancelled, whatever the host says of its run.
    pub fn cancelling(&self) -> bool {
        matches!(self, Phase::Cancelling { .. } | Phase::Unknown { cancel: true, .. })
    }

    /// Finished means finished: nothing changes a job in such a phase.
    pub fn finished(&self) -> bool {
        matches!(self, Phase::Completed | Phase::Failed | Phase::Cancelled)
    }

    /// Frozen: the job keeps its slot until the outcome is known.
    pub fn holds_slot(&self) -> bool {
        matches!(
            self,
            Phase::Starting
                | Phase::Running { .. }
                | Phase::Resuming { .. }
                | Phase::Cancelling { .. }
                | Phase::Unknown { .. }
        )
    }

    /// Continues only when a person answers or settles it.
    pub fn needs_person(&self) -> bool {
        matches!(self, Phase::Waiting { .. } | Phase::Unknown { .. })
    }

    /// Asks for a slot.
    pub fn wants_slot(&self) -> bool {
        matches!(self, Phase::Queued | Phase::Answered { .. })
    }

    /// Whether a turn of the conversation executes this job, so that requests
    /// made there descend from it.
    pub fn executing(&self) -> bool {
        // An unknown outcome may well be a turn that continues: it still lends its chain.
        self.holds_slot()
    }

    /// The newest run that is known: the attempt's own, or the one that asked.
    pub fn run(&self) -> Option<&str> {
        match self {
            Phase::Waiting { run, .. } | Phase::Answered { run, .. } | Phase::Resuming { run, .. } => Some(run),
            Phase::Unknown { run: None, answer: Some(answer), .. } => answer.asker.as_deref(),
            _ => self.attempt(),
        }
    }

    /// The run that the newest attempt began, once the host has named it.
    /// While an answer is being sent there is none: the run that asked may be
    /// over, or may be the one that continues.
    pub fn attempt(&self) -> Option<&str> {
        match self {
            Phase::Running { run } => Some(run),
            Phase::Cancelling { run, .. } => run.as_deref(),
            // Stored before answers named the run that asked: it may be either.
            Phase::Unknown { answer: Some(Answer { asker: None, .. }), .. } => None,
            Phase::Unknown { run, .. } => run.as_deref(),
            _ => None,
        }
    }

    pub fn wait(&self) -> Option<&Wait> {
        match self {
            Phase::Waiting { wait, .. } => Some(wait),
            Phase::Answered { answer, .. } | Phase::Resuming { answer, .. } => Some(&answer.wait),
            _ => None,
        }
    }
}

/// Why a job is not moving though it is its turn, and when it is tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    pub code: String,
    pub message: String,
    /// Refusals in a row.
    pub tries: u32,
    /// Milliseconds since the epoch.
    pub next_at: u64,
}

/// Why a job failed, for its asker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub code: String,
    pub message: String,
}

/// A member's stored answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// At most [`super::limits::ANSWER_BYTES`].
    pub text: String,
    pub truncated: bool,
}
