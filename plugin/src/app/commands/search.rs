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

/// Every word of the query must occur in "team / member", the label. The exact
/// name or label comes first, then names that begin so; then whole words come
/// before parts of words, and a member's own name before its team's. If nothing
/// matches as it is typed, the punctuation around it is left out.
pub fn hits(ctx: Ctx, query: &str) -> Result<Vec<Hit>> {
    let query = text::trim(query);
    let found = matching(ctx, query)?;
    let plain = text::trim(bare(query));
    if found.is_empty() && plain != query && !plain.is_empty() { matching(ctx, plain) } else { Ok(found) }
}

fn matching(ctx: Ctx, query: &str) -> Result<Vec<Hit>> {
    text::within("query", query, limits::QUERY)?;
    let folded = text::fold(query);
    let words = words(&folded);
    read(ctx.host, |db| {
        let mut found: Vec<(Rank, Hit)> = Vec::new();
        for (team, _) in owned_teams::owned(db, ctx.owner())? {
            let team_folded = text::fold(&team.name);
            for member in &team.members {
                let name = text::fold(&member.name);
                if !words.iter().all(|w| name.contains(w) || team_folded.contains(w)) {
                    continue;
                }
                let rank = rank(&folded, &words, &team_folded, &name);
                let hit = Hit {
                    team: team.id.clone(),
                    member: member.id.clone(),
                    label: label(&team.name, &member.name),
                    description: format!("{} · {}", team.name, member.agent),
                };
                found.push((rank, hit));
            }
        }
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        found.truncate(limits::MENTION_HITS);
        Ok(found.into_iter().map(|(_, hit)| hit).collect())
    })
}

/// The words of a name or a query; the slash of a label is none.
fn words(text: &str) -> Vec<&str> {
    text.split(text::is_space).filter(|word| !word.is_empty() && *word != "/").collect()
}

/// The order of what was found.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Exact,
    NameBegins,
    /// How many words are only parts of words, and whether one is not in the
    /// member's own name.
    Words(usize, bool),
}

fn rank(query: &str, typed: &[&str], team: &str, name: &str) -> Rank {
    let label: Vec<&str> = words(team).into_iter().chain(words(name)).collect();
    if name == query || label == typed {
        return Rank::Exact;
    }
    if name.starts_with(query) {
        return Rank::NameBegins;
    }
    let whole = |word: &str| label.iter().any(|l| l.split(|c: char| !c.is_alphanumeric()).any(|part| part == word));
    let parts = typed.iter().filter(|word| !label.contains(word) && !whole(word)).count();
    Rank::Words(parts, !typed.iter().all(|word| name.contains(word)))
}

/// "Team / Member", or the member's name alone where that is too long.
pub fn label(team: &str, member: &str) -> String {
    let both = format!("{team} / {member}");
    if both.encode_utf16().count() <= limits::MENTION_LABEL { both } else { member.into() }
}
