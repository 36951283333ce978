//! `demo`: a team of three scripted agents does real work: requests and their
//! results, a question, a denied and an approved call, and the task board. It
//! runs the same server that `serve` runs and speaks to it as any client does,
//! in the place of the team's owner.
//!
//! Everything has a fixed key, so running it again on the same data folder
//! repeats nothing: it finds the team, the jobs and the decisions that are
//! there, and continues where it stopped.

mod owner;
mod story;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::Place;
use super::client::Client;
use super::fail::{Exit, Fail};
use super::find;
use super::follow::Follow;
use super::logs;
use super::output::{Output, Tone, clean};
use super::send::working;
use super::view;
use crate::app::{App, Setup};
use crate::config::{Config, FILE_NAME, prepare_data_folder};
use owner::{CHECK, Decision, NOTE, Request};
use story::Story;

/// The configuration that the demo puts into its data folder.
const CONFIG: &str = include_str!("../../../demo/agent-teams.toml");
const FOLDER: &str = "demo";
const TEAM_KEY: &str = "demo-team";
/// Far beyond what the story takes.
const PATIENCE: Duration = Duration::from_secs(180);
/// Between looks at the members' conversations, whose waits announce nothing.
const LOOK: Duration = Duration::from_millis(150);
/// For people to read what waits for them before the demo decides.
const READING: Duration = Duration::from_millis(1500);

#[derive(Debug, Args)]
#[command(
    after_help = "The demo keeps its data in the folder `demo` of the data folder, or in --data DIR. Run it again and it\nfinds the same team, jobs and decisions, and repeats nothing. It brings its own agents; --config is not used."
)]
pub struct Demo {}

pub async fn run(place: &Place, data_given: bool, _args: Demo, output: &Output) -> Result<Exit, Fail> {
    logs::start("error", output.colors(), output.json);
    let data = if data_given { place.data.clone() } else { place.data.join(FOLDER) };
    prepare_data_folder(&data).map_err(|e| Fail::open("data_folder", e.to_string()))?;
    let config = configuration(&data)?;
    output.note(format!("The demo's data folder: {}", data.display()));
    let starting = output.progress("the server starts; the first time, it compiles the component");
    let app = App::start(Setup { data: data.clone(), config, component: None, any_port: true }).await;
    starting.finish_and_clear();
    let app = app?;
    // Others can look on (`agent-teams watch`) while it runs.
    let result = tokio::select! {
        result = tokio::time::timeout(PATIENCE, show(&data, output)) => {
            result.unwrap_or_else(|_| Err(Fail::refused("demo_too_slow", "the demo did not come to its end in time")))
        }
        part = app.broken() => Err(Fail::broken(format!("{part} has broken down; run the demo again"))),
        _ = tokio::signal::ctrl_c() => {
            Err(Fail::refused("stopped", "stopped; run the demo again and it continues where it stopped"))
        }
    };
    let page = app.page();
    app.stop().await;
    Ok(report(output, &result?, &page, &data))
}

/// The demo's configuration, put into the data folder so that `serve` finds it
/// there. One that was changed since is left as it is.
fn configuration(data: &Path) -> Result<Config, Fail> {
    let file = data.join(FILE_NAME);
    if !file.exists() {
        std::fs::write(&file, CONFIG)
            .map_err(|e| Fail::open("data_folder", format!("cannot write {}: {e}", file.display())))?;
    }
    Config::read(&file).map_err(|e| Fail::open("configuration", e.to_string()))
}

/// How the demo ended.
struct End {
    /// The team with all its jobs.
    answer: Value,
    board: Value,
    /// What was decided in this run.
    decided: Vec<Value>,
    /// Everything was there before.
    repeated: bool,
}

