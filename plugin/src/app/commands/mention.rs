//! Send a message to the members that a person picked in a conversation of the
//! host: all of them, or none.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Value, json};

use super::send::{NewRequest, enqueue};
use crate::app::scheduling::{connection, slots};
use crate::app::{Ctx, topic};
use crate::domain::error::{Cause, Error, Result};
use crate::domain::job::Source;
use crate::domain::{limits, text};
use crate::host::{Level, RunError, Runs};
use crate::store::records::Member;
use crate::store::{Db, TeamTx, commit_lock, keys, read, transact};

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

/// Routing is by the references alone; names in the text are ignored. A message
/// id that was dispatched before gives the same jobs. The capability must
/// reach both the conversation that asks and the members' own; otherwise
/// nothing is sent.
pub fn dispatch(ctx: Ctx, mention: &Mention) -> Result<Value> {
    let runs = ctx.require_runs()?;
    let thread =
        ctx.caller.thread.as_deref().ok_or_else(|| {
            Error::denied("no_conversation", "A mention belongs to a conversation; the host named none.")
        })?;
    let message_id = text::bounded("id", &mention.id, limits::REQUEST_ID)?;
    let body = text::bounded("text", &mention.text, limits::TEXT)?;
    let picked = distinct(&mention.references)?;
    let threads = read(ctx.host, |db| {
        let found = picked.iter().map(|p| Ok(load(db, ctx, p)?.1.thread));
        found.collect::<Result<Vec<String>>>()
    })?;
    authorise(runs, thread, "id")?;
    for (pick, target) in picked.iter().zip(&threads) {
        authorise(runs, target, &pick.field())?;
    }
    let now = ctx.now();
    // The commit locks of all teams, always in the same order, and then one
    // that only mentions take: a fixed order prevents deadlock.
    let mut teams: Vec<&str> = picked.iter().map(|p| p.to.team.as_str()).collect();
    teams.sort_unstable();
    teams.dedup();
    // Before the locks, whose names have a bound.
    if let Some(wrong) = picked.iter().find(|p| !text::is_id(&p.to.team)) {
        return Err(wrong.unknown());
    }
    let mut held = Vec::with_capacity(teams.len());
    for team in &teams {
        let lock = commit_lock(ctx.owner(), team);
        held.push(ctx.host.lock(&lock, limits::LOCK_MS).map_err(|_| {
            Error::unavailable(
                "team_busy",
                "A mentioned team is busy with another command; nothing was sent. Try again.",
            )
        })?);
    }
    let lock = format!("mention/{}", keys::part(ctx.owner()));
    let (jobs, touched) = transact(ctx.host, &lock, |db| {
        let mut jobs = Vec::new();
        let mut touched: Vec<(String, u64)> = Vec::new();
        // Team by team, so that each head is written once.
        for team_id in &teams {
            let mut of_team = picked.iter().filter(|p| p.to.team == *team_id).peekable();
            let Some(first) = of_team.peek() else { continue };
            let (team, _) = load(db, ctx, first)?;
            let mut created = false;
            for pick in of_team {
                let member = team.team.member(&pick.to.member).cloned().ok_or_else(|| pick.unknown())?;
                if member.thread == thread {
                    continue;
                }
                let new = NewRequest {
                    // A person picked the member: also in a member's own
                    // conversation it is the owner who asks.
                    source: Source::Conversation { thread: thread.into() },
                    request_id: format!("{message_id}/{}", member.id),
                    text: body.clone(),
                    during: None,
                };
                let (job, new) = enqueue(&team, &member, &new, now).map_err(|e| pick.name(e))?;
                created |= new;
                jobs.push(json!({
                    "team_id": team.team.id, "team": team.team.name, "member_id": member.id, "member": member.name,
                    "job_id": job.id, "status": job.phase.status(), "created": new,
                }));
            }
            if created {
                touched.push((team.team.id.clone(), team.record_change()?));
            }
        }
        Ok((jobs, touched))
    })?;
    drop(held);
    if !touched.is_empty() {
        slots::wake_waiters(ctx.host, ctx.owner());
    }
    for (team, revision) in &touched {
        ctx.host.publish(ctx.owner(), &topic(team), *revision);
    }
    reconnect(ctx, runs, &teams);
    Ok(json!({"jobs": jobs}))
}

/// An authenticated mention reconnects its teams, also one that is told again
/// since its first reply was lost.
fn reconnect(ctx: Ctx, runs: &dyn Runs, teams: &[&str]) {
    for team in teams {
        if ctx.host.lookup(ctx.owner(), team).is_none()
            && let Err(error) = connection::ensure(ctx.host, ctx.owner(), team, runs)
        {
            ctx.host.log(Level::Info, &format!("a mention could not connect team {team}: {}", error.code));
        }
    }
}

/// A reference with its place in the message.
struct Pick<'a> {
    index: usize,
    to: &'a Reference,
}

impl Pick<'_> {
    fn field(&self) -> String {
        format!("references[{}]", self.index)
    }

    /// The same answer for a team or member that does not exist and for
    /// another owner's.
    fn unknown(&self) -> Error {
        Error::invalid(
            "mention_not_found",
            self.field(),
            "A mentioned member does not exist (any more). Pick the members again; nothing was sent.",
        )
    }

    /// Says which reference a refusal is about.
    fn name(&self, error: Error) -> Error {
        if error.is(Cause::NoTeam) { self.unknown() } else { error.at(self.field()) }
    }
}

/// The references without repetitions, within their bound.
fn distinct(references: &[Reference]) -> Result<Vec<Pick<'_>>> {
    if references.len() > limits::MENTION_REFERENCES {
        let message = format!("At most {} members can be mentioned in one message.", limits::MENTION_REFERENCES);
        let field = format!("references[{}]", limits::MENTION_REFERENCES);
        return Err(Error::invalid("too_many_mentions", field, message));
    }
    let mut picked: Vec<Pick> = Vec::new();
    for (index, to) in references.iter().enumerate() {
        if !picked.iter().any(|p| p.to == to) {
            picked.push(Pick { index, to });
        }
    }
    Ok(picked)
}

fn load<'d, 'h>(db: &'d Db<'h>, ctx: Ctx<'d>, pick: &Pick) -> Result<(TeamTx<'d, 'h>, Member)> {
    let team = TeamTx::load(db, ctx.owner(), &pick.to.team).map_err(|e| pick.name(e))?;
    let member = team.team.member(&pick.to.member).cloned().ok_or_else(|| pick.unknown())?;
    Ok((team, member))
}

/// Whether the capability reaches a conversation. One without any state yet
/// is reached; without an answer there is no permission.
fn authorise(runs: &dyn Runs, thread: &str, field: &str) -> Result<()> {
    match runs.state(thread, None, None) {
        Ok(_) | Err(RunError::NotFound(_)) => Ok(()),
        Err(RunError::Denied(_) | RunError::Rejected(_)) => {
            Err(Error::denied("denied", "The host denies a conversation of this mention; nothing was sent.").at(field))
        }
        Err(_) => Err(Error::unavailable(
            "host_unavailable",
            "The host cannot say now whether this mention is allowed; nothing was sent. Try again.",
        )),
    }
}
