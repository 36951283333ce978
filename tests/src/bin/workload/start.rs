//! Section n: from nothing to the first answer, and memory at rest.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::measure::{Cell, round};
use crate::rig::{Rig, place};
use crate::texts::{self, Answer};

/// The first argument with which this program is the product's own.
pub const AS_PROGRAM: &str = "--as-program";

const SAMPLES: usize = 5;

pub async fn start() -> Result<()> {
    let folder = tempfile::tempdir_in(place())?;
    let mut first = Cell::new("start to first answer, new data folder, component compiled");
    let mut cold = Cell::new("start to first answer, component compiled");
    let mut warm = Cell::new("start to first answer, compiled component cached");
    let rig = Rig::new(Answer::Bytes(1024)).await?;
    for n in 0..SAMPLES {
        let data = folder.path().join(format!("data-{n}"));
        first.samples(&rig.db, async { vec![serve(&data)] }).await;
        warm.samples(&rig.db, async { vec![serve(&data)] }).await;
        std::fs::remove_dir_all(data.join(agent_teams_host::app::CACHE_FOLDER))?;
        cold.samples(&rig.db, async { vec![serve(&data)] }).await;
    }
    for cell in [first, cold, warm] {
        ensure!(cell.percentile(0.0) > Duration::ZERO, "the program did not start");
        cell.print();
    }
    let program = std::env::current_exe()?.with_file_name(format!("agent-teams{}", std::env::consts::EXE_SUFFIX));
    match std::fs::metadata(&program) {
        Ok(found) => println!("{}", json!({"op": "size of the program with the component", "bytes": found.len()})),
        Err(_) => eprintln!("the size of the program is not told: build it first, with cargo build --release"),
    }
    memory(rig).await
}

/// Starts the program on a data folder, waits for its first answer, stops it.
/// Zero: there was none.
fn serve(data: &Path) -> Duration {
    match try_serve(data) {
        Ok(took) => took,
        Err(error) => {
            eprintln!("{error:#}");
            Duration::ZERO
        }
    }
}

fn try_serve(data: &Path) -> Result<Duration> {
    // A free port; whoever takes it meanwhile makes this fail, and loudly.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let config = data.with_extension("toml");
    std::fs::write(&config, format!("[server]\nbind = \"{address}\"\n"))?;
    let start = Instant::now();
    let mut child = Command::new(std::env::current_exe()?)
        .args([AS_PROGRAM, "serve", "--data"])
        .arg(data)
        .arg("--config")
        .arg(&config)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let took = first_answer(&mut child, address, start);
    stop(&mut child);
    took
}

fn first_answer(child: &mut Child, address: SocketAddr, start: Instant) -> Result<Duration> {
    loop {
        if let Ok(mut stream) = TcpStream::connect(address) {
            // The page's first file comes out of the component.
            let path = "/workspace/extensions/community.agent-teams/teams";
            write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            ensure!(answer.starts_with("HTTP/1.1 200"), "the first answer was {:?}", answer.lines().next());
            return Ok(start.elapsed());
        }
        ensure!(child.try_wait()?.is_none(), "the program ended before it answered");
        ensure!(start.elapsed() < Duration::from_secs(60), "the program did not answer within a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn stop(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Memory of this process with an idle component, and with 1,000 teams
/// connected.
async fn memory(rig: Rig) -> Result<()> {
    let rest = resident()?;
    for n in 0..1000 {
        rig.create(&texts::owner(n / 20), n % 20, 8).await?;
    }
    rig.tick().await?;
    let connected = resident()?;
    let line = json!({
        "op": "resident memory", "at_rest_mib": rest, "with_1000_teams_connected_mib": connected,
        "kib_a_team": round((connected - rest) * 1024.0 / 1000.0),
    });
    println!("{line}");
    Ok(())
}

/// MiB of this process in memory.
fn resident() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.split_whitespace().next().context("no VmRSS")?.parse()?;
    Ok(round(kib / 1024.0))
}
