//! The end of a seed: faults stop, people act, and everything must come to its
//! end. Then every conversation in which something was left takes one more
//! request.

use std::collections::{BTreeMap, BTreeSet};

use agent_teams_plugin::domain::job::{JobKind, Phase};
use agent_teams_plugin::host::RunStatus;
use agent_teams_plugin::store::keys;
use agent_teams_plugin::store::records::Job;

use super::ending::open;
use super::world::World;
use super::{actors, answers, drive};

/// Passes after which everything must be at rest.
const PASSES: usize = 3_000;
/// Passes in which no job ends, after which owners cancel what is first in its
/// conversation; after which they settle what is frozen without a connection;
/// and after which all that they can do has not helped.
const CANCEL: u32 = 20;
const SETTLE: u32 = 40;
const GIVE_UP: u32 = 100;
/// Passes for which a slot may be held by a job of which no run is alive.
const HELD: u32 = 60;
/// Passes after which a request in a conversation at rest must have ended.
const PROBE: u32 = 60;

/// Brings the world to rest, then looks at what is left.
pub fn settle_down(world: &World) {
    world.note(|| "faults stop".into());
    world.faulty.set(false);
    {
        let mut agents = world.agents.borrow_mut();
        agents.denied.clear();
        agents.denied_threads.clear();
        if world.knobs.agents_return {
            agents.gone.clear();
        }
    }
    world.clock.set(world.clock.get().max(world.latest.get()));
    let mut seen = Seen::default();
    for n in 0..PASSES {
        if world.violation().is_some() || at_rest(world) {
            break;
        }
        world.clock.set(world.clock.get() + 61_000);
        people(world, n, &seen);
        outsiders(world);
        agents_end(world);
        drive::pass(world);
        seen.look(world);
    }
    for then in [look, probe, look] {
        if world.violation().is_none() {
            then(world);
        }
    }
}

fn at_rest(world: &World) -> bool {
    let over = |(thread, run): &(String, String)| outlives(world, thread, run);
    world.checker.borrow().work.is_empty() && world.agents.borrow().at_work().iter().all(over)
}

/// Whether a run works on although its job has ended, until it is stopped.
fn outlives(world: &World, thread: &str, run: &str) -> bool {
    let (agents, checker) = (world.agents.borrow(), world.checker.borrow());
    let Some(turn) = agents.turn(thread, run) else { return false };
    let (Some(job), Some(thread)) = (&turn.job, agents.threads.get(thread)) else { return false };
    let ended = checker.job(&thread.owner, job).is_none_or(|(_, job)| job.phase.finished());
    // A run that was never named is one that nobody can stop.
    ended && checker.named(run) && (world.knobs.outlives || turn.stuck) && !turn.cancel_wanted
}

/// What happens on the way to rest, counted in passes.
#[derive(Default)]
struct Seen {
    finished: usize,
    /// Passes since a job ended.
    calm: u32,
    /// For how long each slot has been held by a job of which no run is alive.
    held: BTreeMap<String, u32>,
}

impl Seen {
    /// For how many passes nothing has happened that helps this job.
    fn passes_of(&self, job: &Job) -> u32 {
        let held = job.slot.and_then(|number| self.held.get(&keys::slot(number)));
        self.calm.max(held.copied().unwrap_or(0))
    }

    fn look(&mut self, world: &World) {
        let (checker, agents) = (world.checker.borrow(), world.agents.borrow());
        let jobs = || checker.living().flat_map(|(_, mirror, _)| mirror.jobs.values());
        let finished = jobs().filter(|job| job.phase.finished()).count();
        self.calm = if finished > self.finished { 0 } else { self.calm + 1 };
        self.finished = finished;
        self.held.retain(|slot, _| checker.slots.contains_key(slot));
        let mut broken = None;
        let deployed = |slot: &str| {
            slot.strip_prefix("slot/").is_some_and(|n| n.parse().is_ok_and(|n: u32| n < world.knobs.slots))
        };
        for (slot, (owner, team, n)) in checker.slots.iter().filter(|(slot, _)| deployed(slot)) {
            let Some(job) = checker.team(owner, team).and_then(|t| t.jobs.get(n)) else { continue };
            let lives = agents.threads.get(&job.thread).is_some_and(|t| t.living_runs(&job.id).next().is_some());
            let passes = self.held.entry(slot.clone()).or_default();
            *passes = if lives { 0 } else { *passes + 1 };
            if *passes > HELD {
                let how = (job.phase.status(), job.hold.as_ref().map(|h| &h.code));
                broken = Some(format!("{slot} is held by {} {how:?}, of which no run is alive", job.id));
            }
        }
        if self.calm > GIVE_UP
            && let Some(job) = jobs().find(|job| !job.phase.finished())
        {
            let how = (job.phase.status(), job.hold.as_ref().map(|h| &h.code));
            broken.get_or_insert(format!("{} is still {how:?} after all that its owner can do", job.id));
        }
        drop((checker, agents));
        if let Some(broken) = broken {
            world.violate(broken);
        }
    }
}

