//! The component over a fresh database file, with agents in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_teams_host::contract::{Caller, TeamRef};
use agent_teams_host::engine::{Options, Parts, Plugin, Signals, SystemClock};
use agent_teams_host::storage::database::Database;
use agent_teams_host::storage::{SqliteStore, Store};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agents::Agents;
use crate::texts::{self, Answer, text};

/// What ends with one section's cell.
pub struct Rig {
    pub db: Database,
    pub store: SqliteStore,
    pub plugin: Plugin,
    pub agents: Agents,
    pub signals: Arc<Signals>,
    folder: TempDir,
}

/// A team as the workload knows it.
#[derive(Clone, Debug)]
pub struct Team {
    pub owner: String,
    pub id: String,
    pub members: Vec<Member>,
}

#[derive(Clone, Debug)]
pub struct Member {
    pub id: String,
    pub name: String,
    pub thread: String,
}

/// All records that were stored at one time.
pub type Records = BTreeMap<String, String>;

/// Where databases and compiled code are put: below the build's folder, and so
/// on the disk that the work is on.
pub fn place() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/workload")
}

impl Rig {
    pub async fn new(answer: Answer) -> Result<Self> {
        let place = place();
        std::fs::create_dir_all(&place)?;
        let folder = tempfile::tempdir_in(&place)?;
        let db = Database::open(&folder.path().join("data.sqlite"))?;
        let store = SqliteStore::new(db.clone())?;
        let signals = Arc::new(Signals::default());
        let parts = Parts {
            store: Arc::new(store.clone()),
            signals: signals.clone(),
            settings: "{}".into(),
            clock: Arc::new(SystemClock),
        };
        let options = Options { cache: Some(place.join("cache")), ..Options::default() };
        let plugin = Plugin::load(Plugin::embedded(), parts, options)?;
        plugin.open().await?;
        Ok(Self { db, store, plugin, agents: Agents::new(&answer.text()), signals, folder })
    }

