//! Pages of records within a count and a byte budget.

use alloc::vec::Vec;

use serde_json::Value;

use super::limits;

/// Room for the fields around the records of a page: names, a cursor, a
/// revision and a note.
const ENVELOPE: usize = 400;

/// A page under way.
#[derive(Debug)]
pub struct Page {
    limit: usize,
    used: usize,
    pub records: Vec<Value>,
}

impl Page {
    pub fn new(limit: usize) -> Self {
        Self { limit, used: ENVELOPE, records: Vec::new() }
    }

    pub fn full(&self) -> bool {
        self.records.len() >= self.limit
    }

    /// Takes the record if the page stays within its bounds. A page takes its
    /// first record in any case; its texts were cut to fit alone.
    pub fn push(&mut self, record: Value) -> bool {
        let bytes = serde_json::to_string(&record).map_or(0, |t| t.len()) + 1;
        if self.full() || (!self.records.is_empty() && self.used + bytes > limits::PAGE_BYTES) {
            return false;
        }
        self.used += bytes;
        self.records.push(record);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use serde_json::json;

    #[test]
    fn a_page_stops_at_its_count_and_at_its_bytes() {
        let mut page = Page::new(2);
        assert!(page.push(json!(1)) && page.push(json!(2)) && !page.push(json!(3)));
        let text = |n: usize| json!(core::iter::repeat_n('x', n).collect::<String>());
        let mut page = Page::new(20);
        assert!(page.push(text(limits::PAGE_BYTES - ENVELOPE - 3 - 10)));
        assert!(!page.push(text(8)), "one byte over");
        assert!(page.push(text(7)));
    }
}
