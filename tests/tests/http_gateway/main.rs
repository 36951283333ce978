//! The gateway over a real socket, with the component and the agents faked:
//! who is let in, how refusals look, what a body may be, who sees which event.

mod actions;
mod assets;
mod auth;
mod client;
mod conversations;
mod events;
mod fakes;
mod server;
mod users;
