//! The component's logic as a library, over the in-memory store.

use agent_teams_host::contract::{self, Caller, EndedRun, ErrorKind, MentionMessage, Plan, Refusal, TeamRef};
use agent_teams_plugin::app;
use agent_teams_plugin::app::Ctx;
use agent_teams_plugin::domain::error::{Error, Kind};
use agent_teams_plugin::exports;
use agent_teams_plugin::host::{Host, Runs};
use serde_json::{Value, json};

use crate::clock::FakeClock;
use crate::double::Double;
use crate::native::{MemoryStore, NativeHost};

pub(super) struct Native {
    host: NativeHost,
}

fn refusal(error: Error) -> Refusal {
    let kind = match error.kind {
        Kind::Invalid => ErrorKind::Invalid,
        Kind::NotFound => ErrorKind::NotFound,
        Kind::Denied => ErrorKind::Denied,
        Kind::Conflict => ErrorKind::Conflict,
        Kind::Limit => ErrorKind::Limit,
        Kind::Unavailable => ErrorKind::Unavailable,
        Kind::Unknown => ErrorKind::Unknown,
        Kind::Internal => ErrorKind::Internal,
        Kind::Unsupported => ErrorKind::Unsupported,
    };
    Refusal { kind, code: error.code.into(), message: error.message, field: error.field, detail: error.detail }
}

fn text(reply: Value) -> String {
    reply.to_string()
}

/// Nothing here waits; the tests of waits call the component's logic itself.
fn done(outcome: exports::Outcome) -> String {
    match outcome {
        exports::Outcome::Done(text) => text,
        exports::Outcome::Park(park) => panic!("the call waits for {}", park.topic),
    }
}

fn guest(caller: &Caller) -> app::Caller {
    app::Caller {
        owner: caller.owner.clone(),
        thread: caller.thread.clone(),
        ancestors: caller.ancestors.clone(),
        run: caller.run.clone(),
        call: caller.call.clone(),
    }
}

impl Native {
    pub fn new(clock: FakeClock, seed: u64, settings: &str) -> Self {
        let host = NativeHost::new(MemoryStore::default(), clock, seed);
        host.set_settings(settings);
        let native = Self { host };
        native.open().unwrap_or_else(|e| panic!("open: {e}"));
        native
    }

    pub fn host(&self) -> &NativeHost {
        &self.host
    }

    pub fn raw(&self, key: &str) -> Option<String> {
        self.host.store().dump().into_iter().find(|(k, _)| k == key).map(|(_, value)| value)
    }

    pub fn settings(&self) -> String {
        self.host.settings()
    }

    pub fn restart(&mut self, settings: &str) {
        self.host = self.host.restarted();
        self.host.set_settings(settings);
        self.open().unwrap_or_else(|e| panic!("open: {e}"));
    }

    pub fn open(&self) -> Result<(), Refusal> {
        app::commands::open::open(&self.host).map_err(refusal)
    }

    pub fn action(
        &self,
        double: &Double,
        caller: &Caller,
        runs: bool,
        action: &str,
        payload: &str,
    ) -> Result<String, Refusal> {
        let runs = runs.then(|| self.host.runs(double, &caller.owner));
        let runs = runs.as_ref().map(|r| r as &dyn Runs);
        let caller = guest(caller);
        let ctx = Ctx { host: &self.host, caller: &caller, runs };
        exports::actions::call(ctx, action, payload).map(done).map_err(refusal)
    }

    pub fn tool(&self, caller: &Caller, tool: &str, arguments: &str) -> Result<String, Refusal> {
        let caller = guest(caller);
        let ctx = Ctx { host: &self.host, caller: &caller, runs: None };
        exports::tools::call(ctx, tool, arguments).map(done).map_err(refusal)
    }

    pub fn mention(&self, double: &Double, caller: &Caller, message: &MentionMessage) -> Result<String, Refusal> {
        let runs = self.host.runs(double, &caller.owner);
        let caller = guest(caller);
        let references = message
            .references
            .iter()
            .map(|r| app::commands::mention::Reference { team: r.team.clone(), member: r.member.clone() });
        let mention = app::commands::mention::Mention {
            id: message.id.clone(),
            text: message.text.clone(),
            references: references.collect(),
        };
        let ctx = Ctx { host: &self.host, caller: &caller, runs: Some(&runs) };
        app::commands::mention::dispatch(ctx, &mention).map(text).map_err(refusal)
    }

    pub fn plan(&self, ended: &[EndedRun], sweep: bool, resting: &[TeamRef]) -> Result<Plan, Refusal> {
        let moved = |e: &EndedRun| app::scheduling::plan::Moved {
            owner: e.owner.clone(),
            thread: e.thread.clone(),
            run: e.run.clone(),
        };
        let ended: Vec<_> = ended.iter().map(moved).collect();
        let resting: Vec<_> = resting.iter().map(|t| (t.owner.clone(), t.team.clone())).collect();
        let plan = app::scheduling::plan::plan(&self.host, &ended, sweep, &resting).map_err(refusal)?;
        let team = |owner: String, team: String| TeamRef { owner, team };
        Ok(Plan {
            batch: None,
            steps: plan
                .steps
                .into_iter()
                .map(|s| contract::Step { team: team(s.owner, s.team), permit: s.permit.into_bytes() })
                .collect(),
            connect: plan.connect.into_iter().map(|(o, t)| team(o, t)).collect(),
            next_ms: plan.next_ms,
        })
    }

    pub fn advance(&self, step: &contract::Step) -> Result<bool, Refusal> {
        let permit = String::from_utf8(step.permit.clone()).expect("a permit of the component");
        app::scheduling::advance::advance(&self.host, &step.team.owner, &step.team.team, &permit).map_err(refusal)
    }

    pub fn slots(&self) -> Result<String, Refusal> {
        let slots = app::commands::operator::slots(&self.host).map_err(refusal)?;
        let held = |h: app::commands::operator::HeldSlot| match h.job {
            None => json!({"slot": h.slot, "owner": null, "status": "damaged"}),
            Some(j) => json!({
                "slot": h.slot, "owner": j.owner, "team": j.team, "job": j.job, "thread": j.thread, "since": j.since,
                "kind": j.kind, "status": j.status, "reason": j.reason, "connected": j.connected,
            }),
        };
        Ok(text(slots.into_iter().map(held).collect()))
    }

    pub fn settle(&self, owner: &str, team: &str, job: &str) -> Result<String, Refusal> {
        let job = app::commands::operator::settle(&self.host, owner, team, job).map_err(refusal)?;
        let error = job.error.map(|(code, message)| json!({"code": code, "message": message}));
        Ok(text(json!({"job": {
            "owner": job.owner, "team": job.team, "id": job.job, "kind": job.kind, "status": job.status,
            "thread": job.thread, "error": error, "completed_at": job.completed_at,
        }})))
    }

    pub fn connect(&self, double: &Double, owner: &str, team: &str) -> Result<(), Refusal> {
        let runs = self.host.runs(double, owner);
        app::scheduling::connection::ensure(&self.host, owner, team, &runs).map_err(refusal)
    }
}
