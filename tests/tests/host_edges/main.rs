//! The host at its edges: what a user, a stranger on the same machine, a full
//! disk or a typing error must not be able to do. The real program, or its
//! whole server in this process, over real HTTP.

#[allow(dead_code, reason = "these tests use a part of it")]
#[path = "../http_gateway/client.rs"]
mod client;
mod direct;
mod endpoint;
mod health;
mod names;
#[path = "../program/mod.rs"]
mod program;
mod proxy;
mod stranger;
mod turn;
