//! What people read of conversations.

use super::ids::rfc3339;
use super::{BuiltinAgents, ids};
use crate::agents::host::{Conversation, Post, Posted, Transcript, TranscriptMessage};
use crate::agents::runs::{Input, RunError};
use crate::storage::tables::agents::{AgentRows, DIRECT, MessageRow, RunStatus, Size, Thread};

/// Conversations or messages of one answer.
const MAX_PAGE: u32 = 500;
const MAX_TITLE: usize = 80;

/// Bytes of messages in one answer, if it holds more than one.
const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// How many of these messages make one answer: at least one.
fn page(sizes: &[Size], limit: usize) -> usize {
    let mut bytes = 0;
    let fits = sizes.iter().take(limit).take_while(|size| {
        bytes += size.text + size.rest;
        bytes <= MAX_PAGE_BYTES
    });
    fits.count().max(1).min(sizes.len())
}

fn unavailable(e: anyhow::Error) -> RunError {
    tracing::error!("cannot read conversations: {e:#}");
    RunError::Unavailable("the database cannot be read now".into())
}

fn conversation(rows: &dyn AgentRows, thread: Thread) -> anyhow::Result<Conversation> {
    let run = match &thread.active_run {
        Some(id) => rows.run(id)?,
        None => None,
    };
    let with = |status| run.as_ref().filter(|run| run.status == status).map(|run| run.id.clone());
    Ok(Conversation {
        id: thread.id,
        agent: thread.agent,
        title: thread.title,
        created_at: rfc3339(thread.created_ms),
        active_run: with(RunStatus::Running),
        waiting_run: with(RunStatus::Interrupted),
    })
}

fn message(row: MessageRow) -> TranscriptMessage {
    let tool_calls =
        row.calls.iter().map(|c| serde_json::json!({"id": c.id, "name": c.name, "arguments": c.arguments})).collect();
    TranscriptMessage {
        number: u64::try_from(row.number).unwrap_or(0),
        id: row.id,
        role: row.role.word(),
        text: row.text,
        run: Some(row.run),
        tool_calls,
        created_at: rfc3339(row.created_ms),
        provenance: row.provenance.and_then(|p| serde_json::from_str(&p).ok()),
    }
}

impl BuiltinAgents {
    /// A user's conversations, newest first; at most 500.
    pub fn conversations(&self, user: &str, limit: u32) -> Result<Vec<Conversation>, RunError> {
        self.check_user(user)?;
        self.tables
            .read(|rows| {
                let threads = rows.threads(user, limit.min(MAX_PAGE))?;
                threads.into_iter().map(|t| conversation(rows, t)).collect()
            })
            .map_err(unavailable)
    }

    /// One conversation with its messages after number `after`, oldest first;
    /// at most 500, and about a MiB. Another user's conversation is `NotFound`.
    pub fn conversation(
        &self,
        user: &str,
        thread: &str,
        after: Option<u64>,
        limit: u32,
    ) -> Result<Transcript, RunError> {
        self.check_user(user)?;
        let limit = limit.min(MAX_PAGE);
        let from = after.map_or(0, |a| i64::try_from(a).unwrap_or(i64::MAX - 1) + 1);
        let found = self.tables.read(|rows| {
            let Some(thread) = rows.thread(user, thread)? else { return Ok(None) };
            let sizes = rows.sizes_from(thread.key, from, limit + 1)?;
            let count = page(&sizes, limit as usize);
            let messages = rows.messages_from(thread.key, from, u32::try_from(count)?)?;
            let messages = messages.into_iter().map(message).collect();
            let more = count < sizes.len();
            Ok(Some(Transcript { conversation: conversation(rows, thread)?, messages, more }))
        });
        found.map_err(unavailable)?.ok_or_else(super::commands::no_thread)
    }

    /// Posts a human message and starts a run with it, if the user may have one
    /// more at work. `message_id` is the idempotency key: the same post again
    /// answers the same. With `thread`
    /// absent a new conversation is made, or found again. An open question of
    /// the conversation is closed: the person has spoken there directly.
    pub async fn post(self: &std::sync::Arc<Self>, user: &str, post: Post) -> Result<Posted, RunError> {
        let thread = match (post.thread, post.agent) {
            (Some(thread), _) => thread,
            (None, None) => return Err(RunError::Rejected("a new conversation needs an agent".into())),
            (None, Some(agent)) => {
                let id = ids::id("conversation", &[user, &post.message_id]);
                let title: String =
                    post.text.trim().lines().next().unwrap_or_default().chars().take(MAX_TITLE).collect();
                self.create_thread(user, &id, &agent, &title).await?;
                id
            }
        };
        let key = format!("{}{}", DIRECT, post.message_id);
        let provenance = serde_json::json!({"kind": "person", "user": user}).to_string();
        let input = Input {
            message_id: post.message_id,
            text: post.text,
            context: String::new(),
            answers: None,
            provenance,
            trace: None,
        };
        let run = self.start(user, &thread, &input, &key, true).await?;
        Ok(Posted { thread, run: run.id })
    }
}
