//! Who is passed over. An owner is passed over by another one that takes the
//! last free slot, while both could have started something when the step was
//! planned. Once is the other's turn; twice by the same one is not.

use std::collections::{BTreeMap, BTreeSet};

/// How often each waiting owner was passed over by which other one.
#[derive(Debug, Default)]
pub struct Fairness {
    passed: BTreeMap<String, BTreeMap<String, u32>>,
}

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

    /// An owner had an attempt without a slot, or had nothing to start.
    pub fn dropped(&mut self, keep: &BTreeSet<String>) {
        self.passed.retain(|owner, _| keep.contains(owner));
    }

    /// An owner's attempt was put back.
    pub fn attempted(&mut self, owner: &str) {
        self.passed.remove(owner);
    }
}
