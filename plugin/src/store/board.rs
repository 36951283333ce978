//! A team's task board inside a transaction. The journal of whole task
//! versions is the record; everything else is an index that follows from it
//! and is written in the same commit.
//!
//! ```text
//! team/OWNER/TEAM/board            counters and what came of an import
//! team/OWNER/TEAM/event/NNNNNN     a whole version of a task: who, when
//! team/OWNER/TEAM/hist/ID/REV      a task's revision → its event
//! team/OWNER/TEAM/task/ID          a task's newest event, and its edges
//! team/OWNER/TEAM/live/PLACE       a task that is not deleted, in board order
//! team/OWNER/TEAM/doing/PLACE      scopes of a task in progress
//! team/OWNER/TEAM/dep/ID/PLACE     a task that is blocked by ID
//! team/OWNER/TEAM/made/REQUEST     what an owner's request id made
//! team/OWNER/TEAM/import/NNNN      digest of a part that was imported
//! team/OWNER/TEAM/old/…            members and messages of an imported log
//! ```

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

use serde::{Deserialize, Serialize};

use super::records::V1;
use super::{TeamTx, keys};
use crate::domain::board::{self, Graph, Node, Status, Task};
use crate::domain::error::{Error, Result};
use crate::domain::{ids, limits};

/// What changes about a board with every command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardHead {
    pub v: V1,
    /// The next task number.
    pub next: u64,
    /// Number of the newest event, and of the newest task's place.
    pub events: u32,
    pub places: u32,
    /// Tasks that are not deleted.
    pub live: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<Import>,
}

/// A log that was, or is being, imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The team's id in the log.
    pub source: String,
    /// Parts and lines taken so far.
    pub parts: u32,
    pub lines: u32,
    /// The last part has come, or the lead has accepted what there is.
    pub done: bool,
    /// Records taken by kind, and lines that were not this team's.
    pub tasks: u32,
    pub members: u32,
    pub messages: u32,
    pub deliveries: u32,
    pub ignored: u32,
    /// The first record that was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Rejected>,
    /// The lead continues from the last valid state.
    #[serde(default)]
    pub accepted: bool,
    /// Bytes of blockers and write scopes in the tasks taken: the rules read
    /// those of all tasks at once.
    #[serde(default)]
    pub edge_bytes: u64,
}

impl Import {
    /// Records taken.
    pub fn taken(&self) -> u32 {
        self.tasks + self.members + self.messages + self.deliveries
    }

    /// Whether its failure is still shown beside the tasks: until it is accepted,
    /// and where nothing was taken, until the board is used.
    pub fn shows_failure(&self, board: &BoardHead) -> bool {
        !self.accepted && (self.taken() > 0 || board.events == 0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// From 1, over all parts.
    pub line: u32,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Author {
    /// The team's owner.
    Owner,
    Member {
        member: String,
        /// The member's conversation, or one below it.
        thread: String,
    },
    /// Another host's log.
    Import,
}

/// One version of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEvent {
    pub v: V1,
    pub seq: u32,
    /// Milliseconds since 1970.
    pub at: u64,
    pub author: Author,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Its number in the log that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_seq: Option<u64>,
    pub task: Task,
}

/// Who changes a task, and when.
#[derive(Clone, Debug)]
pub struct Stamp {
    pub at: u64,
    pub author: Author,
    pub run: Option<String>,
    pub source_seq: Option<u64>,
}

/// Where a task's newest version is stored, with what the rules look at in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    pub v: V1,
    pub id: String,
    /// Its place in board order: that of its first version.
    pub place: u32,
    pub event: u32,
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    pub blocked_by: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doing {
    pub id: String,
    pub scopes: Vec<String>,
}

/// A board's keys.
#[derive(Clone, Debug)]
struct BoardKeys {
    prefix: String,
}

impl BoardKeys {
    fn key(&self, rest: &str) -> String {
        format!("{}{rest}", self.prefix)
    }

    fn numbered(&self, kind: &str, n: u32) -> String {
        self.key(&format!("{kind}/{n:08}"))
    }

    fn task(&self, id: &str) -> String {
        self.key(&format!("task/{}", id_part(id)))
    }

    fn dependants(&self, id: &str) -> String {
        self.key(&format!("dep/{}/", id_part(id)))
    }

    fn dependant(&self, id: &str, place: u32) -> String {
        format!("{}{place:08}", self.dependants(id))
    }

    fn revisions(&self, id: &str) -> String {
        self.key(&format!("hist/{}/", id_part(id)))
    }
}

/// An id as a part of a key, also where a long one would not fit.
fn id_part(id: &str) -> String {
    let part = keys::part(id);
    if part.len() <= 128 { part } else { format!("~{}", ids::digest("key", &[id])) }
}

/// The board of a team.
pub struct BoardTx<'t, 'a, 'h> {
    pub team: &'t TeamTx<'a, 'h>,
    pub head: RefCell<BoardHead>,
    keys: BoardKeys,
}

impl<'t, 'a, 'h> BoardTx<'t, 'a, 'h> {
    /// A team that never used its board has an empty one.
    pub fn load(team: &'t TeamTx<'a, 'h>) -> Result<Self> {
        let keys = BoardKeys { prefix: team.keys.prefix().into() };
        let head = team.db.get(&keys.key("board"))?.unwrap_or(BoardHead {
            v: V1,
            next: 1,
            events: 0,
            places: 0,
            live: 0,
            import: None,
        });
        Ok(Self { team, head: RefCell::new(head), keys })
    }

