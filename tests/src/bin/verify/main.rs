//! `cargo verify`: everything that must hold before a change is merged, in one
//! command, with live output. Every check runs, also after one has failed;
//! nothing is skipped in silence. The last line counts them.
//!
//! ```text
//! cargo verify                    what every change must pass
//! cargo verify --install          that, and installs the packages that its tests need (so does CI=true)
//! cargo verify --long             what every change must pass, thousands of seeds, the measurements and all mutations
//! cargo verify --only words links these checks alone
//! cargo verify --contract         writes docs/contract.md anew from wit/
//! cargo verify --mutations        the mutations alone; of these names: --mutations slot round
//! cargo verify --mutations -- --from 5000      arguments after -- are given to the simulation
//! ```

mod circles;
mod contract;
mod features;
mod licences;
mod mutations;
mod rules;
mod tree;

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

const WASM_TARGET: &str = "wasm32-wasip2";

/// How often something was counted: a plain check counts once, the test
/// suites once a test.
struct Count {
    passed: usize,
    failed: usize,
    note: String,
}

impl Count {
    fn check(note: impl Into<String>) -> Self {
        Self { passed: 1, failed: 0, note: note.into() }
    }
}

type Check = fn(&Path) -> Result<Count>;
/// A check with what was chosen for it.
type Chosen = Box<dyn Fn(&Path) -> Result<Count>>;

/// In the order in which they run: what fails fast goes first.
const CHECKS: &[(&str, Check)] = &[
    ("wasm target", wasm_target),
    ("formatting", formatting),
    ("file lengths", tree::lengths),
    ("words", tree::words),
    ("phrases", tree::phrases),
    ("links", tree::linked),
    ("rules", rules::check),
    ("circles", circles::check),
    ("contract", contract::check),
    ("features", features::check),
    ("licences", licences::check),
    ("clippy of the workspace", clippy),
    ("clippy of the component", clippy_component),
    ("documentation", documentation),
    ("tests", tests),
];

/// What takes too long for every change.
const LONG: &[(&str, Check)] = &[
    ("simulation", simulation),
    ("measurements", measurements),
    ("mutations", |root| mutations::check(root, &mutations::Choice::default())),
];

/// Whether the tests may install packages.
static INSTALL: AtomicBool = AtomicBool::new(false);

/// Seeds of the long simulation.
const SEEDS: &str = "3000";

/// What the arguments ask for.
enum Asked {
    Checks { long: bool, install: bool },
    Mutations(mutations::Choice),
    Contract,
    Only(Vec<String>),
}

