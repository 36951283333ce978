//! `send`: a request to one member.

use clap::Args;
use serde_json::{Value, json};

use super::Place;
use super::client::Client;
use super::fail::{Exit, Fail};
use super::find;
use super::follow::Follow;
use super::output::{Output, clean};
use super::teams::request_id_or_new;
use super::view;

#[derive(Debug, Args)]
#[command(
    after_help = "With --wait, the exit code is 0 when there is a result, 1 when the job failed, was cancelled or asks\nfor an answer, 4 when its outcome is unknown.\n\nExample:\n  agent-teams send \"Market watch\" Ada \"What changed this week?\" --request-id week-14 --wait"
)]
pub struct Send {
    /// The team, by id or name.
    team: String,
    /// The member, by id or name.
    member: String,
    /// What it is asked to do; `-` reads it from the standard input.
    text: String,
    /// Makes a repetition safe: the same id is the same request [default: a new one].
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
    /// Wait for the result and print it.
    #[arg(long)]
    wait: bool,
}

pub async fn run(place: &Place, args: Send, output: &Output) -> Result<Exit, Fail> {
    let client = Client::open(place)?;
    let text = if args.text == "-" { read_stdin()? } else { args.text };
    let (team_id, team) = find::whole_team(&client, &args.team).await?;
    let member_id = find::member(&team, &args.member)?;
    let request_id = request_id_or_new(args.request_id)?;
    let payload = json!({ "team_id": team_id, "member_id": member_id, "request_id": request_id, "text": text });
    let answer = client.write("send", payload).await.map_err(|mut fail| {
        if fail.exit == Exit::Unknown {
            fail.message = format!("{} (its request id was {request_id})", fail.message);
        }
        fail
    })?;
    let job_id = answer["job"]["id"].as_str().unwrap_or_default().to_owned();
    if !args.wait {
        output.answer(&answer, || view::job(output, &answer["job"]));
        return Ok(Exit::Ok);
    }
    output.note(format!("sent as job {job_id}"));
    let job = wait(&client, &team_id, &job_id, output).await?;
    output.answer(&json!({ "job": job }), || match view::succeeded(&job) {
        true => clean(job["result"]["text"].as_str().unwrap_or_default()),
        false => view::job(output, &job),
    });
    Ok(exit_of(&job))
}

/// Waits until the job has ended, or until only a person can bring it on.
pub async fn wait(client: &Client, team: &str, job: &str, output: &Output) -> Result<Value, Fail> {
    let bar = output.progress("waiting");
    let mut follow = Follow::new(client, team);
    loop {
        let answer = follow.next().await?;
        let job = find::job(&answer, job)?;
        bar.set_message(clean(&working(&answer)));
        if view::finished(job) || view::asks(job) || view::doubtful(job) {
            bar.finish_and_clear();
            return Ok(job.clone());
        }
    }
}

/// Who works on what, in one line.
pub fn working(answer: &Value) -> String {
    let jobs = answer["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let at_work: Vec<String> = jobs
        .iter()
        .filter(|job| !view::finished(job))
        .map(|job| format!("{} {}", view::direction(job), job["status"].as_str().unwrap_or_default()))
        .collect();
    if at_work.is_empty() { "nothing under way".into() } else { at_work.join(", ") }
}

fn exit_of(job: &Value) -> Exit {
    match () {
        () if view::succeeded(job) => Exit::Ok,
        () if view::doubtful(job) => Exit::Unknown,
        () => Exit::Refused,
    }
}

fn read_stdin() -> Result<String, Fail> {
    std::io::read_to_string(std::io::stdin()).map_err(|e| Fail::open("stdin", format!("cannot read the text: {e}")))
}
