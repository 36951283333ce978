//! A world in which a test lives: the component's logic over a store, a host
//! double, a clock that only the test moves. Each test runs in two: natively,
//! and as the component in its engine over SQLite.

mod component;
mod native;
mod team;

use std::sync::{Mutex, MutexGuard};

use agent_teams_host::contract::{
    Caller, EndedRun, ErrorKind, MentionMessage, MentionReference, Plan, Refusal, Step, TeamRef,
};
use serde_json::{Value, json};

use crate::clock::FakeClock;
use crate::double::Double;
use crate::native::{CommitFault, NativeHost};

pub use component::ComponentOptions;
pub use team::{Member, Team, bytes_of, ids_of, status};

/// The answer of a call: JSON, or a refusal. A trap of the component ends the
/// test.
pub type Answer = Result<Value, Refusal>;

enum Backend {
    Native(native::Native),
    Component(Box<component::Component>),
}

/// Everything that one test sees.
pub struct World {
    backend: Backend,
    pub double: Double,
    pub clock: FakeClock,
    /// Runs that ended and were not handed to a plan yet.
    ended: Mutex<Vec<EndedRun>>,
}

/// Makes each named function a test in both worlds.
#[macro_export]
macro_rules! both {
    ($($name:ident),* $(,)?) => {
        mod native {
            $(#[test] fn $name() { super::$name($crate::harness::World::native()); })*
        }
        mod component {
            $(#[test] fn $name() { super::$name($crate::harness::World::component()); })*
        }
    };
}

impl World {
    pub fn native() -> Self {
        Self::native_with(1, "{}")
    }

    /// With this seed and these settings.
    pub fn native_with(seed: u64, settings: &str) -> Self {
        let clock = FakeClock::default();
        let backend = Backend::Native(native::Native::new(clock.clone(), seed, settings));
        Self { backend, double: Double::default(), clock, ended: Mutex::default() }
    }

    pub fn component() -> Self {
        Self::component_with(ComponentOptions::default())
    }

    pub fn component_with(options: ComponentOptions) -> Self {
        let clock = FakeClock::default();
        let backend = Backend::Component(Box::new(component::Component::new(clock.clone(), options)));
        Self { backend, double: Double::default(), clock, ended: Mutex::default() }
    }

    /// The process ends and another one opens the same store with these
    /// settings: all connections are lost, and so are events under way.
    pub fn restart_with(&mut self, settings: &str) {
        match &mut self.backend {
            Backend::Native(native) => native.restart(settings),
            Backend::Component(component) => component.restart(settings),
        }
        self.double.take_ended();
        self.ended().clear();
    }

    /// The same with the settings as they were.
    pub fn restart(&mut self) {
        let settings = match &self.backend {
            Backend::Native(native) => native.settings(),
            Backend::Component(component) => component.settings(),
        };
        self.restart_with(&settings);
    }

    fn ended(&self) -> MutexGuard<'_, Vec<EndedRun>> {
        self.ended.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The native host, for what only it can do. Nothing in the other world.
    pub fn native_host(&self) -> Option<&NativeHost> {
        match &self.backend {
            Backend::Native(native) => Some(native.host()),
            Backend::Component(_) => None,
        }
    }

    /// The next commits meet these; only natively. False: not here.
    pub fn fail_commits(&self, faults: impl IntoIterator<Item = CommitFault>) -> bool {
        self.native_host().map(|host| host.store().fail_commits(faults)).is_some()
    }

    /// A stored record as it is.
    pub fn raw(&self, key: &str) -> Option<String> {
        match &self.backend {
            Backend::Native(native) => native.raw(key),
            Backend::Component(component) => component.raw(key),
        }
    }

    /// Writes a record past the component, such as one that cannot be read.
    pub fn put_raw(&self, key: &str, value: &str) {
        match &self.backend {
            Backend::Native(native) => native.host().store().put_raw(key, value),
            Backend::Component(component) => component.put_raw(key, value),
        }
    }

    // ---- the contract ---------------------------------------------------

    /// `lifecycle.open`.
    pub fn open(&self) -> Result<(), Refusal> {
        match &self.backend {
            Backend::Native(native) => native.open(),
            Backend::Component(component) => component.open(),
        }
    }

    /// An action with a payload that is sent as it is.
    pub fn action_text(&self, caller: &Caller, runs: bool, action: &str, payload: &str) -> Result<String, Refusal> {
        match &self.backend {
            Backend::Native(native) => native.action(&self.double, caller, runs, action, payload),
            Backend::Component(component) => component.action(&self.double, caller, runs, action, payload),
        }
    }

    /// A tool with arguments that are sent as they are.
    pub fn tool_text(&self, caller: &Caller, tool: &str, arguments: &str) -> Result<String, Refusal> {
        match &self.backend {
            Backend::Native(native) => native.tool(caller, tool, arguments),
            Backend::Component(component) => component.tool(caller, tool, arguments),
        }
    }

    /// An action of the owner, with a capability.
    pub fn action(&self, owner: &str, action: &str, payload: Value) -> Answer {
        let text = self.action_text(&Caller::owner(owner), true, action, &payload.to_string())?;
        Ok(parse(&text))
    }

    /// A tool call from a conversation.
    pub fn tool(&self, caller: &Caller, tool: &str, arguments: Value) -> Answer {
        Ok(parse(&self.tool_text(caller, tool, &arguments.to_string())?))
    }

    /// A message with picked members (team and member ids) in a conversation.
    pub fn mention(&self, owner: &str, thread: &str, id: &str, text: &str, picked: &[(&str, &str)]) -> Answer {
        let caller = Caller { owner: owner.into(), thread: Some(thread.into()), ..Caller::default() };
        let references =
            picked.iter().map(|(team, member)| MentionReference { team: (*team).into(), member: (*member).into() });
        let message = MentionMessage { id: id.into(), text: text.into(), references: references.collect() };
        let text = match &self.backend {
            Backend::Native(native) => native.mention(&self.double, &caller, &message),
            Backend::Component(component) => component.mention(&self.double, &caller, message),
        }?;
        Ok(parse(&text))
    }

    /// `worker.plan`.
    pub fn plan(&self, ended: Vec<EndedRun>, sweep: bool) -> Plan {
        self.plan_while(ended, sweep, &[])
    }

    /// The same while some teams rest since their steps failed.
    pub fn plan_while(&self, ended: Vec<EndedRun>, sweep: bool, resting: &[TeamRef]) -> Plan {
        match &self.backend {
            Backend::Native(native) => native.plan(&ended, sweep, resting),
            Backend::Component(component) => component.plan(ended, sweep, resting),
        }
        .unwrap_or_else(|e| panic!("plan: {e}"))
    }

    /// `worker.advance`.
    pub fn advance(&self, step: &Step) -> Result<bool, Refusal> {
        match &self.backend {
            Backend::Native(native) => native.advance(step),
            Backend::Component(component) => component.advance(step),
        }
    }

    /// `worker.slots`: who holds one.
    pub fn slots(&self) -> Vec<Value> {
        let text = match &self.backend {
            Backend::Native(native) => native.slots(),
            Backend::Component(component) => component.slots(),
        };
        let slots = parse(&text.unwrap_or_else(|e| panic!("slots: {e}")));
        slots.as_array().cloned().unwrap_or_default()
    }

    /// `worker.settle`: the operator ends a job that holds a slot.
    pub fn settle_as_operator(&self, owner: &str, team: &str, job: &str) -> Answer {
        let text = match &self.backend {
            Backend::Native(native) => native.settle(owner, team, job),
            Backend::Component(component) => component.settle(owner, team, job),
        }?;
        Ok(parse(&text))
    }

    /// `worker.connect`: the host reconnects by itself.
    pub fn connect_as_worker(&self, owner: &str, team: &str) -> Result<(), Refusal> {
        match &self.backend {
            Backend::Native(native) => native.connect(&self.double, owner, team),
            Backend::Component(component) => component.connect(&self.double, owner, team),
        }
    }

    // ---- the worker of the tests -----------------------------------------

    /// One pass: hands over what ended, plans, advances every team of the
    /// plan. True: something changed. An error of one team's step is that
    /// team's.
    pub fn pass(&self) -> bool {
        self.pass_with(false)
    }

    /// A pass that also looks at everything that is under way.
    pub fn sweep(&self) -> bool {
        self.pass_with(true)
    }

    fn pass_with(&self, sweep: bool) -> bool {
        let fresh = self.double.take_ended().into_iter().map(|(owner, thread, run)| EndedRun { owner, thread, run });
        let mut ended = self.ended();
        ended.extend(fresh);
        let plan = self.plan(std::mem::take(&mut ended), sweep);
        drop(ended);
        let mut changed = false;
        for step in &plan.steps {
            changed |= self.advance(step).unwrap_or(false);
        }
        changed
    }

    /// Passes until nothing changes any more at this time.
    pub fn work(&self) {
        for _ in 0..1_000 {
            if !self.pass() && self.double_is_quiet() {
                return;
            }
        }
        panic!("the work does not come to rest");
    }

    fn double_is_quiet(&self) -> bool {
        let fresh = self.double.take_ended().into_iter().map(|(owner, thread, run)| EndedRun { owner, thread, run });
        let mut ended = self.ended();
        ended.extend(fresh);
        ended.is_empty()
    }

    /// Moves the clock on, then works.
    pub fn later(&self, ms: u64) {
        self.clock.advance(ms);
        self.work();
    }
}

/// A refusal's code, for short assertions.
pub fn code(answer: &Answer) -> &str {
    match answer {
        Ok(_) => "",
        Err(refusal) => &refusal.code,
    }
}

/// The refusal, or the end of the test.
#[track_caller]
pub fn refused(answer: Answer, code: &str) -> Refusal {
    match answer {
        Ok(value) => panic!("accepted, where `{code}` was expected: {value}"),
        Err(refusal) => {
            assert_eq!(refusal.code, code, "{refusal:?}");
            assert!(!refusal.message.is_empty());
            refusal
        }
    }
}

/// The refusal of an argument, which names the field.
#[track_caller]
pub fn invalid(answer: Answer, code: &str, field: &str) -> Refusal {
    let refusal = refused(answer, code);
    assert_eq!(refusal.kind, ErrorKind::Invalid, "{refusal:?}");
    assert_eq!(refusal.field.as_deref(), Some(field), "{refusal:?}");
    refusal
}

#[track_caller]
pub fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("the answer is not JSON ({e}): {text}"))
}

/// The arguments of `create` for members with these names; the agent of each
/// is "agent-NAME".
pub fn roster(request_id: &str, names: &[&str]) -> Value {
    let members: Vec<Value> = names.iter().map(|n| json!({"name": n, "agent": format!("agent-{n}")})).collect();
    json!({"request_id": request_id, "name": "core", "goal": "Find out.", "members": members})
}
