//! How reads and writes fail, whatever the database is.

use std::time::Instant;

/// Why a write gave no result. Found inside an [`anyhow::Error`] by
/// `downcast_ref`; any other error came from the caller's own function, whose
/// writes were undone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Nothing was written; the same write may succeed later.
    #[error("nothing was written: {0}")]
    NotWritten(String),
    /// The write may or may not have happened. Only a new read tells; reads
    /// are refused until the answer cannot change any more.
    #[error("whether it was written is unknown: {0}")]
    Unknown(String),
}

/// Whether this error of a write leaves open what became of it. After any other
/// nothing was written.
pub fn outcome_unknown(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(WriteError::Unknown(_)))
}

/// Added by a database to an error that says that it cannot do it now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the database cannot do it now")]
pub struct NotNow;

/// Whether the same read or write may succeed later. Any other error says
/// something about the data or about the caller's own function.
pub fn temporary(error: &anyhow::Error) -> bool {
    error.is::<NotNow>() || error.is::<WriteError>()
}

/// When the store last changed something, and when it last refused to.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastWrites {
    /// The last that changed something.
    pub done: Option<Instant>,
    /// The last that the store refused.
    pub refused: Option<Instant>,
}
