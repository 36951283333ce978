//! Which job starts when, and what becomes of it: the calls of the worker, and
//! the steps of which they are made.

pub mod admit;
pub mod advance;
pub mod backfill;
pub mod conclude;
pub mod connection;
pub mod cut_short;
pub mod finish;
pub mod input;
pub mod leftovers;
pub mod observe;
pub mod permit;
pub mod plan;
pub mod poll;
pub mod readiness;
pub mod record;
pub mod resend;
pub mod rotation;
pub mod setback;
pub mod slots;
pub mod step;
pub mod timed;
