//! The runs that have a task in this process, and how every run that needs one
//! gets one: from the commit that makes it run, from the start of the process,
//! and from a look at the stored runs every few seconds, should any other way
//! ever fail. At most one task works on a run.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use tokio::sync::watch;

use super::BuiltinAgents;
use super::outcome::Pending;
use crate::storage::tables::agents::RunStatus;

/// What a run's task is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Go,
    /// The stored run says so too.
    Cancel,
    /// Stop at the next safe point; the run stays as it is.
    Shutdown,
}

/// Why a run is given a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// A commit made it run, and counted this attempt.
    Committed,
    /// It was found without a task.
    Found,
}

/// A run that has a task.
struct LiveRun {
    signal: watch::Sender<Signal>,
    /// Closed when the task has ended.
    done: watch::Receiver<()>,
    /// The run was given a task while it had one, which may have been about to
    /// end: the same task looks at it once more.
    again: Option<Begin>,
}

#[derive(Default)]
pub struct Live {
    stopping: bool,
    runs: HashMap<String, LiveRun>,
}

impl BuiltinAgents {
    /// Settles or continues every run that an earlier process left unfinished.
    /// Runs that wait for an approval keep waiting. Harmless when repeated.
    pub async fn recover(self: &Arc<Self>) -> anyhow::Result<()> {
        for run in self.unattended().await? {
            self.spawn(&run, Begin::Found);
        }
        Ok(())
    }

    /// From now on looks every so often for runs that should have a task and
    /// have none, and gives them one. It ends with the agents.
    pub fn supervise(self: &Arc<Self>, every: Duration) {
        let agents = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut before = HashSet::new();
            loop {
                tokio::time::sleep(every).await;
                let Some(agents) = agents.upgrade() else { return };
                if agents.check_open().is_err() {
                    return;
                }
                let now = match agents.unattended().await {
                    Ok(runs) => HashSet::from_iter(runs),
                    Err(error) => {
                        tracing::warn!("the stored runs cannot be looked at: {error:#}");
                        continue;
                    }
                };
                // Between the commit that makes a run and its task there is a
                // moment in which it has none: only the second look counts.
                for run in now.intersection(&before) {
                    tracing::warn!(run, "a run had no task that works on it; it is given one");
                    agents.spawn(run, Begin::Found);
                }
                before = now;
            }
        });
    }

    /// The stored runs that should have a task and have none, oldest first.
    async fn unattended(self: &Arc<Self>) -> anyhow::Result<Vec<String>> {
        let agents = self.clone();
        let open = tokio::task::spawn_blocking(move || agents.tables.read(|rows| rows.open_runs())).await??;
        let live = self.live();
        let unattended = open
            .into_iter()
            .filter(|run| (run.status == RunStatus::Running || run.cancel) && !live.runs.contains_key(&run.id))
            .map(|run| run.id);
        Ok(unattended.collect())
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn stopping(&self) -> bool {
        self.live().stopping
    }

    /// Gives a run a task, unless the host is stopping: then `recover` of the
    /// next process does.
    pub(super) fn spawn(self: &Arc<Self>, run: &str, mut begin: Begin) {
        let (signal, mut told) = watch::channel(Signal::Go);
        let (ending, done) = watch::channel(());
        {
            let mut live = self.live();
            if live.stopping {
                return;
            }
            if let Some(live) = live.runs.get_mut(run) {
                live.again = Some(begin);
                return;
            }
            live.runs.insert(run.to_owned(), LiveRun { signal, done, again: None });
        }
        let (agents, run) = (self.clone(), run.to_owned());
        tokio::spawn(async move {
            let _ending = ending;
            let _place = if begin == Begin::Found { agents.recovered_place(&run, &mut told).await } else { None };
            loop {
                let work = tokio::spawn(agents.clone().drive(run.clone(), begin, told.clone()));
                if work.await.is_err() {
                    tracing::error!(run, "the task of a run panicked");
                    let end = Pending::failed("internal: the run met a fault of the host");
                    if let Err(e) = agents.keep(&run, &end).await {
                        tracing::error!(run, "cannot end the run: {e:#}");
                    }
                }
                match agents.leave(&run) {
                    Some(again) => begin = again,
                    None => return,
                }
            }
        });
    }

    /// The task of a run is about to end; or it has to look once more.
    fn leave(&self, run: &str) -> Option<Begin> {
        let mut live = self.live();
        let again = live.runs.get_mut(run)?.again.take().filter(|_| !live.stopping);
        if again.is_none() {
            live.runs.remove(run);
        }
        again
    }

    /// Tells the task of a cancelled run, and gives it one if it has none. The
    /// receiver closes when the task has ended.
    pub(super) fn tell_cancelled(self: &Arc<Self>, run: &str) -> Option<watch::Receiver<()>> {
        if !self.live().runs.contains_key(run) {
            self.spawn(run, Begin::Found);
        }
        let live = self.live();
        let live = live.runs.get(run)?;
        let _ = live.signal.send(Signal::Cancel);
        Some(live.done.clone())
    }

    /// Stops runs at their next safe point and waits for them. A model call
    /// or a tool call that is under way is given up; after the next `recover`
    /// it is made again, a tool call with the same call id.
    pub async fn shutdown(&self) {
        let tasks: Vec<_> = {
            let mut live = self.live();
            live.stopping = true;
            live.runs
                .values()
                .map(|run| {
                    let _ = run.signal.send(Signal::Shutdown);
                    run.done.clone()
                })
                .collect()
        };
        for mut done in tasks {
            // Nothing is ever sent: an error says that the task has ended.
            let _ = done.changed().await;
        }
    }
}
