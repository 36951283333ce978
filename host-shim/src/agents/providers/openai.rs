//! An OpenAI-compatible chat-completions endpoint.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use serde::Deserialize;
use serde_json::{Value, json};

use super::reply::{Assembler, MAX_REPLY, SseLines, parse_json};
use super::{Mistake, Model, ModelError, ModelMessage, ModelReply, ModelRequest, Provider};
use crate::outbound;

/// Bytes of an error reply that are looked at.
const MAX_ERROR_BODY: usize = 64 * 1024;
/// Bytes of a word by which an endpoint names its error.
const MAX_ERROR_WORD: usize = 64;
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// A longer `Retry-After` is not waited for: this much is.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// How long a probe waits for its word.
const PROBE_TIME: Duration = Duration::from_secs(120);

/// An OpenAI-compatible endpoint.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenAiConfig {
    /// For example `http://127.0.0.1:8080/v1`; `/chat/completions` is added.
    pub base_url: String,
    pub model: String,
    /// Name of the environment variable that holds the key. The key itself is
    /// never in the file, in a log or in an error. Absent: no key is sent.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// Seconds without a byte after which an attempt is given up.
    #[serde(default = "default_timeout_seconds")]
    pub timeout_seconds: u32,
    /// Further attempts after a temporary failure.
    #[serde(default = "default_max_retries")]
    pub max_retries: u32,
    /// The first pause between attempts; it doubles, up to 30 seconds.
    #[serde(default = "default_backoff_ms")]
    pub backoff_ms: u32,
    #[serde(default)]
    pub temperature: Option<f64>,
    #[serde(default)]
    pub max_tokens: Option<u32>,
}

fn default_timeout_seconds() -> u32 {
    120
}
fn default_max_retries() -> u32 {
    4
}
fn default_backoff_ms() -> u32 {
    500
}

#[async_trait]
impl Provider for OpenAiConfig {
    fn validate(&self) -> Result<(), Mistake> {
        let wrong = |field: &str, message: &str| Err(Mistake::new(field, message));
        let Ok(url) = reqwest::Url::parse(&self.base_url) else { return wrong("base_url", "is not a URL") };
        if !matches!(url.scheme(), "http" | "https") {
            return wrong("base_url", "must begin with http:// or https://");
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return wrong("base_url", "must hold no user, password or query; use api_key_env");
        }
        if self.model.trim().is_empty() {
            return wrong("model", "must not be empty");
        }
        if let Some(env) = &self.api_key_env
            && (env.is_empty() || !env.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
        {
            return wrong("api_key_env", "must be the name of an environment variable, not a key");
        }
        if self.timeout_seconds == 0 {
            return wrong("timeout_seconds", "must be at least 1");
        }
        if self.max_retries > 20 {
            return wrong("max_retries", "must be at most 20");
        }
        if self.temperature.is_some_and(|t| !(0.0..=2.0).contains(&t)) {
            return wrong("temperature", "must be between 0 and 2");
        }
        if self.max_tokens == Some(0) {
            return wrong("max_tokens", "must be at least 1");
        }
        Ok(())
    }

    fn open(&self) -> anyhow::Result<Arc<dyn Model>> {
        Ok(Arc::new(OpenAiModel::new(self.clone())?))
    }

    async fn probe(&self, ask: bool) -> Result<String, String> {
        if let Some(name) = self.api_key_env.as_deref()
            && std::env::var_os(name).is_none_or(|value| value.is_empty())
        {
            return Err(format!("the environment variable {name} is not set; it holds the key of this endpoint"));
        }
        let url = &self.base_url;
        if !ask {
            return Ok(format!("{url} (--models asks it for a word)"));
        }
        let model = OpenAiModel::new(self.clone()).map_err(|e| format!("{e:#}"))?;
        let request = ModelRequest {
            agent: "doctor".into(),
            run: "doctor".into(),
            messages: vec![ModelMessage::Human { text: "Answer with the word ready.".into() }],
            ..ModelRequest::default()
        };
        match tokio::time::timeout(PROBE_TIME, model.complete(&request)).await {
            Ok(Ok(_)) => Ok(format!("{url} answers")),
            Ok(Err(error)) => Err(format!("{url}: {error}; look at base_url, model and key")),
            Err(_) => Err(format!("{url} gave no answer in {} s", PROBE_TIME.as_secs())),
        }
    }
}

/// A client of one endpoint and model.
pub struct OpenAiModel {
    config: OpenAiConfig,
    url: String,
    client: reqwest::Client,
}

/// How one attempt failed.
enum Attempt {
    /// May succeed when repeated, after the pause that the server asked for.
    Retry(String, Option<Duration>),
    /// The server does not stream; how it said so.
    NoStream(String),
    End(ModelError),
}

impl OpenAiModel {
    /// Fails only if the address is none, or the machine's TLS set-up cannot
    /// be read.
    pub fn new(config: OpenAiConfig) -> anyhow::Result<Self> {
        let url = format!("{}/chat/completions", config.base_url.trim_end_matches('/'));
        let client = outbound::client_for(&url.parse()?)
            .connect_timeout(Duration::from_secs(10))
            // A redirect could carry the key to another host.
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self { config, url, client })
    }

