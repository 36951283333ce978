//! The blocks of a message. Known ones are read strictly; a block of a type
//! that is not known yet is kept as it is.

use serde_json::Value;

use super::fields::Fields;

/// Whether a block is valid.
pub fn valid(block: &Value) -> bool {
    check(block).is_some()
}

fn check(block: &Value) -> Option<()> {
    let kind = block.as_object()?.get("type")?.as_str().filter(|kind| !kind.is_empty())?;
    match kind {
        "text" | "reasoning" => Fields::of(block, &["type", "text"], &[])?.text("text").map(drop),
        "image" => {
            let required = ["type", "attachmentId", "mediaType", "bytes", "width", "height"];
            let fields = Fields::of(block, &required, &["name"])?;
            fields.id("attachmentId")?;
            let media = fields.text("mediaType")?;
            fields.integer("bytes")?;
            fields.integer("width").filter(|n| *n >= 1)?;
            fields.integer("height").filter(|n| *n >= 1)?;
            fields.optional("name", Value::as_str)?;
            matches!(media.as_str(), "image/png" | "image/jpeg" | "image/webp" | "image/gif").then_some(())
        }
        "tool-call" => {
            let fields = Fields::of(block, &["type", "id", "name", "arguments"], &[])?;
            fields.id("id")?;
            fields.text("name").filter(|name| !name.is_empty())?;
            fields.text("arguments").map(drop)
        }
        "tool-result" => {
            let fields = Fields::of(block, &["type", "toolCallId", "content"], &["isError"])?;
            fields.id("toolCallId")?;
            fields.optional("isError", Value::as_bool)?;
            let inner = fields.get("content")?.as_array()?;
            inner.iter().all(valid).then_some(())
        }
        _ => Some(()),
    }
}
