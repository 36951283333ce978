//! Calm sequences of commands, run by the real code and by the oracle.

use agent_teams_plugin::app::commands::mention::{self, Mention, Reference};
use agent_teams_plugin::app::commands::resume::{self, Resume};
use agent_teams_plugin::app::commands::send::{self, Send, SendMember};
use agent_teams_plugin::app::commands::settle::{self, Settle};
use agent_teams_plugin::app::commands::{cancel, delete, get, open};
use agent_teams_plugin::app::shared::settling::Outcome;
use agent_teams_plugin::app::{Caller, Ctx};
use agent_teams_plugin::domain::error::Error;
use agent_teams_plugin::host::RunStatus;
use serde_json::{Value, json};

use super::actors;
use super::agents::Manners;
use super::drive;
use super::knobs::Knobs;
use super::oracle::{Answer, Oracle, Team};
use super::rest;
use super::rng::Rng;
use super::runs::Capability;
use super::world::World;

/// Runs one calm sequence of `commands`; the first difference, if there is one,
/// with the trace before it.
pub fn run(seed: u64, commands: usize) -> Result<u64, String> {
    let knobs = Knobs {
        owners: if seed.is_multiple_of(3) { 1 } else { 3 },
        teams_each: if seed.is_multiple_of(3) { 1 } else { 3 },
        slots: 64,
        talkative: seed.is_multiple_of(3),
        settings: r#"{"slots":64,"reconnect":"manual"}"#.into(),
        ..Knobs::default()
    };
    let world = World::new(knobs, Rng::new(seed), true);
    world.faulty.set(false);
    world.agents.borrow_mut().manners =
        Manners { durable_keys: true, rewrites: !seed.is_multiple_of(2), ..Manners::default() };
    world.command(|| "open".into(), None, || open::open(&world).map(|()| json!(null)));
    let mut pair = Pair { world, oracle: Oracle::default(), calls: 0 };
    for _ in 0..commands {
        let different = pair.command().err().or_else(|| pair.world.violation()).or_else(|| pair.compare().err());
        if let Some(different) = different {
            let trace = pair.world.take_trace();
            let tail = trace[trace.len().saturating_sub(40)..].join("\n");
            return Err(format!("{tail}\nsequence {seed}: {different}"));
        }
    }
    Ok(pair.world.steps.get())
}

struct Pair {
    world: World,
    oracle: Oracle,
    calls: u64,
}

type Reply = Option<Result<Value, Error>>;

impl Pair {
    fn same(&self, what: &str, real: Reply, expected: Answer, status: impl Fn(&Value) -> Value) -> Result<(), String> {
        let real = match real {
            Some(Ok(value)) => Ok(status(&value).as_str().unwrap_or("").to_string()),
            Some(Err(e)) => Err(e.code.into_owned()),
            None => return Err(format!("{what} was given up in a calm world")),
        };
        let expected = expected.map(String::from).map_err(String::from);
        if real == expected { Ok(()) } else { Err(format!("{what}: {real:?}, expected {expected:?}")) }
    }

    /// A team of an owner: the real id, or one that does not exist.
    fn some_team(&self, owner: &str) -> (String, Team) {
        let own: Vec<_> = self.oracle.teams.iter().filter(|((o, _), _)| o == owner).collect();
        match self.world.below(own.len() + 1) {
            n if n < own.len() => (own[n].0.1.clone(), own[n].1.clone()),
            _ => ("team-00000000000000000000000000000000".into(), Team::default()),
        }
    }

    fn job_id(&self, owner: &str, team: &str, n: usize) -> String {
        let checker = self.world.checker.borrow();
        let job = checker.team(owner, team).and_then(|t| t.jobs.get(&(n as u32 + 1)));
        job.map_or_else(|| "job-00000000000000000000000000000000".into(), |j| j.id.clone())
    }

