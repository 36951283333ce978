//! The exports: map, call, map back.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::imports::{Capability, Imports};
use crate::app;
use crate::app::commands::{mention, open, operator as for_operator, search};
use crate::app::scheduling::{advance, connection, plan};
use crate::app::{Caller, Ctx, Wake};
use crate::bindings::agent_teams::plugin::agent_runs::Runs as RunsResource;
use crate::bindings::agent_teams::plugin::types;
use crate::bindings::exports::agent_teams::plugin::{
    actions, assets as page, lifecycle, mentions, operator, tools, worker,
};
use crate::domain::error::{Error, Kind, Result};
use crate::domain::limits;
use crate::exports::{self, Effect, assets};
use crate::host::Runs;
use crate::store::records::STORE_FORMAT;

struct Plugin;

crate::bindings::export!(Plugin with_types_in crate::bindings);

fn refuse(error: Error) -> types::Error {
    let kind = match error.kind {
        Kind::Invalid => types::ErrorKind::Invalid,
        Kind::NotFound => types::ErrorKind::NotFound,
        Kind::Denied => types::ErrorKind::Denied,
        Kind::Conflict => types::ErrorKind::Conflict,
        Kind::Limit => types::ErrorKind::Limit,
        Kind::Unavailable => types::ErrorKind::Unavailable,
        Kind::Unknown => types::ErrorKind::Unknown,
        Kind::Internal => types::ErrorKind::Internal,
        Kind::Unsupported => types::ErrorKind::Unsupported,
    };
    types::Error {
        kind,
        code: error.code.into_owned(),
        message: error.message,
        field: error.field,
        detail: error.detail.and_then(|d| serde_json::to_string(&d).ok()),
    }
}

fn caller(caller: types::Caller) -> Caller {
    Caller {
        owner: caller.owner,
        thread: caller.thread,
        ancestors: caller.ancestors,
        run: caller.run,
        call: caller.call,
    }
}

/// Calls `f` with everything a command has at hand.
fn with<T>(
    given: types::Caller,
    runs: Option<&RunsResource>,
    f: impl FnOnce(Ctx) -> Result<T>,
) -> core::result::Result<T, types::Error> {
    let caller = caller(given);
    let lent = runs.map(Capability);
    let runs = lent.as_ref().map(|r| r as &dyn Runs);
    f(Ctx { host: &Imports, caller: &caller, runs }).map_err(refuse)
}

fn outcome(outcome: exports::Outcome) -> types::Outcome {
    match outcome {
        exports::Outcome::Done(json) => types::Outcome::Done(json),
        exports::Outcome::Park(park) => types::Outcome::Park(types::Parked {
            topic: park.topic,
            seen: park.seen,
            timeout_ms: park.timeout_ms,
            token: park.token.into_bytes(),
        }),
    }
}

/// What the component has made itself comes back as it was.
fn own_text(bytes: Vec<u8>, what: &'static str) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::invalid("bad_token", what, "This was not made by the component."))
}

/// No action waits.
fn no_such_wait() -> types::Error {
    refuse(Error::new(Kind::NotFound, "wait_not_found", "No call of this component waits under this token."))
}

impl tools::Guest for Plugin {
    fn list(_profile: String) -> Vec<tools::Tool> {
        let entries = exports::tools::tools();
        let tool = |e: exports::Entry| tools::Tool {
            name: e.name.to_string(),
            title: e.title.to_string(),
            description: e.description,
            input_schema: e.schema,
            output_schema: None,
            read_only: e.effect == Effect::Reads,
            idempotent: e.effect.idempotent(),
            destructive: e.effect == Effect::Changes,
            command: e.name.to_string(),
        };
        entries.into_iter().map(tool).collect()
    }

    fn call(
        given: types::Caller,
        runs: Option<&RunsResource>,
        name: String,
        arguments: String,
    ) -> core::result::Result<types::Outcome, types::Error> {
        with(given, runs, |ctx| exports::tools::call(ctx, &name, &arguments)).map(outcome)
    }

    fn resume_call(
        given: types::Caller,
        token: Vec<u8>,
        wake: types::Wake,
    ) -> core::result::Result<types::Outcome, types::Error> {
        let token = own_text(token, "token").map_err(refuse)?;
        let wake = match wake {
            types::Wake::Signalled => Wake::Signalled,
            types::Wake::TimedOut => Wake::TimedOut,
            types::Wake::Closed => Wake::Closed,
        };
        with(given, None, |ctx| exports::tools::resume(ctx, &token, wake)).map(outcome)
    }
}

impl mentions::Guest for Plugin {
    fn search(given: types::Caller, query: String) -> core::result::Result<Vec<mentions::Hit>, types::Error> {
        let hits = with(given, None, |ctx| {
            app::check_caller(ctx.caller)?;
            search::hits(ctx, &query)
        })?;
        let hit = |h: search::Hit| mentions::Hit {
            team: h.team,
            member: h.member,
            label: h.label,
            description: h.description,
        };
        Ok(hits.into_iter().map(hit).collect())
    }

    fn dispatch(
        given: types::Caller,
        runs: &RunsResource,
        message: mentions::Message,
    ) -> core::result::Result<String, types::Error> {
        let reference = |r: mentions::Reference| mention::Reference { team: r.team, member: r.member };
        let mention = mention::Mention {
            id: message.id,
            text: message.text,
            references: message.references.into_iter().map(reference).collect(),
        };
        with(given, Some(runs), |ctx| {
            app::check_caller(ctx.caller)?;
            let reply = mention::dispatch(ctx, &mention)?;
            serde_json::to_string(&reply).map_err(|_| Error::internal("a reply cannot be written"))
        })
    }
}

