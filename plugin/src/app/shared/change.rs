//! The one way in which a team is changed and its change is told.

use crate::app::topic;
use crate::domain::error::{Error, Result};
use crate::domain::text;
use crate::host::Host;
use crate::store::{TeamTx, commit_lock, transact};

/// Changes one team: one commit, then one signal on the team's topic. `f` calls
/// [`TeamTx::record_change`] if it changed anything that others see; without that
/// nothing is told. Where others commit at the same time, `f` runs again from
/// the start, so it does nothing but read and write the team.
pub fn change_team<T>(host: &dyn Host, owner: &str, id: &str, f: impl Fn(&TeamTx) -> Result<T>) -> Result<T> {
    // Before the lock, whose name has a bound: an id that cannot be one is not busy.
    if !text::is_id(id) {
        return Err(Error::no_team());
    }
    let (reply, revision) = transact(host, &commit_lock(owner, id), |db| {
        let team = TeamTx::load(db, owner, id)?;
        let reply = f(&team)?;
        Ok((reply, team.change()))
    })?;
    if let Some(revision) = revision {
        host.publish(owner, &topic(id), revision);
    }
    Ok(reply)
}
