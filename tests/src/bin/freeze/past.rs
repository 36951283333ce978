//! What has been: teams whose work has ended, in every way that it can end.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::owner::{Owner, Team};

const LOG: &str = include_str!("../../../fixtures/board/session-v2.jsonl");

pub fn live(ann: &Owner) -> Result<()> {
    let team = ann.team_with("Past", &["Ada", "Bo", "Cy"], json!({"lead": "Ada"}))?;
    state(ann, &team)?;
    ends(ann, &team)?;
    people(ann, &team)?;
    conversation(ann, &team)?;
    board(ann, &team)?;
    results(ann, &team)?;
    notice(ann, &team, "Bo")?;
    ann.team_with("Heirs", &["Ada", "Bo"], json!({"successor_of": team.id}))?;
    imports(ann)?;
    // A team that was deleted leaves nothing that could be taken for another's.
    let members = json!([{"name": "Ada", "agent": "worker"}, {"name": "Bo", "agent": "worker"}]);
    let gone = json!({"request_id": "Gone", "name": "Gone", "goal": "Be forgotten.", "members": members});
    let gone = ann.ask("create", gone)?;
    ann.ask("delete", json!({"team_id": gone["team"]["id"]}))?;
    Ok(())
}

/// Public state: three entries; one has two revisions, one is archived.
fn state(ann: &Owner, team: &Team) -> Result<()> {
    let publish = |name: &str, kind: &str, title: &str, content: &str| {
        format!("Publish.\nname: {name}\nkind: {kind}\ntitle: {title}\ncontent: {content}")
    };
    let plan = publish("plan", "plan", "The plan", "First the facts, then the text.");
    ann.send_until(team, "Ada", "plan", &plan, "completed")?;
    let news = publish("news", "finding", "Old news", "Es grünt – 资料.");
    ann.send_until(team, "Bo", "news", &news, "completed")?;
    let open = publish("open", "question", "Who reads it?", "Not said so far.");
    ann.send_until(team, "Cy", "open", &open, "completed")?;
    let change = "Change the plan.\ncontent: The facts are there; now the text.";
    ann.send_until(team, "Bo", "change", change, "completed")?;
    ann.send_until(team, "Cy", "archive", "Archive the news.", "completed")?;
    Ok(())
}

/// Requests among members: results, also failed ones, that were received.
fn results(ann: &Owner, team: &Team) -> Result<()> {
    for (request, to, asked, what) in [
        ("broken", "Cy", "broken-answer", "Fail."),
        ("silent", "Bo", "silent-answer", "Say nothing."),
        ("long", "Bo", "long-answer", "Repeat."),
    ] {
        let text = format!("Hand on.\nto: {to}\nrequest: {asked}\ntext: {what}");
        ann.send_until(team, "Ada", request, &text, "completed")?;
        ann.until(team, asked, "receipt", "completed")?;
    }
    Ok(())
}

/// Requests of the owner that did not end well.
fn ends(ann: &Owner, team: &Team) -> Result<()> {
    ann.send_until(team, "Bo", "fails", "Fail.", "failed")?;
    ann.send(team, "Cy", "stopped", "Hold.")?;
    let held = ann.until_runs(team, "stopped", "request")?;
    let queued = ann.send_until(team, "Cy", "dropped", "Hello.", "queued")?;
    ann.cancel(team, &queued)?;
    ann.cancel(team, &held)?;
    ann.until(team, "dropped", "request", "cancelled")?;
    ann.until(team, "stopped", "request", "cancelled")?;
    Ok(())
}

/// A question that was answered, a call that was approved, one that was not.
fn people(ann: &Owner, team: &Team) -> Result<()> {
    let asked = ann.send_until(team, "Bo", "question", "Ask.", "waiting_input")?;
    ann.answer(team, &asked, "blue", json!("Blue."))?;
    ann.until(team, "question", "request", "completed")?;
    for (request, decision) in
        [("approved", json!({"approved": true})), ("denied", json!({"approved": false, "note": "Not now."}))]
    {
        let job = ann.send_until(team, "Cy", request, "Write.", "waiting_input")?;
        ann.answer(team, &job, request, decision)?;
        ann.until(team, request, "request", "completed")?;
    }
    Ok(())
}

