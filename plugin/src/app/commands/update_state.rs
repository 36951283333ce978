//! Update an entry of the public state: the members' tool.

use alloc::string::String;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::Ctx;
use crate::app::shared::calling_member::speaker;
use crate::app::shared::change::change_team;
use crate::app::shared::team_arg::OwnTeam;
use crate::app::shared::{idempotency, public_state};
use crate::domain::error::Result;
use crate::domain::ids;
use crate::domain::state::{Decision, Draft, Status, decide};
use crate::store::records::StateEntry;

/// Replaces the title, content and status of an entry of your team's public
/// state. Send the revision that you have read: if somebody else changed the
/// entry since, nothing is changed and the answer has conflict=true and the
/// entry as it is now. Merge it with your change, then send again with its
/// revision. An archived entry leaves the context but can still be read.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateTeamState {
    /// The team's id, as given in your request. Absent: your own team.
    #[serde(default)]
    pub team_id: OwnTeam,
    /// The entry's id, from the team context or read_team_state.
    pub entry_id: String,
    /// The revision of the entry that you have read.
    pub expected_revision: u32,
    /// The whole new title; at most 80 characters and 160 bytes.
    pub title: String,
    /// The whole new content; at most 1,000 characters and 2,000 bytes.
    pub content: String,
    /// `active`, or `archived` to take it out of the context.
    pub status: Status,
}

pub fn update_team_state(ctx: Ctx, update: &UpdateTeamState) -> Result<Value> {
    let draft = Draft::check(&update.title, &update.content)?;
    let now = ctx.now();
    let reply = change_team(ctx.host, ctx.owner(), &update.team_id, |team| {
        let me = speaker(ctx, team)?;
        let expected = alloc::format!("{}", update.expected_revision);
        let digest = ids::digest(
            "update_team_state",
            &[&update.team_id, &update.entry_id, &expected, &draft.title, &draft.content, update.status.name()],
        );
        let during = match idempotency::recall(ctx, team, &me, &digest)? {
            idempotency::Call::Again(reply) => return Ok(reply),
            idempotency::Call::New { during } => during,
        };
        let entries = team.state()?;
        let known = entries.iter().find(|e| e.entry.id == update.entry_id).ok_or_else(public_state::no_entry)?;
        let stamp = public_state::stamp(&me, during.as_deref(), now);
        let facts = |updated: bool| [("updated", json!(updated)), ("conflict", json!(!updated))];
        match decide(&known.entry, update.expected_revision, &draft, update.status, &stamp) {
            Decision::Conflict => {
                let mut reply = public_state::reply(team, &known.entry, &facts(false));
                reply["note"] = json!(
                    "Nothing was changed: the entry has another revision than the one you expected. Merge your change \
                     with this entry, then send it with this revision."
                );
                Ok(reply)
            }
            Decision::Repeated => Ok(public_state::reply(team, &known.entry, &facts(true))),
            Decision::Apply(entry) => {
                let record = StateEntry { entry: *entry, ..known.clone() };
                public_state::store(team, &entries, &record)?;
                let reply = public_state::reply(team, &record.entry, &facts(true));
                idempotency::remember(ctx, team, &digest, &reply)?;
                team.record_change()?;
                Ok(reply)
            }
        }
    })?;
    Ok(reply)
}
