//! What people and agents do with teams: one act each, drawn from the seed.

use agent_teams_plugin::app::commands::connect::{self, Connect};
use agent_teams_plugin::app::commands::create::{self, Create, NewMember};
use agent_teams_plugin::app::commands::delete::{self, Delete};
use agent_teams_plugin::app::commands::get::{self, Get};
use agent_teams_plugin::app::commands::list;
use agent_teams_plugin::app::commands::mention::{self, Mention, Reference};
use agent_teams_plugin::app::commands::send::{self, Send, SendMember};
use agent_teams_plugin::app::shared::object::Object;
use agent_teams_plugin::app::{Caller, Ctx};
use agent_teams_plugin::domain::error::{Error, Kind};
use agent_teams_plugin::domain::ids;
use agent_teams_plugin::store::records::{Job, Team};
use serde_json::Value;

use super::runs::Capability;
use super::truth::Call;
use super::world::World;

/// A command as its owner, with a capability.
pub fn as_owner(world: &World, owner: &str, f: impl FnOnce(Ctx) -> Result<Value, Error>) -> Result<Value, Error> {
    let caller = Caller { owner: owner.into(), ..Caller::default() };
    let runs = Capability { world, owner: owner.into() };
    f(Ctx { host: world, caller: &caller, runs: Some(&runs) })
}

/// The name of the `n`-th owner; one of them looks like part of a key.
pub fn owner_name(n: usize) -> String {
    match n {
        1 => "o/1%2f".into(),
        n => format!("owner-{n}"),
    }
}

/// A random owner.
pub fn owner(world: &World) -> String {
    owner_name(world.below(world.knobs.owners))
}

/// A random team that exists, as its owner and record.
pub fn team(world: &World) -> Option<(String, Team)> {
    let checker = world.checker.borrow();
    let n = world.below(checker.living().count());
    checker.living().nth(n).map(|((owner, _), _, team)| (owner.clone(), team.clone()))
}

/// A random job of which `f` is true.
pub fn job(world: &World, f: impl Fn(&Job) -> bool) -> Option<(String, String, Job)> {
    let checker = world.checker.borrow();
    let fit = || {
        checker
            .living()
            .flat_map(|((owner, team), mirror, _)| mirror.jobs.values().filter(|j| f(j)).map(move |j| (owner, team, j)))
    };
    let n = world.below(fit().count());
    fit().nth(n).map(|(owner, team, job)| (owner.clone(), team.clone(), job.clone()))
}

/// A refusal of any other kind than `unknown` says that nothing was stored.
pub fn nothing_stored(world: &World, command: &str, reply: &Option<Result<Value, Error>>) {
    if let Some(Err(e)) = reply
        && e.kind != Kind::Unknown
        && e.detail.as_ref().is_some_and(|d| d["commits"] != 0)
    {
        world.violate(format!("{command} says \"{}\" ({:?}) and stored something", e.code, e.kind));
    }
}

/// A caller was told of a job.
pub fn accepted(world: &World, owner: &str, team: &str, job: &Value) {
    if let Some(job) = job.as_str() {
        let seen = world.checker.borrow_mut().accepted(owner, team, job);
        if let Err(broken) = seen {
            world.violate(broken);
        }
    }
}

/// Makes a team, or repeats a creation, with the same content or another.
pub fn create(world: &World) {
    let owner = owner(world);
    let n = world.below(world.knobs.teams_each);
    let goal = if world.chance(50) { "another goal" } else { "the goal" };
    create_team(world, &owner, n, goal);
}

/// Makes the `n`-th team of an owner.
pub fn create_team(world: &World, owner: &str, n: usize, goal: &str) {
    let members = (0..2 + n % 3)
        .map(|m| Object(NewMember { name: format!("member {m}"), agent: format!("agent-{m}") }))
        .collect();
    let create = Create {
        request_id: format!("team {n}"),
        name: format!("team {n}"),
        goal: goal.into(),
        members,
        lead: (n % 2 == 1).then(|| "member 1".into()),
        successor_of: None,
    };
    let exists = |world: &World| {
        let checker = world.checker.borrow();
        checker.team(owner, &ids::team(owner, &create.request_id)).and_then(|t| t.team.clone())
    };
    let existing = exists(world);
    let commands = world.steps.get();
    let reply = world.command(
        || format!("{owner} creates {} ({goal})", create.name),
        None,
        || as_owner(world, owner, |ctx| create::create(ctx, &create)),
    );
    // Sweeping away what a deleted team of this name left is no effect.
    let alone = world.steps.get() == commands + 1;
    if alone
        && existing.is_none()
        && matches!(&reply, Some(Err(e)) if e.kind != Kind::Unknown)
        && existing != exists(world)
    {
        world.violate("create refuses and made the team");
    }
    if let Some(Ok(view)) = &reply {
        let (id, ready) = (view["team"]["id"].as_str().unwrap_or(""), view["team"]["ready"] == true);
        let checker = world.checker.borrow();
        let mirror = checker.team(owner, id);
        if mirror.is_none_or(|m| m.team.as_ref().is_none_or(|t| t.goal != goal)) {
            world.violate("a team was answered that is not stored");
        }
        // A member whose agent was gone takes only itself down.
        let missing = mirror.and_then(|m| m.team.as_ref()).is_some_and(|t| {
            let agents = world.agents.borrow();
            t.members.iter().any(|m| !agents.threads.contains_key(&m.thread) && !agents.left.contains(&m.agent))
        });
        if ready && missing {
            world.violate("a team is ready and a conversation is missing");
        }
    }
}

