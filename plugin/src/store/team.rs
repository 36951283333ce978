//! One team inside a transaction: its records, and the indexes that follow
//! from a job's phase.

use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use super::records::{Head, Job, Message, MessageKind, Need, Slot, StateEntry, Team, V1, Work};
use super::{Db, keys, readable};
use crate::domain::error::{Error, Result};
use crate::domain::job::Phase;
use crate::domain::{limits, text};

/// A team's records inside one transaction. The head is kept in memory and
/// written by [`TeamTx::record_change`].
pub struct TeamTx<'a, 'h> {
    pub db: &'a Db<'h>,
    pub owner: &'a str,
    pub keys: keys::TeamKeys,
    pub team: Team,
    pub head: RefCell<Head>,
    change: Cell<Option<u64>>,
}

impl<'a, 'h> TeamTx<'a, 'h> {
    /// The owner's team, or the answer for a team that does not exist.
    pub fn load(db: &'a Db<'h>, owner: &'a str, team: &str) -> Result<Self> {
        if !text::is_id(team) {
            return Err(Error::no_team());
        }
        let keys = keys::TeamKeys::new(owner, team);
        let team: Team = db.get(&keys.team())?.ok_or_else(Error::no_team)?;
        let head: Head = db.get(&keys.head())?.ok_or_else(Error::no_team)?;
        Ok(Self::of(db, owner, keys, team, head))
    }

    /// A team with records that the caller has read, or is about to write.
    pub fn of(db: &'a Db<'h>, owner: &'a str, keys: keys::TeamKeys, team: Team, head: Head) -> Self {
        Self { db, owner, keys, team, head: RefCell::new(head), change: Cell::new(None) }
    }

    /// The revision that [`Self::record_change`] gave. Absent: nothing has changed.
    pub fn change(&self) -> Option<u64> {
        self.change.get()
    }

    /// Writes the head, with the next revision. Gives that revision.
    pub fn record_change(&self) -> Result<u64> {
        let mut head = self.head.borrow_mut();
        head.revision += 1;
        self.db.put(&self.keys.head(), &*head)?;
        self.change.set(Some(head.revision));
        Ok(head.revision)
    }

    pub fn job(&self, n: u32) -> Result<Job> {
        self.planned_job(n)?.ok_or_else(|| Error::internal("a job of this team is missing"))
    }

    /// The job that a permit names. Absent: the permit was planned for a team of
    /// the same id that was deleted since.
    pub fn planned_job(&self, n: u32) -> Result<Option<Job>> {
        Ok(self.db.get::<Job>(&self.keys.job(n))?.map(Job::read))
    }

    /// The id of a job; nothing if its record cannot be read.
    pub fn readable_id(&self, n: u32) -> Result<Option<String>> {
        Ok(readable(self.job(n))?.map(|job| job.id))
    }

    /// The number of the job with this id, or the answer for a job that is not
    /// there. It reads no job.
    pub fn number(&self, id: &str) -> Result<u32> {
        let known = if text::is_id(id) { self.db.get(&self.keys.job_id(id))? } else { None };
        known.ok_or_else(Error::no_job)
    }

    /// The job with this id, or the answer for a job that is not there.
    pub fn job_by_id(&self, id: &str) -> Result<Job> {
        self.find_job(id)?.ok_or_else(Error::no_job)
    }

    pub fn find_job(&self, id: &str) -> Result<Option<Job>> {
        if !text::is_id(id) {
            return Ok(None);
        }
        let n: Option<u32> = self.db.get(&self.keys.job_id(id))?;
        n.map(|n| self.job(n)).transpose()
    }

    pub fn text(&self, n: u32) -> Result<String> {
        Ok(self.db.get_text(&self.keys.text(n))?.unwrap_or_default())
    }

    /// Gives a new job its number and its place in its conversation, and
    /// stores it with its text. The place is after everything unfinished
    /// there; since the end of the conversation's list was read, two commits
    /// never take the same place.
    pub fn add_job(&self, mut job: Job, text: &str) -> Result<Job> {
        let conversation = keys::work_thread(self.owner, &job.thread);
        let last = self.db.scan(&conversation, &keys::end(&conversation), 1, true)?;
        let last = last.first().and_then(|(key, _)| key.rsplit('/').next()).and_then(|seq| seq.parse::<u32>().ok());
        job.seq = last.map_or(1, |seq| seq.saturating_add(1));
        {
            let mut head = self.head.borrow_mut();
            head.jobs += 1;
            head.unfinished += 1;
            job.n = head.jobs;
        }
        if job.root == 0 {
            job.root = job.n;
        }
        self.db.put(&self.keys.job_id(&job.id), &job.n)?;
        self.db.put_text(&self.keys.text(job.n), text)?;
        self.put_job(&job, job.created_at)?;
        Ok(job)
    }

    /// Gives a job the slot of this number, which is free.
    pub fn take_slot(&self, job: &mut Job, number: u32, now: u64) -> Result<()> {
        job.slot = Some(number);
        let record = Slot {
            v: V1,
            owner: self.owner.into(),
            team: self.team.id.clone(),
            n: job.n,
            job: job.id.clone(),
            thread: job.thread.clone(),
            since: now,
        };
        self.db.put(&keys::slot(number), &record)
    }

