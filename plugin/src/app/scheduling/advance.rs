//! One bounded step of one team: collect what ended, then admit what the
//! permit allows. Nothing here waits; whatever is repeated is the same.

use super::admit;
use super::permit::Permit;
use super::setback::{self, Wanted};
use super::step::TeamStep;
use super::timed::Timed;
use crate::app::shared::heads;
use crate::domain::error::{Cause, Error, Result};
use crate::domain::limits;
use crate::host::Host;
use crate::store::{step_lock, transact};

/// True: something changed.
pub fn advance(host: &dyn Host, owner: &str, team: &str, permit: &str) -> Result<bool> {
    let permit: Permit = serde_json::from_str(permit)
        .map_err(|_| Error::invalid("bad_permit", "permit", "This permit was not made by plan."))?;
    let held = host.lock(&step_lock(owner, team), 0);
    let Some(runs) = host.lookup(owner, team) else { return Ok(false) };
    let step = TeamStep { host, owner, team, runs: &*runs, permit: &permit };
    let Ok(_held) = held else { return step.pass_over() };
    let until = host.now_ms().saturating_add(limits::STEP_MS);
    let over = || host.now_ms() > until;
    let gone = || host.lookup(owner, team).is_none();
    let mut changed = false;
    for (place, n) in permit.collect.iter().enumerate() {
        if place > 0 && over() {
            // What ended was announced once: the next step looks at the rest.
            step.leave(&permit.collect[place..], 0)?;
            changed = true;
            break;
        }
        changed |= step.collect(*n)?;
        if gone() {
            return Ok(true);
        }
    }
    for (place, admission) in permit.admit.iter().enumerate() {
        // The first has its turn also where collecting took all the time.
        if place > 0 && over() {
            return Ok(true);
        }
        let admitted = admit::admit(&step, admission);
        changed |= admitted.or_else(|error| setback::after(&step, admission.job, Wanted::Admit, error))?;
        if gone() {
            return Ok(true);
        }
    }
    Ok(changed)
}

impl TeamStep<'_> {
    /// The team's step is under way elsewhere: all that was planned for it waits
    /// a moment, and its owner has had its turn, so that no other waits for it.
    fn pass_over(&self) -> Result<bool> {
        let mut jobs = self.permit.collect.clone();
        jobs.extend(self.permit.admit.iter().map(|admission| admission.job));
        let served = match self.permit.admit.first() {
            None => Ok(false),
            Some(planned) => {
                admit::pass_over(self, planned).or_else(|error| setback::after(self, planned.job, Wanted::Admit, error))
            }
        };
        Ok(served? | self.leave(&jobs, limits::LOCKED_MS)?)
    }

    /// Makes jobs due after a pause. Where others commit at the same time, the
    /// next sweep finds them.
    fn leave(&self, jobs: &[u32], pause: u64) -> Result<bool> {
        let at = self.host.now_ms().saturating_add(pause);
        let left = transact(self.host, &self.lock(), |db| heads::due_at(db, self.owner, self.team, jobs, at));
        match left {
            Err(error) if error.is(Cause::Contended) || error.is(Cause::TeamBusy) => Ok(false),
            left => left,
        }
    }

    /// Asks the host about one job and stores what it says.
    fn collect(&self, n: u32) -> Result<bool> {
        let timed = Timed::new(self.host, self.runs);
        let step = TeamStep { runs: &timed, ..*self };
        match step.poll(n) {
            Ok(Some((seen, again))) => step.conclude(n, seen, timed.cut(), again),
            Ok(None) => Ok(false),
            Err(error) => setback::after(self, n, Wanted::Collect(None), error),
        }
    }
}
