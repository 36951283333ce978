//! The mutations: `tests/mutations/*.patch`, each of which breaks one rule of
//! the component. Each is applied to a copy of the tree, of which only the
//! simulation is built: no engine, no component, seconds instead of minutes.
//! The simulation must say that the rule is broken, within a number of steps.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::{Count, cargo, seconds};

/// Steps after which a mutation counts as not caught.
const BUDGET: u64 = 800_000;
/// Steps of the tree as it is, which must be clean.
const CLEAN: u64 = 100_000;
/// Of a hundred mutations so many must be caught.
const SHARE: usize = 90;
/// A simulation that comes to no end, such as in an endless loop of the
/// component, is given up; the rule is broken visibly enough.
const PATIENCE: Duration = Duration::from_secs(900);

/// Which mutations are tried, and with what arguments the simulation runs.
#[derive(Default)]
pub struct Choice {
    /// Parts of names. None: all.
    pub names: Vec<String>,
    pub arguments: Vec<String>,
}

/// One patch file: the rule that it breaks, whether that is known to be caught,
/// and a unified diff.
struct Mutation {
    name: String,
    rule: String,
    caught: bool,
    files: Vec<(String, Vec<Hunk>)>,
}

/// Lines as they are and as they become. Where they stand follows from the
/// lines alone, so that a patch outlives changes elsewhere in its file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hunk {
    before: Vec<String>,
    after: Vec<String>,
}

enum Outcome {
    Caught { steps: u64, by: String },
    Missed { steps: u64 },
}

/// Tries all mutations, or those that were chosen.
pub fn check(root: &Path, choice: &Choice) -> Result<Count> {
    let mutations = load(root, choice)?;
    let tree = Tree::new(root)?;
    let original = tree.sources()?;
    tree.put(&original)?;
    match tree.simulate(CLEAN, &choice.arguments)? {
        Outcome::Missed { steps } => println!("the tree as it is: nothing broken in {steps} steps"),
        Outcome::Caught { by, .. } => bail!("the simulation fails without any mutation: {by}"),
    }
    let (mut table, mut passed, mut failed, mut caught) = (String::new(), 0, 0, 0);
    for mutation in &mutations {
        let begun = Instant::now();
        let tried = mutation
            .apply(&original)
            .and_then(|changed| tree.put(&changed))
            .and_then(|()| tree.simulate(BUDGET, &choice.arguments));
        caught += usize::from(matches!(tried, Ok(Outcome::Caught { .. })));
        let (well, said) = match tried {
            Ok(Outcome::Caught { steps, by }) if mutation.caught => {
                (true, format!("caught after {steps} steps by: {by}"))
            }
            Ok(Outcome::Caught { steps, by }) => {
                (true, format!("caught after {steps} steps, which its patch does not expect yet, by: {by}"))
            }
            Ok(Outcome::Missed { steps }) => {
                (!mutation.caught, format!("NOT caught in {steps} steps: {}", mutation.rule))
            }
            Err(error) => (false, format!("NOT TRIED: {error:#}")),
        };
        *(if well { &mut passed } else { &mut failed }) += 1;
        let mark = if well { "ok  " } else { "FAIL" };
        let line = format!("{mark} {:<44} {said}", mutation.name);
        println!("{line} ({})", seconds(begun.elapsed()));
        let _ = writeln!(table, "{line}");
    }
    tree.put(&original)?;
    println!("\n{table}");
    let note = format!("{caught} of {} mutations caught, {failed} not as expected", mutations.len());
    ensure!(caught * 100 >= mutations.len() * SHARE, "{note}; at least {SHARE} of a hundred must be");
    Ok(Count { passed, failed, note })
}

fn load(root: &Path, choice: &Choice) -> Result<Vec<Mutation>> {
    let folder = root.join("tests/mutations");
    let mut mutations = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let chosen = choice.names.is_empty() || choice.names.iter().any(|part| name.contains(part.as_str()));
        if chosen && path.extension().is_some_and(|end| end == "patch") {
            let text = std::fs::read_to_string(&path)?;
            mutations.push(Mutation::parse(name, &text).with_context(|| path.display().to_string())?);
        }
    }
    ensure!(!mutations.is_empty(), "no mutation of that name in {}", folder.display());
    mutations.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(mutations)
}

