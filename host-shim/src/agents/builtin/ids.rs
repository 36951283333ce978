//! Derived ids: SHA-256 over the compact JSON array of a kind word and the
//! parts, so that a retry repeats them and parts never run together.

use sha2::{Digest, Sha256};

/// The whole digest, in hexadecimal.
pub fn digest(kind: &str, parts: &[&str]) -> String {
    let mut array = vec![kind];
    array.extend_from_slice(parts);
    let json = serde_json::Value::from(array).to_string();
    hex(&Sha256::digest(json.as_bytes()))
}

/// An id of 32 hexadecimal digits.
pub fn id(kind: &str, parts: &[&str]) -> String {
    let mut digest = digest(kind, parts);
    digest.truncate(32);
    digest
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

/// The id of a tool call: the same after every restart, and never the model
/// provider's.
pub fn call(run: &str, number: i64, index: usize) -> String {
    format!("{run}-{number}-{index}")
}

/// RFC 3339 with milliseconds, in UTC.
pub fn rfc3339(ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(ms).unwrap_or_default().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// At most `max` bytes of the text, cut between characters.
pub fn prefix(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// The text, cut to `max` bytes with a visible mark if it is longer.
pub fn shorten(text: &str, max: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= max {
        return text.into();
    }
    let kept = prefix(text, max);
    format!("{kept}\n[shortened: {} of {} bytes shown]", kept.len(), text.len()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_never_run_together() {
        assert_ne!(id("k", &["ab", "c"]), id("k", &["a", "bc"]));
        assert_eq!(id("k", &["a"]), id("k", &["a"]));
        assert_eq!(id("k", &["a"]).len(), 32);
    }

    #[test]
    fn uni_1_cuts_fall_between_characters() {
        for text in ["aaaaaaaa", "研究研究研究", "😀😀😀"] {
            for max in 0..=text.len() {
                assert!(prefix(text, max).len() <= max);
                let short = shorten(text, max);
                assert_eq!(max < text.len(), short.contains("shortened"));
            }
        }
    }
}
