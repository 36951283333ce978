//! A deterministic simulation of the component's real domain and application
//! code: owners, members, worker, operator, a host that fails, and a process
//! that dies, all drawn from one seed.
//!
//! *store* and *world* are the host; *agents*, *conversation* and *runs* the
//! agents behind it; *actors*, *answers*, *imports* and *drive* act; *check*,
//! *ending*, *fairness* and *truth* hold the invariants against every commit and
//! every call of the host; *rest* brings a seed to its end; *oracle* is a second,
//! obvious model for calm sequences.

pub mod actors;
pub mod agents;
pub mod answers;
pub mod check;
pub mod compare;
pub mod conversation;
pub mod drive;
pub mod ending;
pub mod fairness;
pub mod frozen;
pub mod imports;
pub mod knobs;
pub mod oracle;
pub mod rest;
pub mod rng;
pub mod runs;
pub mod store;
pub mod truth;
pub mod world;

use std::collections::BTreeSet;

use agent_teams_plugin::app::commands::open;

use agents::Manners;
use knobs::Knobs;
use rng::Rng;
use world::World;

/// How a seed ended.
#[derive(Debug)]
pub struct Report {
    pub seed: u64,
    /// Commands that were run, nested ones included.
    pub steps: u64,
    pub crashes: u64,
    /// Jobs that reached their end.
    pub finished: u64,
    /// Statuses, reasons and failures that some job went through.
    pub reached: BTreeSet<String>,
    /// The first broken invariant. Absent: none.
    pub violation: Option<String>,
    /// What happened, if it was asked for.
    pub trace: Vec<String>,
}

/// Runs one seed for about `steps` commands, then brings it to rest.
/// `overlook`: violations that say one of these are noted, and the seed continues.
pub fn run(seed: u64, steps: u64, traced: bool, overlook: &[String]) -> Report {
    let mut rng = Rng::new(seed);
    let knobs = Knobs::draw(&mut rng);
    let mut world = World::new(knobs, rng, traced);
    world.overlook = overlook.to_vec();
    let world = world;
    world.note(|| format!("seed {seed}: {:?}", world.knobs));
    world.agents.borrow_mut().manners = Manners {
        durable_keys: world.knobs.durable_keys,
        rewrites: world.knobs.rewrites,
        same_run: world.knobs.same_run,
        says_interrupted: world.knobs.says_interrupted,
        lenient: world.knobs.lenient,
    };
    world.set_others(drive::interlope, drive::pass);
    world.faulty.set(false);
    world.command(|| "open".into(), None, || open::open(&world).map(|()| serde_json::json!("open")));
    for owner in 0..world.knobs.owners {
        actors::create_team(&world, &actors::owner_name(owner), 0, "the goal");
    }
    world.faulty.set(true);
    while world.steps.get() < steps && world.violation().is_none() {
        drive::step(&world);
    }
    if world.violation().is_none() {
        rest::settle_down(&world);
    }
    let finished = {
        let checker = world.checker.borrow();
        checker.living().map(|(_, m, _)| m.jobs.values().filter(|j| j.phase.finished()).count() as u64).sum()
    };
    Report {
        seed,
        steps: world.steps.get(),
        crashes: world.crashes.get(),
        finished,
        reached: world.checker.borrow().reached.clone(),
        violation: world.violation(),
        trace: world.take_trace(),
    }
}
