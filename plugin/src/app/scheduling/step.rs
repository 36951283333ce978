//! A step of one team, and the pauses of jobs that a step could not move.

use alloc::string::String;

use super::permit::Permit;
use crate::domain::hold_code::HoldCode;
use crate::domain::job::Hold;
use crate::domain::limits;
use crate::host::{Host, Runs};
use crate::store::commit_lock;
use crate::store::records::Job;

/// A team's step under way: it holds the team's step lock.
pub struct TeamStep<'a> {
    pub host: &'a dyn Host,
    pub owner: &'a str,
    pub team: &'a str,
    pub runs: &'a dyn Runs,
    pub permit: &'a Permit,
}

impl TeamStep<'_> {
    pub fn lock(&self) -> String {
        commit_lock(self.owner, self.team)
    }
}

/// The next hold: a longer pause after each refusal of the same kind in a row.
pub fn hold(job: &Job, code: HoldCode, message: &str, now: u64) -> Hold {
    hold_as(job, code.as_str(), message, now)
}

/// The same for a refusal of the component's own.
pub fn hold_as(job: &Job, code: &str, message: &str, now: u64) -> Hold {
    let tries = job.tries(code);
    Hold { code: code.into(), message: message.into(), tries, next_at: now.saturating_add(limits::pause_ms(tries)) }
}