    fn silence(&self) -> Duration {
        Duration::from_secs(u64::from(self.config.timeout_seconds))
    }

    async fn attempt(&self, body: &Value) -> Result<ModelReply, Attempt> {
        let mut request = self.client.post(&self.url).json(body);
        if let Some(name) = &self.config.api_key_env {
            let key = std::env::var(name).ok().filter(|k| !k.is_empty()).ok_or_else(|| {
                Attempt::End(ModelError::Misconfigured(format!("the environment variable {name} is not set")))
            })?;
            request = request.bearer_auth(key);
        }
        let response = tokio::time::timeout(self.silence(), request.send())
            .await
            .map_err(|_| Attempt::Retry("no answer in time".into(), None))?
            .map_err(|e| match e {
                e if e.is_builder() => {
                    Attempt::End(ModelError::Misconfigured("the key or address is malformed".into()))
                }
                e if e.is_connect() => Attempt::Retry("no connection".into(), None),
                _ => Attempt::Retry("the connection broke".into(), None),
            })?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        self.read(response).await
    }

    /// Reads a reply, whichever way the server sends it.
    async fn read(&self, response: reqwest::Response) -> Result<ModelReply, Attempt> {
        let stream = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|v| v.to_str().ok())
            .is_some_and(|v| v.starts_with("text/event-stream"));
        let (mut out, mut lines, mut whole) = (Assembler::default(), SseLines::default(), Vec::new());
        let (mut done, mut failed) = (false, false);
        let mut event = |out: &mut Assembler, done: &mut bool, data: &[u8]| {
            if data.trim_ascii() == b"[DONE]" {
                *done = true;
            } else if let Some(value) = parse_json(data) {
                failed |= value.get("error").is_some_and(|e| !e.is_null());
                if let Some(choice) = value.get("choices").and_then(|c| c.get(0)) {
                    out.choice(choice);
                }
            }
        };
        let mut chunks = response.bytes_stream();
        loop {
            let chunk = tokio::time::timeout(self.silence(), chunks.next())
                .await
                .map_err(|_| Attempt::Retry("the reply stopped in the middle".into(), None))?;
            let Some(chunk) = chunk else { break };
            let chunk = chunk.map_err(|_| Attempt::Retry("the reply was cut off".into(), None))?;
            if stream {
                lines.push(&chunk, |data| event(&mut out, &mut done, data));
            } else {
                whole.extend_from_slice(&chunk);
            }
            if out.too_large || whole.len() > MAX_REPLY || lines.held() > MAX_REPLY {
                return Err(Attempt::End(ModelError::Refused("the reply exceeds its bound".into())));
            }
            if done {
                break;
            }
        }
        if stream {
            lines.finish(|data| event(&mut out, &mut done, data));
            if failed {
                return Err(Attempt::Retry("the server reported an error within its reply".into(), None));
            }
            if !out.finished() && !done {
                return Err(Attempt::Retry("the reply was cut off".into(), None));
            }
        } else {
            let value = parse_json(&whole).ok_or(Attempt::Retry("the reply is not JSON".into(), None))?;
            let choice = value.get("choices").and_then(|c| c.get(0));
            out.choice(choice.ok_or(Attempt::Retry("the reply holds no choice".into(), None))?);
        }
        Ok(out.into_reply())
    }

    /// What a status other than success means.
    async fn refusal(&self, response: reqwest::Response) -> Attempt {
        let status = response.status().as_u16();
        let pause = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|v| v.to_str().ok()?.trim().parse::<f64>().ok())
            .filter(|s| s.is_finite() && *s >= 0.0)
            .map(|s| Duration::from_secs_f64(s.min(MAX_RETRY_AFTER.as_secs_f64())));
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Ok(Some(Ok(chunk))) = tokio::time::timeout(self.silence(), chunks.next()).await {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ERROR_BODY {
                break;
            }
        }
        // The text is used to tell kinds apart and is never passed on: some
        // servers repeat the key in it.
        let named = self.named(&body);
        let text = String::from_utf8_lossy(&body).to_lowercase();
        let too_long = status == 413
            || (matches!(status, 400 | 422 | 500)
                && text.contains("context")
                && ["length", "long", "exceed", "maximum", "size", "window"].iter().any(|w| text.contains(w)));
        match status {
            _ if too_long => Attempt::End(ModelError::ContextTooLong),
            408 | 409 | 425 | 429 | 500..=599 => Attempt::Retry(format!("status {status}{named}"), pause),
            400 | 422 if about_streaming(&text) => Attempt::NoStream(format!("status {status}{named}")),
            401 | 403 => {
                Attempt::End(ModelError::Refused(format!("status {status}{named}: the key is missing or wrong")))
            }
            404 => {
                Attempt::End(ModelError::Refused(format!("status 404{named}: no such model, or the base URL is wrong")))
            }
            _ => Attempt::End(ModelError::Refused(format!("status {status}{named}"))),
        }
    }

    /// The short words by which an endpoint names its error, as ` (code …)`. Its
    /// sentences are not passed on: some servers repeat the key in them.
    fn named(&self, body: &[u8]) -> String {
        let Some(body) = parse_json(body) else { return String::new() };
        let error = body.get("error").filter(|e| e.is_object()).unwrap_or(&body);
        let key = self.config.api_key_env.as_ref().and_then(|name| std::env::var(name).ok()).unwrap_or_default();
        let short = |name: &str| {
            let word = match error.get(name)? {
                Value::String(word) => word.clone(),
                Value::Number(number) => number.to_string(),
                _ => return None,
            };
            let safe = |c: char| c.is_ascii_alphanumeric() || "._-[]".contains(c);
            let fits = !word.is_empty() && word.len() <= MAX_ERROR_WORD && word.chars().all(safe);
            (fits && (key.is_empty() || !word.contains(&key))).then(|| format!("{name} {word}"))
        };
        let words: Vec<String> = ["code", "type", "param"].into_iter().filter_map(short).collect();
        if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
    }
}

