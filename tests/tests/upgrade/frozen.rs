//! A frozen folder, and the program on a copy of it.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use agent_teams_tests::http::Client;
use agent_teams_tests::reading;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::program::{Folder, Server};

/// A folder as it was written then, with what was true in it.
pub struct Frozen {
    folder: PathBuf,
    record: Value,
}

impl Frozen {
    pub fn format(number: u32) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/data/format-{number}"));
        let record = std::fs::read(folder.join("record.json")).expect("the record is read");
        Self { folder, record: serde_json::from_slice(&record).expect("the record is JSON") }
    }

    /// Checks that a file was not written since.
    pub fn is(&self, file: &str, sha256: &str) {
        let bytes = std::fs::read(self.folder.join(file)).expect("the file is read");
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, sha256, "{file} is frozen; a change of what is stored makes a new format, not a new file");
    }

    pub fn database(&self) -> PathBuf {
        self.folder.join("data/agent-teams.db")
    }

    /// A copy in which the work that takes an hour takes a moment.
    pub fn copy(&self) -> Folder {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis());
        let then = self.record["at_ms"].as_u64().expect("a time");
        assert!(now >= then.into(), "the machine's clock is behind the folder's: pauses there have not begun yet");
        let folder = Folder::copy_of(&self.folder.join("data"));
        folder.configure(|text| text.replace("delay_ms = 3600000", "delay_ms = 20"));
        folder
    }

    pub fn serve(&self, folder: Folder) -> Running<'_> {
        let server = folder.serve();
        Running { frozen: self, folder, server }
    }

    pub fn secret(&self, place: &str) -> &str {
        let secret = self.record["secrets"].pointer(place);
        secret.and_then(Value::as_str).unwrap_or_else(|| panic!("no secret {place}"))
    }

    /// The users who own teams.
    pub fn owners(&self) -> impl Iterator<Item = &str> {
        self.record["secrets"]["tokens"].as_object().expect("tokens").keys().map(String::as_str)
    }

    /// The writes of owners, in order.
    pub fn writes(&self) -> &[Value] {
        self.record["writes"].as_array().expect("writes")
    }

    /// Of each unfinished job, the key of its run and the id of its receipt.
    pub fn promises(&self) -> &[Value] {
        self.record["promises"].as_array().expect("promises")
    }

    /// What the owners could read: the teams of each.
    pub fn views(&self) -> impl Iterator<Item = (&str, &Value)> {
        let views = self.record["views"].as_object().expect("views").iter();
        views.flat_map(|(owner, teams)| teams.as_array().into_iter().flatten().map(move |team| (owner.as_str(), team)))
    }

    /// The jobs of a team as they were.
    pub fn jobs(&self, owner: &str, team: &str) -> Vec<Value> {
        let (_, view) = self
            .views()
            .find(|(user, view)| *user == owner && view["team"]["name"] == team)
            .unwrap_or_else(|| panic!("no team {team}"));
        view["jobs"].as_array().expect("jobs").clone()
    }
}

/// The present program, serving a copy.
pub struct Running<'f> {
    frozen: &'f Frozen,
    folder: Folder,
    server: Server,
}

impl Running<'_> {
    pub fn frozen(&self) -> &Frozen {
        self.frozen
    }

    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    pub fn client(&self, user: &str) -> Client {
        self.with_token(self.frozen.secret(&format!("/tokens/{user}")))
    }

    pub fn with_token(&self, token: &str) -> Client {
        Client::with_token(self.server.url(), token).expect("a client")
    }

    pub fn with_session(&self, user: &str) -> Client {
        let secret = self.frozen.secret(&format!("/sessions/{user}"));
        Client::with_session(self.server.url(), secret).expect("a client")
    }

    /// A team as its owner reads it, by name.
    pub fn team(&self, owner: &str, name: &str) -> Value {
        let client = self.client(owner);
        let listed = client.action("list", &serde_json::json!({})).expect("teams");
        let mut teams = listed["teams"].as_array().expect("teams").iter();
        let found = teams.find(|team| team["name"] == name).unwrap_or_else(|| panic!("no team {name}"));
        let whole = client.action("get", &serde_json::json!({"team_id": found["id"]})).expect("the team");
        whole["team"].clone()
    }

    /// Everything that owners can read now.
    pub fn views(&self) -> Value {
        let mut views = Map::new();
        for owner in self.frozen.owners() {
            let client = self.client(owner);
            let teams = reading::teams(&|action, payload| client.action(action, &payload)).expect("the teams");
            views.insert(owner.to_owned(), Value::Array(teams));
        }
        Value::Object(views)
    }

    /// Stops the program in order.
    pub fn stop(self) -> Folder {
        assert_eq!(self.server.stop(), Some(0), "an orderly stop");
        self.folder
    }
}