    /// The database file.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("data.sqlite")
    }

    /// An action of an owner, with the capability.
    pub async fn action_text(&self, owner: &str, action: &str, payload: &str) -> Result<String> {
        let runs = self.agents.capability(owner);
        let answer = self.plugin.call_action(Caller::owner(owner), Some(runs), action, payload).await;
        answer.with_context(|| format!("the action {action}"))
    }

    pub async fn action(&self, owner: &str, action: &str, payload: Value) -> Result<Value> {
        Ok(serde_json::from_str(&self.action_text(owner, action, &payload.to_string()).await?)?)
    }

    /// A tool call from a member's conversation, outside any run.
    pub async fn tool(&self, owner: &str, thread: &str, tool: &str, arguments: Value) -> Result<Value> {
        let caller = Caller { owner: owner.into(), thread: Some(thread.into()), ..Caller::default() };
        let answer = self.plugin.call_tool(caller, None, tool, &arguments.to_string()).await;
        Ok(serde_json::from_str(&answer.with_context(|| format!("the tool {tool}"))?)?)
    }

    /// Makes team number `i` of this owner.
    pub async fn create(&self, owner: &str, i: usize, members: usize) -> Result<Team> {
        Team::of(owner, &self.action(owner, "create", texts::team(i, members)).await?)
    }

    /// The owner asks a member.
    pub async fn send(&self, team: &Team, member: usize, request: &str, text: &str) -> Result<Value> {
        self.action(&team.owner, "send", team.request(member, request, text)).await
    }

    /// One member asks another, outside any run.
    pub async fn ask(&self, team: &Team, from: usize, to: usize, request: &str, text: &str) -> Result<Value> {
        let arguments =
            json!({"team_id": team.id, "member": team.members[to].name, "request_id": request, "text": text});
        self.tool(&team.owner, &team.members[from].thread, "send_member", arguments).await
    }

    /// One pass of the worker: hands over what ended, plans, and advances the
    /// planned teams, all at once. Says how many teams there were.
    pub async fn tick(&self) -> Result<usize> {
        let plan = self.plugin.plan(self.agents.take_ended(), false, Vec::new()).await?;
        let teams = plan.steps.len();
        let mut steps = tokio::task::JoinSet::new();
        for step in plan.steps {
            let plugin = self.plugin.clone();
            steps.spawn(async move { plugin.advance(&step.team, &step.permit).await });
        }
        while let Some(done) = steps.join_next().await {
            done?.context("a step")?;
        }
        Ok(teams)
    }

    /// A team of eight whose members ask each other in a ring, `requests`
    /// times, each answered: two entries a request.
    pub async fn full(&self, owner: &str, i: usize, requests: usize, size: usize) -> Result<Team> {
        let team = self.create(owner, i, 8).await?;
        for n in 0..requests {
            self.ask(&team, n % 8, (n + 1) % 8, &format!("r{n}"), &text(size, &format!("req {n}"))).await?;
            self.tick().await?;
            self.tick().await?;
        }
        Ok(team)
    }

    /// A team of four with `requests` finished requests of its owner.
    pub async fn asked(&self, owner: &str, requests: usize, size: usize) -> Result<Team> {
        let team = self.create(owner, 0, 4).await?;
        for n in 0..requests {
            self.send(&team, n % 4, &format!("r{n}"), &text(size, &format!("req {n}"))).await?;
            self.tick().await?;
        }
        Ok(team)
    }

    /// Everything that is stored under these prefixes.
    pub fn records<P: AsRef<str>>(&self, prefixes: &[P]) -> Result<Records> {
        let mut all = Records::new();
        let mut tx = self.store.begin()?;
        for prefix in prefixes {
            let mut from = prefix.as_ref().to_owned();
            let end = format!("{}\u{10ffff}", prefix.as_ref());
            loop {
                let found = tx.scan(&from, &end, 500, false)?;
                let Some((last, _)) = found.last() else { break };
                from = format!("{last}\u{0}");
                all.extend(found);
            }
        }
        Ok(all)
    }

    /// Puts everything under these prefixes back to what it was.
    pub async fn put_back<P: AsRef<str>>(&self, prefixes: &[P], was: &Records) -> Result<()> {
        let now = self.records(prefixes)?;
        let mut tx = self.store.begin()?;
        for key in now.keys().filter(|key| !was.contains_key(*key)) {
            tx.delete(key.clone())?;
        }
        for (key, value) in was.iter().filter(|(key, value)| now.get(*key) != Some(*value)) {
            tx.put(key.clone(), value.clone())?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Copies a team, record by record, to other owners and ids: what else
    /// lies in the database while something is measured. Copy `n` belongs to
    /// owner `first + n / 20`, and is connected.
    pub async fn copies(&self, team: &Team, first: usize, n: usize) -> Result<Vec<Team>> {
        let from = self.records(&[""])?;
        let own = format!("/{}/{}", team.owner, team.id);
        let listed = format!("-{}", team.id);
        let mine = |key: &str| key.contains(&own) || key.ends_with(&listed) || key.starts_with("ran/");
        let from: Vec<(&String, &String)> = from.iter().filter(|(key, _)| mine(key)).collect();
        let mut made = Vec::new();
        for chunk in (0..n).collect::<Vec<_>>().chunks(5) {
            let mut tx = self.store.begin()?;
            for copy in chunk {
                let owner = texts::owner(first + copy / 20);
                let other = |id: &str| format!("{}{:08x}", &id[..id.len() - 8], copy + 1);
                let members: Vec<Member> = team
                    .members
                    .iter()
                    .enumerate()
                    .map(|(k, m)| {
                        let thread = format!("{}{:06x}{k:02x}", &m.thread[..m.thread.len() - 8], copy + 1);
                        Member { thread, ..m.clone() }
                    })
                    .collect();
                let id = other(&team.id);
                let exchange = |text: &str| {
                    let mut text = text.replace(&team.id, &id).replace(&team.owner, &owner);
                    for (old, new) in team.members.iter().zip(&members) {
                        text = text.replace(&old.thread, &new.thread);
                    }
                    text
                };
                for (key, value) in &from {
                    let value = exchange(value).replace("Team 000", &format!("Team {:03}", copy % 20));
                    tx.put(exchange(key), value)?;
                }
                made.push(Team { owner, id, members });
            }
            tx.commit().await?;
        }
        for team in &made {
            let name = TeamRef { owner: team.owner.clone(), team: team.id.clone() };
            self.plugin.connect(&name, self.agents.capability(&team.owner)).await?;
        }
        Ok(made)
    }
}

impl Team {
    /// From an answer that shows the team.
    pub fn of(owner: &str, answer: &Value) -> Result<Self> {
        let team = &answer["team"];
        let text = |value: &Value| value.as_str().map(str::to_owned).context("an answer without an id");
        let members = team["members"].as_array().context("an answer without members")?;
        let members = members
            .iter()
            .map(|m| Ok(Member { id: text(&m["id"])?, name: text(&m["name"])?, thread: text(&m["thread"])? }))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self { owner: owner.into(), id: text(&team["id"])?, members })
    }

    /// The payload of `send`.
    pub fn request(&self, member: usize, request: &str, text: &str) -> Value {
        json!({"team_id": self.id, "member_id": self.members[member].id, "request_id": request, "text": text})
    }
}
