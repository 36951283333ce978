//! Builds the component that is embedded in the host, and tells the host
//! which version of the contract it was built for.

use std::path::{Path, PathBuf};

#[path = "build/nested.rs"]
mod nested;

fn main() {
    if let Err(message) = run() {
        nested::fail(&message);
    }
}

fn run() -> Result<(), String> {
    let root = PathBuf::from(nested::var("CARGO_MANIFEST_DIR")?).join("..");
    let out = PathBuf::from(nested::var("OUT_DIR")?);
    nested::watch(&root, &["plugin", "wit", "Cargo.lock", "Cargo.toml", "host-shim/build.rs", "host-shim/build"]);
    println!("cargo::rustc-env=AGENT_TEAMS_CONTRACT={}", contract_version(&root)?);

    println!("cargo::rerun-if-env-changed=AGENT_TEAMS_COMPONENT");
    let component = match std::env::var_os("AGENT_TEAMS_COMPONENT") {
        Some(prebuilt) => {
            let prebuilt = PathBuf::from(prebuilt);
            println!("cargo::rerun-if-changed={}", prebuilt.display());
            prebuilt
        }
        None => nested::component(&root, "agent-teams-plugin")?,
    };
    std::fs::copy(&component, out.join("agent_teams.wasm"))
        .map_err(|e| format!("cannot copy the component from {}: {e}", component.display()))?;
    Ok(())
}

/// The version in `package agent-teams:plugin@VERSION;`.
fn contract_version(root: &Path) -> Result<String, String> {
    let world = std::fs::read_to_string(root.join("wit/world.wit")).map_err(|e| format!("wit/world.wit: {e}"))?;
    let line = world.lines().find_map(|l| l.trim().strip_prefix("package agent-teams:plugin@"));
    line.map(|l| l.trim_end_matches(';').to_owned()).ok_or_else(|| "wit/world.wit names no package version".to_owned())
}
