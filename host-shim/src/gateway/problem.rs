//! Refusals over HTTP: `application/problem+json` (RFC 9457).
//!
//! `type` is `about:blank`, so `title` is the status in words; `code` is what
//! programs compare and `detail` what people read. `field` names the argument
//! at fault, `facts` holds more for programs.
//!
//! | kind of refusal | status |
//! |---|---|
//! | invalid | 400 |
//! | denied | 403 |
//! | not found | 404 |
//! | conflict | 409 |
//! | limit | 422: a bound of what is stored; waiting alone does not help |
//! | unavailable | 503 with `Retry-After`; nothing happened |
//! | unknown | 504; repeat the same call with the same key |
//! | internal | 500 |
//!
//! 429: too many calls, streams or runs of one user at once.

use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::agents::runs::RunError;
use crate::contract::{CallError, ErrorKind, FaultCode, Refusal};
use crate::storage::tables::outcome_unknown;
use crate::users::{AuthError, UserError};

/// A refusal as it is sent. Its text holds no path, no secret and nothing of
/// another owner.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub status: StatusCode,
    pub code: String,
    pub detail: String,
    pub field: Option<String>,
    pub facts: Option<Value>,
    /// Seconds after which the same call may succeed.
    pub retry_after: Option<u32>,
}

impl Problem {
    /// A refusal of the gateway itself.
    pub fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Self {
        Self { status, code: code.to_owned(), detail: detail.into(), field: None, facts: None, retry_after: None }
    }

    /// The request cannot be right; `field` may be empty.
    pub fn invalid(code: &str, detail: impl Into<String>, field: impl Into<String>) -> Self {
        let field = field.into();
        Self { field: (!field.is_empty()).then_some(field), ..Self::new(StatusCode::BAD_REQUEST, code, detail) }
    }

    /// Something went wrong inside; the log has more.
    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal_error",
            "Something failed inside the server; its log says more. Read before you repeat the call.",
        )
    }

    pub(super) fn retry(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        if let Some(field) = self.field {
            body["field"] = Value::String(field);
        }
        if let Some(facts) = self.facts {
            body["facts"] = facts;
        }
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"agent-teams\""));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal.kind {
            ErrorKind::Invalid => StatusCode::BAD_REQUEST,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Denied => StatusCode::FORBIDDEN,
            ErrorKind::Conflict => StatusCode::CONFLICT,
            ErrorKind::Limit => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::Unknown => StatusCode::GATEWAY_TIMEOUT,
            ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            ErrorKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        };
        Self {
            status,
            code: refusal.code,
            detail: refusal.message,
            field: refusal.field,
            facts: refusal.detail,
            retry_after: (refusal.kind == ErrorKind::Unavailable).then_some(1),
        }
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(refusal) => refusal.into(),
            CallError::Fault { code, message } => {
                let (status, retry) = match code {
                    FaultCode::Busy | FaultCode::Stopping => (StatusCode::SERVICE_UNAVAILABLE, Some(2)),
                    FaultCode::TimedOut | FaultCode::WaitedTooLong => (StatusCode::GATEWAY_TIMEOUT, None),
                    FaultCode::Trapped | FaultCode::OutOfMemory => (StatusCode::INTERNAL_SERVER_ERROR, None),
                };
                Self { retry_after: retry, ..Self::new(status, code.as_str(), message) }
            }
        }
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Denied(reason) => Self::new(StatusCode::FORBIDDEN, "denied", reason),
            // One text, whether it belongs to somebody else or never was.
            RunError::NotFound(_) => Self::new(
                StatusCode::NOT_FOUND,
                "conversation_not_found",
                "You have no such conversation. List your conversations and use an id from there.",
            ),
            RunError::Busy(why) => Self::new(
                StatusCode::CONFLICT,
                "conversation_busy",
                format!("The conversation takes no message now: {why}. Nothing was sent; send it again afterwards."),
            ),
            RunError::Rejected(reason) => Self::new(StatusCode::BAD_REQUEST, "rejected", reason),
            RunError::Unsupported(reason) => Self::new(StatusCode::NOT_IMPLEMENTED, "unsupported", reason),
            RunError::KeyConflict => Self::new(
                StatusCode::CONFLICT,
                "message_id_conflict",
                "This message_id was used for another message. Send new content under a new message_id.",
            ),
            RunError::TooMany(reason) => Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_runs", reason).retry(5),
            RunError::Unavailable(reason) => {
                tracing::warn!(%reason, "agents are unavailable");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "agents_unavailable", "Nothing happened; try again soon.")
                    .retry(2)
            }
            RunError::TimedOut | RunError::Other(_) => {
                tracing::warn!(%error, "the outcome of an agent call is unknown");
                Self::new(
                    StatusCode::GATEWAY_TIMEOUT,
                    "outcome_unknown",
                    "It may or may not have happened. Repeat the same call with the same message_id; it happens once.",
                )
            }
        }
    }
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Unknown => Self::new(
                StatusCode::UNAUTHORIZED,
                "not_signed_in",
                "Sign in with a sign-in link, or send a valid token as `Authorization: Bearer …`.",
            ),
            AuthError::Disabled => {
                Self::new(StatusCode::FORBIDDEN, "user_disabled", "This user is disabled. Ask the operator.")
            }
            AuthError::Database(error) => {
                tracing::error!(%error, "the user database cannot answer");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "users_unavailable", "Nothing happened; try again soon.")
                    .retry(2)
            }
        }
    }
}

impl From<UserError> for Problem {
    fn from(error: UserError) -> Self {
        let status = match &error {
            UserError::BadId(_) | UserError::BadTokenName => StatusCode::BAD_REQUEST,
            UserError::BadLink | UserError::Disabled(_) => StatusCode::FORBIDDEN,
            UserError::NoUser(_) | UserError::NoToken(_) | UserError::NoSession(_) => StatusCode::NOT_FOUND,
            UserError::Exists(_) => StatusCode::CONFLICT,
            UserError::Database(_) | UserError::TokenFile(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        match error {
            UserError::Database(error) if outcome_unknown(&error) => {
                tracing::error!(%error, "whether a change of the users was written is unknown");
                Self::new(
                    StatusCode::GATEWAY_TIMEOUT,
                    "outcome_unknown",
                    "It may or may not have happened. Look before you repeat the call.",
                )
            }
            UserError::Database(error) => AuthError::Database(error).into(),
            UserError::TokenFile(_) => Self::internal(),
            _ => Self { field: error.field().map(str::to_owned), ..Self::new(status, error.code(), sentence(&error)) },
        }
    }
}

/// An error's text as a sentence.
fn sentence(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

/// Any path that no route has.
pub(super) async fn no_such_route() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "no_such_route", "There is nothing at this address.")
}

/// A route that exists, with another method. The answer's `Allow` header says
/// which it takes.
pub(super) async fn wrong_method(method: Method) -> Problem {
    let known = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];
    let name = if known.contains(&method) { method.as_str() } else { "This method" };
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        format!("{name} is not possible here; see the Allow header."),
    )
}
