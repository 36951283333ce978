//! `users`: who may sign in.

use clap::{Args, Subcommand};
use serde_json::json;

use super::Place;
use super::fail::{Exit, Fail};
use super::offline::Offline;
use super::output::{Output, Tone};
use crate::users::User;

#[derive(Debug, Args)]
pub struct Users {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a user. Give it a token next (`tokens add`).
    #[command(after_help = "Example:\n  agent-teams users add ada && agent-teams tokens add ada laptop")]
    Add {
        /// 1 to 64 of a-z, 0-9, dot, underscore and hyphen.
        user: String,
    },
    /// Refuse a user from now on; sessions end, tokens stop working.
    Disable { user: String },
    /// Let a user in again.
    Enable { user: String },
    /// List all users.
    List,
}

pub async fn run(place: &Place, args: Users, output: &Output) -> Result<Exit, Fail> {
    let offline = Offline::open(place).await?;
    let result = act(&offline, args.command, output).await;
    offline.close();
    result.map(|()| Exit::Ok)
}

async fn act(offline: &Offline, command: Command, output: &Output) -> Result<(), Fail> {
    let users = &offline.users;
    let show = |user: User, what: &str| {
        output.answer(&json!({ "user": user }), || format!("The user {} is {what}.", user.id));
    };
    match command {
        Command::Add { user } => show(users.add(&user).await?, "added"),
        Command::Disable { user } => show(users.set_enabled(&user, false).await?, "disabled"),
        Command::Enable { user } => show(users.set_enabled(&user, true).await?, "enabled"),
        Command::List => {
            let all = users.list()?;
            output.answer(&json!({ "users": all }), || {
                if all.is_empty() {
                    return "No users yet. The first `agent-teams serve` makes a local one.".into();
                }
                let rows = all
                    .iter()
                    .map(|user| {
                        let (state, tone) =
                            if user.enabled { ("enabled", Tone::Good) } else { ("disabled", Tone::Bad) };
                        [
                            (Tone::Plain, user.id.clone()),
                            (tone, state.to_owned()),
                            (Tone::Faint, user.created_at.clone()),
                            (Tone::Faint, if user.automatic { "made by the first start" } else { "" }.to_owned()),
                        ]
                    })
                    .collect();
                output.table(["USER", "STATE", "CREATED", ""], rows)
            });
        }
    }
    Ok(())
}
