//! Page through the shared record: the members' tool and the owner's action.

use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::read_state::folded;
use super::send::find_member;
use crate::app::Ctx;
use crate::app::shared::args::optional;
use crate::app::shared::calling_member::speaker;
use crate::app::shared::paging::{self, page_limit};
use crate::app::shared::team_arg::OwnTeam;
use crate::app::shared::{damaged, team_context};
use crate::domain::error::Result;
use crate::domain::page::Page;
use crate::domain::{cursor, ids, limits, text, time};
use crate::store::records::{Job, Message, MessageKind};
use crate::store::{TeamTx, read};

/// Pages through your team's shared messages, newest first: requests, results
/// and notices, at most the last 100. All filters apply before paging. For
/// more follow `next_cursor` with the same filters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadTeamHistory {
    /// The team's id, as given in your request. Absent: your own team.
    #[serde(default)]
    pub team_id: OwnTeam,
    /// Only messages about this member's work: its id or exact name.
    #[serde(default, deserialize_with = "optional")]
    pub member_id: Option<String>,
    /// Only messages about this job.
    #[serde(default, deserialize_with = "optional")]
    pub job_id: Option<String>,
    /// Only messages with this text: literal, compared without case.
    #[serde(default, deserialize_with = "optional")]
    pub query: Option<String>,
    /// Messages on a page, 1 to 20. Absent: 8.
    #[serde(default, deserialize_with = "optional")]
    pub limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[serde(default, deserialize_with = "optional")]
    pub cursor: Option<String>,
}

/// Pages through a team's shared messages, newest first, at most the last 100.
/// `revision` is the team's: given back, an unchanged team answers only that.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct History {
    pub team_id: String,
    /// Only messages about this member's work: its id or exact name.
    #[serde(default, deserialize_with = "optional")]
    pub member_id: Option<String>,
    /// Only messages about this job.
    #[serde(default, deserialize_with = "optional")]
    pub job_id: Option<String>,
    /// Only messages with this text: literal, compared without case.
    #[serde(default, deserialize_with = "optional")]
    pub query: Option<String>,
    /// Messages on a page, 1 to 20. Absent: 8.
    #[serde(default, deserialize_with = "optional")]
    pub limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[serde(default, deserialize_with = "optional")]
    pub cursor: Option<String>,
    /// The revision that the caller has: if nothing changed since, the answer
    /// says so and no more.
    #[serde(default, deserialize_with = "optional")]
    pub revision: Option<u64>,
}

/// What a page is asked for, whichever tool asks.
pub struct Asked<'a> {
    /// The tool or action: a cursor of one is none of another.
    pub tool: &'static str,
    pub member_id: Option<&'a str>,
    pub job_id: Option<&'a str>,
    pub query: Option<&'a str>,
    /// A filter that only this list has.
    pub other: &'static str,
    pub limit: Option<u32>,
    pub cursor: Option<&'a str>,
}

/// The same, checked against a team.
pub struct Filters<'a> {
    tool: &'static str,
    pub member: Option<String>,
    pub job: Option<u32>,
    /// Folded.
    pub query: Option<String>,
    pub limit: usize,
    /// A filter that only one list has.
    other: bool,
    digest: String,
    cursor: Option<&'a str>,
}

impl<'a> Filters<'a> {
    pub fn check(team: &TeamTx, asked: &Asked<'a>) -> Result<Self> {
        let limit = page_limit(asked.limit)?;
        let query = folded(asked.query)?;
        let member = asked.member_id.map(|m| find_member(team, m, "member_id")).transpose()?.map(|m| m.id);
        let job = asked.job_id.map(|id| team.number(id)).transpose()?;
        let digest = ids::digest(
            "filters",
            &[
                member.as_deref().unwrap_or(""),
                asked.job_id.unwrap_or(""),
                asked.query.map_or("", |q| text::trim(q)),
                asked.other,
            ],
        );
        let other = !asked.other.is_empty();
        Ok(Self { tool: asked.tool, member, job, query, limit, other, digest, cursor: asked.cursor })
    }

    /// True: the page cannot be read off the newest records alone.
    pub fn any(&self) -> bool {
        self.member.is_some() || self.job.is_some() || self.query.is_some()
    }

    /// The job passes the filters that need no text.
    pub fn takes(&self, job: &Job) -> bool {
        self.job.is_none_or(|n| job.n == n) && self.member.as_deref().is_none_or(|m| job.member.as_deref() == Some(m))
    }

    /// The same for a record that cannot be read: whose it is and what it says
    /// is not known.
    pub fn takes_damaged(&self, job: Option<u32>) -> bool {
        !self.other && self.member.is_none() && self.query.is_none() && (self.job.is_none() || self.job == job)
    }

    /// The query occurs in the text.
    pub fn found_in(&self, body: &str) -> bool {
        self.query.as_ref().is_none_or(|q| text::fold(body).contains(q))
    }

