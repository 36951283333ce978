//! What the operator sees and ends, whatever user it is about: ids, and none of
//! the users' texts.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::settle::{self, UNKNOWN};
use crate::app::shared::damaged::DAMAGED;
use crate::app::shared::write_off;
use crate::app::{Caller, Ctx};
use crate::domain::error::{Error, Result};
use crate::domain::job::JobKind;
use crate::domain::machine::Event;
use crate::domain::{limits, time};
use crate::host::Host;
use crate::store::records::{Job, Slot};
use crate::store::{TeamTx, keys, parse, read, readable};

/// A slot that is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldSlot {
    pub slot: u32,
    /// Absent: the slot's record cannot be read.
    pub job: Option<Holder>,
}

/// The job that holds a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub owner: String,
    pub team: String,
    pub job: String,
    pub thread: String,
    pub kind: Option<&'static str>,
    pub status: &'static str,
    pub reason: Option<String>,
    pub since: String,
    pub connected: bool,
}

/// What became of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    pub owner: String,
    pub team: String,
    pub job: String,
    pub thread: String,
    pub kind: Option<String>,
    pub status: String,
    /// Code and sentence.
    pub error: Option<(String, String)>,
    pub completed_at: Option<String>,
}

/// The slots that are taken, in order.
pub fn slots(host: &dyn Host) -> Result<Vec<HeldSlot>> {
    read(host, |db| {
        let mut held = Vec::new();
        for (key, value) in db.scan_prefix(keys::slots(), limits::MANY_SLOTS)? {
            let slot = key.rsplit('/').next().and_then(|number| number.parse().ok()).unwrap_or(u32::MAX);
            let Some(record) = readable(parse::<Slot>(&key, &value))? else {
                held.push(HeldSlot { slot, job: None });
                continue;
            };
            // The slot is listed even if its team or job cannot be read.
            let job = TeamTx::load(db, &record.owner, &record.team).and_then(|team| team.job_by_id(&record.job));
            let status = match &job {
                Ok(job) => job.phase.status(),
                Err(error) if error.damaged_key().is_some() => DAMAGED,
                Err(_) => "unknown",
            };
            let job = job.ok();
            let connected = host.lookup(&record.owner, &record.team).is_some();
            held.push(HeldSlot {
                slot,
                job: Some(Holder {
                    kind: job.as_ref().map(kind),
                    status,
                    reason: job.and_then(|job| job.hold).map(|hold| hold.code),
                    since: time::rfc3339(record.since),
                    connected,
                    owner: record.owner,
                    team: record.team,
                    job: record.job,
                    thread: record.thread,
                }),
            });
        }
        Ok(held)
    })
}

fn kind(job: &Job) -> &'static str {
    match job.kind {
        JobKind::Request => "request",
        JobKind::Receipt => "receipt",
    }
}

/// Ends whatever holds a slot: it fails, since its outcome is not known.
pub fn settle(host: &dyn Host, owner: &str, team: &str, job: &str) -> Result<Settled> {
    let caller = Caller { owner: owner.into(), ..Caller::default() };
    let ctx = Ctx { host, caller: &caller, runs: None };
    let settled = settle::end(ctx, team, job, |job| {
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
    let text = |name: &str| job[name].as_str().map(ToString::to_string);
    let told = |name: &str| job["error"][name].as_str().unwrap_or_default().to_string();
    let code = told("code");
    Ok(Settled {
        owner: owner.into(),
        team: team.into(),
        job: text("id").unwrap_or_default(),
        thread: text("thread").unwrap_or_default(),
        kind: text("kind"),
        status: text("status").unwrap_or_default(),
        error: (code == UNKNOWN || code == DAMAGED).then(|| (code, told("message"))),
        completed_at: text("completed_at"),
    })
}