/// Makes the team, asks, decides, and shows what happens until all is done.
async fn show(data: &Path, output: &Output) -> Result<End, Fail> {
    let client = Client::of_folder(data)?;
    let created = client
        .write(
            "create",
            json!({
                "request_id": TEAM_KEY,
                "name": "Demo team",
                "goal": "Explain to readers, in a few sentences, how agents work together.",
                "members": [
                    {"name": "Ada", "agent": "planner"},
                    {"name": "Bo", "agent": "researcher"},
                    {"name": "Cy", "agent": "writer"},
                ],
                "lead": "Ada",
            }),
        )
        .await;
    let team = created.map_err(|fail| match fail.code.as_str() {
        "request_id_reused" => Fail::refused(
            "other_demo",
            format!(
                "{} holds the demo of another version; delete that folder, or give another with --data",
                data.display()
            ),
        ),
        _ => fail,
    })?;
    let id = team["team"]["id"].as_str().unwrap_or_default().to_owned();
    let jobs = jobs_of(&team);
    let there = |request: &Request| jobs.iter().any(|job| job["request_id"] == request.request_id);
    let repeated = there(&NOTE) && there(&CHECK) && jobs.iter().all(view::finished);
    let story = Story::new(output);
    if repeated {
        output.note("The team, its requests and all decisions are there already: nothing is repeated.");
    } else {
        story.paragraph(
            Tone::Plain,
            "Ada plans and leads, Bo finds facts, Cy writes: three agents on a scripted model, everything else is real. \
             The demo acts as their owner: it asks, answers and decides through the HTTP API.",
        );
    }
    let mut stage = Stage {
        client: &client,
        output,
        ada: find::member(&team, "Ada")?,
        follow: Follow::new(&client, &id),
        team: id,
        answer: team,
        story,
        decided: Vec::new(),
        keys: BTreeSet::new(),
        bar: output.progress("the team begins"),
    };
    stage.play(&NOTE, repeated).await?;
    if stage.rests() {
        stage.play(&CHECK, repeated).await?;
    }
    stage.bar.finish_and_clear();
    let board = client.read("tasks", json!({ "team_id": stage.team })).await?;
    Ok(End { answer: stage.answer, board, decided: stage.decided, repeated })
}

/// What the story needs while it continues.
struct Stage<'a> {
    client: &'a Client,
    output: &'a Output,
    team: String,
    ada: String,
    follow: Follow<'a>,
    /// The team with all its jobs, as last read.
    answer: Value,
    story: Story<'a>,
    decided: Vec<Value>,
    /// The decisions that were sent.
    keys: BTreeSet<&'static str>,
    bar: indicatif::ProgressBar,
}

impl Stage<'_> {
    /// Sends one request of the owner, and shows what follows until nothing is
    /// left to do, or only for a person.
    async fn play(&mut self, request: &Request, silent: bool) -> Result<(), Fail> {
        if !silent {
            self.bar.suspend(|| self.story.title(request.title));
        }
        let payload = json!({
            "team_id": self.team, "member_id": self.ada, "request_id": request.request_id, "text": request.text,
        });
        let sent = self.client.write("send", payload).await?;
        let job = &sent["job"]["id"];
        loop {
            self.look(silent).await?;
            while let Some((job, decision)) = self.asked() {
                self.decide(&job, decision).await?;
            }
            if jobs_of(&self.answer).iter().any(|j| j["id"] == *job) && self.at_rest() {
                return Ok(());
            }
        }
    }

    /// Reads what is new and tells it.
    async fn look(&mut self, silent: bool) -> Result<(), Fail> {
        if let Ok(answer) = tokio::time::timeout(LOOK, self.follow.next()).await {
            self.answer = answer?;
        }
        if silent || self.output.json {
            return Ok(());
        }
        // In this order: whatever a conversation shows already, its causes are
        // read after it.
        for member in self.answer["team"]["members"].as_array().into_iter().flatten() {
            let thread = member["thread"].as_str().unwrap_or_default();
            let after = self.story.read_to(thread).map(|n| format!("?after={n}")).unwrap_or_default();
            // A conversation that is not there yet has nothing to tell.
            if let Ok(read) = self.client.get(&format!("/api/conversations/{thread}{after}")).await {
                self.story.conversation(member, read["messages"].as_array().map(Vec::as_slice).unwrap_or_default());
            }
        }
        let history = self.client.read("task_history", json!({ "team_id": self.team })).await?;
        self.story.board(history["events"].as_array().map(Vec::as_slice).unwrap_or_default());
        for job in jobs_of(&self.answer).iter().rev() {
            self.story.job(job);
        }
        self.bar.suspend(|| self.story.tell());
        self.bar.set_message(clean(&working(&self.answer)));
        Ok(())
    }

    /// A job that asks what the demo may decide, and did not yet.
    fn asked(&self) -> Option<(Value, &'static Decision)> {
        jobs_of(&self.answer).iter().find_map(|job| {
            let decision = Decision::on(job).filter(|d| !self.keys.contains(d.request_id))?;
            Some((job.clone(), decision))
        })
    }

    async fn decide(&mut self, job: &Value, decision: &'static Decision) -> Result<(), Fail> {
        self.bar.suspend(|| {
            if !decision.title.is_empty() {
                self.story.title(decision.title);
            }
            self.story.waits(job);
        });
        if self.output.terminal() {
            tokio::time::sleep(READING).await;
        }
        let payload = json!({
            "team_id": self.team, "job_id": job["id"], "request_id": decision.request_id,
            "question_id": Decision::question_id(job), "response": decision.response(),
        });
        self.keys.insert(decision.request_id);
        match self.client.write("resume", payload.clone()).await {
            Ok(_) => {
                self.bar.suspend(|| self.story.decided(decision));
                self.decided.push(json!({
                    "job_id": job["id"], "question": job["question"], "interrupts": job["interrupts"],
                    "reason": job["reason"], "response": payload["response"],
                }));
            }
            // Somebody else decided in the meantime, on the page for example.
            Err(fail) if fail.exit == Exit::Refused => self.output.note(fail.message),
            Err(fail) => return Err(fail),
        }
        Ok(())
    }

    /// Nothing is under way but what waits for a person other than the demo.
    fn at_rest(&self) -> bool {
        let jobs = jobs_of(&self.answer);
        jobs.iter()
            .all(|job| view::finished(job) || (view::asks(job) && Decision::on(job).is_none()) || view::doubtful(job))
    }

    /// Everything has come to its end.
    fn rests(&self) -> bool {
        jobs_of(&self.answer).iter().all(view::finished)
    }
}

