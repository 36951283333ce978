//! Bodies: one JSON object, strictly read.
//!
//! A body has the type `application/json`, is UTF-8, is at most 256 KiB (for
//! actions whose names begin with `import_`: 8 MiB), and its objects repeat no member. A mistake is answered with the path at which
//! it stands (`members[2].name`).

use std::cell::{Cell, RefCell};
use std::fmt;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use futures_util::StreamExt;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{App, Problem};

/// The largest body, in bytes.
pub(super) const MAX_BODY: usize = 256 * 1024;
/// The largest body of an import, which carries a whole document.
const MAX_IMPORT: usize = 8 << 20;

/// A body that was read: the text as sent, and what it says.
#[derive(Debug)]
pub(super) struct JsonObject {
    pub(super) text: String,
    pub(super) members: Map<String, Value>,
}

impl FromRequest<App> for JsonObject {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        check_type(&parts.headers)?;
        let most = if parts.uri.path().contains("/actions/import_") { MAX_IMPORT } else { MAX_BODY };
        let bytes = tokio::time::timeout(app.limits.body_time, collect(body, most)).await.map_err(|_| {
            Problem::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", "The body did not arrive in time.")
        })??;
        parse(bytes)
    }
}

/// Only `application/json`: a page of another origin cannot send it unasked.
fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let mut parts = value.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().eq_ignore_ascii_case("application/json");
    let charset = parts.all(|p| p.eq_ignore_ascii_case("charset=utf-8") || p.eq_ignore_ascii_case("charset=\"utf-8\""));
    if essence && charset && headers.get_all(header::CONTENT_TYPE).iter().count() == 1 {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "json_required",
        "Send a JSON object with `Content-Type: application/json`.",
    ))
}

async fn collect(body: Body, most: usize) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| Problem::invalid("body_broken", "The body could not be read to its end.", ""))?;
        if bytes.len() + chunk.len() > most {
            return Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "body_too_large",
                format!("A body has at most {most} bytes here."),
            ));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Parses a body.
pub(super) fn parse(bytes: Vec<u8>) -> Result<JsonObject, Problem> {
    let text = String::from_utf8(bytes)
        .map_err(|_| Problem::invalid("invalid_unicode", "The body is not valid UTF-8; send UTF-8.", ""))?;
    let reader = Reader { path: RefCell::default(), duplicate: Cell::new(false) };
    let mut json = serde_json::Deserializer::from_str(&text);
    let parsed = Seed(&reader).deserialize(&mut json).and_then(|value| json.end().map(|()| value));
    match parsed {
        Ok(Value::Object(members)) => Ok(JsonObject { text, members }),
        Ok(_) => Err(Problem::invalid("object_required", "The body must be one JSON object.", "")),
        Err(error) => {
            let field = reader.field();
            Err(if reader.duplicate.get() {
                Problem::invalid("duplicate_member", "This member stands twice in its object; send it once.", field)
            } else if has_unpaired_surrogate(&text) {
                let detail = "Text holds an unpaired surrogate escape, which is no character; send valid Unicode.";
                Problem::invalid("invalid_unicode", detail, field)
            } else {
                let detail = format!("The body is no valid JSON (line {}, column {}).", error.line(), error.column());
                Problem::invalid("invalid_json", detail, field)
            })
        }
    }
}

/// Whether an escape `\ud800`–`\udfff` stands without its partner.
fn has_unpaired_surrogate(text: &str) -> bool {
    let bytes = text.as_bytes();
    let unit = |at: usize| -> Option<u32> {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => return true,
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    false
}

enum Step {
    Member(String),
    Item(usize),
}

/// Where the parser is; after an error, where it stopped.
struct Reader {
    path: RefCell<Vec<Step>>,
    duplicate: Cell<bool>,
}

impl Reader {
    fn field(&self) -> String {
        let mut field = String::new();
        for step in self.path.borrow().iter() {
            match step {
                Step::Member(name) => {
                    if !field.is_empty() {
                        field.push('.');
                    }
                    field.extend(name.chars().take(80));
                }
                Step::Item(index) => field.push_str(&format!("[{index}]")),
            }
        }
        field
    }
}

struct Seed<'a>(&'a Reader);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        loop {
            self.0.path.borrow_mut().push(Step::Item(array.len()));
            let item = items.next_element_seed(Seed(self.0))?;
            self.0.path.borrow_mut().pop();
            match item {
                Some(item) => array.push(item),
                None => return Ok(Value::Array(array)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            self.0.path.borrow_mut().push(Step::Member(name.clone()));
            if object.contains_key(&name) {
                self.0.duplicate.set(true);
                return Err(A::Error::custom("duplicate member"));
            }
            let value = members.next_value_seed(Seed(self.0))?;
            self.0.path.borrow_mut().pop();
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (String, Option<String>) {
        let problem = parse(text.as_bytes().to_vec()).unwrap_err();
        assert_eq!(problem.status, StatusCode::BAD_REQUEST);
        (problem.code, problem.field)
    }

    #[test]
    fn an_object_is_read_and_its_text_kept() {
        let text = " {\"a\": [1, -2, 3.5, null, true, \"\\ud83d\\ude00\"], \"b\": {\"a\": {}}} ";
        let body = parse(text.as_bytes().to_vec()).unwrap();
        assert_eq!(body.text, text);
        assert_eq!(Value::Object(body.members), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn a_member_that_stands_twice_is_refused_by_its_path() {
        assert_eq!(refused(r#"{"a":1,"a":1}"#), ("duplicate_member".into(), Some("a".into())));
        let nested = r#"{"m":[{"n":1},{"n":1,"\u006e":2}]}"#;
        assert_eq!(refused(nested), ("duplicate_member".into(), Some("m[1].n".into())));
    }

    #[test]
    fn an_unpaired_surrogate_is_refused_by_its_path() {
        for text in [r"\ud800", r"\udc00", r"\ud800x", r"\ud800\u0041", r"\ud800\ud800", r"x\\\ud83d", r"\uD83D"] {
            let body = format!(r#"{{"ok":"\\ud800","text":["a","{text}"]}}"#);
            assert_eq!(refused(&body), ("invalid_unicode".into(), Some("text[1]".into())), "{text}");
        }
        assert_eq!(refused("{\"\\ud800\":1}"), ("invalid_unicode".into(), None));
    }

    #[test]
    fn what_is_no_json_object_is_refused() {
        assert_eq!(refused("[]").0, "object_required");
        assert_eq!(refused("\"x\"").0, "object_required");
        for text in
            ["", "{", "{} {}", "{\"a\":}", "{a:1}", "{\"a\":NaN}", "\u{feff}{}", "{\"a\":1e999}", "{\"a\":\"\n\"}"]
        {
            assert_eq!(refused(text).0, "invalid_json", "{text}");
        }
        assert_eq!(parse(b"{\"a\":\"\xff\"}".to_vec()).unwrap_err().code, "invalid_unicode");
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(refused(&deep).0, "invalid_json");
    }
}
