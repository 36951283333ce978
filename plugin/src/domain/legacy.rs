//! A team as the earlier plugin stored it (one JSON document), and what it
//! means here: a pure function from the document to records to be made.
//!
//! Ids, texts, answers and frozen inputs stay as they are. Nothing is guessed:
//! what an older installation did not store is absent here too.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::Deserialize;
use serde_json::Value;

use super::error::{Error, Result};
use super::job::{JobKind, Phase, Source, Wait};
use super::{asked, ids, limits, text, time};

#[derive(Clone, Debug, Deserialize)]
struct Document {
    id: String,
    name: String,
    goal: String,
    members: Vec<Member>,
    #[serde(default)]
    messages: Vec<RawMessage>,
    #[serde(default)]
    jobs: Vec<RawJob>,
    #[serde(default)]
    ready: bool,
}

/// A member of the roster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Member {
    pub id: String,
    pub name: String,
    pub agent: String,
    pub thread_id: String,
}

#[derive(Clone, Debug, Deserialize)]
struct RawMessage {
    job_id: String,
    kind: String,
    text: String,
}

#[derive(Clone, Debug, Deserialize)]
struct RawJob {
    id: String,
    #[serde(default)]
    root: Option<String>,
    #[serde(default)]
    member_id: Option<String>,
    thread_id: String,
    #[serde(default)]
    source: Option<String>,
    text: String,
    kind: JobKind,
    status: String,
    #[serde(default)]
    run_id: Option<String>,
    #[serde(default)]
    initial_run_id: Option<String>,
    #[serde(default)]
    input: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    resume: Option<Value>,
    #[serde(default)]
    result: Option<String>,
    #[serde(default)]
    parent_id: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    completed_at: Option<String>,
    #[serde(default)]
    clarification: Option<Clarification>,
    #[serde(default)]
    result_message_id: Option<String>,
    #[serde(default)]
    result_run_id: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Clarification {
    request_id: String,
    question: String,
    #[serde(default)]
    options: Vec<String>,
}

/// What the document comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    pub id: String,
    pub name: String,
    pub goal: String,
    pub members: Vec<Member>,
    pub ready: bool,
    /// Digest of the document without the inputs of finished jobs, which are
    /// not imported.
    pub digest: String,
    /// In their order; the first has number 1.
    pub jobs: Vec<Job>,
    pub messages: Vec<Message>,
    /// What somebody should know about the import.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub id: String,
    pub kind: JobKind,
    pub member: Option<String>,
    pub thread: String,
    pub source: Source,
    /// Numbers of other jobs, from 1.
    pub root: u32,
    pub parent: Option<u32>,
    pub text: String,
    pub phase: Phase,
    /// Where the newest turn begins.
    pub message: Option<String>,
    /// The run that this message started.
    pub message_run: Option<String>,
    pub input: Option<Input>,
    /// The answer and the run that gave it.
    pub result: Option<Answer>,
    pub run: Option<String>,
    pub failure: Option<String>,
    /// Milliseconds since the epoch; zero: unknown.
    pub created_at: u64,
    pub completed_at: Option<u64>,
}

/// The exact human message that a run was, or will be, started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    pub message_id: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub text: String,
    /// Cut here, since it was over the bound. Otherwise it is unknown whether
    /// it was cut before.
    pub cut: bool,
    /// Found in the shared messages, not with the job.
    pub from_messages: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub kind: MessageKind,
    /// The job's number.
    pub job: u32,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    Request,
    Result,
    Notice,
}

fn damaged(field: impl Into<String>, message: impl Into<String>) -> Error {
    Error::invalid("damaged_document", field, message)
}

/// Checks a document and says what it comes to.
pub fn read(document: &Value) -> Result<Imported> {
    let parsed = Document::deserialize(document)
        .map_err(|e| damaged("team", format!("This is not a team of the earlier plugin: {e}.")))?;
    let mut warnings = Vec::new();
    check_id("team.id", &parsed.id)?;
    let name = clean_name("team.name", &parsed.name, limits::TEAM_NAME, &mut warnings)?;
    check_text("team.goal", &parsed.goal)?;
    if !(limits::MEMBERS_MIN..=limits::MEMBERS_MAX).contains(&parsed.members.len()) {
        return Err(damaged("team.members", "A team has 2 to 8 members."));
    }
    let mut members = Vec::with_capacity(parsed.members.len());
    let mut seen = BTreeSet::new();
    for (i, member) in parsed.members.iter().enumerate() {
        check_id(&format!("team.members[{i}].id"), &member.id)?;
        check_host_id(&format!("team.members[{i}].thread_id"), &member.thread_id)?;
        if !seen.insert(member.id.clone()) || !seen.insert(member.thread_id.clone()) {
            return Err(damaged(format!("team.members[{i}]"), "Two members share an id or a conversation."));
        }
        members.push(Member {
            name: clean_name(&format!("team.members[{i}].name"), &member.name, limits::MEMBER_NAME, &mut warnings)?,
            agent: agent_name(&format!("team.members[{i}].agent"), &member.agent, &mut warnings)?,
            ..member.clone()
        });
    }
    let jobs = jobs(&parsed, &members, &mut warnings)?;
    let messages = messages(&parsed, &mut warnings)?;
    Ok(Imported {
        id: parsed.id.clone(),
        name,
        goal: parsed.goal.clone(),
        members,
        ready: parsed.ready,
        digest: digest(document, &jobs),
        jobs,
        messages,
        warnings,
    })
}

