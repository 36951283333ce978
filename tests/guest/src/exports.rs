//! The exports: all calls end in `behaviour`.

extern crate alloc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use crate::behaviour::{act, refusal, resume};
use crate::bindings::agent_teams::plugin::agent_runs::Runs;
use crate::bindings::agent_teams::plugin::settings;
use crate::bindings::agent_teams::plugin::types::{Caller, Error, ErrorKind, Outcome, Wake};
use crate::bindings::exports::agent_teams::plugin::{actions, assets, lifecycle, mentions, operator, tools, worker};

pub struct Guest;

/// What the settings make of a schema.
fn schema() -> String {
    if settings::get() == "bad schemas" { "{".to_string() } else { "{}".to_string() }
}

impl tools::Guest for Guest {
    fn list(_profile: String) -> Vec<tools::Tool> {
        vec![tools::Tool {
            name: "echo".to_string(),
            title: "Echo".to_string(),
            description: String::new(),
            input_schema: schema(),
            output_schema: None,
            read_only: true,
            idempotent: true,
            destructive: false,
            command: "echo".to_string(),
        }]
    }
    fn call(caller: Caller, runs: Option<&Runs>, name: String, arguments: String) -> Result<Outcome, Error> {
        act(&caller, runs, &name, &arguments)
    }
    fn resume_call(caller: Caller, token: Vec<u8>, wake: Wake) -> Result<Outcome, Error> {
        resume(&caller, &String::from_utf8(token).unwrap_or_default(), wake)
    }
}

impl mentions::Guest for Guest {
    fn search(caller: Caller, query: String) -> Result<Vec<mentions::Hit>, Error> {
        Ok(vec![mentions::Hit { team: caller.owner, member: query, label: String::new(), description: String::new() }])
    }
    fn dispatch(caller: Caller, runs: &Runs, message: mentions::Message) -> Result<String, Error> {
        let references: Vec<_> = message.references.iter().map(|r| format!("{}/{}", r.team, r.member)).collect();
        let thread = runs.create_thread(&message.id, "agent", &message.text, "group");
        Ok(format!("{:?}", format!("{} {references:?} {thread:?}", caller.owner)))
    }
}

impl actions::Guest for Guest {
    fn list() -> Vec<actions::Action> {
        vec![actions::Action {
            name: "echo".to_string(),
            description: String::new(),
            input_schema: schema(),
            output_schema: None,
            read_only: true,
            needs_runs: false,
        }]
    }
    fn call(caller: Caller, runs: Option<&Runs>, action: String, payload: String) -> Result<Outcome, Error> {
        act(&caller, runs, &action, &payload)
    }
    fn resume_call(caller: Caller, token: Vec<u8>, wake: Wake) -> Result<Outcome, Error> {
        resume(&caller, &String::from_utf8(token).unwrap_or_default(), wake)
    }
}

impl assets::Guest for Guest {
    fn list() -> Vec<assets::AssetInfo> {
        vec![assets::AssetInfo { path: "a".to_string(), media_type: "text/plain".to_string(), sha256: String::new() }]
    }
    fn read(path: String) -> Result<assets::Asset, Error> {
        if path == "a" {
            Ok(assets::Asset { media_type: "text/plain".to_string(), body: b"bytes".to_vec() })
        } else {
            Err(refusal(ErrorKind::NotFound, "no_asset"))
        }
    }
}

impl worker::Guest for Guest {
    fn plan(
        moved: Vec<worker::Moved>,
        sweep: bool,
        backing_off: Vec<worker::TeamRef>,
    ) -> Result<worker::PlanResult, Error> {
        let steps = moved
            .into_iter()
            .map(|e| worker::Step {
                owner: e.thread,
                team: e.run,
                permit: format!("{{\"backing_off\":{}}}", backing_off.len()).into_bytes(),
            })
            .collect();
        Ok(worker::PlanResult { batch: None, steps, connect: Vec::new(), next_ms: sweep.into() })
    }
    fn admit(_batch: Vec<u8>) -> Result<Vec<worker::Step>, Error> {
        Ok(Vec::new())
    }
    fn advance(owner: String, _team: String, permit: Vec<u8>) -> Result<bool, Error> {
        Ok(permit == owner.as_bytes())
    }
    fn connect(owner: String, team: String, runs: &Runs) -> Result<(), Error> {
        crate::behaviour::bind(&owner, &team, runs)
    }
}

impl operator::Guest for Guest {
    fn slots() -> Result<Vec<operator::HeldSlot>, Error> {
        Ok(Vec::new())
    }
    fn settle(owner: String, team: String, job: String) -> Result<operator::Settled, Error> {
        Ok(operator::Settled {
            owner,
            team,
            job,
            thread: String::new(),
            kind: None,
            status: "failed".to_string(),
            error: None,
            completed_at: None,
        })
    }
    fn pause(_: Option<String>, _: bool) -> Result<(), Error> {
        Err(refusal(ErrorKind::Unsupported, "unsupported"))
    }
    fn erase_owner(_: String) -> Result<bool, Error> {
        Err(refusal(ErrorKind::Unsupported, "unsupported"))
    }
    fn export(_: String, _: Option<String>) -> Result<operator::Part, Error> {
        Err(refusal(ErrorKind::Unsupported, "unsupported"))
    }
    fn import(_: String, _: operator::Part) -> Result<(), Error> {
        Err(refusal(ErrorKind::Unsupported, "unsupported"))
    }
}

impl lifecycle::Guest for Guest {
    fn info() -> lifecycle::Component {
        lifecycle::Component {
            name: "test guest".to_string(),
            version: "1".to_string(),
            contract: "0.2.0-draft".to_string(),
            store_format: 1,
            limits: "{}".to_string(),
        }
    }
    fn check(_: bool, _: Option<String>) -> Result<lifecycle::Checked, Error> {
        Err(refusal(ErrorKind::Unsupported, "unsupported"))
    }
    fn init() -> Result<(), Error> {
        if settings::get() == "refuse" { Err(refusal(ErrorKind::Invalid, "settings")) } else { Ok(()) }
    }
}
