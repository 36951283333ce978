//! Sections f and k: nothing to do, and much in the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::read::{HISTORIES, repeat};
use crate::rig::{Rig, Team};
use crate::send::sends;
use crate::texts::{self, Answer};

/// f. One tick with N connected teams and nothing to do.
pub async fn idle() -> Result<()> {
    for ((name, answer, requests), samples) in HISTORIES.into_iter().zip([100, 100, 40, 30, 40]) {
        let rig = Rig::new(Answer::Bytes(answer)).await?;
        rig.full(&texts::owner(90), 0, requests, 200).await?;
        ticks(&rig, &format!("idle tick, {name} × 1"), 1, samples).await?;
    }
    for (teams, samples) in [(20, [30, 8, 5]), (200, [8, 2, 1])] {
        for ((name, answer, requests), samples) in
            [("full6k_0", 6000, 0), ("full1k_100", 1024, 100), ("full6k_100", 6000, 100)].into_iter().zip(samples)
        {
            let (rig, _) = many(answer, requests, teams).await?;
            ticks(&rig, &format!("idle tick, {name} × {teams}"), usize::from(samples > 2), samples).await?;
        }
    }
    Ok(())
}

/// A database with so many full teams, all connected, and one empty team of an
/// owner of its own.
async fn many(answer: usize, requests: usize, teams: usize) -> Result<(Rig, Team)> {
    let rig = Rig::new(Answer::Bytes(answer)).await?;
    let full = rig.full(&texts::owner(900), 0, requests, 200).await?;
    rig.copies(&full, 0, teams).await?;
    let empty = rig.create(&texts::owner(901), 0, 4).await?;
    Ok((rig, empty))
}

async fn ticks(rig: &Rig, name: &str, warm_up: usize, samples: usize) -> Result<()> {
    let (stall, stop) = heartbeat();
    let cell = repeat(rig, name, warm_up, samples, async || {
        ensure!(rig.tick().await? == 0, "an idle tick found something to do");
        Ok(())
    });
    let mut cell = cell.await?;
    stop.store(true, Ordering::Relaxed);
    cell.note("longest_stall_us", stall.load(Ordering::Relaxed));
    // A send that comes in while a tick is under way.
    let team = rig.create(&texts::owner(902), 0, 4).await?;
    let start = Instant::now();
    let (tick, sent) = tokio::join!(rig.tick(), async {
        let sent = rig.send(&team, 0, "now", "Now.").await;
        sent.map(|_| start.elapsed())
    });
    tick?;
    cell.note("send_during_tick_us", sent?.as_secs_f64() * 1e6);
    cell.print();
    Ok(())
}

/// Notes the longest time for which a task that sleeps a millisecond at a time
/// was kept from running.
fn heartbeat() -> (Arc<AtomicU64>, Arc<AtomicBool>) {
    let (stall, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (longest, stopped) = (stall.clone(), stop.clone());
    tokio::spawn(async move {
        while !stopped.load(Ordering::Relaxed) {
            let start = Instant::now();
            tokio::time::sleep(Duration::from_millis(1)).await;
            let late = start.elapsed().saturating_sub(Duration::from_millis(1));
            longest.fetch_max(u64::try_from(late.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    });
    (stall, stop)
}

/// k. An idle plan and a send, in stores of growing size; and the costs of one
/// team's calls with nothing, half and all of its history.
pub async fn scale() -> Result<()> {
    for teams in [20, 200, 2000] {
        let (rig, empty) = many(6000, 100, teams).await?;
        let plan = repeat(&rig, format!("idle plan, {teams} full teams"), 5, 100, async || {
            rig.plugin.plan(Vec::new(), false, Vec::new()).await?;
            Ok(())
        });
        plan.await?.print();
        sends(&rig, &empty, &format!("send, empty team beside {teams} full teams"), 200, &own(&empty)).await?.print();
        let full = rig.asked(&texts::owner(903), 99, 200).await?;
        sends(&rig, &full, &format!("send, 99 requests, beside {teams} full teams"), 200, &own(&full)).await?.print();
        let size = std::fs::metadata(rig.file())?.len();
        println!("{}", serde_json::json!({"op": format!("database of {teams} full teams"), "bytes": size}));
    }
    Ok(())
}

/// Where the records lie that a send into this team may change.
fn own(team: &Team) -> Vec<String> {
    vec![format!("team/{}/", team.owner), format!("work/{}/", team.owner)]
}