impl Mutation {
    /// Reads a patch: a line with the rule, a line `expect: caught` or
    /// `expect: missed, REASON`, and the diff.
    fn parse(name: String, text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let rule = lines.next().unwrap_or_default().trim().to_owned();
        ensure!(!rule.is_empty(), "the first line says which rule is broken");
        let expected = lines.next().and_then(|line| line.strip_prefix("expect: ")).unwrap_or_default();
        let caught = match expected.split(',').next() {
            Some("caught") => true,
            Some("missed") => false,
            _ => bail!("the second line is `expect: caught` or `expect: missed, REASON`"),
        };
        let mut files: Vec<(String, Vec<Hunk>)> = Vec::new();
        for line in lines {
            if let Some(file) = line.strip_prefix("+++ b/") {
                files.push((file.trim().to_owned(), Vec::new()));
                continue;
            }
            let Some((_, hunks)) = files.last_mut().filter(|_| !line.starts_with("--- ")) else { continue };
            if line.starts_with("@@") {
                hunks.push(Hunk::default());
                continue;
            }
            let Some(hunk) = hunks.last_mut() else { continue };
            let (mark, rest) = line.split_at(line.len().min(1));
            match mark {
                "-" => hunk.before.push(rest.to_owned()),
                "+" => hunk.after.push(rest.to_owned()),
                _ => {
                    hunk.before.push(rest.to_owned());
                    hunk.after.push(rest.to_owned());
                }
            }
        }
        ensure!(files.iter().any(|(_, hunks)| !hunks.is_empty()), "the diff changes nothing");
        Ok(Self { name, rule, caught, files })
    }

    fn apply(&self, original: &Sources) -> Result<Sources> {
        let mut changed = original.clone();
        for (file, hunks) in &self.files {
            let text = changed.get_mut(Path::new(file)).with_context(|| format!("there is no {file}"))?;
            let mut now = String::from_utf8(text.clone())?;
            for hunk in hunks {
                now = hunk.apply(&now).with_context(|| format!("it does not apply to {file}"))?;
            }
            *text = now.into_bytes();
        }
        Ok(changed)
    }
}

impl Hunk {
    fn apply(&self, text: &str) -> Result<String> {
        let lines: Vec<&str> = text.lines().collect();
        let fits = |from: &usize| lines[*from..].iter().zip(&self.before).all(|(is, was)| is == was);
        let last = lines.len().checked_sub(self.before.len()).context("the file is shorter than the lines")?;
        let places: Vec<usize> = (0..=last).filter(fits).collect();
        let [from] = places[..] else {
            bail!("these lines occur {} times, not once:\n{}", places.len(), self.before.join("\n"));
        };
        let after = self.after.iter().map(String::as_str);
        let rest = lines[from + self.before.len()..].iter().copied();
        let mut made: String = lines[..from].iter().copied().chain(after).chain(rest).collect::<Vec<_>>().join("\n");
        made.push('\n');
        Ok(made)
    }
}

/// Files by their path in the repository.
type Sources = BTreeMap<PathBuf, Vec<u8>>;

/// A workspace of the component and the simulation alone.
struct Tree {
    root: PathBuf,
    tree: PathBuf,
    target: PathBuf,
}

impl Tree {
    fn new(root: &Path) -> Result<Self> {
        // target/release/verify
        let program = std::env::current_exe()?;
        let target = program.ancestors().nth(2).context("this program is in no target folder")?.join("mutations");
        Ok(Self { root: root.to_owned(), tree: target.join("tree"), target: target.join("target") })
    }

    /// What the simulation is built from.
    fn sources(&self) -> Result<Sources> {
        let mut sources = Sources::new();
        for part in ["plugin", "tests/sim", "Cargo.lock", "rust-toolchain.toml"] {
            read(&self.root, Path::new(part), &mut sources)?;
        }
        let manifest: toml::Table = toml::from_str(&std::fs::read_to_string(self.root.join("Cargo.toml"))?)?;
        sources.insert("Cargo.toml".into(), toml::to_string(&smaller(manifest)?)?.into_bytes());
        Ok(sources)
    }

    /// Makes the tree exactly these files; a file that is as it should be is not
    /// touched, so that what is built of it stays.
    fn put(&self, sources: &Sources) -> Result<()> {
        let mut there = Sources::new();
        if self.tree.is_dir() {
            read(&self.tree, Path::new(""), &mut there)?;
        }
        for file in there.keys().filter(|file| !sources.contains_key(*file)) {
            std::fs::remove_file(self.tree.join(file))?;
        }
        for (file, bytes) in sources.iter().filter(|(file, bytes)| there.get(*file) != Some(bytes)) {
            let path = self.tree.join(file);
            std::fs::create_dir_all(path.parent().context("a file without a folder")?)?;
            std::fs::write(path, bytes)?;
        }
        Ok(())
    }

    /// Builds the tree and runs its simulation until it fails, or for so many
    /// steps.
    fn simulate(&self, budget: u64, arguments: &[String]) -> Result<Outcome> {
        let mut build = cargo(&self.tree);
        build.args(["build", "--release", "--offline", "--quiet", "--package", "agent-teams-sim", "--target-dir"]);
        let built = build.arg(&self.target).env("RUSTFLAGS", "-Awarnings").output()?;
        ensure!(built.status.success(), "it does not build:\n{}", String::from_utf8_lossy(&built.stderr));
        let mut simulation = Command::new(self.target.join("release/sim"));
        simulation.arg("--budget").arg(budget.to_string()).args(arguments);
        let Some(printed) = output_within(&mut simulation, PATIENCE)? else {
            return Ok(Outcome::Caught { steps: 0, by: format!("no end within {}", seconds(PATIENCE)) });
        };
        outcome(&printed).with_context(|| format!("the simulation printed\n{printed}"))
    }
}

