//! What the tests of a team's knowledge share: a native host with owners,
//! teams and members that call tools.

use agent_teams_plugin::app::commands::mention::{self, Mention, Reference};
use agent_teams_plugin::app::scheduling::connection;
use agent_teams_plugin::app::scheduling::{advance, plan};
use agent_teams_plugin::app::{Caller, Ctx};
use agent_teams_plugin::domain::error::Error;
use agent_teams_plugin::exports::{self, Outcome};
use agent_teams_plugin::host::{Host, Runs};
use agent_teams_tests::clock::FakeClock;
use agent_teams_tests::double::Double;
use agent_teams_tests::native::{MemoryStore, NativeHost, NativeRuns};
use serde_json::{Value, json};

pub type Reply = Result<Value, Error>;

/// A host with a scripted agent host beneath it.
pub struct Desk {
    pub host: NativeHost,
    pub double: Double,
}

/// A team: its id and its members' (id, thread).
#[derive(Clone, Debug)]
pub struct Team {
    pub owner: &'static str,
    pub id: String,
    pub members: Vec<(String, String)>,
}

impl Team {
    pub fn thread(&self, member: usize) -> &str {
        &self.members[member].1
    }
}

impl Default for Desk {
    fn default() -> Self {
        Self::seeded(7)
    }
}

impl Desk {
    pub fn seeded(seed: u64) -> Self {
        let host = NativeHost::new(MemoryStore::default(), FakeClock::default(), seed);
        Self { host, double: Double::default() }
    }

    pub fn runs(&self, owner: &str) -> NativeRuns {
        self.host.runs(&self.double, owner)
    }

    /// The owner's action, from the page.
    pub fn action(&self, owner: &str, name: &str, payload: &Value) -> Reply {
        let runs = self.runs(owner);
        let caller = Caller { owner: owner.into(), ..Caller::default() };
        act(&self.host, &caller, Some(&runs), name, payload)
    }

    /// A tool, called from a conversation.
    pub fn tool(&self, owner: &str, thread: &str, name: &str, arguments: &Value) -> Reply {
        self.tool_as(&Caller { owner: owner.into(), thread: Some(thread.into()), ..Caller::default() }, name, arguments)
    }

    pub fn tool_as(&self, caller: &Caller, name: &str, arguments: &Value) -> Reply {
        use_tool(&self.host, caller, name, arguments)
    }

    /// A member of the team calls a tool, with the team's id filled in.
    pub fn member(&self, team: &Team, member: usize, name: &str, mut arguments: Value) -> Reply {
        arguments["team_id"] = json!(team.id);
        self.tool(team.owner, team.thread(member), name, &arguments)
    }

    /// A person picks members in a conversation and sends.
    pub fn mention(&self, owner: &str, thread: &str, id: &str, text: &str, to: &[(&str, &str)]) -> Reply {
        let runs = self.runs(owner);
        let caller = Caller { owner: owner.into(), thread: Some(thread.into()), ..Caller::default() };
        let references =
            to.iter().map(|(t, m)| Reference { team: (*t).into(), member: (*m).into() }).collect::<Vec<_>>();
        let mention = Mention { id: id.into(), text: text.into(), references };
        mention::dispatch(Ctx { host: &self.host, caller: &caller, runs: Some(&runs) }, &mention)
    }

    pub fn team(&self, owner: &'static str, request_id: &str, names: &[&str]) -> Team {
        self.team_for(owner, request_id, names, "Do good work")
    }

    pub fn team_for(&self, owner: &'static str, request_id: &str, names: &[&str], goal: &str) -> Team {
        let members: Vec<Value> =
            names.iter().map(|n| json!({"name": n, "agent": format!("{}-agent", n.to_lowercase())})).collect();
        let made = self
            .action(
                owner,
                "create",
                &json!({"request_id": request_id, "name": request_id, "goal": goal, "members": members}),
            )
            .expect("the team is made");
        let of = |m: &Value| (text(&m["id"]), text(&m["thread"]));
        let members = made["team"]["members"].as_array().expect("members").iter().map(of).collect();
        Team { owner, id: text(&made["team"]["id"]), members }
    }

    /// The owner asks a member for work; the job's id.
    pub fn send(&self, team: &Team, member: usize, request_id: &str, body: &str) -> String {
        let sent = self
            .action(
                team.owner,
                "send",
                &json!({"team_id": team.id, "member_id": team.members[member].0, "request_id": request_id, "text": body}),
            )
            .expect("the request is taken");
        text(&sent["job"]["id"])
    }

    /// Plans and advances until nothing moves; later refusals included.
    pub fn work(&self) {
        for _ in 0..2_000 {
            let ended = self.double.take_ended();
            let ended: Vec<plan::Moved> =
                ended.into_iter().map(|(owner, thread, run)| plan::Moved { owner, thread, run }).collect();
            let plan = plan::plan(&self.host, &ended, true, &[]).expect("plans");
            let mut moved = false;
            for (owner, team) in &plan.connect {
                let runs = self.runs(owner);
                moved |= connection::ensure(&self.host, owner, team, &runs).is_ok();
            }
            for step in plan.steps {
                moved |= advance::advance(&self.host, &step.owner, &step.team, &step.permit).expect("advances");
            }
            if !moved {
                return;
            }
        }
        panic!("the work does not end");
    }

    /// The owner's view of one job.
    pub fn job(&self, team: &Team, id: &str) -> Value {
        let read = self.action(team.owner, "get", &json!({"team_id": team.id, "limit": 200, "details": true}));
        let read = read.expect("reads");
        let jobs = read["jobs"].as_array().expect("jobs");
        jobs.iter().find(|j| j["id"] == *id).cloned().unwrap_or_else(|| panic!("no job {id}"))
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().expect("a text").into()
}

pub fn parse(reply: Result<Outcome, Error>) -> Reply {
    reply.map(|outcome| match outcome {
        Outcome::Done(text) => serde_json::from_str(&text).expect("a reply is JSON"),
        Outcome::Park(_) => panic!("nothing here waits"),
    })
}

pub fn act(host: &dyn Host, caller: &Caller, runs: Option<&dyn Runs>, name: &str, payload: &Value) -> Reply {
    parse(exports::actions::call(Ctx { host, caller, runs }, name, &payload.to_string()))
}

pub fn use_tool(host: &dyn Host, caller: &Caller, name: &str, arguments: &Value) -> Reply {
    parse(exports::tools::call(Ctx { host, caller, runs: None }, name, &arguments.to_string()))
}

/// Bytes of compact JSON.
pub fn bytes(value: &Value) -> usize {
    serde_json::to_string(value).expect("writes").len()
}

/// Characters that are awkward one way or another, by number.
pub fn awkward(kind: usize, chars: usize) -> String {
    let unit = ["a", "é", "研", "😀", "\"", "\\", "\u{1}", "\n", "a\"研😀\u{2}"][kind % 9];
    let mut out: String = unit.chars().cycle().take(chars).collect();
    // Nothing that trimming would take away at the ends.
    if chars > 1 {
        out.replace_range(..out.chars().next().map_or(0, char::len_utf8), "x");
        out.pop();
        out.push('x');
    }
    out
}
