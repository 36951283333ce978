//! Follows one team: live updates say that something changed, a conditional
//! read says what. Without live updates it looks again now and then.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::client::Client;
use super::fail::{Exit, Fail};
use super::find::ALL_JOBS;

/// How long to wait for a live update before looking anyway: an update is a
/// hint and can be lost.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between looks while there are no live updates.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub struct Follow<'a> {
    client: &'a Client,
    team: String,
    revision: Option<u64>,
    stream: Option<Stream>,
}

impl<'a> Follow<'a> {
    pub fn new(client: &'a Client, team: &str) -> Self {
        Self { client, team: team.to_owned(), revision: None, stream: None }
    }

    /// The team as it is now, at the first call; later, as soon as it differs
    /// from what the last call gave.
    pub async fn next(&mut self) -> Result<Value, Fail> {
        loop {
            if self.stream.is_none() {
                // Before the read, so that no change falls between the two.
                let path = events_path(&self.team);
                self.stream = match self.client.stream(&path).await {
                    Ok(response) => Some(Stream { response, text: String::new(), events: VecDeque::new() }),
                    Err(fail) if fail.exit == Exit::Unreachable && self.revision.is_none() => return Err(fail),
                    Err(_) => None,
                };
            }
            let mut payload = json!({ "team_id": self.team, "limit": ALL_JOBS, "details": true });
            if let Some(revision) = self.revision {
                payload["revision"] = revision.into();
            }
            let answer = self.client.read("get", payload).await.map_err(|fail| self.went_away(fail))?;
            if answer["unchanged"] != json!(true) {
                self.revision = answer["team"]["revision"].as_u64();
                return Ok(answer);
            }
            self.wait().await;
        }
    }

    /// A server that was there and is gone takes its work up again when it is
    /// back: what was asked for is not lost.
    fn went_away(&self, mut fail: Fail) -> Fail {
        if self.revision.is_some() && fail.exit == Exit::Unreachable {
            let team = &self.team;
            fail.message.push_str(&format!(
                "; the team's work is stored and continues when the server runs again: `agent-teams watch {team}`"
            ));
        }
        fail
    }

    async fn wait(&mut self) {
        match &mut self.stream {
            Some(stream) => match timeout(PATIENCE, stream.event()).await {
                Ok(true) | Err(_) => {}
                Ok(false) => {
                    self.stream = None;
                    sleep(LOOK_AGAIN).await;
                }
            },
            None => sleep(LOOK_AGAIN).await,
        }
    }
}

fn events_path(team: &str) -> String {
    format!("/api/events?team={team}")
}

/// A stream of server-sent events, of which only the arrival matters.
struct Stream {
    response: reqwest::Response,
    text: String,
    events: VecDeque<()>,
}

impl Stream {
    /// Waits for one event that carries data; false: the stream ended.
    async fn event(&mut self) -> bool {
        loop {
            if self.events.pop_front().is_some() {
                // Several at once are one change to look at.
                self.events.clear();
                return true;
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => {
                    self.text.push_str(&String::from_utf8_lossy(&bytes));
                    while let Some(end) = self.text.find('\n') {
                        if self.text[..end].starts_with("data:") {
                            self.events.push_back(());
                        }
                        self.text.drain(..=end);
                    }
                }
                Ok(None) | Err(_) => return false,
            }
        }
    }
}
