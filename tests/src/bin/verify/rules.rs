//! The ids in the names of tests, beside `docs/rules.md`: each id has a rule,
//! and each rule has a test.
//!
//! `row_62_…` carries one id, `rows_26_to_28_…` and `prov_2_and_7_…` several.
//! Leading zeros do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::Count;
use crate::tree::files;

const PAGE: &str = "docs/rules.md";

/// A group of rules and a number in it: `row_62`.
type Id = (String, u32);

/// Every id in the name of a test has a rule, and every rule has a test.
pub fn check(root: &Path) -> Result<Count> {
    let page = std::fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let mut tests = BTreeMap::new();
    for file in files(root)?.iter().filter(|file| file.ends_with(".rs")) {
        for name in functions(&std::fs::read_to_string(root.join(file))?) {
            for id in ids(name) {
                tests.entry(id).or_insert_with(|| format!("{file}: {name}"));
            }
        }
    }
    let (rules, mut wrong) = rules(&page);
    wrong.extend(compare(&rules, &tests));
    ensure!(wrong.is_empty(), "{PAGE} and the names of tests differ:\n  {}", wrong.join("\n  "));
    Ok(Count::check(format!("{} rules, each with a test", rules.len())))
}

/// The ids of the page's tables, and what is wrong with them.
fn rules(page: &str) -> (BTreeSet<Id>, Vec<String>) {
    let (mut rules, mut wrong) = (BTreeSet::new(), Vec::new());
    for line in page.lines() {
        let Some((cell, rule)) = line.strip_prefix("| ").and_then(|row| row.split_once(" | ")) else { continue };
        let [id] = &ids(cell)[..] else { continue };
        if rule.trim_end_matches('|').trim().is_empty() {
            wrong.push(format!("{cell} has no rule"));
        }
        if !rules.insert(id.clone()) {
            wrong.push(format!("{cell} has two rules"));
        }
    }
    (rules, wrong)
}

fn compare(rules: &BTreeSet<Id>, tests: &BTreeMap<Id, String>) -> Vec<String> {
    let without_rule = tests.iter().filter(|(id, _)| !rules.contains(*id));
    let without_test = rules.iter().filter(|id| !tests.contains_key(*id));
    without_rule
        .map(|((group, number), test)| format!("{group}_{number} has no rule ({test})"))
        .chain(without_test.map(|(group, number)| format!("{group}_{number} has no test")))
        .collect()
}

/// The names of all functions of a file.
fn functions(code: &str) -> impl Iterator<Item = &str> {
    code.split("fn ").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

/// The ids with which a name begins.
fn ids(name: &str) -> Vec<Id> {
    let parts: Vec<&str> = name.split('_').collect();
    let number = |at: usize| parts.get(at).and_then(|part| part.parse::<u32>().ok());
    let (mut ids, mut at) = (Vec::new(), 0);
    while let (Some(group), Some(first)) = (parts.get(at), number(at + 1)) {
        if group.is_empty() || !group.bytes().all(|b| b.is_ascii_lowercase()) {
            break;
        }
        let group = if *group == "rows" { "row" } else { group };
        let (mut last, mut numbers) = (first, vec![first]);
        at += 2;
        while at < parts.len() {
            let (from, to, used) = match (parts[at], number(at), number(at + 1)) {
                (_, Some(next), _) => (next, next, 1),
                ("and", _, Some(next)) => (next, next, 2),
                ("to", _, Some(next)) => (last.saturating_add(1), next, 2),
                _ => break,
            };
            numbers.extend(from..=to);
            (last, at) = (to, at + used);
        }
        ids.extend(numbers.into_iter().map(|number| (group.to_owned(), number)));
    }
    ids
}

#[cfg(test)]
mod unit {
    use super::*;

    fn text(ids: Vec<Id>) -> String {
        ids.iter().map(|(group, number)| format!("{group}_{number}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn names_carry_ids() {
        for (name, carried) in [
            ("row_02_no_number_is_left", "row_2"),
            ("rows_26_to_28_wrong_states", "row_26 row_27 row_28"),
            ("rows_14_to_16_and_63_bad_scopes", "row_14 row_15 row_16 row_63"),
            ("rows_32_33_34_and_38_reassign", "row_32 row_33 row_34 row_38"),
            ("fault_19_20_reads_do_not_grow", "fault_19 fault_20"),
            ("lifecycle_24_fault_4_native", "lifecycle_24 fault_4"),
            ("prov_2_and_7_calls", "prov_2 prov_7"),
            ("race_1_of_fifty_claims", "race_1"),
            ("rows_that_cannot_be_read", ""),
            ("all_of_100_rows", ""),
            ("", ""),
        ] {
            assert_eq!(text(ids(name)), carried, "{name}");
        }
    }

    #[test]
    fn functions_are_found_in_code_of_any_kind() {
        let code = "    async fn sec_1_a() {}\nfn men_2(w: World) {}\n/// No fn\nlet f: fn(u8) = x;";
        assert_eq!(functions(code).filter(|name| !ids(name).is_empty()).collect::<Vec<_>>(), ["sec_1_a", "men_2"]);
    }

    #[test]
    fn a_rule_without_a_test_and_a_test_without_a_rule_are_found() {
        let (listed, wrong) = rules("# R\n| id | rule |\n|---|---|\n| sec_1 | One. |\n| sec_2 | Two. |\ntext sec_9\n");
        assert!(wrong.is_empty(), "{wrong:?}");
        let tests = |names: &[&str]| -> BTreeMap<Id, String> {
            names.iter().flat_map(|name| ids(name).into_iter().map(|id| (id, (*name).to_owned()))).collect()
        };
        assert!(compare(&listed, &tests(&["sec_1_and_2_x"])).is_empty());
        assert_eq!(
            compare(&listed, &tests(&["sec_1_x", "uni_3_y"])),
            ["uni_3 has no rule (uni_3_y)", "sec_2 has no test"]
        );
        let (_, wrong) = rules("| sec_1 | One. |\n| sec_1 | Again. |\n| sec_3 |  |");
        assert_eq!(wrong, ["sec_1 has two rules", "sec_3 has no rule"]);
    }

    #[test]
    fn the_page_is_complete() {
        check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
    }
}
