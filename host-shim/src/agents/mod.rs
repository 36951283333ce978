//! Agents: the catalogue, the capability to run them, and the built-in ones.

pub mod builtin;
pub mod config;
pub mod names;
pub mod providers;
pub mod runs;
