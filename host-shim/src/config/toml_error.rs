//! Where in the file a mistake is: the line, and the key as a dotted path.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ConfigError;

/// A text and the name of its file.
pub(super) struct Located<'a> {
    text: &'a str,
    name: &'a str,
}

impl<'a> Located<'a> {
    pub(super) fn new(text: &'a str, name: &'a str) -> Self {
        Self { text, name }
    }

    /// An error of the parser or of a type. `table` is the parsed text, if it
    /// could be parsed, from which the key is found.
    pub(super) fn error(&self, error: &toml::de::Error, table: Option<&Spanned<DeTable<'_>>>) -> ConfigError {
        let offset = error.span().map_or(0, |span| span.start);
        let mut path = Vec::new();
        if let Some(table) = table {
            find_table(table.get_ref(), offset, &mut path);
        }
        self.invalid(offset, &path, error.message().to_owned())
    }

    /// A mistake at the value with this path, or at the nearest part of the
    /// path that is in the file.
    pub(super) fn at(&self, table: &Spanned<DeTable<'_>>, path: &[String], message: String) -> ConfigError {
        self.invalid(offset_of(table, path), path, message)
    }

    fn invalid(&self, offset: usize, path: &[String], message: String) -> ConfigError {
        let before = self.text.get(..offset).unwrap_or(self.text);
        ConfigError::Invalid {
            file: self.name.to_owned(),
            line: before.matches('\n').count() + 1,
            key: path.join("."),
            message,
        }
    }
}

/// Appends the keys that lead to the text at `offset`; false: nothing does.
fn find_table(table: &DeTable<'_>, offset: usize, path: &mut Vec<String>) -> bool {
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        if key.span().contains(&offset) || find_value(value, offset, path) {
            return true;
        }
        path.pop();
    }
    false
}

fn find_value(value: &Spanned<DeValue<'_>>, offset: usize, path: &mut Vec<String>) -> bool {
    // The span of a table is its header only, so its content is always looked at.
    let found = match value.get_ref() {
        DeValue::Table(table) => find_table(table, offset, path),
        DeValue::Array(items) => items.iter().enumerate().any(|(index, item)| {
            path.push(index.to_string());
            let found = find_value(item, offset, path);
            if !found {
                path.pop();
            }
            found
        }),
        _ => false,
    };
    found || value.span().contains(&offset)
}

fn offset_of(table: &Spanned<DeTable<'_>>, path: &[String]) -> usize {
    let mut offset = table.span().start;
    let Some((first, rest)) = path.split_first() else { return offset };
    let Some((_, mut value)) = table.get_ref().iter().find(|(key, _)| key.get_ref().as_ref() == first.as_str()) else {
        return offset;
    };
    offset = value.span().start;
    for part in rest {
        let next = match value.get_ref() {
            DeValue::Table(table) => table.iter().find(|(key, _)| key.get_ref().as_ref() == part.as_str()).map(|e| e.1),
            DeValue::Array(items) => part.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => None,
        };
        let Some(next) = next else { break };
        value = next;
        offset = value.span().start;
    }
    offset
}
