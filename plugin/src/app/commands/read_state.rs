//! Read the public state: the members' tool and the owner's action.

use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::Ctx;
use crate::app::shared::args::optional;
use crate::app::shared::calling_member::speaker;
use crate::app::shared::team_arg::OwnTeam;
use crate::app::shared::{public_state, view};
use crate::domain::error::Result;
use crate::domain::state::{Entry, Kind, Status};
use crate::domain::{limits, text};
use crate::store::{TeamTx, read};

/// Shows your team's public state as it is now: all entries that match, in the
/// order of their publication, with their revisions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadTeamState {
    /// The team's id, as given in your request. Absent: your own team.
    #[serde(default)]
    pub team_id: OwnTeam,
    /// Only this entry, also if it is archived.
    #[serde(default, deserialize_with = "optional")]
    pub entry_id: Option<String>,
    /// Only entries of this kind.
    #[serde(default, deserialize_with = "optional")]
    pub kind: Option<Kind>,
    /// Only entries with this text in title or content: literal, compared
    /// without case.
    #[serde(default, deserialize_with = "optional")]
    pub query: Option<String>,
    /// True: archived entries too.
    #[serde(default, deserialize_with = "optional")]
    pub include_archived: Option<bool>,
}

/// Reads a team's public state: all entries that match, archived ones
/// included unless `include_archived` is false.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct State {
    pub team_id: String,
    /// Only this entry.
    #[serde(default, deserialize_with = "optional")]
    pub entry_id: Option<String>,
    /// Only entries of this kind.
    #[serde(default, deserialize_with = "optional")]
    pub kind: Option<Kind>,
    /// Only entries with this text in title or content: literal, compared
    /// without case.
    #[serde(default, deserialize_with = "optional")]
    pub query: Option<String>,
    /// Absent: true.
    #[serde(default, deserialize_with = "optional")]
    pub include_archived: Option<bool>,
}

/// Which entries.
struct Filter<'a> {
    entry_id: Option<&'a str>,
    kind: Option<Kind>,
    /// Folded.
    query: Option<String>,
    archived: bool,
}

impl Filter<'_> {
    fn takes(&self, entry: &Entry) -> bool {
        let named = self.entry_id.is_some();
        self.entry_id.is_none_or(|id| entry.id == id)
            && self.kind.is_none_or(|kind| entry.kind == kind)
            && (self.archived || named || entry.status == Status::Active)
            && self
                .query
                .as_ref()
                .is_none_or(|q| text::fold(&entry.title).contains(q) || text::fold(&entry.content).contains(q))
    }
}

/// Reads need no capability: they work without a reconnect.
pub fn read_team_state(ctx: Ctx, args: &ReadTeamState) -> Result<Value> {
    let filter = Filter {
        entry_id: args.entry_id.as_deref(),
        kind: args.kind,
        query: folded(args.query.as_deref())?,
        archived: args.include_archived.unwrap_or(false),
    };
    read(ctx.host, |db| {
        let team = TeamTx::load(db, ctx.owner(), &args.team_id)?;
        speaker(ctx, &team)?;
        matching(&team, &filter)
    })
}

/// The owner's read.
pub fn state(ctx: Ctx, args: &State) -> Result<Value> {
    let filter = Filter {
        entry_id: args.entry_id.as_deref(),
        kind: args.kind,
        query: folded(args.query.as_deref())?,
        archived: args.include_archived.unwrap_or(true),
    };
    read(ctx.host, |db| matching(&TeamTx::load(db, ctx.owner(), &args.team_id)?, &filter))
}

/// A query within its bound and folded; an empty one is none.
pub fn folded(query: Option<&str>) -> Result<Option<String>> {
    let Some(query) = query.map(text::trim).filter(|q| !q.is_empty()) else { return Ok(None) };
    text::within("query", query, limits::QUERY)?;
    Ok(Some(text::fold(query)))
}

fn matching(team: &TeamTx, filter: &Filter) -> Result<Value> {
    let entries = team.state()?;
    if let Some(id) = filter.entry_id
        && !entries.iter().any(|e| e.entry.id == id)
    {
        return Err(public_state::no_entry());
    }
    let found = entries.iter().filter(|e| filter.takes(&e.entry));
    let found: Vec<Value> = found.map(|e| view::entry(team, &e.entry)).collect();
    Ok(json!({
        "entries": found, "state_revision": team.head.borrow().state_revision,
        "entries_left": limits::STATE_ENTRIES.saturating_sub(entries.len()),
    }))
}
