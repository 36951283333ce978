//! The stored order in which owners get an attempt.

use alloc::string::String;
use alloc::vec::Vec;

use super::step::TeamStep;
use crate::app::shared::heads;
use crate::domain::error::Result;
use crate::domain::schedule;
use crate::store::{Db, keys, readable};

/// An owner's place in the round.
pub struct Turn {
    pub owner: String,
    /// It can take its turn: not all that it has to start is in teams that rest.
    pub ready: bool,
}

/// The stored round: those for whom this step was planned, with new ones last,
/// and those who have joined it since. Owners without startable
/// work are dropped; owners in backoff keep their place but are skipped.
pub fn round(db: &Db, s: &TeamStep) -> Result<Vec<Turn>> {
    let (planned, backing_off) = (&s.permit.round, &s.permit.backing_off);
    let stored: Vec<String> = readable(db.get(keys::ROUND))?.flatten().unwrap_or_default();
    let mut round: Vec<Turn> = Vec::with_capacity(stored.len());
    for owner in stored {
        let ready = planned.contains(&owner) || heads::asks(db, s.host, &owner, backing_off)?;
        let rests = || backing_off.iter().any(|(o, _)| *o == owner);
        if ready || (rests() && heads::asks(db, s.host, &owner, &[])?) {
            round.push(Turn { owner, ready });
        }
    }
    for owner in planned {
        if !round.iter().any(|turn| turn.owner == *owner) {
            round.push(Turn { owner: owner.clone(), ready: true });
        }
    }
    Ok(round)
}

/// The owner had its attempt: it goes to the end of the round.
pub fn serve(db: &Db, s: &TeamStep) -> Result<()> {
    let round = round(db, s)?.into_iter().map(|turn| turn.owner).collect();
    db.put(keys::ROUND, &schedule::served(round, s.owner))
}
