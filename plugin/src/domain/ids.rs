//! Derived ids: SHA-256 over the compact JSON array of a kind word and the
//! parts, so that a retry repeats them and parts never run together.

use alloc::string::String;
use alloc::vec::Vec;

use sha2::{Digest, Sha256};

/// The whole digest, in hexadecimal.
pub fn digest(kind: &str, parts: &[&str]) -> String {
    let mut all: Vec<&str> = Vec::with_capacity(parts.len() + 1);
    all.push(kind);
    all.extend_from_slice(parts);
    // Serialising strings into memory cannot fail.
    let text = serde_json::to_string(&all).unwrap_or_default();
    hex(&Sha256::digest(text.as_bytes()))
}

/// An opaque id with a prefix that tells people its kind; 128 bits.
fn id(prefix: &str, kind: &str, parts: &[&str]) -> String {
    let mut id = String::from(prefix);
    id.push_str(&digest(kind, parts)[..32]);
    id
}

/// A team from its owner and the request id of its creation.
pub fn team(owner: &str, request_id: &str) -> String {
    id("team-", "team", &[owner, request_id])
}

/// A member of a team by its place in the roster.
pub fn member(team: &str, nonce: &str, place: &str) -> String {
    id("m-", "member", &[team, nonce, place])
}

/// A member's conversation.
pub fn thread(team: &str, nonce: &str, place: &str) -> String {
    id("thread-", "thread", &[team, nonce, place])
}

/// A request from its team, its source (the asking conversation, or nothing
/// for the owner) and request id. The nonce keeps a team that was deleted and
/// made again from meeting its old runs.
pub fn request(team: &str, nonce: &str, source: &str, request_id: &str) -> String {
    id("job-", "request", &[team, nonce, source, request_id])
}

/// The receipt of a request.
pub fn receipt(nonce: &str, request: &str) -> String {
    id("job-", "receipt", &[nonce, request])
}

/// An entry of the public state from the conversation that published it and
/// its publication id.
pub fn entry(team: &str, nonce: &str, source: &str, request_id: &str) -> String {
    id("entry-", "entry", &[team, nonce, source, request_id])
}

/// The idempotency key of a job's run.
pub fn run_key(nonce: &str, job: &str) -> String {
    digest("run", &[nonce, job])
}

/// The key of a further attempt of a job whose earlier ones were definitely not
/// admitted: it carries other bytes, so it takes another key.
pub fn run_key_again(first: &str, attempt: u32) -> String {
    let mut number = String::new();
    // Writing into a string cannot fail.
    let _ = core::fmt::Write::write_fmt(&mut number, format_args!("{attempt}"));
    digest("run-again", &[first, &number])
}

/// The idempotency key of an answer.
pub fn resume_key(nonce: &str, job: &str, question: &str, request_id: &str) -> String {
    digest("resume", &[nonce, job, question, request_id])
}

/// The id of the human message that carries a job's input or answer.
pub fn message(key: &str) -> String {
    let mut id = String::from("msg-");
    id.push_str(&key[..key.len().min(32)]);
    id
}

pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for b in bytes {
        out.push(DIGITS[usize::from(b >> 4)] as char);
        out.push(DIGITS[usize::from(b & 15)] as char);
    }
    out
}
