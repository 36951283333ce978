//! Find members to mention.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::Ctx;
use crate::app::shared::owned_teams;
use crate::domain::error::Result;
use crate::domain::{limits, text};
use crate::store::read;

/// Finds members of your teams by team and member name; at most 16.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Literal text, compared without case; at most 200 characters. Empty:
    /// all.
    #[serde(default)]
    pub query: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub team: String,
    pub member: String,
    pub label: String,
    pub description: String,
}

pub fn search(ctx: Ctx, search: &Search) -> Result<Value> {
    let hits: Vec<Value> = hits(ctx, search.query.as_deref().unwrap_or(""))?
        .into_iter()
        .map(|h| json!({"team": h.team, "member": h.member, "label": h.label, "description": h.description}))
        .collect();
    Ok(json!({"hits": hits}))
}

/// Punctuation around the typed text is not part of a name.
fn bare(query: &str) -> &str {
    query.trim_start_matches(['@', '(', '[', '{', '"', '\'', '<']).trim_end_matches([
        ',', '.', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '>', '。', '，', '、', '！', '？', '；', '：',
    ])
}

/// Every word of the query must occur in "team member". Members whose own name
/// matches come first, the exact name before all. If nothing matches as it is
/// typed, the punctuation around it is left out.
pub fn hits(ctx: Ctx, query: &str) -> Result<Vec<Hit>> {
    let query = text::trim(query);
    let found = matching(ctx, query)?;
    let plain = text::trim(bare(query));
    if found.is_empty() && plain != query && !plain.is_empty() { matching(ctx, plain) } else { Ok(found) }
}

fn matching(ctx: Ctx, query: &str) -> Result<Vec<Hit>> {
    text::within("query", query, limits::QUERY)?;
    let folded = text::fold(query);
    let words: Vec<&str> = folded.split(text::is_space).filter(|w| !w.is_empty()).collect();
    read(ctx.host, |db| {
        let mut found: Vec<(u8, Hit)> = Vec::new();
        for (team, _) in owned_teams::owned(db, ctx.owner())? {
            let team_folded = text::fold(&team.name);
            for member in &team.members {
                let name = text::fold(&member.name);
                if !words.iter().all(|w| name.contains(w) || team_folded.contains(w)) {
                    continue;
                }
                let rank = match () {
                    () if name == folded => 0,
                    () if name.starts_with(&folded) => 1,
                    () if words.iter().all(|w| name.contains(w)) => 2,
                    () => 3,
                };
                let hit = Hit {
                    team: team.id.clone(),
                    member: member.id.clone(),
                    label: label(&team.name, &member.name),
                    description: format!("{} · {}", team.name, member.agent),
                };
                found.push((rank, hit));
            }
        }
        found.sort_by_key(|(rank, _)| *rank);
        found.truncate(limits::MENTION_HITS);
        Ok(found.into_iter().map(|(_, hit)| hit).collect())
    })
}

/// "Team / Member", or the member's name alone where that is too long.
pub fn label(team: &str, member: &str) -> String {
    let both = format!("{team} / {member}");
    if both.encode_utf16().count() <= limits::MENTION_LABEL { both } else { member.into() }
}
