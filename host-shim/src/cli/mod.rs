//! The command line: arguments, the choice of the command, exit codes. One
//! command a file. Commands either open the data folder's database or speak
//! HTTP to the server that runs on it; `users`, `tokens` and `import` do
//! whichever they can.

mod args;
mod backup;
mod client;
mod demo;
mod doctor;
mod fail;
mod find;
mod follow;
mod import;
mod import_tasks;
mod jobs;
mod logs;
mod offline;
mod output;
mod people;
mod send;
mod serve;
mod settle;
mod slots;
mod teams;
mod tokens;
mod users;
mod view;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::config::{self, Config};
use args::{Args, Command};
use fail::{Exit, Fail};
use output::Output;

/// Runs one command line and answers with the exit code that `--help`
/// documents. Never panics on what was typed.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    let output = Output::new(args.global.json, args.global.color);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output.fail(&Fail::open("runtime", format!("cannot start: {error}"))),
    };
    let result = runtime.block_on(run(args, &output));
    // Nothing of ours is still at work; a stuck name lookup must not hold us.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    match result {
        Ok(exit) => exit.into(),
        Err(error) => output.fail(&error),
    }
}

/// Where a command works.
struct Place {
    data: PathBuf,
    config: Option<PathBuf>,
    server: Option<String>,
}

impl Place {
    fn config(&self) -> Result<Config, Fail> {
        Config::load(self.config.as_deref(), &self.data).map_err(|e| Fail::open("configuration", e.to_string()))
    }
}

async fn run(args: Args, output: &Output) -> Result<Exit, Fail> {
    let given = args.global.data.is_some();
    let data =
        config::data_folder(args.global.data.as_deref()).map_err(|e| Fail::open("data_folder", e.to_string()))?;
    let place = Place { data, config: args.global.config, server: args.global.server };
    match args.command {
        Command::Serve(args) => serve::run(&place, args, output).await,
        Command::Demo(args) => demo::run(&place, given, args, output).await,
        Command::Doctor(args) => doctor::run(&place, args, output).await,
        Command::Users(args) => users::run(&place, args, output).await,
        Command::Tokens(args) => tokens::run(&place, args, output).await,
        Command::Backup(args) => backup::run(&place, args, output).await,
        Command::Import(args) => import::run(&place, args, output).await,
        Command::ImportTasks(args) => import_tasks::run(&place, args, output).await,
        Command::Teams(args) => teams::run(&place, args, output).await,
        Command::Jobs(args) => jobs::run(&place, args, output).await,
        Command::Send(args) => send::run(&place, args, output).await,
        Command::Watch(args) => watch::run(&place, args, output).await,
        Command::Settle(args) => settle::run(&place, args, output).await,
        Command::Slots(args) => slots::run(&place, args, output).await,
    }
}
