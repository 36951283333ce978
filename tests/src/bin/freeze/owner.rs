//! An owner at work over HTTP. Writes that can be repeated are noted with what
//! they made: sent again, they must make the same, whatever program answers.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use agent_teams_tests::http::{Client, action_path};
use agent_teams_tests::reading;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The writes of all owners, in order.
#[derive(Default)]
pub struct Journal(RefCell<Vec<Value>>);

impl Journal {
    pub fn take(&self) -> Vec<Value> {
        self.0.take()
    }
}

pub struct Owner<'j> {
    name: &'static str,
    url: String,
    http: Client,
    journal: &'j Journal,
}

/// A team as its maker knows it.
pub struct Team {
    pub id: String,
    members: Vec<Value>,
}

impl Team {
    /// A team that was made elsewhere.
    pub fn known(id: &str) -> Self {
        Self { id: id.to_owned(), members: Vec::new() }
    }

    /// A member's id, by its name.
    pub fn member(&self, name: &str) -> Result<&str> {
        let found = self.members.iter().find(|member| member["name"] == name);
        found.and_then(|member| member["id"].as_str()).with_context(|| format!("no member {name}"))
    }
}

impl<'j> Owner<'j> {
    pub fn new(name: &'static str, url: &str, token: &str, journal: &'j Journal) -> Result<Self> {
        Ok(Self { name, url: url.to_owned(), http: Client::with_token(url, token)?, journal })
    }

    /// Signs in as a browser does; gives the session's secret.
    pub fn sign_in(&self) -> Result<String> {
        let link = self.http.post("/api/sign-in-link", &json!({}))?.ok()?;
        let secret = link["path"].as_str().and_then(|path| path.split_once('#')).context("a link")?.1;
        let cookie = Client::sign_in(&self.url, secret)?;
        ensure!(Client::with_session(&self.url, &cookie)?.get("/api/me")?.status == 200, "the session is none");
        Ok(cookie)
    }

    /// A write that is noted.
    fn write(&self, path: String, body: Value) -> Result<Value> {
        let reply = self.http.post(&path, &body)?.ok().with_context(|| format!("{path} {body}"))?;
        let note = json!({"user": self.name, "path": path, "body": body, "made": reading::made(&reply)});
        self.journal.0.borrow_mut().push(note);
        Ok(reply)
    }

    pub fn act(&self, action: &str, payload: Value) -> Result<Value> {
        self.write(action_path(action), payload)
    }

    /// A call that is not noted: it reads, or it depends on when it is made.
    pub fn ask(&self, action: &str, payload: Value) -> Result<Value> {
        self.http.action(action, &payload)
    }

    /// The same, where it may be refused.
    pub fn try_to(&self, action: &str, payload: Value) -> Result<bool> {
        Ok(self.http.post(&action_path(action), &payload)?.status == 200)
    }

    pub fn team(&self, name: &str, members: &[&str]) -> Result<Team> {
        self.team_with(name, members, json!({}))
    }

    /// A team with further fields of its creation.
    pub fn team_with(&self, name: &str, members: &[&str], more: Value) -> Result<Team> {
        let members: Vec<Value> = members.iter().map(|name| json!({"name": name, "agent": "worker"})).collect();
        let mut payload = json!({"request_id": name, "name": name, "goal": "Be kept.", "members": members});
        for (field, value) in more.as_object().into_iter().flatten() {
            payload[field] = value.clone();
        }
        let team = self.act("create", payload)?["team"].clone();
        let id = team["id"].as_str().context("no team")?.to_owned();
        Ok(Team { id, members: team["members"].as_array().context("no members")?.clone() })
    }

    /// Sends a request; its id is given.
    pub fn send(&self, team: &Team, member: &str, request: &str, text: &str) -> Result<String> {
        let payload =
            json!({"team_id": team.id, "member_id": team.member(member)?, "request_id": request, "text": text});
        let reply = self.act("send", payload)?;
        reply["job"]["id"].as_str().map(str::to_owned).context("no job")
    }

    /// Sends a request and waits until it has this status.
    pub fn send_until(&self, team: &Team, member: &str, request: &str, text: &str, status: &str) -> Result<Value> {
        self.send(team, member, request, text)?;
        self.until(team, request, "request", status)
    }

    /// Waits until the job of this kind with this request id has this status.
    pub fn until(&self, team: &Team, request: &str, kind: &str, status: &str) -> Result<Value> {
        let wanted = |job: &Value| job["status"] == status;
        self.seen(team, request, kind, &wanted).with_context(|| format!("not {status}"))
    }

    /// Waits until the job is held for this reason.
    pub fn until_held(&self, team: &Team, request: &str, kind: &str, reason: &str) -> Result<Value> {
        let wanted = |job: &Value| job["reason"]["code"] == reason;
        self.seen(team, request, kind, &wanted).with_context(|| format!("not {reason}"))
    }

    /// Waits until the run of the job is named.
    pub fn until_runs(&self, team: &Team, request: &str, kind: &str) -> Result<Value> {
        let wanted = |job: &Value| job["status"] == "running" && job["run_id"].is_string();
        self.seen(team, request, kind, &wanted).context("not running")
    }

    fn seen(&self, team: &Team, request: &str, kind: &str, wanted: &dyn Fn(&Value) -> bool) -> Result<Value> {
        let begun = Instant::now();
        loop {
            let jobs = reading::jobs(&|action, payload| self.ask(action, payload), &team.id)?;
            let job = jobs.into_iter().find(|job| job["request_id"] == request && job["kind"] == kind);
            if let Some(job) = job.as_ref().filter(|job| wanted(job)) {
                return Ok(job.clone());
            }
            ensure!(begun.elapsed() < PATIENCE, "{kind} {request} is {job:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn answer(&self, team: &Team, job: &Value, request: &str, response: Value) -> Result<()> {
        let payload = json!({"team_id": team.id, "job_id": job["id"], "request_id": request, "response": response});
        self.act("resume", payload)?;
        Ok(())
    }

    pub fn cancel(&self, team: &Team, job: &Value) -> Result<()> {
        self.act("cancel", json!({"team_id": team.id, "job_id": job["id"]}))?;
        Ok(())
    }

    /// Begins a conversation of the owner's own; gives its id.
    pub fn begin(&self, message: &str, text: &str, mentions: &[(&Team, &str)]) -> Result<String> {
        let mentions: Vec<Value> = mentions
            .iter()
            .map(|(team, name)| Ok(json!({"team": team.id, "member": team.member(name)?})))
            .collect::<Result<_>>()?;
        let body = json!({"agent": "worker", "message_id": message, "text": text, "mentions": mentions});
        let reply = self.write("/api/conversations".into(), body)?;
        reply["thread"].as_str().map(str::to_owned).context("no conversation")
    }

    /// Says something in a conversation.
    pub fn say(&self, thread: &str, message: &str, text: &str) -> Result<()> {
        let body = json!({"message_id": message, "text": text});
        self.write(format!("/api/conversations/{thread}/messages"), body)?;
        Ok(())
    }

    /// Waits until a conversation reads so.
    pub fn until_reads(&self, thread: &str, wanted: &dyn Fn(&Value) -> bool) -> Result<()> {
        let begun = Instant::now();
        loop {
            let transcript = self.http.get(&format!("/api/conversations/{thread}"))?.ok()?;
            if wanted(&transcript) {
                return Ok(());
            }
            ensure!(begun.elapsed() < PATIENCE, "the conversation reads {transcript}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