    fn binding<'b>(&'b self, ctx: Ctx<'b>, team: &'b TeamTx) -> [&'b str; 4] {
        [self.tool, ctx.owner(), &team.team.id, &self.digest]
    }

    /// The number of the record after which the page begins.
    pub fn anchor(&self, ctx: Ctx, team: &TeamTx) -> Result<Option<u32>> {
        let Some(given) = self.cursor else { return Ok(None) };
        let place = cursor::open(&team.team.nonce, &self.binding(ctx, team), given);
        place.map(Some).ok_or_else(paging::bad_cursor)
    }

    /// The cursor of the page after this record.
    pub fn after(&self, ctx: Ctx, team: &TeamTx, n: u32) -> String {
        cursor::seal(&team.team.nonce, &self.binding(ctx, team), n)
    }
}

/// A page of the shared record, for a member.
pub fn read_team_history(ctx: Ctx, args: &ReadTeamHistory) -> Result<Value> {
    let asked = Asked {
        tool: "read_team_history",
        member_id: args.member_id.as_deref(),
        job_id: args.job_id.as_deref(),
        query: args.query.as_deref(),
        other: "",
        limit: args.limit,
        cursor: args.cursor.as_deref(),
    };
    read(ctx.host, |db| {
        let team = TeamTx::load(db, ctx.owner(), &args.team_id)?;
        speaker(ctx, &team)?;
        page(ctx, &team, &asked)
    })
}

/// The same for the owner.
pub fn history(ctx: Ctx, args: &History) -> Result<Value> {
    let asked = Asked {
        tool: "history",
        member_id: args.member_id.as_deref(),
        job_id: args.job_id.as_deref(),
        query: args.query.as_deref(),
        other: "",
        limit: args.limit,
        cursor: args.cursor.as_deref(),
    };
    read(ctx.host, |db| {
        let team = TeamTx::load(db, ctx.owner(), &args.team_id)?;
        paging::unless_unchanged(&team, args.revision, || page(ctx, &team, &asked))
    })
}

fn page(ctx: Ctx, team: &TeamTx, asked: &Asked) -> Result<Value> {
    let filters = Filters::check(team, asked)?;
    let newest = team.head.borrow().messages;
    let oldest = newest.saturating_sub(limits::MESSAGES_KEPT) + 1;
    let from = match filters.anchor(ctx, team)? {
        None => newest,
        Some(anchor) if anchor < oldest => {
            return Ok(json!({
                "messages": [], "cursor_expired": true,
                "note": "The page after this cursor is no longer retained. Begin again without a cursor.",
            }));
        }
        Some(anchor) => anchor - 1,
    };
    let mut found = Page::new(filters.limit);
    let mut last = 0;
    let mut more = false;
    // One more than the page, so that its end is known; all that is retained
    // only where a filter may skip some.
    let lowest = if filters.any() { oldest } else { oldest.max(from.saturating_sub(filters.limit as u32)) };
    let numbers: Vec<u32> = (lowest..=from).rev().collect();
    let messages = team.db.get_each::<Message>(&numbers.iter().map(|n| team.keys.message(*n)).collect::<Vec<_>>())?;
    for (seq, message) in numbers.into_iter().zip(messages).filter_map(|(seq, m)| Some((seq, m?))) {
        let Some(record) = entry(team, &filters, message)? else { continue };
        if !found.push(record) {
            more = true;
            break;
        }
        last = seq;
    }
    let mut reply = json!({"messages": found.records, "cursor_expired": false});
    if more {
        reply["next_cursor"] = json!(filters.after(ctx, team, last));
    }
    Ok(reply)
}

/// A line that passes the filters. One that cannot be read, or whose job
/// cannot, is marked as such.
fn entry(team: &TeamTx, filters: &Filters, message: Result<Message>) -> Result<Option<Value>> {
    let n = message.as_ref().ok().map(|m| m.job);
    let read = message.and_then(|message| {
        let job = team.job(message.job)?;
        if !filters.takes(&job) {
            return Ok(None);
        }
        let line = team_context::line(team, &message, &job)?;
        Ok(filters.found_in(&line.body).then(|| record(&message, &job, &line)))
    });
    match read {
        Err(error) if error.damaged_key().is_some() => {
            filters.takes_damaged(n).then(|| damaged::line(team, n, &error)).transpose()
        }
        read => read,
    }
}

/// Bytes of a text in a record of its own page, whatever must be escaped.
const TEXT_JSON_BYTES: usize = limits::PAGE_BYTES - 4_000;

fn record(message: &Message, job: &Job, line: &team_context::Line) -> Value {
    let (shown, truncated) = text::excerpt_json(&line.body, limits::ANSWER_BYTES, TEXT_JSON_BYTES);
    let truncated = truncated || job.answer_was_cut(message.kind);
    // A request was written in the conversation that asked, its end in the
    // member's own.
    let (thread, run) = match message.kind {
        MessageKind::Request => (job.source.thread(), None),
        _ => (Some(job.thread.as_str()), job.run()),
    };
    json!({
        "kind": line.kind, "job_id": job.id, "member_id": job.member, "from": line.from, "to": line.to,
        "conversation": {"thread": thread, "run_id": run}, "text": shown, "truncated": truncated,
        "at": (message.at > 0).then(|| time::rfc3339(message.at)),
    })
}
