//! The gateway over a real socket, with the component and the agents faked:
//! who is let in, how refusals look, what a body may be, who sees which event.

#[path = "http_gateway/actions.rs"]
mod actions;
#[path = "http_gateway/assets.rs"]
mod assets;
#[path = "http_gateway/auth.rs"]
mod auth;
#[path = "http_gateway/client.rs"]
mod client;
#[path = "http_gateway/conversations.rs"]
mod conversations;
#[path = "http_gateway/events.rs"]
mod events;
#[path = "http_gateway/fakes.rs"]
mod fakes;
#[path = "http_gateway/server.rs"]
mod server;
