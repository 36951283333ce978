//! What a deleted team leaves behind. The commit that deletes a team marks it;
//! its records go afterwards, in bounded commits, by the call itself and by the
//! sweeps of the worker.

use alloc::string::String;

use crate::domain::error::{Cause, Error, Result};
use crate::domain::limits;
use crate::host::Host;
use crate::store::{Db, commit_lock, keys, transact};

/// Records removed in one commit.
const CHUNK: u32 = 96;

/// Removes what a team left behind, unless a team of the same id has been made
/// since, in at most so many commits. True: nothing is left.
pub fn purge(host: &dyn Host, owner: &str, id: &str, commits: u32) -> Result<bool> {
    let keys = keys::TeamKeys::new(owner, id);
    for _ in 0..commits {
        let done = transact(host, &commit_lock(owner, id), |db| {
            let over = db.get_text(&keys.team())?.is_some() || remove(db, keys.prefix())?;
            let mark = keys::gone_team(owner, id);
            if over && db.get_text(&mark)?.is_some() {
                db.delete(&mark)?;
            }
            Ok(over)
        })?;
        if done {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes all of it, for a call that uses the id again.
pub fn purge_all(host: &dyn Host, owner: &str, id: &str) -> Result<()> {
    while !purge(host, owner, id, limits::PURGE_COMMITS)? {}
    Ok(())
}

/// Removes records under a prefix. True: these were the last.
fn remove(db: &Db, prefix: &str) -> Result<bool> {
    let mut chunk = CHUNK;
    let entries = loop {
        match db.scan_prefix(prefix, chunk) {
            // A scan reads the values, too, and its answer has a bound.
            Err(error) if error.is(Cause::TooLarge) && chunk > 1 => chunk /= 2,
            entries => break entries?,
        }
    };
    for (key, _) in &entries {
        db.delete(key)?;
    }
    Ok(entries.len() < chunk as usize)
}

/// The first team (owner, id) of which something is left.
pub fn next(db: &Db) -> Result<Option<(String, String)>> {
    let first = db.scan_prefix(keys::gone(), 1)?;
    let Some((key, _)) = first.first() else { return Ok(None) };
    keys::gone_names(key).map(Some).ok_or_else(|| Error::damaged(key, "it names no team"))
}
