//! The public state: what members maintain together beside their messages.
//! Entries are kept in their latest version; nothing here is deleted.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::{Error, Result};
use super::{ids, limits, text, time};

/// What an entry is about; it never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Objective,
    Plan,
    Finding,
    Question,
    Requirement,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Objective => "objective",
            Kind::Plan => "plan",
            Kind::Finding => "finding",
            Kind::Question => "question",
            Kind::Requirement => "requirement",
        }
    }
}

/// Active entries are in every context; archived ones can be queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Active,
    Archived,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Archived => "archived",
        }
    }
}

/// Who wrote a version, from where and when: set by the component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The member's id.
    pub member: String,
    /// The member's conversation.
    pub thread: String,
    /// The job that the conversation executed. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Where an entry that was carried over from an earlier team was written.
    /// Absent: in this team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
    pub at: u64,
}

/// The author of a text in an earlier team of the same owner: told by value,
/// since that team may be deleted while its successor lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier {
    /// The earlier team's id.
    pub team: String,
    /// The name that the author had there.
    pub member: String,
}

/// The latest version of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub id: String,
    pub kind: Kind,
    pub title: String,
    pub content: String,
    pub status: Status,
    /// 1 when published, one more with each update.
    pub revision: u32,
    /// Digest of what was published, so that the same publication with other
    /// content is a conflict.
    pub published: String,
    pub created: Stamp,
    pub edited: Stamp,
}

/// A title and a content within their bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub title: String,
    pub content: String,
}

impl Draft {
    pub fn check(title: &str, content: &str) -> Result<Self> {
        Ok(Self {
            title: text::bounded("title", title, limits::STATE_TITLE)?,
            content: text::bounded("content", content, limits::STATE_CONTENT)?,
        })
    }

    /// Digest of a publication.
    pub fn publication(&self, kind: Kind) -> String {
        ids::digest("publication", &[kind.name(), &self.title, &self.content])
    }
}

/// What an update means for the entry as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The next version.
    Apply(Box<Entry>),
    /// The latest update, sent again from the same conversation.
    Repeated,
    /// Somebody else was first.
    Conflict,
}

/// Compares and sets: an update is for the revision that its author has read.
pub fn decide(entry: &Entry, expected: u32, draft: &Draft, status: Status, by: &Stamp) -> Decision {
    if expected == entry.revision {
        return Decision::Apply(Box::new(Entry {
            title: draft.title.clone(),
            content: draft.content.clone(),
            status,
            revision: entry.revision.saturating_add(1),
            edited: by.clone(),
            ..entry.clone()
        }));
    }
    let latest = entry.revision > 1
        && expected == entry.revision - 1
        && entry.title == draft.title
        && entry.content == draft.content
        && entry.status == status
        && entry.edited.thread == by.thread;
    if latest { Decision::Repeated } else { Decision::Conflict }
}

/// The entry as a successor of `team` takes it over: the text as it is, as
/// a publication of its own, with the author and the place of that text.
/// `name` gives the name of a member of `team`.
///
/// As [`project`] shows it, it takes no more bytes than it did there, so what
/// was within the budget stays within it.
pub fn carry<'n>(entry: &Entry, id: String, team: &str, name: impl Fn(&str) -> Option<&'n str>) -> Entry {
    let author = &entry.edited;
    let earlier = author
        .earlier
        .clone()
        .or_else(|| Some(Earlier { team: team.into(), member: name(&author.member).unwrap_or_default().into() }));
    let stamp = Stamp { job: None, earlier, ..author.clone() };
    let draft = Draft { title: entry.title.clone(), content: entry.content.clone() };
    Entry {
        id,
        status: Status::Active,
        revision: 1,
        published: draft.publication(entry.kind),
        created: stamp.clone(),
        edited: stamp,
        ..entry.clone()
    }
}

/// The entry as tools, context and page show it. `name` gives a member's name.
/// An author from an earlier team is told by that `team` and the name there.
pub fn project<'n>(entry: &Entry, name: impl Fn(&str) -> Option<&'n str>) -> Value {
    let stamp = |stamp: &Stamp| {
        let at = time::rfc3339(stamp.at);
        if let Some(from) = &stamp.earlier {
            return json!({"team": from.team, "member": from.member, "thread": stamp.thread, "at": at});
        }
        let mut value = json!({
            "member_id": stamp.member, "member": name(&stamp.member), "thread": stamp.thread, "at": at,
        });
        if let Some(job) = &stamp.job {
            value["job_id"] = json!(job);
        }
        value
    };
    let mut value = json!({
        "id": entry.id, "kind": entry.kind, "title": entry.title, "content": entry.content, "status": entry.status,
        "revision": entry.revision, "created_by": stamp(&entry.created),
    });
    // The first version has one author: told once.
    if entry.revision > 1 {
        value["edited_by"] = stamp(&entry.edited);
    }
    value
}

