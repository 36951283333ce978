//! Sections g and h: the other calls, and what a team takes in the store.

use agent_teams_host::contract::{Caller, MentionMessage, MentionReference, TeamRef};
use anyhow::{Context, Result};
use serde_json::json;

use crate::measure::Cell;
use crate::rig::{Rig, Team};
use crate::texts::{self, Answer, text};

const WARM_UP: usize = 3;
const SAMPLES: usize = 30;

/// Measures `work`, with everything put back after each call.
async fn reset(rig: &Rig, name: &str, work: impl AsyncFn(usize) -> Result<()>) -> Result<()> {
    let was = rig.records(&[""])?;
    let mut cell = Cell::new(name);
    for n in 0..WARM_UP + SAMPLES {
        match n < WARM_UP {
            true => work(n).await?,
            false => cell.sample(&rig.db, work(n)).await?,
        }
        rig.put_back(&[""], &was).await?;
    }
    cell.print();
    Ok(())
}

/// g. In an empty team and in a full one.
pub async fn others() -> Result<()> {
    for (name, requests) in [("empty", 0), ("full6k", 98)] {
        let rig = Rig::new(Answer::Bytes(6000)).await?;
        let team = rig.full(&texts::owner(0), 0, requests, 200).await?;
        calls(&rig, &team, name).await?;
    }
    Ok(())
}

async fn calls(rig: &Rig, team: &Team, name: &str) -> Result<()> {
    let (owner, thread) = (team.owner.as_str(), team.members[0].thread.as_str());
    reset(rig, &format!("read_team_context, {name}"), async |_| {
        rig.tool(owner, thread, "read_team_context", json!({"team_id": team.id})).await.map(drop)
    })
    .await?;
    reset(rig, &format!("read_team_history, {name}"), async |_| {
        rig.tool(owner, thread, "read_team_history", json!({"team_id": team.id})).await.map(drop)
    })
    .await?;
    reset(rig, &format!("search_team_results, {name}"), async |_| {
        let arguments = json!({"team_id": team.id, "query": "lazy dog"});
        rig.tool(owner, thread, "search_team_results", arguments).await.map(drop)
    })
    .await?;
    let publish = json!({"team_id": team.id, "kind": "plan", "title": "Plan", "content": text(200, "plan")});
    reset(rig, &format!("publish_team_state, {name}"), async |n| {
        let mut publish = publish.clone();
        publish["request_id"] = format!("p{n}").into();
        rig.tool(owner, thread, "publish_team_state", publish).await.map(drop)
    })
    .await?;
    reset(rig, &format!("connect, {name}"), async |_| {
        rig.action(owner, "connect", json!({"team_id": team.id})).await.map(drop)
    })
    .await?;
    rig.agents.create("outside");
    reset(rig, &format!("mention of one member, {name}"), async |n| {
        let caller = Caller { owner: owner.into(), thread: Some("outside".into()), ..Caller::default() };
        let references = vec![MentionReference { team: team.id.clone(), member: team.members[1].id.clone() }];
        let message = MentionMessage { id: format!("m{n}"), text: text(200, "mention"), references };
        rig.plugin.dispatch_mention(caller, rig.agents.capability(owner), message).await?;
        Ok(())
    })
    .await?;
    let sent = rig.send(team, 0, "to-cancel", "Cancel me.").await?;
    let job = sent["job"]["id"].as_str().context("a job without an id")?.to_owned();
    reset(rig, &format!("cancel of a queued request, {name}"), async |_| {
        rig.action(owner, "cancel", json!({"team_id": team.id, "job_id": job})).await.map(drop)
    })
    .await?;
    rig.agents.set_interrupt(true);
    rig.tick().await?;
    rig.agents.set_interrupt(false);
    reset(rig, &format!("resume of an interrupt, {name}"), async |n| {
        let answer =
            json!({"team_id": team.id, "job_id": job, "request_id": format!("a{n}"), "response": {"ok": true}});
        rig.action(owner, "resume", answer).await.map(drop)
    })
    .await?;
    let connected = TeamRef { owner: owner.into(), team: team.id.clone() };
    let was = rig.records(&[""])?;
    let mut cell = Cell::new(format!("delete, {name}"));
    for n in 0..WARM_UP + SAMPLES {
        let delete = rig.action(owner, "delete", json!({"team_id": team.id}));
        match n < WARM_UP {
            true => delete.await.map(drop)?,
            false => cell.sample(&rig.db, delete).await.map(drop)?,
        }
        rig.put_back(&[""], &was).await?;
        rig.plugin.connect(&connected, rig.agents.capability(owner)).await?;
    }
    cell.print();
    Ok(())
}

/// h. The database file, and the bytes of one full team's records.
pub async fn size() -> Result<()> {
    for (name, answer, size) in [
        ("full6k", Answer::Bytes(6000), 200),
        ("full1k", Answer::Bytes(1024), 200),
        ("full6k_text4k", Answer::Bytes(6000), 4000),
        ("full6k_cjk", Answer::Chinese, 200),
    ] {
        let rig = Rig::new(answer).await?;
        rig.full(&texts::owner(0), 0, 100, size).await?;
        let records = rig.records(&[""])?;
        let bytes: usize = records.iter().map(|(key, value)| key.len() + value.len()).sum();
        let count = records.len();
        let path = rig.file();
        // Closing empties the log into the file.
        rig.plugin.shutdown().await;
        rig.db.close();
        let file = std::fs::metadata(&path)?.len();
        let line = json!({
            "op": format!("size, {name}"), "records": count, "record_bytes": bytes, "file_bytes": file,
        });
        println!("{line}");
    }
    Ok(())
}
