//! Licences: our own two texts, and those of everything that is linked.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{Count, cargo, output};

/// Licences under which a dependency may come, without further thought.
const ALLOWED: [&str; 13] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "CC0-1.0",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
];

/// Licences that ask for something in return, allowed for one package each:
/// its own files stay under them, ours do not.
const ALLOWED_FOR: [(&str, &str); 1] = [("option-ext", "MPL-2.0")];

pub fn check(root: &Path) -> Result<Count> {
    for (file, mark) in
        [("LICENSE-MIT", "Permission is hereby granted"), ("LICENSE-APACHE", "Version 2.0, January 2004")]
    {
        let text = std::fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        ensure!(text.contains(mark), "{file} is not the licence's text");
    }
    let metadata: Value =
        serde_json::from_str(&output(cargo(root).args(["metadata", "--format-version", "1", "--locked"]))?)?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        match package["license"].as_str() {
            Some(text) if ALLOWED_FOR.contains(&(name, text)) => {}
            Some(text) => match allowed(text) {
                Ok(true) => {}
                Ok(false) => wrong.push(format!("{name}: {text}")),
                Err(error) => wrong.push(format!("{name}: {text} ({error})")),
            },
            None => wrong.push(format!("{name}: names no licence")),
        }
    }
    ensure!(wrong.is_empty(), "not on the list of allowed licences: {}", wrong.join("; "));
    Ok(Count::check(format!("both texts; {} packages, all allowed", packages.len())))
}

/// Whether an SPDX expression can be met with allowed licences alone.
fn allowed(expression: &str) -> Result<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let result = any(&words, &mut at)?;
    ensure!(at == words.len(), "unexpected `{}`", words[at]);
    Ok(result)
}

fn any(words: &[&str], at: &mut usize) -> Result<bool> {
    let mut result = all(words, at)?;
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        result |= all(words, at)?;
    }
    Ok(result)
}

fn all(words: &[&str], at: &mut usize) -> Result<bool> {
    let mut result = one(words, at)?;
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        result &= one(words, at)?;
    }
    Ok(result)
}

fn one(words: &[&str], at: &mut usize) -> Result<bool> {
    let Some(word) = words.get(*at) else { bail!("the expression ends early") };
    *at += 1;
    if *word == "(" {
        let result = any(words, at)?;
        ensure!(words.get(*at) == Some(&")"), "a bracket is not closed");
        *at += 1;
        return Ok(result);
    }
    let mut name = (*word).to_owned();
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).context("the expression ends early")?;
        name = format!("{name} WITH {exception}");
        *at += 2;
    }
    Ok(ALLOWED.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::allowed;

    #[test]
    fn expressions_are_weighed() {
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "MIT/Apache-2.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
        ] {
            assert!(allowed(good).expect("parses"), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(GPL-2.0 OR AGPL-3.0) AND MIT", "Apache-2.0 WITH Other-exception"] {
            assert!(!allowed(bad).expect("parses"), "{bad}");
        }
        assert!(allowed("MIT AND (").is_err());
    }
}