fn asked(arguments: &[String]) -> Result<Asked, String> {
    match arguments {
        [contract] if contract == "--contract" => Ok(Asked::Contract),
        [only, names @ ..] if only == "--only" && !names.is_empty() => {
            let all = || CHECKS.iter().chain(LONG).map(|(name, _)| *name);
            match names.iter().find(|name| !all().any(|known| known == *name)) {
                None => Ok(Asked::Only(names.to_vec())),
                Some(name) => {
                    let names: Vec<&str> = all().collect();
                    Err(format!("there is no check `{name}`; the checks are: {}", names.join(", ")))
                }
            }
        }
        [mutations, rest @ ..] if mutations == "--mutations" => {
            let (names, arguments) = match rest.iter().position(|argument| argument == "--") {
                Some(end) => (&rest[..end], &rest[end + 1..]),
                None => (rest, &[][..]),
            };
            Ok(Asked::Mutations(mutations::Choice { names: names.to_vec(), arguments: arguments.to_vec() }))
        }
        flags if flags.iter().all(|flag| ["--long", "--install"].contains(&flag.as_str())) => {
            let has = |name: &str| flags.iter().any(|flag| flag == name);
            Ok(Asked::Checks { long: has("--long"), install: has("--install") })
        }
        _ => Err("cargo verify takes --long and --install, or --only NAME…, or --contract, or --mutations [NAME…] \
                  [-- ARGUMENTS OF THE SIMULATION]"
            .into()),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked = match asked(&arguments) {
        Ok(asked) => asked,
        Err(wrong) => {
            eprintln!("{wrong}");
            return ExitCode::from(2);
        }
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().unwrap_or(root);
    let begun = Instant::now();
    let chosen = |choice: mutations::Choice| move |root: &Path| mutations::check(root, &choice);
    let checks: Vec<(&str, Chosen)> = match asked {
        Asked::Checks { long, install } => {
            INSTALL.store(install, Ordering::Relaxed);
            let more = if long { LONG } else { &[] };
            CHECKS.iter().chain(more).map(|(name, check)| (*name, Box::new(check) as Chosen)).collect()
        }
        Asked::Mutations(choice) => vec![("mutations", Box::new(chosen(choice)))],
        Asked::Only(names) => {
            let chosen = CHECKS.iter().chain(LONG).filter(|(name, _)| names.iter().any(|chosen| chosen == name));
            chosen.map(|(name, check)| (*name, Box::new(check) as Chosen)).collect()
        }
        Asked::Contract => vec![("contract", Box::new(contract::write))],
    };
    let mut rows: Vec<(&str, Result<Count>, Duration)> = Vec::new();
    for (name, check) in checks {
        println!("\n== {name}");
        let _ = std::io::stdout().flush();
        let start = Instant::now();
        let result = check(&root);
        match &result {
            Ok(count) => println!("{}", count.note),
            Err(error) => println!("FAILED: {error:#}"),
        }
        rows.push((name, result, start.elapsed()));
    }
    let (passed, failed) = rows.iter().fold((0, 0), |(passed, failed), (_, result, _)| match result {
        Ok(count) => (passed + count.passed, failed + count.failed),
        Err(_) => (passed, failed + 1),
    });
    println!("\n== summary ({})", seconds(begun.elapsed()));
    for (name, result, took) in &rows {
        let (mark, note) = match result {
            Ok(count) if count.failed == 0 => ("ok  ", count.note.clone()),
            Ok(count) => ("FAIL", count.note.clone()),
            Err(error) => ("FAIL", format!("{error:#}").lines().next().unwrap_or_default().to_owned()),
        };
        println!("{mark} {name:<24} {:>7}  {note}", seconds(*took));
    }
    let ran: Vec<String> = rows.iter().map(|(name, _, took)| format!("{name} {}", seconds(*took))).collect();
    println!("ran: {}", ran.join(", "));
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(60) {
        format!("{:.1}s", time.as_secs_f64())
    } else {
        format!("{}m{:02}s", time.as_secs() / 60, time.as_secs() % 60)
    }
}

/// The cargo that runs this program, so that all artefacts are shared with it.
fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    command
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {:?}", command.get_program()))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {:?}", command.get_program()))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// The component's target, installed when rustup can.
fn wasm_target(root: &Path) -> Result<Count> {
    let sysroot = output(Command::new("rustc").current_dir(root).args(["--print", "sysroot"]))?;
    let libraries = PathBuf::from(sysroot.trim()).join("lib/rustlib").join(WASM_TARGET);
    if libraries.is_dir() {
        return Ok(Count::check(format!("{WASM_TARGET} is installed")));
    }
    let installed = run(Command::new("rustup").current_dir(root).args(["target", "add", WASM_TARGET]));
    if let Err(error) = installed {
        bail!("install Rust's standard library for {WASM_TARGET} (rustup target add {WASM_TARGET}): {error}");
    }
    Ok(Count::check(format!("{WASM_TARGET} was installed by rustup")))
}

fn formatting(root: &Path) -> Result<Count> {
    run(cargo(root).args(["fmt", "--all", "--check"]))?;
    Ok(Count::check("formatted"))
}

