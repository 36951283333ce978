//! Section l: the same call through the component and natively, in turn, on
//! the same store; and what a second thread brings.

use std::time::{Duration, Instant};

use agent_teams_host::contract::Caller;
use anyhow::Result;
use serde_json::json;

use crate::measure::{Cell, round};
use crate::native::Native;
use crate::rig::{Rig, Team};
use crate::texts::{self, Answer, text};

const SAMPLES: usize = 200;

struct Pair<'a> {
    rig: &'a Rig,
    native: Native,
    owner: String,
}

impl Pair<'_> {
    /// The call in both, in turn.
    async fn compare(
        &self,
        name: &str,
        component: impl AsyncFn(usize) -> Result<()>,
        native: impl Fn(&Native, usize) -> Result<()>,
    ) -> Result<()> {
        let mut cells = [Cell::new(format!("{name}, component")), Cell::new(format!("{name}, native"))];
        for n in 0..SAMPLES + 20 {
            if n < 20 {
                component(2 * n).await?;
                native(&self.native, 2 * n + 1)?;
                continue;
            }
            cells[0].sample(&self.rig.db, component(2 * n)).await?;
            cells[1].sample(&self.rig.db, async { native(&self.native, 2 * n + 1) }).await?;
        }
        let ratio = |a: Duration, b: Duration| round(a.as_secs_f64() / b.as_secs_f64());
        let line = json!({
            "op": format!("{name}, component ÷ native"),
            "cpu": ratio(cells[0].cpu_each(), cells[1].cpu_each()),
            "p50": ratio(cells[0].percentile(0.5), cells[1].percentile(0.5)),
            "min": ratio(cells[0].percentile(0.0), cells[1].percentile(0.0)),
        });
        for cell in cells {
            cell.print();
        }
        println!("{line}");
        Ok(())
    }
}

pub async fn sandbox() -> Result<()> {
    let rig = Rig::new(Answer::Bytes(1024)).await?;
    let owner = texts::owner(0);
    let full = rig.full(&owner, 0, 50, 200).await?;
    let mut teams: Vec<Team> = Vec::new();
    for n in 1..9 {
        teams.push(rig.create(&owner, n, 4).await?);
    }
    let pair = Pair { rig: &rig, native: Native::new(rig.store.clone(), rig.agents.clone()), owner };
    let payload = |n: usize| {
        let team = &teams[n % teams.len()];
        team.request(n % 4, &format!("r{n}"), &text(200, &format!("req {n}"))).to_string()
    };
    pair.compare(
        "durable send",
        async |n| rig.action_text(&pair.owner, "send", &payload(n)).await.map(drop),
        |native, n| native.action(&pair.owner, "send", &payload(n)).map(drop),
    )
    .await?;
    let feed = json!({"team_id": full.id}).to_string();
    pair.compare(
        "get, 20 of 100 entries",
        async |_| rig.action_text(&pair.owner, "get", &feed).await.map(drop),
        |native, _| native.action(&pair.owner, "get", &feed).map(drop),
    )
    .await?;
    let seen = rig.action(&pair.owner, "get", json!({"team_id": full.id, "limit": 1})).await?;
    let unchanged = json!({"team_id": full.id, "revision": seen["team"]["revision"]}).to_string();
    pair.compare(
        "get, unchanged",
        async |_| rig.action_text(&pair.owner, "get", &unchanged).await.map(drop),
        |native, _| native.action(&pair.owner, "get", &unchanged).map(drop),
    )
    .await?;
    let context = json!({"team_id": full.id}).to_string();
    let thread = full.members[0].thread.clone();
    pair.compare(
        "read_team_context",
        async |_| {
            let caller = Caller { owner: pair.owner.clone(), thread: Some(thread.clone()), ..Caller::default() };
            rig.plugin.call_tool(caller, None, "read_team_context", &context).await?;
            Ok(())
        },
        |native, _| native.tool(&pair.owner, &thread, "read_team_context", &context).map(drop),
    )
    .await?;
    pair.compare(
        "search of mentions",
        async |_| {
            rig.plugin.search_mentions(Caller::owner(&pair.owner), "member 3").await?;
            Ok(())
        },
        |native, _| native.mentions(&pair.owner, "member 3").map(drop),
    )
    .await?;
    let empty = Rig::new(Answer::Bytes(1024)).await?;
    empty.full(&texts::owner(0), 0, 50, 200).await?;
    let idle =
        Pair { rig: &empty, native: Native::new(empty.store.clone(), empty.agents.clone()), owner: String::new() };
    idle.compare(
        "idle plan",
        async |_| {
            empty.plugin.plan(Vec::new(), false, Vec::new()).await?;
            Ok(())
        },
        |native, _| native.plan().map(drop),
    )
    .await?;
    threads(&rig).await
}

/// Fresh calls on one thread and on two, in turn.
async fn threads(rig: &Rig) -> Result<()> {
    const CALLS: usize = 10_000;
    let mut times = [Duration::ZERO; 2];
    for _ in 0..3 {
        for (lanes, total) in [1, 2].into_iter().zip(&mut times) {
            let start = Instant::now();
            let mut callers = tokio::task::JoinSet::new();
            for _ in 0..lanes {
                let plugin = rig.plugin.clone();
                callers.spawn(async move {
                    for _ in 0..CALLS {
                        plugin.info().await?;
                    }
                    anyhow::Ok(())
                });
            }
            for done in callers.join_all().await {
                done?;
            }
            *total += start.elapsed() / lanes;
        }
    }
    let rate = |time: Duration| round(3.0 * CALLS as f64 / time.as_secs_f64());
    let line = json!({
        "op": "fresh instance and trivial call", "calls_per_s_one_thread": rate(times[0]),
        "calls_per_s_two_threads": rate(times[1]),
        "two_threads_to_one": round(times[0].as_secs_f64() / times[1].as_secs_f64()),
    });
    println!("{line}");
    Ok(())
}
