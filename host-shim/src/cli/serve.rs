//! `serve`: the server, until it is told to stop.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::Place;
use super::fail::{Exit, Fail};
use super::logs;
use super::output::{Output, Tone};
use crate::app::{App, Setup, StartError};
use crate::config;
use crate::users::LOCAL_USER;

/// How long a server that has broken down waits for what still can end in order.
const BROKEN_GRACE: Duration = Duration::from_secs(20);

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
    match announce(&app, args.print_link, &args.link_for, output).await {
        Ok(()) => until_stopped(app, &mut stop, output).await,
        Err(fail) => leave(app, &mut stop).await.and(Err(fail)),
    }
}

/// Serves until it is told to stop, or until it cannot any more.
async fn until_stopped(app: App, stop: &mut Stop, output: &Output) -> Result<Exit, Fail> {
    let broken = tokio::select! {
        () = stop.wait() => None,
        part = app.broken() => Some(part),
    };
    if let Some(part) = broken {
        tracing::error!("{part} has broken down: the server ends, and a new start repairs what it leaves");
        // What still can come to its end does; what cannot must not hold it up.
        let _ = tokio::time::timeout(BROKEN_GRACE, app.stop()).await;
        let message = format!("{part} has broken down, and the log says why; start the server again");
        return Err(Fail::broken(message));
    }
    output.note("stopping: calls and steps under way are finished first (once more Ctrl-C: at once)");
    leave(app, stop).await
}

/// Stops in order, unless it is told once more.
async fn leave(app: App, stop: &mut Stop) -> Result<Exit, Fail> {
    tokio::select! {
        () = app.stop() => Ok(Exit::Ok),
        () = stop.wait() => {
            Err(Fail::refused("stopped_at_once", "stopped without waiting; the next start takes unfinished work up again"))
        }
    }
}

async fn announce(app: &App, print_link: bool, link_for: &str, output: &Output) -> Result<(), Fail> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::Color;
    use crate::config::Config;

    /// Breaks down the thread that drops it, if that is the database's writer.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            assert_ne!(std::thread::current().name(), Some("database-writer"), "on purpose");
        }
    }

    #[tokio::test]
    async fn a_server_that_has_broken_down_ends_with_a_code_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::parse("[server]\nbind = \"127.0.0.1:0\"", "x").unwrap();
        let setup = Setup { data: folder.path().to_owned(), config, component: None, any_port: false };
        let app = App::start(setup).await.unwrap();
        let (mut stop, output) = (Stop::listen().unwrap(), Output::new(true, Color::Never));
        // Its caller is gone before it runs, so what it comes to is dropped by the writer.
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let abandoned = app.database().queue(move |_| {
            let _ = wait.recv();
            Ok(Bomb)
        });
        drop(abandoned);
        go.send(()).unwrap();
        let fail = until_stopped(app, &mut stop, &output).await.unwrap_err();
        assert_eq!((fail.exit, fail.code.as_str()), (Exit::Broken, "server_broken"));
        assert!(fail.message.contains("the database's writer"), "{}", fail.message);
    }
}