fn clippy(root: &Path) -> Result<Count> {
    run(cargo(root).args(["clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    Ok(Count::check("no warnings"))
}

/// The half of the plugin that only exists in the component.
fn clippy_component(root: &Path) -> Result<Count> {
    let target = ["clippy", "--release", "-p", "agent-teams-plugin", "--lib", "--target", WASM_TARGET];
    run(cargo(root).args(target).args(["--", "-D", "warnings"]))?;
    Ok(Count::check(format!("no warnings on {WASM_TARGET}")))
}

/// What `cargo doc` makes of the libraries, and whether everything that other
/// hosts use is described.
fn documentation(root: &Path) -> Result<Count> {
    let mut doc = cargo(root);
    doc.args(["doc", "--release", "--workspace", "--no-deps", "--lib"]).env("RUSTDOCFLAGS", "-D warnings");
    run(&mut doc)?;
    Ok(Count::check("no warnings"))
}

/// Every test of the workspace: the domain natively, the host, and from
/// outside the component, HTTP, the command line and the kill tests. One
/// command, since another choice of packages would build other features.
fn tests(root: &Path) -> Result<Count> {
    run_tests(root, &[])
}

/// The tests that must be asked for: they measure.
fn measurements(root: &Path) -> Result<Count> {
    run_tests(root, &["--", "--ignored", "--nocapture", "--test-threads", "1"])
}

/// Thousands of seeds of the simulation.
fn simulation(root: &Path) -> Result<Count> {
    let mut simulation = cargo(root);
    simulation.args(["run", "--release", "--package", "agent-teams-sim", "--", "--seeds", SEEDS, "--all"]);
    run(&mut simulation)?;
    Ok(Count::check(format!("{SEEDS} seeds, nothing broken")))
}

fn run_tests(root: &Path, arguments: &[&str]) -> Result<Count> {
    // What a test that did not run leaves there.
    let not_run = std::env::temp_dir().join(format!("agent-teams-not-run-{}", std::process::id()));
    let mut command = cargo(root);
    command.args(["test", "--release", "--workspace", "--no-fail-fast"]).args(arguments);
    command.env("AGENT_TEAMS_NOT_RUN", &not_run);
    if INSTALL.load(Ordering::Relaxed) {
        command.env("AGENT_TEAMS_INSTALL", "1");
    }
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start cargo")?;
    let stdout = child.stdout.take().context("no output of the tests")?;
    let mut seen = Seen::default();
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        println!("{line}");
        seen.line(&line);
    }
    let status = child.wait()?;
    ensure!(seen.suites > 0, "no test ran; does the workspace build?");
    ensure!(status.success() || seen.failed > 0, "the tests could not all be built or run: {status}");
    let Seen { passed, failed, suites, ignored } = seen;
    let mut note = format!("{passed} tests of {suites} suites passed, {failed} failed");
    if !ignored.is_empty() {
        note.push_str(&format!("; not run, since they must be asked for: {}", ignored.join(", ")));
    }
    if let Ok(what) = std::fs::read_to_string(&not_run) {
        note.push_str(&format!("; NOT RUN: {what}"));
        std::fs::remove_file(&not_run)?;
    }
    Ok(Count { passed, failed, note })
}

/// What the test programs reported.
#[derive(Default)]
struct Seen {
    passed: usize,
    failed: usize,
    suites: usize,
    ignored: Vec<String>,
}

impl Seen {
    /// Reads lines such as `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
    fn line(&mut self, line: &str) {
        if let Some(result) = line.strip_prefix("test result: ") {
            let number = |what: &str| -> usize {
                let before = result.split(what).next().unwrap_or_default().trim_end();
                before.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)
            };
            self.suites += 1;
            self.passed += number("passed;");
            self.failed += number("failed;");
        } else if let Some((name, how)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "))
            && how.starts_with("ignored")
        {
            self.ignored.push(name.to_owned());
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn arguments_say_what_is_checked() {
        let asked = |arguments: &[&str]| asked(&arguments.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>());
        assert!(matches!(asked(&[]), Ok(Asked::Checks { long: false, install: false })));
        assert!(matches!(asked(&["--long"]), Ok(Asked::Checks { long: true, install: false })));
        assert!(matches!(asked(&["--install", "--long"]), Ok(Asked::Checks { long: true, install: true })));
        let Ok(Asked::Mutations(choice)) = asked(&["--mutations", "slot", "--", "--from", "9"]) else { panic!() };
        assert_eq!((choice.names, choice.arguments), (vec!["slot".to_owned()], vec!["--from".into(), "9".into()]));
        assert!(asked(&["--quick"]).is_err());
    }

    #[test]
    fn results_are_counted() {
        let mut seen = Seen::default();
        seen.line("test a::b ... ok");
        seen.line("test a::c ... ignored, needs a model server");
        seen.line("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.05s");
        seen.line("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!((seen.passed, seen.failed, seen.suites), (15, 2, 2));
        assert_eq!(seen.ignored, ["a::c"]);
    }
}
