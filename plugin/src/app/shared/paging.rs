//! Pages of lists, and answers to callers that know a revision.

use serde_json::{Value, json};

use crate::domain::error::{Error, Result};
use crate::domain::limits;
use crate::store::TeamTx;

/// Records on a page, within its bounds.
pub fn page_limit(limit: Option<u32>) -> Result<usize> {
    let limit = limit.unwrap_or(limits::PAGE_DEFAULT);
    if (1..=limits::PAGE_MAX).contains(&limit) {
        return Ok(limit as usize);
    }
    Err(Error::invalid("bad_limit", "limit", alloc::format!("`limit` must be between 1 and {}.", limits::PAGE_MAX)))
}

/// What `make` makes, with the team's revision; or no more than that nothing
/// changed since the revision that the caller has.
pub fn unless_unchanged(team: &TeamTx, known: Option<u64>, make: impl FnOnce() -> Result<Value>) -> Result<Value> {
    let revision = team.head.borrow().revision;
    if known == Some(revision) {
        return Ok(json!({"unchanged": true, "revision": revision}));
    }
    let mut reply = make()?;
    reply["revision"] = json!(revision);
    Ok(reply)
}

/// The one answer for a cursor that is not of this list.
pub fn bad_cursor() -> Error {
    Error::invalid(
        "bad_cursor",
        "cursor",
        "This cursor is not of this list with these filters. Use the next_cursor of a page with the same filters, or \
         none to begin again.",
    )
}
