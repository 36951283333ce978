//! `cargo sim`: runs seeds of the simulation.
//!
//! ```text
//! cargo sim --seeds 200                 seeds 0 to 199
//! cargo sim --seeds 200 --from 1000     seeds 1000 to 1199
//! cargo sim --steps 5000                longer seeds
//! cargo sim --seed 17 --trace           one seed, with all that happened
//! ```
//!
//! The last line reads `N seeds, M steps, 0 violations`. A failing seed prints
//! the end of its trace and how to see the whole; the exit code is then 1.

use std::process::ExitCode;
use std::time::Instant;

use agent_teams_sim as sim;

struct Arguments {
    seeds: u64,
    from: u64,
    steps: u64,
    one: Option<u64>,
    trace: bool,
}

fn arguments() -> Result<Arguments, String> {
    let mut parsed = Arguments { seeds: 200, from: 0, steps: 1_000, one: None, trace: false };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        if name == "--trace" {
            parsed.trace = true;
            continue;
        }
        let number = given.next().and_then(|n| n.parse::<u64>().ok());
        let number = number.ok_or_else(|| format!("{name} needs a number"))?;
        match name.as_str() {
            "--seeds" => parsed.seeds = number,
            "--from" => parsed.from = number,
            "--steps" => parsed.steps = number,
            "--seed" => parsed.one = Some(number),
            _ => return Err(format!("there is no argument {name}; see --seeds, --from, --steps, --seed, --trace")),
        }
    }
    Ok(parsed)
}

/// Lines of a failing seed's trace that are printed.
const TAIL: usize = 60;

fn main() -> ExitCode {
    let args = match arguments() {
        Ok(args) => args,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::from(2);
        }
    };
    let begun = Instant::now();
    let seeds = match args.one {
        Some(seed) => seed..seed + 1,
        None => args.from..args.from + args.seeds,
    };
    let (mut count, mut steps, mut crashes, mut finished, mut violations) = (0u64, 0, 0, 0, 0u64);
    let mut reached = std::collections::BTreeSet::new();
    for seed in seeds {
        let report = sim::run(seed, args.steps, args.trace);
        count += 1;
        steps += report.steps;
        crashes += report.crashes;
        finished += report.finished;
        reached.extend(report.reached);
        for line in &report.trace {
            println!("{line}");
        }
        if let Some(broken) = &report.violation {
            violations += 1;
            println!("seed {seed}, step {} ({steps} in all): {broken}", report.steps);
            if violations == 1 && !args.trace {
                let trace = sim::run(seed, args.steps, true).trace;
                for line in trace.iter().skip(trace.len().saturating_sub(TAIL)) {
                    println!("{line}");
                }
            }
            println!("replay it: cargo sim --seed {seed} --steps {} --trace", args.steps);
            if violations >= 10 {
                break;
            }
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("reached: {}", reached.into_iter().collect::<Vec<_>>().join(" "));
    println!("{finished} jobs finished, {crashes} crashes, {:.0} steps a second", steps as f64 / seconds.max(0.001));
    println!("{count} seeds, {steps} steps, {violations} violations");
    if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
