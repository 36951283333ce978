//! What the built component can reach: the interfaces of its contract and
//! nothing else, so no file, environment, process or network.

use std::collections::BTreeSet;

use agent_teams_host::engine::Plugin;
use wit_component::DecodedWasm;

/// What the component may import, item by item.
const ALLOWED: [&str; 10] = [
    "agent-teams:plugin/agent-runs@0.1.0",
    "agent-teams:plugin/connections@0.1.0",
    "agent-teams:plugin/locks@0.1.0",
    "agent-teams:plugin/log@0.1.0",
    "agent-teams:plugin/settings@0.1.0",
    "agent-teams:plugin/signals@0.1.0",
    "agent-teams:plugin/storage@0.1.0",
    "agent-teams:plugin/types@0.1.0",
    "wasi:clocks/wall-clock@0.2.12",
    "wasi:random/random@0.2.12",
];

/// What the component offers.
const EXPORTS: [&str; 5] = [
    "agent-teams:plugin/lifecycle@0.1.0",
    "agent-teams:plugin/mentions@0.1.0",
    "agent-teams:plugin/routes@0.1.0",
    "agent-teams:plugin/tools@0.1.0",
    "agent-teams:plugin/worker@0.1.0",
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
    assert!(imports.contains("agent-teams:plugin/storage@0.1.0"), "it keeps its records somewhere: {imports:?}");
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
