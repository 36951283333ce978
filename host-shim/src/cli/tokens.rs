//! `tokens`: how programs get in.

use clap::{Args, Subcommand};
use serde_json::json;

use super::Place;
use super::fail::{Exit, Fail};
use super::output::{Output, Tone};
use super::people::People;

#[derive(Debug, Args)]
#[command(
    after_help = "The server may be running or not. With a running server a change holds at once.\n\nExample:\n  agent-teams tokens add ada laptop"
)]
pub struct Tokens {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a token and print it. It is shown this once.
    #[command(
        after_help = "Example:\n  agent-teams tokens add ada laptop\n  AGENT_TEAMS_TOKEN=att_… agent-teams --server https://teams.example.com teams list"
    )]
    Add {
        user: String,
        /// For people: which program or machine it is for.
        name: String,
    },
    /// List tokens, without their secrets.
    List {
        /// Only those of this user.
        user: Option<String>,
    },
    /// End a token, named by its id.
    Revoke { id: String },
}

pub async fn run(place: &Place, args: Tokens, output: &Output) -> Result<Exit, Fail> {
    let people = People::open(place).await?;
    let result = act(&people, args.command, output).await;
    people.close();
    result.map(|()| Exit::Ok)
}

async fn act(people: &People, command: Command, output: &Output) -> Result<(), Fail> {
    match command {
        Command::Add { user, name } => {
            let token = people.add_token(&user, &name).await?;
            output.note(format!("The token {} of {} is shown this once:", token.id, token.user));
            output.answer(&json!({ "token": token }), || token.secret.clone());
        }
        Command::Revoke { id } => {
            people.revoke_token(&id).await?;
            output.answer(&json!({ "revoked": id }), || format!("The token {id} is revoked."));
        }
        Command::List { user } => {
            let all = people.tokens(user.as_deref()).await?;
            output.answer(&json!({ "tokens": all }), || {
                let rows = all
                    .iter()
                    .map(|token| {
                        let (state, tone) =
                            if token.revoked_at.is_none() { ("valid", Tone::Good) } else { ("revoked", Tone::Bad) };
                        [
                            (Tone::Plain, token.id.clone()),
                            (Tone::Plain, token.user.clone()),
                            (Tone::Plain, token.name.clone()),
                            (tone, state.to_owned()),
                            (Tone::Faint, token.last_used_at.clone().unwrap_or_else(|| "never".into())),
                        ]
                    })
                    .collect();
                output.table(["ID", "USER", "NAME", "STATE", "LAST USED"], rows)
            });
        }
    }
    Ok(())
}
