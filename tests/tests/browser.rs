//! The page in a real Chromium, on the real server with scripted agents. The
//! checks themselves are in `tests/browser`; this runs them. What they need is
//! installed only where that is asked for: with `AGENT_TEAMS_INSTALL` (`cargo
//! verify --install`) or `CI=true`. What is missing otherwise is an error, or,
//! under `cargo verify`, a line of its summary.
//!
//! `AGENT_TEAMS_PICTURES=docs/images` also writes the documentation's pictures.

use std::path::{Path, PathBuf};
use std::process::Command;

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/browser");

fn works(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[track_caller]
fn must(command: &mut Command, what: &str) {
    let status = command.status().unwrap_or_else(|e| panic!("{what}: {command:?} does not start: {e}"));
    assert!(status.success(), "{what}: {command:?} ended with {status}");
}

/// Whether packages may be installed on this machine.
fn may_install() -> bool {
    std::env::var_os("AGENT_TEAMS_INSTALL").is_some() || std::env::var("CI").is_ok_and(|ci| ci == "true")
}

/// One of the programs. An error says how to get it.
fn program(names: &[&str], package: &str) -> Result<String, String> {
    let found = || names.iter().find(|name| works(name)).map(|name| (*name).to_owned());
    if let Some(name) = found() {
        return Ok(name);
    }
    let missing = format!("{} is missing; run: apt-get install {package}", names[0]);
    if !may_install() {
        return Err(missing);
    }
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    assert!(root && works("apt-get"), "{missing}");
    must(Command::new("apt-get").args(["update", "-qq"]), &missing);
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "-qq", "--no-install-recommends"]).args(package.split(' '));
    must(install.env("DEBIAN_FRONTEND", "noninteractive"), &missing);
    Ok(found().unwrap_or_else(|| panic!("{missing}")))
}

/// The libraries of the lock file, once for each version of it.
fn libraries() -> Result<(), String> {
    let lock = std::fs::read(Path::new(HERE).join("package-lock.json")).expect("the lock file");
    let stamp = Path::new(HERE).join("node_modules/.installed-for");
    if std::fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    if !may_install() {
        return Err("the libraries of tests/browser are not installed".into());
    }
    let npm = program(&["npm"], "npm")?;
    must(
        Command::new(npm).args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(HERE),
        "the libraries of the browser tests",
    );
    std::fs::write(stamp, lock).expect("the stamp is written");
    Ok(())
}

/// Node and Chromium, with the libraries; or how to get them.
fn needs() -> Result<(String, String), String> {
    let node = program(&["node"], "nodejs npm")?;
    let chromium =
        program(&["chromium", "chromium-browser", "google-chrome"], "chromium fonts-noto-core fonts-noto-cjk")?;
    libraries()?;
    Ok((node, chromium))
}

#[test]
fn the_page_in_chromium() {
    let (node, chromium) = match needs() {
        Ok(found) => found,
        Err(missing) => {
            let said = format!("the page in Chromium: {missing}, or run: cargo verify --install");
            let Some(list) = std::env::var_os("AGENT_TEAMS_NOT_RUN") else { panic!("{said}") };
            return std::fs::write(list, said).expect("the list of what did not run");
        }
    };
    let path = String::from_utf8(
        Command::new("sh").args(["-c", &format!("command -v {chromium}")]).output().expect("sh").stdout,
    )
    .expect("a path");
    let mut run = Command::new(node);
    run.arg("run.mjs")
        .current_dir(HERE)
        .env("AGENT_TEAMS_BIN", env!("CARGO_BIN_EXE_under-test"))
        .env("AGENT_TEAMS_CHROMIUM", path.trim());
    if let Some(pictures) = std::env::var_os("AGENT_TEAMS_PICTURES") {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PathBuf::from(pictures));
        std::fs::create_dir_all(&folder).expect("the folder of the pictures");
        run.env("AGENT_TEAMS_PICTURES", folder.canonicalize().expect("the folder of the pictures"));
    }
    must(&mut run, "browser checks (see above)");
}
