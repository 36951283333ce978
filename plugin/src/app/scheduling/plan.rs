//! What to do next, from the unfinished work alone.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::permit::{Admission, Permit};
use crate::app::settings::{Reconnect, settings};
use crate::app::shared::deleted_team;
use crate::app::shared::heads::{self, HeadWork};
use crate::domain::error::{Error, Result};
use crate::domain::limits;
use crate::domain::schedule::{self, Candidate};
use crate::host::{Host, Level};
use crate::store::records::{Head, Need, Slot, Work};
use crate::store::{Db, keys, parse, read, readable};

/// A run that the host saw ending, stopping or continuing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub owner: String,
    pub thread: String,
    pub run: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStep {
    pub owner: String,
    pub team: String,
    pub permit: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub steps: Vec<PlannedStep>,
    /// Teams (owner, id) to connect.
    pub connect: Vec<(String, String)>,
    pub next_ms: u32,
}

/// Decides what to do next. Reads the heads of the unfinished conversations,
/// the slots and the round; its cost does not depend on finished history. A
/// record that cannot be read is left out and logged: it stops its own team
/// and no other.
/// `sweep` also removes some of what deleted teams have left behind.
/// `backing_off`: teams (owner, id) that can take no step now; they are offered no
/// slot, and no owner waits for a turn that they cannot take.
pub fn plan(host: &dyn Host, moved: &[Moved], sweep: bool, backing_off: &[(String, String)]) -> Result<Plan> {
    let settings = settings(host)?;
    let now = host.now_ms();
    let planned = read(host, |db| {
        let heads::Heads { list: heads, mut damaged } = heads::heads(db, keys::work())?;
        let mut connected: BTreeMap<(String, String), bool> = BTreeMap::new();
        for head in &heads {
            let team = (head.owner.clone(), head.work.team.clone());
            connected.entry(team).or_insert_with_key(|(owner, team)| host.lookup(owner, team).is_some());
        }
        let due = |head: &&HeadWork| connected[&(head.owner.clone(), head.work.team.clone())];
        let Due { candidates, looks, mut next } = Due::of(heads.iter().filter(due), moved, sweep, backing_off, now);
        let mut permits: BTreeMap<(String, String), Permit> = BTreeMap::new();
        for look in looks {
            permits.entry(look.team).or_default().collect.push(look.job);
        }
        let stored = round(db, &mut damaged)?;
        let round = schedule::merge_round(&stored, &candidates);
        let mut slots = Slots::load(db, settings.slots, &permits, round.len() < 2, &mut damaged)?;
        let many = slots.free.len() + slots.freeing.len();
        let mut after: Vec<(String, u32)> = Vec::new();
        let chosen = schedule::admissions(&stored, &candidates, many);
        let full = chosen.len() == many;
        for chosen in chosen {
            let Some(slot) = slots.take(&chosen) else { break };
            let Candidate { owner, team, thread, job, due, .. } = chosen;
            let admission = Admission { job, thread, due, slot, after: after.clone() };
            if !after.iter().any(|(before, _)| *before == owner) {
                after.push((owner.clone(), slot));
            }
            permits.entry((owner, team)).or_default().admit.push(admission);
        }
        let mut steps = Vec::with_capacity(permits.len());
        for ((owner, team), mut permit) in permits {
            permit.round.clone_from(&round);
            permit.full = full;
            permit.backing_off = backing_off.to_vec();
            let permit = serde_json::to_string(&permit).map_err(|_| Error::internal("a permit cannot be written"))?;
            steps.push(PlannedStep { owner, team, permit });
        }
        // The next owner of the rotation goes first, so that no attempt is wasted.
        steps.sort_by_key(|step| round.iter().position(|owner| *owner == step.owner).unwrap_or(round.len()));
        let connect = match settings.reconnect {
            Reconnect::Manual => Vec::new(),
            Reconnect::Auto => to_connect(db, &connected, now, &mut next, &mut damaged)?,
        };
        tell(host, &damaged, sweep);
        let next_ms = u32::try_from(next.saturating_sub(now)).unwrap_or(u32::MAX).max(10);
        Ok(Plan { steps, connect, next_ms })
    });
    if sweep {
        clean_up(host);
    }
    planned
}

/// Removes what a deleted team has left behind. A failure stops no planning; the
/// next sweep tries again.
fn clean_up(host: &dyn Host) {
    let purged = read(host, deleted_team::next).and_then(|left| match left {
        Some((owner, team)) => deleted_team::purge(host, &owner, &team, limits::PURGE_COMMITS),
        None => Ok(true),
    });
    if let Err(error) = purged {
        host.log(Level::Info, &format!("records of a deleted team are left: {}", error.code));
    }
}

/// What the heads of connected teams need.
struct Due {
    candidates: Vec<Candidate>,
    looks: Vec<Look>,
    /// When the first of the others is due.
    next: u64,
}