/// The workspace's manifest with the component and the simulation only.
fn smaller(mut manifest: toml::Table) -> Result<toml::Table> {
    let workspace = manifest.get_mut("workspace").and_then(toml::Value::as_table_mut).context("no workspace")?;
    workspace.remove("default-members");
    let members = ["plugin", "tests/sim"].map(|member| toml::Value::String(member.into()));
    workspace.insert("members".into(), toml::Value::Array(members.into()));
    let profile = manifest.get_mut("profile").and_then(|p| p.get_mut("release")).and_then(toml::Value::as_table_mut);
    profile.context("no release profile")?.remove("package");
    Ok(manifest)
}

fn read(root: &Path, part: &Path, into: &mut Sources) -> Result<()> {
    let path = root.join(part);
    if path.is_file() {
        into.insert(part.to_owned(), std::fs::read(&path)?);
        return Ok(());
    }
    for entry in std::fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))? {
        read(root, &part.join(entry?.file_name()), into)?;
    }
    Ok(())
}

/// What a program prints, or nothing if it does not end in time.
fn output_within(command: &mut Command, patience: Duration) -> Result<Option<String>> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut stdout = child.stdout.take().context("no output")?;
    let reader = std::thread::spawn(move || {
        let mut printed = Vec::new();
        std::io::Read::read_to_end(&mut stdout, &mut printed).map(|_| printed)
    });
    let begun = Instant::now();
    while child.try_wait()?.is_none() {
        if begun.elapsed() > patience {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let printed = reader.join().map_err(|_| anyhow::anyhow!("the output could not be read"))??;
    Ok(Some(String::from_utf8_lossy(&printed).into_owned()))
}

/// Reads `seed 7, step 90 (1234 in all): what is broken`, or the last line
/// `3 seeds, 4000 steps, 0 violations`.
fn outcome(printed: &str) -> Result<Outcome> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let broken = printed.lines().filter(|line| line.starts_with("seed ")).find_map(|line| {
        let (before, by) = line.split_once(" in all): ")?;
        Some(Outcome::Caught { steps: number(before.rsplit('(').next()?)?, by: by.to_owned() })
    });
    if let Some(broken) = broken {
        return Ok(broken);
    }
    let last = printed.lines().last().filter(|line| line.ends_with(" 0 violations")).context("no summary")?;
    let steps = last.split(", ").nth(1).and_then(|part| number(part.trim_end_matches(" steps")));
    Ok(Outcome::Missed { steps: steps.context("no number of steps")? })
}

#[cfg(test)]
mod unit {
    use super::*;

    const PATCH: &str = "Two is two.\nexpect: missed, for a reason\n\n--- a/x.rs\n+++ b/x.rs\n@@ -9,3 +9,3 @@\n one\n-two\n+2\n three\n";

    #[test]
    fn a_patch_finds_its_lines_wherever_they_are() {
        let mutation = Mutation::parse("two".into(), PATCH).unwrap();
        assert_eq!((mutation.rule.as_str(), mutation.caught), ("Two is two.", false));
        let applied = |text: &str| {
            let sources = Sources::from([("x.rs".into(), text.into())]);
            mutation.apply(&sources).map(|changed| String::from_utf8_lossy(&changed[Path::new("x.rs")]).into_owned())
        };
        assert_eq!(applied("zero\none\ntwo\nthree\n").unwrap(), "zero\none\n2\nthree\n");
        assert!(format!("{:#}", applied("one\nTWO\nthree\n").unwrap_err()).contains("occur 0 times"));
        let twice = "one\ntwo\nthree\none\ntwo\nthree\n";
        assert!(format!("{:#}", applied(twice).unwrap_err()).contains("occur 2 times"));
    }

    #[test]
    fn a_patch_without_a_rule_or_an_expectation_is_refused() {
        assert!(Mutation::parse("x".into(), "").is_err());
        assert!(Mutation::parse("x".into(), "A rule.\n--- a/x\n+++ b/x\n@@ @@\n-a\n+b\n").is_err());
        assert!(Mutation::parse("x".into(), "A rule.\nexpect: caught\n").is_err());
    }

    #[test]
    fn what_a_simulation_says_is_read() {
        let said =
            "seed 7, step 90 (1234 in all): a slot is lost (2 of 3)\nreplay it: …\n8 seeds, 1234 steps, 1 violations\n";
        assert!(matches!(outcome(said), Ok(Outcome::Caught { steps: 1234, by }) if by == "a slot is lost (2 of 3)"));
        let clean = "reached: all\n8 seeds, 9000 steps, 0 violations\n";
        assert!(matches!(outcome(clean), Ok(Outcome::Missed { steps: 9000 })));
        assert!(outcome("killed").is_err());
    }
}
