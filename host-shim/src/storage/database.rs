//! The one database file: the component's records and the host's own tables,
//! so that a backup is one consistent copy.

use std::path::Path;

/// A handle on the open database. Cheap to clone.
#[derive(Clone)]
pub struct Database;

#[allow(unused_variables, clippy::unused_async)]
impl Database {
    /// Opens (or makes) the file, takes the process lock, migrates.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        unimplemented!()
    }
    /// Runs `f` on the writer, inside a transaction of its own that is durable
    /// when this returns; writers that wait share one fsync. An error of `f`
    /// undoes its writes alone.
    pub async fn write<T, F>(&self, f: F) -> anyhow::Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&rusqlite::Connection) -> anyhow::Result<T> + Send + 'static,
    {
        unimplemented!()
    }
    /// Runs `f` on a reading connection, on one snapshot.
    pub fn read<T>(&self, f: impl FnOnce(&rusqlite::Connection) -> anyhow::Result<T>) -> anyhow::Result<T> {
        unimplemented!()
    }
}
