//! Between the contract as Wasmtime sees it and the host's own words.

use serde_json::json;

use super::bindings::agent_teams::plugin::types;
use super::bindings::exports::agent_teams::plugin::{actions, assets, lifecycle, mentions, operator, tools, worker};
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
            client: caller.client,
            trace: caller.trace,
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
            types::ErrorKind::Unsupported => ErrorKind::Unsupported,
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
pub fn parsed(name: &'static str, text: &str) -> Result<serde_json::Value, CallError> {
    serde_json::from_str(text).map_err(|_| malformed(name, "a part that must be JSON is not"))
}

pub fn info(component: lifecycle::Component) -> Result<Info, CallError> {
    Ok(Info {
        limits: parsed("info", &component.limits)?,
        name: component.name,
        version: component.version,
        contract: component.contract,
        store_format: component.store_format,
    })
}

pub fn tool(tool: tools::Tool) -> Result<ToolDef, CallError> {
    Ok(ToolDef {
        input_schema: parsed("tools", &tool.input_schema)?,
        output_schema: tool.output_schema.map(|schema| parsed("tools", &schema)).transpose()?,
        name: tool.name,
        title: tool.title,
        description: tool.description,
        read_only: tool.read_only,
        idempotent: tool.idempotent,
        destructive: tool.destructive,
        command: tool.command,
    })
}

pub fn action(action: actions::Action) -> Result<ActionDef, CallError> {
    Ok(ActionDef {
        input_schema: parsed("actions", &action.input_schema)?,
        output_schema: action.output_schema.map(|schema| parsed("actions", &schema)).transpose()?,
        name: action.name,
        description: action.description,
        read_only: action.read_only,
        needs_runs: action.needs_runs,
    })
}

impl From<assets::AssetInfo> for AssetInfo {
    fn from(info: assets::AssetInfo) -> Self {
        Self { path: info.path, media_type: info.media_type, sha256: info.sha256 }
    }
}

impl From<assets::Asset> for Asset {
    fn from(asset: assets::Asset) -> Self {
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

impl From<EndedRun> for worker::Moved {
    fn from(ended: EndedRun) -> Self {
        Self { owner: ended.owner, thread: ended.thread, run: ended.run }
    }
}

impl From<TeamRef> for worker::TeamRef {
    fn from(team: TeamRef) -> Self {
        Self { owner: team.owner, team: team.team }
    }
}

impl From<worker::Step> for Step {
    fn from(step: worker::Step) -> Self {
        Self { team: TeamRef { owner: step.owner, team: step.team }, permit: step.permit }
    }
}

impl From<worker::PlanResult> for Plan {
    fn from(plan: worker::PlanResult) -> Self {
        Self {
            batch: plan.batch,
            steps: plan.steps.into_iter().map(Step::from).collect(),
            connect: plan.connect.into_iter().map(|t| TeamRef { owner: t.owner, team: t.team }).collect(),
            next_ms: plan.next_ms,
        }
    }
}

/// A slot as the operator's route shows it.
pub fn held_slot(held: operator::HeldSlot) -> serde_json::Value {
    let Some(job) = held.job else {
        return json!({
            "slot": held.slot, "owner": null, "team": null, "job": null, "thread": null, "since": null, "kind": null,
            "status": "damaged", "reason": format!("slot/{:02}", held.slot), "connected": false,
        });
    };
    json!({
        "slot": held.slot, "owner": job.owner, "team": job.team, "job": job.job, "thread": job.thread,
        "since": job.since, "kind": job.kind, "status": job.status, "reason": job.reason, "connected": job.connected,
    })
}

/// A settled job as the operator's route shows it.
pub fn settled(job: operator::Settled) -> serde_json::Value {
    let error = job.error.map(|(code, message)| json!({"code": code, "message": message}));
    json!({"job": {
        "owner": job.owner, "team": job.team, "id": job.job, "kind": job.kind, "status": job.status,
        "thread": job.thread, "error": error, "completed_at": job.completed_at,
    }})
}
