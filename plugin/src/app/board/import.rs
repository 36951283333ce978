//! Take over another host's session log as the history of an empty board.

use alloc::format;
use alloc::string::{String, ToString};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{as_owner, change, optional};
use crate::app::Ctx;
use crate::app::shared::board_digest;
use crate::domain::board::{self, LEAD};
use crate::domain::error::{Error, Result};
use crate::domain::replay::{
    self, HistoricalMember, LINE_BYTES, Line, Message, Record, Selected, check_delivered, check_member, check_queued,
    check_task, parse_record, read_line, select,
};
use crate::domain::{ids, limits};
use crate::store::board::{Author, BoardTx, Import, Rejected, Stamp};

/// Takes over the task history of a session log (JSON lines) of another host
/// into a team whose board is empty, in parts. Repeating a part changes
/// nothing. The first record that cannot be accepted is named in `failure`;
/// records before it are imported, records after it are skipped.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportTasks {
    pub team_id: String,
    /// The team's id in the log. Absent: the session that the log's header
    /// names.
    #[serde(default, deserialize_with = "optional")]
    pub source: Option<String>,
    /// Number of this part, from 0. Absent: 0.
    #[serde(default, deserialize_with = "optional")]
    pub part: Option<u32>,
    /// Whole lines of the log; at most 1 MiB.
    #[serde(default, deserialize_with = "optional")]
    pub lines: Option<String>,
    /// Whether this is the last part. Absent: yes.
    #[serde(default, deserialize_with = "optional")]
    pub last: Option<bool>,
    /// True, with nothing else: go on from the last valid state of an import
    /// that failed or was not finished.
    #[serde(default, deserialize_with = "optional")]
    pub accept: Option<bool>,
}

pub fn import_tasks(ctx: Ctx, args: &ImportTasks) -> Result<Value> {
    if args.accept == Some(true) {
        return accept(ctx, args);
    }
    let lines = args.lines.as_deref().unwrap_or("");
    if lines.len() > limits::IMPORT_BYTES {
        return Err(board::invalid(
            "lines",
            format!("One part has at most {} bytes, not {}. Send it in parts.", limits::IMPORT_BYTES, lines.len()),
        ));
    }
    let (part, last) = (args.part.unwrap_or(0), args.last.unwrap_or(true));
    if let Some(source) = &args.source
        && source.len() > replay::ID_BYTES
    {
        return Err(board::invalid("source", format!("A team's id has at most {} bytes.", replay::ID_BYTES)));
    }
    let digest = ids::digest("import-part", &[if last { "last" } else { "more" }, lines]);
    change(ctx, &args.team_id, as_owner, |board, _| {
        let Some(mut import) = begin(board, args, part, &digest)? else { return Ok((reply(board), false)) };
        Reader { board, now: ctx.now(), import: &mut import }.read(lines)?;
        import.parts += 1;
        import.done = last;
        board.put_part(part, &digest)?;
        board.head.borrow_mut().import = Some(import);
        Ok((reply(board), true))
    })
}

fn accept(ctx: Ctx, args: &ImportTasks) -> Result<Value> {
    if args.lines.is_some() || args.part.is_some() {
        return Err(board::invalid("accept", "`accept` goes with no lines: it settles what was imported before."));
    }
    change(ctx, &args.team_id, as_owner, |board, _| {
        let changed = {
            let mut head = board.head.borrow_mut();
            let import = head
                .import
                .as_mut()
                .ok_or_else(|| board::invalid("accept", "Nothing was imported into this board."))?;
            let open = !import.done || (import.failure.is_some() && !import.accepted);
            if open {
                import.done = true;
                import.accepted = true;
            }
            open
        };
        Ok((reply(board), changed))
    })
}

/// The import that this part continues; `None`: it was taken before.
fn begin(board: &BoardTx, args: &ImportTasks, part: u32, digest: &str) -> Result<Option<Import>> {
    let head = board.head.borrow();
    let before = head.import.as_ref();
    // An import of which nothing was taken leaves the board as it was.
    let nothing = |i: &Import| i.taken() == 0;
    let empty = head.events == 0 && before.is_none_or(nothing);
    let begins_anew = |i: &Import| part == 0 && i.failure.is_some() && nothing(i);
    if let Some(import) = before
        && part < import.parts
        && board.part(part)?.as_deref() == Some(digest)
        && args.source.as_ref().is_none_or(|source| *source == import.source)
    {
        return Ok(None);
    }
    match before {
        Some(import) if !import.done && !begins_anew(import) => {
            if args.source.as_ref().is_some_and(|source| !import.source.is_empty() && *source != import.source) {
                return Err(conflict("Another team's history is being imported into this board."));
            }
            if part != import.parts {
                return Err(conflict(&format!(
                    "Part {} is expected next. A part that was taken before can only be repeated as it was.",
                    import.parts
                )));
            }
            Ok(Some(import.clone()))
        }
        _ if !empty => Err(Error::conflict(
            "TEAM_BOARD_NOT_EMPTY",
            "This board has a history already. Import into a team whose board was never used.",
        )),
        _ if part != 0 => Err(conflict("Part 0 is expected first.")),
        _ => Ok(Some(Import {
            source: args.source.clone().unwrap_or_default(),
            parts: 0,
            lines: 0,
            done: false,
            tasks: 0,
            members: 0,
            messages: 0,
            deliveries: 0,
            ignored: 0,
            failure: None,
            accepted: false,
            edge_bytes: 0,
        })),
    }
}

fn conflict(message: &str) -> Error {
    Error::conflict("TEAM_BOARD_IMPORT_CONFLICT", message).at("part")
}

