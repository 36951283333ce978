//! `watch`: a team's work as it happens.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::{Value, json};

use super::Place;
use super::client::Client;
use super::fail::{Exit, Fail};
use super::find;
use super::follow::Follow;
use super::output::Output;
use super::view;

#[derive(Debug, Args)]
#[command(
    after_help = "With --json, each line is one document: {\"team\":…} or {\"job\":…}.\n\nExample:\n  agent-teams watch \"Market watch\" --until-idle"
)]
pub struct Watch {
    /// The team, by id or name.
    team: String,
    /// End when no job is unfinished (or those that are wait for a person).
    #[arg(long)]
    until_idle: bool,
}

pub async fn run(place: &Place, args: Watch, output: &Output) -> Result<Exit, Fail> {
    let client = Client::open(place)?;
    let id = find::team(&client, &args.team).await?;
    let mut follow = Follow::new(&client, &id);
    let mut changes = Changes::default();
    let bar = output.progress("watching");
    let stop = tokio::signal::ctrl_c();
    tokio::pin!(stop);
    loop {
        let answer = tokio::select! {
            answer = follow.next() => answer?,
            _ = &mut stop => return Ok(Exit::Ok),
        };
        bar.suspend(|| changes.print(output, &answer));
        bar.set_message(super::output::clean(&super::send::working(&answer)));
        let jobs = answer["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
        if args.until_idle && jobs.iter().all(|job| view::finished(job) || view::asks(job)) {
            bar.finish_and_clear();
            return Ok(Exit::Ok);
        }
    }
}

/// What was shown last, so that only changes are shown.
#[derive(Default)]
pub struct Changes {
    begun: bool,
    head: Value,
    members: BTreeMap<String, String>,
    jobs: BTreeMap<String, Value>,
}

impl Changes {
    /// Shows what differs from the last answer; the first time, the team.
    pub fn print(&mut self, output: &Output, answer: &Value) {
        let team = &answer["team"];
        let head = json!([team["ready"], team["connected"], team["reason"]]);
        let first = !std::mem::replace(&mut self.begun, true);
        if first && !output.json {
            output.say(view::team(output, answer));
            output.say("");
        } else if head != self.head && !output.json {
            output.say(view::team(output, answer));
        }
        let mut told = output.json && (first || head != self.head);
        self.head = head;
        for member in team["members"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let (id, state) = (text(member, "id"), text(member, "state"));
            if self.members.insert(id, state.clone()).is_none_or(|last| last != state) && !first {
                told |= output.json;
            }
        }
        if told {
            output.document(&json!({ "team": team }));
        }
        // Oldest first, as they happened.
        for job in answer["jobs"].as_array().map(Vec::as_slice).unwrap_or_default().iter().rev() {
            let id = text(job, "id");
            if self.jobs.get(&id).is_some_and(|last| looks(last) == looks(job)) {
                continue;
            }
            if output.json {
                output.document(&json!({ "job": job }));
            } else {
                output.say(line(output, job));
            }
            self.jobs.insert(id, job.clone());
        }
    }
}

/// The parts of a job that are shown.
fn looks(job: &Value) -> Value {
    json!([job["status"], job["reason"], job["question"], job["interrupts"], job["error"], job["completed_at"]])
}

/// One line of the feed.
pub fn line(output: &Output, job: &Value) -> String {
    let gist = match (view::gist(job, 100), view::finished(job)) {
        (gist, _) if !gist.is_empty() => gist,
        (_, false) => super::output::excerpt(job["text"].as_str().unwrap_or_default(), 100),
        (gist, true) => gist,
    };
    format!(
        "{}  {:<24} {:<12} {}",
        output.tone(super::output::Tone::Faint, &view::short_id(&text(job, "id"))),
        super::output::clean(&view::direction(job)),
        output.tone(view::tone(job), &text(job, "status")),
        super::output::clean(&gist)
    )
    .trim_end()
    .to_owned()
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}