    fn command(&mut self) -> Result<(), String> {
        let owner = actors::owner(&self.world);
        // Some sequences fill one team and its chains to their bounds.
        let talk = self.world.knobs.talkative && self.world.chance(400);
        match self.world.below(20) {
            _ if talk => self.send_member()?,
            0 | 1 => self.create(&owner)?,
            2..=6 => self.send(&owner)?,
            7 | 8 => self.mention(&owner)?,
            9..=12 => self.turn()?,
            13 | 14 => self.send_member()?,
            15 => self.cancel(&owner)?,
            16 | 17 => self.resume(&owner)?,
            18 => self.settle_or_delete(&owner)?,
            _ => self.answer_outside(),
        }
        for _ in 0..4 {
            self.world.clock.set(self.world.clock.get() + 61_000);
            drive::pass(&self.world);
            self.oracle.pass();
        }
        Ok(())
    }

    fn create(&mut self, owner: &str) -> Result<(), String> {
        let n = self.world.below(self.world.knobs.teams_each);
        let goal = if self.world.chance(100) { "another goal" } else { "the goal" };
        let id = agent_teams_plugin::domain::ids::team(owner, &format!("team {n}"));
        let existed = self.oracle.teams.get(&(owner.to_string(), id.clone())).map(|t| t.goal.clone());
        actors::create_team(&self.world, owner, n, goal);
        let checker = self.world.checker.borrow();
        let made = checker.team(owner, &id).and_then(|t| t.team.clone()).ok_or("a team was not made")?;
        if existed.as_ref().is_some_and(|old| *old != made.goal) {
            return Err("a creation with other content changed the team".into());
        }
        if existed.is_none() {
            let members = made.members.iter().map(|m| (m.id.clone(), m.thread.clone())).collect();
            let team = Team { goal: made.goal.clone(), members, jobs: Vec::new() };
            self.oracle.teams.insert((owner.into(), id), team);
        }
        Ok(())
    }

    fn send(&mut self, owner: &str) -> Result<(), String> {
        let (id, team) = self.some_team(owner);
        let member = self.world.pick(&team.members).filter(|_| !self.world.chance(50));
        let member = member.map_or_else(|| "m-nobody".into(), |(id, _)| id);
        let n = self.world.below(150);
        let text = match self.world.below(40) {
            0 => "  \u{feff} ".to_string(),
            1 => "字".repeat(2_667),
            2 => "x".repeat(4_001),
            3 => "字".repeat(2_666),
            4 => format!("other {n}"),
            _ => format!(" do {n} "),
        };
        let send =
            Send { team_id: id.clone(), member_id: member.clone(), request_id: format!("r{n}"), text: text.clone() };
        let reply = self.world.command(
            || format!("{owner} sends r{n}"),
            None,
            || actors::as_owner(&self.world, owner, |ctx| send::send(ctx, &send)),
        );
        let trimmed = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        let expected = self.oracle.send(owner, &id, &member, &format!("r{n}"), trimmed, None, None);
        self.same("send", reply, expected, |v| v["job"]["status"].clone())
    }

    fn mention(&mut self, owner: &str) -> Result<(), String> {
        let chat = actors::outside(owner);
        self.world.agents.borrow_mut().outside(owner, &chat);
        let (id, team) = self.some_team(owner);
        let member = self.world.pick(&team.members).map_or_else(|| "m-nobody".into(), |(id, _)| id);
        let n = self.world.below(40);
        let mention = Mention {
            id: format!("message {n}"),
            text: format!("please {n}"),
            references: vec![Reference { team: id.clone(), member: member.clone() }],
        };
        let caller = Caller { owner: owner.into(), thread: Some(chat.clone()), ..Caller::default() };
        let runs = Capability { world: &self.world, owner: owner.into() };
        let reply = self.world.command(
            || format!("{owner} mentions {member} in {chat}"),
            None,
            || mention::dispatch(Ctx { host: &self.world, caller: &caller, runs: Some(&runs) }, &mention),
        );
        let request_id = format!("message {n}/{member}");
        let expected = self.oracle.send(owner, &id, &member, &request_id, &mention.text, Some(&chat), None);
        let expected = expected.map_err(|code| match code {
            "team_not_found" | "member_not_found" => "mention_not_found",
            code => code,
        });
        self.same("mention", reply, expected, |v| v["jobs"][0]["status"].clone())
    }

