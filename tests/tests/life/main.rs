//! The life of a team and of its jobs, each test natively and as the
//! component over SQLite.

mod attempts;
mod bounds;
mod calls;
mod cancel;
mod damage;
mod deleted;
mod ends;
mod faults;
mod isolation;
mod late;
mod passes;
mod questions;
mod queue;
mod rotation;
mod slow;
mod starve;
mod teams;
mod texts;
