//! `slots`: the operator sees which jobs hold the slots of the database.

use clap::Args;
use serde_json::{Value, json};

use super::Place;
use super::client::Client;
use super::fail::{Exit, Fail};
use super::output::{Output, Tone};

/// The route that lists them.
const PATH: &str = "/api/operator/slots";

#[derive(Debug, Args)]
#[command(
    after_help = "The operator is a person who may read the data folder of the running server; user tokens are not accepted.\nIt shows ids, states and times of all users' jobs, and no texts. A job that keeps its slot although\nnothing can become of it is ended with `settle --owner`.\n\nExamples:\n  agent-teams slots\n  agent-teams --json slots | jq '.slots[] | select(.status == \"unknown\")'"
)]
pub struct Slots {}

pub async fn run(place: &Place, _: Slots, output: &Output) -> Result<Exit, Fail> {
    let held = held(&Client::operator(place)?).await?;
    output.answer(&json!({ "slots": held }), || {
        if held.is_empty() {
            return "No job holds a slot.".into();
        }
        let text = |slot: &Value, name: &str| slot[name].as_str().unwrap_or("-").to_owned();
        let rows = held
            .iter()
            .map(|slot| {
                let tone = match slot["status"].as_str() {
                    Some("unknown" | "damaged") => Tone::Bad,
                    Some("cancelling") => Tone::Attention,
                    _ => Tone::Busy,
                };
                [
                    (Tone::Plain, text(slot, "owner")),
                    (Tone::Plain, text(slot, "team")),
                    (Tone::Plain, text(slot, "job")),
                    (tone, text(slot, "status")),
                    (Tone::Plain, text(slot, "since")),
                    (
                        Tone::Faint,
                        if slot["connected"] == true { text(slot, "reason") } else { "not connected".into() },
                    ),
                ]
            })
            .collect();
        output.table(["owner", "team", "job", "state", "since", "held up by"], rows)
    });
    Ok(Exit::Ok)
}

/// Everybody who holds a slot.
pub async fn held(operator: &Client) -> Result<Vec<Value>, Fail> {
    let answer = operator.get(PATH).await?;
    answer.as_array().cloned().ok_or_else(|| Fail::refused("bad_answer", "the server did not answer with a list"))
}
