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

/// Phrases that read as translated, in lower case. Put together from halves,
/// too.
const PHRASES: [(&str, &str); 9] = [
    ("is no", " "),
    ("are no", " "),
    ("nob", "ody"),
    ("who", "ever"),
    ("goes", " on"),
    ("for ev", "er"),
    ("took", " note"),
    ("taken", " over"),
    ("one ", "a call"),
];

/// What is good English although it holds one of them.
const USUAL: [&str; 5] = ["there is no ", "there are no ", "is no longer", "are no longer", "for every"];

/// The phrases of the list in a line.
fn phrases_in(line: &str) -> impl Iterator<Item = String> {
    let line = USUAL.iter().fold(line.to_lowercase(), |line, usual| line.replace(usual, ""));
    PHRASES.iter().map(|(a, b)| format!("{a}{b}")).filter(move |phrase| line.contains(phrase.as_str()))
}

fn is_comment(line: &str) -> bool {
    ["//", "/*", "*"].iter().any(|mark| line.trim_start().starts_with(mark))
}

/// The pages that are held to them.
fn is_page(file: &str) -> bool {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    file.ends_with(".md") && matches!(folder, "" | "docs" | "wit") || file.starts_with("examples/")
}

/// Sources whose comments are held to them.
fn is_source(file: &str) -> bool {
    let product = ["plugin/src/", "plugin/web/js/", "host-shim/src/", "host-shim/build/", "wit/"];
    product.iter().any(|folder| file.starts_with(folder))
        && [".rs", ".js", ".wit"].iter().any(|kind| file.ends_with(kind))
        && !file.contains("/tests/")
        && !file.ends_with("/tests.rs")
        && !FOR_MODELS.contains(&file)
}

/// Sources whose comments are the descriptions that models read.
const FOR_MODELS: [&str; 3] =
    ["plugin/src/app/board/create_task.rs", "plugin/src/app/board/update_task.rs", "plugin/src/app/board/wait.rs"];

/// The pages and the comments use the usual words of the field.
pub fn phrases(root: &Path) -> Result<Count> {
    let (mut found, mut looked) = (Vec::new(), 0);
    for file in files(root)?.iter().filter(|file| is_page(file) || is_source(file)) {
        looked += 1;
        for (number, line) in std::fs::read_to_string(root.join(file))?.lines().enumerate() {
            // What the program prints is quoted as it is.
            let quoted = line.starts_with("  ") && file == "README.md";
            if quoted || (is_source(file) && !is_comment(line)) {
                continue;
            }
            found.extend(phrases_in(line).map(|phrase| format!("{file}:{}: {phrase}", number + 1)));
        }
    }
    ensure!(found.is_empty(), "say it in other words:\n  {}", found.join("\n  "));
    Ok(Count::check(format!("{looked} pages and sources without the phrases that are replaced")))
}

/// What a page links to, without places inside a page.
fn links(page: &str) -> impl Iterator<Item = &str> {
    page.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next())
}

/// Every link from a page to a file of the repository leads somewhere.
pub fn linked(root: &Path) -> Result<Count> {
    let (mut broken, mut looked) = (Vec::new(), 0);
    for file in files(root)?.iter().filter(|file| file.ends_with(".md") && !foreign(file)) {
        let folder = root.join(file).parent().map(Path::to_owned).unwrap_or_default();
        for link in links(&std::fs::read_to_string(root.join(file))?) {
            if !link.is_empty() && !link.contains("://") {
                looked += 1;
                if !folder.join(link).exists() {
                    broken.push(format!("{file}: {link}"));
                }
            }
        }
    }
    ensure!(broken.is_empty(), "links that lead nowhere:\n  {}", broken.join("\n  "));
    Ok(Count::check(format!("{looked} links between files")))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn the_pages_are_in_order() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        phrases(&root).unwrap();
        linked(&root).unwrap();
        words(&root).unwrap();
        lengths(&root).unwrap();
    }

    #[test]
    fn phrases_are_found_in_a_line() {
        let found = |line: &str| phrases_in(line).count();
        assert_eq!(found(&format!("That is{} host, and {}ody knows.", " no", "nob")), 2);
        assert_eq!(found("There is no host for every user, and it is no longer asked."), 0);
    }

    #[test]
    fn pages_and_links_are_recognised() {
        assert!(is_page("README.md") && is_page("docs/http.md") && is_page("wit/CHANGELOG.md"));
        assert!(is_page("examples/embed.rs") && !is_page("tests/real-model/README.md") && !is_page("wit/log.wit"));
        let page = "[a](b.md#c) and ![d](e/f.png), [g](https://example.com/) [h](#i)";
        assert_eq!(links(page).collect::<Vec<_>>(), ["b.md", "e/f.png", "https://example.com/", ""]);
    }
}
