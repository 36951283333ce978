//! How teams and jobs look from outside: the same words in tools, actions and
//! on the page.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Value, json};

use super::{damaged, heads, settling};
use crate::app::Ctx;
use crate::domain::error::Result;
use crate::domain::job::{OpenInterrupt, Phase, Source, Wait};
use crate::domain::state::{self, Entry};
use crate::domain::{asked, limits, text, time};
use crate::store::TeamTx;
use crate::store::records::{Head, Job, Need, Team, Work};

/// Why a team does not work: null while it is ready and connected.
pub fn disconnected(head: &Head, connected: bool) -> Value {
    if head.ready && connected {
        return Value::Null;
    }
    match &head.disconnect {
        Some(d) => json!({"code": d.code, "message": d.message, "next_at": time::rfc3339(d.next_at)}),
        None => json!({
            "code": "not_connected",
            "message": "This process holds no capability for the team. Reconnect it, and its work continues.",
            "next_at": null,
        }),
    }
}

/// A team with its members and counts.
pub fn team(ctx: Ctx, t: &TeamTx) -> Result<Value> {
    let head = t.head.borrow();
    let connected = ctx.connected(&t.team.id);
    let mut reason = disconnected(&head, connected);
    let mut members = Vec::new();
    for member in &t.team.members {
        let (state, job) = match member_state(t, &member.thread) {
            Err(error) if error.damaged_key().is_some() => {
                reason = damaged::reason(error.damaged_key().unwrap_or(""));
                ("unclear", None)
            }
            state => state?,
        };
        let gone = head.gone.iter().find(|g| g.member == member.id);
        members.push(json!({
            "id": member.id, "name": member.name, "agent": member.agent, "thread": member.thread,
            "state": state, "job_id": job,
            "problem": gone.map(|g| json!({"code": "agent_rejected", "message": g.message})),
        }));
    }
    Ok(json!({
        "id": t.team.id, "name": t.team.name, "goal": t.team.goal, "revision": head.revision, "ready": head.ready,
        "connected": connected, "reason": reason, "created_at": time::rfc3339(t.team.created_at), "lead": t.team.lead,
        "successor_of": t.team.successor_of, "state_revision": head.state_revision,
        "members": members,
        "counts": {
            "requests": head.requests, "receipts": head.receipts,
            "requests_left": limits::REQUESTS_PER_TEAM.saturating_sub(head.requests), "unfinished": head.unfinished,
        },
    }))
}

/// What a member's conversation does: `idle`, `queued`, `working`, `waiting`
/// (for a person) or `unclear` (for the host), and the job it is about. An
/// error may say that one of its records is damaged.
fn member_state(t: &TeamTx, thread: &str) -> Result<(&'static str, Option<String>)> {
    let Some(work) = heads::first(t.db, t.owner, thread)?.transpose()? else { return Ok(("idle", None)) };
    let state = match work.need {
        Need::Slot => "queued",
        Need::Person => "waiting",
        Need::End => "working",
        Need::Host => "unclear",
    };
    if work.team != t.team.id {
        return Ok((state, None));
    }
    let job = t.job(work.job)?;
    let state = if matches!(job.phase, Phase::Starting | Phase::Resuming { .. }) && job.hold.is_none() {
        "working"
    } else {
        state
    };
    Ok((state, Some(job.id)))
}

/// A job. `whole` gives texts and results in full, otherwise their beginnings.
pub fn job(ctx: Ctx, t: &TeamTx, job: &Job, whole: bool) -> Result<Value> {
    let request_text = t.text(job.n)?;
    let result = t.db.get_text(&t.keys.result(job.n))?;
    job_with(ctx, t, job, &request_text, result.as_deref(), whole)
}

/// The same, with the texts already read.
pub fn job_with(
    ctx: Ctx,
    t: &TeamTx,
    job: &Job,
    request_text: &str,
    result: Option<&str>,
    whole: bool,
) -> Result<Value> {
    let bound = if whole { usize::MAX } else { limits::EXCERPT_BYTES };
    let (shown, text_truncated) = text::excerpt(request_text, bound);
    let member = job.member.as_deref().and_then(|id| t.team.member(id));
    let root = if job.root == job.n { Some(job.id.clone()) } else { t.readable_id(job.root)? };
    let parent = job.parent.map(|n| t.readable_id(n)).transpose()?.flatten();
    let result = match (result, &job.result) {
        (Some(answer), meta) => {
            let (shown, cut) = text::excerpt(answer, bound);
            let truncated = meta.as_ref().and_then(|m| m.truncated);
            json!({"available": true, "text": shown, "truncated": truncated, "excerpt": cut})
        }
        (None, _) if job.phase.finished() => {
            json!({"available": false, "text": null, "truncated": null, "excerpt": false})
        }
        (None, _) => Value::Null,
    };
    let (question, interrupts) = match job.phase.wait() {
        Some(Wait::Question { id, text, options }) => (json!({"id": id, "text": text, "options": options}), json!([])),
        Some(Wait::Interrupts { open }) => (Value::Null, json!(shown_interrupts(open, whole))),
        None => (Value::Null, json!([])),
    };
    Ok(json!({
        "id": job.id, "n": job.n, "kind": job.kind, "status": job.phase.status(),
        "member_id": job.member, "member": member.map(|m| m.name.as_str()), "requester": requester(&t.team, &job.source),
        "parent_id": parent, "root_id": root, "request_id": job.request_id,
        "text": shown, "text_truncated": text_truncated, "result": result,
        "error": job.failure, "note": job.note, "reason": reason(ctx, t, job)?,
        "settle": settling::outcomes(job, ctx.connected(&t.team.id)),
        "question": question, "interrupts": interrupts, "thread": job.thread,
        "run_id": job.run(),
        "created_at": created_at(job), "completed_at": job.completed_at.map(time::rfc3339),
    }))
}

