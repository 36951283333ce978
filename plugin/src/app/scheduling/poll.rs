//! What the host says of one job that is under way.

use super::cut_short;
use super::observe::{self, Attempt, KeyLookup, Observation};
use super::step::TeamStep;
use crate::domain::error::Result;
use crate::domain::hold_code::HoldCode;
use crate::domain::job::Phase;
use crate::store::records::{Frozen, Job};
use crate::store::{TeamTx, read};

impl TeamStep<'_> {
    /// What the host says of one job, and whether a person wants its input sent
    /// once more. Nothing: there is nothing to ask.
    pub fn poll(&self, n: u32) -> Result<Option<(Observation, bool)>> {
        let planned = read(self.host, |db| {
            let team = TeamTx::load(db, self.owner, self.team)?;
            let Some(job) = team.planned_job(n)? else { return Ok(None) };
            let frozen: Option<Frozen> = match job.phase {
                Phase::Starting | Phase::Resuming { .. } => db.get(&team.keys.input(n))?,
                _ => None,
            };
            Ok(Some((job, frozen)))
        })?;
        let Some((job, frozen)) = planned else { return Ok(None) };
        if !job.phase.holds_slot() && !matches!(job.phase, Phase::Waiting { .. }) {
            return Ok(None);
        }
        let again = frozen.as_ref().is_some_and(|f| f.insist) || cut_short::sends_again(&job);
        let seen = match cut_short::go_on(self, &job, frozen.as_ref())? {
            Some(seen) => seen,
            None => match &frozen {
                _ if taken_over(&job) => self.ask_only(&job, frozen.as_ref()),
                Some(frozen) => self.send_again(&job, frozen)?,
                None => observe::ask(self.runs, &job),
            },
        };
        Ok(Some((seen, again)))
    }

    /// An input that was frozen by the earlier plugin. Its run is looked for;
    /// nothing is sent without a slot of this deployment, so what was never
    /// admitted goes back into the queue. Where the host cannot tell, it stays
    /// unknown, also if a person wants it tried again: in the queue nothing would
    /// end the run that it may have.
    fn ask_only(&self, job: &Job, frozen: Option<&Frozen>) -> Observation {
        let key = frozen.map_or(job.id.as_str(), |f| &f.key);
        match observe::find(self.runs, job, key) {
            KeyLookup::Known(seen) => seen,
            KeyLookup::Unclear => Observation::Lost,
            KeyLookup::Never => Observation::NotNow {
                code: HoldCode::NeverBegan,
                message: "The earlier plugin's run of it never began; it is started anew.".into(),
                disconnect: false,
            },
        }
    }

    /// A frozen input that may have been sent before. The host is asked for the
    /// key's run first: one that forgot its keys would run the input twice.
    fn send_again(&self, job: &Job, frozen: &Frozen) -> Result<Observation> {
        match observe::find(self.runs, job, &frozen.key) {
            KeyLookup::Known(seen) => Ok(seen),
            // Somebody may have cancelled or settled it while the host was asked.
            KeyLookup::Never | KeyLookup::Unclear if !self.is_still(job)? => Ok(Observation::Nothing),
            KeyLookup::Never => Ok(observe::send(self.runs, job, frozen, Attempt::First)),
            KeyLookup::Unclear if frozen.insist => self.insist(job, frozen),
            KeyLookup::Unclear => Ok(Observation::Lost),
        }
    }

    fn is_still(&self, job: &Job) -> Result<bool> {
        read(self.host, |db| {
            let now = TeamTx::load(db, self.owner, self.team)?.planned_job(job.n)?;
            Ok(now.is_some_and(|now| now.id == job.id && now.phase == job.phase))
        })
    }
}

/// Frozen by the earlier plugin: it holds no slot of this deployment.
fn taken_over(job: &Job) -> bool {
    job.slot.is_none() && matches!(job.phase, Phase::Starting)
}
