//! The worker, the agents at work, the clock and the mishaps; and one step of
//! a whole simulation.

use agent_teams_plugin::app::commands::operator;
use agent_teams_plugin::app::scheduling::advance;
use agent_teams_plugin::app::scheduling::connection;
use agent_teams_plugin::app::scheduling::plan::{self, Moved, Plan};
use agent_teams_plugin::host::RunStatus;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeSet;

use super::conversation::Thread;
use super::runs::Capability;
use super::world::World;
use super::{actors, answers, imports};

/// A step that was planned and kept.
#[derive(Clone, Debug)]
pub struct Kept {
    owner: String,
    team: String,
    permit: String,
    planned: BTreeSet<String>,
}

/// One pass: plan, connect, advance the teams in any order.
pub fn pass(world: &World) {
    let ended: Vec<Moved> = {
        let mut agents = world.agents.borrow_mut();
        let count = agents.ended.len();
        agents.ended.drain(..count).collect()
    };
    let ended: Vec<Moved> = ended.into_iter().filter(|_| !world.fault(world.knobs.end_lost)).collect();
    let sweep = !world.faulty.get() || world.chance(300);
    let planned = world.waiting_owners();
    world.checker.borrow_mut().fairness.dropped(&planned);
    let resting = world.resting();
    let free = world.free_slots() > 0;
    let plan = RefCell::new(Plan::default());
    let made = world.command(
        || format!("plan, {} runs ended, sweep {sweep}", ended.len()),
        None,
        || {
            *plan.borrow_mut() = plan::plan(world, &ended, sweep, &resting)?;
            let plan = plan.borrow();
            Ok(json!({"steps": plan.steps.len(), "connect": plan.connect.len(), "next_ms": plan.next_ms}))
        },
    );
    if !matches!(made, Some(Ok(_))) {
        return;
    }
    let mut plan = plan.take();
    for (owner, team) in plan.connect {
        world.command(
            || format!("the worker connects {team} of {owner}"),
            None,
            || {
                let runs = Capability { world, owner: owner.clone() };
                connection::ensure(world, &owner, &team, &runs).map(|()| json!("connected"))
            },
        );
    }
    let crashes = world.crashes.get();
    while !plan.steps.is_empty() && world.crashes.get() == crashes && world.violation().is_none() {
        let step = plan.steps.remove(world.below(plan.steps.len()));
        let kept = Kept { owner: step.owner, team: step.team, permit: step.permit, planned: planned.clone() };
        if world.fault(world.knobs.stale_permits) {
            world.kept.borrow_mut().push(kept.clone());
            if world.chance(300) {
                continue;
            }
        }
        step_team(world, &kept);
    }
    if world.crashes.get() == crashes {
        let still = planned.intersection(&world.waiting_owners()).cloned().collect();
        let cursed = world.knobs.cursed.then(|| actors::owner_name(0));
        let free = free && world.free_slots() > 0;
        let starves = world.checker.borrow_mut().fairness.passed(&still, free, cursed.as_deref());
        if let Err(broken) = starves {
            world.violate(broken);
        }
    }
}

fn step_team(world: &World, step: &Kept) {
    let phases = || match world.faulty.get() {
        true => Vec::new(),
        false => world.checker.borrow().statuses(&step.owner, &step.team),
    };
    let before = phases();
    let reply = world.command(
        || format!("advance {} of {} by {}", step.team, step.owner, step.permit),
        Some(step.planned.clone()),
        || advance::advance(world, &step.owner, &step.team, &step.permit).map(|changed| json!(changed)),
    );
    world.rest(&step.owner, &step.team, !matches!(reply, Some(Ok(_))));
    if let Some(Ok(changed)) = reply
        && changed == false
        && before != phases()
    {
        world.violate("a step says that nothing changed, and something did");
    }
}

/// An old permit is used, again or for the first time.
pub fn stale(world: &World) {
    let kept = {
        let mut kept = world.kept.borrow_mut();
        let n = world.below(kept.len());
        let step = kept.get(n).cloned();
        if kept.len() > 20 {
            kept.remove(0);
        }
        step
    };
    if let Some(step) = kept {
        step_team(world, &step);
    }
}

/// A team is deleted and made again under the same id while a permit of the old
/// one is on its way; the new one has jobs of the same numbers.
fn remake(world: &World) {
    let kept: Vec<Kept> = world.kept.borrow().iter().filter(|k| k.permit.contains("\"admit\":[")).cloned().collect();
    let Some(step) = world.pick(&kept) else { return };
    let Some(n) = actors::number_of(world, &step.owner, &step.team) else { return };
    actors::delete_team(world, &step.owner, &step.team);
    actors::create_team(world, &step.owner, n, "the goal");
    for request in 0..1 + world.below(12) {
        actors::send_to(world, &step.owner, &step.team, 0, &format!("again {request}"));
    }
    step_team(world, &step);
}

