//! `cargo sim`: runs seeds of the simulation.
//!
//! ```text
//! cargo sim --seeds 200                 seeds 0 to 199
//! cargo sim --seeds 200 --from 1000     seeds 1000 to 1199
//! cargo sim --steps 5000                longer seeds
//! cargo sim --seed 17 --trace           one seed, with all that happened
//! cargo sim --seeds 2000 --all          every seed, and what each kind of fault was found by
//! cargo sim --budget 100000             as many seeds as that many steps are, or until a violation
//! cargo sim --overlook "called cancelled"   as if violations that say so were none
//! ```
//!
//! The last line reads `N seeds, M steps, 0 violations`. A failing seed prints
//! the end of its trace and how to see the whole; the exit code is then 1.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Instant;

use agent_teams_sim as sim;

struct Arguments {
    seeds: u64,
    from: u64,
    steps: u64,
    one: Option<u64>,
    trace: bool,
    /// Goes on however many seeds fail.
    all: bool,
    /// Ends with the first violation, or after that many steps of all seeds.
    budget: Option<u64>,
    overlook: Vec<String>,
}

fn arguments() -> Result<Arguments, String> {
    let mut parsed = Arguments {
        seeds: 200,
        from: 0,
        steps: 1_000,
        one: None,
        trace: false,
        all: false,
        budget: None,
        overlook: Vec::new(),
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        match name.as_str() {
            "--trace" => parsed.trace = true,
            "--all" => parsed.all = true,
            "--overlook" => parsed.overlook.push(given.next().ok_or("--overlook needs a text")?),
            _ => {
                let number = given.next().and_then(|n| n.parse::<u64>().ok());
                let number = number.ok_or_else(|| format!("{name} needs a number"))?;
                match name.as_str() {
                    "--seeds" => parsed.seeds = number,
                    "--from" => parsed.from = number,
                    "--steps" => parsed.steps = number,
                    "--seed" => parsed.one = Some(number),
                    "--budget" => parsed.budget = Some(number),
                    _ => return Err(format!("there is no argument {name}; the first lines of this program name all")),
                }
            }
        }
    }
    Ok(parsed)
}

/// Lines of a failing seed's trace that are printed.
const TAIL: usize = 60;
/// Failing seeds after which the run ends.
const FAILURES: u64 = 10;

/// What all seeds together came to.
#[derive(Default)]
struct Sum {
    seeds: u64,
    steps: u64,
    crashes: u64,
    finished: u64,
    violations: u64,
    reached: BTreeSet<String>,
    /// The seeds of each kind of violation.
    kinds: BTreeMap<String, Vec<u64>>,
}

impl Sum {
    fn add(&mut self, args: &Arguments, seed: u64, report: sim::Report) {
        self.seeds += 1;
        self.steps += report.steps;
        self.crashes += report.crashes;
        self.finished += report.finished;
        self.reached.extend(report.reached);
        for line in &report.trace {
            println!("{line}");
        }
        let Some(broken) = &report.violation else { return };
        self.violations += 1;
        self.kinds.entry(kind(broken)).or_default().push(seed);
        println!("seed {seed}, step {} ({} in all): {broken}", report.steps, self.steps);
        if args.all {
            return;
        }
        if self.violations == 1 && !args.trace {
            let trace = sim::run(seed, args.steps, true, &args.overlook).trace;
            for line in trace.iter().skip(trace.len().saturating_sub(TAIL)) {
                println!("{line}");
            }
        }
        println!("replay it: cargo sim --seed {seed} --steps {} --trace", args.steps);
    }
}

/// A violation without the names that differ from seed to seed.
fn kind(broken: &str) -> String {
    let mut kind = String::new();
    for word in broken.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
        let name = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if name.contains(|c: char| c.is_ascii_digit()) {
            kind.push('*');
            kind.push_str(&word[name.len()..]);
        } else {
            kind.push_str(word);
        }
    }
    kind
}

fn main() -> ExitCode {
    let args = match arguments() {
        Ok(args) => args,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::from(2);
        }
    };
    let begun = Instant::now();
    let seeds = match (args.one, args.budget) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(_)) => args.from..u64::MAX,
        (None, None) => args.from..args.from + args.seeds,
    };
    let mut sum = Sum::default();
    for seed in seeds {
        sum.add(&args, seed, sim::run(seed, args.steps, args.trace, &args.overlook));
        let over = args.budget.is_some_and(|budget| sum.violations > 0 || sum.steps >= budget);
        if over || (sum.violations >= FAILURES && !args.all) {
            break;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    if args.all {
        for (kind, seeds) in &sum.kinds {
            let first: Vec<String> = seeds.iter().take(12).map(u64::to_string).collect();
            println!("{:>5} × {kind}: {}", seeds.len(), first.join(" "));
        }
    }
    println!("reached: {}", sum.reached.into_iter().collect::<Vec<_>>().join(" "));
    println!(
        "{} jobs finished, {} crashes, {:.0} steps a second",
        sum.finished,
        sum.crashes,
        sum.steps as f64 / seconds.max(0.001)
    );
    println!("{} seeds, {} steps, {} violations", sum.seeds, sum.steps, sum.violations);
    if sum.violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
