//! Who may start next: a pure function of the unfinished work and of a stored
//! round.
//!
//! *Conversations* are served head first: only the oldest unfinished job of a
//! conversation is looked at. *Owners* rotate: the stored round says how many
//! turns each has had, and whoever had the fewest is next, in the order of the
//! round. An owner with nothing to start drops out; a new one joins at the end
//! of the round under way. Spare slots go to whoever has work.
//!
//! Counting turns, rather than only moving an owner to the end, makes the
//! steps of one pass independent of the order in which they run.

use alloc::string::String;
use alloc::vec::Vec;

/// A head that asks for a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub owner: String,
    pub team: String,
    /// The job's number in its team.
    pub job: u32,
    /// When it asked, in milliseconds; older ones go first within an owner.
    pub since: u64,
}

/// The owners with work, and the turns each has had beyond the one who had
/// the fewest.
pub type Round = Vec<(String, u32)>;

/// The round with those who have nothing left dropped and new owners at the
/// end, in the order of their oldest candidate.
pub fn merge_round(stored: &Round, candidates: &[Candidate]) -> Round {
    let mut round: Round =
        stored.iter().filter(|(owner, _)| candidates.iter().any(|c| c.owner == *owner)).cloned().collect();
    let mut new: Vec<&Candidate> = candidates.iter().collect();
    new.sort_by(|a, b| (a.since, &a.owner).cmp(&(b.since, &b.owner)));
    for candidate in new {
        join(&mut round, &candidate.owner);
    }
    round
}

/// Adds an owner at the end of the round under way, unless it is in it.
pub fn join(round: &mut Round, owner: &str) {
    if round.iter().all(|(o, _)| o != owner) {
        let fewest = round.iter().map(|(_, turns)| *turns).min().unwrap_or(0);
        round.push((owner.into(), fewest));
    }
}

/// The round after `owner` had its attempt.
pub fn served(mut round: Round, owner: &str) -> Round {
    join(&mut round, owner);
    if let Some(place) = round.iter().position(|(o, _)| o == owner) {
        let (owner, turns) = round.remove(place);
        round.push((owner, turns.saturating_add(1)));
    }
    let fewest = round.iter().map(|(_, turns)| *turns).min().unwrap_or(0);
    for (_, turns) in &mut round {
        *turns -= fewest;
    }
    round
}

/// How many owners are to be served before this one.
pub fn before(round: &Round, owner: &str) -> usize {
    let Some(mine) = round.iter().position(|(o, _)| o == owner) else { return round.len() };
    let turns = round[mine].1;
    round.iter().enumerate().filter(|(place, (_, t))| (*t, *place) < (turns, mine)).count()
}

/// The next admissions, in order: at most `free` of them.
pub fn admissions(stored: &Round, candidates: &[Candidate], free: usize) -> Vec<Candidate> {
    let mut left: Vec<Candidate> = candidates.to_vec();
    left.sort_by(|a, b| (a.since, &a.team, a.job).cmp(&(b.since, &b.team, b.job)));
    let mut round = merge_round(stored, candidates);
    let mut chosen = Vec::new();
    while chosen.len() < free {
        let asks = |owner: &String| left.iter().any(|c| c.owner == *owner);
        let next = round.iter().filter(|(owner, _)| asks(owner)).min_by_key(|(_, turns)| *turns);
        let Some((owner, _)) = next.cloned() else { break };
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
        Candidate { owner: owner.into(), team: "t".into(), job, since: u64::from(job) }
    }

    #[test]
    fn lifecycle_23_owners_rotate_and_the_round_carries_over() {
        let mut work: Vec<Candidate> = (0..50).map(|n| c("a", n)).collect();
        work.push(c("b", 100));
        work.push(c("c", 101));
        let mut round = Round::new();
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

    #[test]
    fn spare_slots_go_to_whoever_has_work() {
        let work: Vec<Candidate> = (0..20).map(|n| c("a", n)).collect();
        let chosen = admissions(&Round::new(), &work, 8);
        assert_eq!(chosen.iter().map(|c| c.job).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn an_exhausted_owner_drops_out() {
        let round = alloc::vec![("a".into(), 0), ("b".into(), 1)];
        assert_eq!(merge_round(&round, &[c("b", 1)]), [("b".into(), 1)]);
    }

    #[test]
    fn the_order_of_the_steps_of_a_pass_does_not_matter() {
        let owners = || alloc::vec![("a".into(), 0), ("b".into(), 0)];
        let after = |steps: &[&str]| steps.iter().fold(owners(), |round, owner| served(round, owner));
        for steps in [["a", "a", "b"], ["a", "b", "a"], ["b", "a", "a"]] {
            let round = after(&steps);
            assert_eq!((before(&round, "b"), before(&round, "a")), (0, 1), "{steps:?}");
        }
    }
}
