//! Who may start next: a pure function of the unfinished work and of a stored
//! round.
//!
//! *Conversations* are served head first: only the oldest unfinished job of a
//! conversation is looked at. *Owners* rotate: the stored round is the order in
//! which they are served; an owner that got an attempt goes to its end. An owner
//! with nothing to start drops out, a new one joins at the end. Spare slots go
//! to the owners that have work.

use alloc::string::String;
use alloc::vec::Vec;

/// A head that asks for a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub owner: String,
    pub team: String,
    /// Its conversation.
    pub thread: String,
    /// The job's number in its team.
    pub job: u32,
    /// When it asked, in milliseconds; older ones go first within an owner.
    pub since: u64,
    /// Since when it may try; changes with each attempt.
    pub due: u64,
}

/// The round with those who have nothing left dropped and new owners at the
/// end, in the order of their oldest candidate.
pub fn merge_round(stored: &[String], candidates: &[Candidate]) -> Vec<String> {
    let mut round: Vec<String> =
        stored.iter().filter(|owner| candidates.iter().any(|c| &c.owner == *owner)).cloned().collect();
    let mut new: Vec<&Candidate> = candidates.iter().filter(|c| !round.contains(&c.owner)).collect();
    new.sort_by(|a, b| (a.since, &a.owner).cmp(&(b.since, &b.owner)));
    for candidate in new {
        if !round.contains(&candidate.owner) {
            round.push(candidate.owner.clone());
        }
    }
    round
}

/// The round after `owner` had its attempt.
pub fn served(mut round: Vec<String>, owner: &str) -> Vec<String> {
    round.retain(|o| o != owner);
    round.push(owner.into());
    round
}

/// The next admissions, in order: at most `free` of them.
pub fn admissions(stored: &[String], candidates: &[Candidate], free: usize) -> Vec<Candidate> {
    let mut left: Vec<Candidate> = candidates.to_vec();
    left.sort_by(|a, b| (a.since, &a.team, a.job).cmp(&(b.since, &b.team, b.job)));
    let mut round = merge_round(stored, candidates);
    let mut chosen = Vec::new();
    while chosen.len() < free {
        let Some(owner) = round.iter().find(|o| left.iter().any(|c| &c.owner == *o)).cloned() else { break };
        let Some(place) = left.iter().position(|c| c.owner == owner) else { break };
        chosen.push(left.remove(place));
        round = served(round, &owner);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(owner: &str, job: u32) -> Candidate {
        Candidate { owner: owner.into(), team: "t".into(), thread: "th".into(), job, since: u64::from(job), due: 0 }
    }

    #[test]
    fn lifecycle_23_owners_rotate_and_the_round_carries_over() {
        let mut work: Vec<Candidate> = (0..50).map(|n| c("a", n)).collect();
        work.push(c("b", 100));
        work.push(c("c", 101));
        let mut round = Vec::new();
        let mut order = Vec::new();
        // One slot a pass; the round is all that survives between passes.
        for _ in 0..5 {
            let chosen = admissions(&round, &work, 1);
            round = served(merge_round(&round, &work), &chosen[0].owner);
            work.retain(|w| w != &chosen[0]);
            order.push(chosen[0].owner.clone());
            if order.len() == 3 {
                work.push(c("d", 200));
            }
        }
        assert_eq!(order, ["a", "b", "c", "a", "d"]);
    }

    /// One slot; the table of `docs/scheduling.md`.
    #[test]
    fn the_documented_example() {
        let mut round: Vec<String> = Vec::new();
        let mut pass = |work: &[Candidate]| {
            let before = merge_round(&round, work);
            let chosen = admissions(&round, work, 1).remove(0);
            round = served(before.clone(), &chosen.owner);
            (before.concat(), alloc::format!("{}{}", chosen.owner, chosen.job), round.concat())
        };
        let case = |before: &str, chosen: &str, after: &str| (before.into(), chosen.into(), after.into());
        assert_eq!(pass(&[c("a", 1), c("a", 2), c("a", 3), c("b", 4)]), case("ab", "a1", "ba"));
        assert_eq!(pass(&[c("a", 2), c("a", 3), c("b", 4)]), case("ba", "b4", "ab"));
        assert_eq!(pass(&[c("a", 2), c("a", 3)]), case("a", "a2", "a"));
        assert_eq!(pass(&[c("a", 3), c("c", 0)]), case("ac", "a3", "ca"));
        assert_eq!(pass(&[c("c", 0), c("b", 4)]), case("cb", "c0", "bc"));
    }

    #[test]
    fn spare_slots_go_to_whoever_has_work() {
        let work: Vec<Candidate> = (0..20).map(|n| c("a", n)).collect();
        let chosen = admissions(&[], &work, 8);
        assert_eq!(chosen.iter().map(|c| c.job).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn an_exhausted_owner_drops_out() {
        let round = ["a".into(), "b".into()];
        assert_eq!(merge_round(&round, &[c("b", 1)]), ["b"]);
    }
}
