//! The background worker: it turns events into `plan`, and a plan into steps
//! of teams. It knows no rule of teams: what to do is the component's choice,
//! when to ask for it is decided here.
//!
//! - Events that arrive while a plan is being made are gathered for the next
//!   one. A run that ended is handed to `plan` until a plan that was given it
//!   has succeeded, so none is lost.
//! - One step a team at a time; steps of different teams run at once.
//! - A failure or a panic of a step concerns its team alone: that team pauses,
//!   longer each time, and all others go on. A plan is told which teams pause or
//!   have a step under way, so that no other waits for them. The worker itself
//!   never ends before it is shut down; the process watches its life.

mod backoff;
mod state;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{broadcast, watch};
use tokio::task::{Id, JoinError, JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::agents::runs::Capability;
use crate::contract::{CallError, EndedRun, ErrorKind, FaultCode, Plan, Refusal, TeamRef};
use crate::engine::{Plugin, SignalEvent};
use crate::life::{Life, life};
use state::{Start, State};

/// What the worker needs of the component.
#[async_trait]
pub trait Team: Send + Sync + 'static {
    /// Decides what is due, and admits what is admitted together. `resting`:
    /// teams that can take no step now.
    async fn plan(&self, ended: Vec<EndedRun>, sweep: bool, resting: Vec<TeamRef>) -> Result<Plan, CallError>;
    /// One bounded step of one team. True: something changed.
    async fn advance(&self, team: &TeamRef, permit: &[u8]) -> Result<bool, CallError>;
    /// Binds the capability to the team. Harmless when repeated.
    async fn connect(&self, team: &TeamRef, runs: Capability) -> Result<(), CallError>;
}

#[async_trait]
impl Team for Plugin {
    async fn plan(&self, ended: Vec<EndedRun>, sweep: bool, resting: Vec<TeamRef>) -> Result<Plan, CallError> {
        let mut plan = Plugin::plan(self, ended, sweep, resting).await?;
        if let Some(batch) = plan.batch.take() {
            plan.steps.extend(self.admit(&batch).await?);
        }
        Ok(plan)
    }
    async fn advance(&self, team: &TeamRef, permit: &[u8]) -> Result<bool, CallError> {
        Plugin::advance(self, team, permit).await
    }
    async fn connect(&self, team: &TeamRef, runs: Capability) -> Result<(), CallError> {
        Plugin::connect(self, team, runs).await
    }
}

/// Makes the capability of a user; `None`: that user is unknown or disabled. An
/// error: that cannot be told now.
pub type CapabilityOf = Arc<dyn Fn(&str) -> anyhow::Result<Option<Capability>> + Send + Sync>;

/// How the worker paces itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// The longest time without a look at everything that is under way.
    pub sweep: Duration,
    /// Steps at once, of different teams.
    pub steps: usize,
    /// The longest time one step may take before it is given up. The engine
    /// bounds a call more tightly; this holds should it fail to.
    pub step_time: Duration,
    /// The pause after the first failure of a team, or of planning; it
    /// doubles with each further one.
    pub pause_min: Duration,
    /// The longest such pause.
    pub pause_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sweep: Duration::from_secs(15),
            steps: 16,
            step_time: Duration::from_secs(60),
            pause_min: Duration::from_secs(1),
            pause_max: Duration::from_secs(60),
        }
    }
}

/// The running worker. Dropping it stops it at once; `shutdown` is the
/// orderly way.
pub struct Worker {
    stop: watch::Sender<bool>,
    task: JoinHandle<JoinSet<Ended>>,
    life: Life,
}

