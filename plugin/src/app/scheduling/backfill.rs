//! What an imported team does not know of itself: which interrupts
//! its waiting jobs wait for. Their conversations do.

use alloc::vec::Vec;

use super::observe;
use crate::app::shared::change::change_team;
use crate::app::shared::heads;
use crate::domain::error::Result;
use crate::domain::job::{Phase, Wait};
use crate::host::{Host, Runs};
use crate::store::records::{Job, Need};
use crate::store::{Db, TeamTx, read, readable};

/// Reads the open interrupts of jobs that wait for unnamed ones, so that
/// people see what they are asked. A conversation that cannot be read is left
/// for the next connect; an answer reads it too.
pub fn interrupts(host: &dyn Host, owner: &str, id: &str, runs: &dyn Runs) -> Result<()> {
    let waiting = read(host, |db| {
        let team = TeamTx::load(db, owner, id)?;
        // Only imported teams are named by their own id.
        if team.team.request_id != team.team.id {
            return Ok(Vec::new());
        }
        let heads = team.team.members.iter().map(|m| head(db, &team, &m.thread));
        Ok(heads.collect::<Result<Vec<_>>>()?.into_iter().flatten().filter(unnamed).collect())
    })?;
    for job in waiting {
        let Ok(state) = runs.state(&job.thread, None, None) else { continue };
        let Ok(open) = observe::open_interrupts(&state) else { continue };
        if open.is_empty() {
            continue;
        }
        let now = host.now_ms();
        change_team(host, owner, id, |team| {
            let mut job = team.job(job.n)?;
            if !unnamed(&job) {
                return Ok(());
            }
            if let Phase::Waiting { wait, .. } = &mut job.phase {
                *wait = Wait::Interrupts { open: open.clone() };
            }
            team.save_job(&mut job, now)?;
            team.record_change()?;
            Ok(())
        })?;
    }
    Ok(())
}

/// The job of this team that is first in the conversation and waits for a
/// person.
fn head(db: &Db, team: &TeamTx, thread: &str) -> Result<Option<Job>> {
    let Some(Ok(work)) = heads::first(db, team.owner, thread)? else { return Ok(None) };
    if work.team != team.team.id || work.need != Need::Person {
        return Ok(None);
    }
    readable(team.job(work.job))
}

fn unnamed(job: &Job) -> bool {
    matches!(&job.phase, Phase::Waiting { wait: Wait::Interrupts { open }, .. } if open.is_empty())
}
