//! The operator's routes for sessions: who is signed in, and ending that.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde_json::{Value, json};

use super::AsOperator;
use super::users::Of;
use crate::gateway::actions::query_of;
use crate::gateway::json::{MAX_BODY, Unread, text_of};
use crate::gateway::{App, Problem};
use crate::users::Ending;

/// `GET /api/operator/sessions?user=`: those that are valid now.
pub(in crate::gateway) async fn list(
    State(app): State<App>,
    AsOperator(turn): AsOperator,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let Of { user } = query_of(&uri)?;
    let all = turn.read(move || app.parts.users.sessions(user.as_deref())).await?;
    Ok(Json(json!({ "sessions": all })))
}

/// `POST /api/operator/sessions/end {"id"}`, or `{"user"}`: ends one session, or
/// all of a user. Says how many.
pub(in crate::gateway) async fn end(
    State(app): State<App>,
    AsOperator(turn): AsOperator,
    body: Unread,
) -> Result<Json<Value>, Problem> {
    let members = body.members(MAX_BODY, &["id", "user"]).await?;
    let (user, ending) = match (members.contains_key("id"), members.contains_key("user")) {
        (true, false) => (None, Ending::One(text_of(&members, "id")?)),
        (false, true) => (Some(text_of(&members, "user")?), Ending::All),
        _ => {
            let detail = "Give either `id`, to end one session, or `user`, to end all of a user.";
            return Err(Problem::invalid("one_member_required", detail, "id"));
        }
    };
    let ended = turn.run(async move { app.parts.users.end_sessions(user.as_deref(), ending).await }).await?;
    tracing::info!(ended, "the operator ended sessions");
    Ok(Json(json!({ "ended": ended })))
}
