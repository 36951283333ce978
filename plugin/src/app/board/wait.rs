//! Wait until the board changes, for as long as anybody can still change it.

use alloc::string::String;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{as_member, hide_team, look, optional};
use crate::app::scheduling::slots::starved;
use crate::app::shared::heads;
use crate::app::shared::team_arg::OwnTeam;
use crate::app::{Ctx, Park, Reply, Wake, topic};
use crate::domain::error::{Error, Result};
use crate::domain::limits;
use crate::store::board::BoardTx;
use crate::store::records::Need;

/// Waits until somebody changes a task of your team's board, then list the
/// tasks again. Only changes during the wait count: list before you wait.
/// timedOut true: nothing changed. noProgress: nobody can change anything now,
/// so finish your turn instead of waiting.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitForTeamTasks {
    /// The team's id, as given in your request. Absent: your own team.
    #[serde(default)]
    pub team_id: OwnTeam,
    /// Milliseconds, 10,000 to 3,600,000. Absent: 30,000.
    #[serde(default, deserialize_with = "optional")]
    pub timeout_ms: Option<i64>,
}

/// What a wait remembers while it holds no instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Token {
    team: String,
    /// The board's newest change when the wait began.
    seen: u32,
    /// When it ends, and when its present part ends.
    deadline: u64,
    part: u64,
}

pub fn wait_for_team_tasks(ctx: Ctx, args: &WaitForTeamTasks) -> Result<Reply> {
    // A caller that may not wait is told so first.
    look(ctx, &args.team_id, as_member, |_, _| Ok(())).map_err(hide_team)?;
    let timeout = checked_timeout(args.timeout_ms)?;
    let now = ctx.now();
    // Read before the snapshot: what is committed in between wakes the wait.
    let position = ctx.host.position(ctx.owner(), &topic(&args.team_id));
    let (seen, stuck) = look(ctx, &args.team_id, as_member, |board, _| state(ctx, board)).map_err(hide_team)?;
    if let Some(stuck) = stuck {
        return Ok(stuck.into());
    }
    let deadline = now.saturating_add(timeout);
    park(position, now, Token { team: String::from(&*args.team_id), seen, deadline, part: 0 })
}

fn checked_timeout(given: Option<i64>) -> Result<u64> {
    let Some(given) = given else { return Ok(limits::WAIT_DEFAULT_MS) };
    match u64::try_from(given) {
        Ok(ms) if (limits::WAIT_MIN_MS..=limits::WAIT_MAX_MS).contains(&ms) => Ok(ms),
        _ => Err(Error::invalid(
            "TEAM_INVALID_TIMEOUT",
            "timeout_ms",
            alloc::format!(
                "`timeout_ms` must be between {} and {}, not {given}.",
                limits::WAIT_MIN_MS,
                limits::WAIT_MAX_MS
            ),
        )),
    }
}

/// Continues a wait.
pub fn resume(ctx: Ctx, token: &str, wake: Wake) -> Result<Reply> {
    let token: Token = serde_json::from_str(token).map_err(|_| {
        Error::new(crate::domain::error::Kind::NotFound, "wait_not_found", "No call waits under this token.")
    })?;
    let position = ctx.host.position(ctx.owner(), &topic(&token.team));
    let (changes, stuck) = look(ctx, &token.team, as_member, |board, _| state(ctx, board)).map_err(hide_team)?;
    if wake == Wake::Closed || changes != token.seen {
        return Ok(json!({"timedOut": false}).into());
    }
    // A part that has ended stays ended, whatever the clock says.
    let now = if wake == Wake::TimedOut { ctx.now().max(token.part) } else { ctx.now() };
    if now >= token.deadline {
        return Ok(json!({"timedOut": true}).into());
    }
    match stuck {
        Some(stuck) => Ok(stuck.into()),
        None => park(position, now, token),
    }
}

/// Waits for the team's topic, in parts: whether all slots are taken by others
/// is not seen on it.
fn park(seen: u64, now: u64, mut token: Token) -> Result<Reply> {
    let left = token.deadline.saturating_sub(now).min(limits::WAIT_LOOK_MS);
    token.part = now.saturating_add(left);
    Ok(Reply::Park(Park {
        topic: topic(&token.team),
        seen,
        timeout_ms: u32::try_from(left).unwrap_or(u32::MAX),
        token: serde_json::to_string(&token).map_err(|_| Error::internal("a wait cannot be written"))?,
    }))
}

/// The board's newest change, and the answer where waiting is in vain.
fn state(ctx: Ctx, board: &BoardTx) -> Result<(u32, Option<Value>)> {
    let changes = board.head.borrow().events;
    let me = crate::app::shared::calling_member::speaker(ctx, board.team)?;
    let mut active = false;
    for member in board.team.team.members.iter().filter(|m| m.id != me.id) {
        let first = heads::first(board.team.db, board.team.owner, &member.thread)?;
        active |= matches!(first, Some(Ok(work)) if work.need != Need::Person);
    }
    if !active {
        let message = "Nobody else of the team is running or queued, so nobody would change the board. Go on by yourself, ask a \
                       member for work, or finish your turn.";
        return Ok((changes, Some(no_progress("no-active-peer", message))));
    }
    let stuck = starved(ctx, board.team.db)?.then(|| {
        let message = "Every slot is taken and jobs wait for one, so waiting would hold up the others. Finish your turn; its \
                       result and later requests reach this conversation.";
        no_progress("no-free-slot", message)
    });
    Ok((changes, stuck))
}

fn no_progress(reason: &str, message: &str) -> Value {
    json!({"timedOut": false, "noProgress": {"reason": reason, "message": message}})
}
