//! The series over HTTP: what the gateway adds to a call.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use agent_teams_host::agents::host::{AgentCard, AgentHost, Conversation, Post, Posted, Transcript};
use agent_teams_host::agents::runs::{Capability, RunError};
use agent_teams_host::config::Config;
use agent_teams_host::contract::EndedRun;
use agent_teams_host::engine::SystemClock;
use agent_teams_host::gateway::{self, HealthApi};
use agent_teams_host::storage::SqliteTables;
use agent_teams_host::users::{Operator, Users};
use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use serde_json::json;
use tokio::sync::broadcast;

use crate::agents::Agents;
use crate::measure::Cell;
use crate::rig::Rig;
use crate::texts::{Answer, text};

/// The workload's agents have no conversations to show.
#[async_trait]
impl AgentHost for Agents {
    fn ended(&self) -> broadcast::Receiver<EndedRun> {
        self.subscribe()
    }
    fn catalogue(&self, _user: &str) -> Vec<AgentCard> {
        Vec::new()
    }
    fn capability(&self, user: &str) -> Capability {
        Agents::capability(self, user)
    }
    fn conversations(&self, _user: &str, _limit: u32) -> Result<Vec<Conversation>, RunError> {
        Ok(Vec::new())
    }
    fn conversation(&self, _: &str, _: &str, _: Option<u64>, _: u32) -> Result<Transcript, RunError> {
        Err(RunError::NotFound("there is none".into()))
    }
    fn room(&self, _user: &str) -> Result<(), RunError> {
        Ok(())
    }
    async fn post(&self, _user: &str, _post: Post) -> Result<Posted, RunError> {
        Err(RunError::Rejected("nobody reads it".into()))
    }
}

/// The workload does not ask.
struct Healthy;

#[async_trait]
impl HealthApi for Healthy {
    async fn check(&self) -> Result<(), &'static str> {
        Ok(())
    }
}

/// One connection that is kept.
struct Client {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Client {
    fn new(address: SocketAddr, token: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let head = format!("Host: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n");
        Ok(Self { stream: BufReader::new(stream), head })
    }

    fn post(&mut self, path: &str, body: &str) -> Result<String> {
        let head = &self.head;
        let request = format!("POST {path} HTTP/1.1\r\n{head}Content-Length: {}\r\n\r\n{body}", body.len());
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (mut line, mut status, mut length) = (String::new(), String::new(), 0);
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            match line.trim_end() {
                "" => break,
                first if status.is_empty() => status = first.into(),
                header => {
                    if let Some(n) = header.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = n.trim().parse()?;
                    }
                }
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        let body = String::from_utf8(body)?;
        ensure!(status.contains(" 200 "), "{status}: {body}");
        Ok(body)
    }
}

/// Sends and reads, by the library and over HTTP in turn.
pub async fn http() -> Result<()> {
    let rig = Rig::new(Answer::Bytes(1024)).await?;
    let tables = SqliteTables::open(rig.db.clone(), Arc::new(SystemClock)).await?;
    let users = Users::new(tables, Arc::new(SystemClock));
    users.first_start().await?;
    let owner = users.list()?.first().context("no user")?.id.clone();
    let token = users.add_token(&owner, "workload").await?.secret;
    let mut server = Config::default().server;
    server.bind = "127.0.0.1:0".parse()?;
    let listener = tokio::net::TcpListener::bind(server.bind).await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let parts = gateway::Parts {
        team: Arc::new(rig.plugin.clone()),
        agents: Arc::new(rig.agents.clone()),
        users,
        signals: rig.signals.clone(),
        operator: Arc::new(Operator::generate()?.0),
        health: Arc::new(Healthy),
    };
    let serving = tokio::spawn(async move {
        let stop = async { drop(stopped.await) };
        gateway::serve(parts, &server, gateway::Limits::default(), listener, stop).await
    });
    let mut client = Client::new(address, &token)?;
    let path = |action: &str| format!("/api/plugins/community.agent-teams/actions/{action}");
    let (mut library, mut over) = (Cell::new("send, 200 B, library"), Cell::new("send, 200 B, HTTP"));
    for at in 0..3 {
        let team = rig.create(&owner, at, 4).await?;
        for n in 0..90 {
            let payload = team.request(n % 4, &format!("r{n}"), &text(200, &format!("req {n}"))).to_string();
            if n % 2 == 0 {
                library.sample(&rig.db, rig.action_text(&owner, "send", &payload)).await?;
            } else {
                let post = async { tokio::task::block_in_place(|| client.post(&path("send"), &payload)) };
                over.sample(&rig.db, post).await?;
            }
        }
    }
    library.print();
    over.print();
    let team = rig.full(&owner, 10, 50, 200).await?;
    for (kind, details) in [("limit 20", json!({})), ("limit 200 with details", json!({"limit": 200, "details": true}))]
    {
        let mut payload = details;
        payload["team_id"] = json!(team.id);
        let plain = payload.to_string();
        payload["revision"] = rig.action(&owner, "get", json!({"team_id": team.id})).await?["team"]["revision"].clone();
        for (kind, payload) in [(kind.to_owned(), plain), (format!("{kind}, unchanged"), payload.to_string())] {
            let mut library = Cell::new(format!("get, {kind}, library"));
            let mut over = Cell::new(format!("get, {kind}, HTTP"));
            for _ in 0..50 {
                library.sample(&rig.db, rig.action_text(&owner, "get", &payload)).await?;
                let post = async { tokio::task::block_in_place(|| client.post(&path("get"), &payload)) };
                over.sample(&rig.db, post).await?;
            }
            library.print();
            over.print();
        }
    }
    drop(client);
    let _ = stop.send(());
    serving.await??;
    Ok(())
}
