//! What the worker knows, and what it does next: no task, no channel, no
//! clock in here, so every rule can be tested as a plain function call.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::Options;
use super::backoff::Backoff;
use crate::contract::{EndedRun, Plan, Step, TeamRef};

/// The shortest time between two plans that nothing but the plan itself asked
/// for, so that a component which always says "again at once" cannot spin.
const SHORTEST: Duration = Duration::from_millis(20);
/// Steps in a row that changed nothing, without any event in between, after
/// which a team waits for one, whatever the plan says.
const IDLE_STEPS: u32 = 3;

/// Something to start now.
#[derive(Debug, PartialEq, Eq)]
pub enum Start {
    Step { team: TeamRef, permit: Vec<u8> },
    Connect { team: TeamRef },
}

pub struct State {
    sweep_every: Duration,
    steps_at_once: usize,
    pub step_time: Duration,
    /// Runs that ended and that no successful plan has been given yet.
    ended: Vec<EndedRun>,
    /// Runs that ended while steps were under way, and which of those steps
    /// still are. One of them may have started the run and not stored it yet,
    /// so that no plan can know it: once they have ended, the run is handed
    /// over again.
    again: Vec<(EndedRun, HashSet<TeamRef>)>,
    dirty: bool,
    sweep: bool,
    planning: bool,
    /// Not before this time, after a failed plan.
    plan_after: Option<Instant>,
    plan_pauses: Backoff<()>,
    /// When the plan that is being made was begun.
    plan_began: Option<Instant>,
    /// The teams that had a step under way then.
    under_way: HashSet<TeamRef>,
    /// Not before this time, after a plan, while steps are under way: what
    /// happens meanwhile is gathered.
    plan_rest: Option<Instant>,
    /// When the next plan is due although nothing happened.
    next: Option<Instant>,
    next_sweep: Option<Instant>,
    /// Of the newest plan: what was not started yet.
    waiting: VecDeque<Step>,
    /// The ended runs that the newest plan was given, for each of its steps
    /// that was not started yet. A step that is given up gives them back.
    given: HashMap<TeamRef, Vec<EndedRun>>,
    /// The same for the steps under way: a step that fails gives them back.
    carried: HashMap<TeamRef, Vec<EndedRun>>,
    connect: VecDeque<TeamRef>,
    /// Teams with a step under way; true: it was planned again meanwhile.
    busy: HashMap<TeamRef, bool>,
    pauses: Backoff<TeamRef>,
    connects: Backoff<TeamRef>,
    /// Teams whose last step changed nothing: its permit, and how many in a
    /// row. The same step is not repeated until something happens.
    idle: HashMap<TeamRef, (Vec<u8>, u32)>,
}

impl State {
    pub fn new(options: &Options) -> Self {
        Self {
            sweep_every: options.sweep,
            steps_at_once: options.steps.max(1),
            step_time: options.step_time,
            ended: Vec::new(),
            again: Vec::new(),
            dirty: true,
            sweep: true,
            planning: false,
            plan_after: None,
            plan_pauses: Backoff::new(options.pause_min, options.pause_max),
            plan_began: None,
            under_way: HashSet::new(),
            plan_rest: None,
            next: None,
            next_sweep: None,
            waiting: VecDeque::new(),
            given: HashMap::new(),
            carried: HashMap::new(),
            connect: VecDeque::new(),
            busy: HashMap::new(),
            pauses: Backoff::new(options.pause_min, options.pause_max),
            connects: Backoff::new(options.pause_min, options.pause_max),
            idle: HashMap::new(),
        }
    }

    pub fn run_ended(&mut self, run: EndedRun) {
        if !self.busy.is_empty() {
            self.again.push((run.clone(), self.busy.keys().cloned().collect()));
        }
        self.hand_over(run);
        self.something_happened();
    }

    fn hand_over(&mut self, run: EndedRun) {
        if !self.ended.contains(&run) {
            self.ended.push(run);
        }
    }

    /// Events were missed: only a look at everything can tell which.
    pub fn events_lost(&mut self) {
        self.sweep = true;
        self.something_happened();
    }

