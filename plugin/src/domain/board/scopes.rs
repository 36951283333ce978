//! Write scopes: path prefixes that tell others where somebody works. They
//! lock nothing.

use alloc::string::String;

/// The stored form of a scope. `None`: it is not a relative path of plain parts.
pub fn normalise(raw: &str) -> Option<String> {
    let slashed = raw.replace('\\', "/");
    let path = slashed.strip_prefix("./").unwrap_or(&slashed).trim_end_matches('/');
    let bad_part = |part: &str| matches!(part, "" | "." | "..");
    if path.split('/').any(bad_part) || is_drive(path) {
        return None;
    }
    Some(path.into())
}

/// One letter and a colon. U+017F and U+212A are letters to a
/// case-insensitive reader, too.
fn is_drive(path: &str) -> bool {
    let mut chars = path.chars();
    let letter = |c: char| c.is_ascii_alphabetic() || matches!(c, '\u{17f}' | '\u{212a}');
    chars.next().is_some_and(letter) && chars.next() == Some(':')
}

/// Whether one is the other or is below it.
pub fn overlap(a: &str, b: &str) -> bool {
    let below = |long: &str, short: &str| long.strip_prefix(short).is_some_and(|r| r.is_empty() || r.starts_with('/'));
    below(a, b) || below(b, a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_14_to_21_and_63_scopes_that_are_no_relative_path_are_refused() {
        let bad = [
            "",
            ".",
            "..",
            "/root",
            "C:\\root",
            "C:root",
            "a//b",
            "a/../b",
            "./",
            ".//",
            "/",
            "\\\\srv\\x",
            "c:",
            "a:b",
            "a/./b",
            "src/.",
            ".//src",
            "././src",
            "\u{17f}:x",
            "\u{212a}:x",
        ];
        for raw in bad {
            assert_eq!(normalise(raw), None, "{raw:?}");
        }
    }

    #[test]
    fn rows_3_and_63_others_are_brought_to_one_form() {
        let good = [
            ("src", "src"),
            ("./src/", "src"),
            ("src/", "src"),
            ("src///", "src"),
            (".\\src\\a\\", "src/a"),
            ("cc:x", "cc:x"),
            (" ", " "),
            (" src", " src"),
            ("src ", "src "),
            ("...", "..."),
            (".git", ".git"),
            ("~", "~"),
            ("*", "*"),
            ("src/*.rs", "src/*.rs"),
            ("SRC", "SRC"),
            ("a/ /b", "a/ /b"),
            ("a\nb", "a\nb"),
        ];
        for (raw, stored) in good {
            assert_eq!(normalise(raw).as_deref(), Some(stored), "{raw:?}");
        }
    }

    #[test]
    fn scopes_overlap_at_part_boundaries_only() {
        assert!(overlap("src", "src") && overlap("src", "src/feature") && overlap("src/feature", "src"));
        assert!(!overlap("src", "src2") && !overlap("src/a", "src/b") && !overlap("SRC", "src"));
    }
}
