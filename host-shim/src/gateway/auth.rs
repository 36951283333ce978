//! Who calls: by token or by session cookie. And signing in and out.

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde_json::json;

use super::calls::Turn;
use super::json::{MAX_BODY, Unread};
use super::{App, PAGE_PATH, Problem};
use crate::config::Origin;
use crate::users::{AuthError, Identity, SESSION_LONGEST_MS, Via};

/// The largest body of a sign-in, in bytes; anybody may send one.
const MAX_SIGN_IN: usize = 4 * 1024;

/// An authenticated caller. As an argument of a handler it refuses everybody
/// else before the body is looked at.
#[derive(Clone, Debug)]
pub(super) struct SignedIn(pub(super) Identity);

impl SignedIn {
    pub(super) fn user(&self) -> &str {
        &self.0.user
    }
}

impl FromRequestParts<App> for SignedIn {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        // A request that presents a token stands or falls with it: a cookie
        // beside it never makes up for a wrong one.
        if parts.headers.contains_key(header::AUTHORIZATION) {
            let token = bearer(&parts.headers).ok_or(AuthError::Unknown)?;
            return Ok(Self(app.parts.users.authenticate_token(token)?));
        }
        let secret = app.cookie.find(&parts.headers).ok_or(AuthError::Unknown)?;
        let identity = app.parts.users.authenticate_session(secret)?;
        // The guard has compared the Origin; here it must not be missing.
        if !parts.method.is_safe() && !parts.headers.contains_key(header::ORIGIN) {
            return Err(origin_required());
        }
        Ok(Self(identity))
    }
}

/// A signed-in caller whose call has its place among the user's calls. Before it
/// has, nothing of the body is read.
pub(super) struct Admitted {
    pub(super) caller: SignedIn,
    pub(super) turn: Turn,
}

impl Admitted {
    pub(super) fn user(&self) -> &str {
        self.caller.user()
    }
}

impl FromRequestParts<App> for Admitted {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = SignedIn::from_request_parts(parts, app).await?;
        let turn = app.calls.enter(caller.user()).await?;
        Ok(Self { caller, turn })
    }
}

fn origin_required() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "origin_required",
        "A browser's session may change things only from this server's own page. Programs use a token.",
    )
}

/// The token of the one `Authorization: Bearer` header.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        return None;
    }
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The session cookie. Its name holds the port, since cookies of one host go
/// to all its ports and two servers on a machine must not sign each other out.
pub(super) struct Cookie {
    name: String,
    /// Hosts that are reached by `https`: there the cookie is marked secure.
    secure_hosts: Vec<String>,
}

impl Cookie {
    pub(super) fn new(port: u16, public: &[Origin]) -> Self {
        let secure = public.iter().filter(|origin| origin.is_secure()).map(|origin| origin.host().to_owned());
        Self { name: format!("agent_teams_session_{port}"), secure_hosts: secure.collect() }
    }

    fn find<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.name).map(|(_, value)| value)
    }

    fn header(&self, headers: &HeaderMap, value: &str, max_age: i64) -> Result<HeaderValue, Problem> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let secure = Origin::new(true, host).is_some_and(|origin| self.secure_hosts.iter().any(|h| h == origin.host()));
        let secure = if secure { "; Secure" } else { "" };
        let text = format!("{}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={max_age}{secure}", self.name);
        HeaderValue::from_str(&text).map_err(|_| Problem::internal())
    }
}

/// `GET /api/me`
pub(super) async fn me(caller: SignedIn) -> Json<serde_json::Value> {
    Json(json!({ "user": caller.0.user, "via": caller.0.via }))
}

/// `POST /api/sign-in {"secret": …}`: exchanges the secret of a sign-in link
/// for a session. It works once.
pub(super) async fn sign_in(State(app): State<App>, headers: HeaderMap, body: Unread) -> Result<Response, Problem> {
    // Another page must not sign a person in as somebody else.
    if !headers.contains_key(header::ORIGIN) {
        return Err(origin_required());
    }
    let members = body.members(MAX_SIGN_IN, &["secret"]).await?;
    let secret = members
        .get("secret")
        .and_then(|value| value.as_str())
        .ok_or_else(|| Problem::invalid("text_required", "Give the secret of the sign-in link as text.", "secret"))?;
    let session = app.parts.users.redeem(secret).await?;
    // The browser keeps the cookie for as long as a session can last at all, and
    // the server alone decides when it ends: so no later answer has to renew the
    // cookie whenever the session's end moves.
    let cookie = app.cookie.header(&headers, &session.secret, SESSION_LONGEST_MS / 1000)?;
    tracing::info!("somebody signed in");
    let answer = Json(json!({ "user": session.user, "page": PAGE_PATH }));
    Ok(([(header::SET_COOKIE, cookie)], answer).into_response())
}

/// `POST /api/sign-in-link {}`: a new sign-in link for the caller, for a
/// program with a token; a session cannot multiply itself.
pub(super) async fn sign_in_link(
    State(app): State<App>,
    Admitted { caller, turn: _turn }: Admitted,
    body: Unread,
) -> Result<Json<serde_json::Value>, Problem> {
    body.members(MAX_BODY, &[]).await?;
    if caller.0.via != Via::Token {
        return Err(Problem::new(StatusCode::FORBIDDEN, "token_required", "Use a token to make a sign-in link."));
    }
    let link = app.parts.users.sign_in_link(caller.user()).await?;
    Ok(Json(json!({ "path": link.address(""), "expires_at": link.expires_at() })))
}

/// `POST /api/sign-out {}`: ends the session with which it is called.
pub(super) async fn sign_out(
    State(app): State<App>,
    headers: HeaderMap,
    Admitted { caller, turn: _turn }: Admitted,
    body: Unread,
) -> Result<Response, Problem> {
    body.members(MAX_BODY, &[]).await?;
    if caller.0.via == Via::Session {
        app.parts.users.sign_out(&caller.0).await?;
    }
    let cookie = app.cookie.header(&headers, "", 0)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

/// `GET /sign-in`: the page whose script takes the secret out of the fragment.
pub(super) async fn page() -> Html<&'static str> {
    Html(include_str!("static/sign-in.html"))
}

/// The files of the sign-in page.
pub(super) async fn page_file(file: Result<Path<String>, axum::extract::rejection::PathRejection>) -> Response {
    let (media_type, text) = match file.as_ref().map(|path| path.as_str()) {
        Ok("sign-in.js") => ("text/javascript; charset=utf-8", include_str!("static/sign-in.js")),
        Ok("sign-in.css") => ("text/css; charset=utf-8", include_str!("static/sign-in.css")),
        _ => return super::problem::no_such_route().await.into_response(),
    };
    ([(header::CONTENT_TYPE, media_type)], text).into_response()
}