fn jobs_of(answer: &Value) -> &[Value] {
    answer["jobs"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// What came of it, and how to go on. The exit code says whether every job
/// came to a result.
fn report(output: &Output, end: &End, page: &str, data: &Path) -> Exit {
    let jobs = jobs_of(&end.answer);
    let exit = if !jobs.is_empty() && jobs.iter().all(view::succeeded) { Exit::Ok } else { Exit::Refused };
    if output.json {
        output.document(&json!({
            "team": end.answer["team"], "jobs": jobs, "tasks": end.board["tasks"], "decided": end.decided,
            "repeated": end.repeated, "page": page,
        }));
        return exit;
    }
    let story = Story::new(output);
    let last = |request_id: &str| {
        let found = jobs.iter().find(|job| job["request_id"] == request_id && job["kind"] == "receipt");
        found.and_then(|job| job["result"]["text"].as_str().map(|text| (view::tone(job), text)))
    };
    output.say("");
    for (tone, text) in ["text", "file"].into_iter().filter_map(last) {
        story.paragraph(tone, text);
    }
    for job in jobs.iter().filter(|job| !view::succeeded(job)) {
        output.say(format!(
            "{}: {}",
            clean(&view::direction(job)),
            output.tone(view::tone(job), &view::gist(job, 200))
        ));
    }
    let count = |kind: &str| jobs.iter().filter(|job| job["kind"] == kind).count();
    output.say("");
    let tasks = end.board["tasks"].as_array().map_or(0, Vec::len);
    output.say(format!(
        "{} requests, {} results returned, {tasks} tasks. Run it again: nothing is repeated.",
        count("request"),
        count("receipt"),
    ));
    output.say("To keep the server running, and look around on its page:");
    let folder = data.display().to_string().replace('\'', "'\\''");
    output.say(output.tone(Tone::Attention, &format!("  cargo run --release -- serve --print-link --data '{folder}'")));
    output.say(output.tone(Tone::Faint, &format!("  {page}")));
    exit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demos_configuration_is_valid() {
        let config = Config::parse(CONFIG, FILE_NAME).expect("it parses");
        config.agents.validate().expect("it is valid");
        assert_eq!(config.agents.agents.len(), 3);
    }
}