/// One run continues: it calls a tool, asks, stops, fails or ends.
pub fn work(world: &World) {
    if world.fault(40) {
        return late_call(world);
    }
    let runs = world.agents.borrow().can_end();
    if let Some((thread, run)) = world.pick(&runs) {
        work_on(world, &thread, &run);
    }
}

/// A call arrives late: of a run that is over, or that outlives its job.
fn late_call(world: &World) {
    let over: Vec<(String, String)> = {
        let (agents, checker) = (world.agents.borrow(), world.checker.borrow());
        let ended = |owner: &str, job: &str| checker.job(owner, job).is_none_or(|(_, job)| !job.phase.holds_slot());
        let late = |(id, t): (&String, &Thread)| {
            let runs = t.runs.iter().filter_map(|(run, turn)| Some((run, turn.job.as_ref()?)));
            let over = runs.filter(|(run, job)| t.active.as_ref() != Some(*run) || ended(&t.owner, job));
            over.map(|(run, _)| (id.clone(), run.clone())).collect::<Vec<_>>()
        };
        agents.threads.iter().flat_map(late).collect()
    };
    if let Some((thread, run)) = world.pick(&over) {
        actors::send_member(world, &thread, &run);
    }
}

fn work_on(world: &World, thread: &str, run: &str) {
    let Some(turn) = world.agents.borrow().turn(thread, run).cloned() else { return };
    let knobs = &world.knobs;
    let stopped = world.agents.borrow().threads.get(thread).is_some_and(|t| t.active.as_deref() != Some(run));
    if !stopped && turn.job.is_some() && turn.calls < 4 && world.fault(knobs.calls) {
        return actors::send_member(world, thread, run);
    }
    let mut agents = world.agents.borrow_mut();
    if turn.cancel_wanted && !world.chance(200) {
        world.note(|| format!("{run} stops"));
        return agents.stop(thread, run);
    }
    if stopped || turn.stuck {
        return;
    }
    if turn.job.is_none() && world.fault(knobs.interrupts) {
        world.note(|| format!("{run}, somebody's own turn, stops at an interrupt"));
        return agents.interrupt(thread, run, 1);
    }
    if turn.job.is_none() {
        world.note(|| format!("{run}, somebody's own turn, ends"));
        agents.say(thread, run, "FOREIGN answer", false);
        return agents.end(thread, run, RunStatus::Succeeded, None);
    }
    if world.fault(knobs.asks) {
        world.note(|| format!("{run} asks"));
        agents.say(thread, run, &format!("question of {run}"), true);
        return agents.end(thread, run, RunStatus::Succeeded, None);
    }
    if !turn.cancel_wanted && world.fault(knobs.interrupts) {
        world.note(|| format!("{run} stops at an interrupt"));
        return agents.interrupt(thread, run, 1 + world.below(2));
    }
    if world.fault(knobs.run_fails) {
        world.note(|| format!("{run} fails"));
        return agents.end(thread, run, RunStatus::Failed, Some("the model broke".into()));
    }
    if world.fault(150) {
        agents.say(thread, run, &format!("thoughts of {run}"), false);
    }
    let answer = match world.below(12) {
        _ if world.fault(knobs.no_text) => "  ".to_string(),
        0 => format!("answer of {run} {}", "字".repeat(2_100)),
        _ => format!("answer of {run}"),
    };
    world.note(|| format!("{run} ends"));
    agents.say(thread, run, &answer, false);
    agents.end(thread, run, RunStatus::Succeeded, None);
}

/// Somebody does something in a conversation that is not the team's work, or
/// something goes wrong in the agents' host.
fn mishap(world: &World) {
    let threads: Vec<String> = world.agents.borrow().threads.keys().cloned().collect();
    let Some(thread) = world.pick(&threads) else { return };
    let what = world.below(9);
    let owner = actors::owner(world);
    let (works_on, own) = (world.chance(500), world.agents.borrow().foreign_asks(&thread));
    let mut agents = world.agents.borrow_mut();
    match what {
        0 | 1 => {
            world.note(|| format!("somebody types in {thread}"));
            agents.foreign_message(&thread);
        }
        2 => {
            world.note(|| format!("somebody's own turn begins in {thread}"));
            agents.foreign_turn(&thread);
        }
        3 => {
            world.note(|| format!("{thread} is compacted"));
            agents.compact(&thread);
        }
        // Everybody answers what their own turn asked.
        4 if world.knobs.outsiders || own => {
            world.note(|| format!("somebody answers the interrupts of {thread}"));
            agents.answer_interrupts(&thread, works_on);
        }
        5 => {
            let denied = agents.denied.remove(&owner);
            world.note(|| format!("{owner} is {}", if denied { "allowed again" } else { "denied" }));
            if !denied {
                agents.denied.insert(owner);
            }
        }
        6 => {
            let denied = agents.denied_threads.remove(&thread);
            world.note(|| format!("{thread} is {}", if denied { "allowed again" } else { "denied" }));
            if !denied {
                agents.denied_threads.insert(thread);
            }
        }
        7 => {
            world.note(|| "the agents' host forgets what keys it may".into());
            agents.forget_keys(None);
        }
        _ => agents.denied.clear(),
    }
}

