//! Opaque cursors: a record's number, sealed with a team's secret and bound to
//! whatever the list depends on. Without the secret nothing can be read from
//! one or made up.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::ids;

const SEAL: usize = 24;

/// A cursor that names `place`.
pub fn seal(secret: &str, binding: &[&str], place: u32) -> String {
    let number = format!("{place:08x}");
    let mut parts: Vec<&str> = alloc::vec![secret];
    parts.extend_from_slice(binding);
    parts.push(&number);
    let seal = &ids::digest("cursor", &parts)[..SEAL];
    format!("{:08x}{seal}", place ^ mask(secret, seal))
}

/// The place of a cursor that was sealed with the same secret and binding.
pub fn open(secret: &str, binding: &[&str], cursor: &str) -> Option<u32> {
    let (number, sealed) = (cursor.get(..8)?, cursor.get(8..)?);
    let place = u32::from_str_radix(number, 16).ok()? ^ mask(secret, sealed);
    (seal(secret, binding, place) == cursor).then_some(place)
}

/// Hides the number; it depends on the seal, so that equal numbers look
/// unlike in every list.
fn mask(secret: &str, seal: &str) -> u32 {
    let digest = ids::digest("cursor-mask", &[secret, seal]);
    u32::from_str_radix(&digest[..8], 16).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_opens_where_it_was_sealed_and_nowhere_else() {
        for place in [1, 7, 100, u32::MAX] {
            let cursor = seal("secret", &["a", "b"], place);
            assert_eq!(open("secret", &["a", "b"], &cursor), Some(place));
            assert_eq!(open("secret", &["a", "c"], &cursor), None);
            assert_eq!(open("secret", &["ab", ""], &cursor), None);
            assert_eq!(open("other", &["a", "b"], &cursor), None);
        }
        for bad in ["", "00000001", "é", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", "+0000001aaaaaaaaaaaaaaaaaaaaaaaa"] {
            assert_eq!(open("secret", &["a", "b"], bad), None, "{bad}");
        }
    }

    #[test]
    fn one_changed_character_makes_it_another_cursor() {
        let cursor = seal("secret", &["a"], 5);
        for at in 0..cursor.len() {
            let mut other: Vec<u8> = cursor.clone().into_bytes();
            other[at] = if other[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(open("secret", &["a"], &String::from_utf8(other).expect("ascii")), None);
        }
    }

    #[test]
    fn neighbours_do_not_look_alike() {
        let numbers: Vec<String> = (1..=4).map(|n| seal("secret", &["a"], n)[..6].into()).collect();
        assert!(numbers.iter().all(|n| n != "000000"), "{numbers:?}");
    }
}
