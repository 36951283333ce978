//! What is in the database of a folder: read to promise what must follow from
//! it, and to list it.

use std::collections::BTreeMap;
use std::fmt::Write;

use agent_teams_plugin::domain::ids;
use agent_teams_plugin::domain::job::{JobKind, Phase};
use agent_teams_plugin::store::keys::{TeamKeys, unpart};
use agent_teams_plugin::store::records::{Frozen, Job, STORE_FORMAT, Team};
use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, OptionalExtension};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The request id of answers that are given to the frozen questions later.
const ANSWER: &str = "after-the-upgrade";
/// Every phase must be there.
const PHASES: [&str; 11] = [
    "queued",
    "starting",
    "running",
    "waiting",
    "answered",
    "resuming",
    "cancelling",
    "unknown",
    "completed",
    "failed",
    "cancelled",
];

/// A job as it is stored.
pub struct FrozenJob {
    owner: String,
    team: Team,
    job: Job,
    input: Option<Frozen>,
}

impl FrozenJob {
    /// What follows from the ids of an unfinished job, whatever program
    /// continues it: the key of its next run, or of the one under way, and the
    /// id of its receipt.
    pub fn promise(&self) -> Option<Value> {
        let (nonce, job) = (&self.team.nonce, &self.job);
        let key = match &job.phase {
            phase if phase.finished() => return None,
            Phase::Queued => {
                let first = job.key.clone().unwrap_or_else(|| ids::run_key(nonce, &job.id));
                if job.refused == 0 { first } else { ids::run_key_again(&first, job.refused) }
            }
            Phase::Waiting { wait, .. } => ids::resume_key(nonce, &job.id, &wait.identity(), ANSWER),
            Phase::Answered { answer, .. } => answer.key.clone(),
            Phase::Cancelling { key, .. } | Phase::Unknown { key, .. } => key.clone(),
            _ => self.input.as_ref().map(|input| input.key.clone())?,
        };
        let returns = job.kind == JobKind::Request && job.source.thread().is_some();
        let receipt = returns.then(|| ids::receipt(nonce, &job.id));
        let team = &self.team.id;
        Some(json!({"owner": self.owner, "team": team, "job": job.id, "key": key, "receipt": receipt}))
    }

    fn member(&self) -> &str {
        let id = self.job.member.as_deref();
        id.and_then(|id| self.team.member(id)).map_or("(own conversation)", |member| &member.name)
    }

    /// The phase in words.
    fn phase(&self) -> Result<String> {
        let stored = serde_json::to_value(&self.job.phase)?;
        let mut words = stored["at"].as_str().context("a phase")?.to_owned();
        match &self.job.phase {
            Phase::Waiting { wait, .. } => {
                let wait = serde_json::to_value(wait)?;
                let open = wait["open"].as_array().map_or(1, Vec::len);
                write!(words, " ({}, {open} open)", wait["kind"].as_str().context("a wait")?)?;
            }
            Phase::Cancelling { run, accepted, .. } => {
                write!(words, " (run {}, {})", known(run), if *accepted { "accepted" } else { "not sent" })?;
            }
            Phase::Unknown { run, answer, .. } => {
                let of = if answer.is_some() { "answer" } else { "request" };
                write!(words, " (run {}, of the {of})", known(run))?;
            }
            _ => {}
        }
        if let Some(hold) = &self.job.hold {
            write!(words, "; held: {}", hold.code)?;
        }
        if self.job.refused > 0 {
            words.push_str("; refused before");
        }
        Ok(words)
    }
}

fn known(run: &Option<String>) -> &'static str {
    if run.is_some() { "known" } else { "not known" }
}

/// What is in the database.
pub struct Contents {
    pub jobs: Vec<FrozenJob>,
    /// Per team (owner, id): records of each kind that are not jobs.
    others: BTreeMap<(String, String), BTreeMap<String, u32>>,
    pub teams: BTreeMap<(String, String), Team>,
    /// Rows of the host's tables.
    tables: BTreeMap<&'static str, u32>,
}

fn record<T: DeserializeOwned>(db: &Connection, key: &str) -> Result<Option<T>> {
    let value: Option<String> =
        db.query_row("SELECT value FROM kv WHERE key = ?1", [key], |row| row.get(0)).optional()?;
    value.map(|value| serde_json::from_str(&value).with_context(|| key.to_owned())).transpose()
}

