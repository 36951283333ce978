//! The page in a real Chromium, on the real server with scripted agents. The
//! checks themselves are in `tests/browser`; this installs what they need and
//! runs them. What is missing and cannot be installed is an error, never a
//! skip.
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

/// One of the programs, installed from the system's packages if there is none.
fn program(names: &[&str], package: &str) -> String {
    let found = || names.iter().find(|name| works(name)).map(|name| (*name).to_owned());
    if let Some(name) = found() {
        return name;
    }
    let missing = format!("{} is needed for the browser tests; install it: apt-get install {package}", names[0]);
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    assert!(root && works("apt-get"), "{missing}");
    must(Command::new("apt-get").args(["update", "-qq"]), &missing);
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "-qq", "--no-install-recommends"]).args(package.split(' '));
    must(install.env("DEBIAN_FRONTEND", "noninteractive"), &missing);
    found().unwrap_or_else(|| panic!("{missing}"))
}

/// The libraries of the lock file, once for each version of it.
fn libraries() {
    let lock = std::fs::read(Path::new(HERE).join("package-lock.json")).expect("the lock file");
    let stamp = Path::new(HERE).join("node_modules/.installed-for");
    if std::fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return;
    }
    let npm = program(&["npm"], "npm");
    must(
        Command::new(npm).args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(HERE),
        "the libraries of the browser tests",
    );
    std::fs::write(stamp, lock).expect("the stamp is written");
}

#[test]
fn the_page_in_chromium() {
    let node = program(&["node"], "nodejs npm");
    let chromium =
        program(&["chromium", "chromium-browser", "google-chrome"], "chromium fonts-noto-core fonts-noto-cjk");
    libraries();
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
