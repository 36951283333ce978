//! `demo`: a team of three scripted agents does one job, from the owner's
//! request over two handoffs and their receipts to the final result. It runs
//! the same server that `serve` runs and speaks to it as any client does.
//!
//! Everything has a fixed key, so running it again on the same data folder
//! repeats nothing: it finds the team and the job that are there.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::Place;
use super::client::{Client, ServerFile};
use super::fail::{Exit, Fail};
use super::find;
use super::follow::Follow;
use super::logs;
use super::output::{Output, Tone, clean};
use super::send::working;
use super::view;
use super::watch::Changes;
use crate::app::{App, Setup};
use crate::config::{Config, FILE_NAME, prepare_data_folder};
use crate::users::CLI_TOKEN_FILE;

/// The configuration that the demo puts into its data folder.
const CONFIG: &str = include_str!("../../demo/agent-teams.toml");
const FOLDER: &str = "demo";
const TEAM_KEY: &str = "demo-team";
const REQUEST_KEY: &str = "demo-request";
const REQUEST: &str = "Please prepare a short note that explains to our readers how agents work together here.";
/// Far beyond what the job takes.
const PATIENCE: Duration = Duration::from_secs(180);

#[derive(Debug, Args)]
#[command(
    after_help = "The demo keeps its data in the folder `demo` of the data folder, or in --data DIR. Run it again and it\nfinds the same job, and repeats nothing. It brings its own agents; --config is not used."
)]
pub struct Demo {}

pub async fn run(place: &Place, data_given: bool, _args: Demo, output: &Output) -> Result<Exit, Fail> {
    logs::start("error", output.colors(), output.json);
    let data = if data_given { place.data.clone() } else { place.data.join(FOLDER) };
    prepare_data_folder(&data).map_err(|e| Fail::open("data_folder", e.to_string()))?;
    let config = configuration(&data)?;
    output.note(format!("The demo's data folder: {}", data.display()));
    let app = App::start(Setup { data: data.clone(), config, component: None, any_port: true }).await?;
    // Others can look on (`agent-teams watch`) while it runs.
    let written = ServerFile { url: app.url(), pid: std::process::id() }.write(&data);
    let result = match written {
        Ok(()) => tokio::select! {
            result = tokio::time::timeout(PATIENCE, show(&app, &data, output)) => {
                result.unwrap_or_else(|_| Err(Fail::refused("demo_too_slow", "the demo did not come to its end in time")))
            }
            _ = tokio::signal::ctrl_c() => {
                Err(Fail::refused("stopped", "stopped; run the demo again and it goes on where it was"))
            }
        },
        Err(e) => Err(Fail::open("data_folder", format!("cannot write into the data folder: {e}"))),
    };
    let page = app.page();
    app.stop().await;
    ServerFile::remove(&data);
    let (answer, repeated) = result?;
    Ok(report(output, &answer, repeated, &page, &data))
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

/// Makes the team, sends the request, shows what happens until all is done.
/// Answers with the team at its end and whether the request was there before.
async fn show(app: &App, data: &Path, output: &Output) -> Result<(Value, bool), Fail> {
    let token =
        std::fs::read_to_string(data.join(CLI_TOKEN_FILE)).map_err(|e| Fail::open("no_token", e.to_string()))?;
    let client = Client::new(&app.url(), token.trim())?;
    let team = client
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
            }),
        )
        .await?;
    let id = team["team"]["id"].as_str().unwrap_or_default().to_owned();
    let before = team["jobs"].as_array().is_some_and(|jobs| !jobs.is_empty());
    let first = find::member(&team, "Ada")?;
    let sent = client
        .write("send", json!({ "team_id": id, "member_id": first, "request_id": REQUEST_KEY, "text": REQUEST }))
        .await?;
    let job = sent["job"]["id"].as_str().unwrap_or_default().to_owned();
    if before {
        output.note(format!("This request was made before, as job {job}: nothing is sent again."));
    }

    let bar = output.progress("the team begins");
    let mut follow = Follow::new(&client, &id);
    let mut changes = Changes::default();
    loop {
        let answer = follow.next().await?;
        if !output.json {
            bar.suspend(|| changes.print(output, &answer));
        }
        bar.set_message(clean(&working(&answer)));
        let jobs = answer["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let there = jobs.iter().any(|j| j["id"] == json!(job));
        if there && jobs.iter().all(|job| view::finished(job) || view::asks(job) || view::doubtful(job)) {
            bar.finish_and_clear();
            return Ok((answer, before));
        }
    }
}

/// The shared record and how to go on. The exit code says whether every job
/// came to a result.
fn report(output: &Output, answer: &Value, repeated: bool, page: &str, data: &Path) -> Exit {
    let jobs = answer["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let exit = if !jobs.is_empty() && jobs.iter().all(view::succeeded) { Exit::Ok } else { Exit::Refused };
    if output.json {
        output.document(&json!({ "team": answer["team"], "jobs": jobs, "repeated": repeated, "page": page }));
        return exit;
    }
    let in_order: Vec<Value> = jobs.iter().rev().cloned().collect();
    output.say("");
    output.say("The shared record, oldest first:");
    output.say("");
    output.say(view::jobs(output, &in_order));
    if let Some(last) = jobs.first() {
        output.say("");
        output.say(output.tone(view::tone(last), last["result"]["text"].as_str().unwrap_or("There is no result.")));
    }
    output.say("");
    output.say(format!("The page was at {page}; to keep it running and look around:"));
    let folder = data.display().to_string().replace('\'', "'\\''");
    output.say(output.tone(Tone::Attention, &format!("  cargo run --release -- serve --print-link --data '{folder}'")));
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
