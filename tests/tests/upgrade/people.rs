//! The owners after the upgrade: they do what only people can do, until all
//! work has ended.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use agent_teams_tests::http::{Client, action_path};
use agent_teams_tests::reading;
use serde_json::{Map, Value, json};

use crate::PATIENCE;
use crate::compare;
use crate::frozen::Running;

/// The request id of every answer. The record's keys of answers are for it.
const ANSWER: &str = "after-the-upgrade";

pub struct People<'r> {
    owners: Vec<(String, Client)>,
    running: &'r Running<'r>,
    /// What was done, by job and status: it is not done twice.
    done: BTreeSet<(String, String)>,
}

impl<'r> People<'r> {
    pub fn new(running: &'r Running<'r>) -> Self {
        let owners = running.frozen().owners().map(|owner| (owner.to_owned(), running.client(owner))).collect();
        Self { owners, running, done: BTreeSet::new() }
    }

    /// Connects every team, also those that have nothing to do.
    pub fn reconnect(&self) {
        for (owner, client) in &self.owners {
            for team in teams(client) {
                let connected = client.action("connect", &json!({"team_id": team["id"]}));
                let connected = connected.unwrap_or_else(|e| panic!("{} of {owner}: {e:#}", team["name"]));
                assert_eq!(connected["team"]["ready"], true, "{connected}");
                assert_eq!(connected["team"]["connected"], true, "{connected}");
            }
        }
        // A question whose job was cancelled holds up its conversation until a
        // person speaks there.
        let (ann, team) = (self.running.client("ann"), self.running.team("ann", "Waiting"));
        let mut members = team["members"].as_array().expect("members").iter();
        let thread = members.find(|m| m["name"] == "Fay").and_then(|m| m["thread"].as_str()).expect("a member");
        let said = json!({"message_id": ANSWER, "text": "Never mind."});
        let said = ann.post(&format!("/api/conversations/{thread}/messages"), &said).and_then(|reply| reply.ok());
        said.expect("said");
    }

    /// Answers, decides and settles until no job is unfinished.
    pub fn let_all_end(&mut self) {
        let begun = Instant::now();
        loop {
            let mut unfinished = Vec::new();
            for (owner, client) in self.owners.clone() {
                for team in teams(&client).iter().filter(|team| team["unfinished"] != 0) {
                    let id = team["id"].as_str().expect("an id");
                    let jobs = reading::jobs(&|action, payload| client.action(action, &payload), id).expect("jobs");
                    for job in jobs.iter().filter(|job| !compare::finished(job)) {
                        self.look_after(&owner, &client, team, job);
                        let (name, request, status) = (&team["name"], &job["request_id"], &job["status"]);
                        unfinished.push(format!("{owner}/{name}/{request}: {status} {}", job["reason"]));
                    }
                }
            }
            if unfinished.is_empty() {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "work does not end:\n{}", unfinished.join("\n"));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn look_after(&mut self, owner: &str, client: &Client, team: &Value, job: &Value) {
        let (id, status) = (job["id"].as_str().expect("an id"), job["status"].as_str().expect("a status"));
        if job["request_id"] == "board" {
            ring(client, team);
        }
        let outcome = match status {
            "waiting_input" => None,
            "unknown" => match outcome(owner, job) {
                Outcome::TheHostKnows => return,
                outcome => Some(outcome),
            },
            _ => return,
        };
        if !self.done.insert((format!("{owner}/{id}"), status.to_owned())) {
            return;
        }
        let act = |action: &str, more: Value| {
            let mut payload = json!({"team_id": team["id"], "job_id": id});
            payload.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
            client.post(&action_path(action), &payload).expect("an answer")
        };
        let reply = match outcome {
            None if job["request_id"] == "to-be-cancelled" => act("cancel", json!({})),
            None => act("resume", answer(job)),
            Some(Outcome::Settle(as_what)) => act("settle", json!({"outcome": as_what})),
            Some(_) => act("cancel", json!({})),
        };
        // What is not asked any more cannot be answered.
        let reply = match (reply.status, reply.body["code"].as_str()) {
            (409, Some("clarification_changed")) => act("cancel", json!({})),
            _ => reply,
        };
        reply.ok().unwrap_or_else(|e| panic!("{owner}/{}: {job}: {e:#}", team["name"]));
    }
}

fn teams(client: &Client) -> Vec<Value> {
    let listed = client.action("list", &json!({})).expect("teams");
    listed["teams"].as_array().expect("teams").clone()
}

/// The answer to what a job asks.
fn answer(job: &Value) -> Value {
    let asked = job["interrupts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let yes = json!({"approved": true});
    let response = match (&job["question"], asked) {
        (Value::Null, [] | [_]) => yes,
        (Value::Null, several) => {
            let ids = several.iter().map(|one| one["id"].as_str().expect("an id").to_owned());
            Value::Object(ids.map(|id| (id, yes.clone())).collect::<Map<_, _>>())
        }
        (question, _) => {
            return json!({"request_id": ANSWER, "question_id": question["id"], "response": "Blue."});
        }
    };
    json!({"request_id": ANSWER, "response": response})
}

/// What a person decides about an unknown outcome.
enum Outcome {
    TheHostKnows,
    Settle(&'static str),
    Cancel,
}

fn outcome(owner: &str, job: &Value) -> Outcome {
    match (owner, job["request_id"].as_str().expect("a request id")) {
        ("eve", "ran") => Outcome::TheHostKnows,
        ("eve", "never-cancel") => Outcome::Cancel,
        ("eve", "never-retry" | "answer" | "decision") => Outcome::Settle("retry"),
        ("dana", _) if job["text"] == "Keep collecting" => Outcome::Settle("retry"),
        _ => Outcome::Settle("failed"),
    }
}

/// Changes a task, for a run that waits for the board.
fn ring(client: &Client, team: &Value) {
    let listed = client.action("tasks", &json!({"team_id": team["id"]})).expect("tasks");
    let mut tasks = listed["tasks"].as_array().expect("tasks").iter();
    let task = tasks.find(|task| task["subject"] == "To be changed").expect("the task");
    let change = json!({
        "team_id": team["id"], "task_id": task["id"], "expected_revision": task["revision"], "action": "edit",
        "description": format!("Changed after revision {}.", task["revision"]),
    });
    client.action("update_task", &change).expect("changed");
}
