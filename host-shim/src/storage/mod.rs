//! Storage behind the component's `storage` import: ordered text keys, one
//! snapshot a transaction, optimistic commits. The rules are those of
//! `wit/storage.wit`, and one suite of contract tests holds every
//! implementation to them.

pub mod database;

use async_trait::async_trait;

/// The longest key, in bytes.
pub const MAX_KEY: usize = 1024;
/// The longest value, in bytes.
pub const MAX_VALUE: usize = 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("the snapshot is gone; begin again")]
    Expired,
    #[error("{0}")]
    TooLarge(String),
    #[error("the store cannot answer: {0}")]
    Unavailable(String),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    #[error("something that was read has changed; nothing was written")]
    Conflict,
    #[error("nothing was written: {0}")]
    Unavailable(String),
    #[error("whether it was written is unknown: {0}")]
    Unknown(String),
}

/// A place to keep the component's records.
pub trait Store: Send + Sync + 'static {
    /// Opens a transaction on the newest committed snapshot.
    fn begin(&self) -> Result<Box<dyn Transaction>, StoreError>;
}

/// One unit of work; dropping it undoes everything.
#[async_trait]
pub trait Transaction: Send {
    fn get(&mut self, key: &str) -> Result<Option<String>, StoreError>;
    fn scan(&mut self, start: &str, end: &str, limit: u32, reverse: bool) -> Result<Vec<(String, String)>, StoreError>;
    fn put(&mut self, key: String, value: String) -> Result<(), StoreError>;
    fn delete(&mut self, key: String) -> Result<(), StoreError>;
    /// Durable when it returns.
    async fn commit(self: Box<Self>) -> Result<(), CommitError>;
}