impl actions::Guest for Plugin {
    fn list() -> Vec<actions::Action> {
        let action = |e: exports::Entry| actions::Action {
            name: e.name.to_string(),
            description: e.description,
            input_schema: e.schema,
            output_schema: None,
            read_only: e.effect == Effect::Reads,
            needs_runs: exports::actions::needs_runs(e.name),
        };
        exports::actions::actions().into_iter().map(action).collect()
    }

    fn call(
        given: types::Caller,
        runs: Option<&RunsResource>,
        action: String,
        payload: String,
    ) -> core::result::Result<types::Outcome, types::Error> {
        with(given, runs, |ctx| exports::actions::call(ctx, &action, &payload)).map(outcome)
    }

    fn resume_call(_: types::Caller, _: Vec<u8>, _: types::Wake) -> core::result::Result<types::Outcome, types::Error> {
        Err(no_such_wait())
    }
}

impl page::Guest for Plugin {
    fn list() -> Vec<page::AssetInfo> {
        let info = |file: &assets::File| page::AssetInfo {
            path: file.path.into(),
            media_type: file.media_type.into(),
            sha256: file.sha256(),
        };
        assets::FILES.iter().map(info).collect()
    }

    fn read(path: String) -> core::result::Result<page::Asset, types::Error> {
        let file = assets::read(&path).map_err(refuse)?;
        Ok(page::Asset { media_type: file.media_type.into(), body: file.body.to_vec() })
    }
}

impl worker::Guest for Plugin {
    fn plan(
        moved: Vec<worker::Moved>,
        sweep: bool,
        backing_off: Vec<worker::TeamRef>,
    ) -> core::result::Result<worker::PlanResult, types::Error> {
        let of = |m: worker::Moved| plan::Moved { owner: m.owner, thread: m.thread, run: m.run };
        let moved: Vec<plan::Moved> = moved.into_iter().map(of).collect();
        let backing_off: Vec<(String, String)> = backing_off.into_iter().map(|t| (t.owner, t.team)).collect();
        let plan = plan::plan(&Imports, &moved, sweep, &backing_off).map_err(refuse)?;
        let step = |s: plan::PlannedStep| worker::Step { owner: s.owner, team: s.team, permit: s.permit.into_bytes() };
        Ok(worker::PlanResult {
            batch: None,
            steps: plan.steps.into_iter().map(step).collect(),
            connect: plan.connect.into_iter().map(|(owner, team)| worker::TeamRef { owner, team }).collect(),
            next_ms: plan.next_ms,
        })
    }

    /// `plan` gives no batch yet.
    fn admit(_batch: Vec<u8>) -> core::result::Result<Vec<worker::Step>, types::Error> {
        Ok(Vec::new())
    }

    fn advance(owner: String, team: String, permit: Vec<u8>) -> core::result::Result<bool, types::Error> {
        let permit = own_text(permit, "permit").map_err(refuse)?;
        advance::advance(&Imports, &owner, &team, &permit).map_err(refuse)
    }

    fn connect(owner: String, team: String, runs: &RunsResource) -> core::result::Result<(), types::Error> {
        connection::ensure(&Imports, &owner, &team, &Capability(runs)).map_err(refuse)
    }
}

impl operator::Guest for Plugin {
    fn slots() -> core::result::Result<Vec<operator::HeldSlot>, types::Error> {
        let holder = |job: for_operator::Holder| operator::Holder {
            owner: job.owner,
            team: job.team,
            job: job.job,
            thread: job.thread,
            kind: job.kind.map(ToString::to_string),
            status: job.status.to_string(),
            reason: job.reason,
            since: job.since,
            connected: job.connected,
        };
        let slots = for_operator::slots(&Imports).map_err(refuse)?;
        Ok(slots.into_iter().map(|held| operator::HeldSlot { slot: held.slot, job: held.job.map(holder) }).collect())
    }

    fn settle(owner: String, team: String, job: String) -> core::result::Result<operator::Settled, types::Error> {
        let settled = for_operator::settle(&Imports, &owner, &team, &job).map_err(refuse)?;
        Ok(operator::Settled {
            owner: settled.owner,
            team: settled.team,
            job: settled.job,
            thread: settled.thread,
            kind: settled.kind,
            status: settled.status,
            error: settled.error,
            completed_at: settled.completed_at,
        })
    }

    fn pause(_: Option<String>, _: bool) -> core::result::Result<(), types::Error> {
        Err(refuse(Error::unsupported("operator.pause")))
    }

    fn erase_owner(_: String) -> core::result::Result<bool, types::Error> {
        Err(refuse(Error::unsupported("operator.erase-owner")))
    }

    fn export(_: String, _: Option<String>) -> core::result::Result<operator::Part, types::Error> {
        Err(refuse(Error::unsupported("operator.export")))
    }

    fn import(_: String, _: operator::Part) -> core::result::Result<(), types::Error> {
        Err(refuse(Error::unsupported("operator.import")))
    }
}

impl lifecycle::Guest for Plugin {
    fn info() -> lifecycle::Component {
        let settings = app::settings::settings(&Imports);
        let (slots, tasks) = settings.map_or((limits::SLOTS, limits::BOARD_TASKS), |s| (s.slots, s.board_tasks));
        lifecycle::Component {
            name: "community.agent-teams".to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            contract: "agent-teams:plugin@0.2.0-draft".to_string(),
            store_format: STORE_FORMAT,
            limits: serde_json::to_string(&limits::report(slots, tasks)).unwrap_or_default(),
        }
    }

    fn init() -> core::result::Result<(), types::Error> {
        open::open(&Imports).map_err(refuse)
    }

    fn check(_: bool, _: Option<String>) -> core::result::Result<lifecycle::Checked, types::Error> {
        Err(refuse(Error::unsupported("lifecycle.check")))
    }
}
