//! How what cannot be read is shown: with the code `damaged` and the key of
//! the record, in the shape of what it would be, so that everything beside it
//! stays readable.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Value, json};

use crate::app::Ctx;
use crate::domain::error::{Error, Result};
use crate::domain::{limits, text};
use crate::store::records::{Head, Team};
use crate::store::{Db, TeamTx, keys, readable};

/// The state of what cannot be read, and the code of why.
pub const DAMAGED: &str = "damaged";

/// Why something cannot be shown, or does not move.
pub fn reason(key: &str) -> Value {
    let message = format!("The stored record `{key}` cannot be read. Ask the operator to restore it from a backup.");
    json!({"code": DAMAGED, "message": message, "key": key, "next_at": null})
}

/// The reply of `get` for a team whose roster or head cannot be read.
pub fn team(ctx: Ctx, db: &Db, id: &str, error: &Error) -> Result<Value> {
    let at = keys::TeamKeys::new(ctx.owner(), id);
    let team = readable(db.get::<Team>(&at.team()))?.flatten();
    let head = readable(db.get::<Head>(&at.head()))?.flatten().unwrap_or_default();
    let member = |m: &crate::store::records::Member| json!({"id": m.id, "name": m.name, "agent": m.agent, "thread": m.thread, "state": "unclear", "job_id": null});
    let members: Vec<Value> = team.iter().flat_map(|t| &t.members).map(member).collect();
    Ok(json!({
        "team": {
            "id": id, "name": team.as_ref().map_or(id, |t| &t.name), "goal": team.as_ref().map_or("", |t| &t.goal),
            "revision": head.revision, "ready": false, "connected": ctx.connected(id),
            "reason": reason(error.damaged_key().unwrap_or("")), "created_at": null,
            "lead": team.as_ref().and_then(|t| t.lead.as_ref()),
            "successor_of": team.as_ref().and_then(|t| t.successor_of.as_ref()),
            "state_revision": head.state_revision, "members": members,
            "counts": {
                "requests": head.requests, "receipts": head.receipts,
                "requests_left": limits::REQUESTS_PER_TEAM.saturating_sub(head.requests), "unfinished": head.unfinished,
            },
        },
        "jobs": [],
    }))
}

/// The id of a job whose record cannot be read, from the index of ids.
pub fn job_id(team: &TeamTx, n: u32) -> Result<Option<String>> {
    let under = team.keys.job_id("");
    let ids = team.db.scan_prefix(&under, limits::REQUESTS_PER_TEAM + limits::RECEIPTS_PER_TEAM)?;
    let own = ids.iter().find(|(_, number)| number.parse() == Ok(n));
    Ok(own.and_then(|(key, _)| key.strip_prefix(&under)).map(keys::unpart))
}

/// A job of the feed whose record cannot be read, with the texts that can.
pub fn job(team: &TeamTx, n: u32, request: &str, result: Option<&str>, whole: bool, error: &Error) -> Result<Value> {
    let bound = if whole { usize::MAX } else { limits::EXCERPT_BYTES };
    let (shown, cut) = text::excerpt(request, bound);
    let result = result.map(|answer| {
        let (shown, cut) = text::excerpt(answer, bound);
        json!({"available": true, "text": shown, "truncated": null, "excerpt": cut})
    });
    let id = job_id(team, n)?.unwrap_or_else(|| format!("{DAMAGED}-{n}"));
    let mut shown_job = nothing_of(&id, n, &reason(error.damaged_key().unwrap_or("")));
    shown_job["text"] = json!(shown);
    shown_job["text_truncated"] = json!(cut);
    shown_job["result"] = json!(result);
    Ok(shown_job)
}

/// A job of which no more is known than its id and number.
pub fn nothing_of(id: &str, n: u32, reason: &Value) -> Value {
    json!({
        "id": id, "n": n, "kind": null, "status": DAMAGED, "member_id": null, "member": null,
        "requester": {"kind": DAMAGED, "thread": ""}, "parent_id": null, "root_id": id, "request_id": "",
        "text": "", "text_truncated": false, "result": null, "error": null, "note": null, "reason": reason, "settle": ["failed"],
        "question": null, "interrupts": [], "thread": "", "run_id": null, "created_at": null, "completed_at": null,
    })
}

/// The same in a list of finds.
pub fn found(team: &TeamTx, n: u32, error: &Error) -> Result<Value> {
    let reason = reason(error.damaged_key().unwrap_or(""));
    Ok(json!({
        "job_id": job_id(team, n)?, "kind": null, "status": DAMAGED, "member_id": null, "member": null,
        "requester": {"kind": DAMAGED, "thread": ""}, "request": {"text": "", "truncated": false}, "found": [],
        "error": {"code": DAMAGED, "message": reason["message"]}, "created_at": null, "completed_at": null,
    }))
}

/// A line of the shared record that cannot be read, or whose job cannot.
pub fn line(team: &TeamTx, job: Option<u32>, error: &Error) -> Result<Value> {
    let id = job.map(|n| job_id(team, n)).transpose()?.flatten();
    let reason = reason(error.damaged_key().unwrap_or(""));
    Ok(json!({
        "kind": DAMAGED, "job_id": id, "member_id": null, "from": "", "to": "",
        "conversation": {"thread": null, "run_id": null}, "text": reason["message"], "truncated": false, "at": null,
    }))
}
