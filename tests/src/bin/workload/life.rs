//! Section c: the whole life of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use agent_teams_host::agents::runs::Capability;
use agent_teams_host::contract::{CallError, EndedRun, Plan, TeamRef};
use agent_teams_host::engine::Plugin;
use agent_teams_host::worker::{self, Options, Worker};
use anyhow::{Result, bail};
use async_trait::async_trait;
use serde_json::json;

use crate::measure::{Cell, round};
use crate::rig::{Rig, Team};
use crate::texts::{self, Answer, text};

/// Teams, owners, requests a team, and whether runs end between two ticks.
const BACKLOGS: [(usize, usize, usize, bool); 4] =
    [(1, 1, 100, false), (20, 1, 20, false), (200, 10, 4, false), (20, 1, 20, true)];

pub async fn lifecycle() -> Result<()> {
    closed_owner().await?;
    closed_peer().await?;
    for (teams, owners, requests, delay) in BACKLOGS {
        backlog(teams, owners, requests, delay).await?;
    }
    for (teams, owners, requests, _) in [BACKLOGS[1], BACKLOGS[2]] {
        with_worker(teams, owners, requests).await?;
    }
    Ok(())
}

async fn closed_owner() -> Result<()> {
    let rig = Rig::new(Answer::Bytes(1024)).await?;
    let team = rig.create(&texts::owner(0), 0, 4).await?;
    let mut cell = Cell::new("closed loop, owner");
    for n in 0..100 {
        let (request, body) = (format!("r{n}"), text(200, &format!("req {n}")));
        let life = async {
            rig.send(&team, (n + 1) % 4, &request, &body).await?;
            rig.tick().await
        };
        cell.sample(&rig.db, life).await?;
    }
    finished(&rig, &team, 100).await?;
    per_second(&mut cell, 100);
    cell.print();
    Ok(())
}

async fn closed_peer() -> Result<()> {
    let rig = Rig::new(Answer::Bytes(1024)).await?;
    let team = rig.create(&texts::owner(0), 0, 4).await?;
    let mut cell = Cell::new("closed loop, peer with receipt");
    for n in 0..100 {
        let (request, body) = (format!("r{n}"), text(200, &format!("req {n}")));
        let life = async {
            rig.ask(&team, n % 4, (n + 1) % 4, &request, &body).await?;
            rig.tick().await?;
            rig.tick().await
        };
        cell.sample(&rig.db, life).await?;
    }
    finished(&rig, &team, 200).await?;
    per_second(&mut cell, 100);
    cell.print();
    Ok(())
}

/// Every entry of the team is completed.
async fn finished(rig: &Rig, team: &Team, entries: u64) -> Result<()> {
    let seen = rig.action(&team.owner, "get", json!({"team_id": team.id, "limit": 1})).await?;
    let counts = &seen["team"]["counts"];
    let done = counts["requests"].as_u64().unwrap_or(0) + counts["receipts"].as_u64().unwrap_or(0);
    if counts["unfinished"] != 0 || done != entries {
        bail!("not everything was done: {counts}, where {entries} entries were expected");
    }
    Ok(())
}

fn per_second(cell: &mut Cell, requests: usize) {
    let rate = requests as f64 / cell.total().as_secs_f64();
    cell.note("requests_per_s", round(rate));
}

async fn teams(rig: &Rig, teams: usize, owners: usize) -> Result<Vec<Team>> {
    let mut made = Vec::new();
    for n in 0..teams {
        let each = teams / owners;
        made.push(rig.create(&texts::owner(n / each), n % each, 4).await?);
    }
    Ok(made)
}

/// Request `r` of a team: the owner's and the members' in turn.
async fn request(rig: &Rig, team: &Team, r: usize) -> Result<()> {
    let (name, body) = (format!("r{r}"), text(200, &format!("req {r}")));
    match r % 2 {
        0 => rig.send(team, (r + 1) % 4, &name, &body).await?,
        _ => rig.ask(team, r % 4, (r + 1) % 4, &name, &body).await?,
    };
    Ok(())
}