/// The owner asks a member for work; often again with a used request id.
pub fn send(world: &World) {
    let Some((owner, team)) = team(world) else { return };
    let Some(member) = world.pick(&team.members) else { return };
    let number = world.below(if world.knobs.talkative { 120 } else { 60 });
    let text = if world.chance(30) { format!("other {number}") } else { format!("do {number}") };
    let send = Send { team_id: team.id.clone(), member_id: member.id, request_id: format!("r{number}"), text };
    send_it(world, &owner, &send);
}

/// The owner asks the member at this place.
pub fn send_to(world: &World, owner: &str, team: &str, place: usize, request_id: &str) {
    let member = {
        let checker = world.checker.borrow();
        checker.team(owner, team).and_then(|t| t.team.as_ref()?.members.get(place).cloned())
    };
    let Some(member) = member else { return };
    let text = format!("do {request_id}");
    send_it(world, owner, &Send { team_id: team.into(), member_id: member.id, request_id: request_id.into(), text });
}

/// The number of an owner's team, as `create_team` counts.
pub fn number_of(world: &World, owner: &str, team: &str) -> Option<usize> {
    (0..world.knobs.teams_each).find(|n| ids::team(owner, &format!("team {n}")) == team)
}

fn send_it(world: &World, owner: &str, send: &Send) {
    let reply = world.command(
        || format!("{owner} sends {} to {} of {}", send.request_id, send.member_id, send.team_id),
        None,
        || as_owner(world, owner, |ctx| send::send(ctx, send)),
    );
    nothing_stored(world, "send", &reply);
    if let Some(Ok(reply)) = &reply {
        accepted(world, owner, &send.team_id, &reply["job"]["id"]);
        let what = format!("{}: {}", send.member_id, send.text);
        let checked = world.checker.borrow_mut().requested(owner, &send.team_id, &send.request_id, what);
        if let Err(broken) = checked {
            world.violate(broken);
        }
    }
}

/// A member asks a peer for work during its run.
pub fn send_member(world: &World, thread: &str, run: &str) {
    let found = {
        let checker = world.checker.borrow();
        let found = checker.living().find(|(_, _, team)| team.members.iter().any(|m| m.thread == thread));
        found.map(|((owner, _), _, team)| (owner.clone(), team.clone()))
    };
    let Some((owner, team)) = found else { return };
    let Some(member) = world.pick(&team.members) else { return };
    let calls = {
        let mut agents = world.agents.borrow_mut();
        let turn = agents.threads.get_mut(thread).and_then(|t| t.runs.get_mut(run));
        turn.map_or(0, |turn| {
            turn.calls += 1;
            turn.calls
        })
    };
    // Sometimes the same call again, as after a crash of the agent's host.
    let call = if world.chance(150) { calls.saturating_sub(1) } else { calls };
    let caller = Caller {
        owner: owner.clone(),
        thread: Some(thread.into()),
        run: Some(run.into()),
        call: Some(format!("call-{call}")),
        ancestors: Vec::new(),
    };
    let args = SendMember {
        team_id: team.id.clone().into(),
        member: if world.chance(500) { member.name.clone() } else { member.id.clone() },
        request_id: format!("{run}-{call}"),
        text: format!("help {run} {call} for {}", member.id),
    };
    let before = world.checker.borrow().team(&owner, &team.id).map_or(0, |t| t.jobs.len());
    let reply = world.command(
        || format!("{run} in {thread} calls send_member({}) as call-{call}", args.member),
        None,
        || send::send_member(Ctx { host: world, caller: &caller, runs: None }, &args),
    );
    nothing_stored(world, "send_member", &reply);
    let mut call = Call { owner, thread: thread.into(), run: run.into(), refused: None };
    let broken = match &reply {
        Some(Ok(reply)) => {
            accepted(world, &call.owner, &team.id, &reply["job_id"]);
            // A repeated call is answered as it was the first time.
            let made = reply["job_id"].as_str().filter(|made| {
                let checker = world.checker.borrow();
                checker.job(&call.owner, made).is_some_and(|(_, job)| job.n as usize > before)
            });
            made.and_then(|made| world.check_handoff(&call, Some(made)))
        }
        Some(Err(e)) => {
            call.refused = Some(e.code.clone().into_owned());
            world.check_handoff(&call, None)
        }
        None => None,
    };
    if let Some(broken) = broken {
        world.violate(broken);
    }
}

