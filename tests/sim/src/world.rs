//! The world of one seed: store, agents, clock, chance, and the process that
//! may die at any moment. It implements the component's `Host`.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use agent_teams_plugin::domain::error::{Error, Kind};
use agent_teams_plugin::domain::limits;
use agent_teams_plugin::host::{Guard, Host, Level, LockTimeout, Runs, StoreError, Tx};
use serde_json::Value;

use super::actors::owner_name;
use super::agents::Agents;
use super::check::{Checker, Scene};
use super::drive::Kept;
use super::knobs::Knobs;
use super::rng::Rng;
use super::runs::Capability;
use super::store::{Change, SimTx, Store};

/// How a command ends that does not return: the whole process dies, or this
/// one call is given up (a trap, a deadline).
enum Abandoned {
    Process,
    Call,
}

/// What one command holds at the moment. Commands nest when another actor
/// acts while this one talks to the host.
#[derive(Debug, Default)]
pub struct Frame {
    /// Open transactions.
    pub transactions: usize,
    /// Commit locks held.
    pub commit_locks: usize,
    /// Commits that changed something.
    pub commits: usize,
    /// The owners that could be served when this step was planned. Absent: the
    /// command is no step.
    pub planned: Option<BTreeSet<String>>,
    /// Milliseconds of host time of this command, by conversation, and the
    /// calls that took them.
    pub spent: BTreeMap<String, (u64, Vec<String>)>,
}

/// Everything that a seed makes.
pub struct World {
    pub knobs: Knobs,
    /// Violations that say one of these do not count.
    pub overlook: Vec<String>,
    pub rng: RefCell<Rng>,
    pub store: RefCell<Store>,
    pub agents: RefCell<Agents>,
    pub checker: RefCell<Checker>,
    pub clock: Cell<u64>,
    /// The latest that it was before it went back.
    pub latest: Cell<u64>,
    /// Faults, crashes and interleaving are on.
    pub faulty: Cell<bool>,
    pub steps: Cell<u64>,
    pub crashes: Cell<u64>,
    /// Permits that are used late.
    pub kept: RefCell<Vec<Kept>>,
    /// Documents of the earlier plugin, by team.
    pub documents: RefCell<BTreeMap<String, Value>>,
    /// Teams whose last step failed: how often in a row, and until when they
    /// rest.
    resting: RefCell<BTreeMap<(String, String), (u32, u64)>>,
    locks: RefCell<BTreeSet<String>>,
    connections: RefCell<BTreeSet<(String, String)>>,
    positions: RefCell<BTreeMap<(String, String), u64>>,
    frames: RefCell<Vec<Frame>>,
    violation: RefCell<Option<String>>,
    trace: RefCell<Option<Vec<String>>>,
    /// Acts for another actor while a command is inside the host.
    interloper: Cell<Option<fn(&World)>>,
    /// Makes a pass of the worker.
    worker: Cell<Option<fn(&World)>>,
    /// The next call of the host dwells.
    dwells: Cell<bool>,
}

/// The moment at which every simulation begins.
const EPOCH_MS: u64 = 1_800_000_000_000;
/// Commands inside commands.
const DEPTH: usize = 3;
/// What a call of the host takes at most, in milliseconds.
const CALL_MS: u64 = 9_000;
/// What one step spends on one job at most, all its calls together.
const STEP_OF_A_JOB_MS: u64 = 10_000;
/// Passes of the worker while one call of the host dwells.
const DWELLING: u64 = 90;

impl World {
    /// A new world. `traced`: keeps the list of what happened.
    pub fn new(knobs: Knobs, rng: Rng, traced: bool) -> Self {
        let slots = knobs.slots;
        Self {
            knobs,
            overlook: Vec::new(),
            rng: RefCell::new(rng),
            store: RefCell::default(),
            agents: RefCell::default(),
            checker: RefCell::new(Checker::new(slots)),
            clock: Cell::new(EPOCH_MS),
            latest: Cell::new(EPOCH_MS),
            faulty: Cell::new(true),
            steps: Cell::new(0),
            crashes: Cell::new(0),
            kept: RefCell::default(),
            documents: RefCell::default(),
            resting: RefCell::default(),
            locks: RefCell::default(),
            connections: RefCell::default(),
            positions: RefCell::default(),
            frames: RefCell::new(vec![Frame::default()]),
            violation: RefCell::default(),
            trace: RefCell::new(traced.then(Vec::new)),
            interloper: Cell::new(None),
            worker: Cell::new(None),
            dwells: Cell::new(false),
        }
    }

