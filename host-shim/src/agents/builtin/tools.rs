//! The tools of an agent: the built-in ones and those of the component.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::files::{FileError, Workspace};
use super::ids;
use crate::agents::config::AgentConfig;
use crate::contract::{CallError, Refusal, ToolDef};
use crate::storage::tables::agents::StoredQuestion;

pub const CLARIFY: &str = crate::agents::config::ASK;

/// Bytes stored of one tool result; a longer one is cut with a mark.
pub const MAX_RESULT: usize = 32 * 1024;
const MAX_QUESTION: usize = 4_000;
const MAX_OPTIONS: usize = 10;
const MAX_OPTION: usize = 400;

fn def(name: &str, description: &str, input_schema: Value) -> ToolDef {
    let read_only = matches!(name, "read_file" | "list_files");
    ToolDef {
        name: name.into(),
        title: name.replace('_', " "),
        description: description.into(),
        input_schema,
        output_schema: None,
        read_only,
        idempotent: name != CLARIFY,
        destructive: name == "write_file",
        command: name.into(),
    }
}

/// The tools that every host has.
pub fn builtin() -> Vec<ToolDef> {
    let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let path = json!({"type": "string", "description": "Relative path in your workspace, for example notes/plan.md"});
    vec![
        def(
            CLARIFY,
            "Ask the person or agent you work for one question that you cannot answer yourself. Your turn ends with it; \
             the answer comes as the next message.",
            object(
                json!({
                    "question": {"type": "string", "minLength": 1, "maxLength": MAX_QUESTION},
                    "options": {"type": "array", "items": {"type": "string", "maxLength": MAX_OPTION},
                        "maxItems": MAX_OPTIONS, "description": "Suggested answers"},
                }),
                json!(["question"]),
            ),
        ),
        def("list_files", "List the files of your workspace.", object(json!({}), json!([]))),
        def(
            "read_file",
            "Read a text file of your workspace. A long file comes in parts: pass next_offset as offset to go on.",
            object(json!({"path": path, "offset": {"type": "integer", "minimum": 0}}), json!(["path"])),
        ),
        def(
            "write_file",
            "Write a text file of your workspace: makes it, or replaces it as a whole.",
            object(json!({"path": path, "text": {"type": "string"}}), json!(["path", "text"])),
        ),
    ]
}

/// What an agent may call, out of the built-in tools and the component's.
pub fn of_agent(agent: &AgentConfig, component: &[ToolDef]) -> Vec<ToolDef> {
    let mut tools = builtin();
    tools
        .extend(component.iter().filter(|t| !crate::agents::config::BUILTIN_TOOLS.contains(&t.name.as_str())).cloned());
    tools.retain(|t| agent.allows_tool(&t.name));
    tools
}

/// An error result, in the form that models are told about every refusal.
pub fn error_text(code: &str, message: &str, field: Option<&str>) -> String {
    let mut error = json!({"code": code, "message": message});
    if let Some(field) = field {
        error["field"] = json!(field);
    }
    json!({"error": error}).to_string()
}

/// A failed component call, as the model sees it.
pub fn call_error_text(error: &CallError) -> String {
    match error {
        CallError::Refused(Refusal { code, message, field, detail, .. }) => {
            let mut text = json!({"code": code, "message": message});
            if let Some(field) = field {
                text["field"] = json!(field);
            }
            if let Some(detail) = detail {
                text["detail"] = detail.clone();
            }
            json!({"error": text}).to_string()
        }
        CallError::Fault { code, message } => error_text(code.as_str(), message, None),
    }
}

/// A result within its bound.
pub fn bounded(text: String) -> String {
    if text.len() <= MAX_RESULT { text } else { ids::shorten(&text, MAX_RESULT).into_owned() }
}

fn parse<T: serde::de::DeserializeOwned>(arguments: &Value) -> Result<T, String> {
    T::deserialize(arguments)
        .map_err(|e| error_text("invalid_arguments", &format!("The arguments do not fit: {e}."), None))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Clarification {
    question: String,
    #[serde(default)]
    options: Option<Vec<String>>,
}

/// Reads a clarification. The error is the result text.
pub fn clarification(id: &str, arguments: &Value) -> Result<StoredQuestion, String> {
    let Clarification { question, options } = parse(arguments)?;
    let (text, options) = (question.trim(), options.unwrap_or_default());
    let refuse = |message: &str, field| Err(error_text("invalid_arguments", message, Some(field)));
    if text.is_empty() {
        return refuse("The question is empty.", "question");
    }
    if text.chars().count() > MAX_QUESTION {
        return refuse("The question has more than 4,000 characters.", "question");
    }
    if options.len() > MAX_OPTIONS || options.iter().any(|o| o.chars().count() > MAX_OPTION) {
        return refuse("There may be 10 options of 400 characters.", "options");
    }
    Ok(StoredQuestion { id: id.into(), text: text.into(), options })
}

/// The result of a clarification, which the answer follows.
pub fn clarification_text(question: &StoredQuestion) -> String {
    json!({"asked": question.text, "note": "The turn ends here. The answer, once given, is the next human message."})
        .to_string()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadFile {
    path: String,
    #[serde(default)]
    offset: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteFile {
    path: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListFiles {}

/// Runs a file tool; the answer is the result text. Absent: it is not a file
/// tool.
pub async fn files(root: PathBuf, name: &str, arguments: &Value, call: &str) -> Option<String> {
    if !matches!(name, "read_file" | "write_file" | "list_files") {
        return None;
    }
    let (name, arguments, call) = (name.to_owned(), arguments.clone(), call.to_owned());
    let work = move || {
        let workspace = Workspace::new(root);
        let answer = match name.as_str() {
            "read_file" => parse::<ReadFile>(&arguments).map(|a| workspace.read(&a.path, a.offset.unwrap_or(0))),
            "write_file" => parse::<WriteFile>(&arguments).map(|a| workspace.write(&a.path, &a.text, &call)),
            _ => parse::<ListFiles>(&arguments).map(|ListFiles {}| workspace.list()),
        };
        match answer {
            Ok(Ok(value)) => value.to_string(),
            Ok(Err(FileError { code, message })) => error_text(code, &message, Some("path")),
            Err(text) => text,
        }
    };
    let done = tokio::task::spawn_blocking(work).await;
    Some(done.unwrap_or_else(|_| error_text("file_error", "The file tool failed.", None)))
}
