//! A small blocking client of a running server: JSON in, JSON out, a
//! connection for each request.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use agent_teams_host::gateway::PLUGIN_ID;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// A server, and how its caller is known there.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    /// Header lines.
    proof: String,
}

/// An answer; the body is null where there is none.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub body: Value,
    head: String,
}

impl Reply {
    /// The first header of this name, which is given in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// The body of a call that succeeded.
    pub fn ok(self) -> Result<Value> {
        ensure!((200..300).contains(&self.status), "status {}: {}", self.status, self.body);
        Ok(self.body)
    }
}

impl Client {
    pub fn with_token(url: &str, token: &str) -> Result<Self> {
        Ok(Self { address: address(url)?, proof: format!("authorization: Bearer {token}\r\n") })
    }

    /// As a browser does it from the server's own page.
    pub fn with_session(url: &str, secret: &str) -> Result<Self> {
        let address = address(url)?;
        let proof = format!("cookie: agent_teams_session_{}={secret}\r\norigin: http://{address}\r\n", address.port());
        Ok(Self { address, proof })
    }

    /// Exchanges the secret of a sign-in link for that of a session.
    pub fn sign_in(url: &str, link: &str) -> Result<String> {
        let reply = Self::with_session(url, "none")?.post("/api/sign-in", &json!({"secret": link}))?;
        let cookie = reply.header("set-cookie").and_then(|cookie| cookie.split(';').next()?.split_once('='));
        let (_, secret) = cookie.with_context(|| format!("the sign-in was refused: {reply:?}"))?;
        Ok(secret.to_owned())
    }

    pub fn get(&self, path: &str) -> Result<Reply> {
        self.send(&format!("GET {path}"), "")
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Reply> {
        self.send(&format!("POST {path}"), &body.to_string())
    }

    /// Calls an action of the component that must succeed.
    pub fn action(&self, name: &str, payload: &Value) -> Result<Value> {
        self.post(&action_path(name), payload)?.ok().with_context(|| format!("{name} {payload}"))
    }

    fn send(&self, what: &str, body: &str) -> Result<Reply> {
        let mut socket = TcpStream::connect(self.address).with_context(|| format!("no server at {}", self.address))?;
        let head = format!(
            "{what} HTTP/1.1\r\nhost: {}\r\n{}content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            self.address,
            self.proof,
            body.len()
        );
        socket.write_all((head + body).as_bytes())?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).with_context(|| format!("no answer to {what}"))?;
        parse(&answer).with_context(|| format!("{what} was answered with {answer:?}"))
    }
}

/// Where an action is called.
pub fn action_path(name: &str) -> String {
    format!("/api/plugins/{PLUGIN_ID}/actions/{name}")
}

fn address(url: &str) -> Result<SocketAddr> {
    url.strip_prefix("http://")
        .and_then(|rest| rest.parse().ok())
        .with_context(|| format!("{url} is not the address of a local server"))
}

fn parse(answer: &str) -> Result<Reply> {
    let (head, body) = answer.split_once("\r\n\r\n").context("the head has no end")?;
    ensure!(!head.to_ascii_lowercase().contains("transfer-encoding:"), "the body comes in chunks");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body)? };
    Ok(Reply { status, body, head: head.to_owned() })
}
