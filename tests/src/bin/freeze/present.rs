//! What is under way when the serving program is killed.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::owner::Owner;
use super::past;

pub fn live(ann: &Owner, ben: &Owner, cleo: &Owner, eve: &Owner) -> Result<()> {
    prepare(eve)?;
    waiting(ann)?;
    dead(ann)?;
    running(ann)?;
    receipts(ann)?;
    taken_over(ann)?;
    others(ben, cleo)
}

/// Teams of the second act, as far as they need a person or a run before it.
fn prepare(eve: &Owner) -> Result<()> {
    for name in ["Start not sent", "Start sent"] {
        let team = eve.team(name, &["Ada", "Bo"])?;
        past::notice(eve, &team, "Bo")?;
    }
    eve.team("Start unclear", &["Ada", "Bo"])?;
    eve.team("Start refused", &["Ada", "Bo"])?;
    eve.team("Cancel at the start", &["Ada", "Bo"])?;
    eve.team("Half calls", &["Ada", "Bo", "Cy", "Dee"])?;
    let slot = eve.team("Answer to be sent", &["Ada", "Bo", "Cy"])?;
    eve.send_until(&slot, "Bo", "question", "Ask.", "waiting_input")?;
    eve.send_until(&slot, "Cy", "approval", "Write.", "waiting_input")?;
    for name in ["Answer not sent", "Answer sent"] {
        let team = eve.team(name, &["Ada", "Bo"])?;
        eve.send_until(&team, "Ada", "question", "Ask.", "waiting_input")?;
    }
    let decided = eve.team("Decision sent", &["Ada", "Bo"])?;
    eve.send_until(&decided, "Ada", "approval", "Write.", "waiting_input")?;
    for name in ["Cancel not sent", "Cancel accepted"] {
        let team = eve.team(name, &["Ada", "Bo"])?;
        eve.send(&team, "Ada", "hold", "Hold.")?;
        eve.until_runs(&team, "hold", "request")?;
        eve.send(&team, "Ada", "next", "Hello.")?;
    }
    let unknown = eve.team("Unknown", &["Ada", "Bo", "Cy", "Dee", "Eve", "Fay"])?;
    eve.send_until(&unknown, "Eve", "answer", "Ask.", "waiting_input")?;
    eve.send_until(&unknown, "Fay", "decision", "Write.", "waiting_input").map(drop)
}

/// Jobs that wait for a person.
fn waiting(ann: &Owner) -> Result<()> {
    let team = ann.team("Waiting", &["Ada", "Bo", "Cy", "Dee", "Eve", "Fay", "Gil"])?;
    ann.send_until(&team, "Ada", "question", "Ask.", "waiting_input")?;
    ann.send_until(&team, "Ada", "next", "Hello.", "queued")?;
    ann.send_until(&team, "Bo", "approval", "Write.", "waiting_input")?;
    ann.send_until(&team, "Gil", "to-be-cancelled", "Write.", "waiting_input")?;
    ann.send_until(&team, "Cy", "approvals", "Write two.", "waiting_input")?;
    let text = "Hand on.\nto: Eve\nrequest: asked\ntext: Ask.";
    ann.send_until(&team, "Dee", "chain", text, "completed")?;
    ann.until(&team, "asked", "request", "waiting_input")?;
    // A question whose job was cancelled stays open and holds up what follows.
    let left = ann.send_until(&team, "Fay", "left", "Ask.", "waiting_input")?;
    ann.cancel(&team, &left)?;
    ann.send(&team, "Fay", "blocked", "Hello.")?;
    ann.until_held(&team, "blocked", "request", "conversation_has_open_question")?;
    Ok(())
}

/// Jobs that ended while their runs waited for an approval.
fn dead(ann: &Owner) -> Result<()> {
    let team = ann.team("Dead", &["Ada", "Bo", "Cy"])?;
    ann.send_until(&team, "Cy", "before", "Hello.", "completed")?;
    let cancelled = ann.send_until(&team, "Ada", "cancelled", "Write.", "waiting_input")?;
    ann.cancel(&team, &cancelled)?;
    ann.until(&team, "cancelled", "request", "cancelled")?;
    let wrong = ann.send_until(&team, "Bo", "wrong-answer", "Write.", "waiting_input")?;
    let answer = json!({"team_id": team.id, "job_id": wrong["id"], "request_id": "wrong", "response": true});
    if ann.try_to("resume", answer)? {
        ann.until(&team, "wrong-answer", "request", "failed")?;
    } else {
        // A program that refuses the answer leaves the job as it was.
        ann.cancel(&team, &wrong)?;
        ann.until(&team, "wrong-answer", "request", "cancelled")?;
    }
    Ok(())
}