    /// Who acts while another command is inside the host: anybody, and the
    /// worker.
    pub fn set_others(&self, anybody: fn(&World), worker: fn(&World)) {
        self.interloper.set(Some(anybody));
        self.worker.set(Some(worker));
    }

    /// A line of the trace.
    pub fn note(&self, line: impl FnOnce() -> String) {
        if let Some(trace) = self.trace.borrow_mut().as_mut() {
            let indent = "  ".repeat(self.frames.borrow().len() - 1);
            trace.push(format!("{:>6} {indent}{}", self.steps.get(), line()));
        }
    }

    /// The trace so far.
    pub fn take_trace(&self) -> Vec<String> {
        self.trace.borrow_mut().take().unwrap_or_default()
    }

    /// Remembers the first broken invariant.
    pub fn violate(&self, what: impl Into<String>) {
        let what = what.into();
        self.note(|| format!("!! {what}"));
        if self.overlook.iter().any(|text| what.contains(text)) {
            return;
        }
        self.violation.borrow_mut().get_or_insert(what);
    }

    /// The first broken invariant.
    pub fn violation(&self) -> Option<String> {
        self.violation.borrow().clone()
    }

    /// A number below `bound`.
    pub fn below(&self, bound: usize) -> usize {
        self.rng.borrow_mut().below(bound)
    }

    /// True in `per_mille` of 1,000 cases.
    pub fn chance(&self, per_mille: u32) -> bool {
        self.rng.borrow_mut().chance(per_mille)
    }

    /// A fault, while faults are on.
    pub fn fault(&self, per_mille: u32) -> bool {
        self.faulty.get() && self.chance(per_mille)
    }

    /// One of the items.
    pub fn pick<T: Clone>(&self, items: &[T]) -> Option<T> {
        self.rng.borrow_mut().pick(items).cloned()
    }

    /// Looks at the frame of the command that runs now.
    pub fn frame<T>(&self, f: impl FnOnce(&mut Frame) -> T) -> T {
        let mut frames = self.frames.borrow_mut();
        if frames.is_empty() {
            frames.push(Frame::default());
        }
        let last = frames.len() - 1;
        f(&mut frames[last])
    }

    /// A moment at which the process may die, or this call be given up.
    pub fn crash_point(&self, place: &str) {
        if self.fault(self.knobs.crash) {
            self.note(|| format!("  the process dies {place}"));
            resume_unwind(Box::new(Abandoned::Process));
        }
        if self.fault(self.knobs.trap) {
            self.note(|| format!("  the call is given up {place}"));
            resume_unwind(Box::new(Abandoned::Call));
        }
    }

    /// The steps of one owner's teams never come further than to the host.
    pub fn curse(&self, owner: &str) {
        if self.knobs.cursed
            && self.faulty.get()
            && owner == owner_name(0)
            && self.frames.borrow().last().is_some_and(|f| f.planned.is_some())
        {
            self.note(|| "  the call is given up, as always with this owner".into());
            resume_unwind(Box::new(Abandoned::Call));
        }
    }

    /// The teams that rest now, since their steps fail.
    pub fn resting(&self) -> Vec<(String, String)> {
        let now = self.now();
        let resting = self.resting.borrow();
        resting.iter().filter(|(_, (_, until))| *until > now).map(|(team, _)| team.clone()).collect()
    }

    /// A step of this team failed, or did not.
    pub fn rest(&self, owner: &str, team: &str, failed: bool) {
        let team = (owner.to_string(), team.to_string());
        let mut resting = self.resting.borrow_mut();
        if failed {
            let times = resting.get(&team).map_or(0, |(times, _)| *times) + 1;
            resting.insert(team, (times, self.now() + limits::pause_ms(times)));
        } else {
            resting.remove(&team);
        }
    }

    /// Lets others act while a command is inside the host.
    pub fn reenter(&self) {
        let mut more = 2;
        while more > 0 && self.frames.borrow().len() <= DEPTH && self.fault(self.knobs.reenter) {
            more -= 1;
            if let Some(act) = self.interloper.get() {
                act(self);
            }
        }
    }

    /// A call of the host begins: it takes its time, of which one step has little
    /// for each of its jobs.
    pub fn takes_time(&self, call: &str, thread: &str) {
        if self.knobs.slow == 0 || !self.faulty.get() {
            return;
        }
        let ms = if self.chance(self.knobs.slow) { CALL_MS } else { self.rng.borrow_mut().range(1, 300) };
        self.clock.set(self.clock.get() + ms);
        let over = self.frame(|frame| {
            frame.planned.as_ref()?;
            let (spent, calls) = frame.spent.entry(thread.into()).or_default();
            *spent += ms;
            calls.push(format!("{call} {ms} ms"));
            (*spent > STEP_OF_A_JOB_MS).then(|| format!("{spent} ms of host time ({})", calls.join(", ")))
        });
        if let Some(over) = over {
            self.violate(format!("one step took for the job of {thread} {over}"));
        }
    }