impl Due {
    fn of<'h>(
        heads: impl Iterator<Item = &'h HeadWork>,
        moved: &[Moved],
        sweep: bool,
        backing_off: &[(String, String)],
        now: u64,
    ) -> Self {
        let mut found = Self { candidates: Vec::new(), looks: Vec::new(), next: now + limits::SWEEP_MS };
        for HeadWork { owner, thread, work, .. } in heads {
            let team = (owner.clone(), work.team.clone());
            // Whatever ended in this conversation may be what the job waits for.
            let touched =
                moved.iter().any(|m| m.owner == *owner && (m.thread == *thread || Some(&m.run) == work.run.as_ref()));
            let due = touched || work.next_at <= now;
            if !due {
                found.next = found.next.min(work.next_at);
            }
            match work.need {
                Need::Slot if due && backing_off.contains(&team) => {}
                Need::Slot if due => found.candidates.push(Candidate {
                    owner: owner.clone(),
                    team: work.team.clone(),
                    thread: thread.clone(),
                    job: work.job,
                    since: work.since,
                    due: work.next_at,
                }),
                Need::Host if due => found.looks.push(Look::new(team, work)),
                // Somebody may have answered in the conversation itself.
                Need::Person if touched || (work.next_at > 0 && due) => found.looks.push(Look::new(team, work)),
                // Its end is announced; a sweep or an earlier failure looks anyway.
                Need::End if sweep || touched || (work.next_at > 0 && due) => found.looks.push(Look::new(team, work)),
                _ => {}
            }
        }
        // What has been due for longest goes first: a step whose time ends
        // early begins where the last one stopped.
        found.looks.sort_by_key(|look| look.due);
        found
    }
}

/// A job that the host is to be asked about.
struct Look {
    team: (String, String),
    job: u32,
    /// Since when it is due; what has no time of its own comes last.
    due: u64,
}

impl Look {
    fn new(team: (String, String), work: &Work) -> Self {
        Self { team, job: work.job, due: if work.next_at > 0 { work.next_at } else { u64::MAX } }
    }
}

/// The stored round. One that cannot be read is empty: everybody joins anew.
fn round(db: &Db, damaged: &mut Vec<String>) -> Result<Vec<String>> {
    let stored = readable(db.get(keys::ROUND))?;
    if stored.is_none() {
        damaged.push(keys::ROUND.into());
    }
    Ok(stored.flatten().unwrap_or_default())
}

/// Tells the operator what planning leaves out: one line, and at sweeps only.
fn tell(host: &dyn Host, damaged: &[String], sweep: bool) {
    if let Some(first) = damaged.first() {
        let level = if sweep { Level::Warn } else { Level::Debug };
        host.log(level, &format!("{} records cannot be read and are left out of planning: `{first}`", damaged.len()));
    }
}

/// The numbers of the slots that admissions may try. The commit of each
/// admission looks at its slot again.
struct Slots {
    all: u32,
    free: Vec<u32>,
    /// Those whose jobs are looked at in the same pass and may free them: for an
    /// owner alone. With several owners a slot counts when it is free: whose run
    /// ends first must not decide who is next.
    freeing: Vec<u32>,
}

impl Slots {
    fn load(
        db: &Db,
        all: u32,
        permits: &BTreeMap<(String, String), Permit>,
        alone: bool,
        damaged: &mut Vec<String>,
    ) -> Result<Self> {
        let mut taken = Vec::new();
        let mut freeing = Vec::new();
        for (key, value) in db.scan_prefix(keys::slots(), limits::MANY_SLOTS)? {
            let number = key.rsplit('/').next().and_then(|n| n.parse().ok()).unwrap_or(u32::MAX);
            taken.push(number);
            let Some(slot) = readable(parse::<Slot>(&key, &value))? else {
                damaged.push(key);
                continue;
            };
            let looked = permits.get(&(slot.owner, slot.team)).is_some_and(|permit| permit.collect.contains(&slot.n));
            if alone && looked && number < all {
                freeing.push(number);
            }
        }
        // More may be held than there are: by the jobs of a process that had
        // more.
        let left = (all as usize).saturating_sub(taken.len());
        let free = (0..all).filter(|number| !taken.contains(number)).take(left).collect();
        Ok(Self { all, free, freeing })
    }

    /// A slot for a job: the first free one from a place that the job itself
    /// gives. So two plans in a row, of which the second was made before the
    /// steps of the first have moved, want different slots for different jobs.
    fn take(&mut self, chosen: &Candidate) -> Option<u32> {
        if self.free.is_empty() {
            return (!self.freeing.is_empty()).then(|| self.freeing.remove(0));
        }
        let seed = chosen.team.bytes().fold(chosen.job, |sum, b| sum.wrapping_mul(31).wrapping_add(b.into()));
        let from = seed % self.all.max(1);
        let place = self.free.iter().position(|number| *number >= from).unwrap_or(0);
        Some(self.free.remove(place))
    }
}

/// Unconnected teams with unfinished work whose pause has ended.
fn to_connect(
    db: &Db,
    connected: &BTreeMap<(String, String), bool>,
    now: u64,
    next: &mut u64,
    damaged: &mut Vec<String>,
) -> Result<Vec<(String, String)>> {
    let mut out = Vec::new();
    for ((owner, team), _) in connected.iter().filter(|(_, connected)| !**connected) {
        let key = keys::TeamKeys::new(owner, team).head();
        let Some(head) = readable(db.get::<Head>(&key))? else {
            damaged.push(key);
            continue;
        };
        let next_at = head.and_then(|h| h.disconnect).map_or(0, |d| d.next_at);
        if next_at <= now {
            out.push((owner.clone(), team.clone()));
        } else {
            *next = (*next).min(next_at);
        }
    }
    Ok(out)
}
