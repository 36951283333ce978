//! A small HTTP client that sends exactly what a test says, good or bad.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A request under construction.
#[derive(Clone)]
pub struct Request {
    addr: SocketAddr,
    method: String,
    path: String,
    host: Option<String>,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    pub fn new(addr: SocketAddr, method: &str, path: &str) -> Self {
        Self {
            addr,
            method: method.into(),
            path: path.into(),
            host: Some(addr.to_string()),
            headers: Vec::new(),
            body: None,
        }
    }
    pub fn host(mut self, host: Option<&str>) -> Self {
        self.host = host.map(str::to_owned);
        self
    }
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }
    /// From this server's own page, with a session.
    pub fn session(self, cookie: &str) -> Self {
        let origin = format!("http://{}", self.addr);
        self.header("cookie", cookie).header("origin", &origin)
    }
    pub fn json(self, value: &Value) -> Self {
        self.text("application/json", &value.to_string())
    }
    pub fn text(self, media_type: &str, text: &str) -> Self {
        self.header("content-type", media_type).body(text.as_bytes())
    }
    pub fn body(mut self, body: &[u8]) -> Self {
        self.body = Some(body.to_vec());
        self
    }

    /// The head and what is known of the body, as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if let Some(host) = &self.host {
            head += &format!("host: {host}\r\n");
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if let Some(body) = &self.body
            && !self.headers.iter().any(|(name, _)| name == "content-length")
        {
            head += &format!("content-length: {}\r\n", body.len());
        }
        let mut bytes = format!("{head}connection: close\r\n\r\n").into_bytes();
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }

    pub async fn send(&self) -> Response {
        self.open().await.rest().await
    }

    /// Sends the request and reads the head of the answer.
    pub async fn open(&self) -> Stream {
        let mut socket = TcpStream::connect(self.addr).await.unwrap();
        // A server that refuses early may not read the whole body.
        let _ = socket.write_all(&self.bytes()).await;
        Stream::read_head(socket).await
    }
}

/// An answer whose body is still to be read.
pub struct Stream {
    reader: BufReader<TcpStream>,
    pub status: u16,
    pub headers: Vec<(String, String)>,
    text: String,
}

impl Stream {
    pub async fn read_head(socket: TcpStream) -> Self {
        let mut reader = BufReader::new(socket);
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no status in {line:?}")).parse().unwrap();
        let mut headers = Vec::new();
        loop {
            line.clear();
            reader.read_line(&mut line).await.unwrap();
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Self { reader, status, headers, text: String::new() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// One chunk of a chunked body; none at its end.
    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut line = String::new();
        self.reader.read_line(&mut line).await.ok()?;
        let size = usize::from_str_radix(line.trim(), 16).ok()?;
        let mut data = vec![0; size + 2];
        self.reader.read_exact(&mut data).await.ok()?;
        data.truncate(size);
        (size > 0).then_some(data)
    }

    pub async fn rest(mut self) -> Response {
        let mut body = Vec::new();
        if self.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await {
                body.extend(chunk);
            }
        } else {
            let _ = self.reader.read_to_end(&mut body).await;
        }
        Response { status: self.status, headers: self.headers, body }
    }

    /// The next event of an event stream; none when the stream ended.
    pub async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
                };
                if let Some(name) = field("event") {
                    let data = serde_json::from_str(&field("data").unwrap()).unwrap();
                    return Some(Event { name, id: field("id"), data });
                }
                continue; // a comment that keeps the stream alive
            }
            let chunk = self.chunk().await?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

#[derive(Debug, PartialEq)]
pub struct Event {
    pub name: String,
    pub id: Option<String>,
    pub data: Value,
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }
    /// Checks the form of a refusal and answers with its code.
    pub fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let body = self.json();
        assert_eq!(body["status"], self.status);
        assert_eq!(body["type"], "about:blank");
        assert!(body["title"].as_str().is_some_and(|title| !title.is_empty()));
        assert!(body["detail"].as_str().is_some_and(|detail| detail.len() > 5), "{body}");
        let known = ["type", "title", "status", "code", "detail", "field", "facts"];
        assert!(body.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{body}");
        body["code"].as_str().unwrap().to_owned()
    }
    /// The status and code of a refusal.
    pub fn refusal(&self) -> (u16, String) {
        (self.status, self.problem())
    }
}
