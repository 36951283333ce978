//! Parts of a record, each as strictly as the earlier program wrote it.

use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Map, Value};

use super::{id, integer};

/// An object with exactly the expected keys.
pub(super) struct Fields<'v>(&'v Map<String, Value>);

impl<'v> Fields<'v> {
    pub fn of(value: &'v Value, required: &[&str], optional: &[&str]) -> Option<Self> {
        let map = value.as_object()?;
        let known = map.keys().all(|k| required.contains(&k.as_str()) || optional.contains(&k.as_str()));
        (known && required.iter().all(|k| map.contains_key(*k))).then_some(Self(map))
    }

    pub fn get(&self, key: &str) -> Option<&'v Value> {
        self.0.get(key)
    }

    pub fn id(&self, key: &str) -> Option<String> {
        id(self.0.get(key)?)
    }

    pub fn text(&self, key: &str) -> Option<String> {
        self.0.get(key)?.as_str().map(String::from)
    }

    pub fn texts(&self, key: &str) -> Option<Vec<String>> {
        self.0.get(key)?.as_array()?.iter().map(|v| v.as_str().map(String::from)).collect()
    }

    /// Absent, or present and as `read` wants it.
    pub fn optional<T>(&self, key: &str, read: impl Fn(&'v Value) -> Option<T>) -> Option<Option<T>> {
        match self.0.get(key) {
            None => Some(None),
            Some(value) => read(value).map(Some),
        }
    }

    pub fn integer(&self, key: &str) -> Option<u64> {
        integer(self.0.get(key)?)
    }
}
