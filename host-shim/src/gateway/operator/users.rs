//! The operator's routes for users, their tokens and their sign-in links. No
//! secret is told but that of a new token or link, to the one who made it.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::Uri;
use serde_json::{Value, json};

use super::AsOperator;
use crate::gateway::actions::query_of;
use crate::gateway::json::{MAX_BODY, Unread, text_of};
use crate::gateway::problem::no_such_route;
use crate::gateway::{App, Problem};
use crate::users::UserError;

/// Whose things are listed; absent: everybody's.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    pub(super) user: Option<String>,
}

/// A part of the path.
async fn part(path: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    match path {
        Ok(Path(part)) => Ok(part),
        Err(_) => Err(no_such_route().await),
    }
}

/// `GET /api/operator/users`
pub(in crate::gateway) async fn list(
    State(app): State<App>,
    AsOperator(turn): AsOperator,
) -> Result<Json<Value>, Problem> {
    let all = turn.read(move || app.parts.users.list()).await?;
    Ok(Json(json!({ "users": all })))
}

/// `POST /api/operator/users {"user"}`: adds an enabled user.
pub(in crate::gateway) async fn add(
    State(app): State<App>,
    AsOperator(turn): AsOperator,
    body: Unread,
) -> Result<Json<Value>, Problem> {
    let user = text_of(&body.members(MAX_BODY, &["user"]).await?, "user")?;
    let user = turn.run(async move { app.parts.users.add(&user).await }).await?;
    tracing::info!("the operator added a user");
    Ok(Json(json!({ "user": user })))
}

/// `POST /api/operator/users/{user} {"enabled"}`: disables a user, or enables it
/// again. Harmless when repeated.
pub(in crate::gateway) async fn change(
    State(app): State<App>,
    AsOperator(turn): AsOperator,
    user: Result<Path<String>, PathRejection>,
    body: Unread,
) -> Result<Json<Value>, Problem> {
    let user = part(user).await?;
    let members = body.members(MAX_BODY, &["enabled"]).await?;
    let enabled = members
        .get("enabled")
        .and_then(Value::as_bool)
        .ok_or_else(|| Problem::invalid("boolean_required", "Give true or false.", "enabled"))?;
    let work = async move {
        let user = app.parts.users.set_enabled(&user, enabled).await?;
        if !enabled {
            // Its teams rest at once. The agents would refuse each of their steps,
            // and the teams would keep that as a fault of their own.
            app.parts.team.forget(&user.id);
        }
        Ok::<_, UserError>(user)
    };
    let user = turn.run(work).await?;
    tracing::info!(enabled, "the operator changed a user");
    Ok(Json(json!({ "user": user })))
}

/// `GET /api/operator/tokens?user=`
pub(in crate::gateway) async fn tokens(
    State(app): State<App>,
    AsOperator(turn): AsOperator,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let Of { user } = query_of(&uri)?;
    let all = turn.read(move || app.parts.users.tokens(user.as_deref())).await?;
    Ok(Json(json!({ "tokens": all })))
}

/// `POST /api/operator/tokens {"user", "name"}`: a new token. Its secret is told
/// in this answer and never again.
pub(in crate::gateway) async fn add_token(
    State(app): State<App>,
    AsOperator(turn): AsOperator,
    body: Unread,
) -> Result<Json<Value>, Problem> {
    let members = body.members(MAX_BODY, &["user", "name"]).await?;
    let (user, name) = (text_of(&members, "user")?, text_of(&members, "name")?);
    let token = turn.run(async move { app.parts.users.add_token(&user, &name).await }).await?;
    tracing::info!("the operator added a token");
    Ok(Json(json!({ "token": token })))
}

/// `POST /api/operator/tokens/{id}/revoke {}`: ends a token. Harmless when
/// repeated.
pub(in crate::gateway) async fn revoke_token(
    State(app): State<App>,
    AsOperator(turn): AsOperator,
    id: Result<Path<String>, PathRejection>,
    body: Unread,
) -> Result<Json<Value>, Problem> {
    let id = part(id).await?;
    body.members(MAX_BODY, &[]).await?;
    let revoked = id.clone();
    turn.run(async move { app.parts.users.revoke_token(&id).await }).await?;
    tracing::info!("the operator revoked a token");
    Ok(Json(json!({ "revoked": revoked })))
}

/// `POST /api/operator/links {"user"}`: a new sign-in link for this user.
pub(in crate::gateway) async fn link(
    State(app): State<App>,
    AsOperator(turn): AsOperator,
    body: Unread,
) -> Result<Json<Value>, Problem> {
    let user = text_of(&body.members(MAX_BODY, &["user"]).await?, "user")?;
    let link = turn.run(async move { app.parts.users.sign_in_link(&user).await }).await?;
    tracing::info!("the operator made a sign-in link");
    Ok(Json(json!({ "path": link.address(""), "expires_at": link.expires_at() })))
}
