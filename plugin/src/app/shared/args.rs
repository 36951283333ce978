//! Arguments that may be left out.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde_json::Value;

use crate::domain::error::{Error, Result};
use crate::domain::limits;

/// An optional argument: `null`, and an empty text where that can mean
/// nothing, count as absent, since models send these.
pub fn optional<'de, D, T>(deserializer: D) -> core::result::Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) if text.is_empty() => Ok(None),
        value => serde_json::from_value(value).map(Some).map_err(D::Error::custom),
    }
}

/// Records on a page, within its bounds.
pub fn page_limit(limit: Option<u32>) -> Result<usize> {
    let limit = limit.unwrap_or(limits::PAGE_DEFAULT);
    if (1..=limits::PAGE_MAX).contains(&limit) {
        return Ok(limit as usize);
    }
    Err(Error::invalid("bad_limit", "limit", alloc::format!("`limit` must be between 1 and {}.", limits::PAGE_MAX)))
}
