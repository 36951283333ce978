//! Search what finished requests asked for and gave: the members' tool.

use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::history::{Asked, Filters};
use super::read_result::{self, Body};
use crate::app::Ctx;
use crate::app::shared::args::optional;
use crate::app::shared::calling_member::speaker;
use crate::app::shared::team_arg::OwnTeam;
use crate::app::shared::{damaged, view};
use crate::domain::error::Result;
use crate::domain::job::JobKind;
use crate::domain::page::Page;
use crate::domain::{limits, text, time};
use crate::store::records::Job;
use crate::store::{TeamTx, read};

/// Finds your team's finished requests, newest first, whatever became of
/// them, with short excerpts of the task and its answer. All filters apply
/// before paging; the query is looked for in both texts. Read a whole answer
/// with read_team_result and the job_id found here. For more follow
/// `next_cursor` with the same filters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchTeamResults {
    /// The team's id, as given in your request. Absent: your own team.
    #[serde(default)]
    pub team_id: OwnTeam,
    /// Only requests to this member: its id or exact name.
    #[serde(default, deserialize_with = "optional")]
    pub member_id: Option<String>,
    /// Only this request.
    #[serde(default, deserialize_with = "optional")]
    pub job_id: Option<String>,
    /// Only requests with this text in task or answer: literal, compared
    /// without case.
    #[serde(default, deserialize_with = "optional")]
    pub query: Option<String>,
    /// Requests on a page, 1 to 20. Absent: 8.
    #[serde(default, deserialize_with = "optional")]
    pub limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[serde(default, deserialize_with = "optional")]
    pub cursor: Option<String>,
}

/// Jobs looked at in one read.
const CHUNK: u32 = 32;

pub fn search_team_results(ctx: Ctx, args: &SearchTeamResults) -> Result<Value> {
    let asked = Asked {
        tool: "search_team_results",
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
        let filters = Filters::check(&team, &asked)?;
        page(ctx, &team, &filters, |job| {
            if job.kind != JobKind::Request || !job.phase.finished() {
                return Ok(None);
            }
            let task = team.text(job.n)?;
            let body = read_result::body(&team, job)?;
            let hit = filters.found_in(&task) || filters.found_in(answer(job, &body));
            Ok(hit.then(|| record(&team, job, &task, &body)))
        })
    })
}

/// What a job's end says: the answer, or why there is none.
pub fn answer<'a>(job: &'a Job, body: &'a Body) -> &'a str {
    match body {
        Body::Answer(answer) => answer,
        Body::None(_) => job.failure.as_ref().map_or("", |f| f.message.as_str()),
    }
}

/// A page of the jobs that pass the filters and of which `make` makes a
/// record, newest first. One that cannot be read is marked as such.
pub fn page(ctx: Ctx, team: &TeamTx, filters: &Filters, make: impl Fn(&Job) -> Result<Option<Value>>) -> Result<Value> {
    let newest = team.head.borrow().jobs;
    let from = filters.anchor(ctx, team)?.map_or(newest, |anchor| anchor.min(newest + 1).saturating_sub(1));
    let mut found = Page::new(filters.limit);
    let mut last = 0;
    let more = fill(team, filters, from, make, |record, n| {
        let taken = found.push(record);
        last = if taken { n } else { last };
        taken
    })?;
    let mut reply = json!({"results": found.records, "cursor_expired": false});
    if more {
        reply["next_cursor"] = json!(filters.after(ctx, team, last));
    }
    Ok(reply)
}

/// Hands over the records from job `from` downwards until one is not taken.
/// True: one was not.
fn fill(
    team: &TeamTx,
    filters: &Filters,
    from: u32,
    make: impl Fn(&Job) -> Result<Option<Value>>,
    mut take: impl FnMut(Value, u32) -> bool,
) -> Result<bool> {
    // Other jobs are in between: look at a chunk at a time.
    let mut high = filters.job.map_or(from, |n| from.min(n));
    while high > 0 {
        let low = high.saturating_sub(CHUNK) + 1;
        let numbers: Vec<u32> = (low..=high).rev().collect();
        let jobs = team.db.get_each::<Job>(&numbers.iter().map(|n| team.keys.job(*n)).collect::<Vec<_>>())?;
        for (n, job) in numbers.into_iter().zip(jobs).filter_map(|(n, job)| Some((n, job?))) {
            let record = match job {
                Ok(job) if filters.takes(&job) => make(&job)?,
                Err(error) if filters.takes_damaged(Some(n)) => Some(damaged::found(team, n, &error)?),
                _ => None,
            };
            if let Some(record) = record
                && !take(record, n)
            {
                return Ok(true);
            }
        }
        if filters.job.is_some() {
            return Ok(false);
        }
        high = low - 1;
    }
    Ok(false)
}

fn record(team: &TeamTx, job: &Job, task: &str, body: &Body) -> Value {
    let (shown, cut) = text::excerpt(task, limits::EXCERPT_BYTES);
    let name = job.member.as_deref().and_then(|id| team.team.member(id)).map(|m| m.name.as_str());
    let mut record = json!({
        "job_id": job.id, "status": job.phase.status(), "member_id": job.member, "member": name,
        "requester": view::requester(&team.team, &job.source),
        "request": {"text": shown, "truncated": cut},
        "result": read_result::result(job, body, limits::EXCERPT_BYTES, usize::MAX),
        "created_at": view::created_at(job), "completed_at": job.completed_at.map(time::rfc3339),
    });
    if let Some(failure) = &job.failure {
        let (message, _) = text::excerpt(&failure.message, limits::EXCERPT_BYTES);
        record["error"] = json!({"code": failure.code, "message": message});
    }
    record
}
