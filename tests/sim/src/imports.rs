//! Teams of the earlier plugin that are imported with frozen jobs, most of runs
//! that the host does not know. One conversation has one frozen job; a document
//! with more is refused.

use agent_teams_plugin::app::commands::import_team::{self, ImportTeam};
use agent_teams_plugin::host::Input;
use serde_json::{Value, json};

use super::actors::{self, as_owner};
use super::world::World;

/// An agent that no catalogue has.
const NOWHERE: &str = "agent-nowhere";

/// An owner takes a team over, or the same one again.
pub fn import(world: &World) {
    let place = world.below(world.knobs.owners);
    let owner = actors::owner_name(place);
    let id = format!("legacy-{place}-{}", world.below(2));
    // Its keys are those of its ids: it is never taken over twice.
    let deleted = world.checker.borrow().teams.get(&(owner.clone(), id.clone())).is_some_and(|t| t.team.is_none());
    if deleted {
        return;
    }
    let known = world.documents.borrow().get(&id).cloned();
    let document = match known {
        Some(document) => document,
        None => {
            let made = document(world, &owner, &id);
            world.documents.borrow_mut().insert(id.clone(), made.clone());
            made
        }
    };
    let jobs: Vec<String> =
        document["jobs"].as_array().into_iter().flatten().filter_map(|j| j["id"].as_str().map(String::from)).collect();
    let import = ImportTeam { team: document, dry_run: None };
    let reply = world.command(
        || format!("{owner} takes over {id}"),
        None,
        || as_owner(world, &owner, |ctx| import_team::import_team(ctx, &import)),
    );
    if let Some(Ok(_)) = &reply {
        for job in jobs {
            actors::accepted(world, &owner, &id, &json!(job));
        }
    }
}

/// A team's document; the runs that it names exist in the host, or do not.
fn document(world: &World, owner: &str, id: &str) -> Value {
    let nowhere = world.chance(300);
    let members: Vec<Value> = (0..2)
        .map(|m| {
            let agent = if nowhere && m == 1 { NOWHERE.into() } else { format!("agent-{m}") };
            let (name, thread) = (format!("member {m}"), format!("{id}-thread-{m}"));
            json!({"id": format!("m{m}"), "name": name, "agent": agent, "thread_id": thread})
        })
        .collect();
    if nowhere {
        let mut agents = world.agents.borrow_mut();
        agents.gone.insert(NOWHERE.into());
        agents.left.insert(NOWHERE.into());
    }
    let mut frozen = [false; 2];
    let jobs: Vec<Value> = (0..8 + world.below(6)).map(|n| job(world, owner, id, n, &members, &mut frozen)).collect();
    json!({
        "id": id, "name": id, "goal": "what it was", "members": members, "jobs": jobs, "messages": [], "ready": true,
    })
}

/// One job of a document. `frozen`: whether each member's conversation has a
/// frozen job already.
fn job(world: &World, owner: &str, team: &str, n: usize, members: &[Value], frozen: &mut [bool; 2]) -> Value {
    let to = world.below(2);
    let (member, peer) = (&members[to], &members[1 - to]);
    let (job, text) = (format!("{team}-job-{n}"), format!("do what is {n}"));
    let thread = member["thread_id"].as_str().unwrap_or_default();
    let mut made = json!({
        "id": job, "member_id": member["id"], "thread_id": thread, "text": text, "kind": "request", "status": "queued",
    });
    if world.chance(300) {
        made["source"] = peer["thread_id"].clone();
    }
    let statuses = ["running", "running", "running", "starting", "cancelling", "interrupted", "queued", "completed"];
    let again = std::mem::replace(&mut frozen[to], true);
    let status = if again && !world.chance(10) { "queued" } else { statuses[world.below(8)] };
    made["status"] = json!(status);
    if matches!(status, "queued" | "completed") {
        frozen[to] = again;
        return made;
    }
    let message = format!("{job}-message");
    made["input"] = json!({"messages": [{"id": message, "content": text}]});
    let mut run = format!("{job}-run");
    if !again && world.chance(600) {
        let input = Input { message_id: message, text, context: String::new(), answers: None, provenance: "{}".into() };
        let agent = member["agent"].as_str().unwrap_or_default();
        run = world.agents.borrow_mut().legacy(owner, thread, agent, &job, &input);
    }
    if status != "starting" {
        made["run_id"] = json!(run);
    }
    made
}