    /// While `act` asks the host for the first time, the call dwells.
    pub fn dwelling(&self, act: impl FnOnce()) {
        self.dwells.set(true);
        act();
        self.dwells.set(false);
    }

    /// A call of the host may dwell: the worker makes pass after pass, and the
    /// caller keeps what it holds, as one of several calls that overlap would.
    pub fn dwell(&self) {
        if self.frames.borrow().len() > 2 || !(self.dwells.replace(false) || self.fault(self.knobs.dwells / 4)) {
            return;
        }
        self.note(|| "  it dwells".into());
        for _ in 0..DWELLING {
            if self.violation().is_some() {
                return;
            }
            self.clock.set(self.clock.get() + 100);
            let act = if self.chance(100) { self.interloper.get() } else { self.worker.get() };
            if let Some(act) = act {
                act(self);
            }
        }
    }

    /// Lets others act between the reads of a command and its commit.
    pub fn reenter_at_commit(&self) {
        if self.frames.borrow().len() <= DEPTH
            && self.fault(self.knobs.reenter_commit)
            && let Some(act) = self.interloper.get()
        {
            act(self);
        }
    }

    /// No agent may be asked while a transaction is open or a commit lock held.
    pub fn check_outside(&self, call: &str) {
        let (transactions, locks) = self.frame(|f| (f.transactions, f.commit_locks));
        if transactions > 0 || locks > 0 {
            self.violate(format!("{call} while {transactions} transactions are open and {locks} commit locks held"));
        }
    }

    /// A commit is durable.
    pub fn committed(&self, changes: &[Change]) {
        let planned = self.frame(|f| {
            f.commits += usize::from(!changes.is_empty());
            f.planned.clone()
        });
        self.note(|| {
            format!("  commit: {}", changes.iter().map(|(key, ..)| key.as_str()).collect::<Vec<_>>().join(" "))
        });
        let (agents, connections, locks) = (self.agents.borrow(), self.connections.borrow(), self.locks.borrow());
        let scene = Scene { now: self.now(), agents: &agents, connections: &connections, locks: &locks };
        let seen = self.checker.borrow_mut().committed(changes, scene, planned.as_ref());
        drop((agents, connections, locks));
        // Whoever has a job tried again takes it upon himself that its agent may
        // have done the work.
        let retried = std::mem::take(&mut self.checker.borrow_mut().retried);
        self.agents.borrow_mut().leave.extend(retried);
        if let Err(broken) = seen {
            self.violate(broken);
        }
    }

    /// Owners with something that could start now.
    pub fn waiting_owners(&self) -> BTreeSet<String> {
        let (agents, connections, locks) = (self.agents.borrow(), self.connections.borrow(), self.locks.borrow());
        let scene = Scene { now: self.now(), agents: &agents, connections: &connections, locks: &locks };
        self.checker.borrow().waiting_owners(scene, &self.resting())
    }

    /// Slots that are free.
    pub fn free_slots(&self) -> usize {
        self.checker.borrow().free_slots(&self.agents.borrow())
    }

    /// Milliseconds since 1970.
    pub fn now(&self) -> u64 {
        self.clock.get()
    }

    /// Whether a team is connected in this process.
    pub fn connected(&self, owner: &str, team: &str) -> bool {
        self.connections.borrow().contains(&(owner.into(), team.into()))
    }

