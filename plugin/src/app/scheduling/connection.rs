//! The tie between a team and its host: a capability is bound to it, and all
//! its conversations exist.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::backfill;
use super::permit::Admission;
use super::readiness::State;
use super::step::TeamStep;
use crate::app::shared::change::change_team;
use crate::app::topic;
use crate::domain::error::{Error, Kind, Result};
use crate::domain::{limits, text};
use crate::host::{Host, RunError, Runs};
use crate::store::records::{Disconnect, Gone, Member, Team};
use crate::store::{TeamTx, commit_lock, read, step_lock, transact};

/// Ensures every member's conversation, then marks the team ready and binds
/// the capability. A team is ready only when all of them exist; on a failure
/// nothing is bound and the reason is stored. A team that was ready once loses
/// no more than the members whose agents are gone: their jobs fail when they
/// are admitted, and all others go on.
pub fn ensure(host: &dyn Host, owner: &str, team: &str, runs: &dyn Runs) -> Result<()> {
    if !text::is_id(team) {
        return Err(Error::no_team());
    }
    let _step = host
        .lock(&step_lock(owner, team), limits::LOCK_MS)
        .map_err(|_| Error::team_busy("The team is talking to the host; nothing happened. Try again."))?;
    let (record, head) = read(host, |db| {
        let team = TeamTx::load(db, owner, team)?;
        let head = team.head.borrow().clone();
        Ok((team.team, head))
    })?;
    let ready = head.ready;
    let connected = head.connected && host.lookup(owner, team).is_some();
    let mut gone = Vec::new();
    for member in &record.members {
        let made = runs.create_thread(&member.thread, &member.agent, &title(&record, member), team);
        let Err(error) = made else { continue };
        let refusal = refuse(&error, &member.name, &member.agent);
        if ready && matches!(error, RunError::Rejected(_)) {
            gone.push(Gone { member: member.id.clone(), message: refusal.message });
            continue;
        }
        // A connection that works is worth more than an answer that did not come:
        // only a refusal takes it away.
        if connected && !matches!(error, RunError::Denied(_) | RunError::Rejected(_)) {
            return Err(refusal);
        }
        disconnected(host, owner, team, &refusal)?;
        return Err(refusal);
    }
    let first = host.lookup(owner, team).is_none();
    // Before the commit: a caller that sees the team connected may use it at once.
    runs.bind(owner, team).map_err(|_| Error::no_team())?;
    let bound = transact(host, &commit_lock(owner, team), |db| {
        let team = TeamTx::load(db, owner, team)?;
        if first {
            team.look_at_runs(host.now_ms())?;
        }
        {
            let mut head = team.head.borrow_mut();
            if head.ready && head.connected && head.disconnect.is_none() && head.gone == gone {
                return Ok(None);
            }
            head.gone.clone_from(&gone);
            head.ready = true;
            head.connected = true;
            head.disconnect = None;
        }
        team.record_change().map(Some)
    });
    match bound {
        // Even if nothing stored has changed, the process has: wake its worker.
        Ok(Some(revision)) => host.publish(owner, &topic(team), revision),
        Ok(None) => host.publish(owner, &topic(team), 0),
        Err(error) => {
            if !connected {
                host.forget(owner, team);
            }
            return Err(error);
        }
    }
    backfill::interrupts(host, owner, team, runs)
}

/// Creates the conversation of a member whose agent was gone when the team was
/// connected: a reconnect would leave it out again for as long as the agent is.
pub fn agent_is_back(s: &TeamStep, planned: &Admission, seen: State) -> Result<State> {
    if !matches!(seen, Err(RunError::NotFound(_))) {
        return Ok(seen);
    }
    let member = read(s.host, |db| {
        let team = TeamTx::load(db, s.owner, s.team)?;
        let gone = |id: &str| team.head.borrow().gone.iter().any(|gone| gone.member == id);
        let member = team.team.members.iter().find(|m| m.thread == planned.thread && gone(&m.id));
        Ok(member.map(|member| (member.agent.clone(), title(&team.team, member))))
    })?;
    let Some((agent, title)) = member else { return Ok(seen) };
    match s.runs.create_thread(&planned.thread, &agent, &title, s.team) {
        Ok(()) => Ok(seen),
        Err(error) => Ok(Err(error)),
    }
}

/// Takes a team's capability away and stores why, for people and for a host
/// that reconnects by itself after a growing pause.
pub fn disconnected(host: &dyn Host, owner: &str, team: &str, why: &Error) -> Result<()> {
    host.forget(owner, team);
    let now = host.now_ms();
    change_team(host, owner, team, |team| {
        {
            let mut head = team.head.borrow_mut();
            let tries = head.disconnects.saturating_add(1);
            head.disconnects = tries;
            head.connected = false;
            head.disconnect = Some(Disconnect {
                code: why.code.clone().into_owned(),
                message: why.message.clone(),
                tries,
                next_at: now + limits::pause_ms(tries),
            });
        }
        team.record_change()?;
        Ok(())
    })
}

/// What a member's conversation is called.
fn title(team: &Team, member: &Member) -> String {
    format!("{} · {}", team.name, member.name)
}

/// The refusal that a failed conversation means for the whole connect.
fn refuse(error: &RunError, member: &str, agent: &str) -> Error {
    match error {
        RunError::Denied(why) => Error::denied(
            "denied",
            format!("The host denies the conversation of {member}: {why}. Resolve it, then reconnect."),
        ),
        RunError::Rejected(why) | RunError::Unsupported(why) | RunError::NotFound(why) => Error::conflict(
            "agent_rejected",
            format!(
                "The host cannot give {member} the agent \"{agent}\": {why}. Add the agent again, or make another team."
            ),
        ),
        RunError::Busy(why) | RunError::Unavailable(why) => Error::unavailable(
            "host_unavailable",
            format!("The host cannot make the conversation of {member} now: {why}. Reconnect later."),
        ),
        RunError::KeyConflict => Error::internal("the host answered a new conversation with a key conflict"),
        RunError::TimedOut => Error::new(
            Kind::Unavailable,
            "host_timeout",
            format!("The host did not answer for the conversation of {member}. Reconnect: it will not be made twice."),
        ),
        RunError::Other(why) => Error::new(
            Kind::Unavailable,
            "host_unclear",
            format!("The host's answer for the conversation of {member} was unclear: {why}. Reconnect."),
        ),
    }
}
