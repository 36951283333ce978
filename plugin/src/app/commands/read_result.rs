//! Read what one job asked for and gave: the members' tool.

use alloc::string::String;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::Ctx;
use crate::app::shared::calling_member::speaker;
use crate::app::shared::team_arg::OwnTeam;
use crate::app::shared::view;
use crate::domain::error::Result;
use crate::domain::job::Phase;
use crate::domain::{limits, text, time};
use crate::store::records::Job;
use crate::store::{TeamTx, read};

/// Reads one request or receipt of your team: its state, who asked whom, the
/// beginning of the task, the answer, and the conversation that it came from.
/// `result.truncated` true says that the answer was shortened; null, that
/// this is not known.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadTeamResult {
    /// The team's id, as given in your request. Absent: your own team.
    #[serde(default)]
    pub team_id: OwnTeam,
    /// The request or receipt, as found by search_team_results or
    /// read_team_history.
    pub job_id: String,
}

/// A job's answer, or why there is none.
pub enum Body {
    Answer(String),
    None(&'static str),
}

/// The stored answer of a job.
pub fn body(team: &TeamTx, job: &Job) -> Result<Body> {
    if !job.phase.finished() {
        return Ok(Body::None("unfinished"));
    }
    // Whatever an imported record says, a cancelled job has no answer.
    if job.phase == Phase::Cancelled {
        return Ok(Body::None("cancelled"));
    }
    Ok(match team.db.get_text(&team.keys.result(job.n))? {
        Some(answer) => Body::Answer(answer),
        None if job.phase == Phase::Failed => Body::None("failed"),
        None => Body::None("not_retained"),
    })
}

/// The answer within `bytes` bytes, and `json_bytes` as JSON.
///
/// `truncated`: shortened here or when it was stored; null: unknown.
/// `stored_truncated`: whether what is stored was shortened, the same way.
pub fn result(job: &Job, body: &Body, bytes: usize, json_bytes: usize) -> Value {
    match body {
        Body::None(reason) => json!({"available": false, "reason": reason, "text": null, "truncated": null}),
        Body::Answer(answer) => {
            let stored = job.result.as_ref().and_then(|r| r.truncated);
            let (shown, cut) = text::excerpt_json(answer, bytes, json_bytes);
            let truncated = if cut { Some(true) } else { stored };
            json!({"available": true, "text": shown, "truncated": truncated, "stored_truncated": stored})
        }
    }
}

pub fn read_team_result(ctx: Ctx, args: &ReadTeamResult) -> Result<Value> {
    read(ctx.host, |db| {
        let team = TeamTx::load(db, ctx.owner(), &args.team_id)?;
        speaker(ctx, &team)?;
        let job = team.job_by_id(&args.job_id)?;
        whole(&team, &job)
    })
}

fn whole(team: &TeamTx, job: &Job) -> Result<Value> {
    let (task, cut) = text::excerpt(&team.text(job.n)?, limits::EXCERPT_BYTES);
    let body = body(team, job)?;
    let name = job.member.as_deref().and_then(|id| team.team.member(id)).map(|m| m.name.as_str());
    let root = if job.root == job.n { Some(job.id.clone()) } else { team.readable_id(job.root)? };
    let parent = job.parent.map(|n| team.readable_id(n)).transpose()?.flatten();
    let mut reply = json!({
        "job_id": job.id, "kind": job.kind, "status": job.phase.status(), "member_id": job.member, "member": name,
        "requester": view::requester(&team.team, &job.source), "parent_id": parent, "root_id": root,
        "created_at": view::created_at(job), "completed_at": job.completed_at.map(time::rfc3339),
        "conversation": {"thread": job.thread, "run_id": job.run()},
        "request": {"text": task, "truncated": cut}, "result": null,
    });
    if let Some(failure) = &job.failure {
        let (message, _) = text::excerpt(&failure.message, limits::EXCERPT_BYTES);
        reply["error"] = json!({"code": failure.code, "message": message});
    }
    if let Some(note) = &job.note {
        reply["note"] = json!(text::excerpt(note, limits::EXCERPT_BYTES).0);
    }
    let used = serde_json::to_string(&reply).map_or(0, |t| t.len()) + AROUND_TEXT;
    reply["result"] = result(job, &body, limits::IMPORTED_ANSWER_BYTES, limits::PAGE_BYTES.saturating_sub(used));
    Ok(reply)
}

/// Room for the members of `result` beside its text.
const AROUND_TEXT: usize = 120;
