//! Direct runs: those that a person begins by posting to a conversation. Jobs
//! have slots; these have a bound for each user, so that one
//! user's posts do not take the models from the others. It is counted in the tables, where a restart
//! does not forget it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::BuiltinAgents;
use super::live::Signal;
use crate::agents::runs::RunError;
use crate::storage::tables::AgentRows;

/// The pause between two direct runs that are taken up after a start.
const PACE: Duration = Duration::from_millis(50);

/// Whether this user may have one more direct run at work.
pub fn room(rows: &dyn AgentRows, user: &str, most: u32) -> anyhow::Result<Result<(), RunError>> {
    let open = rows.direct_runs(user)?;
    Ok(if open < most { Ok(()) } else { Err(too_many(open)) })
}

fn too_many(open: u32) -> RunError {
    RunError::TooMany(format!(
        "Agents are at work in {open} of your conversations, and no more may be at once. Nothing happened; send the \
         message again when one of them has ended."
    ))
}

/// How direct runs that an earlier process left are taken up: of each user no
/// more at once than may be begun, and not all users' in the same moment.
pub struct Recovered {
    most: u32,
    users: Mutex<HashMap<String, Arc<Semaphore>>>,
    pace: tokio::sync::Mutex<()>,
}

impl Recovered {
    pub fn new(most: u32) -> Self {
        Self { most, users: Mutex::default(), pace: tokio::sync::Mutex::default() }
    }

    async fn place(&self, user: String) -> Option<OwnedSemaphorePermit> {
        let places = {
            let mut users = self.users.lock().unwrap_or_else(|e| e.into_inner());
            users.entry(user).or_insert_with(|| Arc::new(Semaphore::new(self.most as usize))).clone()
        };
        let place = places.acquire_owned().await.ok();
        let _turn = self.pace.lock().await;
        tokio::time::sleep(PACE).await;
        place
    }
}

impl BuiltinAgents {
    /// Whether this user may have one more direct run at work now. Admission
    /// decides it again.
    pub fn room(&self, user: &str) -> Result<(), RunError> {
        let room = self.tables.read(|rows| room(rows, user, self.max_direct_runs));
        room.unwrap_or_else(|e| {
            tracing::error!("cannot count a user's runs: {e:#}");
            Err(RunError::Unavailable("the database cannot be read now".into()))
        })
    }

    /// Waits until a run that an earlier process left may be taken up, or until
    /// its task is told something. What comes back is kept while it is worked
    /// on; jobs' runs need nothing.
    pub(super) async fn recovered_place(
        &self,
        run: &str,
        told: &mut watch::Receiver<Signal>,
    ) -> Option<OwnedSemaphorePermit> {
        // Should this read fail, the run's own reads say why.
        let owner = self.tables.read(|rows| rows.direct_owner(run)).ok().flatten()?;
        tokio::select! {
            place = self.recovered.place(owner) => place,
            _ = told.wait_for(|signal| *signal != Signal::Go) => None,
        }
    }
}
