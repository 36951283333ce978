//! The real program in a process of its own, on a data folder of its own.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const DEMO: &str = include_str!("../../../host-shim/demo/agent-teams.toml");

/// A data folder with the demo's agents, who answer without a pause, and a
/// server at any free port.
pub struct Folder {
    folder: TempDir,
}

/// How a command ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    fn new(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8 on stdout"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8 on stderr"),
        }
    }

    /// The one JSON document of a command that succeeded.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e} in {}", self.stdout))
    }

    /// Checks the exit code and gives the error document of `--json`.
    #[track_caller]
    pub fn refused(&self, code: i32) -> Value {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stdout, "", "nothing on stdout but an answer");
        let last = self.stderr.lines().last().unwrap_or_default();
        serde_json::from_str::<Value>(last).unwrap_or_else(|e| panic!("{e} in {}", self.stderr))["error"].clone()
    }
}

impl Folder {
    pub fn new() -> Self {
        Self::with(&demo_config())
    }

    pub fn with(config: &str) -> Self {
        // As private as the program itself makes it.
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let folder = tempfile::Builder::new().permissions(private).tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("agent-teams.toml"), config).expect("the configuration is written");
        Self { folder }
    }

    /// A copy of a data folder, which may be written.
    pub fn copy_of(data: &Path) -> Self {
        let folder = Self::with("");
        copy(data, folder.path());
        folder
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Changes the configuration.
    pub fn configure(&self, change: impl FnOnce(&str) -> String) {
        let file = self.path().join("agent-teams.toml");
        let text = std::fs::read_to_string(&file).expect("the configuration is read");
        std::fs::write(file, change(&text)).expect("the configuration is written");
    }

    pub fn database(&self) -> PathBuf {
        self.path().join("agent-teams.db")
    }

    /// The program on this folder. Nothing of the surroundings leaks in.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_under-test"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("AGENT_TEAMS_") {
                command.env_remove(name);
            }
        }
        command.env_remove("RUST_LOG").current_dir(self.path()).stdin(Stdio::null());
        command.arg("--data").arg(self.path()).args(args);
        command
    }

    pub fn run(&self, args: &[&str]) -> Ended {
        Ended::new(self.command(args).output().expect("the program starts"))
    }

    /// With `--json`.
    pub fn json(&self, args: &[&str]) -> Ended {
        let mut all = vec!["--json"];
        all.extend(args);
        self.run(&all)
    }

    /// Starts `serve` and waits until it listens.
    #[track_caller]
    pub fn serve(&self) -> Server {
        self.start().unwrap_or_else(|ended| panic!("it does not start: {}", ended.stderr))
    }

    /// The error document of a `serve` that must not start.
    #[track_caller]
    pub fn serve_refused(&self) -> Value {
        match self.start() {
            Err(ended) => ended.refused(3),
            Ok(server) => panic!("it serves at {}", server.url()),
        }
    }

    /// Where the server writes its log.
    pub fn log(&self) -> PathBuf {
        self.path().join("serve.log")
    }

    fn start(&self) -> Result<Server, Ended> {
        let log = std::fs::File::create(self.log()).expect("a log");
        let mut child =
            self.command(&["--json", "serve"]).stdout(Stdio::piped()).stderr(log).spawn().expect("the program starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        if line.is_empty() {
            let code = child.wait().expect("it ends").code();
            let stderr = std::fs::read_to_string(self.log()).expect("UTF-8 on stderr");
            return Err(Ended { code, stdout: line, stderr });
        }
        let announced = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e} in {line:?}"));
        Ok(Server { child, announced })
    }
}

/// Copies a folder with all below it, as private as the program makes its own.
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap_or_else(|e| panic!("{}: {e}", from.display())) {
        let (from, to) = entry.map(|entry| (entry.path(), to.join(entry.file_name()))).expect("an entry");
        let mode = if from.is_dir() {
            std::fs::create_dir(&to).expect("a folder is made");
            copy(&from, &to);
            0o700
        } else {
            std::fs::copy(&from, &to).expect("a file is copied");
            0o600
        };
        let private = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&to, private).expect("its mode is set");
    }
}

/// The demo's configuration, without the pauses that are for people. A pause of
/// a second or more is work that others wait for.
pub fn demo_config() -> String {
    let mut text = String::from("[server]\nbind = \"127.0.0.1:0\"\n\n");
    for line in DEMO.lines() {
        let pause = line.strip_prefix("delay_ms = ").and_then(|ms| ms.parse().ok()).is_some_and(|ms: u32| ms < 1_000);
        text.push_str(if pause { "delay_ms = 20" } else { line });
        text.push('\n');
    }
    text
}

/// A server in the background; dropping it kills it.
pub struct Server {
    child: Child,
    /// What it printed when it began to listen.
    pub announced: Value,
}

impl Server {
    pub fn url(&self) -> &str {
        self.announced["url"].as_str().expect("an address")
    }

    /// Where it listens.
    pub fn address(&self) -> std::net::SocketAddr {
        self.url().trim_start_matches("http://").parse().expect("an address")
    }

    /// Asks it to stop and waits until it has.
    pub fn stop(mut self) -> Option<i32> {
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().expect("kill");
        assert!(asked.success());
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
