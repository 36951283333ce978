//! The end of a seed: faults stop, people answer, and everything must come to
//! its end.

use agent_teams_plugin::domain::job::{JobKind, Phase};
use agent_teams_plugin::host::RunStatus;
use agent_teams_plugin::store::keys;

use super::actors;
use super::drive;
use super::world::World;

/// Passes after which everything must be at rest.
const PASSES: usize = 3_000;

/// Brings the world to rest, then looks at what is left.
pub fn settle_down(world: &World) {
    world.note(|| "faults stop".into());
    world.faulty.set(false);
    {
        let mut agents = world.agents.borrow_mut();
        agents.denied.clear();
        agents.denied_threads.clear();
    }
    for n in 0..PASSES {
        if world.violation().is_some() || at_rest(world) {
            break;
        }
        world.clock.set(world.clock.get() + 61_000);
        people(world, n);
        agents_end(world);
        drive::pass(world);
    }
    if world.violation().is_none() {
        look(world);
    }
}

fn at_rest(world: &World) -> bool {
    world.checker.borrow().work.is_empty() && world.agents.borrow().at_work().is_empty()
}

/// Connect what is not connected, answer or cancel what waits, settle what
/// nobody knows, and answer what was asked outside the team's work.
fn people(world: &World, pass: usize) {
    let (mut connect, mut waiting, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    {
        let checker = world.checker.borrow();
        for ((owner, team), mirror, _) in checker.living() {
            let jobs = || mirror.jobs.values().filter(|j| !j.phase.finished());
            if jobs().next().is_some() && !world.connected(owner, team) {
                connect.push((owner.clone(), team.clone()));
            }
            waiting.extend(
                jobs()
                    .filter(|j| matches!(j.phase, Phase::Waiting { .. }))
                    .map(|j| (owner.clone(), team.clone(), j.clone())),
            );
            unknown.extend(
                jobs()
                    .filter(|j| matches!(j.phase, Phase::Unknown { .. }))
                    .map(|j| (owner.clone(), team.clone(), j.clone())),
            );
        }
    }
    for (owner, team) in connect {
        actors::connect_team(world, &owner, &team);
    }
    for (owner, team, job) in waiting {
        let open = matches!(&job.phase, Phase::Waiting { wait, .. } if actors::still_asked(world, &job.thread, wait));
        match job.phase.wait() {
            Some(wait) if open => {
                actors::answer(world, &owner, &team, &job, &format!("rest {pass}"), actors::response(wait, pass))
            }
            _ => actors::cancel_job(world, &owner, &team, &job.id),
        }
    }
    for (owner, team, job) in unknown {
        actors::settle_job(world, &owner, &team, &job.id, world.chance(500) && pass < 20);
    }
    // A question left behind by a cancelled job blocks its conversation until
    // somebody answers it there.
    let held: Vec<String> = {
        let agents = world.agents.borrow();
        let asked = agents.threads.iter().filter(|(_, t)| t.question.is_some() || !t.interrupts.is_empty());
        asked.map(|(id, _)| id.clone()).filter(|id| actors::nobody_waits(world, id)).collect()
    };
    for thread in held {
        world.note(|| format!("somebody answers in {thread}"));
        let mut agents = world.agents.borrow_mut();
        agents.answer_interrupts(&thread);
        agents.foreign_message(&thread);
    }
}

fn agents_end(world: &World) {
    let at_work = world.agents.borrow().at_work();
    for (thread, run) in at_work {
        let mut agents = world.agents.borrow_mut();
        world.note(|| format!("{run} ends"));
        agents.say(&thread, &run, &format!("answer of {run}"), false);
        agents.end(&thread, &run, RunStatus::Succeeded, None);
    }
}

/// Nothing unfinished, nothing left over, everything told.
fn look(world: &World) {
    let checker = world.checker.borrow();
    let agents = world.agents.borrow();
    let mut broken: Option<String> = checker.nothing_lost().err();
    let mut fail = |what: String| {
        broken.get_or_insert(what);
    };
    if !checker.slots.is_empty() {
        fail(format!("slots are left: {:?}", checker.slots));
    }
    for key in world.store.borrow().keys() {
        let leftover = key.ends_with("/input") || key.ends_with("/answer") || key.starts_with("work/");
        if leftover {
            fail(format!("{key} is left"));
        }
        let orphan = key.strip_prefix("team/").and_then(|rest| rest.split('/').nth(1));
        if orphan.is_some_and(|team| !checker.living().any(|((_, t), ..)| t == team))
            && world.crashes.get() == 0
            && world.knobs.trap == 0
            && world.knobs.store_unavailable == 0
        {
            // A deleted team's rest is swept when its name is used again.
            world.note(|| format!("{key} belongs to no team"));
        }
    }
    for ((owner, team), mirror, _) in checker.living() {
        for job in mirror.jobs.values() {
            if !job.phase.finished() {
                fail(format!("{} is still {} ({:?})", job.id, job.phase.status(), job.hold));
            }
            let admitted = agents.admitted.get(&format!("input of {}", job.id)).copied().unwrap_or(0);
            if job.kind == JobKind::Receipt && job.phase == Phase::Completed && admitted != 1 && world.knobs.vanish == 0
            {
                fail(format!("the receipt {} is completed and was delivered {admitted} times", job.id));
            }
        }
        for job in mirror.jobs.values().filter(|j| j.kind == JobKind::Request && j.phase == Phase::Cancelled) {
            let Some(thread) = job.source.thread() else { continue };
            let carried = agents.noticed.get(&job.id).map_or(&[][..], |v| v);
            let under = keys::TeamKeys::new(owner, team).notices(thread);
            let store = world.store.borrow();
            let kept = store.keys().any(|k| k.starts_with(&under) && store.get(k).is_some_and(|n| n.contains(&job.id)));
            if carried.is_empty() && !kept {
                fail(format!("nobody is told that {} was cancelled", job.id));
            }
            // A carrier that was itself cancelled or settled may have told nobody.
            let told = |id: &&String| {
                mirror.jobs.values().any(|j| {
                    let unclear = j.failure.as_ref().is_some_and(|f| f.code == "outcome_unknown");
                    j.id == **id && j.phase != Phase::Cancelled && !unclear
                })
            };
            if carried.iter().collect::<std::collections::BTreeSet<_>>().into_iter().filter(told).count() > 1 {
                fail(format!("that {} was cancelled is told twice, by {carried:?}", job.id));
            }
        }
        if mirror.head.as_ref().is_some_and(|h| h.unfinished > 0) {
            fail("a team at rest counts unfinished jobs".into());
        }
    }
    drop(checker);
    if let Some(broken) = broken {
        world.violate(broken);
    }
}
