//! Publish an entry of the public state: the members' tool.

use alloc::format;
use alloc::string::String;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::Ctx;
use crate::app::shared::calling_member::speaker;
use crate::app::shared::change::change_team;
use crate::app::shared::team_arg::OwnTeam;
use crate::app::shared::{idempotency, public_state, view};
use crate::domain::error::{Error, Result};
use crate::domain::state::{Draft, Entry, Kind, Status};
use crate::domain::{ids, limits, text};
use crate::store::records::{StateEntry, V1};

/// Adds an entry to your team's public state, which every member sees with
/// each new task: an objective, a plan, a finding, an open question or a
/// requirement. Returns the entry with its id and revision. To change an
/// existing entry use update_team_state. A team keeps at most 20 entries.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishTeamState {
    /// The team's id, as given in your request. Absent: your own team.
    #[serde(default)]
    pub team_id: OwnTeam,
    /// A short name that you make up for this publication. Sending the same
    /// name again publishes nothing twice.
    pub request_id: String,
    /// What the entry is about.
    pub kind: Kind,
    /// At most 80 characters and 160 bytes.
    pub title: String,
    /// At most 1,000 characters and 2,000 bytes.
    pub content: String,
}

pub fn publish_team_state(ctx: Ctx, publish: &PublishTeamState) -> Result<Value> {
    let request_id = text::bounded("request_id", &publish.request_id, limits::REQUEST_ID)?;
    let draft = Draft::check(&publish.title, &publish.content)?;
    let published = draft.publication(publish.kind);
    let now = ctx.now();
    let reply = change_team(ctx.host, ctx.owner(), &publish.team_id, |team| {
        let me = speaker(ctx, team)?;
        let digest = ids::digest("publish_team_state", &[&publish.team_id, &request_id, &published]);
        let during = match idempotency::recall(ctx, team, &me, &digest)? {
            idempotency::Call::Again(reply) => return Ok(reply),
            idempotency::Call::New { during } => during,
        };
        let entries = team.state()?;
        let id = ids::entry(&team.team.id, &team.team.nonce, &me.thread, &request_id);
        if let Some(known) = entries.iter().find(|e| e.entry.id == id) {
            if known.entry.published != published {
                return Err(Error::conflict(
                    "request_id_reused",
                    "This request_id published an entry with other content. Use a new request_id for another entry, or \
                     update_team_state to change that one.",
                )
                .at("request_id")
                .with(json!({"entry": view::entry(team, &known.entry)})));
            }
            let reply = public_state::reply(team, &known.entry, &[("created", json!(false))]);
            return Ok(reply);
        }
        if entries.len() >= limits::STATE_ENTRIES {
            return Err(Error::limit(
                "state_entries",
                format!(
                    "This team has {} entries, which is its bound; archived ones count. Reuse one with update_team_state.",
                    entries.len()
                ),
            ));
        }
        let stamp = public_state::stamp(&me, during.as_deref(), now);
        let record = StateEntry {
            v: V1,
            n: team.head.borrow().entries + 1,
            entry: Entry {
                id,
                kind: publish.kind,
                title: draft.title.clone(),
                content: draft.content.clone(),
                status: Status::Active,
                revision: 1,
                published: published.clone(),
                created: stamp.clone(),
                edited: stamp,
            },
        };
        public_state::store(team, &entries, &record)?;
        let reply = public_state::reply(team, &record.entry, &[("created", json!(true))]);
        idempotency::remember(ctx, team, &digest, &reply)?;
        team.record_change()?;
        Ok(reply)
    })?;
    Ok(reply)
}