impl Worker {
    /// Starts working. Both receivers must have been made before anything
    /// that they should report could happen. The first plan is a sweep.
    ///
    /// `reconnect`: connects the teams that the plan names (`None`: leaves
    /// that to the owners).
    pub fn start(
        team: Arc<dyn Team>,
        ended: broadcast::Receiver<EndedRun>,
        signals: broadcast::Receiver<SignalEvent>,
        reconnect: Option<CapabilityOf>,
        options: Options,
    ) -> Self {
        let (stop, stopped) = watch::channel(false);
        let work =
            Loop { team, reconnect, state: State::new(&options), tasks: JoinSet::new(), purposes: HashMap::new() };
        let (living, life) = life();
        let task = tokio::spawn(async move {
            let _living = living;
            work.run(ended, signals, stopped).await
        });
        Self { stop, task, life }
    }

    /// The life of its task, which ends by `shutdown` alone, unless the worker
    /// itself has a fault.
    pub fn life(&self) -> Life {
        self.life.clone()
    }

    /// As a fault of the worker itself would end it.
    #[cfg(test)]
    pub(crate) fn break_down(&self) {
        self.task.abort();
    }

    /// Starts no more steps, waits up to `grace` for those under way, then
    /// cancels the rest and waits until they are gone. A cancelled step is
    /// taken up again by the next process.
    pub async fn shutdown(self, grace: Duration) {
        let _ = self.stop.send(true);
        let Ok(mut tasks) = self.task.await else { return };
        let drained = tokio::time::timeout(grace, async { while tasks.join_next().await.is_some() {} }).await;
        if drained.is_err() {
            tracing::warn!(steps = tasks.len(), "steps did not end in time and are cancelled");
        }
        tasks.shutdown().await;
    }
}

/// What a task of the worker reports when it ends.
enum Ended {
    Plan { result: Result<Plan, CallError> },
    Step { permit: Vec<u8>, result: Result<bool, CallError> },
    Connect { result: Result<bool, CallError> },
}

/// What a task was for, kept beside it since a panic loses its answer.
enum Purpose {
    Plan { took: Vec<EndedRun>, sweep: bool },
    Team(TeamRef),
}

struct Loop {
    team: Arc<dyn Team>,
    reconnect: Option<CapabilityOf>,
    state: State,
    tasks: JoinSet<Ended>,
    purposes: HashMap<Id, Purpose>,
}

