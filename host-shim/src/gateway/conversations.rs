//! Conversations: reading them, and posting a human message, with mentions of
//! team members that a person picked.
//!
//! **Order.** A message with mentions is first dispatched to all picked members
//! (all or none), and then posted to the conversation's own agent. So a wrong
//! reference is refused before anything is queued, and before anything is
//! in the conversation. If the post then fails (the agent became busy in
//! between), the answer says so and holds the dispatch's result. Both halves
//! go by the message's id: repeating the request with the same `message_id`
//! does what is still missing and nothing twice. Before the dispatch a busy
//! conversation is refused, and so is a user with too many runs at work, unless
//! the message is in the conversation already.
//!
//! **A new conversation** has an id made from the user and the message's id,
//! so that a repeated request finds the conversation that the first one made.
//! One whose dispatch was refused stays behind empty and is used by the
//! repetition.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::actions::query_of;
use super::auth::Admitted;
use super::calls::blocking;
use super::json::{MAX_BODY, Unread};
use super::{App, Problem};
use crate::agents::host::{Post, Transcript};
use crate::agents::runs::{Cancellation, Marker, RunError, ThreadState};
use crate::contract::{Caller, MentionMessage, MentionReference};

/// The longest text of a message, in bytes.
const MAX_TEXT: usize = 100_000;
/// The longest message id: characters and bytes.
const MAX_MESSAGE_ID: (usize, usize) = (128, 256);
/// The longest id of a team, member or conversation, in bytes; and agent name.
const MAX_ID: usize = 64;
const MAX_AGENT: usize = 256;
/// How many mentions of one message are looked at; more are refused.
const MAX_MENTIONS: usize = 16;
/// The longest title of a new conversation, in characters.
const MAX_TITLE: usize = 80;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    limit: Option<u32>,
}

