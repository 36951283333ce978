//! The second act: the parts of the program on the frozen folder, put together
//! as the program does, with gates before the agents. When every job is where
//! it should be, this process tells what can be read, and waits to be killed.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use agent_teams_host::agents::builtin::BuiltinAgents;
use agent_teams_host::agents::host::ToolHost;
use agent_teams_host::agents::runs::{Capability, RunError};
use agent_teams_host::app;
use agent_teams_host::config::{Config, DATABASE_NAME, FILE_NAME};
use agent_teams_host::contract::{CallError, Caller, ToolDef};
use agent_teams_host::engine::{Clock, Parts, Plugin, Signals, SystemClock};
use agent_teams_host::storage::database::Database;
use agent_teams_host::storage::{SqliteStore, SqliteTables};
use agent_teams_host::users::UserDirectory;
use agent_teams_host::users::Users;
use agent_teams_host::worker::{self, Worker};
use agent_teams_tests::reading;
use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

use super::gates::{Call, Gated, GatedTools, Gates, Then};

/// What the last line begins with.
pub const READY: &str = "ready ";
const PATIENCE: Duration = Duration::from_secs(60);
/// The owner of the teams to which it happens.
const OWNER: &str = "eve";
/// A part of the arguments of the calls that no agent learns of.
const HALF: &str = "\"half\"";
/// These teams are not connected.
const AWAY: &str = "dana";