/// Bytes of the compact JSON array of all entries, archived ones included.
pub fn projection_bytes(entries: &[Value]) -> usize {
    let items: usize = entries.iter().map(|e| serde_json::to_string(e).map_or(0, |t| t.len())).sum();
    2 + items + entries.len().saturating_sub(1)
}

/// Refuses entries over the budget of all entries together.
pub fn check_budget(entries: &[Value]) -> Result<()> {
    let bytes = projection_bytes(entries);
    if bytes <= limits::STATE_BYTES {
        return Ok(());
    }
    Err(Error::limit(
        "state_budget",
        format!(
            "With this the team's public state would take {bytes} bytes as JSON; at most {} are allowed for all entries \
             together, archived ones included. Shorten or reuse an existing entry with update_team_state.",
            limits::STATE_BYTES
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn stamp(thread: &str) -> Stamp {
        Stamp { member: "m".into(), thread: thread.into(), job: None, earlier: None, at: 0 }
    }

    fn entry() -> Entry {
        Entry {
            id: "s-1".into(),
            kind: Kind::Plan,
            title: "t".into(),
            content: "c".into(),
            status: Status::Active,
            revision: 1,
            published: String::new(),
            created: stamp("a"),
            edited: stamp("a"),
        }
    }

    fn draft(content: &str) -> Draft {
        Draft { title: "t".into(), content: content.into() }
    }

    #[test]
    fn an_update_is_for_the_revision_that_was_read() {
        let Decision::Apply(second) = decide(&entry(), 1, &draft("x"), Status::Archived, &stamp("b")) else {
            panic!("applies")
        };
        assert_eq!((second.revision, second.status, second.edited.thread.as_str()), (2, Status::Archived, "b"));
        assert_eq!((second.kind, second.created.thread.as_str()), (Kind::Plan, "a"));
        assert_eq!(decide(&second, 1, &draft("y"), Status::Active, &stamp("a")), Decision::Conflict);
        assert_eq!(decide(&second, 3, &draft("x"), Status::Archived, &stamp("b")), Decision::Conflict);
    }

    #[test]
    fn only_the_latest_update_may_be_repeated_and_only_from_where_it_was_made() {
        let Decision::Apply(second) = decide(&entry(), 1, &draft("x"), Status::Active, &stamp("b")) else {
            panic!("applies")
        };
        assert_eq!(decide(&second, 1, &draft("x"), Status::Active, &stamp("b")), Decision::Repeated);
        assert_eq!(decide(&second, 1, &draft("x"), Status::Active, &stamp("a")), Decision::Conflict);
        let Decision::Apply(third) = decide(&second, 2, &draft("y"), Status::Active, &stamp("a")) else {
            panic!("applies")
        };
        assert_eq!(decide(&third, 1, &draft("x"), Status::Active, &stamp("b")), Decision::Conflict);
        // A publication is not an update: nothing repeats it here.
        assert_eq!(decide(&entry(), 0, &draft("c"), Status::Active, &stamp("a")), Decision::Conflict);
    }

    #[test]
    fn a_carried_entry_names_its_author_and_takes_no_more_room() {
        let name = |id: &str| (id == "m-0123456789abcdef0123456789abcdef").then_some("Ada \"A\"");
        let size = |e: &Entry| project(e, name).to_string().len();
        let team = "team-0123456789abcdef0123456789abcdef";
        let mut old = entry();
        old.created.member = "m-0123456789abcdef0123456789abcdef".into();
        old.edited = old.created.clone();
        for revision in [1, 2, 10] {
            old.revision = revision;
            let carried = carry(&old, "s-2".into(), team, name);
            assert!(size(&carried) <= size(&old), "revision {revision}");
            let told = project(&carried, |_| None);
            assert_eq!(told["created_by"]["team"], team);
            assert_eq!(told["created_by"]["member"], "Ada \"A\"");
            assert_eq!((&told["revision"], told.get("edited_by")), (&json!(1), None));
            // Carried again unchanged, it is still that member's text.
            let again = carry(&carried, "s-3".into(), "team-other", |_| None);
            assert_eq!(again.created, carried.created);
        }
    }

    #[test]
    fn the_budget_counts_the_array_as_it_is_written() {
        let values = [json!({"a": "\"\u{1}研"}), json!({"b": 1})];
        assert_eq!(projection_bytes(&values), serde_json::to_string(&values).expect("writes").len());
        assert_eq!(projection_bytes(&[]), 2);
    }
}