/// Runs under way, with what they have done so far.
fn running(ann: &Owner) -> Result<()> {
    let team = ann.team("Running", &["Ada", "Bo", "Cy", "Dee", "Eve", "Fay", "Gil"])?;
    for subject in ["To be taken", "To be changed"] {
        let task = json!({"team_id": team.id, "request_id": subject, "subject": subject, "description": "As said."});
        ann.act("create_task", task)?;
    }
    ann.send(&team, "Ada", "hold", "Hold.")?;
    ann.send(&team, "Dee", "claims", "Claim, then hold.")?;
    ann.send(&team, "Bo", "notes", "Note, then hold.")?;
    ann.send(&team, "Eve", "asks-on", "Hand on, then hold.\nto: Fay\nrequest: child\ntext: Hold.")?;
    for request in ["hold", "claims", "notes", "asks-on", "child"] {
        ann.until_runs(&team, request, "request")?;
    }
    ann.send_until(&team, "Fay", "after-child", "Hello.", "queued")?;
    // Its result waits until the run that asked has ended.
    ann.until(&team, "noted", "receipt", "queued")?;
    ann.send(&team, "Cy", "board", "Wait for the board.")?;
    let board = ann.until_runs(&team, "board", "request")?;
    let thread = board["thread"].as_str().context("a conversation")?;
    // Both models have been asked and both calls are made before the kill.
    ann.until_reads(thread, &calls("wait_for_team_tasks"))?;
    let claims = ann.until_runs(&team, "claims", "request")?;
    let thread = claims["thread"].as_str().context("a conversation")?;
    ann.until_reads(thread, &calls("update_team_task"))
}

/// The conversation's agent has called this tool.
fn calls(tool: &str) -> impl Fn(&Value) -> bool {
    move |transcript| {
        let messages = transcript["messages"].as_array().into_iter().flatten();
        let mut calls = messages.flat_map(|message| message["tool_calls"].as_array().into_iter().flatten());
        calls.any(|call| call["name"] == tool)
    }
}

/// Results on their way back.
fn receipts(ann: &Owner) -> Result<()> {
    let team = ann.team("Receipts", &["Ada", "Bo", "Cy", "Dee"])?;
    for (member, request, asked) in [("Ada", "first", "held"), ("Cy", "second", "asks")] {
        let text = format!("Hand on.\nto: Bo\nrequest: {asked}\ntext: Hello.");
        ann.send_until(&team, member, request, &text, "completed")?;
    }
    ann.until_runs(&team, "held", "receipt")?;
    ann.until(&team, "asks", "receipt", "waiting_input")?;
    ann.send_until(&team, "Ada", "after-receipt", "Hello.", "queued")?;
    // A conversation of the owner's own, busy with something else.
    let busy = ann.begin("busy", "Slow here, quick there.", &[(&team, "Dee")])?;
    let request = format!("busy/{}", team.member("Dee")?);
    ann.until(&team, &request, "request", "completed")?;
    ann.until_held(&team, &request, "receipt", "conversation_busy")?;
    ann.until_reads(&busy, &|transcript| transcript["conversation"]["active_run"].is_string())?;
    // One that waits for an approval of its own, which belongs to no job.
    let own = ann.begin("own", "Write here.", &[])?;
    ann.until_reads(&own, &calls("write_file"))?;
    ann.until_reads(&own, &|transcript| transcript["conversation"]["active_run"].is_null())
}

/// The team of the earlier plugin that was connected: its host forgot it.
fn taken_over(ann: &Owner) -> Result<()> {
    let teams = ann.ask("list", json!({}))?;
    let mut named = teams["teams"].as_array().into_iter().flatten();
    let id = named.find(|team| team["name"] == "Release").and_then(|team| team["id"].as_str()).context("Release")?;
    let team = super::owner::Team::known(id);
    let jobs = agent_teams_tests::reading::jobs(&|action, payload| ann.ask(action, payload), id)?;
    for job in jobs {
        let request = job["request_id"].as_str().context("a request id")?;
        match job["text"].as_str() {
            Some("Keep collecting") => drop(ann.until(&team, request, "request", "unknown")?),
            Some("Check the environment") => {
                ann.until_held(&team, request, "request", "clarification_changed")?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Work of other users; the last of them is disabled in the end.
fn others(ben: &Owner, cleo: &Owner) -> Result<()> {
    for user in [ben, cleo] {
        let team = user.team("Own", &["Ada", "Bo", "Cy"])?;
        user.send(&team, "Ada", "hold", "Hold.")?;
        user.until_runs(&team, "hold", "request")?;
        user.send_until(&team, "Bo", "question", "Ask.", "waiting_input")?;
        user.send_until(&team, "Bo", "next", "Hello.", "queued")?;
        user.send_until(&team, "Cy", "done", "Hello.", "completed")?;
    }
    Ok(())
}
