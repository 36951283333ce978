//! Runs of agents at the seams of the host: starts that fail, disks that are
//! full, and calls that are given up before their write is done.

mod full_disk;
mod late;
#[path = "../program/mod.rs"]
mod program;
mod starts;
mod support;
