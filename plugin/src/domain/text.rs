//! Texts from outside: trimming, bounds, what a name may contain, and cutting
//! at a character boundary.

use alloc::format;
use alloc::string::{String, ToString};

use unicode_normalization::UnicodeNormalization;

use super::error::{Error, Result};
use super::limits::Bound;

/// White space as ECMAScript's `trim` sees it, so that page and component
/// agree: with U+FEFF, without U+0085.
pub fn is_space(c: char) -> bool {
    matches!(
        c,
        '\u{9}'..='\u{d}' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}'
            | '\u{205f}' | '\u{3000}' | '\u{feff}'
    )
}

/// Trims by [`is_space`].
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// A trimmed, non-empty text within its bound, without U+0000.
pub fn bounded(field: &str, text: &str, bound: Bound) -> Result<String> {
    let text = trim(text);
    if text.is_empty() {
        return Err(Error::invalid("empty", field, format!("`{field}` must not be empty.")));
    }
    within(field, text, bound)?;
    Ok(text.to_string())
}

/// Both bounds and U+0000, on a text that is already trimmed.
pub fn within(field: &str, text: &str, bound: Bound) -> Result<()> {
    if text.contains('\0') {
        return Err(Error::invalid(
            "nul_character",
            field,
            format!("`{field}` must not contain the character U+0000."),
        ));
    }
    let chars = text.chars().count();
    if chars > bound.chars || text.len() > bound.bytes {
        return Err(Error::invalid(
            "too_long",
            field,
            format!(
                "`{field}` has {chars} characters and {} bytes; at most {} characters and {} bytes are allowed. Shorten it.",
                text.len(),
                bound.chars,
                bound.bytes
            ),
        ));
    }
    Ok(())
}

/// A name of a team, member or agent: one line, nothing invisible that could
/// make it look like another name, normalised to NFC.
pub fn name(field: &str, text: &str, bound: Bound) -> Result<String> {
    let composed = bounded(field, &composed(text), bound)?;
    if let Some(c) = composed.chars().find(|c| forbidden_in_name(*c)) {
        return Err(Error::invalid(
            "invalid_name",
            field,
            format!(
                "`{field}` contains the character U+{:04X}, which is a line break, a control character or invisible. Remove it.",
                c as u32
            ),
        ));
    }
    Ok(composed)
}

/// A given name as stored names are compared: trimmed, in NFC.
pub fn composed(text: &str) -> String {
    trim(text).nfc().collect()
}

/// The name of an agent, which its host chose: it is bounded and compared as it
/// is.
pub fn agent_name(field: &str, text: &str, bound: Bound) -> Result<String> {
    let name = bounded(field, text, bound)?;
    if let Some(c) = name.chars().find(|c| c.is_control()) {
        let message = format!("`{field}` contains the control character U+{:04X}. Remove it.", c as u32);
        return Err(Error::invalid("invalid_name", field, message));
    }
    Ok(name)
}

/// Control characters, line separators, and characters that are invisible or
/// change the direction of text: with them two names could look alike.
fn forbidden_in_name(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// An id that somebody sends back to us. Anything that cannot be one of ours
/// is simply unknown, which the caller of this function says in its own way.
pub fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// The longest prefix of at most `bytes` bytes that ends on a character.
pub fn cut(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let mut end = bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The text, or its beginning and a mark, within `bytes` bytes. True: cut.
pub fn excerpt(text: &str, bytes: usize) -> (String, bool) {
    const MARK: &str = "…";
    if text.len() <= bytes {
        return (text.to_string(), false);
    }
    (format!("{}{MARK}", cut(text, bytes.saturating_sub(MARK.len()))), true)
}

/// The text, or its beginning and a mark, within `bytes` bytes and within
/// `json_bytes` bytes as a compact JSON string, quotes included. True: cut.
pub fn excerpt_json(text: &str, bytes: usize, json_bytes: usize) -> (String, bool) {
    let (shown, cut) = excerpt(text, bytes);
    if json_len(&shown) <= json_bytes {
        return (shown, cut);
    }
    let mut left = json_bytes.saturating_sub(2 + "…".len());
    let mut end = 0;
    for c in text.chars() {
        let mut one = [0; 4];
        let size = json_len(c.encode_utf8(&mut one)) - 2;
        if size > left {
            break;
        }
        left -= size;
        end += c.len_utf8();
    }
    (format!("{}…", &text[..end]), true)
}

/// Folded for comparison without case, by full Unicode case folding.
pub fn fold(text: &str) -> String {
    icu_casemap::CaseMapper::new().fold_string(text).into_owned()
}

/// Where the first find of a folded text is in `body`, in bytes. A find that
/// ends inside of what one character folds to takes that character whole.
pub fn find(body: &str, folded: &str) -> Option<core::ops::Range<usize>> {
    if folded.is_empty() {
        return None;
    }
    let mut whole = String::with_capacity(body.len());
    // Where each character begins, here and folded: folding knows no context.
    let mut places = alloc::vec::Vec::new();
    for (at, c) in body.char_indices() {
        places.push((whole.len(), at));
        whole.push_str(&fold(c.encode_utf8(&mut [0; 4])));
    }
    let start = whole.find(folded)?;
    let end = start + folded.len();
    let from = places.partition_point(|(place, _)| *place <= start) - 1;
    let to = places.partition_point(|(place, _)| *place < end);
    Some(places[from].1..places.get(to).map_or(body.len(), |(_, at)| *at))
}

/// How many bytes a text takes as a compact JSON string, quotes included, with
/// non-ASCII characters unescaped.
pub fn json_len(text: &str) -> usize {
    2 + text
        .bytes()
        .map(|b| match b {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
            0..=0x1f => 6,
            _ => 1,
        })
        .sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uni_1_a_cut_falls_on_a_character_at_every_offset() {
        for unit in ["a", "é", "研", "😀", "\"", "\u{1}"] {
            for lead in 0..4 {
                let text: String = "x".repeat(lead) + &unit.repeat(7_000);
                for bytes in [8, 499, 500, 501, 6_000] {
                    let (shown, cut) = excerpt(&text, bytes);
                    assert!(cut && shown.len() <= bytes && shown.ends_with('…'));
                    assert!(shown.len() + unit.len() > bytes, "{unit} {bytes}: nothing is wasted");
                    let (shown, cut) = excerpt_json(&text, 6_000, bytes);
                    let json = serde_json::to_string(&shown).expect("writes").len();
                    assert!(cut && json <= bytes && json + 6 > bytes.min(6_000), "{unit} {bytes} {json}");
                }
            }
        }
    }

    #[test]
    fn a_text_within_both_bounds_is_left_as_it_is() {
        let text = "\u{1}".repeat(10);
        assert_eq!(excerpt_json(&text, 10, 62), (text.clone(), false));
        assert!(excerpt_json(&text, 10, 61).1);
        assert!(excerpt_json(&text, 9, 62).1);
    }

    #[test]
    fn folding_is_full_and_changes_no_other_text() {
        assert_eq!(fold("CAFÉ"), fold("café"));
        assert_eq!(fold("STRASSE"), fold("straße"));
        assert_eq!(fold("引用 17%_\"*"), "引用 17%_\"*");
    }

    #[test]
    fn the_json_length_is_that_of_the_written_text() {
        let text: String = (0..=0x2ff).filter_map(char::from_u32).chain("研😀\u{2028}".chars()).collect();
        assert_eq!(json_len(&text), serde_json::to_string(&text).expect("writes").len());
    }
}