    /// Some turn ends, in some way.
    fn turn(&mut self) -> Result<(), String> {
        let at_work = self.world.agents.borrow().at_work();
        let Some((thread, run)) = self.world.pick(&at_work) else { return Ok(()) };
        let how = ["completed", "completed", "completed", "failed", "question", "interrupt"][self.world.below(6)];
        self.world.note(|| format!("{run} in {thread}: {how}"));
        let mut agents = self.world.agents.borrow_mut();
        match how {
            "completed" => {
                agents.say(&thread, &run, &format!("answer of {run}"), false);
                agents.end(&thread, &run, RunStatus::Succeeded, None);
            }
            "failed" => agents.end(&thread, &run, RunStatus::Failed, Some("broke".into())),
            "question" => {
                agents.say(&thread, &run, "which?", true);
                agents.end(&thread, &run, RunStatus::Succeeded, None);
            }
            _ => agents.interrupt(&thread, &run, 1),
        }
        self.oracle.turn_ends(&thread, how);
        Ok(())
    }

    fn send_member(&mut self) -> Result<(), String> {
        let at_work = self.world.agents.borrow().at_work();
        let Some((thread, run)) = self.world.pick(&at_work) else { return Ok(()) };
        let Some(((owner, id), during)) = self.oracle.conversations.get(&thread).and_then(|c| c.queue.first().cloned())
        else {
            return Err(format!("{run} is at work in {thread}, and the oracle knows of none"));
        };
        let team = self.oracle.teams[&(owner.clone(), id.clone())].clone();
        // In an outside conversation nobody speaks for the team.
        let speaks = team.members.iter().any(|(_, t)| *t == thread);
        let Some((member, _)) = self.world.pick(&team.members) else { return Ok(()) };
        self.calls += 1;
        let n = self.world.below(30);
        let caller = Caller {
            owner: owner.clone(),
            thread: Some(thread.clone()),
            run: Some(run.clone()),
            call: Some(format!("call-{}", self.calls)),
            ancestors: Vec::new(),
        };
        let args = SendMember {
            team_id: id.clone().into(),
            member: member.clone(),
            request_id: format!("h{n}"),
            text: format!("help {n}"),
        };
        let reply = self.world.command(
            || format!("{run} in {thread} calls send_member({member}, h{n})"),
            None,
            || send::send_member(Ctx { host: &self.world, caller: &caller, runs: None }, &args),
        );
        let expected = match speaks {
            true => self.oracle.send(&owner, &id, &member, &format!("h{n}"), &args.text, Some(&thread), Some(during)),
            false => Err("team_not_found"),
        };
        self.same("send_member", reply, expected, |v| v["status"].clone())
    }

    fn cancel(&mut self, owner: &str) -> Result<(), String> {
        let (id, team) = self.some_team(owner);
        if team.members.is_empty() {
            return Ok(());
        }
        let n = self.world.below(team.jobs.len() + 1);
        let args = cancel::Cancel { team_id: id.clone(), job_id: self.job_id(owner, &id, n) };
        let reply = self.world.command(
            || format!("{owner} cancels job {n}"),
            None,
            || actors::as_owner(&self.world, owner, |ctx| cancel::cancel(ctx, &args)),
        );
        let expected = self.oracle.cancel(owner, &id, n);
        self.same("cancel", reply, expected, |v| v["job"]["status"].clone())
    }

