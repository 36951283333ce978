//! Ask a member for work: the owner's action and the members' tool.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::Ctx;
use crate::app::scheduling::slots;
use crate::app::shared::change::change_team;
use crate::app::shared::team_arg::OwnTeam;
use crate::app::shared::{calling_member, idempotency, view};
use crate::domain::error::{Error, Result};
use crate::domain::job::{JobKind, Source};
use crate::domain::{ids, limits, text};
use crate::store::TeamTx;
use crate::store::records::{Job, Member, MessageKind, NewJob};

/// Sends a request to one member. The same request id with the same content
/// answers with the job that it made, in whatever state.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Send {
    pub team_id: String,
    pub member_id: String,
    /// Names this request, so that a retry sends nothing twice.
    pub request_id: String,
    /// At most 4,000 characters and 8,000 bytes.
    pub text: String,
}

/// Asks another member of your team for work. The request is stored and runs
/// once; its result reaches this conversation in a later turn, so do not wait
/// for it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendMember {
    /// The team's id, as given in your request. Absent: your own team.
    #[serde(default)]
    pub team_id: OwnTeam,
    /// The member's exact name, or its id.
    pub member: String,
    /// A short name that you make up for this request. Sending the same name
    /// again sends nothing twice.
    pub request_id: String,
    /// What the member should do; at most 4,000 characters. Say all it needs
    /// to know: it does not see your conversation.
    pub text: String,
}

/// A request to be made, with everything checked that needs no store.
pub struct NewRequest {
    pub source: Source,
    pub request_id: String,
    pub text: String,
    /// The job during whose turn it is made, from which it descends. Absent: it
    /// begins a chain.
    pub during: Option<Box<Job>>,
}

pub fn send(ctx: Ctx, send: &Send) -> Result<Value> {
    ctx.require_runs()?;
    let request_id = text::bounded("request_id", &send.request_id, limits::REQUEST_ID)?;
    let body = text::bounded("text", &send.text, limits::TEXT)?;
    let new = NewRequest { source: Source::Owner, request_id, text: body, during: None };
    let now = ctx.now();
    let (reply, created) = change_team(ctx.host, ctx.owner(), &send.team_id, |team| {
        let member = find_member(team, &send.member_id, "member_id")?;
        let (job, created) = enqueue(team, &member, &new, now)?;
        if created {
            team.record_change()?;
        }
        Ok((json!({"job": view::job(ctx, team, &job, true)?, "created": created}), created))
    })?;
    if created {
        slots::wake_waiters(ctx.host, ctx.owner());
    }
    Ok(reply)
}

/// The tool. It works only in a current conversation of a member, or in one
/// that descends from it.
pub fn send_member(ctx: Ctx, send: &SendMember) -> Result<Value> {
    let request_id = text::bounded("request_id", &send.request_id, limits::REQUEST_ID)?;
    let body = text::bounded("text", &send.text, limits::TEXT)?;
    let now = ctx.now();
    let (reply, created) = change_team(ctx.host, ctx.owner(), &send.team_id, |team| {
        let me = calling_member::speaker(ctx, team)?;
        let digest = ids::digest("send_member", &[&send.team_id, &send.member, &request_id, &body]);
        let during = match idempotency::recall(ctx, team, &me, &digest)? {
            idempotency::Call::Again(reply) => return Ok((reply, false)),
            idempotency::Call::New { during } => during,
        };
        let member = find_member(team, &send.member, "member")?;
        let new = NewRequest {
            source: Source::Member { member: me.id.clone(), thread: me.thread.clone() },
            request_id: request_id.clone(),
            text: body.clone(),
            during,
        };
        if member.id == me.id {
            return Err(Error::invalid(
                "request_to_self",
                "member",
                "That is you. Do the work yourself, or name another member.",
            ));
        }
        let (job, created) = enqueue(team, &member, &new, now)?;
        let reply = json!({
            "job_id": job.id, "member": member.name, "status": job.phase.status(), "created": created,
            "note": "Queued. The result reaches this conversation in a later turn; finish your turn without waiting.",
        });
        idempotency::remember(ctx, team, &digest, &reply)?;
        if created {
            team.record_change()?;
        }
        Ok((reply, created))
    })?;
    if created {
        slots::wake_waiters(ctx.host, ctx.owner());
    }
    Ok(reply)
}

