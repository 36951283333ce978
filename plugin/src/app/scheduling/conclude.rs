//! Stores what a step has seen of a job.

use super::observe::{self, Observation};
use super::record::apply;
use super::setback::{self, Wanted};
use super::step::TeamStep;
use super::timed::Cut;
use super::{connection, cut_short};
use crate::app::shared::change::change_team;
use crate::domain::error::Result;
use crate::store::{TeamTx, read};

impl TeamStep<'_> {
    /// Stores what was seen of a job, or how far the step came. `again`: its
    /// input is sent once more, as a person wants.
    pub fn conclude(&self, n: u32, seen: Observation, cut: Option<Cut>, again: bool) -> Result<bool> {
        match cut {
            None => self.record(n, seen),
            Some(cut) => cut_short::store(self, n, &cut, again)
                .or_else(|error| setback::after(self, n, Wanted::Collect(None), error)),
        }
    }

    /// Stores an observation: the job is read again, since a cancel may have
    /// come in while the host was asked, and what does not fit any more is
    /// dropped.
    fn record(&self, n: u32, seen: Observation) -> Result<bool> {
        let stored = if seen == Observation::Nothing { self.clear_hold(n) } else { self.store(n, &seen) };
        stored.or_else(|error| setback::after(self, n, Wanted::Collect(Some(&seen)), error))
    }

    fn store(&self, n: u32, seen: &Observation) -> Result<bool> {
        let now = self.host.now_ms();
        let changed = change_team(self.host, self.owner, self.team, |team| {
            let changed = apply(team, team.job(n)?, seen, now)?;
            if changed {
                team.record_change()?;
            }
            Ok(changed)
        })?;
        match seen {
            Observation::NotNow { code, message, disconnect: true }
            | Observation::Later { code, message, disconnect: true } => {
                connection::disconnected(self.host, self.owner, self.team, &observe::as_disconnect(*code, message))?;
            }
            _ => {}
        }
        Ok(changed)
    }

    /// The host answers again: what held the job up has passed.
    fn clear_hold(&self, n: u32) -> Result<bool> {
        let held = read(self.host, |db| {
            let team = TeamTx::load(db, self.owner, self.team)?;
            team.has_due_time(&team.job(n)?)
        })?;
        if !held {
            return Ok(false);
        }
        let now = self.host.now_ms();
        change_team(self.host, self.owner, self.team, |team| {
            let mut job = team.job(n)?;
            if !job.phase.finished() {
                job.hold = None;
                team.save_job(&mut job, now)?;
                team.record_change()?;
            }
            Ok(false)
        })
    }
}
