//! Typed access to the records, and the one way in which commands commit.

pub mod board;
pub mod keys;
pub mod records;
mod team;

use crate::domain::error::Cause;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::domain::error::{Error, Kind, Result};
use crate::domain::limits;
use crate::host::{CommitError, Host, Level, StoreError, Tx};

pub use team::{TeamTx, need};

/// A transaction that reads and writes records.
pub struct Db<'a> {
    tx: Box<dyn Tx + 'a>,
}

impl<'a> Db<'a> {
    /// Opens a transaction on the newest snapshot.
    pub fn begin(host: &'a dyn Host) -> Result<Self> {
        Ok(Self { tx: host.begin().map_err(store_error)? })
    }

    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        self.tx.get(key).map_err(store_error)?.map(|text| parse(key, &text)).transpose()
    }

    /// A plain text, such as a request's.
    pub fn get_text(&self, key: &str) -> Result<Option<String>> {
        self.tx.get(key).map_err(store_error)
    }

    pub fn get_many<T: DeserializeOwned>(&self, keys: &[String]) -> Result<Vec<Option<T>>> {
        let values = self.tx.get_many(keys).map_err(store_error)?;
        keys.iter().zip(values).map(|(key, value)| value.map(|text| parse(key, &text)).transpose()).collect()
    }

    /// The same where one record that cannot be read must not hide the others.
    pub fn get_each<T: DeserializeOwned>(&self, keys: &[String]) -> Result<Vec<Option<Result<T>>>> {
        let values = self.tx.get_many(keys).map_err(store_error)?;
        Ok(keys.iter().zip(values).map(|(key, value)| value.map(|text| parse(key, &text))).collect())
    }

    pub fn get_many_texts(&self, keys: &[String]) -> Result<Vec<Option<String>>> {
        self.tx.get_many(keys).map_err(store_error)
    }

    pub fn scan(&self, start: &str, end: &str, limit: u32, reverse: bool) -> Result<Vec<(String, String)>> {
        self.tx.scan(start, end, limit, reverse).map_err(store_error)
    }

    /// All entries under a prefix that ends with "/", at most `limit`.
    pub fn scan_prefix(&self, prefix: &str, limit: u32) -> Result<Vec<(String, String)>> {
        self.scan(prefix, &keys::end(prefix), limit, false)
    }

    pub fn put<T: Serialize>(&self, key: &str, value: &T) -> Result<()> {
        let text = serde_json::to_string(value).map_err(|e| Error::internal(format!("cannot write a record: {e}")))?;
        self.put_text(key, &text)
    }

    pub fn put_text(&self, key: &str, text: &str) -> Result<()> {
        self.tx.put(key, text).map_err(store_error)
    }

    pub fn delete(&self, key: &str) -> Result<()> {
        self.tx.delete(key).map_err(store_error)
    }

    fn commit(self) -> core::result::Result<(), CommitError> {
        self.tx.commit()
    }
}

/// Parses a stored record.
pub fn parse<T: DeserializeOwned>(key: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| Error::damaged(key, format_args!("at column {}", e.column())))
}

pub fn store_error(error: StoreError) -> Error {
    match error {
        StoreError::Expired => {
            Error::unavailable(Cause::Expired.code(), "The store gave up this read; nothing happened. Try again.")
        }
        StoreError::TooLarge(what) => Error::limit(Cause::TooLarge.code(), format!("Nothing was stored: {what}.")),
        StoreError::Unavailable(why) => {
            Error::unavailable("store_unavailable", format!("The store cannot answer now; nothing happened: {why}."))
        }
    }
}

/// What can be read; nothing where the record cannot. Any other refusal stays.
pub fn readable<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.damaged_key().is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The refusal for a reply that cannot be read after its effect was stored: no
/// kind that says "nothing happened" would be true.
pub fn stored(error: Error) -> Error {
    Error::new(
        Kind::Unknown,
        "reply_unavailable",
        format!("It was stored, but the reply cannot be read now ({}). Send the same call again.", error.code),
    )
}

/// Reads on one snapshot.
pub fn read<T>(host: &dyn Host, f: impl Fn(&Db) -> Result<T>) -> Result<T> {
    for _ in 0..2 {
        match f(&Db::begin(host)?) {
            Err(e) if e.is(Cause::Expired) => {}
            other => return other,
        }
    }
    f(&Db::begin(host)?)
}

/// Reads, decides and commits, again from the start for as long as somebody
/// else's commit came in between. `lock` keeps the writers of one team from
/// deciding in vain; it is never held across a call to an agent.
///
/// When this returns a value, everything that `f` wrote is durable. An error
/// of kind `unknown` says that it may be.
pub fn transact<T>(host: &dyn Host, lock: &str, f: impl Fn(&Db) -> Result<T>) -> Result<T> {
    let _guard = host
        .lock(lock, limits::LOCK_MS)
        .map_err(|_| Error::team_busy("The team is busy with another command; nothing happened. Try again."))?;
    for _ in 0..limits::COMMIT_TRIES {
        let db = Db::begin(host)?;
        let value = match f(&db) {
            Ok(value) => value,
            Err(e) if e.is(Cause::Expired) => continue,
            Err(e) => return Err(e),
        };
        match db.commit() {
            Ok(()) => return Ok(value),
            Err(CommitError::Conflict) => {}
            Err(CommitError::Unavailable(why)) => return Err(store_error(StoreError::Unavailable(why))),
            Err(CommitError::Unknown(why)) => {
                host.log(Level::Warn, &format!("a commit's outcome is unknown: {why}"));
                return Err(Error::new(
                    Kind::Unknown,
                    "commit_unknown",
                    "Whether this was stored is unknown. Send the same call again: if it was, it will not happen twice.",
                ));
            }
        }
    }
    Err(Error::unavailable(Cause::Contended.code(), "Too many changes at once; nothing happened. Try again."))
}

/// The lock around read–decide–commit of a team's commands.
pub fn commit_lock(owner: &str, team: &str) -> String {
    format!("commit/{}/{}", keys::part(owner), keys::part(team))
}

/// The lock of a caller that talks to the host on a team's behalf.
pub fn step_lock(owner: &str, team: &str) -> String {
    format!("step/{}/{}", keys::part(owner), keys::part(team))
}