/// Unfinished jobs of which `f` is true, with their owners and teams.
fn jobs(world: &World, f: impl Fn(&str, &str, &Job) -> bool) -> Vec<(String, String, Job)> {
    let checker = world.checker.borrow();
    let mut found = Vec::new();
    for ((owner, team), mirror, _) in checker.living() {
        let fit = mirror.jobs.values().filter(|j| !j.phase.finished() && f(owner, team, j));
        found.extend(fit.map(|j| (owner.clone(), team.clone(), j.clone())));
    }
    found
}

/// Owners connect what is not connected, answer what waits, settle what nobody
/// knows. What does not end by that they cancel, then settle where they may.
fn people(world: &World, pass: usize, seen: &Seen) {
    let apart: BTreeSet<(String, String)> = jobs(world, |owner, team, _| !world.connected(owner, team))
        .into_iter()
        .map(|(owner, team, _)| (owner, team))
        .collect();
    for (owner, team) in &apart {
        actors::connect_team(world, owner, team);
    }
    for (owner, team, job) in jobs(world, |_, _, j| matches!(j.phase, Phase::Waiting { .. })) {
        let thread = |w: &World, wait| w.agents.borrow().threads.get(&job.thread).is_some_and(|t| open(wait, t));
        match job.phase.wait() {
            Some(wait) if seen.calm < CANCEL && thread(world, wait) => {
                let response = answers::response(wait, pass, false);
                answers::answer(world, &owner, &team, &job, &format!("rest {pass}"), response);
            }
            _ => answers::cancel_job(world, &owner, &team, &job.id),
        }
    }
    for (owner, team, job) in jobs(world, |_, _, j| matches!(j.phase, Phase::Unknown { .. })) {
        answers::settle_job(world, &owner, &team, &job.id, world.chance(500) && pass < 20);
    }
    let first = |owner: &str, j: &Job| world.checker.borrow().executing(owner, &j.thread).as_ref() == Some(&j.id);
    let stuck = |owner: &str, j: &Job| {
        !matches!(j.phase, Phase::Cancelling { .. }) && first(owner, j) && seen.passes_of(j) >= CANCEL
    };
    for (owner, team, job) in jobs(world, |owner, _, j| stuck(owner, j)) {
        answers::cancel_job(world, &owner, &team, &job.id);
    }
    let apart = |o: &str, t: &str, j: &Job| j.phase.holds_slot() && !world.connected(o, t);
    for (owner, team, job) in jobs(world, |o, t, j| apart(o, t, j) && seen.passes_of(j) >= SETTLE) {
        answers::settle_job(world, &owner, &team, &job.id, false);
    }
}

/// What is asked in a conversation and is no unfinished job's, people answer
/// there: a question by whatever they type. An interrupt of a job that has ended
/// only where somebody outside ever answers; of a run that the component cannot
/// know, always.
fn outsiders(world: &World) {
    let held: Vec<String> = {
        let (agents, checker) = (world.agents.borrow(), world.checker.borrow());
        let answered = |id: &String| {
            let thread = &agents.threads[id];
            if thread.question.is_none() && thread.interrupts.is_empty() {
                return false;
            }
            let asking = thread.asking();
            let job = asking.and_then(|run| thread.runs.get(run)?.job.as_ref());
            let Some((asking, job)) = asking.zip(job) else { return !awaited(world, id) };
            let ended = checker.job(&thread.owner, job).is_none_or(|(_, job)| job.phase.finished());
            ended && (thread.interrupts.is_empty() || world.knobs.outsiders || !checker.named(asking))
        };
        agents.threads.keys().filter(|id| answered(id)).cloned().collect()
    };
    for thread in held {
        world.note(|| format!("somebody answers in {thread}"));
        let mut agents = world.agents.borrow_mut();
        agents.answer_interrupts(&thread, false);
        agents.foreign_message(&thread);
    }
}