    /// Stores a job whose phase may have changed, with all that follows from
    /// the phase: its place in the work list, its slot, its frozen input.
    pub fn save_job(&self, job: &mut Job, now: u64) -> Result<()> {
        if !job.phase.holds_slot()
            && let Some(number) = job.slot.take()
        {
            self.db.delete(&keys::slot(number))?;
        }
        let waits = job.phase.needs_person();
        if waits != job.waits {
            let mut head = self.head.borrow_mut();
            head.waiting = head.waiting.map(|n| if waits { n + 1 } else { n.saturating_sub(1) });
            job.waits = waits;
        }
        if job.phase.finished() {
            self.db.delete(&keys::work_entry(self.owner, &job.thread, job.seq))?;
            self.db.delete(&self.keys.input(job.n))?;
            self.db.delete(&self.keys.answer(job.n))?;
            let mut head = self.head.borrow_mut();
            head.unfinished = head.unfinished.saturating_sub(1);
            drop(head);
            self.db.put(&self.keys.job(job.n), job)
        } else {
            if matches!(job.phase, Phase::Queued) {
                self.db.delete(&self.keys.input(job.n))?;
            }
            self.put_job(job, now)
        }
    }

    fn put_job(&self, job: &Job, now: u64) -> Result<()> {
        self.db.put(&self.keys.job(job.n), job)?;
        let need = need(&job.phase);
        let key = keys::work_entry(self.owner, &job.thread, job.seq);
        // A job keeps its age for as long as it needs the same thing. An entry
        // that cannot be read is made anew.
        let since = match readable(self.db.get::<Work>(&key))?.flatten() {
            Some(old) if old.need == need => old.since,
            _ => now,
        };
        let work = Work {
            team: self.team.id.clone(),
            job: job.n,
            need,
            since,
            next_at: job.hold.as_ref().map_or(0, |h| h.next_at),
            run: job.phase.run().map(String::from),
        };
        self.db.put(&key, &work)
    }

    /// Makes the members' runs and questions due for a look: what happened to
    /// them while the team was offline was not announced.
    pub fn look_at_runs(&self, now: u64) -> Result<()> {
        for member in &self.team.members {
            let conversation = keys::work_thread(self.owner, &member.thread);
            for (key, value) in self.db.scan_prefix(&conversation, 1)? {
                let Some(mut work) = readable(super::parse::<Work>(&key, &value))? else { continue };
                if work.team == self.team.id && matches!(work.need, Need::End | Need::Person) && work.next_at == 0 {
                    work.next_at = now.max(1);
                    self.db.put(&key, &work)?;
                }
            }
        }
        Ok(())
    }

    /// Makes a job due at a set time; nothing else of it changes.
    pub fn look_again(&self, job: &Job, at: u64) -> Result<()> {
        let key = keys::work_entry(self.owner, &job.thread, job.seq);
        match readable(self.db.get::<Work>(&key))?.flatten() {
            Some(work) => self.db.put(&key, &Work { next_at: at, ..work }),
            None => Ok(()),
        }
    }

    /// When a job is due for a look; 0 without a set time.
    pub fn due(&self, job: &Job) -> Result<u64> {
        let work = readable(self.db.get::<Work>(&keys::work_entry(self.owner, &job.thread, job.seq)))?;
        Ok(work.flatten().map_or(0, |w| w.next_at))
    }

    /// Whether a job is due for a look at a set time.
    pub fn has_due_time(&self, job: &Job) -> Result<bool> {
        Ok(self.due(job)? > 0)
    }

    /// Adds a line to the shared record and drops what exceeds its bound.
    pub fn add_message(&self, kind: MessageKind, job: u32, at: u64) -> Result<()> {
        let mut head = self.head.borrow_mut();
        head.messages += 1;
        let seq = head.messages;
        self.db.put(&self.keys.message(seq), &Message { v: V1, seq, kind, job, at, text: None })?;
        if let Some(old) = seq.checked_sub(limits::MESSAGES_KEPT) {
            self.db.delete(&self.keys.message(old))?;
        }
        Ok(())
    }

    /// The newest lines of the shared record that can be read, oldest first.
    pub fn recent_messages(&self, limit: usize) -> Result<Vec<Message>> {
        let prefix = self.keys.messages();
        let mut found = self.db.scan(&prefix, &keys::end(&prefix), limit as u32, true)?;
        found.reverse();
        let lines = found.iter().map(|(key, value)| readable(super::parse(key, value)));
        lines.filter_map(Result::transpose).collect()
    }

    /// The public state in the order of publication, archived entries
    /// included.
    pub fn state(&self) -> Result<Vec<StateEntry>> {
        let found = self.db.scan_prefix(&self.keys.state(), limits::STATE_ENTRIES as u32 + 1)?;
        found.iter().map(|(key, value)| super::parse(key, value)).collect()
    }

    /// The entries of the public state that can be read.
    pub fn readable_state(&self) -> Result<Vec<StateEntry>> {
        let found = self.db.scan_prefix(&self.keys.state(), limits::STATE_ENTRIES as u32 + 1)?;
        let entries = found.iter().map(|(key, value)| readable(super::parse(key, value)));
        entries.filter_map(Result::transpose).collect()
    }

    /// Notices that wait for the next turn of a conversation: number and text.
    pub fn notices(&self, thread: &str) -> Result<Vec<(u32, String)>> {
        let found = self.db.scan_prefix(&self.keys.notices(thread), limits::REQUESTS_PER_TEAM)?;
        Ok(found.into_iter().filter_map(|(key, value)| Some((key.rsplit('/').next()?.parse().ok()?, value))).collect())
    }

    pub fn add_notice(&self, thread: &str, text: &str) -> Result<()> {
        let mut head = self.head.borrow_mut();
        head.notices += 1;
        self.db.put_text(&self.keys.notice(thread, head.notices), text)
    }
}

/// What an unfinished job in this phase needs next.
pub fn need(phase: &Phase) -> Need {
    match phase {
        Phase::Queued | Phase::Answered { .. } => Need::Slot,
        Phase::Waiting { .. } => Need::Person,
        Phase::Running { .. } => Need::End,
        _ => Need::Host,
    }
}
