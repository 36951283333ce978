//! Make a team: a fixed roster of agents, each with a conversation of its own.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;

use super::get;
use crate::app::scheduling::connection;
use crate::app::shared::object::Object;
use crate::app::shared::{deleted_team, public_state};
use crate::app::{Ctx, topic};
use crate::domain::error::{Error, Result};
use crate::domain::state::{self, Status};
use crate::domain::{ids, limits, text};
use crate::host::{Level, Runs};
use crate::store::records::{Head, Member, StateEntry, Team, V1};
use crate::store::{Db, TeamTx, keys, read, stored, transact};

/// Makes a team of 2 to 8 members. The same request id with the same content
/// answers with the team that it made; with other content it is a conflict.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// Names this creation, so that a retry makes no second team.
    pub request_id: String,
    /// At most 80 characters and 160 bytes.
    pub name: String,
    /// What the team is for; at most 2,000 characters and 4,000 bytes.
    pub goal: String,
    /// The roster; it never changes.
    pub members: Vec<Object<NewMember>>,
    /// The name of the member that leads the task board. Absent: only the
    /// owner does.
    #[serde(default)]
    pub lead: Option<String>,
    /// The id of one of your teams that this one succeeds: its active public
    /// state is copied in the same commit, each entry with the author of its
    /// text and that team. Archived entries, requests and tasks stay there.
    /// Absent: the public state is empty. The earlier team does not change and
    /// may be deleted afterwards.
    #[serde(default)]
    pub successor_of: Option<String>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMember {
    /// How the others call it; unique in the team.
    pub name: String,
    /// The agent's name in the catalogue.
    pub agent: String,
}

struct Checked {
    request_id: String,
    name: String,
    goal: String,
    members: Vec<(String, String)>,
    lead: Option<usize>,
    successor_of: Option<String>,
    digest: String,
}

/// Words that mean something else wherever a member can be named.
const RESERVED: [&str; 7] = ["lead", "owner", "unowned", "me", "all", "null", "none"];

/// Why no member may have this name.
fn reserved(name: &str) -> Option<&'static str> {
    let folded = text::fold(name);
    if RESERVED.contains(&folded.as_str()) {
        return Some("this word has a meaning of its own");
    }
    let id =
        folded.strip_prefix("m-").is_some_and(|rest| rest.len() == 32 && rest.bytes().all(|b| b.is_ascii_hexdigit()));
    id.then_some("this is the form of members' ids")
}

fn refuse_reserved(members: &[(String, String)]) -> Result<()> {
    for (i, (name, _)) in members.iter().enumerate() {
        if let Some(why) = reserved(name) {
            let message = format!("A member cannot be named \"{name}\": {why}.");
            return Err(Error::invalid("reserved_name", format!("members[{i}].name"), message));
        }
    }
    Ok(())
}

/// Agents that the host does not have are refused before anything is stored: a
/// roster never changes. A host that cannot tell now decides when the
/// conversations are made.
fn refuse_unknown_agents(runs: &dyn Runs, members: &[(String, String)]) -> Result<()> {
    let Ok(known) = runs.agents() else { return Ok(()) };
    let Some(i) = members.iter().position(|(_, agent)| !known.contains(agent)) else { return Ok(()) };
    let mut names: Vec<String> = known.iter().take(AGENTS_NAMED).map(|name| format!("\"{name}\"")).collect();
    if let Some(more) = known.len().checked_sub(AGENTS_NAMED).filter(|more| *more > 0) {
        names.push(format!("{more} more"));
    }
    let names = if names.is_empty() { String::from("none") } else { names.join(", ") };
    let message = format!("There is no agent \"{}\". The agents that you can use: {names}.", members[i].1);
    Err(Error::invalid("agent_not_found", format!("members[{i}].agent"), message))
}

/// Agents that a refusal names.
const AGENTS_NAMED: usize = 20;

fn check(create: &Create) -> Result<Checked> {
    let request_id = text::bounded("request_id", &create.request_id, limits::REQUEST_ID)?;
    let name = text::name("name", &create.name, limits::TEAM_NAME)?;
    let goal = text::bounded("goal", &create.goal, limits::GOAL)?;
    let count = create.members.len();
    if !(limits::MEMBERS_MIN..=limits::MEMBERS_MAX).contains(&count) {
        return Err(Error::invalid(
            "member_count",
            "members",
            format!("A team has {} to {} members, not {count}.", limits::MEMBERS_MIN, limits::MEMBERS_MAX),
        ));
    }
    let mut members: Vec<(String, String)> = Vec::with_capacity(count);
    for (i, Object(member)) in create.members.iter().enumerate() {
        let field = format!("members[{i}].name");
        let name = text::name(&field, &member.name, limits::MEMBER_NAME)?;
        if members.iter().any(|(other, _)| *other == name) {
            return Err(Error::invalid("duplicate_member", field, format!("Two members are named \"{name}\".")));
        }
        members.push((name, text::agent_name(&format!("members[{i}].agent"), &member.agent, limits::AGENT_NAME)?));
    }
    let lead = match create.lead.as_deref().map(text::trim).filter(|l| !l.is_empty()) {
        None => None,
        Some(lead) => {
            let lead = text::name("lead", lead, limits::MEMBER_NAME)?;
            Some(members.iter().position(|(name, _)| *name == lead).ok_or_else(|| {
                Error::invalid("lead_not_member", "lead", "`lead` must be the name of one of the members.")
            })?)
        }
    };
    let roster = serde_json::to_string(&members).unwrap_or_default();
    let lead_place = lead.map(|l| l.to_string()).unwrap_or_default();
    let successor_of = create.successor_of.as_deref().map(text::trim).filter(|t| !t.is_empty()).map(String::from);
    let mut asked: Vec<&str> = alloc::vec![&name, &goal, &roster, &lead_place];
    asked.extend(successor_of.as_deref());
    let digest = ids::digest("create", &asked);
    Ok(Checked { request_id, name, goal, members, lead, successor_of, digest })
}

