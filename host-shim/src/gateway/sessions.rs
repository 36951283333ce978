//! A user's own sessions: where it is signed in, and signing out from there.
//! Another user's session answers like one that does not exist.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::auth::Admitted;
use super::json::{MAX_BODY, Unread, text_of};
use super::{App, Problem};
use crate::users::{Ending, Identity, Via};

/// The session with which this caller came; a token's caller came with none.
fn current(identity: &Identity) -> Option<&str> {
    (identity.via == Via::Session).then_some(identity.id.as_str())
}

/// `GET /api/sessions`: those that are valid now.
pub(super) async fn list(State(app): State<App>, call: Admitted) -> Result<Json<Value>, Problem> {
    let Admitted { caller, turn } = call;
    let user = caller.user().to_owned();
    let all = turn.read(move || app.parts.users.sessions(Some(&user))).await?;
    let current = current(&caller.0);
    let all: Vec<Value> = all
        .into_iter()
        .map(|session| {
            json!({
                "current": current == Some(session.id.as_str()),
                "id": session.id,
                "created_at": session.created_at,
                "last_used_at": session.last_used_at,
                "expires_at": session.expires_at,
            })
        })
        .collect();
    Ok(Json(json!({ "sessions": all })))
}

/// `POST /api/sessions/end {"id"}`, or `{"others": true}`: ends one session, or
/// all but the one with which it is called. Says how many.
pub(super) async fn end(
    State(app): State<App>,
    Admitted { caller, turn }: Admitted,
    body: Unread,
) -> Result<Json<Value>, Problem> {
    let members = body.members(MAX_BODY, &["id", "others"]).await?;
    let ending = match (members.get("id"), members.get("others")) {
        (Some(_), None) => Ending::One(text_of(&members, "id")?),
        (None, Some(Value::Bool(true))) => match current(&caller.0) {
            Some(id) => Ending::Others(id.to_owned()),
            None => Ending::All,
        },
        (None, Some(_)) => return Err(Problem::invalid("true_required", "Give true, or leave it out.", "others")),
        _ => {
            let detail = "Give either `id`, to end one session, or `others`: true, to end all others.";
            return Err(Problem::invalid("one_member_required", detail, "id"));
        }
    };
    let user = caller.user().to_owned();
    let ended = turn.run(async move { app.parts.users.end_sessions(Some(&user), ending).await }).await?;
    tracing::info!(ended, "a user ended sessions of its own");
    Ok(Json(json!({ "ended": ended })))
}
