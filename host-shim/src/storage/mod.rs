//! Storage behind the component's `storage` import: ordered text keys, one
//! snapshot a transaction, optimistic commits. The rules are those of
//! `wit/storage.wit`, and one suite of contract tests holds every
//! implementation to them.
//!
//! [`SqliteStore`] keeps the records in the one database file
//! ([`database::Database`]), [`MemoryStore`] keeps them in the process. Both
//! share the buffering of writes, the record of what was read, and the check
//! for conflicts (`transaction`, `recent`); a backend only gives snapshot
//! reads and an atomic "check, then apply".

mod failure;
mod memory;
mod recent;
mod sqlite;
pub mod tables;
mod transaction;

use std::time::Duration;

use async_trait::async_trait;

pub use memory::{CommitFault, MemoryStore, MemoryTables};
pub use sqlite::{SqliteStore, SqliteTables, database};
pub use tables::Tables;

/// The longest key, in bytes.
pub const MAX_KEY: usize = 1024;
/// The longest value, in bytes.
pub const MAX_VALUE: usize = 1024 * 1024;
/// The longest bound of a scan, in bytes: a key and one character more, so
/// that "just after this key" can be said of every key.
pub const MAX_BOUND: usize = MAX_KEY + 4;

/// Bounds of one transaction.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long a transaction may stay open. Later calls answer
    /// [`StoreError::Expired`], and a commit of writes [`CommitError::Conflict`].
    pub max_age: Duration,
    /// Bytes of keys and values that one transaction may buffer, bytes of keys
    /// that it may have read, and bytes of keys and values that one scan may
    /// return: each of the three separately.
    pub max_bytes: usize,
}

impl Default for Limits {
    /// 60 seconds, 16 MiB.
    fn default() -> Self {
        Self { max_age: Duration::from_secs(60), max_bytes: 16 << 20 }
    }
}

/// Why a read or a buffered write was refused. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The transaction was open for longer than [`Limits::max_age`].
    #[error("the snapshot is gone; begin again")]
    Expired,
    /// A key, a value, a scan or the whole transaction exceeds its bound. The
    /// call changed nothing; the transaction can go on.
    #[error("{0}")]
    TooLarge(String),
    /// The store cannot answer now.
    #[error("the store cannot answer: {0}")]
    Unavailable(String),
}

/// Why a commit did not say "durable".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// Something that was read has changed. Begin again and decide again.
    #[error("something that was read has changed; nothing was written")]
    Conflict,
    /// Nothing was written; the same transaction may succeed later.
    #[error("nothing was written: {0}")]
    Unavailable(String),
    /// It may or may not have been written. Only a new read tells.
    #[error("whether it was written is unknown: {0}")]
    Unknown(String),
}

/// A place to keep the component's records.
pub trait Store: Send + Sync + 'static {
    /// Opens a transaction on the newest committed snapshot: it sees every
    /// commit that had answered before.
    fn begin(&self) -> Result<Box<dyn Transaction>, StoreError>;
}

/// One unit of work; dropping it undoes everything and frees its snapshot.
#[async_trait]
pub trait Transaction: Send {
    /// The value under `key`, with this transaction's own writes. The key
    /// counts as read, also when nothing is stored under it.
    fn get(&mut self, key: &str) -> Result<Option<String>, StoreError>;
    /// Up to `limit` entries with `start` <= key < `end`, ascending, or
    /// descending from the end, with this transaction's own writes. What was
    /// looked at counts as read: the whole range, or, when the limit was
    /// reached, the range as far as the last entry returned.
    fn scan(&mut self, start: &str, end: &str, limit: u32, reverse: bool) -> Result<Vec<(String, String)>, StoreError>;
    /// Sets a value at the commit. A value equal to the stored one is not a
    /// write: it wakes no conflict in others and costs no disk write.
    fn put(&mut self, key: String, value: String) -> Result<(), StoreError>;
    /// Removes a key at the commit; an absent key is neither an error nor a write.
    fn delete(&mut self, key: String) -> Result<(), StoreError>;
    /// Writes everything at once, or nothing; durable when it returns. A
    /// transaction that wrote nothing succeeds at once. If the caller goes
    /// away while it waits, the commit still happens or not as a whole.
    async fn commit(self: Box<Self>) -> Result<(), CommitError>;
}
