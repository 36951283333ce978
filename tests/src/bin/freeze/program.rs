//! The program in processes of its own, on the folder that will be frozen.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The argument that makes this runner the program `agent-teams`: the same
/// entry point, built from the same sources.
pub const PROGRAM: &str = "agent-teams";

pub struct Program {
    file: PathBuf,
    pub data: PathBuf,
}

impl Program {
    pub fn new(data: &Path) -> Result<Self> {
        Ok(Self { file: std::env::current_exe()?, data: data.to_owned() })
    }

    /// Nothing of the surroundings leaks in.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.file);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("AGENT_TEAMS_") {
                command.env_remove(name);
            }
        }
        command.env_remove("RUST_LOG").current_dir(&self.data).stdin(Stdio::null());
        command.arg(PROGRAM).arg("--json").arg("--data").arg(&self.data).args(args);
        command
    }

    /// Runs a command that must succeed, and gives its document.
    pub fn run(&self, args: &[&str]) -> Result<Value> {
        let output = self.command(args).output()?;
        ensure!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).with_context(|| format!("{args:?}"))
    }

    /// Starts to serve and waits until it listens.
    pub fn serve(&self) -> Result<Server> {
        let mut child = self.command(&["serve"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no pipe")?).read_line(&mut line)?;
        let announced: Value = serde_json::from_str(&line).with_context(|| format!("serve says {line:?}"))?;
        let url = announced["url"].as_str().context("no address")?.to_owned();
        Ok(Server { child, url })
    }
}

/// A server; dropping it kills it.
pub struct Server {
    child: Child,
    url: String,
}

impl Server {
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Asks it to stop, and waits.
    pub fn stop(mut self) -> Result<()> {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        let status = self.child.wait()?;
        ensure!(status.success(), "serve ended with {status}");
        Ok(())
    }

    /// SIGKILL: whatever was under way is left as it is.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
