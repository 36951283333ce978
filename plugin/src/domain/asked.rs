//! What is stored, and shown, of what a run stopped at. A question or the
//! arguments of an approval may be of any size; records and replies are not.
//! What exceeds the bound is cut where it is long, with a mark: an approval
//! keeps the names of its tool and arguments. The whole stays in the
//! conversation; its length and digest are stored.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::job::{Cut, Failure, OpenInterrupt, Wait};
use super::{ids, limits, text};

/// One of `count` open interrupts, whose value is this JSON text.
pub fn interrupt(id: &str, checkpoint: Option<&str>, value: &str, count: usize) -> OpenInterrupt {
    let (shown, cut) = shorten(value, limits::INTERRUPTS_BYTES / count.max(1));
    let cut = cut.then(|| Cut { bytes: value.len() as u64, digest: ids::digest("interrupt", &[value]) });
    OpenInterrupt { id: id.into(), checkpoint: checkpoint.map(String::from), value: shown, cut }
}

/// Why a run that stopped like this cannot be answered here, if it cannot:
/// its interrupts are too many, or their names too long to be kept.
pub fn unanswerable<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> Option<Failure> {
    let count = names.len();
    let long = names.map(str::len).max().unwrap_or(0);
    let message = match () {
        () if count > limits::INTERRUPTS => {
            format!("The run stopped at {count} interrupts; at most {} can be answered here.", limits::INTERRUPTS)
        }
        () if long > limits::INTERRUPT_ID_BYTES => {
            format!("The run stopped at something whose id has {long} bytes, so it cannot be answered here.")
        }
        () => return None,
    };
    Some(Failure { code: "not_answerable".into(), message: format!("{message} Inspect the conversation.") })
}

/// A question, with the suggested answers that are kept whole.
pub fn question(id: &str, asked: &str, options: &[String]) -> Wait {
    let mut left = limits::QUESTION_BYTES;
    let fits = |option: &&String| {
        let fits = option.len() <= left;
        left = left.saturating_sub(option.len());
        fits
    };
    Wait::Question {
        id: id.into(),
        text: cut_text(asked, limits::QUESTION_BYTES),
        options: options.iter().take_while(fits).cloned().collect(),
    }
}

/// A value as a page of many shows it. True: cut.
pub fn excerpt(value: &Value) -> (Value, bool) {
    shorten(&value.to_string(), limits::EXCERPT_BYTES)
}

/// A JSON text as a value of at most `bytes` bytes, or the text where it is no
/// JSON. True: cut.
fn shorten(json: &str, bytes: usize) -> (Value, bool) {
    if json.len() <= bytes {
        return (serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.into())), false);
    }
    // Long texts are cut first, then long lists and deep ones.
    let rooms = [(bytes / 2, 64, 16), (bytes / 8, 64, 16), (bytes / 32, 64, 8), (64, 16, 6), (32, 8, 4), (32, 3, 2)];
    for (string, items, depth) in rooms {
        let room = Room { string: string.max(32), items, depth };
        match room.read(json) {
            Some(value) if value.to_string().len() <= bytes => return (value, true),
            Some(_) => {}
            None => break,
        }
    }
    (Value::String(text::excerpt_json(json, bytes, bytes).0), true)
}

/// The text, or its beginning with a mark that tells its length.
fn cut_text(whole: &str, bytes: usize) -> String {
    if whole.len() <= bytes {
        return whole.to_string();
    }
    format!("{}… [cut: {} bytes in all]", text::cut(whole, bytes), whole.len())
}

/// How much of a value is kept. What is left out is not even held in memory.
#[derive(Clone, Copy)]
struct Room {
    /// Bytes of one text.
    string: usize,
    /// Items of one list or object.
    items: usize,
    depth: usize,
}