fn check_id(field: &str, id: &str) -> Result<()> {
    if text::is_id(id) { Ok(()) } else { Err(damaged(field, "This is no id of at most 64 plain characters.")) }
}

fn check_host_id(field: &str, id: &str) -> Result<()> {
    if !id.is_empty() && id.len() <= limits::THREAD_BYTES {
        return Ok(());
    }
    Err(damaged(field, format!("An id of a conversation, a run or a message has 1 to {} bytes.", limits::THREAD_BYTES)))
}

fn check_text(field: &str, given: &str) -> Result<()> {
    if given.len() <= limits::IMPORTED_TEXT_BYTES {
        return Ok(());
    }
    Err(damaged(field, format!("A text has at most {} bytes.", limits::IMPORTED_TEXT_BYTES)))
}

/// A name as it is, or, where it could not be made here, without the
/// characters that are at fault.
fn clean_name(field: &str, given: &str, bound: limits::Bound, warnings: &mut Vec<String>) -> Result<String> {
    if let Ok(name) = text::name(field, given, bound) {
        if name != given {
            warnings.push(format!("{field} was trimmed or composed."));
        }
        return Ok(name);
    }
    let plain: String =
        given.chars().filter(|c| text::name(field, &c.to_string(), bound).is_ok() || *c == ' ').collect();
    let chars: String = plain.chars().take(bound.chars).collect();
    let name = text::name(field, text::cut(&chars, bound.bytes), bound)
        .map_err(|_| damaged(field, "Nothing of this name can be kept."))?;
    warnings.push(format!("{field} was changed: it was too long or had characters that a name must not have."));
    Ok(name)
}

/// An agent's name is its host's: it is kept as it is where it can be one.
fn agent_name(field: &str, given: &str, warnings: &mut Vec<String>) -> Result<String> {
    text::agent_name(field, given, limits::AGENT_NAME)
        .or_else(|_| clean_name(field, given, limits::AGENT_NAME, warnings))
}

/// The whole document, without what is not imported. Keys are in order, so
/// that equal documents have equal digests.
fn digest(document: &Value, jobs: &[Job]) -> String {
    let mut kept = document.clone();
    if let Some(raw) = kept.get_mut("jobs").and_then(Value::as_array_mut) {
        for (raw, job) in raw.iter_mut().zip(jobs) {
            if job.phase.finished()
                && let Some(object) = raw.as_object_mut()
            {
                object.remove("input");
            }
        }
    }
    ids::digest("import", &[&serde_json::to_string(&kept).unwrap_or_default()])
}