    fn resume(&mut self, owner: &str) -> Result<(), String> {
        let (id, team) = self.some_team(owner);
        if team.members.is_empty() {
            return Ok(());
        }
        let waiting = team.jobs.iter().position(|j| j.status == "waiting_input").filter(|_| !self.world.chance(200));
        let n = waiting.unwrap_or_else(|| self.world.below(team.jobs.len() + 1));
        let response = match self.world.below(3) {
            0 => json!({"approved": true}),
            k => json!(format!("answer {k}")),
        };
        let request_id = format!("a{}", self.world.below(3));
        let args = Resume {
            team_id: id.clone(),
            job_id: self.job_id(owner, &id, n),
            request_id,
            question_id: None,
            response: response.clone(),
        };
        let reply = self.world.command(
            || format!("{owner} answers job {n} as {}: {response}", args.request_id),
            None,
            || actors::as_owner(&self.world, owner, |ctx| resume::resume(ctx, &args)),
        );
        let expected = self.oracle.resume(owner, &id, n, &args.request_id, &response.to_string(), response.is_string());
        self.same("resume", reply, expected, |v| v["job"]["status"].clone())
    }

    fn settle_or_delete(&mut self, owner: &str) -> Result<(), String> {
        let (id, team) = self.some_team(owner);
        if self.world.chance(300) {
            let args = delete::Delete { team_id: id.clone() };
            let reply = self.world.command(
                || format!("{owner} deletes {id}"),
                None,
                || actors::as_owner(&self.world, owner, |ctx| delete::delete(ctx, &args)),
            );
            let expected = self.oracle.delete(owner, &id);
            return self.same("delete", reply, expected, |_| json!("deleted"));
        }
        if team.members.is_empty() {
            return Ok(());
        }
        let n = self.world.below(team.jobs.len() + 1);
        let args = Settle { team_id: id.clone(), job_id: self.job_id(owner, &id, n), outcome: Outcome::Failed };
        let reply = self.world.command(
            || format!("{owner} settles job {n}"),
            None,
            || actors::as_owner(&self.world, owner, |ctx| settle::settle(ctx, &args)),
        );
        let expected = self.oracle.settle(owner, &id, n);
        self.same("settle", reply, expected, |v| v["job"]["status"].clone())
    }

    /// The question that a cancelled job left open is answered in the
    /// conversation itself.
    fn answer_outside(&mut self) {
        let threads: Vec<String> = {
            let open = self.oracle.conversations.iter().filter(|(_, c)| c.open);
            open.map(|(id, _)| id.clone()).filter(|id| !rest::awaited(&self.world, id)).collect()
        };
        let Some(thread) = self.world.pick(&threads) else { return };
        self.world.note(|| format!("somebody answers in {thread}"));
        let mut agents = self.world.agents.borrow_mut();
        agents.foreign_message(&thread);
        if let Some(conversation) = self.oracle.conversations.get_mut(&thread) {
            conversation.open = false;
        }
    }

    /// Every team looks as the oracle says.
    fn compare(&self) -> Result<(), String> {
        for (owner, id) in self.oracle.teams.keys() {
            let args = get::Get { team_id: id.clone(), limit: Some(200), cursor: None, details: None, revision: None };
            let view = actors::as_owner(&self.world, owner, |ctx| get::get(ctx, &args)).map_err(|e| e.message)?;
            let Some((statuses, counts)) = self.oracle.view(owner, id) else { continue };
            let jobs: Vec<&Value> = view["jobs"].as_array().into_iter().flatten().rev().collect();
            let real: Vec<&str> = jobs.iter().map(|j| j["status"].as_str().unwrap_or("")).collect();
            if real != statuses {
                return Err(format!("{id} of {owner}:\n{real:?}, expected\n{statuses:?}"));
            }
            let told = &view["team"]["counts"];
            let real =
                [&told["requests"], &told["receipts"], &told["unfinished"]].map(|n| n.as_u64().unwrap_or(0) as usize);
            if real != counts {
                return Err(format!("{id} of {owner} counts {real:?}, expected {counts:?}"));
            }
            for (n, job) in jobs.iter().enumerate() {
                let (real, expected) = (job["reason"]["code"].as_str(), self.oracle.reason(owner, id, n));
                if real != expected {
                    return Err(format!("job {n} of {id} says {real:?}, expected {expected:?}"));
                }
            }
        }
        Ok(())
    }
}
