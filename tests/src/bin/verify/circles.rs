//! No circles of imports: the files of a folder form layers. An edge between a
//! module and one above or below it in the tree does not count, since a parent
//! declares its children.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Result, ensure};

use crate::Count;
use crate::tree::files;

/// Folders whose files may not import each other in a circle, with the crate's
/// root for `crate::`.
const RUST: [(&str, &str); 4] = [
    ("plugin/src/app", "plugin/src"),
    ("plugin/src/domain", "plugin/src"),
    ("host-shim/src/cli", "host-shim/src"),
    ("host-shim/src/engine", "host-shim/src"),
];
const PAGE: &str = "plugin/web/js";
/// The layers of the component's application: each uses those before it only.
const LAYERS: [&str; 4] = ["shared", "scheduling", "board", "commands"];

type Graph = BTreeMap<String, BTreeSet<String>>;

pub fn check(root: &Path) -> Result<Count> {
    let all = files(root)?;
    let read = |file: &String| std::fs::read_to_string(root.join(file));
    let mut looked = 0;
    let mut wrong = Vec::new();
    for (folder, top) in RUST {
        let mut sources = BTreeMap::new();
        for file in all.iter().filter(|file| file.starts_with(&format!("{folder}/")) && file.ends_with(".rs")) {
            sources.insert(module(file, top), read(file)?);
        }
        looked += sources.len();
        let graph = rust(&sources);
        wrong.extend(circles(&graph).into_iter().map(|circle| circle.join(" → ")));
        if folder == "plugin/src/app" {
            wrong.extend(upwards(&graph));
        }
    }
    let mut page = Graph::new();
    for file in all.iter().filter(|file| file.starts_with(&format!("{PAGE}/")) && file.ends_with(".js")) {
        page.insert(file.clone(), script(file, &read(file)?));
    }
    looked += page.len();
    wrong.extend(circles(&page).into_iter().map(|circle| circle.join(" → ")));
    ensure!(wrong.is_empty(), "imports that lead back:\n  {}", wrong.join("\n  "));
    Ok(Count::check(format!("{looked} files, no circle of imports")))
}

/// `app::shared::view` of `plugin/src/app/shared/view.rs`.
fn module(file: &str, top: &str) -> String {
    let path = file.strip_prefix(top).unwrap_or(file).trim_start_matches('/').trim_end_matches(".rs");
    path.strip_suffix("/mod").unwrap_or(path).replace('/', "::")
}

/// Who uses whom, by the paths that begin with `crate` or `super`.
fn rust(sources: &BTreeMap<String, String>) -> Graph {
    let mut graph = Graph::new();
    for (name, text) in sources {
        let uses = graph.entry(name.clone()).or_default();
        for path in paths(&code(text)) {
            let Some(path) = absolute(name, &path) else { continue };
            let known = (1..=path.len()).rev().map(|n| path[..n].join("::")).find(|m| sources.contains_key(m));
            uses.extend(known.filter(|other| !related(name, other)));
        }
    }
    graph
}

/// Whether one of two modules is above the other.
fn related(one: &str, other: &str) -> bool {
    let below = |a: &str, b: &str| a == b || a.strip_prefix(b).is_some_and(|rest| rest.starts_with("::"));
    below(one, other) || below(other, one)
}

/// The text without comments and without its unit tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// All paths in it that begin with `crate::` or `super::`, with the trees of
/// `use` spread out.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                spread(&code[at..], Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Reads `a::b` or `a::{b, c::d}` from the beginning of a text. Gives the rest.
fn spread<'t>(mut text: &'t str, mut path: Vec<String>, found: &mut Vec<Vec<String>>) -> &'t str {
    loop {
        text = text.trim_start();
        if let Some(mut inner) = text.strip_prefix('{') {
            loop {
                inner = spread(inner, path.clone(), found).trim_start();
                match inner.strip_prefix(',') {
                    Some(next) => inner = next,
                    None => return inner.strip_prefix('}').unwrap_or(""),
                }
            }
        }
        let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
        if end > 0 && &text[..end] != "self" {
            path.push(text[..end].to_owned());
        }
        match text[end..].strip_prefix("::") {
            Some(rest) => text = rest,
            None => {
                found.push(path);
                let rest = text[end..].trim_start();
                let alias = rest.strip_prefix("as ").map(|name| name.trim_start());
                return alias.map_or(rest, |name| name.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'));
            }
        }
    }
}

