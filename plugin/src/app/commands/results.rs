//! Search what was asked for and what came of it: the owner's action.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::history::{Asked, Filters};
use super::read_result;
use super::search_results::{answer, page};
use crate::app::Ctx;
use crate::app::shared::args::optional;
use crate::app::shared::{paging, view};
use crate::domain::error::Result;
use crate::domain::job::{JobKind, Phase};
use crate::domain::{limits, text, time};
use crate::store::{TeamTx, read};

/// Finds a team's jobs, newest first: requests by their text or by what came
/// of them, finished or not; receipts by what their member answered. All
/// filters apply before paging. `found` tells where the query stands, with
/// what is around it. Read a whole job with `get`. `revision` is the team's:
/// given back, an unchanged team answers only that.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Results {
    pub team_id: String,
    /// Only jobs of this member: its id or exact name.
    #[serde(default, deserialize_with = "optional")]
    pub member_id: Option<String>,
    /// Only jobs that stand so.
    #[serde(default, deserialize_with = "optional")]
    pub status: Option<Standing>,
    /// Only jobs with this text: literal, compared without case.
    #[serde(default, deserialize_with = "optional")]
    pub query: Option<String>,
    /// Jobs on a page, 1 to 20. Absent: 8.
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

/// The state of a job, as a person asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Not finished.
    Open,
    Completed,
    Failed,
    Cancelled,
}

impl Standing {
    fn name(self) -> &'static str {
        match self {
            Standing::Open => "open",
            Standing::Completed => "completed",
            Standing::Failed => "failed",
            Standing::Cancelled => "cancelled",
        }
    }

    fn takes(self, phase: &Phase) -> bool {
        match self {
            Standing::Open => !phase.finished(),
            other => phase.status() == other.name(),
        }
    }
}

/// A page of finds.
pub fn results(ctx: Ctx, args: &Results) -> Result<Value> {
    let asked = Asked {
        tool: "results",
        member_id: args.member_id.as_deref(),
        job_id: None,
        query: args.query.as_deref(),
        other: args.status.map_or("", Standing::name),
        limit: args.limit,
        cursor: args.cursor.as_deref(),
    };
    read(ctx.host, |db| {
        let team = TeamTx::load(db, ctx.owner(), &args.team_id)?;
        paging::unless_unchanged(&team, args.revision, || {
            let filters = Filters::check(&team, &asked)?;
            page(ctx, &team, &filters, |job| {
                if !args.status.is_none_or(|s| s.takes(&job.phase)) {
                    return Ok(None);
                }
                // A receipt's text repeats the result that it delivers.
                let task = if job.kind == JobKind::Request { team.text(job.n)? } else { String::new() };
                let body = read_result::body(&team, job)?;
                let end = answer(job, &body);
                let query = filters.query.as_deref();
                let found: Vec<Value> = [("request", task.as_str()), (end_name(&body), end)]
                    .into_iter()
                    .filter_map(|(place, body)| around(place, body, query?))
                    .collect();
                if query.is_some() && found.is_empty() {
                    return Ok(None);
                }
                let (shown, cut) = text::excerpt(&task, limits::EXCERPT_BYTES);
                let name = job.member.as_deref().and_then(|id| team.team.member(id)).map(|m| m.name.as_str());
                Ok(Some(json!({
                    "job_id": job.id, "kind": job.kind, "status": job.phase.status(), "member_id": job.member,
                    "member": name, "requester": view::requester(&team.team, &job.source),
                    "request": {"text": shown, "truncated": cut}, "found": found,
                    "created_at": view::created_at(job), "completed_at": job.completed_at.map(time::rfc3339),
                })))
            })
        })
    })
}

fn end_name(body: &read_result::Body) -> &'static str {
    match body {
        read_result::Body::Answer(_) => "result",
        read_result::Body::None(_) => "error",
    }
}

/// Characters shown before a find and after it.
const AROUND: usize = 90;

/// The first find with the text around it.
fn around(place: &str, body: &str, folded: &str) -> Option<Value> {
    let find = text::find(body, folded)?;
    let (head, tail) = (&body[..find.start], &body[find.end..]);
    let before = head.char_indices().rev().nth(AROUND - 1).map_or(0, |(at, _)| at);
    let after = tail.char_indices().nth(AROUND).map_or(tail.len(), |(at, _)| at);
    let mark = |cut: bool| if cut { "…" } else { "" };
    Some(json!({
        "in": place, "before": format!("{}{}", mark(before > 0), &head[before..]), "text": &body[find.clone()],
        "after": format!("{}{}", &tail[..after], mark(after < tail.len())),
    }))
}
