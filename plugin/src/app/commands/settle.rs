//! End or retry a job whose outcome nobody knows.

use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::scheduling::finish::{Ending, finish};
use crate::app::scheduling::record::run_key;
use crate::app::shared::change::change_team;
use crate::app::shared::damaged::DAMAGED;
use crate::app::shared::settling::{self, Outcome};
use crate::app::shared::{calling_member, view, write_off};
use crate::app::{Caller, Ctx};
use crate::domain::error::{Error, Result};
use crate::domain::job::Failure;
use crate::domain::machine::{Event, transition};
use crate::domain::{limits, time};
use crate::host::Host;
use crate::store::records::{Frozen, FrozenInput, Job, Slot};
use crate::store::{Db, TeamTx, keys, parse, read, readable};

/// Settles a job that the host does not end. `failed` ends it in the state
/// `unknown`, while a cancel waits for the host, while its team is not
/// connected, where it was under way when its team was taken over, and where its
/// record is damaged; its run, if there is one, can start nothing any more.
/// `retry`, only in the state `unknown`, asks the host again with the same input
/// and key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settle {
    pub team_id: String,
    pub job_id: String,
    pub outcome: Outcome,
}

pub fn settle(ctx: Ctx, settle: &Settle) -> Result<Value> {
    let connected = ctx.connected(&settle.team_id);
    let ended = end(ctx, &settle.team_id, &settle.job_id, |job| {
        if job.phase.finished() {
            return Ok(None);
        }
        if !settling::outcomes(job, connected).contains(&settle.outcome) {
            return Err(Error::conflict(
                "not_unknown",
                "Only a job whose outcome is unknown, whose cancel waits for the host, or whose team is not connected can \
                 be settled, and only one whose outcome is unknown can be tried again. Cancel this one if it should end.",
            )
            .at("job_id")
            .with(json!({"status": job.phase.status()})));
        }
        Ok(Some(match settle.outcome {
            Outcome::Failed => (Event::SettleFailed, "settled by the owner"),
            Outcome::Retry => (Event::SettleRetry, ""),
        }))
    });
    match ended {
        Err(error) if error.damaged_key().is_some() && settle.outcome == Outcome::Failed => {
            write_off::job(ctx, &settle.team_id, &settle.job_id, &error)
        }
        ended => ended,
    }
}

/// The operator may settle whatever holds a slot. The answer says what became
/// of the job and tells none of its owner's texts.
pub fn settle_as_operator(host: &dyn Host, owner: &str, team: &str, job: &str) -> Result<Value> {
    let caller = Caller { owner: owner.into(), ..Caller::default() };
    let ctx = Ctx { host, caller: &caller, runs: None };
    let settled = end(ctx, team, job, |job| {
        if job.phase.holds_slot() {
            Ok(Some((Event::SettleFailed, "settled by the operator")))
        } else if job.phase.finished() {
            Ok(None)
        } else {
            Err(Error::conflict("no_slot", "This job holds no slot, so there is nothing to settle.").at("job"))
        }
    });
    // Also where the team or the job is damaged, the slot is given back.
    let settled = match settled {
        Err(error) if error.damaged_key().is_some() => write_off::job(ctx, team, job, &error)?,
        settled => settled?,
    };
    let job = &settled["job"];
    let error = job.get("error").filter(|error| error["code"] == UNKNOWN || error["code"] == DAMAGED);
    Ok(json!({"job": {
        "owner": owner, "team": team, "id": job["id"], "kind": job["kind"], "status": job["status"],
        "thread": job["thread"], "error": error, "completed_at": job["completed_at"],
    }}))
}

/// The code of a job that somebody settled as failed.
const UNKNOWN: &str = "outcome_unknown";

fn end<'e>(
    ctx: Ctx,
    team_id: &str,
    job_id: &str,
    decide: impl Fn(&Job) -> Result<Option<(Event, &'e str)>>,
) -> Result<Value> {
    let now = ctx.now();
    let reply = change_team(ctx.host, ctx.owner(), team_id, |team| {
        let mut job = team.job_by_id(job_id)?;
        let before = job.phase.clone();
        let decided = decide(&job)?.and_then(|(event, by)| Some((transition(&before, event)?, by)));
        let Some((phase, by)) = decided else {
            return Ok(json!({"job": view::job(ctx, team, &job, true)?}));
        };
        let key = run_key(team, &job)?;
        job.phase = phase;
        job.hold = None;
        let job = if job.phase.finished() {
            let failure = Failure {
                code: UNKNOWN.into(),
                message: alloc::format!("Outcome unknown, {by}. Inspect the conversation before you rely on anything."),
            };
            calling_member::outlives(team, &job, &before, key)?;
            finish(team, before.run(), job, Ending::Failed(failure), now)?
        } else {
            // A message that is sent again gets the stamp of its new run.
            if let Some(mut frozen) = team.db.get::<Frozen>(&team.keys.input(job.n))? {
                if matches!(frozen.input, FrozenInput::Message { .. }) {
                    job.message_run = None;
                }
                frozen.insist = true;
                team.db.put(&team.keys.input(job.n), &frozen)?;
            }
            team.save_job(&mut job, now)?;
            job
        };
        team.record_change()?;
        Ok(json!({"job": view::job(ctx, team, &job, true)?}))
    })?;
    Ok(reply)
}

/// Everybody who holds a slot, for the operator.
pub fn slots(host: &dyn Host) -> Result<Value> {
    read(host, |db: &Db| {
        let mut held = Vec::new();
        for (key, value) in db.scan_prefix(keys::slots(), limits::MANY_SLOTS)? {
            let Some(slot) = readable(parse::<Slot>(&key, &value))? else {
                held.push(json!({
                    "owner": null, "team": null, "job": null, "thread": null, "since": null, "kind": null,
                    "status": DAMAGED, "reason": key, "connected": false,
                }));
                continue;
            };
            let (owner, team) = (slot.owner, slot.team);
            // A damaged team is no reason to hide that it holds a slot.
            let job = TeamTx::load(db, &owner, &team).and_then(|t| t.job_by_id(&slot.job));
            let damaged = job.as_ref().is_err_and(|error| error.damaged_key().is_some());
            let job = job.ok();
            held.push(json!({
                "owner": owner, "team": team, "job": slot.job, "thread": slot.thread, "since": time::rfc3339(slot.since),
                "kind": job.as_ref().map(|j| j.kind), "status": job.as_ref().map_or(if damaged { DAMAGED } else { "unknown" }, |j| j.phase.status()),
                "reason": job.as_ref().and_then(|j| j.hold.as_ref()).map(|h| &h.code),
                "connected": host.lookup(&owner, &team).is_some(),
            }));
        }
        Ok(json!(held))
    })
}
