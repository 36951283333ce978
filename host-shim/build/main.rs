//! Builds the component that is embedded in the host, and tells the host
//! which version of the contract it was built for.

use std::path::{Path, PathBuf};

mod metadata;
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
    let embedded = out.join("agent_teams.wasm");
    if let Some(prebuilt) = std::env::var_os("AGENT_TEAMS_COMPONENT") {
        let prebuilt = PathBuf::from(prebuilt);
        println!("cargo::rerun-if-changed={}", prebuilt.display());
        return copy(&prebuilt, &embedded);
    }
    let built = nested::component(&root, "agent-teams-plugin")?;
    let mut bytes = std::fs::read(&built).map_err(|e| format!("{}: {e}", built.display()))?;
    bytes.extend(metadata::sections(&[
        ("version", &nested::var("CARGO_PKG_VERSION")?),
        ("licenses", &nested::var("CARGO_PKG_LICENSE")?),
        ("source", &nested::var("CARGO_PKG_REPOSITORY").unwrap_or_default()),
        ("description", "All logic of agent teams: durable requests between AI agents."),
    ]));
    // The file that is published, beside the folder in which it was built.
    let published = built.ancestors().nth(3).ok_or("no folder of components")?.join("agent-teams.wasm");
    std::fs::write(&published, bytes).map_err(|e| format!("{}: {e}", published.display()))?;
    copy(&published, &embedded)
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = std::fs::copy(from, to);
    copied.map(drop).map_err(|e| format!("cannot copy the component from {}: {e}", from.display()))
}

/// The version in `package agent-teams:plugin@VERSION;`.
fn contract_version(root: &Path) -> Result<String, String> {
    let world = std::fs::read_to_string(root.join("wit/world.wit")).map_err(|e| format!("wit/world.wit: {e}"))?;
    let line = world.lines().find_map(|l| l.trim().strip_prefix("package agent-teams:plugin@"));
    line.map(|l| l.trim_end_matches(';').to_owned()).ok_or_else(|| "wit/world.wit names no package version".to_owned())
}
