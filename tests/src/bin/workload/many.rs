//! Sections i and j: many callers at once, and how fast a result travels.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_teams_host::worker::{Options, Worker};
use anyhow::{Result, ensure};

use crate::measure::{Cell, round};
use crate::rig::{Rig, Team};
use crate::texts::{self, Answer, text};

/// i. 1, 8 and 64 callers; each has a team of its own.
pub async fn concurrency() -> Result<()> {
    for callers in [1, 8, 64] {
        let rig = Arc::new(Rig::new(Answer::Bytes(1024)).await?);
        let mut teams = Vec::new();
        for n in 0..64 {
            teams.push(rig.create(&texts::owner(n / 8), n % 8, 4).await?);
        }
        let each = (64 * 50 / callers).min(90);
        let mut cell = Cell::new(format!("send, {callers} callers at once"));
        let took = cell.samples(&rig.db, at_once(&rig, &teams[..callers], each)).await;
        ensure!(cell.len() == callers * each, "a send failed");
        cell.note("sends_per_s", round(cell.len() as f64 / took.as_secs_f64()));
        cell.print();
    }
    Ok(())
}

async fn at_once(rig: &Arc<Rig>, teams: &[Team], each: usize) -> Vec<Duration> {
    let mut callers = tokio::task::JoinSet::new();
    for team in teams {
        let (rig, team) = (rig.clone(), team.clone());
        callers.spawn(async move {
            let mut times = Vec::new();
            for n in 0..each {
                let start = Instant::now();
                if rig.send(&team, n % 4, &format!("r{n}"), &text(200, &format!("req {n}"))).await.is_ok() {
                    times.push(start.elapsed());
                }
            }
            times
        });
    }
    callers.join_all().await.into_iter().flatten().collect()
}

/// j. From the end of a member's run to the start of the receipt's run in the
/// conversation that asked, by events.
pub async fn handoff() -> Result<()> {
    let rig = Rig::new(Answer::Bytes(1024)).await?;
    let (ended, signals) = (rig.agents.subscribe(), rig.signals.subscribe());
    let worker = Worker::start(Arc::new(rig.plugin.clone()), ended, signals, None, Options::default());
    let mut cell = Cell::new("handoff: run ended to receipt's run started");
    for at in 0..3 {
        let team = rig.create(&texts::owner(0), at, 4).await?;
        for n in 0..100 {
            rig.agents.keep_journal();
            rig.ask(&team, 0, 1, &format!("r{n}"), &text(200, &format!("req {n}"))).await?;
            let (from, to) = (&team.members[1].thread, &team.members[0].thread);
            let took = loop {
                let marks = rig.agents.journal();
                let ended = marks.iter().find(|m| m.ended && &m.thread == from).map(|m| m.at);
                let started = marks.iter().find(|m| !m.ended && &m.thread == to).map(|m| m.at);
                match (ended, started) {
                    (Some(ended), Some(started)) => break started.duration_since(ended),
                    _ => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            };
            while crate::life::unfinished(&rig) > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            cell.samples(&rig.db, async { vec![took] }).await;
        }
    }
    worker.shutdown(Duration::from_secs(5)).await;
    cell.print();
    Ok(())
}

/// One owner has a backlog of 200 requests; another sends one: how many runs
/// are started before the other's.
pub async fn fairness() -> Result<()> {
    let rig = Rig::new(Answer::Bytes(1024)).await?;
    rig.agents.set_delay(true);
    let mut teams = Vec::new();
    for n in 0..8 {
        teams.push(rig.create(&texts::owner(0), n, 8).await?);
    }
    for n in 0..200 {
        rig.send(&teams[n % 8], n / 8 % 8, &format!("r{n}"), "Work.").await?;
    }
    rig.tick().await?;
    let other = rig.create(&texts::owner(1), 0, 2).await?;
    rig.send(&other, 0, "one", "Work.").await?;
    rig.agents.keep_journal();
    let mut ticks = 0;
    let started = loop {
        rig.agents.release_one();
        rig.tick().await?;
        ticks += 1;
        let marks = rig.agents.journal();
        let starts: Vec<&str> = marks.iter().filter(|m| !m.ended).map(|m| m.thread.as_str()).collect();
        if let Some(at) = starts.iter().position(|t| *t == other.members[0].thread) {
            break at;
        }
        ensure!(ticks < 500, "the other owner's request was never started");
    };
    let line = serde_json::json!({
        "op": "one request beside a backlog of 200", "runs_started_before_it": started, "slots_freed_before_it": ticks,
    });
    println!("{line}");
    Ok(())
}
