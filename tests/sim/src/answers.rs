//! What an owner, or the operator, does with a job that exists: cancel,
//! answer, settle.

use agent_teams_plugin::app::commands::cancel::{self, Cancel};
use agent_teams_plugin::app::commands::operator;
use agent_teams_plugin::app::commands::resume::{self, Resume};
use agent_teams_plugin::app::commands::settle::{self, Settle};
use agent_teams_plugin::app::shared::settling::Outcome;
use agent_teams_plugin::domain::job::{Phase, Wait};
use agent_teams_plugin::store::records::Job;
use serde_json::{Value, json};

use super::actors::{as_owner, job, nothing_stored};
use super::agents::REFUSED;
use super::drive;
use super::world::World;

/// The owner cancels some job, sometimes a finished one.
pub fn cancel(world: &World) {
    let finished = world.chance(100);
    let Some((owner, team, job)) = job(world, |j| j.phase.finished() == finished) else { return };
    cancel_job(world, &owner, &team, &job.id);
}

/// A response that fits what a job waits for. `refused`: the host rejects it
/// all the same.
pub fn response(wait: &Wait, n: usize, refused: bool) -> Value {
    let note = if refused { REFUSED } else { "so be it" };
    let decision = json!({"approved": n.is_multiple_of(2), "note": note});
    match wait {
        Wait::Question { .. } => json!(format!("answer {n}: {note}")),
        Wait::Interrupts { open } if open.len() == 1 => decision,
        Wait::Interrupts { open } => Value::Object(open.iter().map(|o| (o.id.clone(), decision.clone())).collect()),
    }
}

/// The owner answers a job that waits, or one that does not.
pub fn resume(world: &World) {
    let any = world.chance(100);
    let Some((owner, team, job)) = job(world, |j| any || matches!(j.phase, Phase::Waiting { .. })) else { return };
    let n = world.below(4);
    let response = match job.phase.wait() {
        Some(wait) if !world.chance(100) => {
            let refused = world.fault(world.knobs.refuses);
            response(wait, world.below(3), refused)
        }
        _ => json!("anything"),
    };
    answer(world, &owner, &team, &job, &format!("a{n}"), response);
}

/// The owner, or the operator, settles a job.
pub fn settle(world: &World) {
    let operator = world.chance(200);
    let any = world.chance(100);
    let found = job(world, |j| match &j.phase {
        Phase::Unknown { .. } => true,
        phase => any || (operator && phase.holds_slot()),
    });
    let Some((owner, team, job)) = found else { return };
    let outcome = if world.chance(500) { Outcome::Failed } else { Outcome::Retry };
    let settle = Settle { team_id: team.clone(), job_id: job.id.clone(), outcome };
    let reply = world.command(
        || format!("{} settles {} as {outcome:?}", if operator { "the operator" } else { &owner }, job.id),
        None,
        || match operator {
            true => operator::settle(world, &owner, &team, &job.id).map(|settled| json!(format!("{settled:?}"))),
            false => as_owner(world, &owner, |ctx| settle::settle(ctx, &settle)),
        },
    );
    nothing_stored(world, "settle", &reply);
}

/// A person who does not know what became of a job tries one thing after the
/// other.
pub fn tries_all(world: &World) {
    let uncertain = |j: &Job| matches!(j.phase, Phase::Unknown { .. } | Phase::Cancelling { .. } | Phase::Starting);
    let Some((owner, team, job)) = job(world, |j| uncertain(j) || matches!(j.phase, Phase::Resuming { .. })) else {
        return;
    };
    for _ in 0..1 + world.below(5) {
        match world.below(4) {
            0 => cancel_job(world, &owner, &team, &job.id),
            1 => settle_job(world, &owner, &team, &job.id, true),
            2 if world.chance(300) => settle_job(world, &owner, &team, &job.id, false),
            _ => drive::pass(world),
        }
    }
}

/// The owner answers one job.
pub fn answer(world: &World, owner: &str, team: &str, job: &Job, request_id: &str, response: Value) {
    let resume = Resume {
        team_id: team.into(),
        job_id: job.id.clone(),
        request_id: request_id.into(),
        question_id: None,
        response,
    };
    let reply = world.command(
        || format!("{owner} answers {} as {request_id}", job.id),
        None,
        || as_owner(world, owner, |ctx| resume::resume(ctx, &resume)),
    );
    nothing_stored(world, "resume", &reply);
}

/// The owner cancels one job.
pub fn cancel_job(world: &World, owner: &str, team: &str, job: &str) {
    let cancel = Cancel { team_id: team.into(), job_id: job.into() };
    let reply = world.command(
        || format!("{owner} cancels {job}"),
        None,
        || as_owner(world, owner, |ctx| cancel::cancel(ctx, &cancel)),
    );
    nothing_stored(world, "cancel", &reply);
}

/// The owner cancels the job of a conversation about which the host is being
/// asked.
pub fn cancel_meanwhile(world: &World, owner: &str, thread: &str) {
    if world.knobs.reenter == 0 || !world.fault(20) {
        return;
    }
    let found = {
        let checker = world.checker.borrow();
        let job = checker.executing(owner, thread);
        job.and_then(|job| checker.job(owner, &job).map(|((_, team), job)| (team.clone(), job.id.clone())))
    };
    if let Some((team, job)) = found {
        cancel_job(world, owner, &team, &job);
    }
}

/// The owner settles one job.
pub fn settle_job(world: &World, owner: &str, team: &str, job: &str, retry: bool) {
    let outcome = if retry { Outcome::Retry } else { Outcome::Failed };
    let settle = Settle { team_id: team.into(), job_id: job.into(), outcome };
    let reply = world.command(
        || format!("{owner} settles {job} as {outcome:?}"),
        None,
        || as_owner(world, owner, |ctx| settle::settle(ctx, &settle)),
    );
    nothing_stored(world, "settle", &reply);
}