/// Copies the active public state of an earlier team of the same owner into
/// the new one, within all its bounds.
fn carry_state(db: &Db, owner: &str, earlier: &str, team: &TeamTx) -> Result<()> {
    let earlier = TeamTx::load(db, owner, earlier).map_err(|e| e.at("successor_of"))?;
    let mut carried: Vec<StateEntry> = Vec::new();
    for old in earlier.state()?.iter().filter(|e| e.entry.status == Status::Active) {
        let id = ids::entry(&team.team.id, &team.team.nonce, &earlier.team.id, &old.entry.id);
        let n = carried.len() as u32 + 1;
        let entry =
            state::carry(&old.entry, id, &earlier.team.id, |id| earlier.team.member(id).map(|m| m.name.as_str()));
        let new = StateEntry { v: V1, n, entry };
        public_state::store(team, &carried, &new)?;
        carried.push(new);
    }
    Ok(())
}

/// Creates the team, then ensures its members' conversations. A failure of
/// the latter is not a failure of the call: the team exists, is not ready, and
/// says why.
pub fn create(ctx: Ctx, create: &Create) -> Result<serde_json::Value> {
    let runs = ctx.require_runs()?;
    let checked = check(create)?;
    let owner = ctx.owner();
    let id = ids::team(owner, &checked.request_id);
    let now = ctx.now();
    let nonce = ids::hex(&ctx.host.random(16));
    let lock = format!("create/{}", keys::part(owner));
    deleted_team::purge_all(ctx.host, owner, &id)?;
    let known = read(ctx.host, |db| Ok(db.get_text(&keys::TeamKeys::new(owner, &id).team())?.is_some()))?;
    if !known {
        refuse_unknown_agents(runs, &checked.members)?;
    }
    let made = transact(ctx.host, &lock, |db| {
        let keys = keys::TeamKeys::new(owner, &id);
        if let Some(existing) = db.get::<Team>(&keys.team())? {
            if existing.digest == checked.digest {
                return Ok(false);
            }
            return Err(Error::conflict(
                "request_id_reused",
                "This request_id made another team. Use a new request_id, or the same content.",
            )
            .at("request_id"));
        }
        // Only for a new team: an older one may have such a member, and its
        // creation can be repeated.
        refuse_reserved(&checked.members)?;
        let teams = db.scan_prefix(&keys::list(owner), limits::TEAMS_PER_OWNER as u32)?;
        if teams.len() >= limits::TEAMS_PER_OWNER {
            return Err(Error::limit(
                "team_limit",
                format!("You have {} teams, which is the bound. Delete a finished one first.", teams.len()),
            ));
        }
        let members = checked
            .members
            .iter()
            .enumerate()
            .map(|(place, (name, agent))| {
                let place = place.to_string();
                Member {
                    id: ids::member(&id, &nonce, &place),
                    name: name.clone(),
                    agent: agent.clone(),
                    thread: ids::thread(&id, &nonce, &place),
                }
            })
            .collect::<Vec<_>>();
        let team = Team {
            v: V1,
            id: id.clone(),
            name: checked.name.clone(),
            goal: checked.goal.clone(),
            nonce: nonce.clone(),
            lead: checked.lead.map(|place| members[place].id.clone()),
            members,
            successor_of: checked.successor_of.clone(),
            request_id: checked.request_id.clone(),
            digest: checked.digest.clone(),
            created_at: now,
        };
        let head = Head { v: V1, revision: 1, waiting: Some(0), ..Head::default() };
        let team = TeamTx::of(db, owner, keys, team, head);
        if let Some(earlier) = &checked.successor_of {
            carry_state(db, owner, earlier, &team)?;
        }
        db.put(&team.keys.team(), &team.team)?;
        db.put(&team.keys.head(), &*team.head.borrow())?;
        db.put_text(&keys::list_entry(owner, now, &id), "{}")?;
        Ok(true)
    })?;
    if made {
        ctx.host.publish(owner, &topic(&id), 1);
    }
    if let Err(error) = connection::ensure(ctx.host, owner, &id, runs) {
        // Stored as the team's reason; the reply shows it.
        ctx.host.log(Level::Info, &format!("team {id} is not ready yet: {}", error.code));
    }
    let view = get::view(ctx, &id, &get::Page::default());
    if made { view.map_err(stored) } else { view }
}
