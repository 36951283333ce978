//! The component that holds all logic of agent teams.
//!
//! `exports` → `app` → `domain`, with `store` beneath and `host` as the only
//! way out. On `wasm32-wasip2` it is a component whose imports are exactly
//! those of its world (`wit/world.wit`); natively it is a library, so that the
//! same code is tested and simulated without an engine.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod app;
pub mod domain;
pub mod exports;
pub mod host;
pub mod store;

#[cfg(target_family = "wasm")]
mod allocator;
#[cfg(target_family = "wasm")]
mod bindings;
#[cfg(target_family = "wasm")]
mod component;
#[cfg(target_family = "wasm")]
mod runtime;
