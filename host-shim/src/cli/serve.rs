//! `serve`: the server, until it is told to stop.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::Place;
use super::client::ServerFile;
use super::fail::{Exit, Fail};
use super::logs;
use super::output::{Output, Tone};
use crate::app::{App, Setup, StartError};
use crate::config;
use crate::users::LOCAL_USER;

#[derive(Debug, Args)]
#[command(
    after_help = "The first start makes the user `local` and prints a sign-in link, valid once and for ten minutes.\nRUST_LOG sets what is logged on stderr, for example RUST_LOG=debug.\n\nExamples:\n  agent-teams serve\n  agent-teams serve --print-link\n  agent-teams --data /srv/teams serve"
)]
pub struct Serve {
    /// Print a new sign-in link, also when it is not the first start.
    #[arg(long)]
    print_link: bool,
    /// Whom the link signs in.
    #[arg(long, value_name = "USER", default_value = LOCAL_USER)]
    link_for: String,
    /// Another component than the one that is built in.
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
}

pub async fn run(place: &Place, args: Serve, output: &Output) -> Result<Exit, Fail> {
    logs::start("info", output.colors(), output.json);
    let config = place.config()?;
    if config.agents.agents.is_empty() {
        output.note(config::NO_AGENTS_HINT);
    }
    // From here on a stop is orderly, also one that comes during the start.
    let mut stop = Stop::listen()?;
    let app =
        App::start(Setup { data: place.data.clone(), config, component: args.component, any_port: false }).await?;
    let announced = announce(place, &app, args.print_link, &args.link_for, output).await;
    if announced.is_ok() {
        stop.wait().await;
        output.note("stopping: calls and steps under way are finished first (once more Ctrl-C: at once)");
    }
    let orderly = tokio::select! {
        () = app.stop() => true,
        () = stop.wait() => false,
    };
    ServerFile::remove(&place.data);
    announced?;
    if orderly {
        Ok(Exit::Ok)
    } else {
        Err(Fail::refused("stopped_at_once", "stopped without waiting; the next start takes unfinished work up again"))
    }
}

async fn announce(place: &Place, app: &App, print_link: bool, link_for: &str, output: &Output) -> Result<(), Fail> {
    let file = ServerFile { url: app.url(), pid: std::process::id() };
    file.write(&place.data)
        .map_err(|e| Fail::open("data_folder", format!("cannot write into the data folder: {e}")))?;
    let link = if app.first_start() || print_link { Some(app.users().sign_in_link(link_for).await?) } else { None };
    let address = link.as_ref().map(|link| link.address(&app.url()));
    if output.json {
        output.document(&json!({ "url": app.url(), "page": app.page(), "sign_in_link": address }));
        return Ok(());
    }
    output.say(format!("Page: {}", output.tone(Tone::Good, &app.page())));
    match address {
        Some(address) => {
            output.say(format!("Sign in once, within ten minutes: {}", output.tone(Tone::Attention, &address)));
        }
        None => output.say(output.tone(Tone::Faint, "(--print-link prints a new sign-in link)")),
    }
    output.say(output.tone(Tone::Faint, "Stop with Ctrl-C."));
    Ok(())
}

/// Ctrl-C or SIGTERM.
struct Stop {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Stop {
    fn listen() -> Result<Self, Fail> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let listen = |kind| signal(kind).map_err(|e| Fail::open("signals", e.to_string()));
            Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    async fn wait(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    }
}

impl From<StartError> for Fail {
    fn from(error: StartError) -> Self {
        Self::open(error.code(), error.to_string())
    }
}