    /// Writes the head of the board and of the team. Gives the team's
    /// revision.
    pub fn record_change(&self) -> Result<u64> {
        self.team.db.put(&self.keys.key("board"), &*self.head.borrow())?;
        self.team.record_change()
    }

    pub fn card(&self, id: &str) -> Result<Option<Card>> {
        self.team.db.get(&self.keys.task(id))
    }

    fn cards(&self, ids: &[String]) -> Result<Vec<Option<Card>>> {
        self.team.db.get_many(&ids.iter().map(|id| self.keys.task(id)).collect::<Vec<_>>())
    }

    pub fn event(&self, seq: u32) -> Result<TaskEvent> {
        self.find_event(seq)?.ok_or_else(|| Error::internal("an event of this board is missing"))
    }

    pub fn find_event(&self, seq: u32) -> Result<Option<TaskEvent>> {
        self.team.db.get(&self.keys.numbered("event", seq))
    }

    pub fn events(&self, seqs: &[u32]) -> Result<Vec<TaskEvent>> {
        let keys: Vec<String> = seqs.iter().map(|seq| self.keys.numbered("event", *seq)).collect();
        let found: Vec<Option<TaskEvent>> = self.team.db.get_many(&keys)?;
        found.into_iter().map(|e| e.ok_or_else(|| Error::internal("an event of this board is missing"))).collect()
    }

    /// A task's newest version, tombstones included.
    pub fn task(&self, id: &str) -> Result<Option<(Card, TaskEvent)>> {
        let Some(card) = self.card(id)? else { return Ok(None) };
        let event = self.event(card.event)?;
        Ok(Some((card, event)))
    }

    /// The events of one task, newest first, from `below` (not included) down.
    pub fn task_events(&self, id: &str, below: Option<u32>, limit: u32) -> Result<Vec<u32>> {
        let start = self.keys.revisions(id);
        let end = match below {
            Some(revision) => format!("{start}{revision:08}"),
            None => keys::end(&start),
        };
        let found = self.team.db.scan(&start, &end, limit, true)?;
        found.iter().map(|(key, value)| super::parse(key, value)).collect()
    }

    /// All tasks that are not deleted, in board order.
    pub fn live(&self) -> Result<Vec<Card>> {
        let found = self.team.db.scan_prefix(&self.keys.key("live/"), limits::BOARD_EVENTS)?;
        found.iter().map(|(key, value)| super::parse(key, value)).collect()
    }

    /// All tasks in progress with their scopes, in board order.
    pub fn doing(&self) -> Result<Vec<Doing>> {
        let found = self.team.db.scan_prefix(&self.keys.key("doing/"), limits::BOARD_EVENTS)?;
        found.iter().map(|(key, value)| super::parse(key, value)).collect()
    }

    /// The tasks that are not deleted and list this one as a blocker.
    pub fn dependants(&self, id: &str, limit: u32) -> Result<Vec<String>> {
        let found = self.team.db.scan_prefix(&self.keys.dependants(id), limit)?;
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }

