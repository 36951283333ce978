//! `settle`: a person decides about a job whose outcome nobody knows.

use clap::{Args, ValueEnum};
use serde_json::json;

use super::Place;
use super::client::Client;
use super::fail::{Exit, Fail};
use super::jobs::named;
use super::output::Output;
use super::view;

#[derive(Debug, Args)]
#[command(
    after_help = "Look into the member's conversation first: the agent may have done the work.\n\nExample:\n  agent-teams settle \"Market watch\" 3f2a91 --as failed"
)]
pub struct Settle {
    /// The team, by id or name.
    team: String,
    /// The job: its id, or the first characters of it.
    job: String,
    /// What is to become of it.
    #[arg(long = "as", value_name = "OUTCOME")]
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Outcome {
    /// It failed; whoever asked is told so.
    Failed,
    /// Try it again. The agent may do its work twice.
    Retry,
}

pub async fn run(place: &Place, args: Settle, output: &Output) -> Result<Exit, Fail> {
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
