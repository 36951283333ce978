//! Hot loops, for a profiler: one call again and again, through the component
//! or natively; and the instructions that each takes.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use crate::measure::{Cell, round};
use crate::native::Native;
use crate::rig::{Rig, Team};
use crate::texts::{self, Answer, text};

/// Runs a hot loop some times, or `HOT_LOOPS` times.
pub async fn hot(what: &str) -> Result<()> {
    let count = std::env::var("HOT_LOOPS").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    let rig = Rig::new(Answer::Bytes(1024)).await?;
    let native = Native::new(rig.store.clone(), rig.agents.clone());
    let owner = texts::owner(0);
    // Only what the loop needs: under a counter everything takes long.
    let full = rig.full(&owner, 0, if what.starts_with("hot-get") { 20 } else { 0 }, 200).await?;
    let feed = json!({"team_id": full.id}).to_string();
    let mut teams = Teams { rig: &rig, at: 1, team: None, sent: 0 };
    let mut cell = Cell::new(what);
    for _ in 0..count {
        match what {
            "hot-info" => drop(cell.sample(&rig.db, rig.plugin.info()).await?),
            "hot-get" => drop(cell.sample(&rig.db, rig.action_text(&owner, "get", &feed)).await?),
            "hot-get-native" => {
                cell.sample(&rig.db, async { native.action(&owner, "get", &feed) }).await?;
            }
            "hot-plan-native" => drop(cell.sample(&rig.db, async { native.plan() }).await?),
            "hot-send" | "hot-send-native" => {
                let (team, payload) = teams.next().await?;
                match what {
                    "hot-send" => {
                        cell.sample(&rig.db, rig.action_text(&team.owner, "send", &payload)).await?;
                    }
                    _ => {
                        cell.sample(&rig.db, async { native.action(&team.owner, "send", &payload) }).await?;
                    }
                }
            }
            "hot-life" | "hot-life-native" => {
                let (team, payload) = teams.next().await?;
                match what {
                    "hot-life" => {
                        let life = async {
                            rig.action_text(&team.owner, "send", &payload).await?;
                            rig.tick().await
                        };
                        cell.sample(&rig.db, life).await?;
                    }
                    _ => {
                        let life = async {
                            native.action(&team.owner, "send", &payload)?;
                            native.tick()
                        };
                        cell.sample(&rig.db, life).await?;
                    }
                }
            }
            other => bail!("there is no hot loop `{other}`"),
        }
    }
    cell.print();
    Ok(())
}

/// Teams that are filled one after the other.
struct Teams<'a> {
    rig: &'a Rig,
    at: usize,
    team: Option<Team>,
    sent: usize,
}

impl Teams<'_> {
    /// The next request: its team, and the payload of `send`.
    async fn next(&mut self) -> Result<(Team, String)> {
        if self.team.is_none() || self.sent == 99 {
            self.team = Some(self.rig.create(&texts::owner(self.at / 20), self.at % 20, 4).await?);
            self.at += 1;
            self.sent = 0;
        }
        let team = self.team.clone().context("a team")?;
        let n = self.sent;
        self.sent += 1;
        let payload = team.request(n % 4, &format!("r{n}"), &text(200, &format!("req {n}"))).to_string();
        Ok((team, payload))
    }
}

const COUNTED: [&str; 4] = ["hot-send-native", "hot-life-native", "hot-get-native", "hot-plan-native"];

/// Where the reference is kept.
fn reference() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json")
}

/// Counts the instructions of each native hot loop with valgrind and compares
/// them with the reference file. `keep`: writes the file instead.
pub fn instructions(keep: bool) -> Result<()> {
    let known = std::fs::read_to_string(reference()).unwrap_or_else(|_| "{}".into());
    let known: serde_json::Value = serde_json::from_str(&known)?;
    let mut counts = serde_json::Map::new();
    // The processor that valgrind shows has other features than the real one:
    // the first run compiles the component for it.
    count(COUNTED[0], 1)?;
    for what in COUNTED {
        // Two runs of different length: what is not the loop falls away.
        let (few, many) = (count(what, 50)?, count(what, 150)?);
        ensure!(many > few, "a longer run took fewer instructions: {many} against {few}");
        let each = (many - few) / 100;
        let before = known[what].as_u64();
        let ratio = before.map(|before| round(each as f64 / before as f64));
        println!("{}", json!({"op": what, "instructions": each, "reference": before, "ratio": ratio}));
        counts.insert(what.into(), each.into());
    }
    if keep {
        std::fs::write(reference(), serde_json::to_string_pretty(&counts)? + "\n")?;
    }
    Ok(())
}

fn count(what: &str, loops: u32) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .arg(what)
        .env("HOT_LOOPS", loops.to_string())
        .output()
        .context("valgrind cannot be started; it is needed to count instructions")?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the counted run failed: {text}");
    let line = text.lines().find_map(|l| l.split_once("Collected :")).context("valgrind counted nothing")?;
    Ok(line.1.trim().parse()?)
}
