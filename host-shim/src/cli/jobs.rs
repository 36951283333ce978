//! `jobs`: what a team was asked to do.

use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Value, json};

use super::Place;
use super::client::Client;
use super::fail::{Exit, Fail};
use super::find;
use super::output::Output;
use super::teams::request_id_or_new;
use super::view;

#[derive(Debug, Args)]
pub struct Jobs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List a team's jobs.
    List {
        /// Its id or its name.
        team: String,
    },
    /// Show one job with its whole texts.
    Show {
        team: String,
        /// Its id, or the first characters of it.
        job: String,
    },
    /// Cancel a job. What its agent did already is not undone.
    Cancel { team: String, job: String },
    /// Answer what a job asks: a question in words, a step with --approve or --deny.
    #[command(
        after_help = "Examples:\n  agent-teams jobs answer \"Market watch\" 3f2a91 \"Use last year's prices\"\n  agent-teams jobs answer \"Market watch\" 3f2a91 --approve\n  agent-teams jobs answer \"Market watch\" 3f2a91 --deny \"Not in this folder\"\n  agent-teams jobs answer \"Market watch\" 3f2a91 --value '{\"ID1\": {\"approved\": true}, \"ID2\": {\"approved\": false}}'"
    )]
    #[command(group(ArgGroup::new("response").required(true).args(["text", "value", "approve", "deny"])))]
    Answer {
        team: String,
        job: String,
        /// The answer in words.
        text: Option<String>,
        /// Approve the one step that the job waits for.
        #[arg(long)]
        approve: bool,
        /// Deny it, with a note to the agent if you like.
        #[arg(long, value_name = "NOTE", num_args = 0..=1, default_missing_value = "")]
        deny: Option<String>,
        /// The answer as JSON: for several steps at once, and for other interrupts.
        #[arg(long, value_name = "JSON")]
        value: Option<String>,
        /// Makes a repetition safe: the same id answers once [default: a new one].
        #[arg(long, value_name = "ID")]
        request_id: Option<String>,
    },
}

pub async fn run(place: &Place, args: Jobs, output: &Output) -> Result<Exit, Fail> {
    let client = Client::open(place)?;
    match args.command {
        Command::List { team } => {
            let (_, answer) = find::whole_team(&client, &team).await?;
            let jobs = answer["jobs"].as_array().cloned().unwrap_or_default();
            output.answer(&json!({ "jobs": jobs }), || view::jobs(output, &jobs));
        }
        Command::Show { team, job } => {
            let (_, answer) = find::whole_team(&client, &team).await?;
            let job = find::job(&answer, &job)?;
            output.answer(&json!({ "job": job }), || view::job(output, job));
        }
        Command::Cancel { team, job } => {
            let (team, job) = named(&client, &team, &job).await?;
            let answer = client.write("cancel", json!({ "team_id": team, "job_id": job })).await?;
            output.answer(&answer, || view::job(output, &answer["job"]));
        }
        Command::Answer { team, job, text, approve, deny, value, request_id } => {
            let (team, answer) = find::whole_team(&client, &team).await?;
            let job = find::job(&answer, &job)?;
            let response = match (text, value) {
                (Some(text), _) => Value::String(text),
                (None, Some(value)) => serde_json::from_str(&value).map_err(|e| Fail {
                    field: Some("value".into()),
                    ..Fail::usage(format!("--value is not JSON: {e}"))
                })?,
                (None, None) => decision(job, approve, deny)?,
            };
            let job = job["id"].as_str().unwrap_or_default();
            let payload = json!({
                "team_id": team, "job_id": job, "request_id": request_id_or_new(request_id)?, "response": response,
            });
            let answer = client.write("resume", payload).await?;
            output.answer(&answer, || view::job(output, &answer["job"]));
        }
    }
    Ok(Exit::Ok)
}

/// The answer to the one approval that is open. Several are never decided by
/// one word.
fn decision(job: &Value, approve: bool, deny: Option<String>) -> Result<Value, Fail> {
    match job["interrupts"].as_array().map_or(0, Vec::len) {
        0 => Err(Fail::usage("this job waits for no approval")),
        1 if approve => Ok(json!({ "approved": true })),
        1 => Ok(match deny.filter(|note| !note.is_empty()) {
            Some(note) => json!({ "approved": false, "note": note }),
            None => json!({ "approved": false }),
        }),
        n => Err(Fail::usage(format!("{n} steps wait for approval: decide each by its id, with --value"))),
    }
}

/// The ids of a team and one of its jobs.
pub async fn named(client: &Client, team: &str, job: &str) -> Result<(String, String), Fail> {
    let (team, answer) = find::whole_team(client, team).await?;
    let job = find::job(&answer, job)?["id"].as_str().unwrap_or_default().to_owned();
    Ok((team, job))
}