/// Open interrupts as they are stored, or, on a page of many jobs, the
/// beginning of each.
fn shown_interrupts(open: &[OpenInterrupt], whole: bool) -> Vec<Value> {
    let one = |one: &OpenInterrupt| {
        let mut shown = json!(one);
        if !whole {
            let (value, cut) = asked::excerpt(&one.value);
            shown["value"] = value;
            shown["excerpt"] = json!(cut);
        }
        shown
    };
    open.iter().map(one).collect()
}

/// When a job was asked for. Absent: unknown (imported).
pub fn created_at(job: &Job) -> Option<String> {
    (job.created_at > 0).then(|| time::rfc3339(job.created_at))
}

/// Who asked, for display.
pub fn requester(team: &Team, source: &Source) -> Value {
    match source {
        Source::Owner => json!({"kind": "owner"}),
        Source::Member { member, thread } => json!({
            "kind": "member", "member_id": member, "member": team.member(member).map(|m| m.name.as_str()), "thread": thread,
        }),
        Source::Conversation { thread } => json!({"kind": "conversation", "thread": thread}),
    }
}

/// Why an unfinished job is not moving; nothing while its run is at work.
fn reason(ctx: Ctx, t: &TeamTx, job: &Job) -> Result<Value> {
    if job.phase.finished() {
        return Ok(Value::Null);
    }
    if let Some(hold) = &job.hold {
        // A look that found nothing new has moved the work list's entry alone.
        let next_at = if (1..ctx.now()).contains(&hold.next_at) { t.due(job)? } else { hold.next_at };
        let next_at = (next_at > 0).then(|| time::rfc3339(next_at));
        return Ok(json!({"code": hold.code, "message": hold.message, "next_at": next_at}));
    }
    let say = |code: &str, message: String| Ok(json!({"code": code, "message": message, "next_at": null}));
    if let Phase::Waiting { .. } = job.phase {
        return say("waiting_for_answer", "A person must answer before it continues.".into());
    }
    if let Phase::Unknown { .. } = job.phase {
        return say(
            "outcome_unknown",
            "The outcome of its run is unknown. Look at the conversation, then settle the job as failed or try again."
                .into(),
        );
    }
    if !ctx.connected(&t.team.id) {
        let message = match job.phase.holds_slot() {
            true => {
                "The team is not connected. Reconnect it to learn what became of the run, or settle the job as failed."
            }
            false => "The team is not connected. Reconnect it, and its work continues.",
        };
        return say("waiting_for_reconnect", message.into());
    }
    match &job.phase {
        Phase::Queued | Phase::Answered { .. } => {}
        Phase::Cancelling { accepted: true, .. } => {
            return say(
                "stopping",
                "The host has accepted the cancel; the run may still be stopping. Settle the job as failed if it never does."
                    .into(),
            );
        }
        _ => return Ok(Value::Null),
    }
    match heads::first(t.db, t.owner, &job.thread)? {
        Some(Err(error)) => Ok(damaged::reason(error.damaged_key().unwrap_or(""))),
        Some(Ok(work)) if work.team != t.team.id || work.job != job.n => say(
            "waiting_for_conversation",
            format!("An earlier job of this conversation is not finished ({}).", ahead(t, &work)?),
        ),
        _ => say("waiting_for_slot", "It starts as soon as a slot is free and it is its owner's turn.".into()),
    }
}

/// Names the job ahead, unless it is another team's.
fn ahead(t: &TeamTx, work: &Work) -> Result<String> {
    if work.team != t.team.id {
        return Ok("in another team".into());
    }
    Ok(t.readable_id(work.job)?.unwrap_or_else(|| "it cannot be read".into()))
}

/// An entry as everybody sees it.
pub fn entry(team: &TeamTx, entry: &Entry) -> Value {
    state::project(entry, |id| team.team.member(id).map(|m| m.name.as_str()))
}
