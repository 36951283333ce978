//! The rules, as pure functions and data: no storage, no host, no clock.

pub mod asked;
pub mod board;
pub mod context;
pub mod cursor;
pub mod envelope;
pub mod error;
pub mod hold_code;
pub mod ids;
pub mod job;
pub mod legacy;
pub mod limits;
pub mod machine;
pub mod page;
pub mod replay;
pub mod schedule;
pub mod state;
pub mod text;
pub mod time;
