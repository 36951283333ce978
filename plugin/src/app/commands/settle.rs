//! End or retry a job whose outcome is unknown.

use alloc::string::String;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::Ctx;
use crate::app::scheduling::finish::{Ending, finish};
use crate::app::scheduling::record::run_key;
use crate::app::shared::change::change_team;
use crate::app::shared::settling::{self, Outcome};
use crate::app::shared::{calling_member, view, write_off};
use crate::domain::error::{Error, Result};
use crate::domain::job::Failure;
use crate::domain::machine::{Event, transition};
use crate::store::records::{Frozen, FrozenInput, Job};

/// Settles a job that the host does not end. `failed` ends it in the state
/// `unknown`, while a cancel waits for the host, while its team is not
/// connected, where it was under way when its team was imported, and where its
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

/// The code of a job that somebody settled as failed.
pub const UNKNOWN: &str = "outcome_unknown";

/// Ends or retries a job as `decide` says.
pub fn end<'e>(
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
