//! `storage`: transactions of the host's store, held by one call.

use wasmtime::Result;
use wasmtime::component::Resource;

use super::State;
use crate::engine::bindings::agent_teams::plugin::storage::{CommitError, Entry, Error, Host, HostTransaction};
use crate::engine::resources::OpenTransaction;
use crate::storage::{self, StoreError, Transaction};

/// The most keys that one `get-many` reads.
const MAX_KEYS: usize = 4096;
/// The most entries that one `scan` returns.
const MAX_SCAN: u32 = 10_000;

impl State {
    fn transaction<T>(
        &mut self,
        tx: &Resource<OpenTransaction>,
        f: impl FnOnce(&mut dyn Transaction) -> std::result::Result<T, Error>,
    ) -> Result<std::result::Result<T, Error>> {
        self.host(|state| Ok(f(state.table.get_mut(tx)?.0.as_mut())))
    }
}

impl Host for State {
    fn begin(&mut self) -> Result<std::result::Result<Resource<OpenTransaction>, Error>> {
        self.host(|state| match state.shared.parts.store.begin() {
            Ok(tx) => Ok(Ok(state.table.push(OpenTransaction(tx))?)),
            Err(error) => Ok(Err(error.into())),
        })
    }
}

impl HostTransaction for State {
    fn get(&mut self, tx: Resource<OpenTransaction>, key: String) -> Result<std::result::Result<String, Error>> {
        self.transaction(&tx, |tx| tx.get(&key)?.ok_or(Error::NotFound))
    }

    fn get_many(
        &mut self,
        tx: Resource<OpenTransaction>,
        keys: Vec<String>,
    ) -> Result<std::result::Result<Vec<Option<String>>, Error>> {
        if keys.len() > MAX_KEYS {
            return Ok(Err(Error::TooLarge(format!("at most {MAX_KEYS} keys can be read at once"))));
        }
        self.transaction(&tx, |tx| Ok(keys.iter().map(|key| tx.get(key)).collect::<std::result::Result<_, _>>()?))
    }

    fn scan(
        &mut self,
        tx: Resource<OpenTransaction>,
        start: String,
        end: String,
        limit: u32,
        reverse: bool,
    ) -> Result<std::result::Result<Vec<Entry>, Error>> {
        if limit > MAX_SCAN {
            return Ok(Err(Error::TooLarge(format!("a scan reads at most {MAX_SCAN} entries"))));
        }
        self.transaction(&tx, |tx| {
            let found = tx.scan(&start, &end, limit, reverse)?;
            Ok(found.into_iter().map(|(key, value)| Entry { key, value }).collect())
        })
    }

    fn put(
        &mut self,
        tx: Resource<OpenTransaction>,
        key: String,
        value: String,
    ) -> Result<std::result::Result<(), Error>> {
        self.transaction(&tx, |tx| Ok(tx.put(key, value)?))
    }

    fn delete(&mut self, tx: Resource<OpenTransaction>, key: String) -> Result<std::result::Result<(), Error>> {
        self.transaction(&tx, |tx| Ok(tx.delete(key)?))
    }

    async fn commit(&mut self, tx: Resource<OpenTransaction>) -> Result<std::result::Result<(), CommitError>> {
        let OpenTransaction(tx) = self.table.delete(tx)?;
        Ok(match self.bounded(tx.commit()).await {
            Some(done) => done.map_err(CommitError::from),
            None => Err(CommitError::Unknown("the store did not answer in time".into())),
        })
    }

    fn drop(&mut self, tx: Resource<OpenTransaction>) -> Result<()> {
        self.host(|state| {
            state.table.delete(tx)?;
            Ok(())
        })
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Expired => Self::Expired,
            StoreError::TooLarge(what) => Self::TooLarge(what),
            StoreError::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

impl From<storage::CommitError> for CommitError {
    fn from(error: storage::CommitError) -> Self {
        match error {
            storage::CommitError::Conflict => Self::Conflict,
            storage::CommitError::Unavailable(why) => Self::Unavailable(why),
            storage::CommitError::Unknown(why) => Self::Unknown(why),
        }
    }
}
