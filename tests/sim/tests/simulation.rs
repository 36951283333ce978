//! The simulation as a test: many seeds, each with its own mishaps, and calm
//! sequences held against the oracle.

use std::collections::BTreeSet;

use agent_teams_sim as sim;

/// Seeds and steps of the run that every check-in makes; `cargo sim` runs any
/// number.
const SEEDS: u64 = 200;
const STEPS: u64 = 1_000;

/// What some job of these seeds goes through.
const REACHED: &[&str] = &[
    "queued",
    "running",
    "waiting_input",
    "resuming",
    "cancelling",
    "completed",
    "failed",
    "cancelled",
    "unknown",
    "conversation_busy",
    "conversation_denied",
    "conversation_has_open_question",
    "denied",
    "host_timeout",
    "host_unavailable",
    "host_unclear",
    "outcome_unknown",
    "clarification_changed",
    "no_answer",
    "not_attributable",
    "rejected",
    "run_failed",
];

#[test]
fn two_hundred_seeds_break_no_invariant() {
    let (mut steps, mut crashes, mut finished, mut reached) = (0, 0, 0, BTreeSet::new());
    for seed in 0..SEEDS {
        let report = sim::run(seed, STEPS, false, &[]);
        assert_eq!(report.violation, None, "replay it: cargo sim --seed {seed} --steps {STEPS} --trace");
        steps += report.steps;
        crashes += report.crashes;
        finished += report.finished;
        reached.extend(report.reached);
    }
    // A simulation in which nothing happens proves nothing.
    assert!(steps > SEEDS * STEPS && crashes > 100 && finished > 10_000, "{steps} {crashes} {finished}");
    for word in REACHED {
        assert!(reached.contains(*word), "no job of any seed was ever {word}");
    }
}

#[test]
fn a_seed_is_replayed_exactly() {
    let (first, second) = (sim::run(7, STEPS, true, &[]), sim::run(7, STEPS, true, &[]));
    assert_eq!(first.trace, second.trace);
}

#[test]
fn calm_sequences_agree_with_the_oracle() {
    for seed in 0..60 {
        if let Err(different) = sim::compare::run(seed, 300) {
            panic!("{different}");
        }
    }
}