#[async_trait]
impl Model for OpenAiModel {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let mut body = body(&self.config, request);
        let mut backoff = Duration::from_millis(u64::from(self.config.backoff_ms));
        let mut retries = 0;
        loop {
            match self.attempt(&body).await {
                Ok(reply) => return Ok(reply),
                Err(Attempt::End(error)) => return Err(error),
                Err(Attempt::NoStream(_)) if body["stream"] == json!(true) => body["stream"] = json!(false),
                Err(Attempt::NoStream(why)) => return Err(ModelError::Refused(why)),
                Err(Attempt::Retry(why, _)) if retries >= self.config.max_retries => {
                    return Err(ModelError::Unavailable(format!("{why}, after {} attempts", retries + 1)));
                }
                Err(Attempt::Retry(why, pause)) => {
                    retries += 1;
                    tracing::warn!(agent = request.agent, retries, "model call failed: {why}");
                    tokio::time::sleep(pause.unwrap_or(backoff)).await;
                    backoff = (backoff * 2).min(MAX_BACKOFF);
                }
            }
        }
    }
}

/// The request body. Content is always a string and the one system message
/// comes first: every server takes that.
fn body(config: &OpenAiConfig, request: &ModelRequest) -> Value {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.instructions.is_empty() {
        messages.push(json!({"role": "system", "content": request.instructions}));
    }
    for message in &request.messages {
        messages.push(match message {
            ModelMessage::Human { text } => json!({"role": "user", "content": text}),
            ModelMessage::Assistant { text, calls } if calls.is_empty() => {
                json!({"role": "assistant", "content": text})
            }
            ModelMessage::Assistant { text, calls } => {
                let calls: Vec<Value> = calls
                    .iter()
                    .map(|c| {
                        json!({"id": c.id, "type": "function",
                            "function": {"name": legal_name(&c.name), "arguments": c.arguments}})
                    })
                    .collect();
                json!({"role": "assistant", "content": text, "tool_calls": calls})
            }
            ModelMessage::Tool { call, text, .. } => json!({"role": "tool", "tool_call_id": call, "content": text}),
        });
    }
    let mut body = json!({"model": config.model, "messages": messages, "stream": true});
    if !request.tools.is_empty() {
        body["tools"] = request
            .tools
            .iter()
            .map(|t| {
                json!({"type": "function",
                    "function": {"name": t.name, "description": t.description, "parameters": t.input_schema}})
            })
            .collect();
    }
    if let Some(temperature) = config.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(max_tokens) = config.max_tokens {
        body["max_tokens"] = json!(max_tokens);
    }
    body
}

/// Whether a refusal is about the reply being streamed. "Upstream" is not.
fn about_streaming(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| matches!(word, "stream" | "streaming"))
}

/// A tool name that strict servers accept when it is replayed.
fn legal_name(name: &str) -> String {
    let legal: String = name
        .chars()
        .take(64)
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
        .collect();
    if legal.is_empty() { "unknown".into() } else { legal }
}