/// A session that lasts for as long as the folder is of use.
pub fn lasting_session(data: &Path, user: &str) -> Result<String> {
    /// In the year 2100.
    struct Later;
    impl Clock for Later {
        fn now_ms(&self) -> u64 {
            4_102_444_800_000
        }
    }
    runtime()?.block_on(async {
        let db = Database::open(&data.join(DATABASE_NAME))?;
        let tables = SqliteTables::open(db.clone(), Arc::new(Later)).await?;
        let users = Users::new(tables, Arc::new(Later));
        let link = users.sign_in_link(user).await?;
        let session = users.redeem(&link.secret).await?;
        drop(users);
        db.close();
        Ok(session.secret)
    })
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

/// The second act; it ends only when it is killed.
pub fn run(data: &Path) -> Result<()> {
    let runtime = runtime()?;
    let stage = Arc::new(runtime.block_on(Stage::open(data))?);
    let handle = runtime.handle().clone();
    let act = Act { stage: stage.clone(), handle };
    act.unclear()?;
    act.silent()?;
    let views = act.views()?;
    act.check()?;
    println!("{READY}{views}");
    loop {
        std::thread::park();
    }
}

/// The component's tools, as the program gives them to its agents.
struct Tools {
    plugin: Plugin,
    agents: OnceLock<std::sync::Weak<BuiltinAgents>>,
}

#[async_trait]
impl ToolHost for Tools {
    async fn list(&self) -> Result<Vec<ToolDef>, CallError> {
        self.plugin.tools("full").await
    }
    async fn call(&self, caller: Caller, name: &str, arguments: &str) -> Result<String, CallError> {
        let agents = self.agents.get().and_then(std::sync::Weak::upgrade);
        let runs = agents.map(|agents| agents.capability(&caller.owner));
        self.plugin.call_tool(caller, runs, name, arguments).await
    }
}

/// The parts of a serving program.
struct Stage {
    plugin: Plugin,
    agents: Arc<BuiltinAgents>,
    gates: Arc<Gates>,
    users: Arc<Users>,
    _worker: Worker,
}

impl Stage {
    async fn open(data: &Path) -> Result<Self> {
        let config = Config::read(&data.join(FILE_NAME))?;
        let db = Database::open(&data.join(DATABASE_NAME))?;
        let tables = SqliteTables::open(db.clone(), Arc::new(SystemClock)).await?;
        let users = Users::new(tables.clone(), Arc::new(SystemClock));
        let signals = Arc::new(Signals::default());
        let parts = Parts {
            store: Arc::new(SqliteStore::new(db.clone())?),
            signals: signals.clone(),
            settings: app::settings(&config),
            clock: Arc::new(SystemClock),
        };
        let options = config.engine.options(Some(data.join(app::CACHE_FOLDER)));
        let plugin = Plugin::load(Plugin::embedded(), parts, options)?;
        plugin.open().await.map_err(|e| anyhow::anyhow!("{e}"))?;
        let gates = Arc::new(Gates::default());
        let tools = Arc::new(Tools { plugin: plugin.clone(), agents: OnceLock::new() });
        let gated = Arc::new(GatedTools { tools: tools.clone(), gates: gates.clone() });
        let agents = BuiltinAgents::open(tables, config.agents.clone(), gated, users.clone(), data.join("workspaces"))?;
        let _ = tools.agents.set(Arc::downgrade(&agents));
        let (ended, changes) = (agents.ended(), signals.subscribe());
        agents.recover().await?;
        let capability = {
            let (agents, users, gates) = (agents.clone(), users.clone(), gates.clone());
            move |owner: &str| {
                let here = owner != AWAY && users.enabled(owner)?;
                Ok(here.then(|| Gated::wrap(agents.capability(owner), &gates)))
            }
        };
        let team = Arc::new(plugin.clone());
        let options = worker::Options::default();
        let worker = Worker::start(team, ended, changes, Some(Arc::new(capability)), options);
        Ok(Self { plugin, agents, gates, users, _worker: worker })
    }

    fn capability(&self, owner: &str) -> Capability {
        Gated::wrap(self.agents.capability(owner), &self.gates)
    }
}

/// What happens on the stage, one thing after the other.
struct Act {
    stage: Arc<Stage>,
    handle: Handle,
}

/// A member of a team, by ids.
struct Seat {
    team: String,
    member: String,
    thread: String,
}

impl Act {
    fn ask_as(&self, owner: &str, action: &str, payload: Value) -> Result<Value> {
        let runs = Some(self.stage.capability(owner));
        let payload = payload.to_string();
        let call = self.stage.plugin.call_action(Caller::owner(owner), runs, action, &payload);
        let answer = self.handle.block_on(call).with_context(|| format!("{action} {payload}"))?;
        Ok(serde_json::from_str(&answer)?)
    }

    fn ask(&self, action: &str, payload: Value) -> Result<Value> {
        self.ask_as(OWNER, action, payload)
    }

    fn seat(&self, team: &str, member: &str) -> Result<Seat> {
        let listed = self.ask("list", json!({}))?;
        let mut teams = listed["teams"].as_array().into_iter().flatten();
        let found = teams.find(|known| known["name"] == team).with_context(|| format!("no team {team}"))?;
        let whole = self.ask("get", json!({"team_id": found["id"]}))?["team"].clone();
        let mut members = whole["members"].as_array().into_iter().flatten();
        let found = members.find(|known| known["name"] == member).with_context(|| format!("no member {member}"))?;
        let text = |value: &Value| value.as_str().map(str::to_owned).context("no text");
        Ok(Seat { team: text(&whole["id"])?, member: text(&found["id"])?, thread: text(&found["thread"])? })
    }

    fn send(&self, seat: &Seat, request: &str, text: &str) -> Result<()> {
        let payload = json!({"team_id": seat.team, "member_id": seat.member, "request_id": request, "text": text});
        self.ask("send", payload).map(drop)
    }

    fn job(&self, seat: &Seat, request: &str) -> Result<Value> {
        let jobs = reading::jobs(&|action, payload| self.ask(action, payload), &seat.team)?;
        jobs.into_iter().find(|job| job["request_id"] == request).with_context(|| format!("no job {request}"))
    }

    fn answer(&self, seat: &Seat, request: &str, response: Value) -> Result<()> {
        let job = self.job(seat, request)?;
        let payload = json!({"team_id": seat.team, "job_id": job["id"], "request_id": "given", "response": response});
        self.ask("resume", payload).map(drop)
    }

    fn cancel(&self, seat: &Seat, request: &str) -> Result<()> {
        let job = self.job(seat, request)?;
        self.ask("cancel", json!({"team_id": seat.team, "job_id": job["id"]})).map(drop)
    }

    /// Waits until something is so.
    fn until(&self, what: &str, so: impl Fn() -> Result<bool>) -> Result<()> {
        let begun = Instant::now();
        while !so()? {
            ensure!(begun.elapsed() < PATIENCE, "{what} did not come");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn until_held(&self, seat: &Seat, request: &str, reason: &str) -> Result<()> {
        self.until(&format!("{request}: {reason}"), || Ok(self.job(seat, request)?["reason"]["code"] == reason))
    }

    /// Answers that leave open what has happened, or say that nothing has.
    fn unclear(&self) -> Result<()> {
        let gates = &self.stage.gates;
        let unclear = || Then::Fails(RunError::Other("the connection broke".into()));
        for (member, request, sent) in [
            ("Ada", "ran", true),
            ("Bo", "never-retry", false),
            ("Cy", "never-failed", false),
            ("Dee", "never-cancel", false),
        ] {
            let seat = self.seat("Unknown", member)?;
            match sent {
                true => gates.after(Call::Start, &seat.thread, unclear()),
                false => gates.before(Call::Start, &seat.thread, unclear()),
            }
            gates.before(Call::Find, &seat.thread, unclear());
            self.send(&seat, request, "Hello.")?;
        }
        let asked = self.seat("Unknown", "Eve")?;
        gates.before(Call::Start, &asked.thread, unclear());
        gates.before(Call::Find, &asked.thread, unclear());
        self.answer(&asked, "answer", json!("Blue."))?;
        let decided = self.seat("Unknown", "Fay")?;
        gates.before(Call::Resume, &decided.thread, unclear());
        gates.before(Call::Find, &decided.thread, unclear());
        self.answer(&decided, "decision", json!({"approved": true}))?;

        let late = self.seat("Start unclear", "Ada")?;
        gates.before(Call::Start, &late.thread, Then::Fails(RunError::TimedOut));
        self.send(&late, "late", "Hello.")?;
        let lost = self.seat("Start unclear", "Bo")?;
        gates.after(Call::Start, &lost.thread, Then::Fails(RunError::TimedOut));
        gates.before(Call::Find, &lost.thread, Then::Fails(RunError::TimedOut));
        self.send(&lost, "lost", "Hello.")?;

        let refused = self.seat("Start refused", "Ada")?;
        let full = RunError::Unavailable("the agents are busy".into());
        gates.before(Call::Start, &refused.thread, Then::Fails(full.clone()));
        self.send(&refused, "refused", "Hello.")?;

        // Its conversations cannot be made.
        gates.before(Call::Create, "Not ready", Then::Fails(full));
        let members = json!([{"name": "Ada", "agent": "worker"}, {"name": "Bo", "agent": "worker"}]);
        let payload = json!({"request_id": "Not ready", "name": "Not ready", "goal": "Be kept.", "members": members});
        ensure!(self.ask("create", payload)?["team"]["ready"] == false, "the team is ready");
        self.send(&self.seat("Not ready", "Ada")?, "early", "Hello.")?;

        self.until_held(&late, "late", "host_timeout")?;
        self.until_held(&lost, "lost", "host_timeout")?;
        self.until_held(&refused, "refused", "host_unavailable")?;
        for request in ["ran", "never-retry", "never-failed", "never-cancel", "answer", "decision"] {
            self.until_held(&asked, request, "outcome_unknown")?;
        }
        Ok(())
    }

    /// Calls that are never answered. The program gives up waiting after some
    /// seconds; it is killed before that.
    fn silent(&self) -> Result<()> {
        self.half_calls()?;
        self.cancels()?;
        for (team, sent, text) in [
            ("Start not sent", false, "Hello."),
            ("Start sent", true, "Hello."),
            ("Cancel at the start", true, "Hold."),
            ("Answer to be sent", true, "Hello."),
        ] {
            self.starts_silent(team, sent, |seat| self.send(seat, "start", text))?;
        }
        self.cancel(&self.seat("Cancel at the start", "Ada")?, "start")?;
        // While one step of a team is under way, what else it has to do waits.
        self.send(&self.seat("Start not sent", "Bo")?, "behind", "Hello.")?;
        self.answer(&self.seat("Answer to be sent", "Bo")?, "question", json!("Blue."))?;
        self.answer(&self.seat("Answer to be sent", "Cy")?, "approval", json!({"approved": true}))?;
        for (team, sent) in [("Answer not sent", false), ("Answer sent", true)] {
            self.starts_silent(team, sent, |seat| self.answer(seat, "question", json!("Blue.")))?;
        }
        let decided = self.seat("Decision sent", "Ada")?;
        self.stage.gates.after(Call::Resume, &decided.thread, Then::Silence);
        self.answer(&decided, "approval", json!({"approved": true}))?;
        self.until_met(Call::Resume, &decided)
    }

    /// Calls of tools that took effect, and no agent knows it.
    fn half_calls(&self) -> Result<()> {
        self.stage.gates.after(Call::Tool, HALF, Then::Silence);
        let asked = self.seat("Half calls", "Dee")?;
        for (member, request, text) in [
            ("Ada", "half-publication", "Half a publication."),
            ("Bo", "half-task", "Half a task."),
            ("Cy", "half-request", "Half a request."),
        ] {
            let seat = self.seat("Half calls", member)?;
            self.send(&seat, request, text)?;
            self.until("a run", || Ok(self.job(&seat, request)?["run_id"].is_string()))?;
        }
        self.until("three calls", || Ok(self.stage.gates.times(Call::Tool, HALF) == 3))?;
        self.until("the end of what was asked", || Ok(self.job(&asked, "half")?["status"] == "completed"))
    }

    /// Cancels that were accepted, and that were never sent.
    fn cancels(&self) -> Result<()> {
        let gates = &self.stage.gates;
        let accepted = self.seat("Cancel accepted", "Ada")?;
        gates.after(Call::Cancel, &accepted.thread, Then::Accepted);
        gates.before(Call::Get, &accepted.thread, Then::Fails(RunError::Unavailable("not now".into())));
        self.cancel(&accepted, "hold")?;
        self.until_held(&accepted, "hold", "host_unavailable")?;
        let unsent = self.seat("Cancel not sent", "Ada")?;
        gates.before(Call::Cancel, &unsent.thread, Then::Silence);
        self.cancel(&unsent, "hold")?;
        self.until_met(Call::Cancel, &unsent)
    }

    /// A call that starts a run for a team's Ada, which is carried out or not,
    /// and not answered.
    fn starts_silent(&self, team: &str, sent: bool, act: impl Fn(&Seat) -> Result<()>) -> Result<()> {
        let seat = self.seat(team, "Ada")?;
        match sent {
            true => self.stage.gates.after(Call::Start, &seat.thread, Then::Silence),
            false => self.stage.gates.before(Call::Start, &seat.thread, Then::Silence),
        }
        act(&seat)?;
        self.until_met(Call::Start, &seat)
    }

    fn until_met(&self, call: Call, seat: &Seat) -> Result<()> {
        self.until("a call", || Ok(self.stage.gates.times(call, &seat.thread) > 0))
    }

    /// What every owner can read now.
    fn views(&self) -> Result<Value> {
        let mut views = Map::new();
        for user in self.stage.users.list()? {
            let teams = reading::teams(&|action, payload| self.ask_as(&user.id, action, payload))?;
            views.insert(user.id, Value::Array(teams));
        }
        Ok(Value::Object(views))
    }

    /// The calls are still without an answer.
    fn check(&self) -> Result<()> {
        for (team, request) in [
            ("Start not sent", "start"),
            ("Start sent", "start"),
            ("Answer not sent", "question"),
            ("Cancel not sent", "hold"),
        ] {
            let job = self.job(&self.seat(team, "Ada")?, request)?;
            ensure!(job["reason"].is_null(), "{team}: this machine was too slow: {}", job["reason"]);
        }
        Ok(())
    }
}
