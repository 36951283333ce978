//! A component with the contract of agent teams and none of its logic: every
//! action and tool name selects a way to behave or to misbehave. The payload
//! is a list of words, separated by `|`. Natively this crate is empty.
#![cfg_attr(target_family = "wasm", no_std)]

#[cfg(target_family = "wasm")]
mod behaviour;
#[cfg(target_family = "wasm")]
mod exports;
#[cfg(target_family = "wasm")]
mod runtime;

#[cfg(target_family = "wasm")]
#[allow(clippy::all)]
mod bindings {
    wit_bindgen::generate!({ world: "plugin", path: "../../wit", generate_all });
    use crate::exports::Guest;
    export!(Guest);
}