/// A member by id or by exact name; the refusal names all of them.
pub fn find_member(team: &TeamTx, member: &str, field: &str) -> Result<Member> {
    let given = &text::composed(member);
    let found = team.team.member(given).or_else(|| team.team.members.iter().find(|m| m.name == *given));
    found.cloned().ok_or_else(|| no_member(team, field))
}

fn no_member(team: &TeamTx, field: &str) -> Error {
    let names: Vec<&str> = team.team.members.iter().map(|m| m.name.as_str()).collect();
    Error::invalid(
        "member_not_found",
        field,
        format!(
            "There is no such member in this team. Its members are: {}. Use the exact name or the id.",
            names.join(", ")
        ),
    )
}

/// Adds a request to a team, or finds the one that this request id made.
/// True: it is new.
pub fn enqueue(team: &TeamTx, member: &Member, new: &NewRequest, now: u64) -> Result<(Job, bool)> {
    let source_thread = new.source.thread().unwrap_or("");
    let id = ids::request(&team.team.id, &team.team.nonce, source_thread, &new.request_id);
    let digest = ids::digest("request", &[&member.id, &new.text]);
    if let Some(job) = team.find_job(&id)? {
        if job.digest == digest {
            return Ok((job, false));
        }
        return Err(Error::conflict(
            "request_id_reused",
            "This request_id was used for another request. Use a new one, or send the same text to the same member.",
        )
        .at("request_id")
        .with(json!({"job_id": job.id, "status": job.phase.status()})));
    }
    let parent = new.during.as_deref();
    let root = match parent {
        None => None,
        Some(parent) => Some(extend_chain(team, parent, member)?),
    };
    let mut head = team.head.borrow_mut();
    if head.requests >= limits::REQUESTS_PER_TEAM {
        return Err(Error::limit(
            "request_limit",
            format!(
                "This team has taken {} requests, which is its bound; it takes no more. Its owner can make a new team with the \
                 same members. As a member: do the rest yourself, and say in your answer what is left.",
                head.requests
            ),
        ));
    }
    head.requests += 1;
    drop(head);
    let job = Job {
        root: root.unwrap_or(0),
        parent: parent.map(|p| p.n),
        chain: u32::from(root.is_none()),
        ..Job::queued(NewJob {
            id,
            kind: JobKind::Request,
            member: Some(member.id.clone()),
            thread: member.thread.clone(),
            source: new.source.clone(),
            request_id: new.request_id.clone(),
            digest,
            created_at: now,
        })
    };
    let job = team.add_job(job, &new.text)?;
    team.add_message(MessageKind::Request, job.n, now)?;
    Ok((job, true))
}

/// Counts one more request in the parent's chain. Gives the chain's root.
fn extend_chain(team: &TeamTx, parent: &Job, to: &Member) -> Result<u32> {
    let mut root = if parent.root == parent.n { parent.clone() } else { team.job(parent.root)? };
    if root.chain >= limits::REQUESTS_PER_CHAIN {
        let names = chain_names(team, parent)?;
        return Err(Error::limit(
            "chain_limit",
            format!(
                "This chain has its {} requests ({} → {}). Finish with what you have and say what is left to do: only a \
                 person can begin another chain.",
                root.chain,
                names.join(" → "),
                to.name
            ),
        )
        .with(json!({"root_id": root.id, "members": names})));
    }
    root.chain += 1;
    team.db.put(&team.keys.job(root.n), &root)?;
    Ok(root.n)
}

/// The members from the chain's first request down to this job.
fn chain_names(team: &TeamTx, job: &Job) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut at = Some(job.clone());
    let mut seen = alloc::collections::BTreeSet::new();
    // Imported jobs may descend from themselves.
    while let Some(job) = at.filter(|job| seen.insert(job.n)) {
        if job.kind == JobKind::Request {
            let name = job.member.as_deref().and_then(|id| team.team.member(id)).map(|m| m.name.as_str());
            names.push(name.unwrap_or("?").to_string());
        }
        at = job.parent.map(|n| team.job(n)).transpose()?;
    }
    names.reverse();
    Ok(names)
}
