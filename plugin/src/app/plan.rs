//! What to do next, from the unfinished work alone.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::advance::{Admission, Permit};
use super::{Reconnect, settings};
use crate::domain::error::{Error, Result};
use crate::domain::limits;
use crate::domain::schedule::{self, Candidate};
use crate::host::Host;
use crate::store::records::{Head, Need, Slot, Work};
use crate::store::{Db, keys, parse, read};

/// A run that the host saw ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRun {
    pub thread: String,
    pub run: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub owner: String,
    pub team: String,
    pub permit: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub steps: Vec<Step>,
    /// Teams (owner, id) to connect.
    pub connect: Vec<(String, String)>,
    pub next_ms: u32,
}

/// The first unfinished job of a conversation.
pub struct HeadWork {
    pub owner: String,
    pub thread: String,
    pub work: Work,
}

/// Decides what to do next. Reads the heads of the unfinished conversations,
/// the slots and the round; its cost does not depend on finished history.
/// `resting`: teams (owner, id) whose steps fail; they are offered no slot, so
/// that nobody waits for a turn that they cannot take.
pub fn plan(host: &dyn Host, ended: &[EndedRun], sweep: bool, resting: &[(String, String)]) -> Result<Plan> {
    let settings = settings(host)?;
    let now = host.now_ms();
    read(host, |db| {
        let heads = heads(db, keys::work())?;
        let mut connected: BTreeMap<(String, String), bool> = BTreeMap::new();
        for head in &heads {
            let team = (head.owner.clone(), head.work.team.clone());
            connected.entry(team).or_insert_with_key(|(owner, team)| host.lookup(owner, team).is_some());
        }
        let mut permits: BTreeMap<(String, String), Permit> = BTreeMap::new();
        let mut candidates = Vec::new();
        let mut next = now + limits::SWEEP_MS;
        for head in &heads {
            let HeadWork { owner, thread, work } = head;
            let team = (owner.clone(), work.team.clone());
            if !connected[&team] {
                continue;
            }
            // Whatever ended in this conversation may be what the job waits for.
            let touched = ended.iter().any(|e| e.thread == *thread || Some(&e.run) == work.run.as_ref());
            let due = touched || work.next_at <= now;
            if !due {
                next = next.min(work.next_at);
            }
            match work.need {
                Need::Slot if due && resting.contains(&team) => {}
                Need::Slot if due => candidates.push(Candidate {
                    owner: owner.clone(),
                    team: work.team.clone(),
                    thread: thread.clone(),
                    job: work.job,
                    since: work.since,
                }),
                Need::Host if due => permits.entry(team).or_default().collect.push(work.job),
                // Somebody may have answered in the conversation itself.
                Need::Person if touched || (work.next_at > 0 && due) => {
                    permits.entry(team).or_default().collect.push(work.job);
                }
                // Its end is announced; a sweep or an earlier failure looks anyway.
                Need::End if sweep || touched || (work.next_at > 0 && due) => {
                    permits.entry(team).or_default().collect.push(work.job);
                }
                _ => {}
            }
        }
        let stored: Vec<String> = db.get(keys::ROUND)?.unwrap_or_default();
        let round = schedule::merge_round(&stored, &candidates);
        let mut slots = Slots::load(db, settings.slots, &permits, round.len() < 2)?;
        let many = slots.free.len() + slots.freeing.len();
        let mut after: Vec<(String, u32)> = Vec::new();
        let chosen = schedule::admissions(&stored, &candidates, many);
        let full = chosen.len() == many;
        for chosen in chosen {
            let Some(slot) = slots.take(&chosen) else { break };
            let admission = Admission { job: chosen.job, thread: chosen.thread, slot, after: after.clone() };
            if !after.iter().any(|(owner, _)| *owner == chosen.owner) {
                after.push((chosen.owner.clone(), slot));
            }
            permits.entry((chosen.owner, chosen.team)).or_default().admit.push(admission);
        }
        let mut steps = Vec::with_capacity(permits.len());
        for ((owner, team), mut permit) in permits {
            permit.round.clone_from(&round);
            permit.full = full;
            permit.resting = resting.to_vec();
            let permit = serde_json::to_string(&permit).map_err(|_| Error::internal("a permit cannot be written"))?;
            steps.push(Step { owner, team, permit });
        }
        // Whoever is next in the round goes first, so that nobody asks in vain.
        steps.sort_by_key(|step| round.iter().position(|owner| *owner == step.owner).unwrap_or(round.len()));
        let connect = match settings.reconnect {
            Reconnect::Manual => Vec::new(),
            Reconnect::Auto => to_connect(db, &connected, now, &mut next)?,
        };
        let next_ms = u32::try_from(next.saturating_sub(now)).unwrap_or(u32::MAX).max(10);
        Ok(Plan { steps, connect, next_ms })
    })
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
    fn load(db: &Db, all: u32, permits: &BTreeMap<(String, String), Permit>, alone: bool) -> Result<Self> {
        let mut taken = Vec::new();
        let mut freeing = Vec::new();
        for (key, value) in db.scan_prefix(keys::slots(), MANY_SLOTS)? {
            let slot: Slot = parse(&key, &value)?;
            let number = key.rsplit('/').next().and_then(|n| n.parse().ok()).unwrap_or(u32::MAX);
            taken.push(number);
            let looked = permits.get(&(slot.owner, slot.team)).is_some_and(|permit| permit.collect.contains(&slot.n));
            if alone && looked && number < all {
                freeing.push(number);
            }
        }
        // More may be held than there are: by imported jobs, or by those of a
        // process that had more.
        let left = (all as usize).saturating_sub(taken.len());
        let free = (0..all).filter(|number| !taken.contains(number)).take(left).collect();
        Ok(Self { all, free, freeing })
    }

    /// A slot for a job: the first free one from a place that the job itself
    /// gives. So two plans in a row, of which the second was made before the
    /// steps of the first have ended, want different slots for different jobs.
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

/// More slots than are ever held.
pub const MANY_SLOTS: u32 = 1_000;

/// Whether an owner has a job that could start now, in a team that does not
/// rest.
pub fn asks(db: &Db, host: &dyn Host, owner: &str, resting: &[(String, String)]) -> Result<bool> {
    let now = host.now_ms();
    let heads = heads(db, &keys::work_owner(owner))?;
    let rests = |team: &str| resting.iter().any(|(o, t)| o == owner && t == team);
    let due = |work: &Work| work.need == Need::Slot && work.next_at <= now && !rests(&work.team);
    Ok(heads.iter().any(|h| due(&h.work) && host.lookup(owner, &h.work.team).is_some()))
}

/// The first unfinished job of every conversation under a prefix of the work
/// list. Short queues are read many at once, a long one is passed by a seek.
pub fn heads(db: &Db, under: &str) -> Result<Vec<HeadWork>> {
    let end = keys::end(under);
    let mut from = String::from(under);
    let mut heads = Vec::new();
    loop {
        let page = db.scan(&from, &end, HEADS_PAGE, false)?;
        let more = page.len() == HEADS_PAGE as usize;
        for (key, value) in page {
            if key < from {
                continue;
            }
            let mut parts = key.split('/').skip(1);
            let (owner, thread) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
            let (owner, thread) = (keys::unpart(owner), keys::unpart(thread));
            from = keys::end(&keys::work_thread(&owner, &thread));
            heads.push(HeadWork { work: parse(&key, &value)?, owner, thread });
        }
        if !more {
            return Ok(heads);
        }
    }
}

/// Entries of the work list that are read at once.
const HEADS_PAGE: u32 = 16;

/// Unconnected teams with unfinished work whose pause is over.
fn to_connect(
    db: &Db,
    connected: &BTreeMap<(String, String), bool>,
    now: u64,
    next: &mut u64,
) -> Result<Vec<(String, String)>> {
    let mut out = Vec::new();
    for ((owner, team), _) in connected.iter().filter(|(_, connected)| !**connected) {
        let head: Option<Head> = db.get(&keys::TeamKeys::new(owner, team).head())?;
        let next_at = head.and_then(|h| h.disconnect).map_or(0, |d| d.next_at);
        if next_at <= now {
            out.push((owner.clone(), team.clone()));
        } else {
            *next = (*next).min(next_at);
        }
    }
    Ok(out)
}
