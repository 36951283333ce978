//! JSON Schemas, made from the types that parse the arguments.

use alloc::string::String;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The type's description and its schema as compact JSON, without what only
/// tools for schemas read.
pub fn of<T: JsonSchema>() -> (String, String) {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let description = schema.get("description").and_then(Value::as_str).map(one_line).unwrap_or_default();
    if let Some(object) = schema.as_object_mut() {
        object.remove("description");
        object.remove("title");
    }
    (description, serde_json::to_string(&schema).unwrap_or_default())
}

/// A doc comment's lines as one paragraph.
fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}
