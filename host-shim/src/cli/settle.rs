//! `settle`: a person decides about a job whose outcome is unknown; the
//! operator, about any job that holds a slot.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::client::Client;
use super::fail::{Exit, Fail};
use super::jobs::named;
use super::output::{Output, clean};
use super::{Place, find, slots, view};

/// The operator's route.
const PATH: &str = "/api/operator/settle";

#[derive(Debug, Args)]
#[command(
    after_help = "Look into the member's conversation first: the agent may have done the work.\n\nExamples:\n  agent-teams settle \"Market watch\" 3f2a91 --as failed\n  agent-teams settle team-31c0 job-3f2a91 --as failed --owner ada     (the operator; see `agent-teams slots`)"
)]
pub struct Settle {
    /// The team, by id or name; with --owner by id.
    team: String,
    /// The job: its id, or the first characters of it.
    job: String,
    /// What is to become of it.
    #[arg(long = "as", value_name = "OUTCOME")]
    outcome: Outcome,
    /// As the operator: end this user's job, which holds a slot. Only with --as failed.
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Outcome {
    /// It failed; its asker is told so.
    Failed,
    /// Try it again. The agent may do its work twice.
    Retry,
}

pub async fn run(place: &Place, args: Settle, output: &Output) -> Result<Exit, Fail> {
    if let Some(owner) = &args.owner {
        return as_operator(place, &args, owner, output).await;
    }
    let client = Client::open(place)?;
    let (team, job) = named(&client, &args.team, &args.job).await?;
    let outcome = match args.outcome {
        Outcome::Failed => "failed",
        Outcome::Retry => "retry",
    };
    let answer = client.write("settle", json!({ "team_id": team, "job_id": job, "outcome": outcome })).await?;
    output.answer(&answer, || view::job(output, &answer["job"]));
    Ok(Exit::Ok)
}

/// The operator sees who holds a slot and nothing else, so a job is found by
/// the beginning of its id among those; a whole id is sent as it is.
async fn as_operator(place: &Place, args: &Settle, owner: &str, output: &Output) -> Result<Exit, Fail> {
    if args.outcome == Outcome::Retry {
        let message = "the operator can only end a job: --as failed; to try again is its owner's decision";
        return Err(Fail { field: Some("as".into()), ..Fail::usage(message) });
    }
    let client = Client::operator(place)?;
    let held = slots::held(&client).await?;
    let own = held.into_iter().filter(|slot| slot["owner"] == owner && slot["team"] == args.team.as_str());
    let jobs: Vec<Value> = own.map(|slot| json!({ "id": slot["job"] })).collect();
    let job = match find::job(&json!({ "jobs": jobs }), &args.job) {
        Ok(job) => job["id"].as_str().unwrap_or_default().to_owned(),
        Err(many) if many.code == "ambiguous" => return Err(many),
        Err(_) => args.job.clone(),
    };
    let answer = client.post(PATH, json!({ "owner": owner, "team": args.team, "job": job })).await?;
    output.answer(&answer, || {
        let job = &answer["job"];
        let word = |name: &str| clean(job[name].as_str().unwrap_or_default());
        format!("{} of {} is {}.", word("id"), word("owner"), word("status"))
    });
    Ok(Exit::Ok)
}
