//! Sections a and b: making teams, and durable sends.

use anyhow::Result;

use crate::measure::Cell;
use crate::rig::{Rig, Team};
use crate::texts::{self, Answer, text};

const WARM_UP: usize = 20;
const SAMPLES: usize = 100;

/// a. Teams of 2 and of 8.
pub async fn create() -> Result<()> {
    for members in [2, 8] {
        let rig = Rig::new(Answer::Bytes(1024)).await?;
        let mut cell = Cell::new(format!("create, {members} members"));
        for n in 0..220 {
            let owner = texts::owner(n / 20);
            let payload = texts::team(n % 20, members).to_string();
            let call = rig.action_text(&owner, "create", &payload);
            match n < 20 {
                true => drop(call.await?),
                false => drop(cell.sample(&rig.db, call).await?),
            }
        }
        cell.print();
    }
    Ok(())
}

/// b. A send into a team with a history.
pub async fn send() -> Result<()> {
    for answer in [1024, 6000] {
        for history in [0, 50, 99] {
            let rig = Rig::new(Answer::Bytes(answer)).await?;
            let team = rig.asked(&texts::owner(0), history, 200).await?;
            for size in [200, 4000] {
                let name = format!("send, {history} requests with {answer} B, text {size} B");
                sends(&rig, &team, &name, size, &[""]).await?.print();
            }
        }
    }
    Ok(())
}

/// Durable sends into one team. What lies under `prefixes` is put back after
/// each.
pub async fn sends<P: AsRef<str>>(rig: &Rig, team: &Team, name: &str, size: usize, prefixes: &[P]) -> Result<Cell> {
    let was = rig.records(prefixes)?;
    let mut cell = Cell::new(name);
    for n in 0..WARM_UP + SAMPLES {
        let request = format!("new{n}");
        let member = n % team.members.len().min(4);
        let payload = team.request(member, &request, &text(size, &format!("new {n}"))).to_string();
        let call = rig.action_text(&team.owner, "send", &payload);
        match n < WARM_UP {
            true => drop(call.await?),
            false => drop(cell.sample(&rig.db, call).await?),
        }
        rig.put_back(prefixes, &was).await?;
    }
    Ok(cell)
}
