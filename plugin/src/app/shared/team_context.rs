//! What every member of a team knows of it: the shared context.

use alloc::string::String;
use alloc::vec::Vec;

use super::view;
use crate::domain::context::{Context, ContextMember, ContextMessage};
use crate::domain::envelope::Author;
use crate::domain::error::{Error, Result};
use crate::domain::job::Source;
use crate::domain::state::Status;
use crate::domain::{limits, text, time};
use crate::store::records::{Job, Member, Message, MessageKind};
use crate::store::{TeamTx, readable};

pub fn author<'t>(team: &'t TeamTx, source: &'t Source) -> Author<'t> {
    match source {
        Source::Owner => Author::Owner,
        Source::Member { member, .. } => match team.team.member(member) {
            Some(m) => Author::Member { name: &m.name, agent: &m.agent },
            None => Author::Member { name: "a member", agent: "" },
        },
        Source::Conversation { thread } => Author::Conversation { thread },
    }
}

/// The team's shared context as of this snapshot. `but` leaves out the line
/// of the job that is about to be delivered.
pub fn shared_context(team: &TeamTx, but: Option<u32>) -> Result<Context> {
    let messages = team.recent_messages(limits::CONTEXT_MESSAGES + 1)?.into_iter();
    let own = |m: &Message| Some(m.job) == but && m.kind == MessageKind::Request;
    let messages: Vec<Message> = messages.filter(|m| !own(m)).collect();
    // All jobs in one call, then all their texts. The line of a job that
    // cannot be read is left out, so that it does not stop the whole team.
    let jobs = team.db.get_each::<Job>(&messages.iter().map(|m| team.keys.job(m.job)).collect::<Vec<_>>())?;
    let keys: Vec<String> = messages.iter().filter_map(|m| body_key(team, m)).collect();
    let mut bodies = team.db.get_many_texts(&keys)?.into_iter();
    let mut recent_messages = Vec::with_capacity(messages.len());
    for (message, job) in messages.iter().zip(jobs) {
        let body = body_key(team, message).and_then(|_| bodies.next()).flatten();
        let Some(job) = readable(job.ok_or_else(|| Error::internal("a job of this team is missing"))?)? else {
            continue;
        };
        let line = line_of(team, message, &job, body);
        // What must be escaped counts in the budget: one message alone never
        // takes all of it.
        let (text, truncated) = text::excerpt_json(&line.body, limits::ANSWER_BYTES, 2 * limits::ANSWER_BYTES);
        recent_messages.push(ContextMessage {
            kind: line.kind,
            job_id: job.id.clone(),
            from: line.from,
            to: line.to,
            text,
            truncated: truncated || job.answer_was_cut(message.kind),
            at: time::rfc3339(message.at),
        });
    }
    let active = team.readable_state()?.into_iter().map(|e| e.entry).filter(|e| e.status == Status::Active);
    let active = active.map(|e| view::entry(team, &e)).collect();
    let board = readable(crate::app::shared::board_digest::digest(team))?;
    Ok(Context { recent_messages, board, ..standing_context(team, active) })
}

/// The context without messages and board: what must fit whatever happens.
pub fn standing_context(team: &TeamTx, state: Vec<serde_json::Value>) -> Context {
    let member = |m: &Member| ContextMember { id: m.id.clone(), name: m.name.clone(), agent: m.agent.clone() };
    Context {
        team_id: team.team.id.clone(),
        name: team.team.name.clone(),
        // An imported goal may be longer than a new one.
        goal: text::excerpt(&team.team.goal, limits::GOAL.bytes).0,
        members: team.team.members.iter().map(member).collect(),
        lead: team.team.lead.clone(),
        state,
        board: None,
        recent_messages: Vec::new(),
        omitted: None,
    }
}

/// A line of the shared record in words.
pub struct Line {
    /// `request`, `result` or `notice`.
    pub kind: &'static str,
    pub from: String,
    pub to: String,
    pub body: String,
}

/// Where the text of a line is stored: with its job, unless the line was imported
/// with a text of its own, or says why there is none.
fn body_key(team: &TeamTx, message: &Message) -> Option<String> {
    match message.kind {
        _ if message.text.is_some() => None,
        MessageKind::Request => Some(team.keys.text(message.job)),
        MessageKind::Result => Some(team.keys.result(message.job)),
        MessageKind::Notice => None,
    }
}

/// What a line of the shared record says.
pub fn line(team: &TeamTx, message: &Message, job: &Job) -> Result<Line> {
    let body = body_key(team, message).map(|key| team.db.get_text(&key)).transpose()?.flatten();
    Ok(line_of(team, message, job, body))
}

/// The same with the text that is stored with the job.
fn line_of(team: &TeamTx, message: &Message, job: &Job, body: Option<String>) -> Line {
    let member = job.member.as_deref().and_then(|id| team.team.member(id)).map_or("another conversation", |m| &m.name);
    let (member, asked) = (String::from(member), author(team, &job.source).short());
    let body = message.text.clone().or(body);
    match message.kind {
        MessageKind::Request => Line { kind: "request", from: asked, to: member, body: body.unwrap_or_default() },
        MessageKind::Result => Line { kind: "result", from: member, to: asked, body: body.unwrap_or_default() },
        MessageKind::Notice => {
            let why = || job.failure.as_ref().map_or_else(|| "It was cancelled.".into(), |f| f.message.clone());
            Line { kind: "notice", from: member, to: asked, body: body.unwrap_or_else(why) }
        }
    }
}

impl Author<'_> {
    fn short(&self) -> String {
        match self {
            Author::Owner | Author::Conversation { .. } => "owner".into(),
            Author::Member { name, .. } => String::from(*name),
        }
    }
}
