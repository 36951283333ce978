//! The exports: map, call, map back.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::imports::{Capability, Imports};
use crate::app;
use crate::app::commands::{mention, open, search, settle};
use crate::app::scheduling::{advance, connection, plan};
use crate::app::{Caller, Ctx, Wake};
use crate::bindings::agent_teams::plugin::agent_runs::Runs as RunsResource;
use crate::bindings::agent_teams::plugin::types;
use crate::bindings::exports::agent_teams::plugin::{lifecycle, mentions, routes, tools, worker};
use crate::domain::error::{Error, Kind, Result};
use crate::domain::limits;
use crate::exports::{self, assets};
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
            token: park.token,
        }),
    }
}

/// No action waits.
fn no_such_wait() -> types::Error {
    refuse(Error::new(Kind::NotFound, "wait_not_found", "No call of this component waits under this token."))
}

impl tools::Guest for Plugin {
    fn list() -> Vec<tools::Tool> {
        let entries = exports::tools::tools();
        let tool = |e: exports::Entry| tools::Tool {
            name: e.name.to_string(),
            description: e.description,
            input_schema: e.schema,
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
        token: String,
        wake: types::Wake,
    ) -> core::result::Result<types::Outcome, types::Error> {
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

impl routes::Guest for Plugin {
    fn actions() -> Vec<routes::Action> {
        let action = |e: exports::Entry| routes::Action {
            name: e.name.to_string(),
            description: e.description,
            input_schema: e.schema,
            writes: e.writes,
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

    fn resume_call(_: types::Caller, _: String, _: types::Wake) -> core::result::Result<types::Outcome, types::Error> {
        Err(no_such_wait())
    }

    fn assets() -> Vec<routes::AssetInfo> {
        let info = |file: &assets::File| routes::AssetInfo {
            path: file.path.into(),
            media_type: file.media_type.into(),
            sha256: file.sha256(),
        };
        assets::FILES.iter().map(info).collect()
    }

    fn read_asset(path: String) -> core::result::Result<routes::Asset, types::Error> {
        let file = assets::read(&path).map_err(refuse)?;
        Ok(routes::Asset { media_type: file.media_type.into(), body: file.body.to_vec() })
    }
}

impl worker::Guest for Plugin {
    fn plan(
        ended: Vec<worker::EndedRun>,
        sweep: bool,
        resting: Vec<worker::TeamRef>,
    ) -> core::result::Result<worker::PlanResult, types::Error> {
        let ended: Vec<plan::EndedRun> =
            ended.into_iter().map(|e| plan::EndedRun { thread: e.thread, run: e.run }).collect();
        let resting: Vec<(String, String)> = resting.into_iter().map(|t| (t.owner, t.team)).collect();
        let plan = plan::plan(&Imports, &ended, sweep, &resting).map_err(refuse)?;
        let step = |s: plan::PlannedStep| worker::Step { owner: s.owner, team: s.team, permit: s.permit };
        Ok(worker::PlanResult {
            steps: plan.steps.into_iter().map(step).collect(),
            connect: plan.connect.into_iter().map(|(owner, team)| worker::TeamRef { owner, team }).collect(),
            next_ms: plan.next_ms,
        })
    }

    fn advance(owner: String, team: String, permit: String) -> core::result::Result<bool, types::Error> {
        advance::advance(&Imports, &owner, &team, &permit).map_err(refuse)
    }

    fn connect(owner: String, team: String, runs: &RunsResource) -> core::result::Result<(), types::Error> {
        connection::ensure(&Imports, &owner, &team, &Capability(runs)).map_err(refuse)
    }

    fn slots() -> core::result::Result<String, types::Error> {
        let slots = settle::slots(&Imports).map_err(refuse)?;
        Ok(serde_json::to_string(&slots).unwrap_or_default())
    }

    fn settle(owner: String, team: String, job: String) -> core::result::Result<String, types::Error> {
        let reply = settle::settle_as_operator(&Imports, &owner, &team, &job).map_err(refuse)?;
        Ok(serde_json::to_string(&reply).unwrap_or_default())
    }
}

impl lifecycle::Guest for Plugin {
    fn info() -> lifecycle::Component {
        let slots = app::settings::settings(&Imports).map_or(limits::SLOTS, |s| s.slots);
        lifecycle::Component {
            name: "community.agent-teams".to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            contract: "agent-teams:plugin@0.1.0".to_string(),
            store_format: STORE_FORMAT,
            limits: serde_json::to_string(&limits::report(slots)).unwrap_or_default(),
        }
    }

    fn open() -> core::result::Result<(), types::Error> {
        open::open(&Imports).map_err(refuse)
    }
}
