//! `tokens`: how programs get in.

use clap::{Args, Subcommand};
use serde_json::json;

use super::Place;
use super::fail::{Exit, Fail};
use super::offline::Offline;
use super::output::{Output, Tone};

#[derive(Debug, Args)]
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
    let offline = Offline::open(place).await?;
    let result = act(&offline, args.command, output).await;
    offline.close();
    result.map(|()| Exit::Ok)
}

async fn act(offline: &Offline, command: Command, output: &Output) -> Result<(), Fail> {
    let users = &offline.users;
    match command {
        Command::Add { user, name } => {
            let token = users.add_token(&user, &name).await?;
            output.note(format!("The token {} of {} is shown this once:", token.id, token.user));
            output.answer(&json!({ "token": token }), || token.secret.clone());
        }
        Command::Revoke { id } => {
            users.revoke_token(&id).await?;
            output.answer(&json!({ "revoked": id }), || format!("The token {id} is revoked."));
        }
        Command::List { user } => {
            let all = users.tokens(user.as_deref())?;
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
