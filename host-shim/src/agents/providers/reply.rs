//! Reads chat-completion replies, whole or streamed, in all the shapes that
//! servers send: content as text, `null` or a list of parts; tool calls with
//! missing or repeated ids; unknown fields anywhere.

use serde_json::Value;

use super::{Finish, ModelReply, RawCall};

/// Bytes of one reply, over all its parts.
pub const MAX_REPLY: usize = 8 * 1024 * 1024;
/// Tool calls taken from one reply; what is more is left out by name later.
const MAX_CALLS: usize = 256;

/// Parses JSON from a server. Bytes that are not UTF-8 and unpaired surrogate
/// escapes become U+FFFD, so that what is stored is valid Unicode.
pub fn parse_json(bytes: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(bytes);
    serde_json::from_str(&text).ok().or_else(|| serde_json::from_str(&repair_surrogates(&text)).ok())
}

/// Replaces `\uD800`–`\uDFFF` escapes that are not a pair by `\uFFFD`.
fn repair_surrogates(text: &str) -> String {
    let bytes = text.as_bytes();
    let unit = |at: usize| -> Option<u16> {
        if bytes.get(at) == Some(&b'\\') && bytes.get(at + 1) == Some(&b'u') {
            let digits = bytes.get(at + 2..at + 6)?;
            if !digits.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        } else {
            None
        }
    };
    let mut out = String::with_capacity(text.len());
    let (mut at, mut kept) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str(&text[kept..at]);
                out.push_str("\\ufffd");
                at += 6;
                kept = at;
            }
            // Any other escape is two bytes here, so that `\\u` is not mistaken.
            _ => at += 2,
        }
    }
    out.push_str(&text[kept.min(text.len())..]);
    out
}

/// The text of a `content` member.
fn content_text(content: &Value) -> String {
    match content {
        Value::String(s) => s.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|p| match p {
                Value::String(s) => Some(s.as_str()),
                Value::Object(o) => o.get("text").and_then(|t| t.as_str().or_else(|| t.get("value")?.as_str())),
                _ => None,
            })
            .collect(),
        Value::Object(o) => o.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
        _ => String::new(),
    }
}

fn arguments_text(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

#[derive(Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

/// Puts a reply together from one message or from many deltas.
#[derive(Default)]
pub struct Assembler {
    text: String,
    calls: Vec<PartialCall>,
    finish: Option<Finish>,
    bytes: usize,
    /// The reply exceeds its bound.
    pub too_large: bool,
}

impl Assembler {
    /// Takes one `choices[0]` object with a `message` or a `delta`.
    pub fn choice(&mut self, choice: &Value) {
        let whole = choice.get("message").filter(|m| m.is_object());
        if let Some(part) = whole.or_else(|| choice.get("delta")) {
            let text = part.get("content").map(content_text).unwrap_or_default();
            self.grow(text.len());
            if !self.too_large {
                self.text.push_str(&text);
            }
            for call in part.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
                self.call(call, whole.is_some());
            }
        }
        match choice.get("finish_reason").and_then(Value::as_str) {
            Some("length" | "content_filter") => self.finish = Some(Finish::Cut),
            Some(_) => self.finish = Some(Finish::Stop),
            None if whole.is_some() => self.finish = Some(Finish::Stop),
            None => {}
        }
    }

    fn grow(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.too_large |= self.bytes > MAX_REPLY;
    }

    fn call(&mut self, call: &Value, whole: bool) {
        let index = call.get("index").and_then(Value::as_u64);
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
        let function = call.get("function").unwrap_or(call);
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let arguments = function.get("arguments").map(arguments_text).unwrap_or_default();
        self.grow(name.len() + arguments.len() + 64);
        if self.too_large {
            return;
        }
        let at = if whole { None } else { self.find(index, id, name) };
        let at = match at {
            Some(at) => at,
            None if self.calls.len() >= MAX_CALLS => return,
            None => {
                self.calls.push(PartialCall { index, ..PartialCall::default() });
                self.calls.len() - 1
            }
        };
        let partial = &mut self.calls[at];
        if partial.id.is_empty() {
            partial.id = id.to_owned();
        }
        if partial.name.is_empty() {
            partial.name = name.to_owned();
        }
        partial.arguments.push_str(&arguments);
    }

    /// The call that a delta continues. Absent: it begins a new one.
    fn find(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        // Some servers give every call the same index: a new id that comes
        // with a name begins another call there.
        let begins = |c: &PartialCall| !id.is_empty() && !c.id.is_empty() && c.id != id && !name.is_empty();
        match index {
            Some(_) => self.calls.iter().rposition(|c| c.index == index).filter(|&at| !begins(&self.calls[at])),
            None => {
                let at = self.calls.len().checked_sub(1)?;
                let last = &self.calls[at];
                let again = !name.is_empty() && !last.name.is_empty() && (id.is_empty() || id != last.id);
                (!again && !begins(last)).then_some(at)
            }
        }
    }

    /// Whether a reason to stop was given.
    pub fn finished(&self) -> bool {
        self.finish.is_some()
    }

    pub fn into_reply(self) -> ModelReply {
        ModelReply {
            text: self.text,
            calls: self.calls.into_iter().map(|c| RawCall { name: c.name, arguments: c.arguments }).collect(),
            finish: self.finish.unwrap_or_default(),
        }
    }
}

