//! The running server, as a program with a token sees it.

use std::path::Path;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;

use super::Place;
use super::fail::{Exit, Fail};
use crate::local::{ServerFile, Socket};
use crate::outbound;
use crate::users::{CLI_TOKEN_FILE, OPERATOR_TOKEN_FILE};

/// The base of the component's routes.
pub const PLUGIN_PATH: &str = "/api/plugins/community.agent-teams";
/// The variable that holds a token for `--server`.
const TOKEN_VARIABLE: &str = "AGENT_TEAMS_TOKEN";
/// Some actions wait for a step of their team.
const ANSWER_TIME: Duration = Duration::from_secs(60);

/// A connection to one server as one user.
pub struct Client {
    http: reqwest::Client,
    /// What paths are put behind.
    base: String,
    /// Where people reach it with a browser.
    origin: String,
    /// The server, as people know it.
    name: String,
    token: String,
    /// Its path may lead through what this holds open.
    _socket: Option<Socket>,
}

/// Whether a lost answer may hide an effect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    None,
    Possible,
}

impl Client {
    /// The server that was named, or the one of the data folder. Nothing is
    /// asked of it yet.
    ///
    /// The folder's own token is for the folder's own server alone; one that was
    /// named gets the token of the environment.
    pub fn open(place: &Place) -> Result<Self, Fail> {
        let token = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        match (&place.server, token) {
            (Some(url), Some(token)) => Self::at(url, token.trim()),
            (Some(url), None) => Err(Fail::open(
                "no_token",
                format!(
                    "set {TOKEN_VARIABLE} to a token of the server {url} (`agent-teams tokens add` makes one there); \
                     the token of the data folder is for the folder's own server, which is reached without --server"
                ),
            )),
            (None, Some(token)) => Self::in_folder(&place.data, token.trim()),
            (None, None) => Self::of_folder(&place.data),
        }
    }

    /// The server of the data folder, as the local user.
    pub fn of_folder(data: &Path) -> Result<Self, Fail> {
        let file = data.join(CLI_TOKEN_FILE);
        let token = std::fs::read_to_string(&file);
        // Whether a server runs is the better news.
        let client = Self::in_folder(data, token.as_deref().unwrap_or_default().trim())?;
        match token {
            Ok(_) => Ok(client),
            Err(e) => Err(Fail::open(
                "no_token",
                format!(
                    "cannot read the token {}: {e}; `agent-teams serve` writes it for the user `local`; others set \
                     {TOKEN_VARIABLE}",
                    file.display()
                ),
            )),
        }
    }

    /// The server of the data folder, as its operator. A server that was named
    /// is refused: this folder's secret is for no other.
    pub fn operator(place: &Place) -> Result<Self, Fail> {
        if place.server.is_some() {
            return Err(Fail::usage(
                "the operator's commands speak to the server of the data folder: leave out --server (and AGENT_TEAMS_SERVER)",
            ));
        }
        let file = place.data.join(OPERATOR_TOKEN_FILE);
        let token = std::fs::read_to_string(&file);
        let client = Self::in_folder(&place.data, token.as_deref().unwrap_or_default().trim())?;
        match token {
            Ok(_) => Ok(client),
            Err(e) => {
                let why = "only who may read the data folder of the running server is its operator";
                Err(Fail::open("not_the_operator", format!("cannot read {}: {e}; {why}", file.display())))
            }
        }
    }

    /// The server of the data folder, by the socket in it, where no other
    /// process can be in its place.
    fn in_folder(data: &Path, token: &str) -> Result<Self, Fail> {
        let folder = data.display();
        let Some(server) = ServerFile::read(data) else {
            return Err(Fail::unreachable(format!(
                "no server runs on the data folder {folder}; start one with `agent-teams serve`, or name one with --server"
            )));
        };
        let ServerFile { url, pid, public } = server;
        let socket = Socket::of(data).map_err(|e| Fail::open("data_folder", format!("cannot open {folder}: {e}")))?;
        if !socket.path().exists() {
            return Err(Fail::unreachable(format!(
                "the server of the data folder {folder} (process {pid}) has no socket in it; if it runs, name it with \
                 --server {url} and set {TOKEN_VARIABLE} to a token of it"
            )));
        }
        let http = Self::build(outbound::client_by(socket.path()))?;
        let name = format!("of the data folder {folder} (process {pid}, {url})");
        let (base, token) = ("http://localhost".into(), token.to_owned());
        Ok(Self { http, base, origin: public.unwrap_or(url), name, token, _socket: Some(socket) })
    }

