//! A host in front of the native one: its transactions begin as the test says,
//! everything else is passed on.

use std::cell::Cell;

use agent_teams_plugin::host::{CommitError, Guard, Host, Level, LockTimeout, Runs, StoreError, Tx};

use super::NativeHost;

/// Passes everything on but the beginning of a transaction, which is `begin`'s.
pub struct Forward<'h, B> {
    pub host: &'h NativeHost,
    pub begin: B,
}

impl<'h, B> Host for Forward<'h, B>
where
    B: Fn(&'h NativeHost) -> Result<Box<dyn Tx + 'h>, StoreError>,
{
    fn begin(&self) -> Result<Box<dyn Tx + '_>, StoreError> {
        (self.begin)(self.host)
    }

    fn lock(&self, name: &str, timeout_ms: u32) -> Result<Box<dyn Guard + '_>, LockTimeout> {
        self.host.lock(name, timeout_ms)
    }

    fn lookup(&self, owner: &str, team: &str) -> Option<Box<dyn Runs + '_>> {
        self.host.lookup(owner, team)
    }

    fn forget(&self, owner: &str, team: &str) {
        self.host.forget(owner, team);
    }

    fn publish(&self, owner: &str, topic: &str, revision: u64) {
        self.host.publish(owner, topic, revision);
    }

    fn position(&self, owner: &str, topic: &str) -> u64 {
        self.host.position(owner, topic)
    }

    fn settings(&self) -> String {
        self.host.settings()
    }

    fn log(&self, level: Level, message: &str) {
        self.host.log(level, message);
    }

    fn now_ms(&self) -> u64 {
        self.host.now_ms()
    }

    fn random(&self, bytes: usize) -> Vec<u8> {
        self.host.random(bytes)
    }
}

/// Records read and written through a host that counts.
#[derive(Debug, Default)]
pub struct Cost {
    reads: Cell<usize>,
    writes: Cell<usize>,
}

impl Cost {
    /// The native host, with every record counted here.
    pub fn count<'h>(&'h self, host: &'h NativeHost) -> impl Host + 'h {
        Forward { host, begin: |host: &'h NativeHost| Ok(Box::new(Counted { tx: host.begin()?, of: self }) as Box<_>) }
    }

    /// What was read and written so far.
    pub fn so_far(&self) -> (usize, usize) {
        (self.reads.get(), self.writes.get())
    }

    fn read(&self, records: usize) {
        self.reads.set(self.reads.get() + records);
    }

    fn write(&self) {
        self.writes.set(self.writes.get() + 1);
    }
}

struct Counted<'c> {
    tx: Box<dyn Tx + 'c>,
    of: &'c Cost,
}

impl Tx for Counted<'_> {
    fn get(&self, key: &str) -> Result<Option<String>, StoreError> {
        self.of.read(1);
        self.tx.get(key)
    }

    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<String>>, StoreError> {
        self.of.read(keys.len());
        self.tx.get_many(keys)
    }

    fn scan(&self, start: &str, end: &str, limit: u32, reverse: bool) -> Result<Vec<(String, String)>, StoreError> {
        let found = self.tx.scan(start, end, limit, reverse)?;
        self.of.read(1 + found.len());
        Ok(found)
    }

    fn put(&self, key: &str, value: &str) -> Result<(), StoreError> {
        self.of.write();
        self.tx.put(key, value)
    }

    fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.of.write();
        self.tx.delete(key)
    }

    fn commit(self: Box<Self>) -> Result<(), CommitError> {
        self.tx.commit()
    }
}
