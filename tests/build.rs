//! Builds the misbehaving component for the tests of the engine.

use std::path::PathBuf;

#[path = "../host-shim/build/nested.rs"]
mod nested;

fn main() {
    if let Err(message) = run() {
        nested::fail(&message);
    }
}

fn run() -> Result<(), String> {
    let root = PathBuf::from(nested::var("CARGO_MANIFEST_DIR")?).join("..");
    let out = PathBuf::from(nested::var("OUT_DIR")?);
    nested::watch(
        &root,
        &[
            "tests/guest",
            "plugin/src/allocator.rs",
            "wit",
            "Cargo.lock",
            "Cargo.toml",
            "tests/build.rs",
            "host-shim/build",
        ],
    );
    let component = nested::component(&root, "agent-teams-test-guest")?;
    std::fs::copy(&component, out.join("test_guest.wasm")).map_err(|e| format!("cannot copy the component: {e}"))?;
    Ok(())
}
