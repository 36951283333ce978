//! What can be typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use super::output::Color;
use super::{
    backup, demo, doctor, import, import_tasks, jobs, send, serve, settle, slots, teams, tokens, users, watch,
};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  refused, or the job failed; the message says why
  2  the command line cannot be right
  3  the server cannot be reached, or the data folder cannot be opened
  4  it may or may not have happened; the message says how to find out
  5  the server had a fault of its own and ended; start it again

Examples:
  agent-teams serve
  agent-teams teams create \"Market watch\" --goal \"One page a week\" --member Ada=researcher --member Bo=writer
  agent-teams send \"Market watch\" Ada \"What changed this week?\" --wait
  agent-teams --json jobs list \"Market watch\"";

/// Teams of agents that work together: the server, and what talks to it.
#[derive(Debug, Parser)]
#[command(name = "agent-teams", version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Args {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Global {
    /// The data folder [default: the platform's folder for application data].
    #[arg(long, global = true, value_name = "DIR", env = "AGENT_TEAMS_DATA")]
    pub data: Option<PathBuf>,
    /// The configuration file [default: agent-teams.toml here, or in the data folder].
    #[arg(long, global = true, value_name = "FILE", env = "AGENT_TEAMS_CONFIG")]
    pub config: Option<PathBuf>,
    /// The running server [default: the one that serves the data folder].
    /// Its token is read from AGENT_TEAMS_TOKEN. The data folder's own server
    /// needs none: it is reached by a socket in the folder, with a token there.
    #[arg(long, global = true, value_name = "URL", env = "AGENT_TEAMS_SERVER")]
    pub server: Option<String>,
    /// Print one JSON document (`watch`: one a line) and nothing else.
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colours; `auto` looks at the terminal and at NO_COLOR.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server and its page until it is stopped (Ctrl-C).
    Serve(serve::Serve),
    /// Show a team of scripted agents at work, without any network.
    Demo(demo::Demo),
    /// Check that everything needed is there and works; say what to do if not.
    Doctor(doctor::Doctor),
    /// Add, list, disable and enable users, and let them sign in; for the operator.
    Users(users::Users),
    /// Add, list and revoke tokens of programs; for the operator.
    Tokens(tokens::Tokens),
    /// Copy the database into a file, also while the server runs.
    Backup(backup::Backup),
    /// Take over the teams of an earlier plugin's database file.
    Import(import::Import),
    /// Take over another host's session log as the history of a team's task board.
    ImportTasks(import_tasks::ImportTasks),
    /// List, create, show, connect and delete teams.
    Teams(teams::Teams),
    /// List, show, cancel and answer the jobs of a team.
    Jobs(jobs::Jobs),
    /// Send a request to one member of a team.
    Send(send::Send),
    /// Follow a team's work as it happens.
    Watch(watch::Watch),
    /// End a job whose outcome is unknown.
    Settle(settle::Settle),
    /// List the jobs that hold a slot, of all users; for the operator.
    Slots(slots::Slots),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_commands_are_well_formed() {
        super::Args::command().debug_assert();
    }
}
