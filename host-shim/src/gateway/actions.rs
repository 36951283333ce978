//! The component's actions, mention search and tool definitions; the agents.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::auth::{Admitted, SignedIn};
use super::json::{MAX_BODY, Unread};
use super::{App, Problem};
use crate::contract::Caller;

/// The longest mention query that is passed on, in characters; the component
/// has a bound of its own below it.
const MAX_QUERY: usize = 1000;

/// How the names of actions begin that take over a whole document, and the
/// largest body of one.
const IMPORTS: &str = "import_";
const MAX_IMPORT: usize = 8 << 20;

/// `GET …/actions`: what can be done, with JSON Schemas.
pub(super) async fn list(State(app): State<App>, call: Admitted) -> Result<Json<Value>, Problem> {
    let team = app.parts.team.clone();
    let actions = call.turn.run(async move { team.actions().await }).await?;
    let actions: Vec<Value> = actions
        .into_iter()
        .map(|action| {
            json!({
                "name": action.name,
                "description": action.description,
                "input_schema": action.input_schema,
                "writes": !action.read_only,
            })
        })
        .collect();
    Ok(Json(json!({ "actions": actions })))
}

/// `POST …/actions/{action}`: the payload is passed to the component as it
/// was sent, the answer to the client as it was given.
pub(super) async fn call(
    State(app): State<App>,
    Admitted { caller, turn }: Admitted,
    action: Result<Path<String>, PathRejection>,
    body: Unread,
) -> Result<Response, Problem> {
    let named = |name: &str| {
        !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let action = action.ok().map(|Path(name)| name).filter(|name| named(name)).ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "action_not_found", "There is no such action; list them with GET.")
    })?;
    let payload = body.text(if action.starts_with(IMPORTS) { MAX_IMPORT } else { MAX_BODY }).await?;
    let team = app.parts.team.clone();
    let runs = app.parts.agents.capability(caller.user());
    let who = Caller::owner(caller.user());
    let answer = turn.run(async move { team.call_action(who, runs, &action, &payload).await }).await?;
    Ok(json_text(answer))
}

/// JSON text as an answer.
pub(super) fn json_text(text: String) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct MentionQuery {
    #[serde(default)]
    query: String,
}

/// `GET …/mentions?query=`: at most 16 members whose names match.
pub(super) async fn mentions(State(app): State<App>, call: Admitted, uri: Uri) -> Result<Json<Value>, Problem> {
    let MentionQuery { query } = query_of(&uri)?;
    if query.chars().count() > MAX_QUERY {
        return Err(Problem::invalid("too_long", "Search for fewer characters.", "query"));
    }
    let team = app.parts.team.clone();
    let who = Caller::owner(call.user());
    let hits = call.turn.run(async move { team.search_mentions(who, &query).await }).await?;
    Ok(Json(json!({ "mentions": hits })))
}

/// `GET …/tools`: the tools that members have, with JSON Schemas.
pub(super) async fn tools(State(app): State<App>, call: Admitted) -> Result<Json<Value>, Problem> {
    let team = app.parts.team.clone();
    let tools = call.turn.run(async move { team.tools().await }).await?;
    let tools: Vec<Value> = tools
        .into_iter()
        .map(|tool| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.input_schema }))
        .collect();
    Ok(Json(json!({ "tools": tools })))
}

/// `GET /api/agents`: the agents that the caller may run.
pub(super) async fn agents(State(app): State<App>, caller: SignedIn) -> Json<Value> {
    Json(json!({ "agents": app.parts.agents.catalogue(caller.user()) }))
}

/// `GET /livez`: that the process answers. It asks nothing of the store: a full
/// disk does not get better when the process is started again.
pub(super) async fn alive() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// `GET /readyz`, and `/healthz`: that the server can do its work. For anyone who reaches it,
/// so it tells no more than what is wrong.
pub(super) async fn health(State(app): State<App>) -> Response {
    match app.parts.health.check().await {
        Ok(()) => Json(json!({ "status": "ok" })).into_response(),
        Err(why) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unhealthy", why).retry(5).into_response(),
    }
}

/// The query of an address; unknown or repeated parameters are refused.
pub(super) fn query_of<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    axum::extract::Query::try_from_uri(uri).map(|query| query.0).map_err(|_| {
        Problem::invalid("invalid_query", "The address's query has an unknown, repeated or unusable parameter.", "")
    })
}