    /// Runs one command of one actor. Nothing: it was given up.
    pub fn command(
        &self,
        name: impl FnOnce() -> String,
        planned: Option<BTreeSet<String>>,
        run: impl FnOnce() -> Result<Value, Error>,
    ) -> Option<Result<Value, Error>> {
        self.steps.set(self.steps.get() + 1);
        self.note(name);
        let depth = self.frames.borrow().len();
        self.frames.borrow_mut().push(Frame { planned, ..Frame::default() });
        let ended = catch_unwind(AssertUnwindSafe(run));
        let frame = {
            let mut frames = self.frames.borrow_mut();
            frames.truncate(depth + 1);
            frames.pop().unwrap_or_default()
        };
        match ended {
            Ok(reply) => {
                self.note(|| match &reply {
                    Ok(value) => format!("  → {}", brief(value)),
                    Err(e) => format!("  → {:?} {}: {}", e.kind, e.code, e.message),
                });
                if let Err(e) = &reply {
                    if matches!(e.kind, Kind::Internal) {
                        self.violate(format!("an internal error: {} {}", e.code, e.message));
                    }
                    if frame.commits > 0 && !matches!(e.kind, Kind::Unknown) {
                        self.note(|| format!("  ({} commits before the refusal)", frame.commits));
                    }
                }
                Some(reply.map_err(|mut e| {
                    e.detail = Some(serde_json::json!({"commits": frame.commits}));
                    e
                }))
            }
            Err(payload) => match payload.downcast::<Abandoned>() {
                Ok(how) => match *how {
                    Abandoned::Process if depth > 1 => resume_unwind(Box::new(Abandoned::Process)),
                    Abandoned::Process => {
                        self.restart();
                        None
                    }
                    Abandoned::Call => None,
                },
                Err(other) => {
                    let text = other
                        .downcast_ref::<String>()
                        .cloned()
                        .or_else(|| other.downcast_ref::<&str>().map(|s| (*s).to_string()));
                    self.violate(format!("a panic: {}", text.unwrap_or_default()));
                    None
                }
            },
        }
    }

    /// A new process: what only the old one knew is gone.
    pub fn restart(&self) {
        self.note(|| "the process starts again".into());
        self.crashes.set(self.crashes.get() + 1);
        self.locks.borrow_mut().clear();
        self.connections.borrow_mut().clear();
        self.positions.borrow_mut().clear();
        self.resting.borrow_mut().clear();
        self.agents.borrow_mut().ended.clear();
    }

    /// Enters a capability into the table.
    pub fn bind(&self, owner: &str, team: &str) {
        self.connections.borrow_mut().insert((owner.into(), team.into()));
    }
}

fn brief(value: &Value) -> String {
    let job = &value["job"];
    if job.is_object() {
        return format!("{} {} {}", job["id"], job["status"], job["reason"]["code"]);
    }
    if let Some(team) = value.get("team") {
        return format!(
            "{} ready {} connected {} {}",
            team["id"], team["ready"], team["connected"], team["reason"]["code"]
        );
    }
    value.to_string()
}

/// A lock, released when dropped.
struct Held<'w> {
    world: &'w World,
    name: String,
    depth: usize,
}

impl Guard for Held<'_> {}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.world.locks.borrow_mut().remove(&self.name);
        if !self.name.starts_with("step/")
            && let Some(frame) = self.world.frames.borrow_mut().get_mut(self.depth)
        {
            frame.commit_locks = frame.commit_locks.saturating_sub(1);
        }
    }
}

impl Host for World {
    fn begin(&self) -> Result<Box<dyn Tx + '_>, StoreError> {
        if self.fault(self.knobs.store_unavailable) {
            return Err(StoreError::Unavailable("injected".into()));
        }
        Ok(Box::new(SimTx::begin(self)))
    }

    fn lock(&self, name: &str, _timeout_ms: u32) -> Result<Box<dyn Guard + '_>, LockTimeout> {
        if self.fault(self.knobs.lock_timeout) || !self.locks.borrow_mut().insert(name.into()) {
            return Err(LockTimeout);
        }
        if !name.starts_with("step/") {
            self.frame(|f| f.commit_locks += 1);
        }
        let depth = self.frames.borrow().len() - 1;
        Ok(Box::new(Held { world: self, name: name.into(), depth }))
    }

    fn lookup(&self, owner: &str, team: &str) -> Option<Box<dyn Runs + '_>> {
        self.connected(owner, team)
            .then(|| Box::new(Capability { world: self, owner: owner.into() }) as Box<dyn Runs + '_>)
    }

    fn forget(&self, owner: &str, team: &str) {
        self.connections.borrow_mut().remove(&(owner.into(), team.into()));
    }

    fn publish(&self, owner: &str, topic: &str, _revision: u64) {
        *self.positions.borrow_mut().entry((owner.into(), topic.into())).or_default() += 1;
        self.crash_point("after a signal");
    }

    fn position(&self, owner: &str, topic: &str) -> u64 {
        self.positions.borrow().get(&(owner.into(), topic.into())).copied().unwrap_or(0)
    }

    fn settings(&self) -> String {
        self.knobs.settings.clone()
    }

    fn log(&self, level: Level, message: &str) {
        self.note(|| format!("  log: {message}"));
        if level == Level::Error {
            self.violate(format!("the component logs an error: {message}"));
        }
    }

    fn now_ms(&self) -> u64 {
        self.now()
    }

    fn random(&self, bytes: usize) -> Vec<u8> {
        let mut rng = self.rng.borrow_mut();
        (0..bytes).map(|_| rng.next() as u8).collect()
    }
}