    pub fn something_happened(&mut self) {
        self.dirty = true;
        self.idle.clear();
    }

    /// The plan to make now, if one is due and none is being made: the runs
    /// to hand over, and whether it is a sweep.
    pub fn take_plan(&mut self, now: Instant) -> Option<(Vec<EndedRun>, bool)> {
        if self.planning || self.plan_after.max(self.rest()).is_some_and(|at| at > now) {
            return None;
        }
        if self.next_sweep.is_some_and(|at| at <= now) {
            self.events_lost();
        }
        if self.next.is_some_and(|at| at <= now) {
            self.next = None;
            self.something_happened();
        }
        if !self.dirty {
            return None;
        }
        self.planning = true;
        self.plan_began = Some(now);
        // A sweep's steps look at what no event tells of: none is dropped.
        self.under_way = if self.sweep { HashSet::new() } else { self.busy.keys().cloned().collect() };
        self.dirty = false;
        Some((std::mem::take(&mut self.ended), std::mem::take(&mut self.sweep)))
    }

    /// The teams that can take no step now: they pause, since their steps fail,
    /// or a step of theirs is under way. A slot that a plan offers them would
    /// wait for them.
    pub fn resting(&self, now: Instant) -> Vec<TeamRef> {
        let mut teams = self.pauses.pausing(now);
        for team in self.busy.keys() {
            if !teams.contains(team) {
                teams.push(team.clone());
            }
        }
        teams.sort();
        teams
    }

    /// The pause after a plan. With no step under way there is nothing to
    /// gather, and nothing waits.
    fn rest(&self) -> Option<Instant> {
        self.plan_rest.filter(|_| !self.busy.is_empty())
    }

    /// `took`: the ended runs that this plan was given.
    pub fn planned(&mut self, mut plan: Plan, took: &[EndedRun], now: Instant) {
        self.planning = false;
        self.plan_after = None;
        // Planning takes half of the time at most, however much happens.
        self.plan_rest = self.plan_began.map(|began| now + now.saturating_duration_since(began));
        self.plan_pauses.clear(&());
        // Any plan looks at all unfinished work, but only a sweep asks the
        // host about runs whose end was not reported: the time of the next one runs
        // from the last one that succeeded.
        if self.next_sweep.is_none_or(|at| at <= now) {
            self.next_sweep = Some(now + self.sweep_every);
        }
        self.next = Some(now + Duration::from_millis(plan.next_ms.into()).max(SHORTEST));
        // This plan offers nothing to teams that pause; the next one may.
        if let Some(end) = self.pauses.first_end(now) {
            self.plan_by(end);
        }
        let named: HashSet<&TeamRef> = plan.connect.iter().collect();
        self.connects.retain(|team| named.contains(team));
        self.connect = std::mem::take(&mut plan.connect).into();
        for (_, runs) in std::mem::take(&mut self.given) {
            self.give_back(runs);
        }
        // A step that ended while the plan was made has overtaken what the plan
        // says of its team: the next plan knows better.
        let under_way = std::mem::take(&mut self.under_way);
        let planned = plan.steps.len();
        plan.steps.retain(|step| !under_way.contains(&step.team) || self.busy.contains_key(&step.team));
        if plan.steps.len() < planned {
            self.dirty = true;
            self.give_back(took.to_vec());
        }
        if !took.is_empty() {
            self.given = plan.steps.iter().map(|step| (step.team.clone(), took.to_vec())).collect();
        }
        self.waiting = plan.steps.into();
    }

    /// No step has looked at these ends: the next plan is given them again.
    fn give_back(&mut self, runs: Vec<EndedRun>) {
        for run in runs {
            self.hand_over(run);
        }
    }

    /// Everything that this plan was given goes into the next one.
    pub fn plan_failed(&mut self, took: Vec<EndedRun>, sweep: bool, now: Instant) {
        self.planning = false;
        let newer = std::mem::replace(&mut self.ended, took);
        for run in newer {
            self.hand_over(run);
        }
        self.sweep |= sweep;
        self.dirty = true;
        self.plan_after = Some(now + self.plan_pauses.add(&(), now));
    }