fn jobs(document: &Document, members: &[Member], warnings: &mut Vec<String>) -> Result<Vec<Job>> {
    let count = |kind| document.jobs.iter().filter(|j| j.kind == kind).count();
    if count(JobKind::Request) > limits::REQUESTS_PER_TEAM as usize
        || count(JobKind::Receipt) > limits::RECEIPTS_PER_TEAM as usize
    {
        return Err(damaged("team.jobs", "A team has at most 100 requests and 100 receipts."));
    }
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    for (i, job) in document.jobs.iter().enumerate() {
        check_id(&format!("team.jobs[{i}].id"), &job.id)?;
        if numbers.insert(&job.id, i as u32 + 1).is_some() {
            return Err(damaged(format!("team.jobs[{i}].id"), "Two jobs have the same id."));
        }
    }
    let of = |id: &Option<String>| id.as_deref().and_then(|id| numbers.get(id).copied());
    // Older receipts name their request only in their text.
    let parents: Vec<Option<u32>> =
        document.jobs.iter().map(|raw| of(&raw.parent_id).or_else(|| of(&named_request(raw)))).collect();
    let roots: Vec<Option<u32>> = document.jobs.iter().map(|raw| of(&raw.root)).collect();
    let (given, roots) = (parents, chain_roots(&roots));
    let parents = without_cycles(&given);
    let mut frozen: BTreeSet<&str> = BTreeSet::new();
    let mut out = Vec::with_capacity(document.jobs.len());
    for (i, raw) in document.jobs.iter().enumerate() {
        let at = |name: &str| format!("team.jobs[{i}].{name}");
        check_host_id(&at("thread_id"), &raw.thread_id)?;
        check_text(&at("text"), &raw.text)?;
        for (name, id) in [
            ("run_id", &raw.run_id),
            ("initial_run_id", &raw.initial_run_id),
            ("result_run_id", &raw.result_run_id),
            ("result_message_id", &raw.result_message_id),
            ("source", &raw.source),
        ] {
            id.iter().filter(|id| !id.is_empty()).try_for_each(|id| check_host_id(&at(name), id))?;
        }
        let parent = parents[i];
        if given[i].is_some() && parent.is_none() {
            warnings.push(format!("Job {}: it descends from itself; its parent is left out.", raw.id));
        }
        let request = parent.filter(|_| raw.kind == JobKind::Receipt).map(|p| &document.jobs[p as usize - 1]);
        let member = raw.member_id.clone().filter(|id| members.iter().any(|m| m.id == *id));
        if member.is_none() && raw.kind == JobKind::Request {
            return Err(damaged(at("member_id"), "A request is for a member of the team."));
        }
        let phase = phase(raw, &at("status"), warnings)?;
        if phase.holds_slot() && !frozen.insert(&raw.thread_id) {
            return Err(damaged(at("status"), "Another job of this conversation is under way; only one can be."));
        }
        if raw.kind == JobKind::Receipt && request.is_none() && !phase.finished() {
            return Err(damaged(at("parent_id"), "An unfinished receipt names no request of this team."));
        }
        let input = input(raw);
        input.iter().try_for_each(|input| check_text(&at("input"), &input.text))?;
        if matches!(phase, Phase::Starting) && input.is_none() {
            return Err(damaged(at("input"), "The frozen input of this job cannot be read."));
        }
        let result = result(raw, document, &phase, &at("result"), warnings)?;
        out.push(Job {
            id: raw.id.clone(),
            kind: raw.kind,
            member: member.clone(),
            thread: raw.thread_id.clone(),
            source: source(raw, request, members),
            root: roots[i],
            parent,
            text: raw.text.clone(),
            message: raw.result_message_id.clone().or_else(|| input.as_ref().map(|i| i.message_id.clone())),
            // An answer to a question has a message, and so a run, of its own.
            message_run: raw.initial_run_id.clone().filter(|_| raw.result_message_id.is_none()),
            input: input.filter(|_| !phase.finished()),
            result,
            run: raw.result_run_id.clone().or_else(|| raw.run_id.clone()),
            failure: (phase == Phase::Failed).then(|| failure(raw)),
            created_at: raw.created_at.as_deref().and_then(time::parse).unwrap_or(0),
            completed_at: raw.completed_at.as_deref().and_then(time::parse),
            phase,
        });
    }
    Ok(out)
}

/// The jobs' parents by number, without those that lead back to the job
/// itself: following them comes to an end.
fn without_cycles(parents: &[Option<u32>]) -> Vec<Option<u32>> {
    let mut kept = parents.to_vec();
    for n in 1..=parents.len() as u32 {
        let mut at = kept[n as usize - 1];
        // A circle that it only leads to is opened at one of its own jobs.
        for _ in 0..parents.len() {
            match at {
                Some(parent) if parent != n => at = kept[parent as usize - 1],
                _ => break,
            }
        }
        if at == Some(n) {
            kept[n as usize - 1] = None;
        }
    }
    kept
}

/// The root of each job's chain, which is a root of its own: a job without one
/// is its own, and so is one whose roots lead nowhere.
fn chain_roots(roots: &[Option<u32>]) -> Vec<u32> {
    let root_of = |n: u32| roots[n as usize - 1].unwrap_or(n);
    let found = (1..=roots.len() as u32).map(|n| {
        let mut root = root_of(n);
        for _ in 0..roots.len() {
            root = root_of(root);
        }
        if root_of(root) == root { root } else { n }
    });
    found.collect()
}

/// The request that a receipt's document names.
fn named_request(raw: &RawJob) -> Option<String> {
    if raw.kind != JobKind::Receipt {
        return None;
    }
    let document: Value = serde_json::from_str(&raw.text).ok()?;
    document.get("request_id")?.as_str().map(ToString::to_string)
}

fn source(raw: &RawJob, request: Option<&RawJob>, members: &[Member]) -> Source {
    if raw.kind == JobKind::Receipt {
        // From the member that did the work.
        return match request {
            Some(request) => Source::Member {
                member: request.member_id.clone().unwrap_or_default(),
                thread: request.thread_id.clone(),
            },
            None => Source::Owner,
        };
    }
    match &raw.source {
        None => Source::Owner,
        Some(thread) => match members.iter().find(|m| m.thread_id == *thread) {
            Some(member) => Source::Member { member: member.id.clone(), thread: thread.clone() },
            None => Source::Conversation { thread: thread.clone() },
        },
    }
}

