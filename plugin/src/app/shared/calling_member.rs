//! Who makes a tool call: the member from whose conversation it comes, and the
//! job that this conversation's turn executes.

use crate::app::shared::turn::read_turn;
use alloc::string::String;
use alloc::vec::Vec;

use crate::app::Ctx;
use crate::domain::error::{Error, Result};
use crate::domain::job::Phase;
use crate::host::{RunError, RunStatus, Runs};
use crate::store::records::{Job, Member, Outlived, Work};
use crate::store::{Db, TeamTx, commit_lock, keys, parse, read, readable, transact};

/// The member from whose conversation a tool is called: the caller's own
/// conversation, or the nearest above it that is a member's.
pub fn speaker(ctx: Ctx, team: &TeamTx) -> Result<Member> {
    let above = ctx.caller.ancestors.iter();
    ctx.caller
        .thread
        .iter()
        .chain(above)
        .find_map(|thread| team.team.member_of_thread(thread))
        .cloned()
        .ok_or_else(Error::no_team)
}

/// The run of this call, if it is made in the member's own conversation. An
/// agent that the member started has runs of its own, which say nothing about
/// the member's job.
pub fn own_run<'a>(ctx: Ctx<'a>, me: &Member) -> Option<&'a str> {
    ctx.caller.run.as_deref().filter(|_| ctx.caller.thread.as_deref() == Some(&me.thread))
}

/// The job of this team that a turn of the conversation executes now. Absent:
/// the turn does not belong to a job (a person speaks with the member directly), or another
/// team's.
///
/// A run whose job has ended, or waits for an answer, can do nothing more. Its calls are
/// refused (`run_ended`): they begin nothing, and are not attributed to the
/// job that the conversation executes now.
pub fn executing(team: &TeamTx, thread: &str, run: Option<&str>) -> Result<Option<Job>> {
    let head = head(team, thread)?;
    let Some(run) = run else { return Ok(head) };
    let began: Option<(String, u32)> = team.db.get(&keys::ran(team.owner, thread, run))?;
    let is_its_own = |job: &Job| job.phase.attempt().is_none_or(|named| named == run);
    let (of, n) = match began {
        Some(job) => job,
        None if outlived(team.db, team.owner, thread)?.iter().any(|left| left.key.is_some()) => {
            return Err(Error::unavailable(RUN_UNCLEAR, "Whether this run is over cannot be told now. Try again."));
        }
        // A run that the host has not named yet is the one that was asked for.
        None => return if head.as_ref().is_none_or(is_its_own) { Ok(head) } else { Err(run_ended()) },
    };
    if of != team.team.id {
        let theirs: Option<Job> = team.db.get(&keys::TeamKeys::new(team.owner, &of).job(n))?;
        return if theirs.is_some_and(|job| job.phase.executing()) { Ok(None) } else { Err(run_ended()) };
    }
    match head {
        Some(job) if job.n == n && is_its_own(&job) => Ok(Some(job)),
        _ => Err(run_ended()),
    }
}

/// The first unfinished job of a conversation, if it is this team's and a turn
/// executes it.
fn head(team: &TeamTx, thread: &str) -> Result<Option<Job>> {
    let heads = team.db.scan_prefix(&keys::work_thread(team.owner, thread), 1)?;
    let Some((key, value)) = heads.first() else { return Ok(None) };
    let work: Work = parse(key, value)?;
    if work.team != team.team.id {
        return Ok(None);
    }
    let job = team.job(work.job)?;
    Ok(Some(job).filter(|job| job.phase.executing()))
}

fn run_ended() -> Error {
    Error::denied(
        "run_ended",
        "The job of the run that makes this call has ended, or waits for an answer. Nothing was done. End your turn.",
    )
}

/// The code of a call whose run may be that of a job which was settled before
/// the host had named its run. [`look_up`] tells.
pub const RUN_UNCLEAR: &str = "run_unclear";

/// Remembers that a job was settled while its run may live.
pub fn outlives(team: &TeamTx, job: &Job, before: &Phase, key: String) -> Result<()> {
    let asker = || job.answer.as_ref().and_then(|answer| answer.asker.clone());
    let left = Outlived {
        team: team.team.id.clone(),
        n: job.n,
        run: before.run().map(String::from).or_else(asker),
        key: before.attempt().is_none().then_some(key),
    };
    team.db.put(&keys::outlived(team.owner, &job.thread, &left.team, left.n), &left)
}

/// The jobs of a conversation whose runs may have outlived them.
pub fn outlived(db: &Db, owner: &str, thread: &str) -> Result<Vec<Outlived>> {
    let found = db.scan_prefix(&keys::outlived_in(owner, thread), 200)?;
    found.iter().filter_map(|(key, value)| readable(parse(key, value)).transpose()).collect()
}

/// Forgets one of them, whose run has ended.
pub fn forget_outlived(db: &Db, owner: &str, thread: &str, left: &Outlived) -> Result<()> {
    db.delete(&keys::outlived(owner, thread, &left.team, left.n))
}

/// Finds out whether the calling run is that of a job which was settled before
/// its run had a name: it is if the job's message is in the conversation and no
/// other human message follows it, since a conversation has one run at a time.
/// A run that has ended makes late calls only, whosever it was.
pub fn look_up(ctx: Ctx) -> Result<()> {
    let owner = ctx.owner();
    let (Some(thread), Some(run)) = (ctx.caller.thread.as_deref(), ctx.caller.run.as_deref()) else { return Ok(()) };
    for left in read(ctx.host, |db| outlived(db, owner, thread))?.into_iter().filter(|left| left.key.is_some()) {
        let Some(runs) = ctx.host.lookup(owner, &left.team) else { continue };
        let job: Option<Job> = read(ctx.host, |db| db.get(&keys::TeamKeys::new(owner, &left.team).job(left.n)))?;
        let Ok(is_its_own) = is_its_own(&*runs, thread, run, job.and_then(|job| job.message).as_deref()) else {
            continue;
        };
        transact(ctx.host, &commit_lock(owner, &left.team), |db| match is_its_own {
            true => db.put(&keys::ran(owner, thread, run), &(&left.team, left.n)),
            false => forget_outlived(db, owner, thread, &left),
        })?;
    }
    Ok(())
}

/// Whether this run began with this message, or has ended.
fn is_its_own(runs: &dyn Runs, thread: &str, run: &str, message: Option<&str>) -> core::result::Result<bool, RunError> {
    match runs.get(thread, run) {
        Ok(known)
            if matches!(
                known.status,
                RunStatus::Interrupted | RunStatus::Succeeded | RunStatus::Failed | RunStatus::Cancelled
            ) =>
        {
            return Ok(true);
        }
        Ok(_) | Err(RunError::NotFound(_)) => {}
        Err(error) => return Err(error),
    }
    let Some(message) = message else { return Ok(false) };
    match read_turn(runs, thread, (message, None)) {
        Ok(turn) => Ok(turn.found && !turn.interrupted),
        Err(RunError::NotFound(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
