//! Bodies: one JSON object, strictly read.
//!
//! A body has the type `application/json`, is UTF-8, has a bounded size, and its
//! objects repeat no member. A mistake is answered with the path at which it
//! is (`members[2].name`).
//!
//! Checking builds nothing: a text of many small values would take twenty times
//! its size as a tree. Only bodies that the gateway itself reads, which are
//! small, are parsed; what goes to the component goes there as text.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use futures_util::StreamExt;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{App, Problem};

/// The largest body, in bytes.
pub(super) const MAX_BODY: usize = 256 * 1024;
/// Members of the objects that are open at one place of a body, together. Their
/// names are kept while they are open.
const MAX_NAMES: usize = 10_000;

/// A body that was not read yet. Its handler reads it, once the call has its
/// place and the handler knows how large it may be.
pub(super) struct Unread {
    body: Body,
    /// How long the client may take.
    time: Duration,
}

impl FromRequest<App> for Unread {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        check_type(request.headers())?;
        check_encoding(request.headers())?;
        Ok(Self { body: request.into_body(), time: app.limits.body_time })
    }
}

impl Unread {
    /// The body as it was sent: the text of one JSON object.
    pub(super) async fn text(self, most: usize) -> Result<String, Problem> {
        let bytes = tokio::time::timeout(self.time, collect(self.body, most)).await.map_err(|_| {
            Problem::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", "The body did not arrive in time.")
        })??;
        let text = String::from_utf8(bytes)
            .map_err(|_| Problem::invalid("invalid_unicode", "The body is not valid UTF-8; send UTF-8.", ""))?;
        check(&text)?;
        Ok(text)
    }

    /// The body's members, of which `known` are all that may be there.
    pub(super) async fn members(self, most: usize, known: &[&str]) -> Result<Map<String, Value>, Problem> {
        let text = self.text(most).await?;
        let members: Map<String, Value> = serde_json::from_str(&text).map_err(|_| Problem::internal())?;
        match members.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(members),
            Some(name) => {
                let name: String = name.chars().take(80).collect();
                Err(Problem::invalid("unknown_field", "This member is not known here; leave it out.", name))
            }
        }
    }
}

/// A member that must be text.
pub(super) fn text_of(members: &Map<String, Value>, name: &str) -> Result<String, Problem> {
    let value = members.get(name).and_then(Value::as_str);
    value.map(str::to_owned).ok_or_else(|| Problem::invalid("text_required", "Give this member as text.", name))
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

/// Bodies are sent as they are.
fn check_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    let plain = |value: &axum::http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if headers.get_all(header::CONTENT_ENCODING).iter().all(plain) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "encoding_unsupported",
        "The body is compressed; send it without a Content-Encoding.",
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

/// Refuses everything that is not one JSON object without repeated members.
fn check(text: &str) -> Result<(), Problem> {
    let reader = Reader::default();
    let mut json = serde_json::Deserializer::from_str(text);
    if let Err(error) = Seed(&reader).deserialize(&mut json).and_then(|()| json.end()) {
        return Err(reader.problem(text, &error));
    }
    if text.trim_start().starts_with('{') {
        Ok(())
    } else {
        Err(Problem::invalid("object_required", "The body must be one JSON object.", ""))
    }
}

/// Whether an escape `\ud800`–`\udfff` appears without its partner.
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

enum Step<'de> {
    Member(Cow<'de, str>),
    Item(usize),
}

/// What was wrong, where it is not the JSON itself.
#[derive(Clone, Copy)]
enum Fault {
    Duplicate,
    TooManyNames,
}

/// Where the check is; after an error, where it stopped.
#[derive(Default)]
struct Reader<'de> {
    path: RefCell<Vec<Step<'de>>>,
    /// Names of the objects that are open now.
    names: Cell<usize>,
    fault: Cell<Option<Fault>>,
}

