//! Checks of the files as they stand in the repository.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::{Count, output};

/// The longest file of code, in lines.
const LINES: usize = 600;
const CODE: [&str; 5] = [".rs", ".mjs", ".js", ".css", ".wit"];
/// Folders of files that were not written here.
const FOREIGN: [&str; 3] = ["vendor", "fixtures", "deps"];

/// Every file that is in the repository or would be with the next commit.
pub fn files(root: &Path) -> Result<Vec<String>> {
    let list = output(Command::new("git").current_dir(root).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let files: Vec<String> =
        list.split('\0').filter(|f| !f.is_empty() && root.join(f).is_file()).map(str::to_owned).collect();
    ensure!(!files.is_empty(), "git lists no files; run this in a clone of the repository");
    Ok(files)
}

fn foreign(file: &str) -> bool {
    file.split('/').any(|part| FOREIGN.contains(&part))
}

/// No file of code is so long that it hides several things.
pub fn lengths(root: &Path) -> Result<Count> {
    let mut looked = 0;
    let mut long = Vec::new();
    for file in files(root)? {
        if foreign(&file) || !CODE.iter().any(|end| file.ends_with(end)) {
            continue;
        }
        looked += 1;
        let lines = std::fs::read_to_string(root.join(&file))?.lines().count();
        if lines > LINES {
            long.push(format!("{file} has {lines} lines"));
        }
    }
    ensure!(long.is_empty(), "more than {LINES} lines, divide: {}", long.join("; "));
    Ok(Count::check(format!("{looked} files, none beyond {LINES} lines")))
}

/// Traces of the machine on which something was written, and of work that is
/// not finished. Put together from halves, so that this file holds none.
const WORDS: [(&str, &str); 9] = [
    ("/wo", "rk/"),
    ("/tmp/", "w/"),
    ("../sha", "red"),
    (".libr", "ary/"),
    ("bash_", "jobs"),
    ("todo", "!("),
    ("unimpl", "emented!("),
    ("FIX", "ME"),
    ("dbg", "!("),
];

/// Nothing names what only exists on one machine, nothing is left open.
pub fn words(root: &Path) -> Result<Count> {
    let words: Vec<String> = WORDS.iter().map(|(a, b)| format!("{a}{b}")).collect();
    let mut found = Vec::new();
    let mut looked = 0;
    for file in files(root)? {
        // Files that are not text hold no words.
        let Ok(text) = std::fs::read_to_string(root.join(&file)) else { continue };
        looked += 1;
        if foreign(&file) || file.ends_with(".lock") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(word.as_str())) {
                found.push(format!("{file}:{}: {word}", number + 1));
            }
        }
    }
    ensure!(found.is_empty(), "does not belong in the repository:\n  {}", found.join("\n  "));
    Ok(Count::check(format!("{looked} files, no trace of one machine and nothing left open")))
}