fn reply(board: &BoardTx) -> Value {
    let head = board.head.borrow();
    let import = head.import.as_ref().map(board_digest::import_report);
    json!({"import": import, "tasks": head.live, "changes": head.events})
}

/// A message of the older mailbox, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OldMessage {
    message: Message,
    delivered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

struct Reader<'r, 't, 'a, 'h> {
    board: &'r BoardTx<'t, 'a, 'h>,
    now: u64,
    import: &'r mut Import,
}

impl Reader<'_, '_, '_, '_> {
    fn read(&mut self, lines: &str) -> Result<()> {
        for line in lines.lines() {
            self.import.lines = self.import.lines.saturating_add(1);
            if self.import.failure.is_some() {
                self.import.ignored = self.import.ignored.saturating_add(1);
                continue;
            }
            if let Some(message) = self.line(line)? {
                self.import.failure = Some(Rejected { line: self.import.lines, message });
            }
        }
        Ok(())
    }

    /// Applies one line. The words for a line that is rejected.
    fn line(&mut self, line: &str) -> Result<Option<String>> {
        if line.len() > LINE_BYTES {
            return Ok(Some(format!("the line has {} bytes, more than {LINE_BYTES}", line.len())));
        }
        let (kind, seq, time, data) = match read_line(line) {
            Err(why) => return Ok(Some(why)),
            Ok(Line::Empty) => return Ok(None),
            Ok(Line::Header { session }) => {
                if self.import.source.is_empty()
                    && let Some(session) = session
                {
                    self.import.source = session;
                }
                return Ok(None);
            }
            Ok(Line::Event { kind, seq, time, data }) => (kind, seq, time, data),
        };
        if self.import.source.is_empty() && kind.starts_with("team/") {
            return Err(board::invalid(
                "source",
                "The log has no header that names its team. Give the team's id in the log as `source`.",
            ));
        }
        let version = match select(&self.import.source, &kind, &data) {
            Selected::Ignored => {
                self.import.ignored = self.import.ignored.saturating_add(1);
                return Ok(None);
            }
            Selected::Rejected(why) => return Ok(Some(why)),
            Selected::Ours { version } => version,
        };
        let Some(record) = parse_record(&kind, version, &data) else {
            return Ok(Some(format!("persisted {kind} payload is invalid")));
        };
        if self.import.taken() >= limits::BOARD_EVENTS {
            return Ok(Some(format!("the log has more than {} records", limits::BOARD_EVENTS)));
        }
        self.apply(record, seq, time)
    }

    fn apply(&mut self, record: Record, seq: Option<u64>, time: Option<u64>) -> Result<Option<String>> {
        match record {
            Record::Task(mut task) => {
                // The root session was the lead there; here it is the owner.
                if task.owner_id.as_deref() == Some(&self.import.source) {
                    task.owner_id = Some(LEAD.to_string());
                }
                let before = self.board.task(&task.id)?;
                let before = before.as_ref().map(|(card, event)| (card, &event.task));
                if let Some(why) = check_task(self.board, before.map(|(_, task)| task), &task)? {
                    return Ok(Some(why));
                }
                let edges = task.blocked_by.iter().chain(&task.write_scopes).map(|text| text.len() as u64).sum::<u64>();
                let edge_bytes = self.import.edge_bytes.saturating_add(edges);
                if edge_bytes > limits::IMPORTED_EDGE_BYTES {
                    let most = limits::IMPORTED_EDGE_BYTES;
                    return Ok(Some(format!(
                        "blockers and write scopes of the log's tasks have more than {most} bytes"
                    )));
                }
                self.import.edge_bytes = edge_bytes;
                let stamp = Stamp { at: time.unwrap_or(self.now), author: Author::Import, run: None, source_seq: seq };
                self.board.append(before, task, stamp)?;
                self.import.tasks += 1;
            }
            Record::Member(member) => return self.member(&member),
            Record::Queued(message) => {
                let known = self.board.old_number("message", &message.id)?.is_some();
                if let Some(why) = check_queued(known, &message.id) {
                    return Ok(Some(why));
                }
                self.import.messages += 1;
                let id = message.id.clone();
                let old = OldMessage { message, delivered: false, at: time.map(crate::domain::time::rfc3339) };
                self.board.put_old("message", self.import.messages, &old, &[("message", &id)])?;
            }
            Record::Delivered { message: id, target } => {
                let known: Option<(u32, OldMessage)> = self.board.old("message", &id)?;
                let seen = known.as_ref().map(|(_, old)| (&old.message, old.delivered));
                if let Some(why) = check_delivered(seen, &id, &target) {
                    return Ok(Some(why));
                }
                if let Some((n, old)) = known {
                    self.board.put_old("message", n, &OldMessage { delivered: true, ..old }, &[])?;
                }
                self.import.deliveries += 1;
            }
        }
        Ok(None)
    }

    fn member(&mut self, member: &HistoricalMember) -> Result<Option<String>> {
        let before: Option<(u32, HistoricalMember)> = self.board.old("member", &member.id)?;
        let namesake = match self.board.old_number("name", &member.name)? {
            Some(n) => self.board.olds::<HistoricalMember>("member", n - 1, 1)?.pop().map(|(_, m)| m.id),
            None => None,
        };
        if let Some(why) = check_member(before.as_ref().map(|(_, m)| m), namesake.as_deref(), member) {
            return Ok(Some(why));
        }
        self.import.members += 1;
        let n = before.map_or(self.import.members, |(n, _)| n);
        self.board.put_old("member", n, member, &[("member", &member.id), ("name", &member.name)])?;
        Ok(None)
    }
}

// Ids are bounded, so that no record of a log can outgrow the store's keys.
const _: () = assert!(replay::ID_BYTES <= 256);
