//! One compilation of everything: the commands that a reader runs one after the
//! other select the same features of every crate, so that none of them compiles
//! a crate again that another has compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Result, ensure};

use crate::{Count, cargo, output};

/// Commands, and the arguments that select the same packages in `cargo tree`.
const SELECTIONS: [(&str, &[&str]); 3] = [
    ("cargo build, cargo run, cargo demo", &["--edges", "normal,build"]),
    ("cargo verify", &["--edges", "normal,build", "--package", "agent-teams-tests"]),
    ("cargo test --workspace", &["--edges", "normal,build,dev", "--workspace"]),
];

/// Features by crate and version.
type Selected = BTreeMap<String, BTreeSet<String>>;

pub fn check(root: &Path) -> Result<Count> {
    let mut selected: Vec<(&str, Selected)> = Vec::new();
    for (command, arguments) in SELECTIONS {
        let mut tree = cargo(root);
        tree.args(["tree", "--offline", "--prefix", "none", "--format", "{p}|{f}"]).args(arguments);
        selected.push((command, parse(&output(&mut tree)?)));
    }
    let mut different = Vec::new();
    for (n, (command, one)) in selected.iter().enumerate() {
        for (other, two) in &selected[n + 1..] {
            for (krate, features) in one {
                if two.get(krate).is_some_and(|others| others != features) {
                    different.push(format!("{krate} ({command}; {other})"));
                }
            }
        }
    }
    ensure!(different.is_empty(), "crates that are compiled twice, with other features: {}", different.join(", "));
    Ok(Count::check(format!("{} crates, each with one set of features", selected[2].1.len())))
}

/// Lines `name version|feature,feature`, some with a mark that they came before.
fn parse(printed: &str) -> Selected {
    let mut selected = Selected::new();
    for line in printed.lines().filter(|line| !line.is_empty()) {
        let (krate, features) = line.trim_end_matches(" (*)").split_once('|').unwrap_or((line, ""));
        selected.entry(krate.trim_end_matches(" (*)").to_owned()).or_default().insert(features.to_owned());
    }
    selected
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn marks_and_repetitions_do_not_count() {
        let selected = parse("a v1|std\nb v2|\na v1|std (*)\n");
        assert_eq!(selected["a v1"], BTreeSet::from(["std".to_owned()]));
        assert_eq!(selected.len(), 2);
    }
}