/// The path from the crate's root. Nothing: it leads out of it.
fn absolute(of: &str, path: &[String]) -> Option<Vec<String>> {
    if path.first().is_some_and(|first| first == "crate") {
        return Some(path[1..].to_vec());
    }
    let mut base: Vec<String> = of.split("::").map(str::to_owned).collect();
    let ups = path.iter().take_while(|part| *part == "super").count();
    base.truncate(base.len().checked_sub(ups)?);
    base.extend_from_slice(&path[ups..]);
    Some(base)
}

/// What a file of the page imports, by path.
fn script(file: &str, text: &str) -> BTreeSet<String> {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let Some((_, rest)) = line.split_once("from '") else { continue };
        let Some((target, _)) = rest.split_once('\'') else { continue };
        let mut path = folder.to_path_buf();
        for part in target.split('/') {
            match part {
                "." => {}
                ".." => drop(path.pop()),
                part => path.push(part),
            }
        }
        found.insert(path.to_string_lossy().into_owned());
    }
    found
}

/// Groups of nodes that reach each other.
fn circles(graph: &Graph) -> Vec<Vec<&str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|node| (node.as_str(), reached(graph, node))).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (node, to) in &reach {
        if seen.contains(node) || !to.contains(node) {
            continue;
        }
        let group: Vec<&str> =
            to.iter().copied().filter(|other| reach.get(other).is_some_and(|back| back.contains(node))).collect();
        seen.extend(group.iter().copied());
        found.push(group);
    }
    found
}

fn reached<'g>(graph: &'g Graph, from: &str) -> BTreeSet<&'g str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = graph.get(from).into_iter().flatten().map(String::as_str).collect();
    while let Some(node) = open.pop() {
        if reached.insert(node) {
            open.extend(graph.get(node).into_iter().flatten().map(String::as_str));
        }
    }
    reached
}

/// Imports of a later layer by an earlier one.
fn upwards(graph: &Graph) -> Vec<String> {
    let layer = |module: &str| {
        let room = module.split("::").nth(1)?;
        LAYERS.iter().position(|layer| *layer == room)
    };
    let mut found = Vec::new();
    for (one, uses) in graph {
        for other in uses {
            if let (Some(low), Some(high)) = (layer(one), layer(other))
                && low < high
            {
                found.push(format!("{one} uses {other}, which is above it"));
            }
        }
    }
    found
}

#[cfg(test)]
mod unit {
    use super::*;

    fn graph(sources: &[(&str, &str)]) -> Graph {
        rust(&sources.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
    }

    #[test]
    fn a_circle_is_found_in_trees_of_imports_and_in_paths() {
        let found = graph(&[
            ("app::a", "use super::{b::{self, B as C}, d};"),
            ("app::b", "fn f() { crate::app::c::go() }"),
            ("app::c", "use crate::app::a;\n// use super::d;"),
            ("app::d", "#[cfg(test)]\nmod tests { use super::a; }"),
        ]);
        assert_eq!(circles(&found), [["app::a", "app::b", "app::c"]]);
    }

    #[test]
    fn parents_and_children_make_none() {
        let found = graph(&[("app", "mod a; use self::a::A;"), ("app::a", "use super::Ctx; use super::a::X;")]);
        assert!(circles(&found).is_empty());
    }

    #[test]
    fn an_earlier_layer_uses_no_later_one() {
        let found = graph(&[
            ("app::shared::view", "use crate::app::commands::get;"),
            ("app::commands::get", "use crate::app::shared::args;"),
            ("app::shared::args", ""),
        ]);
        assert_eq!(upwards(&found), ["app::shared::view uses app::commands::get, which is above it"]);
    }

    #[test]
    fn the_page_is_read_too() {
        let of = |file: &str, text: &str| script(file, text).into_iter().collect::<Vec<_>>();
        assert_eq!(of("web/js/views/a.js", "import { x } from '../text.js';"), ["web/js/text.js"]);
    }
}