    /// Appends a version to the journal and brings the indexes up to date.
    /// Cost: the edges of the task, before and after.
    pub fn append(&self, before: Option<(&Card, &Task)>, task: Task, stamp: Stamp) -> Result<TaskEvent> {
        let mut head = self.head.borrow_mut();
        if head.events >= limits::BOARD_EVENTS {
            return Err(board::history_limit(limits::BOARD_EVENTS));
        }
        head.events += 1;
        let place = match before {
            Some((card, _)) => card.place,
            None => {
                head.places += 1;
                head.places
            }
        };
        head.next = board::next_number(head.next, &task.id);
        let was = before.map(|(_, t)| t).filter(|t| t.status != Status::Deleted);
        let is = Some(&task).filter(|t| t.status != Status::Deleted);
        match (was, is) {
            (None, Some(_)) => head.live += 1,
            (Some(_), None) => head.live = head.live.saturating_sub(1),
            _ => {}
        }
        let event = TaskEvent {
            v: V1,
            seq: head.events,
            at: stamp.at,
            author: stamp.author,
            run: stamp.run,
            source_seq: stamp.source_seq,
            task: task.clone(),
        };
        let card = Card {
            v: V1,
            id: task.id.clone(),
            place,
            event: event.seq,
            status: task.status,
            owner: task.owner_id.clone(),
            blocked_by: task.blocked_by.clone(),
        };
        let db = self.team.db;
        db.put(&self.keys.numbered("event", event.seq), &event)?;
        db.put(&format!("{}{:08}", self.keys.revisions(&task.id), task.revision), &event.seq)?;
        db.put(&self.keys.task(&task.id), &card)?;
        let live = self.keys.numbered("live", place);
        match is {
            Some(_) => db.put(&live, &card)?,
            None if was.is_some() => db.delete(&live)?,
            None => {}
        }
        self.index_edges(&task.id, place, was, is)?;
        let doing = self.keys.numbered("doing", place);
        if task.status == Status::InProgress {
            let changed = was.is_none_or(|t| t.status != Status::InProgress || t.write_scopes != task.write_scopes);
            if changed {
                db.put(&doing, &Doing { id: task.id.clone(), scopes: task.write_scopes })?;
            }
        } else if was.is_some_and(|t| t.status == Status::InProgress) {
            db.delete(&doing)?;
        }
        Ok(event)
    }

    fn index_edges(&self, id: &str, place: u32, was: Option<&Task>, is: Option<&Task>) -> Result<()> {
        let (old, new) = (was.map_or(&[][..], |t| &t.blocked_by), is.map_or(&[][..], |t| &t.blocked_by));
        for blocker in old.iter().filter(|b| !new.contains(b)) {
            self.team.db.delete(&self.keys.dependant(blocker, place))?;
        }
        for blocker in new.iter().filter(|b| !old.contains(b)) {
            self.team.db.put_text(&self.keys.dependant(blocker, place), id)?;
        }
        Ok(())
    }

    /// What an owner's request id made: digest of the request, and the task.
    pub fn made(&self, request: &str) -> Result<Option<(String, String)>> {
        self.team.db.get(&self.keys.key(&format!("made/{}", id_part(request))))
    }

    pub fn put_made(&self, request: &str, digest: &str, task: &str) -> Result<()> {
        self.team.db.put(&self.keys.key(&format!("made/{}", id_part(request))), &(digest, task))
    }

    /// The digest of a part that was imported.
    pub fn part(&self, n: u32) -> Result<Option<String>> {
        self.team.db.get_text(&self.keys.numbered("import", n))
    }

    pub fn put_part(&self, n: u32, digest: &str) -> Result<()> {
        self.team.db.put_text(&self.keys.numbered("import", n), digest)
    }

    /// A record of an imported log that is kept to be read: `kind` is
    /// `member` or `message`.
    pub fn old<T: serde::de::DeserializeOwned>(&self, kind: &str, id: &str) -> Result<Option<(u32, T)>> {
        let Some(n) = self.old_number(kind, id)? else { return Ok(None) };
        let record: Option<T> = self.team.db.get(&self.keys.numbered(&format!("old/{kind}"), n))?;
        Ok(record.map(|record| (n, record)))
    }

    pub fn old_number(&self, kind: &str, id: &str) -> Result<Option<u32>> {
        self.team.db.get(&self.keys.key(&format!("old/id/{kind}/{}", id_part(id))))
    }

    /// Stores such a record under its number; `ids` find it again.
    pub fn put_old<T: Serialize>(&self, kind: &str, n: u32, record: &T, ids: &[(&str, &str)]) -> Result<()> {
        for (index, id) in ids {
            self.team.db.put(&self.keys.key(&format!("old/id/{index}/{}", id_part(id))), &n)?;
        }
        self.team.db.put(&self.keys.numbered(&format!("old/{kind}"), n), record)
    }

    /// Such records from number `above` (not included) up.
    pub fn olds<T: serde::de::DeserializeOwned>(&self, kind: &str, above: u32, limit: u32) -> Result<Vec<(u32, T)>> {
        let kind = format!("old/{kind}");
        let start = self.keys.numbered(&kind, above.saturating_add(1));
        let found = self.team.db.scan(&start, &keys::end(&self.keys.key(&format!("{kind}/"))), limit, false)?;
        let number = |key: &str| key.rsplit('/').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        found.iter().map(|(key, value)| Ok((number(key), super::parse(key, value)?))).collect()
    }
}

impl Graph for BoardTx<'_, '_, '_> {
    fn nodes(&self, ids: &[String]) -> Result<Vec<Option<Node>>> {
        let node = |card: Card| Node { status: card.status, blocked_by: card.blocked_by };
        Ok(self.cards(ids)?.into_iter().map(|card| card.map(node)).collect())
    }

    fn first_dependant(&self, id: &str) -> Result<Option<String>> {
        Ok(self.dependants(id, 1)?.pop())
    }
}
