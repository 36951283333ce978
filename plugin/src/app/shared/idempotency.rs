//! Replies to mutating tool calls, kept in the commit of their effect, so that
//! a call repeated after a crash is the same call.

use alloc::boxed::Box;

use serde_json::Value;

use super::calling_member;
use crate::app::Ctx;
use crate::domain::error::{Error, Result};
use crate::store::records::{CallMemo, Job, Member, V1};
use crate::store::{TeamTx, keys};

/// A mutating tool call that may be made.
pub enum Call {
    /// It was made before, with this reply.
    Again(Value),
    /// It is new. `during`: the job that the calling turn executes.
    New { during: Option<Box<Job>> },
}

/// Whether this call was made before. The same call with other arguments is a
/// conflict. Calls without an id are not remembered. A new call of a run that
/// has ended is refused (`run_ended`).
pub fn recall(ctx: Ctx, team: &TeamTx, me: &Member, digest: &str) -> Result<Call> {
    let known = match identity(ctx) {
        Some((thread, run, call)) => team.db.get::<CallMemo>(&team.keys.call(thread, run, call))?,
        None => None,
    };
    let Some(memo) = known else {
        let during = calling_member::executing(team, &me.thread, calling_member::own_run(ctx, me))?;
        return Ok(Call::New { during: during.map(Box::new) });
    };
    if memo.digest != digest {
        return Err(Error::conflict(
            "call_id_reused",
            "This call was made before with other arguments. Make a new call.",
        ));
    }
    let reply = serde_json::from_str(&memo.reply).map_err(|_| Error::internal("a stored reply cannot be read"))?;
    Ok(Call::Again(reply))
}

/// Remembers the reply, and forgets those of the conversation's earlier runs:
/// a conversation has one run at a time, so they cannot be repeated.
pub fn remember(ctx: Ctx, team: &TeamTx, digest: &str, reply: &Value) -> Result<()> {
    let Some((thread, run, call)) = identity(ctx) else { return Ok(()) };
    let key = team.keys.call(thread, run, call);
    let newest = team.keys.newest_run(thread);
    if team.db.get_text(&newest)?.as_deref() != Some(run) && forget_earlier(team, thread, run)? {
        team.db.put_text(&newest, run)?;
    }
    let memo = CallMemo { v: V1, digest: digest.into(), reply: reply_text(reply) };
    team.db.put(&key, &memo)
}

/// Removes replies to calls of other runs than this one, a few at a time, since
/// a scan reads them. True: these were the last.
fn forget_earlier(team: &TeamTx, thread: &str, run: &str) -> Result<bool> {
    let (all, own) = (team.keys.calls(thread), team.keys.call(thread, run, ""));
    let before = team.db.scan(&all, &own, FORGOTTEN_AT_ONCE, false)?;
    let after = team.db.scan(&keys::end(&own), &keys::end(&all), FORGOTTEN_AT_ONCE, false)?;
    for (old, _) in before.iter().chain(&after) {
        team.db.delete(old)?;
    }
    Ok(before.len().max(after.len()) < FORGOTTEN_AT_ONCE as usize)
}

/// A reply may have some hundred kilobytes.
const FORGOTTEN_AT_ONCE: u32 = 16;

fn reply_text(reply: &Value) -> alloc::string::String {
    serde_json::to_string(reply).unwrap_or_default()
}

fn identity<'a>(ctx: Ctx<'a>) -> Option<(&'a str, &'a str, &'a str)> {
    let caller = ctx.caller;
    Some((caller.thread.as_deref()?, caller.run.as_deref().unwrap_or("-"), caller.call.as_deref()?))
}
