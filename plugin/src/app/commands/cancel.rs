//! Cancel a job, from every unfinished state.

use alloc::string::String;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::Ctx;
use crate::app::scheduling::finish::{Ending, finish};
use crate::app::scheduling::record::run_key;
use crate::app::shared::change::change_team;
use crate::app::shared::view;
use crate::domain::error::Result;
use crate::domain::job::Wait;
use crate::domain::machine::{Event, transition};

/// Cancels a request or a receipt. What was not admitted ends at once. A run
/// that is under way, or that stopped at an interrupt, ends when the host says
/// so; its interrupts are withdrawn. A finished job stays as it is.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    pub team_id: String,
    pub job_id: String,
}

pub fn cancel(ctx: Ctx, cancel: &Cancel) -> Result<Value> {
    let now = ctx.now();
    let reply = change_team(ctx.host, ctx.owner(), &cancel.team_id, |team| {
        let mut job = team.job_by_id(&cancel.job_id)?;
        let before = job.phase.clone();
        let Some(phase) = transition(&before, Event::Cancel { key: run_key(team, &job)? }) else {
            return Ok(json!({"job": view::job(ctx, team, &job, true)?}));
        };
        let question = matches!(before.wait(), Some(Wait::Question { .. }));
        job.phase = phase;
        job.hold = None;
        let job = if job.phase.finished() {
            let note = question.then(|| {
                String::from(
                    "Its question stays open in the conversation and blocks new work there until it is answered.",
                )
            });
            finish(team, before.run(), job, Ending::Cancelled { note }, now)?
        } else {
            team.save_job(&mut job, now)?;
            job
        };
        team.record_change()?;
        Ok(json!({"job": view::job(ctx, team, &job, true)?}))
    })?;
    Ok(reply)
}
