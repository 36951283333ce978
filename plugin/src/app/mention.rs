//! Send a message to the members that a person picked in a conversation of the
//! host: all of them, or none.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Value, json};

use super::send::{NewRequest, enqueue};
use super::{Ctx, connect, topic};
use crate::domain::error::{Error, Result};
use crate::domain::job::Source;
use crate::domain::{limits, text};
use crate::host::{Level, RunError};
use crate::store::{TeamTx, transact};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    pub team: String,
    pub member: String,
}

/// A message with the members that were picked in it.
#[derive(Clone, Debug)]
pub struct Mention {
    pub id: String,
    pub text: String,
    pub references: Vec<Reference>,
}

/// Routing is by the references alone; the text gives nobody work. A message
/// id that was dispatched before gives the same jobs. The capability must
/// reach both the conversation that asks and the members' own.
pub fn dispatch(ctx: Ctx, mention: &Mention) -> Result<Value> {
    let runs = ctx.require_runs()?;
    let thread =
        ctx.caller.thread.as_deref().ok_or_else(|| {
            Error::denied("no_conversation", "A mention belongs to a conversation; the host named none.")
        })?;
    let message_id = text::bounded("id", &mention.id, limits::REQUEST_ID)?;
    let body = text::bounded("text", &mention.text, limits::TEXT)?;
    let mut references: Vec<Reference> = Vec::new();
    for (i, reference) in mention.references.iter().enumerate() {
        if i >= limits::MENTION_REFERENCES {
            let message = format!("At most {} members can be mentioned in one message.", limits::MENTION_REFERENCES);
            return Err(Error::invalid("too_many_mentions", format!("references[{i}]"), message));
        }
        if !references.contains(reference) {
            references.push(reference.clone());
        }
    }
    // The capability must reach the conversation to which the results return.
    if let Err(RunError::Denied(_) | RunError::Rejected(_)) = runs.state(thread, None) {
        return Err(Error::denied("denied", "The host denies the conversation in which the mention was made."));
    }
    let now = ctx.now();
    let lock = format!("mention/{}", crate::store::keys::part(ctx.owner()));
    let (jobs, touched) = transact(ctx.host, &lock, |db| {
        let mut jobs = Vec::new();
        let mut touched: Vec<(String, u64)> = Vec::new();
        // Team by team, so that each head is written once.
        let mut teams: Vec<&str> = Vec::new();
        for reference in &references {
            if !teams.contains(&reference.team.as_str()) {
                teams.push(&reference.team);
            }
        }
        for team_id in teams {
            let named = references.iter().position(|r| r.team == team_id).unwrap_or(0);
            let team = TeamTx::load(db, ctx.owner(), team_id).map_err(|e| unknown(e, named))?;
            let mut created = false;
            for (i, reference) in references.iter().enumerate().filter(|(_, r)| r.team == team_id) {
                let member =
                    team.team.member(&reference.member).cloned().ok_or_else(|| unknown(Error::no_team(), i))?;
                if member.thread == thread {
                    continue;
                }
                let source = match team.team.member_of_thread(thread) {
                    Some(me) => Source::Member { member: me.id.clone(), thread: me.thread.clone() },
                    None => Source::Conversation { thread: thread.into() },
                };
                let new = NewRequest {
                    source,
                    request_id: format!("{message_id}/{}", member.id),
                    text: body.clone(),
                    during: None,
                };
                let (job, new) = enqueue(&team, &member, &new, now)?;
                created |= new;
                jobs.push(json!({
                    "team_id": team.team.id, "team": team.team.name, "member_id": member.id, "member": member.name,
                    "job_id": job.id, "status": job.phase.status(), "created": new,
                }));
            }
            if created {
                touched.push((team.team.id.clone(), team.finish()?));
            }
        }
        Ok((jobs, touched))
    })?;
    if !touched.is_empty() {
        super::board::wait::nudge(ctx.host);
    }
    for (team, revision) in &touched {
        ctx.host.publish(ctx.owner(), &topic(team), *revision);
        // A new authenticated mention reconnects its team.
        if ctx.host.lookup(ctx.owner(), team).is_none()
            && let Err(error) = connect::ensure(ctx.host, ctx.owner(), team, runs)
        {
            ctx.host.log(Level::Info, &format!("a mention could not connect team {team}: {}", error.code));
        }
    }
    Ok(json!({"jobs": jobs}))
}

/// The same answer for a team or member that does not exist and for another
/// owner's, naming which reference it was.
fn unknown(error: Error, index: usize) -> Error {
    if error.code != "team_not_found" {
        return error;
    }
    Error::invalid(
        "mention_not_found",
        format!("references[{index}]"),
        "A mentioned member does not exist (any more). Pick the members again; nothing was sent.",
    )
}
