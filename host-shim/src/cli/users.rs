//! `users`: who may sign in.

use clap::{Args, Subcommand};
use serde_json::json;

use super::Place;
use super::fail::{Exit, Fail};
use super::output::{Output, Tone};
use super::people::People;
use crate::users::{Session, User};

#[derive(Debug, Args)]
#[command(
    after_help = "The server may be running or not. With a running server a change holds at once: a new user can sign in\nwithout a restart.\n\nExamples:\n  agent-teams users add ada\n  agent-teams users link ada"
)]
pub struct Users {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a user. Let it sign in next (`users link`), or give it a token (`tokens add`).
    #[command(after_help = "Example:\n  agent-teams users add ada && agent-teams users link ada")]
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
    /// Print an address with which this user signs in once, within ten minutes. Needs a running server.
    #[command(
        after_help = "Earlier links of the user that were not used end. Give the address to this user alone: the first browser\nthat opens it is signed in.\n\nExample:\n  agent-teams users link ada"
    )]
    Link { user: String },
    /// List the sessions of browsers that are signed in.
    #[command(after_help = "Example:\n  agent-teams users sessions ada")]
    Sessions {
        /// Only those of this user.
        user: Option<String>,
    },
    /// Sign a user out everywhere; tokens stay valid.
    #[command(after_help = "Example:\n  agent-teams users end-sessions ada")]
    EndSessions { user: String },
}

pub async fn run(place: &Place, args: Users, output: &Output) -> Result<Exit, Fail> {
    let people = People::open(place).await?;
    let result = act(&people, args.command, output).await;
    people.close();
    result.map(|()| Exit::Ok)
}

async fn act(people: &People, command: Command, output: &Output) -> Result<(), Fail> {
    let show = |user: User, what: &str| {
        output.answer(&json!({ "user": user }), || format!("The user {} is {what}.", user.id));
    };
    match command {
        Command::Add { user } => show(people.add(&user).await?, "added"),
        Command::Disable { user } => show(people.set_enabled(&user, false).await?, "disabled"),
        Command::Enable { user } => show(people.set_enabled(&user, true).await?, "enabled"),
        Command::List => {
            let all = people.users().await?;
            output.answer(&json!({ "users": all }), || users(&all, output));
        }
        Command::Link { user } => {
            let link = people.link(&user).await?;
            output.note(format!("{user} signs in once, until {}, with:", link.expires_at));
            let answer = json!({ "user": user, "sign_in_link": link.address, "expires_at": link.expires_at });
            output.answer(&answer, || link.address.clone());
        }
        Command::Sessions { user } => {
            let all = people.sessions(user.as_deref()).await?;
            output.answer(&json!({ "sessions": all }), || sessions(&all, output));
        }
        Command::EndSessions { user } => {
            let ended = people.end_sessions(&user).await?;
            output.answer(&json!({ "user": user, "ended": ended }), || match ended {
                1 => format!("1 session of {user} has ended."),
                _ => format!("{ended} sessions of {user} have ended."),
            });
        }
    }
    Ok(())
}

fn users(all: &[User], output: &Output) -> String {
    if all.is_empty() {
        return "No users yet. The first `agent-teams serve` makes a local one.".into();
    }
    let row = |user: &User| {
        let (state, tone) = if user.enabled { ("enabled", Tone::Good) } else { ("disabled", Tone::Bad) };
        [
            (Tone::Plain, user.id.clone()),
            (tone, state.to_owned()),
            (Tone::Faint, user.created_at.clone()),
            (Tone::Faint, if user.automatic { "made by the first start" } else { "" }.to_owned()),
        ]
    };
    output.table(["USER", "STATE", "CREATED", ""], all.iter().map(row).collect())
}

fn sessions(all: &[Session], output: &Output) -> String {
    if all.is_empty() {
        return "No browser is signed in.".into();
    }
    let row = |session: &Session| {
        [
            (Tone::Plain, session.id.clone()),
            (Tone::Plain, session.user.clone()),
            (Tone::Faint, session.created_at.clone()),
            (Tone::Plain, session.last_used_at.clone()),
            (Tone::Faint, session.expires_at.clone()),
        ]
    };
    output.table(["ID", "USER", "CREATED", "LAST USED", "ENDS"], all.iter().map(row).collect())
}
