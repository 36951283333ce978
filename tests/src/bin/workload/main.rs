//! `cargo workload SECTION…`: the measured work.
//!
//! Every operation prints one line of JSON. The first line says on what it
//! was measured. Figures of different machines, or of a busy one, compare
//! only by counts and ratios.

mod agents;
mod board;
mod conversation;
mod http;
mod idle;
mod life;
mod many;
mod measure;
mod native;
mod others;
mod profile;
mod read;
mod rig;
mod send;
mod start;
mod tax;
mod texts;

use std::process::ExitCode;

use agent_teams_host::engine::Plugin;
use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::rig::Rig;
use crate::texts::Answer;

const SECTIONS: &str = "\
a  create        teams of 2 and 8 members
b  send          durable sends into teams with a history
c  life          requests from send to result, in loops and backlogs
d  get           the activity feed, plain and unchanged
e  search        mentions and lists over 20 full teams
f  idle          a tick with nothing to do, 1 to 200 full teams
g  others        context, history, state, connect, mention, cancel, resume, delete
h  size          bytes that a full team takes
i  concurrency   1, 8 and 64 callers at once
j  handoff       from the end of a run to the start of the receipt's
k  scale         idle plan and send beside 20, 200 and 2,000 full teams
l  sandbox       the component against its logic compiled natively
m  board         200 tasks made, claimed, completed, listed, replayed
n  start         from nothing to the first answer; memory
   http          what the gateway adds
   conversation  2,000 turns of one built-in agent
   fairness      one request beside a backlog of 200
   instructions  of the hot calls, counted by valgrind, beside the reference
                 (keep-instructions writes tests/instructions.json)
   hot-send, hot-life, hot-get, hot-info, …-native
                 one call again and again (HOT_LOOPS times), for a profiler
   all           everything";

async fn section(name: &str) -> Result<()> {
    match name {
        "a" | "create" => send::create().await,
        "b" | "send" => send::send().await,
        "c" | "life" => life::lifecycle().await,
        "d" | "get" => read::feed().await,
        "e" | "search" => read::search().await,
        "f" | "idle" => idle::idle().await,
        "g" | "others" => others::others().await,
        "h" | "size" => others::size().await,
        "i" | "concurrency" => many::concurrency().await,
        "j" | "handoff" => many::handoff().await,
        "k" | "scale" => idle::scale().await,
        "l" | "sandbox" => tax::sandbox().await,
        "m" | "board" => board::board().await,
        "n" | "start" => start::start().await,
        "http" => http::http().await,
        "conversation" => conversation::conversation().await,
        "fairness" => many::fairness().await,
        "instructions" => profile::instructions(false),
        "keep-instructions" => profile::instructions(true),
        hot if hot.starts_with("hot-") => profile::hot(hot).await,
        other => bail!("there is no section `{other}`; the sections are:\n{SECTIONS}"),
    }
}

const ALL: [&str; 17] =
    ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "http", "conversation", "fairness"];

/// On what the figures were measured.
async fn environment() -> Result<()> {
    let rig = Rig::new(Answer::Bytes(1)).await?;
    let info = rig.plugin.info().await?;
    let pragmas = rig.db.read(|conn| {
        let ask = |name: &str| -> anyhow::Result<Value> {
            let value: rusqlite::types::Value = conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))?;
            Ok(match value {
                rusqlite::types::Value::Integer(n) => n.into(),
                rusqlite::types::Value::Text(text) => text.into(),
                _ => Value::Null,
            })
        };
        Ok(json!({"journal_mode": ask("journal_mode")?, "page_size": ask("page_size")?, "mmap_size": ask("mmap_size")?}))
    })?;
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or_default();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let line = json!({
        "environment": {
            "processor": processor.trim_start_matches([':', ' ', '\t']), "kernel": kernel.trim(),
            "cores": std::thread::available_parallelism().map_or(0, usize::from),
            "load": std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim(),
            "sqlite": rusqlite::version(), "component": info.version, "contract": info.contract,
            "pragmas": pragmas, "writer": {"synchronous": "FULL", "cache_kib": 16384}, "readers": {"cache_kib": 1024},
            "component_bytes": Plugin::embedded().len(), "threads": 2,
        }
    });
    println!("{line}");
    Ok(())
}

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|first| first == start::AS_PROGRAM) {
        let rest = std::env::args_os().skip(2);
        return agent_teams_host::cli::main(std::iter::once("agent-teams".into()).chain(rest));
    }
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() || names.iter().any(|n| n == "--help" || n == "-h") {
        println!("cargo workload SECTION…\n\n{SECTIONS}");
        return ExitCode::SUCCESS;
    }
    if names.iter().any(|n| n == "all") {
        names = ALL.map(str::to_owned).to_vec();
    }
    let known = |name: &str| {
        let listed =
            SECTIONS.lines().any(|l| l.split_whitespace().take(2).any(|word| word.trim_end_matches(',') == name));
        listed || name.starts_with("hot-") || name == "keep-instructions"
    };
    if let Some(other) = names.iter().find(|name| !known(name)) {
        eprintln!("there is no section `{other}`; the sections are:\n{SECTIONS}");
        return ExitCode::from(2);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let result = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        runtime.block_on(async {
            environment().await?;
            for name in &names {
                let start = std::time::Instant::now();
                section(name).await?;
                eprintln!("{name}: {:.1} s", start.elapsed().as_secs_f64());
            }
            Ok(())
        })
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
