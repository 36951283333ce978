//! Short ways to do what most tests do with a team.

use agent_teams_host::contract::{Caller, Refusal};
use serde_json::{Value, json};

use super::{Answer, World, roster};

/// A member as the tests name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub id: String,
    pub name: String,
    pub thread: String,
}

/// A team as the tests name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Team {
    pub owner: String,
    pub id: String,
    pub members: Vec<Member>,
}

impl Team {
    /// From an answer that shows a team.
    #[track_caller]
    pub fn from_answer(owner: &str, answer: &Value) -> Self {
        let text = |v: &Value| v.as_str().expect("a text").to_owned();
        let members = answer["team"]["members"].as_array().expect("members").iter();
        Self {
            owner: owner.into(),
            id: text(&answer["team"]["id"]),
            members: members
                .map(|m| Member { id: text(&m["id"]), name: text(&m["name"]), thread: text(&m["thread"]) })
                .collect(),
        }
    }

    /// The conversation of the `n`-th member.
    pub fn thread(&self, n: usize) -> &str {
        &self.members[n].thread
    }
}

/// A job's status.
#[track_caller]
pub fn status(job: &Value) -> &str {
    job["status"].as_str().unwrap_or_else(|| panic!("not a job: {job}"))
}

/// The ids of jobs, in their order.
pub fn ids_of(jobs: &[Value]) -> Vec<String> {
    jobs.iter().filter_map(|j| j["id"].as_str()).map(Into::into).collect()
}

impl World {
    /// A connected team with these members.
    #[track_caller]
    pub fn team(&self, owner: &str, names: &[&str]) -> Team {
        self.team_named(owner, "create-1", names)
    }

    /// The same with a request id of its own.
    #[track_caller]
    pub fn team_named(&self, owner: &str, request_id: &str, names: &[&str]) -> Team {
        let answer = self.action(owner, "create", roster(request_id, names)).expect("create");
        assert_eq!(answer["team"]["ready"], true, "{answer}");
        assert_eq!(answer["team"]["connected"], true, "{answer}");
        Team::from_answer(owner, &answer)
    }

    pub fn try_send(&self, team: &Team, member: usize, request_id: &str, text: &str) -> Answer {
        let member = &team.members[member].id;
        let payload = json!({"team_id": team.id, "member_id": member, "request_id": request_id, "text": text});
        Ok(self.action(&team.owner, "send", payload)?["job"].clone())
    }

    /// A request of the owner; its id.
    #[track_caller]
    pub fn send(&self, team: &Team, member: usize, request_id: &str) -> String {
        let job = self.try_send(team, member, request_id, &format!("Do {request_id}.")).expect("send");
        job["id"].as_str().expect("id").to_owned()
    }

    /// Who calls a tool in a member's conversation, during its running run.
    pub fn caller(&self, team: &Team, member: usize) -> Caller {
        Caller {
            owner: team.owner.clone(),
            thread: Some(team.thread(member).into()),
            run: self.double.running_in(team.thread(member)),
            ..Caller::default()
        }
    }

    pub fn try_tell(&self, team: &Team, from: usize, to: usize, request_id: &str) -> Answer {
        let arguments = json!({
            "team_id": team.id, "member": team.members[to].name, "request_id": request_id,
            "text": format!("Please do {request_id}."),
        });
        self.tool(&self.caller(team, from), "send_member", arguments)
    }

    /// A request of one member to another, by its tool; its id.
    #[track_caller]
    pub fn tell(&self, team: &Team, from: usize, to: usize, request_id: &str) -> String {
        let reply = self.try_tell(team, from, to, request_id).expect("send_member");
        reply["job_id"].as_str().expect("job_id").to_owned()
    }

    /// The team with all its jobs, newest first, in full.
    #[track_caller]
    pub fn view(&self, team: &Team) -> Value {
        self.action(&team.owner, "get", json!({"team_id": team.id, "limit": 200, "details": true})).expect("get")
    }

    #[track_caller]
    pub fn jobs(&self, team: &Team) -> Vec<Value> {
        self.view(team)["jobs"].as_array().expect("jobs").clone()
    }

    #[track_caller]
    pub fn job(&self, team: &Team, id: &str) -> Value {
        let jobs = self.jobs(team);
        jobs.iter().find(|j| j["id"] == id).unwrap_or_else(|| panic!("no job {id}")).clone()
    }

    #[track_caller]
    pub fn status(&self, team: &Team, id: &str) -> String {
        status(&self.job(team, id)).to_owned()
    }

    /// The code of why a job is not moving; empty if it moves.
    #[track_caller]
    pub fn reason(&self, team: &Team, id: &str) -> String {
        self.job(team, id)["reason"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The receipts of a team, newest first.
    #[track_caller]
    pub fn receipts(&self, team: &Team) -> Vec<Value> {
        self.jobs(team).into_iter().filter(|j| j["kind"] == "receipt").collect()
    }

    pub fn cancel(&self, team: &Team, job: &str) -> Answer {
        Ok(self.action(&team.owner, "cancel", json!({"team_id": team.id, "job_id": job}))?["job"].clone())
    }

    pub fn answer(&self, team: &Team, job: &str, request_id: &str, response: Value) -> Answer {
        let payload = json!({"team_id": team.id, "job_id": job, "request_id": request_id, "response": response});
        Ok(self.action(&team.owner, "resume", payload)?["job"].clone())
    }

    pub fn settle(&self, team: &Team, job: &str, outcome: &str) -> Answer {
        let payload = json!({"team_id": team.id, "job_id": job, "outcome": outcome});
        Ok(self.action(&team.owner, "settle", payload)?["job"].clone())
    }

    pub fn connect(&self, team: &Team) -> Answer {
        self.action(&team.owner, "connect", json!({"team_id": team.id}))
    }

    pub fn delete(&self, team: &Team) -> Answer {
        self.action(&team.owner, "delete", json!({"team_id": team.id}))
    }

    #[track_caller]
    pub fn connected(&self, team: &Team) -> bool {
        self.view(team)["team"]["connected"] == true
    }

    /// Ends the running run of a member's conversation as it was scripted.
    #[track_caller]
    pub fn release(&self, team: &Team, member: usize) {
        let run = self.double.running_in(team.thread(member)).expect("a running run");
        assert!(self.double.release(&run));
    }

    /// How many runs were ever admitted in a member's conversation.
    pub fn runs(&self, team: &Team, member: usize) -> usize {
        self.double.admissions_in(team.thread(member)).len()
    }

    /// The conversations whose run is running, as places in the roster.
    pub fn at_work(&self, team: &Team) -> Vec<usize> {
        (0..team.members.len()).filter(|n| self.double.running_in(team.thread(*n)).is_some()).collect()
    }
}

/// What a refusal looks like to its caller, byte for byte.
pub fn bytes_of(refusal: &Refusal) -> String {
    format!("{refusal:?}")
}