    /// A server by its address, with a token.
    fn at(address: &str, token: &str) -> Result<Self, Fail> {
        let base = address.trim_end_matches('/').to_owned();
        let url = reqwest::Url::parse(&base)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some())
            .ok_or_else(|| {
                Fail::usage(format!("`{base}` is not an address; give one such as http://127.0.0.1:8765"))
            })?;
        let http = Self::build(outbound::client_for(&url))?;
        let (origin, name, token) = (base.clone(), format!("at {base}"), token.to_owned());
        Ok(Self { http, base, origin, name, token, _socket: None })
    }

    fn build(builder: reqwest::ClientBuilder) -> Result<reqwest::Client, Fail> {
        let builder = builder.connect_timeout(Duration::from_secs(5)).user_agent("agent-teams");
        builder.build().map_err(|e| Fail::open("http_client", e.to_string()))
    }

    /// The server, as people know it: "at …" or "of the data folder …".
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where people reach it with a browser, from other machines if it is open to
    /// them: for example `http://127.0.0.1:8765`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// An action that changes nothing.
    pub async fn read(&self, action: &str, payload: Value) -> Result<Value, Fail> {
        self.action(action, payload, Effect::None).await
    }

    /// An action that may change something. When its answer is lost, the
    /// failure says that the outcome is unknown.
    pub async fn write(&self, action: &str, payload: Value) -> Result<Value, Fail> {
        self.action(action, payload, Effect::Possible).await
    }

    async fn action(&self, action: &str, payload: Value, effect: Effect) -> Result<Value, Fail> {
        let request = self.request(Method::POST, &format!("{PLUGIN_PATH}/actions/{action}")).json(&payload);
        self.answer(request, effect).await
    }

    /// Posts to any other address of the API; as for `write`.
    pub async fn post(&self, path: &str, payload: Value) -> Result<Value, Fail> {
        self.answer(self.request(Method::POST, path).json(&payload), Effect::Possible).await
    }

    /// Any document of the API.
    pub async fn get(&self, path: &str) -> Result<Value, Fail> {
        self.answer(self.request(Method::GET, path), Effect::None).await
    }

    /// Opens a stream of live updates.
    pub async fn stream(&self, path: &str) -> Result<reqwest::Response, Fail> {
        let request = self.request(Method::GET, path).header("accept", "text/event-stream");
        let response = request.send().await.map_err(|e| self.lost(&e, Effect::None))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refused(response, Effect::None).await) }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token)
    }

    async fn answer(&self, request: RequestBuilder, effect: Effect) -> Result<Value, Fail> {
        let response = request.timeout(ANSWER_TIME).send().await.map_err(|e| self.lost(&e, effect))?;
        if !response.status().is_success() {
            return Err(self.refused(response, effect).await);
        }
        let text = response.text().await.map_err(|e| self.lost(&e, effect))?;
        serde_json::from_str(&text).map_err(|_| {
            Fail::refused(
                "bad_answer",
                "the server answered with something else than JSON; is it an agent-teams server?",
            )
        })
    }

    /// No answer, or not a whole one.
    fn lost(&self, error: &reqwest::Error, effect: Effect) -> Fail {
        if error.is_connect() || error.is_builder() {
            return Fail::unreachable(format!(
                "the server {} cannot be reached; start it with `agent-teams serve`, or name another with --server",
                self.name
            ));
        }
        match effect {
            Effect::None => Fail::unreachable(format!("the server {} gave no whole answer; try again", self.name)),
            Effect::Possible => Fail::unknown(
                "the connection was lost before the answer came; look at the team before you repeat this, or repeat it with the same request id, which is safe",
            ),
        }
    }

    /// A refusal, as the API writes it (`application/problem+json`).
    async fn refused(&self, response: reqwest::Response, effect: Effect) -> Fail {
        let status = response.status();
        let body = response.text().await.unwrap_or_default();
        let problem: Value = serde_json::from_str(&body).unwrap_or_default();
        let text = |name: &str| problem[name].as_str().map(str::to_owned);
        let code = text("code").unwrap_or_else(|| format!("http_{}", status.as_u16()));
        // The server's own words for this are about the page.
        let message = match status {
            StatusCode::UNAUTHORIZED => explain(status),
            _ => text("detail").or_else(|| text("title")).unwrap_or_else(|| explain(status)),
        };
        let exit = match status {
            StatusCode::SERVICE_UNAVAILABLE => Exit::Unreachable,
            _ if status.is_server_error() && effect == Effect::Possible => Exit::Unknown,
            _ => Exit::Refused,
        };
        Fail { exit, code, message, field: text("field") }
    }
}

fn explain(status: StatusCode) -> String {
    match status {
        StatusCode::UNAUTHORIZED => "the server does not know this token; set AGENT_TEAMS_TOKEN to a valid one (`tokens list`), or leave it and --server out for the server of this data folder".into(),
        status => format!("the server answered with {status}"),
    }
}
