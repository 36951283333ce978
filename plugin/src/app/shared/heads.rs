//! The work list as its readers need it: the first unfinished job of each
//! conversation. An entry that cannot be read stops its own conversation and
//! nothing else.

use alloc::string::String;
use alloc::vec::Vec;

use crate::domain::error::Result;
use crate::domain::limits;
use crate::host::Host;
use crate::store::records::{Job, Need, Work};
use crate::store::{Db, keys, parse, readable};

/// The first unfinished job of a conversation.
pub struct HeadWork {
    pub owner: String,
    pub thread: String,
    pub work: Work,
    key: String,
}

/// What comes first in each conversation.
#[derive(Default)]
pub struct Heads {
    pub list: Vec<HeadWork>,
    /// The keys of those that cannot be read.
    pub damaged: Vec<String>,
}

/// The first unfinished job of every conversation under a prefix of the work
/// list. Short queues are read many at once, a long one is passed by a seek.
pub fn heads(db: &Db, under: &str) -> Result<Heads> {
    let end = keys::end(under);
    let mut from = String::from(under);
    let mut heads = Heads::default();
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
            match readable(parse(&key, &value))? {
                Some(work) => heads.list.push(HeadWork { owner, thread, work, key }),
                None => heads.damaged.push(key),
            }
        }
        if !more {
            return Ok(heads);
        }
    }
}

/// Entries of the work list that are read at once.
const HEADS_PAGE: u32 = 16;

/// The first entry of one conversation; an error inside says that it cannot
/// be read.
pub fn first(db: &Db, owner: &str, thread: &str) -> Result<Option<Result<Work>>> {
    let found = db.scan_prefix(&keys::work_thread(owner, thread), 1)?;
    Ok(found.first().map(|(key, value)| parse(key, value)))
}

/// The job's entry, if it is the first unfinished one of its conversation.
pub fn head(db: &Db, owner: &str, team: &str, job: &Job) -> Result<Option<Work>> {
    let first = first(db, owner, &job.thread)?.and_then(Result::ok);
    Ok(first.filter(|work| work.team == team && work.job == job.n))
}

/// Whether an owner has a job that could start now, in a team that does not
/// rest.
pub fn asks(db: &Db, host: &dyn Host, owner: &str, backing_off: &[(String, String)]) -> Result<bool> {
    let now = host.now_ms();
    let heads = heads(db, &keys::work_owner(owner))?;
    let rests = |team: &str| backing_off.iter().any(|(o, t)| o == owner && t == team);
    let due = |work: &Work| work.need == Need::Slot && work.next_at <= now && !rests(&work.team);
    Ok(heads.list.iter().any(|h| due(&h.work) && host.lookup(owner, &h.work.team).is_some()))
}

/// How many jobs of a team are in the work list.
pub fn of_team(db: &Db, owner: &str, team: &str) -> Result<u32> {
    let most = limits::TEAMS_PER_OWNER as u32 * (limits::REQUESTS_PER_TEAM + limits::RECEIPTS_PER_TEAM);
    let mut count = 0;
    for (key, value) in db.scan_prefix(&keys::work_owner(owner), most)? {
        count += u32::from(readable(parse::<Work>(&key, &value))?.is_some_and(|work| work.team == team));
    }
    Ok(count)
}

/// Makes these jobs of a team due at a set time, whatever they are due at now,
/// where they are first in their conversations. True: something changed.
pub fn due_at(db: &Db, owner: &str, team: &str, jobs: &[u32], at: u64) -> Result<bool> {
    let mut changed = false;
    for HeadWork { mut work, key, .. } in heads(db, &keys::work_owner(owner))?.list {
        if work.team == team && jobs.contains(&work.job) && work.next_at != at {
            work.next_at = at;
            db.put(&key, &work)?;
            changed = true;
        }
    }
    Ok(changed)
}
