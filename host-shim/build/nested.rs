// Builds a WebAssembly component of this workspace with a second cargo, from
// inside a build script. Included by the build scripts that need one.
//
// The second cargo has a target folder of its own: with the outer one's it
// would wait for a lock that the outer cargo holds until we are done.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TARGET: &str = "wasm32-wasip2";
/// An instance begins with all the memory that an ordinary call needs: growing
/// it within a call is a system call or two, in every call.
const MEMORY: &str = "link-arg=--initial-memory=2097152";
const STACK: &str = "link-arg=-zstack-size=131072";

/// Builds `package` (a library of the workspace at `root`) as a component and
/// returns its file. An error is one line that says what to do.
pub fn component(root: &Path, package: &str) -> Result<PathBuf, String> {
    ensure_target()?;
    let target_dir = target_dir()?.join("component");
    let cargo = var("CARGO")?;
    let mut command = Command::new(cargo);
    command
        .current_dir(root)
        // `rustc` and not `build`: with the one crate type that is shipped
        // cargo can optimise across crates.
        .args(["rustc", "--lib", "--crate-type", "cdylib", "--locked", "--quiet"])
        .args(["--profile", "component", "--target", TARGET, "--package", package])
        .arg("--target-dir")
        .arg(&target_dir)
        .arg("--")
        .args(["-C", STACK, "-C", MEMORY]);
    clear_leaks(&mut command);
    command.env("CARGO_ENCODED_RUSTFLAGS", without_paths(root)?);
    // A build script's standard output is read by cargo.
    let status = command.stdout(Stdio::null()).status().map_err(|e| format!("cannot run cargo for {package}: {e}"))?;
    if !status.success() {
        return Err(format!("the build of the component {package} failed (see above)"));
    }
    let file = target_dir.join(TARGET).join("component").join(format!("{}.wasm", package.replace('-', "_")));
    if file.is_file() { Ok(file) } else { Err(format!("the build of {package} left no component")) }
}

/// Tells cargo to build again when a file under one of `paths` changes.
pub fn watch(root: &Path, paths: &[&str]) {
    for path in paths {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
}

/// Ends the build script with one line on what is wrong.
pub fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1)
}

pub fn var(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("{name} is not set: this runs from a cargo build script only"))
}

/// The outer cargo's target folder: the one above our output that cargo has
/// marked as a cache.
fn target_dir() -> Result<PathBuf, String> {
    let out = PathBuf::from(var("OUT_DIR")?);
    let marked = out.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file());
    // <target>/<profile>/build/<package>/out
    marked
        .or_else(|| out.ancestors().nth(4))
        .map(Path::to_path_buf)
        .ok_or_else(|| format!("no target folder above {}", out.display()))
}

/// Makes sure that this toolchain can build for the component's target.
fn ensure_target() -> Result<(), String> {
    let rustc = var("RUSTC")?;
    let libdir = Command::new(&rustc).args(["--print", "target-libdir", "--target", TARGET]).output();
    if libdir.is_ok_and(|o| o.status.success() && Path::new(String::from_utf8_lossy(&o.stdout).trim()).is_dir()) {
        return Ok(());
    }
    let hint = format!("the Rust target {TARGET} is missing; run: rustup target add {TARGET}");
    let added = Command::new("rustup").args(["target", "add", TARGET]).stdout(Stdio::null()).status();
    if added.is_ok_and(|s| s.success()) { Ok(()) } else { Err(hint) }
}

/// Flags that keep the paths of this machine out of the component.
fn without_paths(root: &Path) -> Result<String, String> {
    let root = root.canonicalize().map_err(|e| format!("{}: {e}", root.display()))?;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let named = |path: &Path, name: &str| format!("--remap-path-prefix={}={name}", path.display());
    let mut flags = vec![named(&root, "agent-teams")];
    if let Some(cargo) = cargo {
        flags.push(named(&cargo, "cargo"));
        // One folder for each registry, named by its host; the last flag that
        // fits counts.
        let registries = std::fs::read_dir(cargo.join("registry/src")).into_iter().flatten().flatten();
        let mut registries: Vec<PathBuf> = registries.map(|folder| folder.path()).collect();
        registries.sort();
        flags.extend(registries.iter().map(|folder| named(folder, "crates")));
    }
    // The separator that cargo defines for this variable.
    Ok(flags.join("\u{1f}"))
}

/// Removes what the outer cargo set for this build script and what would
/// change the inner build: native flags, wrappers (clippy's), target folders.
/// The toolchain itself stays.
fn clear_leaks(command: &mut Command) {
    const KEEP: [&str; 3] = ["CARGO_HOME", "CARGO_TERM_COLOR", "CARGO_HTTP_CAINFO"];
    const DROP: [&str; 11] = [
        "RUSTFLAGS",
        "RUSTDOCFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_LINKER",
        "CLIPPY_ARGS",
        "TARGET",
        "HOST",
        "OUT_DIR",
        "PROFILE",
        "OPT_LEVEL",
    ];
    for (name, _) in std::env::vars_os() {
        let Some(name) = name.to_str() else { continue };
        let network =
            name.starts_with("CARGO_NET_") || name.starts_with("CARGO_HTTP_") || name.starts_with("CARGO_REGISTR");
        let cargo = name == "CARGO" || name.starts_with("CARGO_");
        if DROP.contains(&name) || (cargo && !network && !KEEP.contains(&name)) {
            command.env_remove(name);
        }
    }
}
