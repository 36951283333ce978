//! A component of another contract version is refused before it is linked.

use agent_teams_host::engine::{CONTRACT, LoadError, Plugin};

use crate::support::{bench_with, options};

/// The test component, as if built against another version of the contract:
/// a name has its length before it, and this keeps the length.
fn of_version(version: &str) -> Vec<u8> {
    assert_eq!(version.len(), CONTRACT.len());
    let mut bytes = agent_teams_tests::guest_component().to_vec();
    let package = b"agent-teams:plugin/";
    let suffix = format!("@{CONTRACT}");
    let mut changed = 0;
    for at in 0..bytes.len() {
        if !bytes[at..].starts_with(package) {
            continue;
        }
        let name_end = bytes[at..].iter().position(|byte| *byte == b'@').unwrap() + at;
        if bytes[name_end..].starts_with(suffix.as_bytes()) {
            bytes[name_end + 1..name_end + suffix.len()].copy_from_slice(version.as_bytes());
            changed += 1;
        }
    }
    assert!(changed > 10, "the component names its contract");
    bytes
}

#[test]
fn another_version_is_refused_by_naming_both() {
    for version in ["0.1.0-draft", "0.2.0-other", "9.2.0-draft"] {
        let refused = bench_with(&of_version(version), "{}", options()).err().expect("it must not load");
        assert!(matches!(refused.downcast_ref(), Some(LoadError::Contract { .. })), "{refused}");
        let text = refused.to_string();
        assert!(text.contains(version) && text.contains(CONTRACT), "{text}");
    }
    assert!(bench_with(&of_version(CONTRACT), "{}", options()).is_ok());
}

#[test]
fn what_is_no_component_is_refused() {
    for bytes in [&b""[..], b"\0asm\x01\0\0\0", b"not wasm at all", &agent_teams_tests::guest_component()[..5000]] {
        let refused = bench_with(bytes, "{}", options()).err().expect("it must not load");
        assert!(matches!(refused.downcast_ref(), Some(LoadError::Component(_))), "{refused}");
    }
}

#[test]
fn the_embedded_component_is_not_the_test_component() {
    assert_ne!(Plugin::embedded(), agent_teams_tests::guest_component());
}