impl Contents {
    pub fn read(db: &Connection) -> Result<Self> {
        let mut contents =
            Self { jobs: Vec::new(), others: BTreeMap::new(), teams: BTreeMap::new(), tables: BTreeMap::new() };
        let mut query = db.prepare("SELECT key FROM kv WHERE key LIKE 'team/%' ORDER BY key")?;
        let keys = query.query_map([], |row| row.get::<_, String>(0))?;
        for key in keys {
            let key = key?;
            let parts: Vec<&str> = key.split('/').collect();
            let (owner, team) = (unpart(parts[1]), unpart(parts[2]));
            let at = TeamKeys::new(&owner, &team);
            match parts[3..] {
                ["team"] => {
                    let made = record(db, &at.team())?.context("a team")?;
                    contents.teams.insert((owner, team), made);
                }
                ["job", number] => {
                    let n = number.parse()?;
                    let job = record(db, &at.job(n))?.context("a job")?;
                    let input = record(db, &at.input(n))?;
                    let team = record(db, &at.team())?.context("a team")?;
                    contents.jobs.push(FrozenJob { owner, team, job, input });
                }
                [kind, ..] if ["state", "event", "live", "note", "call", "msg"].contains(&kind) => {
                    *contents.others.entry((owner, team)).or_default().entry(kind.to_owned()).or_default() += 1;
                }
                _ => {}
            }
        }
        for table in [
            "users",
            "user_tokens",
            "user_sessions",
            "agent_threads",
            "agent_messages",
            "agent_runs",
            "agent_keys",
            "agent_approvals",
        ] {
            let rows = db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
            contents.tables.insert(table, rows);
        }
        Ok(contents)
    }

    /// Nothing that should be there is missing.
    pub fn check(&self) -> Result<()> {
        let reached: Vec<Value> =
            self.jobs.iter().map(|job| serde_json::to_value(&job.job.phase)).collect::<Result<_, _>>()?;
        for phase in PHASES {
            ensure!(reached.iter().any(|stored| stored["at"] == phase), "no job is {phase}");
        }
        Ok(())
    }

    pub fn page(&self) -> Result<String> {
        let tables: Vec<String> = self.tables.iter().map(|(table, rows)| format!("`{table}` {rows}")).collect();
        let mut page = include_str!("page.md")
            .replace("{format}", &STORE_FORMAT.to_string())
            .replace("{version}", env!("CARGO_PKG_VERSION"))
            .replace("{tables}", &tables.join(", "));
        for ((owner, id), team) in &self.teams {
            let of = |job: &&FrozenJob| job.owner == *owner && job.team.id == *id;
            let jobs: Vec<&FrozenJob> = self.jobs.iter().filter(of).collect();
            writeln!(page, "\n### {} (of {owner})\n", team.name)?;
            let mut facts = Vec::new();
            for status in ["completed", "failed", "cancelled"] {
                let count = jobs.iter().filter(|job| job.job.phase.status() == status).count();
                if count > 0 {
                    facts.push(format!("{status}: {count}"));
                }
            }
            let names = [
                ("msg", "lines of the shared record"),
                ("state", "entries of the public state"),
                ("live", "tasks"),
                ("event", "changes of tasks"),
                ("note", "notices not delivered yet"),
                ("call", "replies to calls of runs"),
            ];
            let others = self.others.get(&(owner.clone(), id.clone()));
            for (kind, name) in names {
                if let Some(count) = others.and_then(|others| others.get(kind)) {
                    facts.push(format!("{name}: {count}"));
                }
            }
            let facts = if facts.is_empty() { "nothing yet".into() } else { facts.join(", ") };
            writeln!(page, "{facts}.")?;
            let open: Vec<&&FrozenJob> = jobs.iter().filter(|job| !job.job.phase.finished()).collect();
            if open.is_empty() {
                continue;
            }
            writeln!(page, "\n| member | kind | request id | phase |\n|---|---|---|---|")?;
            for job in open {
                let kind = if job.job.kind == JobKind::Receipt { "receipt" } else { "request" };
                writeln!(page, "| {} | {kind} | `{}` | {} |", job.member(), job.job.request_id, job.phase()?)?;
            }
        }
        Ok(page)
    }
}
