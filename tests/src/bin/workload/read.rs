//! Sections d and e: the activity feed, search and lists.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::measure::Cell;
use crate::rig::{Rig, Team};
use crate::texts::{self, Answer};

/// The histories by name: bytes of an answer, requests, bytes of a request.
pub const HISTORIES: [(&str, usize, usize); 5] = [
    ("full6k_0", 6000, 0),
    ("full6k_10", 6000, 10),
    ("full6k_50", 6000, 50),
    ("full6k_100", 6000, 100),
    ("full1k_100", 1024, 100),
];

/// d. The feed of one team, short and long, plain and conditional.
pub async fn feed() -> Result<()> {
    for (name, answer, requests) in HISTORIES {
        let rig = Rig::new(Answer::Bytes(answer)).await?;
        let team = rig.full(&texts::owner(0), 0, requests, 200).await?;
        for (kind, payload) in [
            ("limit 20", json!({"team_id": team.id})),
            ("limit 200 with details", json!({"team_id": team.id, "limit": 200, "details": true})),
        ] {
            let seen = rig.action(&team.owner, "get", payload.clone()).await?;
            gets(&rig, &team, &format!("get {name}, {kind}"), &payload).await?;
            let mut payload = payload;
            payload["revision"] = seen["team"]["revision"].clone();
            let again = rig.action(&team.owner, "get", payload.clone()).await?;
            ensure!(again["unchanged"] == true, "the feed changed while nobody did anything");
            gets(&rig, &team, &format!("get {name}, {kind}, unchanged"), &payload).await?;
        }
    }
    Ok(())
}

async fn gets(rig: &Rig, team: &Team, name: &str, payload: &Value) -> Result<()> {
    let payload = payload.to_string();
    repeat(rig, name, 5, 30, async || rig.action_text(&team.owner, "get", &payload).await.map(drop)).await?.print();
    Ok(())
}

/// Calls `work` some times without, then with measuring.
pub async fn repeat(
    rig: &Rig,
    name: impl Into<String>,
    warm_up: usize,
    samples: usize,
    work: impl AsyncFn() -> Result<()>,
) -> Result<Cell> {
    let mut cell = Cell::new(name);
    for n in 0..warm_up + samples {
        match n < warm_up {
            true => work().await?,
            false => cell.sample(&rig.db, work()).await?,
        }
    }
    Ok(cell)
}

/// e. Mentions, teams and lists over 20 full teams, and beside other owners'.
pub async fn search() -> Result<()> {
    for (name, answer, requests, samples) in
        [("full6k_0", 6000, 0, 200), ("full1k_100", 1024, 100, 10), ("full6k_100", 6000, 100, 5)]
    {
        let rig = Rig::new(Answer::Bytes(answer)).await?;
        let team = rig.full(&texts::owner(90), 0, requests, 200).await?;
        rig.copies(&team, 0, 20).await?;
        searches(&rig, &texts::owner(0), name, &["", "member 7", "team 013 member 3", "nomatch"], samples).await?;
    }
    let rig = Rig::new(Answer::Bytes(1024)).await?;
    let team = rig.full(&texts::owner(90), 0, 100, 200).await?;
    rig.copies(&team, 0, 200).await?;
    rig.create(&texts::owner(80), 0, 8).await?;
    searches(&rig, &texts::owner(80), "an empty team beside 200 of others", &["member"], 50).await
}

async fn searches(rig: &Rig, owner: &str, name: &str, queries: &[&str], samples: usize) -> Result<()> {
    for query in queries {
        let caller = agent_teams_host::contract::Caller::owner(owner);
        let found = rig.plugin.search_mentions(caller.clone(), query).await?;
        ensure!(found.len() <= 16, "more hits than there may be");
        let mut cell = repeat(rig, format!("search {name}, `{query}`"), 2, samples, async || {
            rig.plugin.search_mentions(caller.clone(), query).await?;
            Ok(())
        })
        .await?;
        cell.note("hits", found.len());
        cell.print();
    }
    let cell =
        repeat(rig, format!("list {name}"), 2, samples, async || rig.action_text(owner, "list", "{}").await.map(drop));
    cell.await?.print();
    Ok(())
}
