//! The exports: all calls end in `behaviour`.

extern crate alloc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use crate::behaviour::{act, refusal, resume};
use crate::bindings::agent_teams::plugin::agent_runs::Runs;
use crate::bindings::agent_teams::plugin::settings;
use crate::bindings::agent_teams::plugin::types::{Caller, Error, ErrorKind, Outcome, Wake};
use crate::bindings::exports::agent_teams::plugin::{lifecycle, mentions, routes, tools, worker};

pub struct Guest;

/// What the settings make of a schema.
fn schema() -> String {
    if settings::get() == "bad schemas" { "{".to_string() } else { "{}".to_string() }
}

impl tools::Guest for Guest {
    fn list() -> Vec<tools::Tool> {
        vec![tools::Tool { name: "echo".to_string(), description: String::new(), input_schema: schema() }]
    }
    fn call(caller: Caller, runs: Option<&Runs>, name: String, arguments: String) -> Result<Outcome, Error> {
        act(&caller, runs, &name, &arguments)
    }
    fn resume_call(caller: Caller, token: String, wake: Wake) -> Result<Outcome, Error> {
        resume(&caller, &token, wake)
    }
}

impl mentions::Guest for Guest {
    fn search(caller: Caller, query: String) -> Result<Vec<mentions::Hit>, Error> {
        Ok(vec![mentions::Hit { team: caller.owner, member: query, label: String::new(), description: String::new() }])
    }
    fn dispatch(caller: Caller, runs: &Runs, message: mentions::Message) -> Result<String, Error> {
        let references: Vec<_> = message.references.iter().map(|r| format!("{}/{}", r.team, r.member)).collect();
        let thread = runs.create_thread(&message.id, "agent", &message.text);
        Ok(format!("{:?}", format!("{} {references:?} {thread:?}", caller.owner)))
    }
}

impl routes::Guest for Guest {
    fn actions() -> Vec<routes::Action> {
        vec![routes::Action {
            name: "echo".to_string(),
            description: String::new(),
            input_schema: schema(),
            writes: false,
        }]
    }
    fn call(caller: Caller, runs: Option<&Runs>, action: String, payload: String) -> Result<Outcome, Error> {
        act(&caller, runs, &action, &payload)
    }
    fn resume_call(caller: Caller, token: String, wake: Wake) -> Result<Outcome, Error> {
        resume(&caller, &token, wake)
    }
    fn assets() -> Vec<routes::AssetInfo> {
        vec![routes::AssetInfo { path: "a".to_string(), media_type: "text/plain".to_string(), sha256: String::new() }]
    }
    fn read_asset(path: String) -> Result<routes::Asset, Error> {
        if path == "a" {
            Ok(routes::Asset { media_type: "text/plain".to_string(), body: b"bytes".to_vec() })
        } else {
            Err(refusal(ErrorKind::NotFound, "no_asset"))
        }
    }
}

impl worker::Guest for Guest {
    fn plan(
        ended: Vec<worker::EndedRun>,
        sweep: bool,
        resting: Vec<worker::TeamRef>,
    ) -> Result<worker::PlanResult, Error> {
        let steps = ended
            .into_iter()
            .map(|e| worker::Step {
                owner: e.thread,
                team: e.run,
                permit: format!("{{\"resting\":{}}}", resting.len()),
            })
            .collect();
        Ok(worker::PlanResult { steps, connect: Vec::new(), next_ms: sweep.into() })
    }
    fn advance(owner: String, _team: String, permit: String) -> Result<bool, Error> {
        Ok(permit == owner)
    }
    fn connect(owner: String, team: String, runs: &Runs) -> Result<(), Error> {
        crate::behaviour::bind(&owner, &team, runs)
    }
    fn slots() -> Result<String, Error> {
        Ok("[]".to_string())
    }
    fn settle(_owner: String, _team: String, job: String) -> Result<String, Error> {
        Ok(format!("{job:?}"))
    }
}

impl lifecycle::Guest for Guest {
    fn info() -> lifecycle::Component {
        lifecycle::Component {
            name: "test guest".to_string(),
            version: "1".to_string(),
            contract: "0.1.0".to_string(),
            store_format: 1,
            limits: "{}".to_string(),
        }
    }
    fn open() -> Result<(), Error> {
        if settings::get() == "refuse" { Err(refusal(ErrorKind::Invalid, "settings")) } else { Ok(()) }
    }
}
