//! The records of a team, read strictly: an unknown key, a missing one or a
//! `null` makes a record invalid at every level.

use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value;

use super::fields::Fields;
use super::record::{HistoricalMember, MemberPhase, Message, Record};
use super::{content, id};
use crate::domain::board::{Status, Task, TaskNumber, number};

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
    Fields::of(data, &["version", "teamId", name], &[])?.get(name)
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
