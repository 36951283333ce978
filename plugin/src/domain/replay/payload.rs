//! The records of a team, read strictly: an unknown key, a missing one or a
//! `null` makes a record invalid at every level.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::history::{HistoricalMember, MemberPhase};
use super::{content, id, integer};
use crate::domain::board::{Status, Task, TaskNumber, number};

/// One record of a team.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    Task(Task),
    Member(HistoricalMember),
    Queued(Message),
    Delivered { message: String, target: String },
}

/// A message of the older mailbox. It is kept to be read and never delivered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub id: String,
    pub sender_id: String,
    pub sender_name: String,
    pub target_id: String,
    /// Blocks as they were written.
    pub content: Vec<Value>,
    /// How it was to be delivered; version 1 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<String>,
}

/// Reads the payload of a selected event. `None`: it is invalid.
pub fn parse_record(kind: &str, version: u64, data: &Value) -> Option<Record> {
    match kind {
        "team/task" => task(inner(data, "task")?).map(Record::Task),
        "team/member" => member(inner(data, "member")?).map(Record::Member),
        "team/message/queued" => message(inner(data, "message")?, version).map(Record::Queued),
        "team/message/delivered" => {
            let data = Fields::of(data, &["version", "teamId", "messageId", "targetId"], &[])?;
            Some(Record::Delivered { message: data.id("messageId")?, target: data.id("targetId")? })
        }
        _ => None,
    }
}

/// The one value beside version and team.
fn inner<'v>(data: &'v Value, name: &'static str) -> Option<&'v Value> {
    Fields::of(data, &["version", "teamId", name], &[])?.0.get(name)
}

/// An object with exactly the expected keys.
pub(super) struct Fields<'v>(&'v Map<String, Value>);

impl<'v> Fields<'v> {
    pub fn of(value: &'v Value, required: &[&str], optional: &[&str]) -> Option<Self> {
        let map = value.as_object()?;
        let known = map.keys().all(|k| required.contains(&k.as_str()) || optional.contains(&k.as_str()));
        (known && required.iter().all(|k| map.contains_key(*k))).then_some(Self(map))
    }

    pub fn get(&self, key: &str) -> Option<&'v Value> {
        self.0.get(key)
    }

    pub fn id(&self, key: &str) -> Option<String> {
        id(self.0.get(key)?)
    }

    pub fn text(&self, key: &str) -> Option<String> {
        self.0.get(key)?.as_str().map(String::from)
    }

    pub fn texts(&self, key: &str) -> Option<Vec<String>> {
        self.0.get(key)?.as_array()?.iter().map(|v| v.as_str().map(String::from)).collect()
    }

    /// Absent, or present and as `read` wants it.
    pub fn optional<T>(&self, key: &str, read: impl Fn(&'v Value) -> Option<T>) -> Option<Option<T>> {
        match self.0.get(key) {
            None => Some(None),
            Some(value) => read(value).map(Some),
        }
    }

    pub fn integer(&self, key: &str) -> Option<u64> {
        integer(self.0.get(key)?)
    }
}

fn task(value: &Value) -> Option<Task> {
    let required = ["id", "revision", "subject", "description", "status", "blockedBy", "writeScopes"];
    let fields = Fields::of(value, &required, &["ownerId"])?;
    let blocked_by = fields.get("blockedBy")?.as_array()?.iter().map(task_id).collect::<Option<Vec<_>>>()?;
    Some(Task {
        id: task_id(fields.get("id")?)?,
        revision: fields.integer("revision").filter(|n| *n >= 1)?,
        subject: fields.text("subject")?,
        description: fields.text("description")?,
        status: match fields.get("status")?.as_str()? {
            "pending" => Status::Pending,
            "in_progress" => Status::InProgress,
            "completed" => Status::Completed,
            "deleted" => Status::Deleted,
            _ => return None,
        },
        owner_id: fields.optional("ownerId", id)?,
        blocked_by,
        write_scopes: fields.texts("writeScopes")?,
    })
}

fn task_id(value: &Value) -> Option<String> {
    id(value).filter(|id| number(id) != TaskNumber::TooLarge)
}

fn member(value: &Value) -> Option<HistoricalMember> {
    let required = ["id", "name", "description", "provider", "context", "phase"];
    let fields = Fields::of(value, &required, &["error"])?;
    Some(HistoricalMember {
        id: fields.id("id")?,
        name: fields.text("name")?,
        description: fields.text("description")?,
        provider: fields.text("provider")?,
        context: fields.text("context").filter(|c| matches!(c.as_str(), "fresh" | "fork"))?,
        phase: match fields.get("phase")?.as_str()? {
            "provisioning" => MemberPhase::Provisioning,
            "active" => MemberPhase::Active,
            "failed" => MemberPhase::Failed,
            _ => return None,
        },
        error: fields.optional("error", |v| v.as_str().map(String::from))?,
    })
}

fn message(value: &Value, version: u64) -> Option<Message> {
    let mut required = alloc::vec!["id", "senderId", "senderName", "targetId", "content"];
    if version == 1 {
        required.push("delivery");
    }
    let fields = Fields::of(value, &required, &[])?;
    let content = fields.get("content")?.as_array()?;
    if !content.iter().all(content::valid) {
        return None;
    }
    let delivery = match version {
        1 => Some(fields.text("delivery").filter(|d| matches!(d.as_str(), "quiet" | "wakeup"))?),
        _ => None,
    };
    Some(Message {
        id: fields.id("id")?,
        sender_id: fields.id("senderId")?,
        sender_name: fields.text("senderName")?,
        target_id: fields.id("targetId")?,
        content: content.clone(),
        delivery,
    })
}
