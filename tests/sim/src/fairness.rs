//! Who is passed over. An owner is passed over by another one that takes the
//! last free slot, while both could have started something when the step was
//! planned. Once is the other's turn; twice by the same one is not.

use std::collections::{BTreeMap, BTreeSet};

/// How often each waiting owner was passed over by which other one.
#[derive(Debug, Default)]
pub struct Fairness {
    passed: BTreeMap<String, BTreeMap<String, u32>>,
    /// In how many passes in a row each owner could have started something, a
    /// slot was free, and nothing was attempted for it.
    starved: BTreeMap<String, u32>,
}

/// Passes in a row after which an owner starves: with faults all over, some
/// passes bring nothing.
const STARVED: u32 = 60;

impl Fairness {
    /// Slots were taken in one commit. `waiting`: who could have started then;
    /// given only if one slot was free. `planned`: who could when the step was
    /// planned.
    pub fn taken(
        &mut self,
        by: &[String],
        waiting: Option<BTreeSet<String>>,
        planned: Option<&BTreeSet<String>>,
    ) -> Result<(), String> {
        for owner in by {
            self.starved.remove(owner);
            self.passed.remove(owner);
            let (Some(waiting), Some(planned)) = (&waiting, planned) else { continue };
            for other in waiting.intersection(planned).filter(|o| *o != owner) {
                let times = self.passed.entry(other.clone()).or_default().entry(owner.clone()).or_default();
                *times += 1;
                if *times > 1 {
                    return Err(format!("{other} was passed over twice by {owner}"));
                }
            }
        }
        Ok(())
    }

    /// A pass is over: who could start something before and after it, while a
    /// slot was free all along. `but`: whose steps never succeed.
    pub fn passed(&mut self, still: &BTreeSet<String>, free: bool, but: Option<&str>) -> Result<(), String> {
        if !free {
            self.starved.clear();
            return Ok(());
        }
        self.starved.retain(|owner, _| still.contains(owner));
        for owner in still.iter().filter(|o| Some(o.as_str()) != but) {
            let times = self.starved.entry(owner.clone()).or_default();
            *times += 1;
            if *times > STARVED {
                return Err(format!("{owner} starves: a slot was free in {times} passes and none was offered"));
            }
        }
        Ok(())
    }

    /// An owner had an attempt without a slot, or had nothing to start.
    pub fn dropped(&mut self, keep: &BTreeSet<String>) {
        self.passed.retain(|owner, _| keep.contains(owner));
    }

    /// An owner's attempt was put back.
    pub fn attempted(&mut self, owner: &str) {
        self.starved.remove(owner);
        self.passed.remove(owner);
    }
}
