//! Which job starts when, and what becomes of it: the calls of the worker, and
//! the steps of which they are made.

pub mod admit;
pub mod advance;
pub mod backfill;
pub mod cut_short;
pub mod finish;
pub mod input;
pub mod leftovers;
pub mod observe;
pub mod plan;
pub mod setback;
pub mod timed;
