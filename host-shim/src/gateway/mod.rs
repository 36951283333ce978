//! HTTP: the only part of the host that knows it.
//!
//! Every request passes the guard (Host and Origin) before anything else.
//! Identity comes from a token or a session and from nothing that a request
//! contains; the capability handed to the component is made from it.

mod actions;
mod api;
mod assets;
mod auth;
mod calls;
mod conversations;
mod events;
mod guard;
mod json;
mod listen;
mod operator;
mod problem;
mod sessions;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use tokio::sync::watch;

use crate::agents::host::AgentHost;
use crate::config::Server;
use crate::engine::Signals;
use crate::life::Life;
use crate::users::{Operator, Users};

pub use api::{HealthApi, TeamApi};
pub use listen::{BindError, Listeners, check_bind, local_origin, serve};
pub use problem::Problem;

/// The plugin's id in addresses.
pub const PLUGIN_ID: &str = "community.agent-teams";
/// Where the page is.
pub const PAGE_PATH: &str = "/workspace/extensions/community.agent-teams/teams";

/// What the gateway serves.
#[derive(Clone)]
pub struct Parts {
    pub team: Arc<dyn TeamApi>,
    pub agents: Arc<dyn AgentHost>,
    pub users: Arc<Users>,
    pub signals: Arc<Signals>,
    pub operator: Arc<Operator>,
    pub health: Arc<dyn HealthApi>,
}

/// Times and bounds of the gateway that are not configured. Tests change them.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How long a client may take to send its headers.
    pub header_time: Duration,
    /// How long a client may take to send a body.
    pub body_time: Duration,
    /// How long a call waits while its user has too many under way.
    pub queue_time: Duration,
    /// How often an open stream asks whether its user is still let in.
    pub recheck: Duration,
    /// How often an idle stream says that it lives.
    pub keep_alive: Duration,
    /// How long a shutdown waits for calls under way.
    pub drain: Duration,
    /// Header bytes of one request.
    pub header_bytes: usize,
    /// Header lines of one request.
    pub headers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_time: Duration::from_secs(15),
            body_time: Duration::from_secs(30),
            queue_time: Duration::from_secs(10),
            recheck: Duration::from_secs(5),
            keep_alive: Duration::from_secs(15),
            drain: Duration::from_secs(35),
            header_bytes: 32 * 1024,
            headers: 64,
        }
    }
}

/// What handlers share.
struct Shared {
    parts: Parts,
    limits: Limits,
    guard: guard::Guard,
    cookie: auth::Cookie,
    calls: calls::Calls,
    hub: Arc<events::Hub>,
    assets: assets::Assets,
    /// Turns true when the gateway stops; open streams then end.
    stopping: watch::Receiver<bool>,
}

type App = Arc<Shared>;

/// The routes for a server that listens at `local`. Must be called inside the
/// runtime: it starts the task that passes signals on to streams, whose life
/// is the second.
fn router(
    parts: Parts,
    server: &Server,
    limits: Limits,
    local: SocketAddr,
    stopping: watch::Receiver<bool>,
) -> (Router, Life) {
    let (hub, passing_on) = events::Hub::start(&parts.signals, server.max_streams_per_user as usize);
    let guard = guard::Guard::new(local, &server.public_origins);
    let app: App = Arc::new(Shared {
        hub,
        calls: calls::Calls::new(server.max_calls_per_user as usize, limits.queue_time),
        cookie: auth::Cookie::new(local.port(), &server.public_origins),
        assets: assets::Assets::default(),
        guard,
        limits,
        parts,
        stopping,
    });
    let plugin = Router::new()
        .route("/actions", get(actions::list))
        .route("/actions/{action}", post(actions::call))
        .route("/mentions", get(actions::mentions))
        .route("/tools", get(actions::tools));
    let extension = Router::new().route("/teams", get(assets::page)).route("/assets/{*path}", get(assets::asset));
    let routes = Router::new()
        .nest(&format!("/api/plugins/{PLUGIN_ID}"), plugin)
        .nest(&format!("/workspace/extensions/{PLUGIN_ID}"), extension)
        .route("/api/agents", get(actions::agents))
        .route("/api/conversations", get(conversations::list).post(conversations::begin))
        .route("/api/conversations/{thread}", get(conversations::read))
        .route("/api/conversations/{thread}/messages", post(conversations::post))
        .route("/api/conversations/{thread}/stop", post(conversations::stop))
        .route("/api/events", get(events::stream))
        .route("/api/me", get(auth::me))
        .route("/api/sign-in", post(auth::sign_in))
        .route("/api/sign-in-link", post(auth::sign_in_link))
        .route("/api/sign-out", post(auth::sign_out))
        .route("/api/sessions", get(sessions::list))
        .route("/api/sessions/end", post(sessions::end))
        .merge(operator_routes())
        .route("/sign-in", get(auth::page))
        .route("/sign-in/{file}", get(auth::page_file))
        .route("/livez", get(actions::alive))
        .route("/readyz", get(actions::health))
        .route("/healthz", get(actions::health))
        .route("/", get(assets::home))
        .fallback(problem::no_such_route)
        .method_not_allowed_fallback(problem::wrong_method)
        .layer(DefaultBodyLimit::disable()) // `json` bounds every body that is read, by its own answer
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard::check))
        .with_state(app);
    (routes, passing_on)
}

/// The routes that are the operator's alone.
fn operator_routes() -> Router<App> {
    Router::new()
        .route("/api/operator/slots", get(operator::slots))
        .route("/api/operator/settle", post(operator::settle))
        .route("/api/operator/users", get(operator::users::list).post(operator::users::add))
        .route("/api/operator/users/{user}", post(operator::users::change))
        .route("/api/operator/tokens", get(operator::users::tokens).post(operator::users::add_token))
        .route("/api/operator/tokens/{id}/revoke", post(operator::users::revoke_token))
        .route("/api/operator/links", post(operator::users::link))
        .route("/api/operator/sessions", get(operator::sessions::list))
        .route("/api/operator/sessions/end", post(operator::sessions::end))
}