fn vanish(world: &World) {
    let runs: Vec<(String, String)> = {
        let agents = world.agents.borrow();
        agents.threads.iter().flat_map(|(t, thread)| thread.runs.keys().map(|r| (t.clone(), r.clone()))).collect()
    };
    if let Some((thread, run)) = world.pick(&runs) {
        world.note(|| format!("{run} vanishes"));
        // Where nobody outside answers, what a lost run asks is lost with it.
        let all = !world.knobs.outsiders || world.chance(500);
        world.agents.borrow_mut().vanish(&thread, &run, all);
    }
}

/// An owner connects a team that could start something, again and again: the
/// team's step lock is held while the worker continues.
fn overlap(world: &World) {
    let found = {
        let checker = world.checker.borrow();
        let due: Vec<_> = checker.due(world.now()).into_iter().collect();
        world.pick(&due)
    };
    if let Some((owner, team)) = found {
        world.dwelling(|| actors::connect_team(world, &owner, &team));
    }
}

/// An agent leaves the host's catalogue, or comes back.
fn catalogue(world: &World) {
    let agent = format!("agent-{}", world.below(4));
    let hangs = world.chance(500);
    let mut agents = world.agents.borrow_mut();
    if !agents.gone.contains(&agent) {
        world.note(|| format!("{agent} leaves the catalogue"));
        agents.vanish_agent(&agent, hangs);
    } else if world.knobs.agents_return {
        world.note(|| format!("{agent} is in the catalogue again"));
        agents.gone.remove(&agent);
    }
}

fn clock(world: &World) {
    let back = world.chance(250);
    let by = match world.below(4) {
        0 => world.rng.borrow_mut().range(1, 100),
        1 => world.rng.borrow_mut().range(1_000, 10_000),
        2 => world.rng.borrow_mut().range(10_000, 100_000),
        _ => world.rng.borrow_mut().range(100_000, 10_000_000),
    };
    let now = world.clock.get();
    world.latest.set(world.latest.get().max(now));
    world.clock.set(if back { now.saturating_sub(by) } else { now + by });
    world.note(|| format!("the clock goes {} by {by} ms", if back { "back" } else { "on" }));
}

/// What others do while a command is inside the host.
pub fn interlope(world: &World) {
    match world.below(14) {
        0..=4 => work(world),
        5 => answers::cancel(world),
        6 => answers::resume(world),
        7 => actors::send(world),
        8 => actors::delete(world),
        9 => actors::connect(world),
        10 => answers::settle(world),
        11 => actors::mention(world),
        12 => stale(world),
        _ => pass(world),
    }
}

/// One step of the whole.
pub fn step(world: &World) {
    world.checker.borrow_mut().retracted.clear();
    world.clock.set(world.clock.get() + world.rng.borrow_mut().range(0, 700));
    let knobs = &world.knobs;
    if world.chance(knobs.foreign) {
        return mishap(world);
    }
    if world.chance(knobs.vanish) {
        return vanish(world);
    }
    if world.fault(knobs.dwells) {
        return overlap(world);
    }
    if world.chance(knobs.agents_vanish) {
        return catalogue(world);
    }
    if world.chance(knobs.imports) {
        return imports::import(world);
    }
    if world.chance(knobs.clock) {
        return clock(world);
    }
    if world.chance(knobs.remake) {
        return remake(world);
    }
    if world.fault(knobs.crash) && world.chance(200) {
        return world.restart();
    }
    match world.below(100) {
        0..=3 => actors::create(world),
        4..=17 => actors::send(world),
        18..=21 => answers::cancel(world),
        22..=29 => answers::resume(world),
        30 | 31 => answers::settle(world),
        32 => answers::tries_all(world),
        33 if !knobs.talkative => actors::delete(world),
        34..=36 => actors::connect(world),
        37..=39 => actors::read(world),
        40..=44 => actors::mention(world),
        45 => {
            world.command(
                || "the operator lists the slots".into(),
                None,
                || operator::slots(world).map(|slots| json!(format!("{slots:?}"))),
            );
        }
        46..=48 => stale(world),
        49..=72 => work(world),
        _ => pass(world),
    }
}