/// A conversation of the owner's own, in which a member was mentioned.
fn conversation(ann: &Owner, team: &Team) -> Result<()> {
    let thread = ann.begin("mention-1", "What do you think?", &[(team, "Ada")])?;
    ann.until_reads(&thread, &|transcript| {
        let messages = transcript["messages"].as_array().map_or(0, Vec::len);
        messages == 4 && transcript["conversation"]["active_run"].is_null()
    })?;
    ann.say(&thread, "mention-2", "Thank you.")?;
    ann.until_reads(&thread, &|transcript| transcript["messages"].as_array().is_some_and(|all| all.len() == 6))
}

/// A board with a history: every action, and a task in every state.
fn board(ann: &Owner, team: &Team) -> Result<()> {
    let create = |request: &str, subject: &str, more: Value| -> Result<()> {
        let mut task =
            json!({"team_id": team.id, "request_id": request, "subject": subject, "description": "As said."});
        for (field, value) in more.as_object().into_iter().flatten() {
            task[field] = value.clone();
        }
        ann.act("create_task", task).map(|_| ())
    };
    let update = |task: &str, revision: u64, action: &str, more: Value| -> Result<()> {
        let mut change = json!({"team_id": team.id, "task_id": task, "expected_revision": revision, "action": action});
        for (field, value) in more.as_object().into_iter().flatten() {
            change[field] = value.clone();
        }
        ann.ask("update_task", change).map(|_| ())
    };
    create("t1", "Collect the facts", json!({"write_scopes": ["facts", "资料"]}))?;
    ann.send_until(team, "Bo", "takes-1", "Claim and complete.", "completed")?;
    create("t2", "Write the text", json!({"write_scopes": ["text"], "blocked_by": ["task-1"]}))?;
    ann.send_until(team, "Cy", "takes-2", "Claim.", "completed")?;
    create("t3", "Check the text", json!({"blocked_by": ["task-2"]}))?;
    create("t4", "Print it", json!({}))?;
    create("t5", "Send it", json!({"blocked_by": ["task-3", "task-4"], "write_scopes": ["text/out"]}))?;
    create("t6", "Forget it", json!({}))?;
    update("task-4", 1, "edit", json!({"subject": "Print it twice", "description": "On both sides."}))?;
    update("task-4", 2, "claim", json!({}))?;
    update("task-4", 3, "release", json!({}))?;
    update("task-4", 4, "reassign", json!({"owner": "Bo"}))?;
    update("task-5", 1, "set_dependencies", json!({"blocked_by": ["task-3"]}))?;
    update("task-6", 1, "delete", json!({}))?;
    update("task-1", 3, "reopen", json!({}))?;
    update("task-1", 4, "claim", json!({}))?;
    update("task-1", 5, "complete", json!({}))
}

/// A request of Ada's that the owner cancels: she will be told with her next
/// turn, unless there was one before.
pub fn notice(owner: &Owner, team: &Team, to: &str) -> Result<()> {
    let text = format!("Hand on.\nto: {to}\nrequest: not-told-of\ntext: Hold.");
    owner.send_until(team, "Ada", "asks", &text, "completed")?;
    let job = owner.until_runs(team, "not-told-of", "request")?;
    owner.cancel(team, &job)?;
    owner.until(team, "not-told-of", "request", "cancelled").map(drop)
}

/// Boards that were taken over: whole, up to a record that was not accepted,
/// and in part.
fn imports(ann: &Owner) -> Result<()> {
    let import = |team: &Team, lines: &str, last: bool| {
        ann.act("import_tasks", json!({"team_id": team.id, "lines": lines, "part": 0, "last": last}))
    };
    let whole = ann.team("Board whole", &["Ada", "Bo"])?;
    import(&whole, LOG, true)?;
    let rejected = ann.team("Board rejected", &["Ada", "Bo"])?;
    let mut lines: Vec<&str> = LOG.lines().collect();
    // The second revision of a task, twice.
    let twice = lines.iter().rposition(|line| line.contains(r#""id":"task-1","revision":2"#)).context("a line")?;
    lines.insert(twice, lines[twice]);
    import(&rejected, &lines.join("\n"), true)?;
    let begun = ann.team("Board begun", &["Ada", "Bo"])?;
    import(&begun, LOG, false)?;
    Ok(())
}
