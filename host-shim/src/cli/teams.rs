//! `teams`: make them and look at them.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Place;
use super::client::Client;
use super::fail::{Exit, Fail};
use super::find;
use super::output::Output;
use super::view;

#[derive(Debug, Args)]
pub struct Teams {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List your teams.
    List,
    /// List the agents that can be members.
    Agents,
    /// Make a team of 2 to 8 members.
    #[command(
        after_help = "Example:\n  agent-teams teams create \"Market watch\" --goal \"One page a week\" \\\n    --member Ada=researcher --member Bo=writer --lead Ada"
    )]
    Create {
        name: String,
        #[arg(long)]
        goal: String,
        /// A member's name and its agent; once for each member.
        #[arg(long = "member", value_name = "NAME=AGENT", required = true)]
        members: Vec<String>,
        /// The member that leads.
        #[arg(long, value_name = "NAME")]
        lead: Option<String>,
        /// Begin with the active public state of this team: its id or its name.
        #[arg(long, value_name = "TEAM")]
        successor_of: Option<String>,
        /// Makes a repetition safe: the same id makes the team once [default: a new one].
        #[arg(long, value_name = "ID")]
        request_id: Option<String>,
    },
    /// Show a team, its members and its newest jobs.
    Show {
        /// Its id or its name.
        team: String,
    },
    /// Connect a team again, so that its work continues.
    Connect { team: String },
    /// Delete a team and its records. The conversations of its agents stay.
    Delete {
        team: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

pub async fn run(place: &Place, args: Teams, output: &Output) -> Result<Exit, Fail> {
    let client = Client::open(place)?;
    match args.command {
        Command::List => {
            let answer = client.read("list", json!({})).await?;
            output.answer(&answer, || view::teams(output, &answer));
        }
        Command::Agents => {
            let answer = client.get("/api/agents").await?;
            output.answer(&answer, || view::agents(output, &answer));
        }
        Command::Create { name, goal, members, lead, successor_of, request_id } => {
            let members = members.iter().map(|member| member_of(member)).collect::<Result<Vec<_>, _>>()?;
            let mut payload =
                json!({ "request_id": request_id_or_new(request_id)?, "name": name, "goal": goal, "members": members });
            if let Some(lead) = lead {
                payload["lead"] = lead.into();
            }
            if let Some(earlier) = successor_of {
                payload["successor_of"] = find::team(&client, &earlier).await?.into();
            }
            let answer = client.write("create", payload).await?;
            output.answer(&answer, || view::team(output, &answer));
        }
        Command::Show { team } => {
            let (_, answer) = find::whole_team(&client, &team).await?;
            output.answer(&answer, || {
                let jobs = answer["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
                format!("{}\n\n{}", view::team(output, &answer), view::jobs(output, jobs))
            });
        }
        Command::Connect { team } => {
            let id = find::team(&client, &team).await?;
            let answer = client.write("connect", json!({ "team_id": id })).await?;
            output.answer(&answer, || view::team(output, &answer));
        }
        Command::Delete { team, yes } => {
            let id = find::team(&client, &team).await?;
            if !yes && !confirmed(&team)? {
                return Err(Fail::refused("not_confirmed", "nothing was deleted"));
            }
            let answer = client.write("delete", json!({ "team_id": id })).await?;
            output.answer(&answer, || format!("The team {} is deleted.", super::output::clean(&team)));
        }
    }
    Ok(Exit::Ok)
}

/// `NAME=AGENT`; the agent's name has no `=`, a member's may.
fn member_of(text: &str) -> Result<Value, Fail> {
    match text.rsplit_once('=') {
        Some((name, agent)) if !name.trim().is_empty() && !agent.trim().is_empty() => {
            Ok(json!({ "name": name, "agent": agent }))
        }
        _ => Err(Fail::usage(format!("`{text}` is not a member; write NAME=AGENT, for example Ada=researcher"))),
    }
}

/// A key under which a repetition is the same request.
pub fn request_id_or_new(given: Option<String>) -> Result<String, Fail> {
    if let Some(id) = given {
        return Ok(id);
    }
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|e| Fail::open("random", e.to_string()))?;
    Ok(format!("cli-{}", bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()))
}

fn confirmed(team: &str) -> Result<bool, Fail> {
    use std::io::{BufRead, IsTerminal, Write};
    if !std::io::stdin().is_terminal() {
        return Err(Fail::usage("add --yes to delete without being asked"));
    }
    eprint!("Delete the team {} and all its records? [y/N] ", super::output::clean(team));
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(|e| Fail::open("stdin", e.to_string()))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_a_name_and_an_agent() {
        assert_eq!(member_of("A=B=writer").unwrap(), json!({"name": "A=B", "agent": "writer"}));
        for wrong in ["Ada", "=writer", "Ada=", ""] {
            assert_eq!(member_of(wrong).unwrap_err().exit, Exit::Usage, "{wrong}");
        }
    }

    #[test]
    fn made_up_request_ids_differ() {
        assert_ne!(request_id_or_new(None).unwrap(), request_id_or_new(None).unwrap());
        assert_eq!(request_id_or_new(Some("mine".into())).unwrap(), "mine");
    }
}