    /// The next task to start, marked as under way.
    pub fn take_start(&mut self, now: Instant, reconnect: bool) -> Option<Start> {
        if self.busy.len() >= self.steps_at_once {
            return None;
        }
        while let Some(team) = self.connect.pop_front() {
            if !reconnect {
                continue;
            }
            if let Some(again) = self.busy.get_mut(&team) {
                *again = true;
            } else if let Some(until) = self.connects.until(&team, now) {
                self.plan_by(until);
            } else {
                self.busy.insert(team.clone(), false);
                return Some(Start::Connect { team });
            }
        }
        while let Some(Step { team, permit }) = self.waiting.pop_front() {
            let runs = self.given.remove(&team).unwrap_or_default();
            if let Some(again) = self.busy.get_mut(&team) {
                // Planned again when that step has ended, with the same ends.
                *again = true;
                self.give_back(runs);
            } else if let Some(until) = self.pauses.until(&team, now) {
                self.plan_by(until);
                self.give_back(runs);
            } else if !self.is_idle(&team, &permit) {
                self.busy.insert(team.clone(), false);
                self.carried.insert(team.clone(), runs);
                return Some(Start::Step { team, permit });
            }
        }
        None
    }

    fn is_idle(&self, team: &TeamRef, permit: &[u8]) -> bool {
        self.idle.get(team).is_some_and(|(last, times)| last == permit || *times >= IDLE_STEPS)
    }

    fn plan_by(&mut self, at: Instant) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    /// A step that changed something, or during which its team was planned
    /// again, lets that team go on at once; after any other only the rest of
    /// the plan may look different.
    pub fn step_ended(&mut self, team: &TeamRef, permit: Vec<u8>, changed: bool) {
        self.pauses.clear(team);
        self.carried.remove(team);
        if self.release(team) || changed {
            self.idle.remove(team);
        } else {
            let times = self.idle.get(team).map_or(0, |(_, times)| *times) + 1;
            self.idle.insert(team.clone(), (permit, times));
        }
        self.dirty = true;
    }

    /// Answers with the pause of this team.
    pub fn step_failed(&mut self, team: &TeamRef, now: Instant) -> Duration {
        let runs = self.carried.remove(team).unwrap_or_default();
        self.give_back(runs);
        self.release(team);
        let pause = self.pauses.add(team, now);
        self.dirty = true;
        pause
    }

    /// A team that stays unconnected after an attempt is tried again after a
    /// pause that grows; it is forgotten once a plan does not name the team.
    pub fn connect_ended(&mut self, team: &TeamRef, connected: bool, now: Instant) -> Duration {
        let again = self.release(team);
        let pause = self.connects.add(team, now);
        if connected {
            self.idle.remove(team);
            self.pauses.clear(team);
        }
        self.dirty |= connected || again;
        self.plan_by(now + pause);
        pause
    }

    /// The team's step has ended. True: the team was planned again meanwhile.
    fn release(&mut self, team: &TeamRef) -> bool {
        for (_, steps) in &mut self.again {
            steps.remove(team);
        }
        let over: Vec<EndedRun> =
            self.again.extract_if(.., |(_, steps)| steps.is_empty()).map(|(run, _)| run).collect();
        if !over.is_empty() {
            self.something_happened();
        }
        for run in over {
            self.hand_over(run);
        }
        self.busy.remove(team).unwrap_or(false)
    }

    /// When to look again although no event arrives.
    pub fn wake_at(&self, now: Instant) -> Instant {
        let far = now + self.sweep_every;
        if self.planning {
            return far;
        }
        // A time that has passed since a plan was last asked for counts, too.
        let due = if self.dirty { Some(now) } else { [self.next, self.next_sweep].into_iter().flatten().min() };
        let due = due.unwrap_or(far);
        self.plan_after.max(self.rest()).map_or(due, |at| due.max(at))
    }
}
