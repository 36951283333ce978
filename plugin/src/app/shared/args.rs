//! Arguments that may be left out.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde_json::Value;

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