fn phase(raw: &RawJob, field: &str, warnings: &mut Vec<String>) -> Result<Phase> {
    let key = || raw.id.clone();
    let unknown = |run: Option<String>| Phase::Unknown { run, key: key(), answer: None, cancel: false };
    let frozen = raw.input.as_ref().is_some_and(|i| !i.is_null());
    Ok(match (raw.status.as_str(), raw.run_id.clone()) {
        ("completed", _) => Phase::Completed,
        ("failed", _) => Phase::Failed,
        ("cancelled", _) => Phase::Cancelled,
        // Frozen: the host may have been asked before.
        ("queued" | "starting", None) => {
            if frozen {
                Phase::Starting
            } else {
                Phase::Queued
            }
        }
        ("queued" | "starting" | "running", Some(run)) => Phase::Running { run },
        ("running", None) if frozen => Phase::Starting,
        ("waiting_input", Some(run)) => {
            if raw.resume.as_ref().is_some_and(|r| !r.is_null()) {
                warnings
                    .push(format!("Job {}: an answer that was not sent yet is not taken over; answer again.", raw.id));
            }
            let wait = match &raw.clarification {
                Some(c) => asked::question(&c.request_id, &c.question, &c.options),
                // Which ones are open is read from the conversation.
                None => Wait::Interrupts { open: Vec::new() },
            };
            Phase::Waiting { run, wait }
        }
        ("cancelling", run) => Phase::Cancelling { run, key: key(), accepted: false },
        ("resuming" | "unknown" | "interrupted", run) => {
            warnings.push(format!(
                "Job {}: whether its answer was accepted is not known; look at its conversation, then settle it.",
                raw.id
            ));
            unknown(run.or_else(|| raw.initial_run_id.clone()))
        }
        (status, _) => {
            return Err(damaged(field, format!("The status \"{status}\" with this run and input means nothing here.")));
        }
    })
}

/// The one human message of a frozen input.
fn input(raw: &RawJob) -> Option<Input> {
    let messages = raw.input.as_ref()?.get("messages")?.as_array()?;
    let [message] = messages.as_slice() else { return None };
    Some(Input {
        message_id: message.get("id")?.as_str()?.to_string(),
        text: message.get("content")?.as_str()?.to_string(),
    })
}

/// The answer with the job, or the one that the shared messages still have.
fn result(
    raw: &RawJob,
    document: &Document,
    phase: &Phase,
    field: &str,
    warnings: &mut Vec<String>,
) -> Result<Option<Answer>> {
    if !matches!(phase, Phase::Completed | Phase::Failed) {
        return Ok(None);
    }
    let said = |m: &&RawMessage| m.job_id == raw.id && message_kind(&m.kind) != Some(MessageKind::Request);
    let (answer, from_messages) = match &raw.result {
        Some(answer) => (answer.as_str(), false),
        None => match document.messages.iter().rev().find(said) {
            Some(message) => (message.text.as_str(), true),
            None => return Ok(None),
        },
    };
    check_text(field, answer)?;
    let kept = text::cut(answer, limits::IMPORTED_ANSWER_BYTES);
    let cut = kept.len() < answer.len();
    if cut {
        warnings.push(format!("Job {}: its answer was cut to {} bytes.", raw.id, limits::IMPORTED_ANSWER_BYTES));
    }
    Ok(Some(Answer { text: kept.to_string(), cut, from_messages }))
}

fn failure(raw: &RawJob) -> String {
    let why = match &raw.error {
        Some(Value::String(why)) => why.clone(),
        Some(Value::Null) | None => "It failed in the earlier plugin; no reason was stored.".into(),
        Some(other) => serde_json::to_string(other).unwrap_or_default(),
    };
    text::excerpt(&why, limits::EXCERPT_BYTES).0
}

fn message_kind(kind: &str) -> Option<MessageKind> {
    match kind {
        "request" => Some(MessageKind::Request),
        "completed" => Some(MessageKind::Result),
        "failed" | "cancelled" => Some(MessageKind::Notice),
        _ => None,
    }
}

fn messages(document: &Document, warnings: &mut Vec<String>) -> Result<Vec<Message>> {
    let kept = document.messages.len().saturating_sub(limits::MESSAGES_KEPT as usize);
    let mut out = Vec::new();
    for (i, raw) in document.messages.iter().enumerate().skip(kept) {
        check_text(&format!("team.messages[{i}].text"), &raw.text)?;
        let job = document.jobs.iter().position(|j| j.id == raw.job_id);
        match (job, message_kind(&raw.kind)) {
            (Some(job), Some(kind)) => out.push(Message { kind, job: job as u32 + 1, text: raw.text.clone() }),
            _ => warnings.push(format!("Message {i} was left out: it belongs to no job or is of no known kind.")),
        }
    }
    Ok(out)
}