impl Reader<'_> {
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

    fn problem(&self, text: &str, error: &serde_json::Error) -> Problem {
        let field = self.field();
        match self.fault.get() {
            Some(Fault::Duplicate) => Problem::invalid("duplicate_member", "Duplicate JSON key; send it once.", field),
            Some(Fault::TooManyNames) => {
                let detail = format!("An object, with those around it, has at most {MAX_NAMES} members; send a list.");
                Problem::invalid("too_many_members", detail, field)
            }
            None if has_unpaired_surrogate(text) => {
                let detail = "Text holds an unpaired surrogate escape, which is not a character; send valid Unicode.";
                Problem::invalid("invalid_unicode", detail, field)
            }
            // The reader's own words: its interface does not promise them, and a
            // test sees when they change.
            None if error.to_string().starts_with("recursion limit exceeded") => {
                Problem::invalid("too_deep", "The body is nested too deep; at most 127 levels are read.", field)
            }
            None if error.to_string().starts_with("number out of range") => {
                Problem::invalid("number_too_large", "A number is larger than JSON readers can hold; send less.", field)
            }
            None => {
                let detail = format!("The body is not valid JSON (line {}, column {}).", error.line(), error.column());
                Problem::invalid("invalid_json", detail, field)
            }
        }
    }
}

/// One value, which is looked at and not kept.
struct Seed<'a, 'de>(&'a Reader<'de>);

impl<'de> DeserializeSeed<'de> for Seed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for index in 0.. {
            self.0.path.borrow_mut().push(Step::Item(index));
            let item = items.next_element_seed(Seed(self.0))?;
            self.0.path.borrow_mut().pop();
            if item.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        let around = self.0.names.get();
        while let Some(name) = members.next_key_seed(Name)? {
            self.0.path.borrow_mut().push(Step::Member(name.clone()));
            let fault = if !names.insert(name) {
                Some(Fault::Duplicate)
            } else if around + names.len() > MAX_NAMES {
                Some(Fault::TooManyNames)
            } else {
                None
            };
            if fault.is_some() {
                self.0.fault.set(fault);
                return Err(A::Error::custom("refused"));
            }
            self.0.names.set(around + names.len());
            members.next_value_seed(Seed(self.0))?;
            self.0.path.borrow_mut().pop();
        }
        self.0.names.set(around);
        Ok(())
    }
}

/// A member's name, borrowed from the text where it holds no escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }
    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(name))
    }
    fn visit_str<E>(self, name: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (String, Option<String>) {
        let problem = check(text).unwrap_err();
        assert_eq!(problem.status, StatusCode::BAD_REQUEST);
        (problem.code, problem.field)
    }

    #[test]
    fn every_kind_of_value_is_taken() {
        check(" {\"a\": [1, -2, 3.5, null, true, \"\\ud83d\\ude00\"], \"b\": {\"a\": {}, \"\\u0062\": []}} ").unwrap();
    }

    #[test]
    fn names_are_bounded_over_all_open_objects() {
        let object =
            |from: usize, count: usize| (from..from + count).map(|n| format!("\"n{n}\":0,")).collect::<String>();
        check(&format!("{{{}\"z\":0}}", object(0, MAX_NAMES - 1))).unwrap();
        let many = format!("{{{}\"z\":0}}", object(0, MAX_NAMES));
        assert_eq!(refused(&many), ("too_many_members".into(), Some("z".into())));
        let nested = format!("{{{}\"z\":{{{}\"y\":0}}}}", object(0, MAX_NAMES - 10), object(0, 10));
        assert_eq!(refused(&nested).0, "too_many_members");
        // One after another they are not open together.
        let beside = format!("{{\"a\":[{{{0}\"z\":0}},{{{0}\"z\":0}}]}}", object(0, MAX_NAMES - 10));
        check(&beside).unwrap();
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
        for text in ["", "{", "{} {}", "{\"a\":}", "{a:1}", "{\"a\":NaN}", "\u{feff}{}", "{\"a\":\"\n\"}"] {
            assert_eq!(refused(text).0, "invalid_json", "{text}");
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(refused(&deep).0, "too_deep");
        assert_eq!(refused("{\"a\":[1e999]}"), ("number_too_large".into(), Some("a[0]".into())));
    }
}
