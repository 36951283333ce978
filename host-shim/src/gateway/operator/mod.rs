//! The operator's routes: who holds the slots, and ending one of those jobs;
//! and in the files beside this one, who may sign in and how. They tell ids,
//! states and times of all users' jobs, and no texts.

pub(super) mod sessions;
pub(super) mod users;

use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;

use super::actions::json_text;
use super::auth::bearer;
use super::calls::Turn;
use super::json::{MAX_BODY, Unread, text_of};
use super::{App, Problem};
use crate::contract::TeamRef;

/// The operator, with a place for the call. As an argument of a handler it
/// refuses everybody else before the body is looked at.
pub(super) struct AsOperator(Turn);

impl FromRequestParts<App> for AsOperator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let admitted = bearer(&parts.headers).is_some_and(|secret| app.parts.operator.admits(secret));
        if admitted { Ok(Self(app.calls.enter(NAME).await?)) } else { Err(not_the_operator()) }
    }
}

fn not_the_operator() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "operator_only",
        "Only the operator may do this: with the token that the running server wrote into its data folder.",
    )
}

/// The operator's calls share the bound that one user has. No user has this
/// name: it is not an id.
const NAME: &str = "(operator)";

/// `GET /api/operator/slots`: a JSON array, as the component gives it.
pub(super) async fn slots(State(app): State<App>, AsOperator(turn): AsOperator) -> Result<Response, Problem> {
    let team = app.parts.team.clone();
    Ok(json_text(turn.run(async move { team.slots().await }).await?))
}

/// `POST /api/operator/settle {"owner", "team", "job"}`: ends a job that holds a
/// slot as failed. Harmless when repeated.
pub(super) async fn settle(
    State(app): State<App>,
    AsOperator(turn): AsOperator,
    body: Unread,
) -> Result<Response, Problem> {
    let members = body.members(MAX_BODY, &["owner", "team", "job"]).await?;
    let text = |name: &str| text_of(&members, name);
    let (at, job) = (TeamRef { owner: text("owner")?, team: text("team")? }, text("job")?);
    let team = app.parts.team.clone();
    let answer = turn.run(async move { team.settle(&at, &job).await }).await?;
    tracing::info!("the operator settled a job");
    Ok(json_text(answer))
}
