//! A frozen input that is sent once more because a person wants it.

use super::observe::{self, Attempt, Observation};
use super::readiness::{self, Readiness};
use super::step::TeamStep;
use crate::domain::error::Result;
use crate::store::records::{Frozen, Job};
use crate::store::{TeamTx, transact};

impl TeamStep<'_> {
    /// A person wants it sent once more. What the earlier attempt may have left
    /// in the conversation, a run or a question, is not talked over.
    pub fn insist(&self, job: &Job, frozen: &Frozen) -> Result<Observation> {
        match readiness::ready(&self.runs.state(&job.thread, None, None), job) {
            Readiness::Hold { code, message, disconnect } => Ok(Observation::Later { code, message, disconnect }),
            Readiness::Yes if self.insist_once(job)? => Ok(observe::send(self.runs, job, frozen, Attempt::Again)),
            // It may well be this answer that was admitted before.
            Readiness::Yes | Readiness::AnsweredElsewhere | Readiness::Never(_) => Ok(Observation::Lost),
        }
    }

    /// Uses up a person's leave to send once more, before it is used: a crash
    /// in between sends nothing.
    fn insist_once(&self, job: &Job) -> Result<bool> {
        transact(self.host, &self.lock(), |db| {
            let team = TeamTx::load(db, self.owner, self.team)?;
            let key = team.keys.input(job.n);
            if team.planned_job(job.n)?.is_none_or(|now| now.phase != job.phase) {
                return Ok(false);
            }
            let Some(mut frozen) = db.get::<Frozen>(&key)?.filter(|f| f.insist) else { return Ok(false) };
            frozen.insist = false;
            db.put(&key, &frozen)?;
            Ok(true)
        })
    }
}
