//! Section m: the task board.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::measure::Cell;
use crate::read::repeat;
use crate::rig::{Rig, Team};
use crate::texts::{self, Answer, text};

const TASKS: usize = 200;

/// 200 tasks in a chain, each claimed and completed in order, and the replay
/// of the 600 events.
pub async fn board() -> Result<()> {
    let rig = Rig::new(Answer::Bytes(1024)).await?;
    let team = rig.create(&texts::owner(0), 0, 4).await?;
    let mut early = Cell::new("create_task, tasks 1 to 20");
    let mut late = Cell::new("create_task, tasks 181 to 200");
    let mut all = Cell::new("create_task, 200 in a chain");
    let mut ids: Vec<(String, u64)> = Vec::new();
    for n in 0..TASKS {
        let before: Vec<&String> = ids.last().map(|(id, _)| id).into_iter().collect();
        let payload = json!({
            "team_id": team.id, "subject": format!("Task {n}"), "description": text(200, &format!("task {n}")),
            "blocked_by": before, "write_scopes": [format!("src/part-{n}")], "request_id": format!("t{n}"),
        });
        let cell = match n {
            0..20 => &mut early,
            180.. => &mut late,
            _ => &mut all,
        };
        let made = cell.sample(&rig.db, rig.action(&team.owner, "create_task", payload)).await?;
        ids.push(task(&made)?);
    }
    all.merge(&early);
    all.merge(&late);
    for cell in [all, early, late] {
        cell.print();
    }
    let mut claims = Cell::new("claim, in order");
    let mut ends = Cell::new("complete, in order");
    for (n, (id, revision)) in ids.into_iter().enumerate() {
        let thread = &team.members[n % 4].thread;
        let claim = update(&team, &id, revision, "claim");
        let claimed = claims.sample(&rig.db, rig.tool(&team.owner, thread, "update_team_task", claim)).await?;
        let complete = update(&team, &id, task(&claimed)?.1, "complete");
        ends.sample(&rig.db, rig.tool(&team.owner, thread, "update_team_task", complete)).await?;
    }
    claims.print();
    ends.print();
    for (name, arguments) in [
        ("list of 100 tasks", json!({"team_id": team.id, "limit": 100})),
        ("list of ready tasks", json!({"team_id": team.id, "ready": true})),
    ] {
        let thread = &team.members[0].thread;
        let cell = repeat(&rig, name, 3, 30, async || {
            rig.tool(&team.owner, thread, "list_team_tasks", arguments.clone()).await.map(drop)
        });
        cell.await?.print();
    }
    replay(&rig, &team).await
}

fn update(team: &Team, id: &str, revision: u64, action: &str) -> Value {
    json!({"team_id": team.id, "task_id": id, "expected_revision": revision, "action": action})
}

/// A task's id and revision, wherever the answer has them.
fn task(answer: &Value) -> Result<(String, u64)> {
    let task = answer.get("task").unwrap_or(answer);
    let id = task["id"].as_str().context("a task without an id")?;
    let revision = task["revision"].as_u64().context("a task without a revision")?;
    Ok((id.into(), revision))
}

/// Reads the whole journal through the action, page by page, and derives the
/// board from it.
async fn replay(rig: &Rig, team: &Team) -> Result<()> {
    let cell = repeat(rig, "replay of 600 events, read in pages", 1, 10, async || {
        let mut cursor = Value::Null;
        let mut state = std::collections::BTreeMap::new();
        let mut events = 0;
        loop {
            let page = json!({"team_id": team.id, "limit": 100, "cursor": cursor});
            let page = rig.action(&team.owner, "task_history", page).await?;
            for event in page["events"].as_array().context("a page without events")? {
                events += 1;
                let (id, revision) = task(event)?;
                let newest = state.entry(id).or_insert(0);
                *newest = revision.max(*newest);
            }
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        ensure!(events == TASKS * 3 && state.len() == TASKS, "the journal has {events} events");
        Ok(())
    });
    cell.await?.print();
    Ok(())
}
