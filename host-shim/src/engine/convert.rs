//! Between the contract as Wasmtime sees it and the host's own words.

use super::bindings::agent_teams::plugin::types;
use super::bindings::exports::agent_teams::plugin::{lifecycle, mentions, routes, tools, worker};
use super::call::malformed;
use crate::contract::{
    ActionDef, Asset, AssetInfo, CallError, Caller, EndedRun, ErrorKind, Info, MentionHit, MentionMessage, Plan,
    Refusal, Step, TeamRef, ToolDef,
};

impl From<Caller> for types::Caller {
    fn from(caller: Caller) -> Self {
        Self {
            owner: caller.owner,
            thread: caller.thread,
            ancestors: caller.ancestors,
            run: caller.run,
            call: caller.call,
        }
    }
}

impl From<types::Error> for CallError {
    fn from(error: types::Error) -> Self {
        let kind = match error.kind {
            types::ErrorKind::Invalid => ErrorKind::Invalid,
            types::ErrorKind::NotFound => ErrorKind::NotFound,
            types::ErrorKind::Denied => ErrorKind::Denied,
            types::ErrorKind::Conflict => ErrorKind::Conflict,
            types::ErrorKind::Limit => ErrorKind::Limit,
            types::ErrorKind::Unavailable => ErrorKind::Unavailable,
            types::ErrorKind::Unknown => ErrorKind::Unknown,
            types::ErrorKind::Internal => ErrorKind::Internal,
        };
        // The refusal counts, also where its extra facts cannot be read.
        let detail = error.detail.and_then(|json| {
            let parsed = serde_json::from_str(&json);
            parsed.inspect_err(|e| tracing::warn!("the component sent a refusal's detail that is not JSON: {e}")).ok()
        });
        Self::Refused(Refusal { kind, code: error.code, message: error.message, field: error.field, detail })
    }
}

/// Parses JSON that the contract promises.
pub fn json(name: &'static str, text: &str) -> Result<serde_json::Value, CallError> {
    serde_json::from_str(text).map_err(|_| malformed(name, "a part that must be JSON is not"))
}

pub fn info(component: lifecycle::Component) -> Result<Info, CallError> {
    Ok(Info {
        limits: json("info", &component.limits)?,
        name: component.name,
        version: component.version,
        contract: component.contract,
        store_format: component.store_format,
    })
}

pub fn tool(tool: tools::Tool) -> Result<ToolDef, CallError> {
    let input_schema = json("tools", &tool.input_schema)?;
    Ok(ToolDef { name: tool.name, description: tool.description, input_schema })
}

pub fn action(action: routes::Action) -> Result<ActionDef, CallError> {
    let input_schema = json("actions", &action.input_schema)?;
    Ok(ActionDef { name: action.name, description: action.description, input_schema, writes: action.writes })
}

impl From<routes::AssetInfo> for AssetInfo {
    fn from(info: routes::AssetInfo) -> Self {
        Self { path: info.path, media_type: info.media_type, sha256: info.sha256 }
    }
}

impl From<routes::Asset> for Asset {
    fn from(asset: routes::Asset) -> Self {
        Self { media_type: asset.media_type, body: asset.body }
    }
}

impl From<mentions::Hit> for MentionHit {
    fn from(hit: mentions::Hit) -> Self {
        Self { team: hit.team, member: hit.member, label: hit.label, description: hit.description }
    }
}

impl From<MentionMessage> for mentions::Message {
    fn from(message: MentionMessage) -> Self {
        let references =
            message.references.into_iter().map(|r| mentions::Reference { team: r.team, member: r.member }).collect();
        Self { id: message.id, text: message.text, references }
    }
}

impl From<EndedRun> for worker::EndedRun {
    fn from(ended: EndedRun) -> Self {
        Self { thread: ended.thread, run: ended.run }
    }
}

impl From<TeamRef> for worker::TeamRef {
    fn from(team: TeamRef) -> Self {
        Self { owner: team.owner, team: team.team }
    }
}

impl From<worker::PlanResult> for Plan {
    fn from(plan: worker::PlanResult) -> Self {
        Self {
            steps: plan
                .steps
                .into_iter()
                .map(|s| Step { team: TeamRef { owner: s.owner, team: s.team }, permit: s.permit })
                .collect(),
            connect: plan.connect.into_iter().map(|t| TeamRef { owner: t.owner, team: t.team }).collect(),
            next_ms: plan.next_ms,
        }
    }
}
