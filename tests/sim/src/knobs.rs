//! How rough the world of a seed is: probabilities in thousandths, drawn once.

use super::rng::Rng;

/// The character of a seed.
#[derive(Clone, Debug, Default)]
pub struct Knobs {
    pub owners: usize,
    pub teams_each: usize,
    pub slots: u32,
    /// The component's settings, as JSON.
    pub settings: String,

    pub crash: u32,
    pub trap: u32,
    pub expired: u32,
    pub store_unavailable: u32,
    pub commit_conflict: u32,
    pub commit_unavailable: u32,
    pub commit_unknown: u32,
    pub lock_timeout: u32,
    pub reenter: u32,
    pub reenter_commit: u32,

    /// A host call that is refused though nothing is wrong with it.
    pub host_refuses: u32,
    /// A host call that takes effect and whose reply is lost.
    pub reply_lost: u32,
    /// The host knows the keys of its runs for ever.
    pub durable_keys: bool,
    /// The host gives human messages other ids and stamps the run on them.
    pub rewrites: bool,
    /// A resumed run keeps its id.
    pub same_run: bool,
    /// A run that stops at an interrupt says `interrupted`, not `succeeded`.
    pub says_interrupted: bool,
    /// An answer to a question that is not open is any other message.
    pub lenient: bool,
    /// The steps of one owner's teams are given up whenever they ask the host.
    pub cursed: bool,
    /// A cancel is only taken note of.
    pub cancel_accepted: u32,
    pub asks: u32,
    pub interrupts: u32,
    pub run_fails: u32,
    pub no_text: u32,
    pub calls: u32,
    /// Chains and teams grow to their bounds.
    pub talkative: bool,
    /// The announcement that a run ended is lost.
    pub end_lost: u32,

    /// Weights of what else happens.
    pub foreign: u32,
    pub vanish: u32,
    pub clock: u32,
    pub stale_permits: u32,
    /// A team is deleted and made again while an old permit is kept.
    pub remake: u32,

    /// Somebody outside the team's work answers interrupts in the conversation
    /// itself. Otherwise only the team's owner ever does.
    pub outsiders: bool,
    /// The host rejects an answer for what it says.
    pub refuses: u32,
    /// An answer takes effect, and its reply is lost.
    pub answers_lost: u32,
    /// A host without durable keys forgets them with the reply that it loses.
    pub forgets: u32,
    /// An agent leaves the host's catalogue, or comes back.
    pub agents_vanish: u32,
    /// Agents that are gone come back before a seed is brought to rest.
    pub agents_return: bool,
    /// A run whose job has ended works on until it is stopped.
    pub outlives: bool,
    /// A call of the host takes so long that the worker plans again and again
    /// meanwhile; whoever asked keeps the team's step lock.
    pub dwells: u32,
    /// A call of the host takes nine seconds.
    pub slow: u32,
    /// A team of the earlier plugin is taken over with frozen jobs.
    pub imports: u32,
}

impl Knobs {
    /// The character of a seed: some are calm, some are rough in one way, some
    /// in all.
    pub fn draw(rng: &mut Rng) -> Self {
        let level = rng.below(4) as u32;
        let mut up_to = |max: u32| {
            if level == 0 || rng.chance(350) { 0 } else { rng.range(1, u64::from(max * level / 3 + 1)) as u32 }
        };
        let mut knobs = Self {
            crash: up_to(8),
            trap: up_to(8),
            expired: up_to(3),
            store_unavailable: up_to(12),
            commit_conflict: up_to(60),
            commit_unavailable: up_to(20),
            commit_unknown: up_to(20),
            lock_timeout: up_to(10),
            reenter: up_to(250),
            reenter_commit: up_to(60),
            host_refuses: up_to(120),
            reply_lost: up_to(150),
            cancel_accepted: up_to(600),
            asks: up_to(250),
            interrupts: up_to(200),
            run_fails: up_to(120),
            no_text: up_to(60),
            end_lost: up_to(300),
            foreign: up_to(60),
            vanish: up_to(15),
            clock: up_to(40),
            stale_permits: up_to(200),
            remake: up_to(20),
            calls: up_to(500),
            ..Self::default()
        };
        knobs.owners = 3 + rng.below(3);
        knobs.teams_each = 1 + rng.below(4);
        knobs.slots = *rng.pick(&[1, 2, 3, 8]).unwrap_or(&8);
        let reconnect = if rng.chance(500) { "auto" } else { "manual" };
        knobs.settings = format!(r#"{{"slots":{},"reconnect":"{reconnect}"}}"#, knobs.slots);
        knobs.durable_keys = rng.chance(700);
        knobs.rewrites = rng.chance(300);
        knobs.same_run = rng.chance(500);
        knobs.says_interrupted = rng.chance(500);
        knobs.lenient = rng.chance(400);
        knobs.cursed = level > 0 && rng.chance(150);
        if rng.chance(200) {
            // Few teams and talkative members: bounds are reached.
            (knobs.owners, knobs.teams_each, knobs.calls, knobs.talkative) = (3, 1, 900, true);
        }
        if knobs.durable_keys {
            knobs.vanish = 0;
        }
        knobs.draw_neglect(rng, level);
        knobs
    }

    /// What people and hosts fail to do. Each seed has some of it at most, so
    /// that the rest of it stays as busy as the others.
    fn draw_neglect(&mut self, rng: &mut Rng, level: u32) {
        self.outsiders = rng.chance(500);
        self.outlives = rng.chance(500);
        self.agents_return = rng.chance(400);
        let mut sometimes = |of: u32, low: u64, high: u64| {
            if level > 0 && rng.chance(of) { rng.range(low, high) as u32 } else { 0 }
        };
        self.refuses = sometimes(400, 50, 400);
        self.answers_lost = sometimes(300, 50, 400);
        self.agents_vanish = sometimes(250, 2, 15);
        self.dwells = sometimes(120, 5, 30);
        self.slow = sometimes(150, 1, 4) * 250;
        self.imports = sometimes(200, 3, 15);
        self.forgets = if self.durable_keys { 0 } else { sometimes(500, 200, 900) };
    }
}