/// `GET /api/conversations?limit=`: the caller's, newest first; at most 200,
/// by default 50.
pub(super) async fn list(
    State(app): State<App>,
    Admitted { caller, turn }: Admitted,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let ListQuery { limit } = query_of(&uri)?;
    let limit = limit.unwrap_or(50).clamp(1, 200);
    let conversations = turn.read(move || app.parts.agents.conversations(caller.user(), limit)).await?;
    Ok(Json(json!({ "conversations": conversations })))
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadQuery {
    after: Option<u64>,
    limit: Option<u32>,
}

/// `GET /api/conversations/{thread}?after=&limit=`: one conversation with its
/// messages after the given number, oldest first; at most 500, by default 100,
/// and fewer where they are long: `more` says whether there are others.
pub(super) async fn read(
    State(app): State<App>,
    Admitted { caller, turn }: Admitted,
    thread: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Json<Transcript>, Problem> {
    let thread = thread_id(thread)?;
    let ReadQuery { after, limit } = query_of(&uri)?;
    let limit = limit.unwrap_or(100).clamp(1, 500);
    turn.read(move || app.parts.agents.conversation(caller.user(), &thread, after, limit)).await.map(Json)
}

/// `POST /api/conversations {agent, message_id, text, mentions?}`: begins a
/// conversation with its first message.
pub(super) async fn begin(
    State(app): State<App>,
    Admitted { caller, turn }: Admitted,
    body: Unread,
) -> Result<Json<Value>, Problem> {
    let body = body.members(MAX_BODY, &["agent", "message_id", "text", "mentions"]).await?;
    let agent = text(&body, "agent", MAX_AGENT)?;
    let message = Message::read(&body)?;
    let user = caller.user().to_owned();
    let thread = new_thread_id(&user, &message.id);
    if !app.parts.agents.catalogue(&user).iter().any(|card| card.name == agent) {
        return Err(Problem {
            field: Some("agent".into()),
            ..Problem::new(
                StatusCode::NOT_FOUND,
                "agent_not_found",
                "You have no such agent; GET /api/agents lists yours.",
            )
        });
    }
    let work = {
        let app = app.clone();
        async move {
            let runs = app.parts.agents.capability(&user).runs;
            // Before the conversation is made: refused posts leave none behind.
            refuse_without_room(&app, &user, &thread, &message.id).await?;
            let title: String =
                message.text.lines().next().unwrap_or_default().trim().chars().take(MAX_TITLE).collect();
            match runs.create_thread(&thread, &agent, &title, "").await {
                Ok(()) => {}
                // The agent was in the catalogue, so the id is another agent's.
                Err(RunError::Rejected(_)) => return Err(RunError::KeyConflict.into()),
                Err(error) => return Err(error.into()),
            }
            deliver(&app, &user, thread, message).await
        }
    };
    turn.run::<_, Problem, _>(work).await.map(Json)
}

/// `POST /api/conversations/{thread}/messages {message_id, text, mentions?}`.
pub(super) async fn post(
    State(app): State<App>,
    Admitted { caller, turn }: Admitted,
    thread: Result<Path<String>, PathRejection>,
    body: Unread,
) -> Result<Json<Value>, Problem> {
    let thread = thread_id(thread)?;
    let body = body.members(MAX_BODY, &["message_id", "text", "mentions"]).await?;
    let message = Message::read(&body)?;
    let user = caller.user().to_owned();
    let work = {
        let app = app.clone();
        async move { deliver(&app, &user, thread, message).await }
    };
    turn.run::<_, Problem, _>(work).await.map(Json)
}

/// `POST /api/conversations/{thread}/stop {run}`: ends the run that is at work
/// in the conversation, or that waits there for an approval, which is then
/// withdrawn. It is named, so that a late press ends no other. A run that has
/// ended already stays as it is.
pub(super) async fn stop(
    State(app): State<App>,
    Admitted { caller, turn }: Admitted,
    thread: Result<Path<String>, PathRejection>,
    body: Unread,
) -> Result<Json<Value>, Problem> {
    let thread = thread_id(thread)?;
    let body = body.members(MAX_BODY, &["run"]).await?;
    let run = text(&body, "run", MAX_ID)?;
    let runs = app.parts.agents.capability(caller.user()).runs;
    let work = async move {
        match runs.cancel(&thread, &run).await {
            Ok(cancelled) => Ok(json!({ "thread": thread, "run": run, "stopped": cancelled == Cancellation::Stopped })),
            Err(RunError::NotFound(_)) => Err(Problem {
                field: Some("run".into()),
                ..Problem::new(
                    StatusCode::NOT_FOUND,
                    "run_not_found",
                    "No conversation of yours has this run. Read the conversation: it names the run that can be stopped.",
                )
            }),
            Err(error) => Err(error.into()),
        }
    };
    turn.run::<_, Problem, _>(work).await.map(Json)
}

/// Dispatches the mentions, then posts; see the module's text.
async fn deliver(app: &App, user: &str, thread: String, message: Message) -> Result<Value, Problem> {
    let mut dispatched = None;
    if !message.mentions.is_empty() {
        refuse_if_busy(app, user, &thread, &message.id).await?;
        refuse_without_room(app, user, &thread, &message.id).await?;
        let caller = Caller { thread: Some(thread.clone()), ..Caller::owner(user) };
        let mention =
            MentionMessage { id: message.id.clone(), text: message.text.clone(), references: message.mentions };
        let runs = app.parts.agents.capability(user);
        let answer = app.parts.team.dispatch_mention(caller, runs, mention).await.map_err(|error| {
            let mut problem = Problem::from(error);
            // The component's word for what this route calls mentions.
            if let Some(rest) = problem.field.as_deref().and_then(|field| field.strip_prefix("references")) {
                problem.field = Some(format!("mentions{rest}"));
            }
            problem
        })?;
        dispatched = Some(serde_json::from_str::<Value>(&answer).map_err(|_| Problem::internal())?);
    }
    let post = Post { thread: Some(thread), agent: None, message_id: message.id, text: message.text };
    match app.parts.agents.post(user, post).await {
        Ok(posted) => {
            let mut answer = json!({ "thread": posted.thread, "run": posted.run });
            if let Some(dispatched) = dispatched {
                answer["mentions"] = dispatched;
            }
            Ok(answer)
        }
        Err(error) => {
            let mut problem = Problem::from(error);
            if let Some(dispatched) = dispatched {
                problem.detail.push_str(
                    " The members that you mentioned have the message; to post it here too, repeat this request with \
                     the same message_id.",
                );
                problem.facts = Some(json!({ "mentions": dispatched }));
            }
            Err(problem)
        }
    }
}

/// Refuses a conversation of somebody else, and one whose agent is at work on
/// another message.
async fn refuse_if_busy(app: &App, user: &str, thread: &str, message_id: &str) -> Result<(), Problem> {
    let known = {
        let (app, user, thread) = (app.clone(), user.to_owned(), thread.to_owned());
        blocking(move || app.parts.agents.conversation(&user, &thread, None, 1)).await?
    };
    if known.conversation.active_run.is_none() {
        return Ok(());
    }
    match around(app, user, thread, message_id).await {
        Ok(state) if !state.found && state.active_run.is_some() => Err(RunError::Busy(String::new()).into()),
        Ok(_) | Err(RunError::NotFound(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a post for which its user has no room, unless it was made before.
async fn refuse_without_room(app: &App, user: &str, thread: &str, message_id: &str) -> Result<(), Problem> {
    let room = {
        let (app, user) = (app.clone(), user.to_owned());
        blocking(move || Ok::<_, Problem>(app.parts.agents.room(&user))).await?
    };
    let Err(full) = room else { return Ok(()) };
    match around(app, user, thread, message_id).await {
        Ok(state) if state.found => Ok(()),
        _ => Err(full.into()),
    }
}

/// The conversation from this message on.
async fn around(app: &App, user: &str, thread: &str, message_id: &str) -> Result<ThreadState, RunError> {
    let marker = Marker { message_id: message_id.to_owned(), run: None };
    app.parts.agents.capability(user).runs.state(thread, Some(&marker), None).await
}

/// A human message as a client sends it.
struct Message {
    id: String,
    text: String,
    mentions: Vec<MentionReference>,
}

impl Message {
    fn read(members: &Map<String, Value>) -> Result<Self, Problem> {
        let id = text(members, "message_id", MAX_MESSAGE_ID.1)?;
        if id.chars().count() > MAX_MESSAGE_ID.0 {
            return Err(too_long("message_id", &format!("{} characters", MAX_MESSAGE_ID.0)));
        }
        Ok(Self { id, text: text(members, "text", MAX_TEXT)?, mentions: mentions(members)? })
    }
}

fn too_long(field: &str, bound: &str) -> Problem {
    Problem::invalid("too_long", format!("Give at most {bound} here."), field)
}

/// A text that is there, not blank, without U+0000, of at most `max` bytes.
fn text(members: &Map<String, Value>, field: &str, max: usize) -> Result<String, Problem> {
    text_at(members, field, field, max)
}

fn text_at(members: &Map<String, Value>, name: &str, field: &str, max: usize) -> Result<String, Problem> {
    let value = members
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| Problem::invalid("text_required", "Give a text here.", field))?;
    // U+FEFF counts as white space where the page trims.
    if value.chars().all(|c| c.is_whitespace() || c == '\u{feff}') {
        return Err(Problem::invalid("text_required", "Give a text that is not blank.", field));
    }
    if value.contains('\0') {
        return Err(Problem::invalid("nul_refused", "Text cannot hold U+0000.", field));
    }
    if value.len() > max {
        return Err(too_long(field, &format!("{max} bytes of UTF-8")));
    }
    Ok(value.to_owned())
}

/// The references that were picked; absent, null and empty are none.
fn mentions(members: &Map<String, Value>) -> Result<Vec<MentionReference>, Problem> {
    let items = match members.get("mentions") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(Problem::invalid("list_required", "Give a list of {team, member}.", "mentions")),
    };
    if items.len() > MAX_MENTIONS {
        return Err(too_long("mentions", &format!("{MAX_MENTIONS} references")));
    }
    let mut references = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let field = format!("mentions[{index}]");
        let object = item
            .as_object()
            .ok_or_else(|| Problem::invalid("object_required", "Give an object {team, member}.", field.clone()))?;
        if let Some(name) = object.keys().find(|name| !["team", "member"].contains(&name.as_str())) {
            let name: String = name.chars().take(80).collect();
            let detail = "This member is not known here; leave it out.";
            return Err(Problem::invalid("unknown_field", detail, format!("{field}.{name}")));
        }
        let team = text_at(object, "team", &format!("{field}.team"), MAX_ID)?;
        let member = text_at(object, "member", &format!("{field}.member"), MAX_ID)?;
        references.push(MentionReference { team, member });
    }
    Ok(references)
}

/// The id in the path. A malformed id gets the same answer as an unknown one.
fn thread_id(path: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    match path {
        Ok(Path(thread)) if !thread.is_empty() && thread.len() <= 256 && !thread.contains('\0') => Ok(thread),
        _ => Err(RunError::NotFound(String::new()).into()),
    }
}

/// The id of the conversation that this message of this user begins.
fn new_thread_id(user: &str, message_id: &str) -> String {
    let digest = Sha256::digest(json!(["conversation", user, message_id]).to_string());
    digest.iter().take(20).map(|byte| format!("{byte:02x}")).collect()
}
