//! The task board: commands of members (tools) and of the owner (actions).
//! The owner leads it; a team may mark one member as lead besides.

pub mod create_task;
pub mod get_task;
pub mod history;
pub mod import;
pub mod list_tasks;
pub mod update_task;
pub mod view;
pub mod wait;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::app::Ctx;
use crate::app::settings::settings;
use crate::app::shared::args::optional;
use crate::app::shared::change::change_team;
use crate::domain::board::{self, Actor, Bounds, LEAD, People};
use crate::domain::error::{Cause, Error, Kind, Result};
use crate::domain::{limits, text};
use crate::store::board::{Author, BoardTx, Stamp};
use crate::store::records::{Member, Team};
use crate::store::{TeamTx, read};

/// Who uses the board.
#[derive(Clone, Debug)]
pub struct Who {
    /// What `ownerId` becomes when it claims a task.
    id: String,
    lead: bool,
    /// Absent: the owner.
    member: Option<Member>,
    run: Option<String>,
}

impl Who {
    pub fn actor(&self) -> Actor<'_> {
        Actor { id: &self.id, lead: self.lead }
    }

    pub fn stamp(&self, at: u64) -> Stamp {
        let author = match &self.member {
            None => Author::Owner,
            Some(member) => Author::Member { member: member.id.clone(), thread: self.id.clone() },
        };
        Stamp { at, author, run: self.run.clone(), source_seq: None }
    }
}

/// Finds out who calls.
pub type Identify = fn(Ctx, &TeamTx) -> Result<Who>;

/// The owner, acting as lead.
pub fn as_owner(_: Ctx, _: &TeamTx) -> Result<Who> {
    Ok(Who { id: LEAD.into(), lead: true, member: None, run: None })
}

/// The member from whose conversation, or from below it, a tool is called.
/// What it claims belongs to the calling conversation itself.
pub fn as_member(ctx: Ctx, team: &TeamTx) -> Result<Who> {
    let me = crate::app::shared::calling_member::speaker(ctx, team).map_err(|_| board::not_member())?;
    let thread = ctx.caller.thread.clone().unwrap_or_default();
    if thread.is_empty() || thread == LEAD {
        // An id that would make this conversation the owner.
        return Err(board::not_member());
    }
    let lead = team.team.lead.as_deref() == Some(&me.id) && thread == me.thread;
    Ok(Who { id: thread, lead, member: Some(me), run: ctx.caller.run.clone() })
}

/// For a tool, a team that does not exist looks like one of others.
pub fn hide_team(error: Error) -> Error {
    if error.is(Cause::NoTeam) { board::not_member() } else { error }
}

/// A team's names for owners of tasks.
pub struct Names<'t>(pub &'t Team);

impl People for Names<'_> {
    fn find(&self, name: &str) -> Option<String> {
        let name = text::composed(name);
        let members = &self.0.members;
        if let Some(member) = members.iter().find(|m| m.id == name || m.thread == name) {
            return Some(member.thread.clone());
        }
        // The word is the word, also where an older team has a member of that name.
        if name == LEAD {
            return Some(LEAD.into());
        }
        members.iter().find(|m| m.name == name).map(|member| member.thread.clone())
    }

    fn name(&self, owner: &str) -> String {
        self.known(owner).unwrap_or(owner).into()
    }

    fn all(&self) -> String {
        let mut names: Vec<&str> = self.0.members.iter().map(|m| m.name.as_str()).collect();
        names.push(LEAD);
        names.join(", ")
    }
}

impl Names<'_> {
    /// The name of an owner that is a member's own conversation or the lead.
    pub fn known(&self, owner: &str) -> Option<&str> {
        if owner == LEAD {
            return Some(LEAD);
        }
        self.0.member_of_thread(owner).map(|m| m.name.as_str())
    }
}

/// The bounds of every board of this deployment.
pub fn bounds(ctx: Ctx) -> Result<Bounds> {
    Ok(Bounds {
        tasks: settings(ctx.host)?.board_tasks,
        blockers: limits::BOARD_BLOCKERS,
        scopes: limits::BOARD_SCOPES,
        scope_bytes: limits::BOARD_SCOPE_BYTES,
    })
}

/// Reads a board on one snapshot.
pub fn look<T>(ctx: Ctx, team: &str, who: Identify, f: impl Fn(&BoardTx, &Who) -> Result<T>) -> Result<T> {
    read(ctx.host, |db| {
        let team = TeamTx::load(db, ctx.owner(), team)?;
        let who = who(ctx, &team)?;
        f(&BoardTx::load(&team)?, &who)
    })
}

/// Changes a board: one commit, then one signal to everybody who waits now.
/// `f` says whether it changed anything. A commit whose outcome is unknown
/// sends no signal.
pub fn change<T>(ctx: Ctx, team_id: &str, who: Identify, f: impl Fn(&BoardTx, &Who) -> Result<(T, bool)>) -> Result<T> {
    let changed = change_team(ctx.host, ctx.owner(), team_id, |team| {
        let who = who(ctx, team)?;
        let board = BoardTx::load(team)?;
        let (reply, changed) = f(&board, &who)?;
        if changed {
            board.record_change()?;
        }
        Ok(reply)
    });
    changed.map_err(|e| if e.kind == Kind::Unknown { board::unconfirmed() } else { e })
}

/// Refuses commands on a board whose import is not settled.
pub fn settled(board: &BoardTx) -> Result<()> {
    let head = board.head.borrow();
    let Some(import) = &head.import else { return Ok(()) };
    if import.failure.is_some() && import.taken() == 0 {
        // The wrong log: the board is as it was.
        return Ok(());
    }
    if let (Some(failure), false) = (&import.failure, import.accepted) {
        return Err(Error::conflict(
            "TEAM_BOARD_RECORD_REJECTED",
            format!(
                "The imported history was rejected at line {}: {}. The board can be read; it takes no commands until the lead \
                 accepts its last valid state (import_tasks with accept).",
                failure.line, failure.message
            ),
        ));
    }
    if !import.done {
        return Err(Error::conflict(
            "TEAM_BOARD_IMPORT_UNFINISHED",
            format!(
                "A history is being imported; part {} is expected next. The board takes no commands until its last part has \
                 come or the lead accepts what there is (import_tasks with accept).",
                import.parts
            ),
        ));
    }
    Ok(())
}

/// A page's length within its bounds.
fn page_limit(limit: Option<u32>, default: u32, max: u32) -> Result<usize> {
    let limit = limit.unwrap_or(default);
    if (1..=max).contains(&limit) {
        return Ok(limit as usize);
    }
    Err(board::invalid("limit", format!("`limit` must be between 1 and {max}.")))
}

fn bad_cursor() -> Error {
    Error::invalid(
        "bad_cursor",
        "cursor",
        "This cursor is not of this list. Use the nextCursor of a page with the same filters, or none to begin again.",
    )
}
