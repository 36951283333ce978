//! What the built component can reach: the interfaces of its contract and
//! nothing else, so no file, environment, process or network.

use std::collections::{BTreeMap, BTreeSet};

use agent_teams_host::engine::Plugin;
use wasmparser::Payload;
use wit_component::DecodedWasm;

/// What the component may import, item by item.
const ALLOWED: [&str; 10] = [
    "agent-teams:plugin/agent-runs@0.2.0-draft",
    "agent-teams:plugin/connections@0.2.0-draft",
    "agent-teams:plugin/locks@0.2.0-draft",
    "agent-teams:plugin/log@0.2.0-draft",
    "agent-teams:plugin/settings@0.2.0-draft",
    "agent-teams:plugin/signals@0.2.0-draft",
    "agent-teams:plugin/storage@0.2.0-draft",
    "agent-teams:plugin/types@0.2.0-draft",
    "wasi:clocks/wall-clock@0.2.12",
    "wasi:random/random@0.2.12",
];

/// What the component offers.
const EXPORTS: [&str; 7] = [
    "agent-teams:plugin/actions@0.2.0-draft",
    "agent-teams:plugin/assets@0.2.0-draft",
    "agent-teams:plugin/lifecycle@0.2.0-draft",
    "agent-teams:plugin/mentions@0.2.0-draft",
    "agent-teams:plugin/operator@0.2.0-draft",
    "agent-teams:plugin/tools@0.2.0-draft",
    "agent-teams:plugin/worker@0.2.0-draft",
];

/// Names of what a component imports and exports.
fn names(component: &[u8]) -> (BTreeSet<String>, BTreeSet<String>) {
    let DecodedWasm::Component(resolve, world) = wit_component::decode(component).expect("a component") else {
        panic!("a WIT package and no component");
    };
    let world = &resolve.worlds[world];
    let named = |key| resolve.name_world_key(key);
    (world.imports.keys().map(named).collect(), world.exports.keys().map(named).collect())
}

fn assert_reach(component: &[u8]) {
    let (imports, exports) = names(component);
    let allowed: BTreeSet<String> = ALLOWED.map(String::from).into();
    let foreign: Vec<_> = imports.difference(&allowed).collect();
    assert!(foreign.is_empty(), "imports that the contract does not name: {foreign:?}");
    assert!(imports.contains("agent-teams:plugin/storage@0.2.0-draft"), "it keeps its records somewhere: {imports:?}");
    assert_eq!(exports, BTreeSet::from(EXPORTS.map(String::from)));
}

#[test]
fn the_shipped_component_imports_what_it_may_and_nothing_else() {
    assert_reach(Plugin::embedded());
}

#[test]
fn so_does_the_test_component() {
    assert_reach(agent_teams_tests::guest_component());
}

#[test]
fn registries_can_read_what_it_is() {
    let mut said = BTreeMap::new();
    let mut depth = 0;
    for payload in wasmparser::Parser::new(0).parse_all(Plugin::embedded()) {
        match payload.expect("a component") {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::CustomSection(section) if depth == 0 => {
                said.insert(section.name().to_owned(), String::from_utf8_lossy(section.data()).into_owned());
            }
            _ => {}
        }
    }
    assert!(said["component-name"].ends_with("agent-teams"));
    assert_eq!(said["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(said["licenses"], "MIT OR Apache-2.0");
    assert!(!said["description"].is_empty());
}

#[test]
fn it_names_no_path_of_the_machine_that_built_it() {
    let bytes = Plugin::embedded();
    let found = |needle: &str| bytes.windows(needle.len()).any(|window| window == needle.as_bytes());
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository");
    assert!(!found(root.to_str().expect("a text")), "the folder of the repository");
    assert!(!found("/.cargo/") && !found("/registry/src/index."), "the folder of the crates");
}