/// Cuts a byte stream into the `data` of server-sent events.
#[derive(Default)]
pub struct SseLines {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
}

impl SseLines {
    /// Takes bytes; gives the data of every event that they complete.
    pub fn push(&mut self, bytes: &[u8], mut event: impl FnMut(&[u8])) {
        for &b in bytes {
            if b != b'\n' {
                self.line.push(b);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            self.end_line(&line, &mut event);
        }
    }

    /// The end of the stream: an event without its blank line still counts.
    pub fn finish(&mut self, mut event: impl FnMut(&[u8])) {
        let line = std::mem::take(&mut self.line);
        self.end_line(&line, &mut event);
        self.end_line(b"", &mut event);
    }

    /// Bytes held back at present.
    pub fn held(&self) -> usize {
        self.line.len() + self.data.len()
    }

    fn end_line(&mut self, line: &[u8], event: &mut impl FnMut(&[u8])) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                event(&std::mem::take(&mut self.data));
            }
        } else if let Some(data) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.has_data = true;
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn assemble(choices: &[Value]) -> ModelReply {
        let mut a = Assembler::default();
        choices.iter().for_each(|c| a.choice(c));
        a.into_reply()
    }

    #[test]
    fn uni_2_lone_surrogates_become_replacement_characters() {
        let value = parse_json(br#"{"a":"x\ud83dy","b":"\ud83d\ude00","c":"\\ud83d","d":"\ude00\ud83d"}"#).unwrap();
        assert_eq!(value, json!({"a":"x\u{fffd}y","b":"\u{1f600}","c":"\\ud83d","d":"\u{fffd}\u{fffd}"}));
        assert_eq!(parse_json(b"{\"a\":\"\xff\"}").unwrap(), json!({"a":"\u{fffd}"}));
        assert!(parse_json(b"{\"a\":\"\\ud83d\\").is_none());
    }

    #[test]
    fn prov_3_content_may_be_text_null_or_parts() {
        for (content, text) in [
            (json!("a"), "a"),
            (json!(null), ""),
            (json!(["a", {"type": "text", "text": "b"}, {"type": "image_url"}]), "ab"),
            (json!({"text": "c"}), "c"),
            (json!(7), ""),
        ] {
            assert_eq!(assemble(&[json!({"message": {"content": content}})]).text, text);
        }
    }

    #[test]
    fn prov_3_deltas_with_missing_or_repeated_ids() {
        let call = |index: Value, id: Value, name: Value, arguments: &str| json!({"delta": {"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]}});
        let expected = vec![
            RawCall { name: "a".into(), arguments: "{\"x\":1}".into() },
            RawCall { name: "b".into(), arguments: "{}".into() },
        ];
        // Ids and indexes as they should be; no ids; the same id twice.
        for (one, two) in [("1", "2"), ("", ""), ("same", "same")] {
            let reply = assemble(&[
                call(json!(0), json!(one), json!("a"), "{\"x\""),
                call(json!(0), Value::Null, Value::Null, ":1}"),
                call(json!(1), json!(two), json!("b"), "{}"),
            ]);
            assert_eq!(reply.calls, expected);
        }
        // One index for all, told apart by ids; no index at all.
        for index in [json!(0), Value::Null] {
            let reply = assemble(&[
                call(index.clone(), json!("1"), json!("a"), "{\"x\""),
                call(index.clone(), json!("1"), Value::Null, ":1}"),
                call(index.clone(), json!("2"), json!("b"), "{}"),
            ]);
            assert_eq!(reply.calls, expected);
        }
        // Whole calls with the same id, with arguments as an object.
        let reply = assemble(&[json!({"message": {"content": null, "tool_calls": [
            {"id": "", "function": {"name": "a", "arguments": {"x": 1}}},
            {"id": "", "function": {"name": "b", "arguments": "{}"}},
        ]}})]);
        assert_eq!(reply.calls, expected);
    }

    #[test]
    fn sse_events_survive_any_cut() {
        let stream = b"data: one\r\n\r\n: note\ndata: two\ndata: more\n\ndata: last";
        for size in 1..stream.len() {
            let (mut lines, mut seen) = (SseLines::default(), Vec::new());
            for chunk in stream.chunks(size) {
                lines.push(chunk, |d| seen.push(String::from_utf8_lossy(d).into_owned()));
            }
            lines.finish(|d| seen.push(String::from_utf8_lossy(d).into_owned()));
            assert_eq!(seen, ["one", "two\nmore", "last"]);
        }
    }
}
