//! The only generated code: the contract in Rust.
#![allow(clippy::all)]

wit_bindgen::generate!({
    world: "plugin",
    path: "../wit",
    generate_all,
});