async fn backlog(count: usize, owners: usize, requests: usize, delay: bool) -> Result<()> {
    let rig = Rig::new(Answer::Bytes(1024)).await?;
    let teams = teams(&rig, count, owners).await?;
    rig.agents.set_delay(delay);
    let mut sending = Cell::new(format!("backlog {count} × {requests}, delay {}: send", u8::from(delay)));
    for r in 0..requests {
        for team in &teams {
            sending.sample(&rig.db, request(&rig, team, r)).await?;
        }
    }
    let mut ticking = Cell::new(format!("backlog {count} × {requests}, delay {}: tick", u8::from(delay)));
    while ticking.sample(&rig.db, rig.tick()).await? > 0 {
        rig.agents.release();
    }
    for team in &teams {
        finished(&rig, team, (requests + requests / 2) as u64).await?;
    }
    let (all, ticks) = (count * requests, ticking.len());
    let spent = (sending.total() + ticking.total()).as_secs_f64();
    ticking.note("requests_per_s", round(all as f64 / spent));
    ticking.note("requests_per_s_one_tick_a_second", round(all as f64 / (spent + ticks as f64)));
    sending.print();
    ticking.print();
    Ok(())
}

/// The same work as the product does it: the worker goes by events, while the
/// requests come in.
async fn with_worker(count: usize, owners: usize, requests: usize) -> Result<()> {
    let rig = Arc::new(Rig::new(Answer::Bytes(1024)).await?);
    let teams = Arc::new(teams(&rig, count, owners).await?);
    let (ended, signals) = (rig.agents.subscribe(), rig.signals.subscribe());
    let counted = Arc::new(Counted { plugin: rig.plugin.clone(), plans: 0.into(), steps: 0.into(), vain: 0.into() });
    let worker = Worker::start(counted.clone(), ended, signals, None, Options::default());
    let mut cell = Cell::new(format!("backlog {count} × {requests}, by events"));
    let all = {
        let (rig, teams) = (rig.clone(), teams.clone());
        async move {
            let start = Instant::now();
            let mut senders = tokio::task::JoinSet::new();
            for lane in 0..8 {
                let (rig, teams) = (rig.clone(), teams.clone());
                senders.spawn(async move {
                    for r in 0..requests {
                        for team in teams.iter().skip(lane).step_by(8) {
                            request(&rig, team, r).await?;
                        }
                    }
                    anyhow::Ok(())
                });
            }
            while let Some(done) = senders.join_next().await {
                if let Ok(Err(error)) = done {
                    eprintln!("a send failed: {error:#}");
                }
            }
            while unfinished(&rig) > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            vec![start.elapsed()]
        }
    };
    cell.samples(&rig.db, all).await;
    worker.shutdown(Duration::from_secs(5)).await;
    for team in teams.iter() {
        finished(&rig, team, (requests + requests / 2) as u64).await?;
    }
    per_second(&mut cell, count * requests);
    cell.note("plans", counted.plans.load(Ordering::Relaxed));
    cell.note("steps", counted.steps.load(Ordering::Relaxed));
    cell.note("steps_in_vain", counted.vain.load(Ordering::Relaxed));
    cell.print();
    Ok(())
}

/// The component as the worker calls it, with a count of its calls.
struct Counted {
    plugin: Plugin,
    plans: AtomicU64,
    steps: AtomicU64,
    vain: AtomicU64,
}

#[async_trait]
impl worker::Team for Counted {
    async fn plan(&self, ended: Vec<EndedRun>, sweep: bool, resting: Vec<TeamRef>) -> Result<Plan, CallError> {
        self.plans.fetch_add(1, Ordering::Relaxed);
        self.plugin.plan(ended, sweep, resting).await
    }

    async fn advance(&self, team: &TeamRef, permit: &[u8]) -> Result<bool, CallError> {
        self.steps.fetch_add(1, Ordering::Relaxed);
        let changed = self.plugin.advance(team, permit).await?;
        self.vain.fetch_add(u64::from(!changed), Ordering::Relaxed);
        Ok(changed)
    }

    async fn connect(&self, team: &TeamRef, runs: Capability) -> Result<(), CallError> {
        self.plugin.connect(team, runs).await
    }
}

/// Jobs that are not finished, read from the work list itself.
pub fn unfinished(rig: &Rig) -> usize {
    use agent_teams_host::storage::Store;
    let found = rig.store.begin().and_then(|mut tx| tx.scan("work/", "work0", 1, false));
    found.map_or(1, |found| found.len())
}