/// Whether an unfinished job waits for what is asked in a conversation.
pub fn awaited(world: &World, id: &str) -> bool {
    let (agents, checker) = (world.agents.borrow(), world.checker.borrow());
    let Some(thread) = agents.threads.get(id) else { return false };
    let waits = |j: &Job| j.thread == *id && !j.phase.finished() && j.phase.wait().is_some_and(|w| open(w, thread));
    checker.living().any(|(_, mirror, _)| mirror.jobs.values().any(waits))
}

/// What is at work ends, unless it outlives its job or hangs.
fn agents_end(world: &World) {
    let runs = world.agents.borrow().can_end();
    for (thread, run) in runs {
        if outlives(world, &thread, &run) {
            continue;
        }
        let known = world.checker.borrow().named(&run);
        let mut agents = world.agents.borrow_mut();
        let Some(turn) = agents.turn(&thread, &run).cloned() else { continue };
        match turn {
            turn if turn.cancel_wanted => {
                world.note(|| format!("{run} stops"));
                agents.stop(&thread, &run);
            }
            turn if turn.stuck && known => {}
            _ => {
                world.note(|| format!("{run} ends"));
                agents.say(&thread, &run, &format!("answer of {run}"), false);
                agents.end(&thread, &run, RunStatus::Succeeded, None);
            }
        }
    }
}

/// Where something was left, and in two other conversations, one more request
/// must run; with a member whose agent is gone it must fail.
fn probe(world: &World) {
    let members: Vec<(String, String, usize, String)> = {
        let checker = world.checker.borrow();
        let takes = checker.living().filter(|(_, t, _)| t.head.as_ref().is_some_and(|h| h.ready && h.requests < 100));
        let of = |((owner, id), _, team): (&(String, String), _, &agent_teams_plugin::store::records::Team)| {
            let members = team.members.iter().enumerate();
            members.map(|(n, m)| (owner.clone(), id.clone(), n, m.thread.clone())).collect::<Vec<_>>()
        };
        takes.flat_map(of).collect()
    };
    let left = |thread: &String| {
        let agents = world.agents.borrow();
        let thread = agents.threads.get(thread);
        thread.is_some_and(|t| t.active.is_some() || t.question.is_some() || !t.interrupts.is_empty())
    };
    let (marked, mut others): (Vec<_>, Vec<_>) = members.into_iter().partition(|(.., thread)| left(thread));
    let mut probes: Vec<_> = marked.into_iter().take(10).collect();
    for _ in 0..2.min(others.len()) {
        probes.push(others.remove(world.below(others.len())));
    }
    for (owner, team, member, _) in &probes {
        actors::send_to(world, owner, team, *member, &format!("probe {member}"));
    }
    let sent = |(owner, team, member, thread): &(String, String, usize, String)| {
        let checker = world.checker.borrow();
        let jobs = checker.team(owner, team)?.jobs.values();
        let mut own = jobs.filter(|j| j.thread == *thread && j.request_id == format!("probe {member}"));
        own.next().cloned()
    };
    for _ in 0..PROBE {
        let unfinished = |job: Job| !job.phase.finished();
        if world.violation().is_some() || !probes.iter().filter_map(sent).any(unfinished) {
            break;
        }
        world.clock.set(world.clock.get() + 61_000);
        for (owner, team, ..) in probes.iter().filter(|(owner, team, ..)| !world.connected(owner, team)) {
            actors::connect_team(world, owner, team);
        }
        outsiders(world);
        agents_end(world);
        drive::pass(world);
    }
    for (job, thread) in probes.iter().filter_map(|probe| Some((sent(probe)?, &probe.3))) {
        let gone = {
            let (agents, checker) = (world.agents.borrow(), world.checker.borrow());
            let member = checker.living().find_map(|(.., team)| team.member_of_thread(thread));
            member.is_some_and(|m| agents.gone.contains(&m.agent))
        };
        let well = if gone { job.phase == Phase::Failed } else { job.phase == Phase::Completed };
        if !well {
            let why = job.hold.map(|h| h.code).or(job.failure.map(|f| f.code));
            let status = (job.phase.status(), why.unwrap_or_default());
            let what = if gone { "whose agent is gone" } else { "in which nothing is under way" };
            world.violate(format!("one more request in {thread}, {what}, is {status:?}"));
        }
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
            let lives = agents.threads.get(&job.thread).and_then(|t| t.living_runs(&job.id).next());
            if let Some(run) = lives.filter(|_| job.phase == Phase::Cancelled) {
                fail(format!("{} is called cancelled while its {run} lives", job.id));
            }
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
            if carried.iter().collect::<BTreeSet<_>>().into_iter().filter(told).count() > 1 {
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
