//! Times as people and programs read them.

use alloc::string::String;

use chrono::{DateTime, SecondsFormat};

/// RFC 3339 in UTC, with milliseconds.
pub fn rfc3339(ms: u64) -> String {
    i64::try_from(ms)
        .ok()
        .and_then(DateTime::from_timestamp_millis)
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Milliseconds since the epoch of an RFC 3339 time, if it is one.
pub fn parse(text: &str) -> Option<u64> {
    let ms = DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis();
    u64::try_from(ms).ok()
}
