//! Hot loops: one call again and again, for a profiler.

use anyhow::{Result, bail};

use crate::measure::Cell;
use crate::rig::Rig;
use crate::texts::{self, Answer, text};

/// Sends of 200 bytes: 99 a team, then the next team.
pub async fn sends(rig: &Rig, count: usize) -> Result<Cell> {
    let mut cell = Cell::new("send, 200 B, teams filled one after the other");
    let body = text(200, "hot");
    for at in 0..count.div_ceil(99) {
        let team = rig.create(&texts::owner(at / 20), at % 20, 4).await?;
        for n in 0..99 {
            let payload = team.request(n % 4, &format!("r{n}"), &body).to_string();
            drop(cell.sample(&rig.db, rig.action_text(&team.owner, "send", &payload)).await?);
        }
    }
    Ok(cell)
}

pub async fn hot(what: &str) -> Result<()> {
    let rig = Rig::new(Answer::Bytes(1024)).await?;
    match what {
        "hot-send" => sends(&rig, 3_000).await?.print(),
        "hot-info" => {
            let mut cell = Cell::new("info: a fresh instance and a trivial call");
            for _ in 0..20_000 {
                cell.sample(&rig.db, rig.plugin.info()).await?;
            }
            cell.print();
        }
        "hot-life" => {
            let mut cell = Cell::new("peer request with receipt, closed loop");
            for at in 0..20 {
                let team = rig.create(&texts::owner(0), at, 4).await?;
                for n in 0..100 {
                    let life = async {
                        rig.ask(&team, n % 4, (n + 1) % 4, &format!("r{n}"), &text(200, "hot")).await?;
                        rig.tick().await?;
                        rig.tick().await
                    };
                    cell.sample(&rig.db, life).await?;
                }
            }
            cell.print();
        }
        other => bail!("there is no hot loop `{other}`"),
    }
    Ok(())
}
