//! Replies to mutating tool calls, kept in the commit of their effect, so that
//! a call repeated after a crash is the same call.

use alloc::boxed::Box;

use serde_json::Value;

use super::calling_member;
use crate::app::Ctx;
use crate::domain::error::{Error, Result};
use crate::store::TeamTx;
use crate::store::records::{CallMemo, Job, Member, V1};

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
    let this_run = team.keys.call(thread, run, "");
    for (old, _) in team.db.scan_prefix(&team.keys.calls(thread), 64)? {
        if !old.starts_with(&this_run) {
            team.db.delete(&old)?;
        }
    }
    let memo = CallMemo { v: V1, digest: digest.into(), reply: reply_text(reply) };
    team.db.put(&key, &memo)
}

fn reply_text(reply: &Value) -> alloc::string::String {
    serde_json::to_string(reply).unwrap_or_default()
}

fn identity<'a>(ctx: Ctx<'a>) -> Option<(&'a str, &'a str, &'a str)> {
    let caller = ctx.caller;
    Some((caller.thread.as_deref()?, caller.run.as_deref().unwrap_or("-"), caller.call.as_deref()?))
}