impl Loop {
    async fn run(
        mut self,
        mut ended: broadcast::Receiver<EndedRun>,
        mut signals: broadcast::Receiver<SignalEvent>,
        mut stopped: watch::Receiver<bool>,
    ) -> JoinSet<Ended> {
        let (mut runs_open, mut signals_open) = (true, true);
        loop {
            self.start_due();
            let wake = self.state.wake_at(Instant::now());
            tokio::select! {
                // Stopping goes first; a sender that is gone is a stop, too.
                biased;
                _ = stopped.changed() => return self.tasks,
                Some(done) = self.tasks.join_next_with_id() => self.task_ended(done),
                event = ended.recv(), if runs_open => match event {
                    Ok(run) => self.state.run_ended(run),
                    Err(broadcast::error::RecvError::Lagged(_)) => self.state.events_lost(),
                    Err(broadcast::error::RecvError::Closed) => runs_open = false,
                },
                event = signals.recv(), if signals_open => match event {
                    // Which topic moved does not matter: the plan is cheap
                    // and looks at all unfinished work.
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => self.state.something_happened(),
                    Err(broadcast::error::RecvError::Closed) => signals_open = false,
                },
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// Starts a plan if one is due, and every step that may run now.
    fn start_due(&mut self) {
        let now = Instant::now();
        if let Some((took, sweep)) = self.state.take_plan(now) {
            let team = self.team.clone();
            let given = took.clone();
            let resting = self.state.resting(now);
            let plan = async move { Ended::Plan { result: team.plan(given, sweep, resting).await } };
            let handle = self.tasks.spawn(plan);
            self.purposes.insert(handle.id(), Purpose::Plan { took, sweep });
        }
        while let Some(start) = self.state.take_start(now, self.reconnect.is_some()) {
            let team = self.team.clone();
            let limit = self.state.step_time;
            let (name, handle) = match start {
                Start::Step { team: name, permit } => {
                    let of = name.clone();
                    let handle = self.tasks.spawn(async move {
                        let result = bounded(limit, team.advance(&of, &permit)).await;
                        Ended::Step { permit, result }
                    });
                    (name, handle)
                }
                Start::Connect { team: name } => {
                    let of = name.clone();
                    let reconnect = self.reconnect.clone();
                    let handle = self.tasks.spawn(async move {
                        let capability = reconnect.map_or(Ok(None), |make| make(&of.owner));
                        let result = match capability {
                            Ok(Some(runs)) => bounded(limit, team.connect(&of, runs)).await.map(|()| true),
                            Ok(None) => Ok(false),
                            Err(error) => Err(users_unavailable(&error)),
                        };
                        Ended::Connect { result }
                    });
                    (name, handle)
                }
            };
            self.purposes.insert(handle.id(), Purpose::Team(name));
        }
    }

    fn task_ended(&mut self, done: Result<(Id, Ended), JoinError>) {
        let now = Instant::now();
        let (id, outcome) = match done {
            Ok((id, ended)) => (id, Ok(ended)),
            Err(e) => (e.id(), Err(e)),
        };
        let Some(purpose) = self.purposes.remove(&id) else { return };
        match (purpose, outcome) {
            (Purpose::Plan { took, .. }, Ok(Ended::Plan { result: Ok(plan) })) => self.state.planned(plan, &took, now),
            (Purpose::Plan { took, sweep }, Ok(Ended::Plan { result: Err(e) })) => {
                tracing::warn!(code = code(&e), error = %e, "planning failed and is tried again");
                self.state.plan_failed(took, sweep, now);
            }
            (Purpose::Plan { took, sweep }, _) => {
                tracing::error!(code = "worker_panicked", "planning broke down and is tried again");
                self.state.plan_failed(took, sweep, now);
            }
            (Purpose::Team(team), Ok(Ended::Step { permit, result: Ok(changed) })) => {
                self.state.step_ended(&team, permit, changed);
            }
            (Purpose::Team(team), Ok(Ended::Connect { result: Ok(connected) })) => {
                self.state.connect_ended(&team, connected, now);
            }
            (Purpose::Team(team), Ok(Ended::Step { result: Err(e), .. })) => {
                let pause = self.state.step_failed(&team, now);
                tracing::warn!(code = code(&e), team = %team.team, error = %e, retry_in = ?pause, "a step of a team failed");
            }
            (Purpose::Team(team), Ok(Ended::Connect { result: Err(e) })) => {
                let pause = self.state.connect_ended(&team, false, now);
                tracing::warn!(code = code(&e), team = %team.team, error = %e, retry_in = ?pause, "a team could not be connected");
            }
            (Purpose::Team(team), _) => {
                let pause = self.state.step_failed(&team, now);
                tracing::error!(code = "worker_panicked", team = %team.team, retry_in = ?pause, "a step of a team broke down");
            }
        }
    }
}

/// A call that ends in any case.
async fn bounded<T>(limit: Duration, call: impl Future<Output = Result<T, CallError>>) -> Result<T, CallError> {
    tokio::time::timeout(limit, call).await.unwrap_or_else(|_| {
        Err(CallError::Fault { code: FaultCode::TimedOut, message: "the step took too long and was given up".into() })
    })
}

fn users_unavailable(error: &anyhow::Error) -> CallError {
    CallError::Refused(Refusal {
        kind: ErrorKind::Unavailable,
        code: "users_unavailable".into(),
        message: format!("the owner cannot be looked up now: {error:#}"),
        field: None,
        detail: None,
    })
}

fn code(error: &CallError) -> &str {
    match error {
        CallError::Refused(refusal) => &refusal.code,
        CallError::Fault { code, .. } => code.as_str(),
    }
}
