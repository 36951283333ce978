//! The teams of one owner.

use alloc::string::String;
use alloc::vec::Vec;

use crate::domain::error::{Error, Result};
use crate::domain::limits;
use crate::store::records::{Head, Team};
use crate::store::{Db, keys};

/// The owner's teams that can be read, oldest first: two records each, whatever
/// their history.
pub fn owned(db: &Db, owner: &str) -> Result<Vec<(Team, Head)>> {
    Ok(listed(db, owner)?.0)
}

/// Those, and the ids of the others with what is wrong.
pub type Listed = (Vec<(Team, Head)>, Vec<(String, Error)>);

pub fn listed(db: &Db, owner: &str) -> Result<Listed> {
    let entries = db.scan_prefix(&keys::list(owner), limits::TEAMS_PER_OWNER as u32 + 1)?;
    let ids: Vec<&str> = entries.iter().filter_map(|(key, _)| keys::listed_team(key)).collect();
    let at: Vec<keys::TeamKeys> = ids.iter().map(|id| keys::TeamKeys::new(owner, id)).collect();
    let teams = db.get_each::<Team>(&at.iter().map(|k| k.team()).collect::<Vec<String>>())?;
    let heads = db.get_each::<Head>(&at.iter().map(|k| k.head()).collect::<Vec<String>>())?;
    let (mut owned, mut damaged) = (Vec::new(), Vec::new());
    for ((id, team), head) in ids.into_iter().zip(teams).zip(heads) {
        match (team, head) {
            (Some(Ok(team)), Some(Ok(head))) => owned.push((team, head)),
            (Some(Err(error)), _) | (_, Some(Err(error))) => damaged.push((id.into(), error)),
            _ => {}
        }
    }
    Ok((owned, damaged))
}
