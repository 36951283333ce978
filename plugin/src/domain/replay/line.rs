//! One line of a log, and whether it is this team's.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

use serde_json::Value;

use super::{id, integer};

/// A line as it was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// Nothing on it.
    Empty,
    /// The log's header: the session it belongs to.
    Header { session: Option<String> },
    Event {
        kind: String,
        /// Place and time in the source's log, where they are numbers.
        seq: Option<u64>,
        time: Option<u64>,
        data: Value,
    },
}

/// Reads one line. The words for a line that is not a JSON object with a type.
pub fn read_line(line: &str) -> Result<Line, String> {
    let line = line.trim_matches([' ', '\t', '\r', '\n', '\u{feff}']);
    if line.is_empty() {
        return Ok(Line::Empty);
    }
    let mut value: Value =
        serde_json::from_str(&mend_surrogates(line)).map_err(|e| format!("the line is not JSON ({e})"))?;
    let kind = value.get("type").and_then(Value::as_str).ok_or("the line has no type")?;
    if kind == "session" {
        return Ok(Line::Header { session: value.get("id").and_then(id) });
    }
    let kind = String::from(kind);
    let (seq, time) = (value.get("seq").and_then(integer), value.get("time").and_then(integer));
    let data = value.get_mut("data").map(Value::take).unwrap_or_default();
    Ok(Line::Event { kind, seq, time, data })
}

/// What an event is to the team that is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selected {
    /// Of another kind, or of another team: it does not count.
    Ignored,
    /// This team's, in this version.
    Ours { version: u64 },
    /// It cannot be accepted, with the reason.
    Rejected(String),
}

/// Kinds of events that make up a team.
const KINDS: [&str; 4] = ["team/task", "team/member", "team/message/queued", "team/message/delivered"];

/// Whether an event belongs to team `own`. Version and team id are read first
/// of all and must be sound even in another team's record, since without them
/// its owner cannot be told.
pub fn select(own: &str, kind: &str, data: &Value) -> Selected {
    if !KINDS.contains(&kind) {
        return Selected::Ignored;
    }
    let version = data.get("version").and_then(integer);
    let team = data.get("teamId").and_then(Value::as_str).filter(|team| !team.is_empty());
    let (Some(version), Some(team)) = (version, team) else {
        return Selected::Rejected(format!("persisted {kind} payload is invalid: version or teamId"));
    };
    if team != own {
        return Selected::Ignored;
    }
    match version {
        1 | 2 => Selected::Ours { version },
        _ => Selected::Rejected(format!("unsupported {kind} version {version}")),
    }
}

/// Escapes of half a character, which some writers of JSON leave behind,
/// become U+FFFD.
fn mend_surrogates(line: &str) -> Cow<'_, str> {
    if !line.contains("\\u") {
        return Cow::Borrowed(line);
    }
    let bytes = line.as_bytes();
    let unit = |at: usize| -> Option<u16> {
        let hex = line.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(hex, 16).ok()
    };
    let mut out = String::with_capacity(line.len());
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        let step = match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                out.push_str(&line[copied..at]);
                out.push_str("\\ufffd");
                copied = at + 6;
                6
            }
            Some(_) => 6,
            None => 2,
        };
        at += step;
    }
    out.push_str(line.get(copied..).unwrap_or(""));
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn text(line: &str) -> String {
        match read_line(&format!("{{\"type\":\"x\",\"data\":\"{line}\"}}")).expect("reads") {
            Line::Event { data, .. } => data.as_str().expect("text").to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn half_characters_are_mended_and_whole_ones_are_not() {
        assert_eq!(text("a\\ud83db"), "a\u{fffd}b");
        assert_eq!(text("\\udc00\\ud83d"), "\u{fffd}\u{fffd}");
        assert_eq!(text("\\ud83d\\ude00"), "😀");
        assert_eq!(text("\\ud83d\\ud83d\\ude00"), "\u{fffd}😀");
        assert_eq!(text("\\\\ud83d研\\u0000"), "\\ud83d研\0");
        assert!(read_line("{\"type\":\"x\",\"data\":\"\\u12").is_err());
    }

    #[test]
    fn a_line_is_a_header_an_event_or_nothing() {
        assert_eq!(read_line(" \r"), Ok(Line::Empty));
        assert_eq!(read_line("{\"type\":\"session\",\"id\":\"r\"}\r"), Ok(Line::Header { session: Some("r".into()) }));
        let event = Line::Event { kind: "y".into(), seq: Some(3), time: Some(7), data: Value::Null };
        assert_eq!(read_line("{\"type\":\"y\",\"seq\":3.0,\"time\":7}"), Ok(event));
        assert!(read_line("[1]").is_err() && read_line("{}").is_err() && read_line("{\"type\":1}").is_err());
    }
}