/// The owner deletes a team.
pub fn delete(world: &World) {
    if let Some((owner, team)) = team(world) {
        delete_team(world, &owner, &team.id);
    }
}

/// Deletes one team.
pub fn delete_team(world: &World, owner: &str, team: &str) {
    let delete = Delete { team_id: team.into() };
    let reply = world.command(
        || format!("{owner} deletes {team}"),
        None,
        || as_owner(world, owner, |ctx| delete::delete(ctx, &delete)),
    );
    nothing_stored(world, "delete", &reply);
    if let Some(Ok(_)) = reply
        && world.connected(owner, team)
    {
        world.violate("a deleted team is still connected");
    }
}

/// The owner connects a team.
pub fn connect(world: &World) {
    let Some((owner, team)) = team(world) else { return };
    connect_team(world, &owner, &team.id);
}

/// Connects one team.
pub fn connect_team(world: &World, owner: &str, team: &str) {
    let connect = Connect { team_id: team.into() };
    let reply = world.command(
        || format!("{owner} connects {team}"),
        None,
        || as_owner(world, owner, |ctx| connect::connect(ctx, &connect)),
    );
    let gone = {
        let (checker, agents) = (world.checker.borrow(), world.agents.borrow());
        let members = checker.team(owner, team).and_then(|t| t.team.as_ref()).map(|t| &t.members);
        members.into_iter().flatten().any(|m| agents.gone.contains(&m.agent))
    };
    match &reply {
        Some(Ok(view)) if view["team"]["ready"] != true && !gone => {
            world.violate("a team was connected and is not ready");
        }
        _ => {}
    }
}

/// Somebody reads; sometimes another owner's team.
pub fn read(world: &World) {
    let Some((owner, team)) = team(world) else { return };
    let reader = if world.chance(300) { self::owner(world) } else { owner.clone() };
    let get =
        Get { team_id: team.id.clone(), limit: None, cursor: None, details: Some(world.chance(500)), revision: None };
    let reply = world.command(
        || format!("{reader} reads {}", team.id),
        None,
        || as_owner(world, &reader, |ctx| get::get(ctx, &get)),
    );
    match reply {
        Some(Ok(_)) if reader != owner => world.violate(format!("{reader} can read a team of {owner}")),
        Some(Err(e)) if reader != owner && e.kind != Kind::Unavailable && e.code != "team_not_found" => {
            world.violate(format!("{reader} learns that a team of {owner} exists: {}", e.code));
        }
        Some(Ok(view)) => {
            let still = view["jobs"].as_array().into_iter().flatten();
            let mute = still.filter(|j| matches!(j["status"].as_str(), Some("queued" | "waiting_input" | "unknown")));
            if let Some(job) = mute.clone().find(|j| j["reason"].is_null()) {
                world.violate(format!("{} is {} and nobody says why", job["id"], job["status"]));
            }
        }
        _ => {}
    }
    world.command(
        || format!("{reader} lists"),
        None,
        || as_owner(world, &reader, |ctx| list::list(ctx, &list::List {})),
    );
}

/// The conversation outside all teams that an owner has.
pub fn outside(owner: &str) -> String {
    format!("chat-of-{owner}")
}

/// A person mentions members in a conversation, outside or a member's own.
pub fn mention(world: &World) {
    let owner = owner(world);
    let own: Vec<Team> = {
        let checker = world.checker.borrow();
        checker.living().filter(|((o, _), ..)| *o == owner).map(|(_, _, t)| t.clone()).collect()
    };
    let Some(first) = world.pick(&own) else { return };
    let thread = if world.chance(700) { outside(&owner) } else { first.members[0].thread.clone() };
    world.agents.borrow_mut().outside(&owner, &outside(&owner));
    let mut references = Vec::new();
    for _ in 0..=world.below(3) {
        let Some(team) = world.pick(&own) else { return };
        let Some(member) = world.pick(&team.members) else { return };
        references.push(Reference { team: team.id.clone(), member: member.id });
    }
    if world.chance(100) {
        references.push(Reference { team: first.id.clone(), member: "m-nobody".into() });
    }
    let number = world.below(if world.knobs.talkative { 60 } else { 20 });
    let caller = Caller { owner: owner.clone(), thread: Some(thread.clone()), ..Caller::default() };
    let mention = Mention { id: format!("message {number}"), text: format!("please {number}"), references };
    let runs = Capability { world, owner: owner.clone() };
    let reply = world.command(
        || format!("{owner} mentions {:?} in {thread}", mention.references),
        None,
        || mention::dispatch(Ctx { host: world, caller: &caller, runs: Some(&runs) }, &mention),
    );
    nothing_stored(world, "mention", &reply);
    if let Some(Ok(reply)) = &reply {
        for job in reply["jobs"].as_array().into_iter().flatten() {
            accepted(world, &owner, job["team_id"].as_str().unwrap_or(""), &job["job_id"]);
        }
    }
}
