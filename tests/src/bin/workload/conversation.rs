//! A long conversation of one built-in agent: what its store takes, and
//! whether a late turn costs more than an early one.

use std::sync::Arc;
use std::time::Duration;

use agent_teams_host::agents::builtin::BuiltinAgents;
use agent_teams_host::agents::host::ToolHost;
use agent_teams_host::agents::runs::Input;
use agent_teams_host::clock::SystemClock;
use agent_teams_host::config::Config;
use agent_teams_host::contract::{CallError, Caller, ToolDef};
use agent_teams_host::storage::SqliteTables;
use agent_teams_host::storage::database::Database;
use agent_teams_host::users::UserDirectory;
use anyhow::Result;
use async_trait::async_trait;
use serde_json::json;

use crate::measure::{Cell, round};
use crate::rig::place;
use crate::texts::text;

const TURNS: usize = 2000;
const BYTES: usize = 2000;
/// Turns that are measured together: around the 100th, and the last.
const GROUP: usize = 100;

struct NoTools;

#[async_trait]
impl ToolHost for NoTools {
    async fn list(&self) -> Result<Vec<ToolDef>, CallError> {
        Ok(Vec::new())
    }
    async fn call(&self, _: Caller, _: &str, _: &str) -> Result<String, CallError> {
        Ok("{}".into())
    }
}

impl UserDirectory for NoTools {
    fn enabled(&self, _user: &str) -> anyhow::Result<bool> {
        Ok(true)
    }
}

pub async fn conversation() -> Result<()> {
    let folder = tempfile::tempdir_in(place())?;
    let file = folder.path().join("data.sqlite");
    let db = Database::open(&file)?;
    let answer = text(BYTES / 2, "answer");
    let config = format!(
        "[[agents]]\nname = 'a'\nmodel = 'm'\n[models.m]\nkind = 'scripted'\n[[models.m.rules]]\ntext = '{answer}'\n"
    );
    let config = Config::parse(&config, "workload")?.agents;
    let tables = SqliteTables::open(db.clone(), Arc::new(SystemClock)).await?;
    let agents = BuiltinAgents::open(tables, config, Arc::new(NoTools), Arc::new(NoTools), folder.path().join("w"))?;
    agents.recover().await?;
    let mut ended = agents.ended();
    let runs = agents.capability("owner").runs;
    runs.create_thread("thread", "a", "Long", "group").await?;
    let (mut early, mut late) = (Cell::new("turns 51 to 150 of 2 KB"), Cell::new("turns 1,901 to 2,000 of 2 KB"));
    for n in 0..TURNS {
        let input = Input {
            message_id: format!("m{n}"),
            text: text(BYTES / 2, &format!("turn {n}")),
            answers: None,
            provenance: "{}".into(),
            ..Input::default()
        };
        let turn = async {
            runs.start("thread", &input, &format!("key-{n}")).await?;
            ended.recv().await?;
            anyhow::Ok(())
        };
        match n {
            50..150 => early.sample(&db, turn).await?,
            1900.. => late.sample(&db, turn).await?,
            _ => turn.await?,
        }
    }
    let ratio = |a: Duration, b: Duration| round(a.as_secs_f64() / b.as_secs_f64());
    let (cpu, p50) = (ratio(late.cpu_each(), early.cpu_each()), ratio(late.percentile(0.5), early.percentile(0.5)));
    debug_assert_eq!(early.len(), GROUP);
    early.print();
    late.print();
    agents.shutdown().await;
    drop(agents);
    db.close();
    let bytes = std::fs::metadata(&file)?.len();
    let line = json!({
        "op": "conversation of 2,000 turns of 2 KB", "file_bytes": bytes,
        "file_to_text": round(bytes as f64 / (TURNS * BYTES) as f64), "late_to_early_cpu": cpu, "late_to_early_p50": p50,
    });
    println!("{line}");
    Ok(())
}