impl Room {
    fn read(self, json: &str) -> Option<Value> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let value = self.deserialize(&mut reader).ok()?;
        reader.end().ok()?;
        Some(value)
    }

    fn deeper(self) -> Option<Self> {
        Some(Self { depth: self.depth.checked_sub(1)?, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Room {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Room {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(cut_text(v, self.string).into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut kept = alloc::vec::Vec::new();
        if let Some(room) = self.deeper() {
            while kept.len() < self.items {
                let Some(item) = seq.next_element_seed(room)? else { return Ok(kept.into()) };
                kept.push(item);
            }
        }
        let mut more = 0u64;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            more += 1;
        }
        if more > 0 {
            kept.push(format!("… [cut: {more} more]").into());
        }
        Ok(kept.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        if let Some(room) = self.deeper() {
            while kept.len() < self.items {
                let Some(key) = map.next_key::<String>()? else { return Ok(kept.into()) };
                kept.insert(cut_text(&key, self.string), map.next_value_seed(room)?);
            }
        }
        let mut more = 0u64;
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            more += 1;
        }
        if more > 0 {
            kept.insert("…".into(), format!("[cut: {more} more]").into());
        }
        Ok(kept.into())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_is_kept_as_it_is() {
        let value = r#"{"tool":"write_file","arguments":{"path":"a","content":"text"}}"#;
        let kept = interrupt("i", Some("c"), value, 1);
        assert_eq!(
            (kept.value.to_string(), kept.cut),
            (serde_json::from_str::<Value>(value).unwrap().to_string(), None)
        );
        assert_eq!(interrupt("i", None, "no JSON", 1).value, json!("no JSON"));
    }

    #[test]
    fn an_approval_over_the_bound_keeps_its_tool_and_the_names_of_its_arguments() {
        let content = "研".repeat(400_000);
        let value = json!({"kind": "approval", "tool": "write_file", "digest": "d",
                           "arguments": {"path": "a.txt", "content": content, "mode": 420}});
        let kept = interrupt("i", None, &value.to_string(), 1);
        assert!(kept.value.to_string().len() <= limits::INTERRUPTS_BYTES);
        assert_eq!((&kept.value["tool"], &kept.value["digest"]), (&json!("write_file"), &json!("d")));
        assert_eq!(
            (&kept.value["arguments"]["path"], &kept.value["arguments"]["mode"]),
            (&json!("a.txt"), &json!(420))
        );
        let shown = kept.value["arguments"]["content"].as_str().unwrap();
        assert!(
            shown.starts_with("研研") && shown.ends_with("… [cut: 1200000 bytes in all]"),
            "{}",
            &shown[shown.len() - 40..]
        );
        // Two that look alike are not the same.
        let other = json!({"kind": "approval", "tool": "write_file", "digest": "d",
                           "arguments": {"path": "a.txt", "content": format!("{content}!"), "mode": 420}});
        assert_ne!(interrupt("i", None, &other.to_string(), 1), kept);
        let (short, cut) = excerpt(&kept.value);
        assert!(cut && short.to_string().len() <= limits::EXCERPT_BYTES && short["tool"] == "write_file", "{short}");
    }

    #[test]
    fn everything_over_the_bound_comes_within_it() {
        let deep = "[".repeat(100) + &"]".repeat(100);
        let keys: Vec<String> = (0..20_000).map(|n| format!("\"{n}\":{n}")).collect();
        let odd = [
            format!("[{}1]", "1,".repeat(50_000)),
            format!("[{}]", ["\"\\u0001\\u0001\""; 20_000].join(",")),
            format!("{{{}}}", keys.join(",")),
            format!("{{\"{}\":1}}", "k".repeat(100_000)),
            format!("[{}{deep}]", format!("{deep},").repeat(300)),
            "x".repeat(100_000),
            format!("\"{}\"", "\\u0000".repeat(50_000)),
            // Too deep to be read at all.
            "[".repeat(40_000) + &"]".repeat(40_000),
        ];
        for text in &odd {
            for count in [1, 2, limits::INTERRUPTS] {
                let kept = interrupt("i", None, text, count);
                let bound = limits::INTERRUPTS_BYTES / count;
                assert!(kept.value.to_string().len() <= bound, "{} of {}", kept.value.to_string().len(), &text[..20]);
                assert_eq!(kept.cut.unwrap().bytes, text.len() as u64);
            }
        }
    }

    #[test]
    fn a_question_is_bounded_and_its_options_are_whole_or_left_out() {
        let options = ["yes".to_string(), "n".repeat(limits::QUESTION_BYTES), "maybe".to_string()];
        let Wait::Question { id, text, options } = question("q", &"w".repeat(3_000_000), &options) else { panic!() };
        assert_eq!((id.as_str(), options), ("q", alloc::vec!["yes".to_string()]));
        assert!(text.len() < limits::QUESTION_BYTES + 50 && text.ends_with("… [cut: 3000000 bytes in all]"));
    }

    #[test]
    fn what_cannot_be_named_or_is_too_much_cannot_be_answered() {
        let names = |count, bytes| alloc::vec!["n".repeat(bytes); count];
        let of = |names: Vec<String>| unanswerable(names.iter().map(String::as_str).collect::<Vec<_>>().into_iter());
        assert_eq!(of(names(limits::INTERRUPTS, limits::INTERRUPT_ID_BYTES)), None);
        assert!(of(names(limits::INTERRUPTS + 1, 1)).is_some());
        assert!(of(names(1, limits::INTERRUPT_ID_BYTES + 1)).is_some());
    }
}
