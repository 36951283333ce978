//! The calls of the capability. Each decides and writes in one transaction,
//! and only then tells a run's task.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::live::Begin;
use super::outcome::Place;
use super::{BuiltinAgents, direct, ids, outcome, state};
use crate::agents::runs::{
    AgentRuns, Cancellation, Description, Input, InterruptAnswer, Marker, Run, RunError, ThreadState,
};
use crate::storage::tables::agents::{AgentRows, MessageRow, Role, RunRow, RunStatus, Thread};
use crate::storage::tables::{Rows, outcome_unknown};

const MAX_ID: usize = 256;
const MAX_KEY: usize = 512;
const MAX_TITLE: usize = 200;
/// Bytes of a human message.
const MAX_TEXT: usize = 1024 * 1024;
/// Bytes of a person's note on an approval.
const MAX_VALUE: usize = 16 * 1024;
/// How long `cancel` waits for the run to stop before it says "accepted".
const CANCEL_WAIT: Duration = Duration::from_secs(2);

/// The same for a conversation that never was and for another user's.
pub fn no_thread() -> RunError {
    RunError::NotFound("there is no such conversation".into())
}

fn no_run() -> RunError {
    RunError::NotFound("there is no such run in this conversation".into())
}

fn read_failed(e: anyhow::Error) -> RunError {
    tracing::error!("cannot read the agents' tables: {e:#}");
    RunError::Unavailable("the database cannot be read now".into())
}

/// A write may have happened only where the database says so; then the key
/// tells. Any other failure has undone it.
fn write_failed(e: anyhow::Error) -> RunError {
    tracing::error!("cannot write the agents' tables: {e:#}");
    if outcome_unknown(&e) {
        RunError::Other("the database did not confirm the write; it may or may not have happened".into())
    } else {
        RunError::Unavailable("the database cannot be written now".into())
    }
}

/// Runs a command to its end, also when its caller goes away meanwhile, since a
/// call is given up after a time and its write is not: what a commit begins or
/// stops must be begun or stopped.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, RunError>> + Send + 'static,
) -> Result<T, RunError> {
    tokio::spawn(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a command of the agents broke down");
        Err(RunError::Other("the host failed in this call; it may or may not have happened".into()))
    })
}

fn bounded(what: &str, text: &str, max: usize) -> Result<(), RunError> {
    if text.is_empty() || text.len() > max {
        return Err(RunError::Rejected(format!("{what} must have 1 to {max} bytes")));
    }
    Ok(())
}

/// The capability of one user.
pub struct UserRuns {
    agents: Arc<BuiltinAgents>,
    user: String,
}

impl UserRuns {
    pub fn new(agents: Arc<BuiltinAgents>, user: &str) -> Self {
        Self { agents, user: user.to_owned() }
    }
}

/// What a commit of `start` or `resume` came to.
struct Admitted {
    run: RunRow,
    /// The run needs a task.
    spawn: bool,
}

/// Looks up a key, before any other check.
fn known(
    rows: &dyn AgentRows,
    thread: i64,
    key: &str,
    digest: &str,
) -> anyhow::Result<Result<Option<RunRow>, RunError>> {
    let Some((stored, run)) = rows.key(thread, key)? else { return Ok(Ok(None)) };
    if stored != digest {
        return Ok(Err(RunError::KeyConflict));
    }
    Ok(Ok(rows.run(&run)?))
}

impl BuiltinAgents {
    pub(super) fn check_user(&self, user: &str) -> Result<(), RunError> {
        match self.users.enabled(user) {
            Ok(true) => Ok(()),
            Ok(false) => Err(RunError::Denied("this user is not enabled".into())),
            Err(e) => Err(read_failed(e)),
        }
    }

    /// Whether this user may run this agent now.
    fn check_agent(&self, user: &str, agent: &str) -> Result<(), RunError> {
        match self.agent(agent) {
            Some(a) if a.allows_user(user) => Ok(()),
            _ => Err(RunError::Rejected(format!("there is no agent {agent:?} for this user"))),
        }
    }

    pub(super) fn check_open(&self) -> Result<(), RunError> {
        if self.stopping() { Err(RunError::Unavailable("the host is stopping".into())) } else { Ok(()) }
    }

    pub(super) async fn create_thread(&self, user: &str, id: &str, agent: &str, title: &str) -> Result<(), RunError> {
        self.check_user(user)?;
        self.check_agent(user, agent)?;
        bounded("the conversation's id", id, MAX_ID)?;
        let (user, id, agent) = (user.to_owned(), id.to_owned(), agent.to_owned());
        let title: String = title.chars().take(MAX_TITLE).collect();
        self.tables
            .write(move |rows| {
                Ok(match rows.thread(&user, &id)? {
                    Some(t) if t.agent == agent => Ok(()),
                    Some(_) => Err(RunError::Rejected("this conversation is bound to another agent".into())),
                    None => {
                        rows.insert_thread(&user, &id, &agent, &title)?;
                        Ok(())
                    }
                })
            })
            .await
            .map_err(write_failed)?
    }

    /// Human message, run and key are written at once, before this returns.
    /// `direct`: a person speaks in this conversation by themselves, which
    /// closes a question that is open there.
    pub(super) async fn start(
        self: &Arc<Self>,
        user: &str,
        thread: &str,
        input: &Input,
        key: &str,
        direct: bool,
    ) -> Result<Run, RunError> {
        let answers = serde_json::to_string(&input.answers).unwrap_or_default();
        let digest = start_digest(input, &answers);
        let agent = self.tables.read(|rows| Ok(rows.thread(user, thread)?.map(|t| t.agent))).map_err(read_failed)?;
        let agent = agent.ok_or_else(no_thread)?;
        let checks = self
            .check_user(user)
            .and_then(|()| self.check_open())
            .and_then(|()| self.check_agent(user, &agent))
            .and_then(|()| bounded("the key", key, MAX_KEY))
            .and_then(|()| bounded("the message's id", &input.message_id, MAX_ID))
            .and_then(|()| bounded("the text", &input.text, MAX_TEXT));
        let admission = Admission {
            user: user.to_owned(),
            thread: thread.to_owned(),
            input: input.clone(),
            key: key.to_owned(),
            digest,
            direct: direct.then_some(self.max_direct_runs),
            checks,
        };
        self.admit(move |rows| admission.decide(rows)).await
    }

    /// Commits what makes a run work, and gives it its task.
    async fn admit(
        self: &Arc<Self>,
        decide: impl FnOnce(&dyn Rows) -> anyhow::Result<Result<Admitted, RunError>> + Send + 'static,
    ) -> Result<Run, RunError> {
        let agents = self.clone();
        // Queued at once: `find` answers only for what is queued before it.
        let written = self.tables.queue(decide);
        to_the_end(async move {
            let admitted = written.await.map_err(write_failed)??;
            if admitted.spawn {
                agents.spawn(&admitted.run.id, Begin::Committed);
            }
            Ok(admitted.run.into())
        })
        .await
    }

    pub(super) async fn resume(
        self: &Arc<Self>,
        user: &str,
        thread: &str,
        answers: &[InterruptAnswer],
        key: &str,
    ) -> Result<Run, RunError> {
        let parts: Vec<Value> = answers.iter().map(|a| json!([a.checkpoint, a.id, a.value])).collect();
        let digest = ids::digest("resume", &[&Value::Array(parts).to_string()]);
        let checks = self
            .check_user(user)
            .and_then(|()| self.check_open())
            .and_then(|()| bounded("the key", key, MAX_KEY))
            .and_then(|()| if answers.is_empty() { Err(RunError::Rejected("no answer".into())) } else { Ok(()) });
        let (user, thread_id, key, answers) = (user.to_owned(), thread.to_owned(), key.to_owned(), answers.to_vec());
        let decide = move |rows: &dyn Rows| {
            let Some(thread) = rows.thread(&user, &thread_id)? else { return Ok(Err(no_thread())) };
            match known(rows, thread.key, &key, &digest)? {
                Err(e) => return Ok(Err(e)),
                Ok(Some(run)) => return Ok(Ok(Admitted { run, spawn: false })),
                Ok(None) => {}
            }
            if let Err(e) = checks {
                return Ok(Err(e));
            }
            decide_answers(rows, &thread, &answers, &key, &digest)
        };
        self.admit(decide).await
    }

    async fn cancel(self: &Arc<Self>, user: &str, thread: &str, run: &str) -> Result<Cancellation, RunError> {
        self.check_user(user)?;
        let (agents, thread, run) = (self.clone(), thread.to_owned(), run.to_owned());
        let (owner, of, id) = (user.to_owned(), thread.clone(), run.clone());
        let user = owner.clone();
        let written = self.tables.queue(move |rows| decide_cancel(rows, &user, &of, &id));
        to_the_end(async move {
            let cancelled = written.await.map_err(write_failed)??;
            match cancelled {
                Cancelled::Before => return Ok(Cancellation::Stopped),
                Cancelled::Now => {
                    agents.announce(&Place { owner, thread }, &run);
                    return Ok(Cancellation::Stopped);
                }
                Cancelled::ByItsTask => {}
            }
            if let Some(mut done) = agents.tell_cancelled(&run) {
                let _ = tokio::time::timeout(CANCEL_WAIT, done.changed()).await;
            }
            let ended =
                agents.tables.read(|rows| Ok(rows.run(&run)?.is_none_or(|r| r.ended()))).map_err(read_failed)?;
            Ok(if ended { Cancellation::Stopped } else { Cancellation::Accepted })
        })
        .await
    }
}

/// What a cancelled run comes to.
enum Cancelled {
    /// It had ended before.
    Before,
    /// It waited for a person: it has ended with this commit, and what it asked
    /// is closed.
    Now,
    /// Its task ends it.
    ByItsTask,
}

fn decide_cancel(
    rows: &dyn AgentRows,
    user: &str,
    thread: &str,
    run: &str,
) -> anyhow::Result<Result<Cancelled, RunError>> {
    let Some(thread) = rows.thread(user, thread)? else { return Ok(Err(no_thread())) };
    let Some(run) = rows.run(run)?.filter(|r| r.thread == thread.key) else {
        return Ok(Err(no_run()));
    };
    if run.ended() {
        return Ok(Ok(Cancelled::Before));
    }
    rows.set_cancelled(&run.id)?;
    if run.status == RunStatus::Interrupted {
        outcome::end(rows, &run, RunStatus::Cancelled, None)?;
        return Ok(Ok(Cancelled::Now));
    }
    Ok(Ok(Cancelled::ByItsTask))
}

/// A `start` to decide.
struct Admission {
    user: String,
    thread: String,
    input: Input,
    key: String,
    digest: String,
    /// A person speaks: how many such runs the user may have at work.
    direct: Option<u32>,
    /// What was checked outside the transaction; counts after the key.
    checks: Result<(), RunError>,
}

impl Admission {
    fn decide(self, rows: &dyn AgentRows) -> anyhow::Result<Result<Admitted, RunError>> {
        let Some(thread) = rows.thread(&self.user, &self.thread)? else { return Ok(Err(no_thread())) };
        match known(rows, thread.key, &self.key, &self.digest)? {
            Err(e) => return Ok(Err(e)),
            Ok(Some(run)) => return Ok(Ok(Admitted { run, spawn: false })),
            Ok(None) => {}
        }
        if let Err(e) = self.checks {
            return Ok(Err(e));
        }
        if let Some(run) = &thread.active_run {
            return Ok(Err(RunError::Busy(busy(rows, run)?)));
        }
        if rows.message(thread.key, &self.input.message_id)?.is_some() {
            return Ok(Err(RunError::Rejected("a message with this id exists".into())));
        }
        if let Some(answers) = &self.input.answers {
            let open = rows.open_question(&thread)?;
            if open.is_none_or(|q| q.id != *answers) {
                return Ok(Err(RunError::Rejected("this question is not open any more".into())));
            }
        }
        if let Some(most) = self.direct
            && let Err(e) = direct::room(rows, &self.user, most)?
        {
            return Ok(Err(e));
        }
        if self.input.answers.is_some() || self.direct.is_some() {
            rows.set_open_question(thread.key, None)?;
        }
        let id = ids::id("run", &[&self.user, &self.thread, &self.key]);
        let number = rows.next_number(thread.key)?;
        let message = MessageRow {
            number,
            id: self.input.message_id,
            role: Role::Human,
            text: self.input.text,
            run: id.clone(),
            answers: self.input.answers,
            provenance: Some(self.input.provenance),
            ..MessageRow::default()
        };
        rows.append(thread.key, &message)?;
        rows.insert_run(&id, thread.key, &self.key, number)?;
        rows.insert_key(thread.key, &self.key, &self.digest, &id)?;
        let run = rows.run(&id)?.ok_or_else(|| anyhow::anyhow!("the run is not there after its insert"))?;
        Ok(Ok(Admitted { run, spawn: true }))
    }
}

/// What a conversation is busy with, as a clause.
fn busy(rows: &dyn AgentRows, run: &str) -> anyhow::Result<String> {
    let mut tools: Vec<String> = rows.open_approvals(run)?.into_iter().map(|approval| approval.tool).collect();
    tools.dedup();
    Ok(match (rows.run(run)?.map(|run| run.status), tools.is_empty()) {
        (Some(RunStatus::Interrupted), false) => format!("it waits for your approval of {}", tools.join(", ")),
        _ => "its agent is still working".into(),
    })
}

/// Reads `{"approved": true | false, "note"?: text}`.
pub fn parse_decision(value: &str) -> Result<(bool, Option<String>), RunError> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Decision {
        approved: bool,
        #[serde(default)]
        note: Option<String>,
    }
    let legal =
        || RunError::Rejected("an approval is answered with {\"approved\": true or false, \"note\"?: text}".into());
    if value.len() > MAX_VALUE {
        return Err(legal());
    }
    let decision: Decision = serde_json::from_str(value).map_err(|_| legal())?;
    Ok((decision.approved, decision.note))
}

/// All answers, or none and the reason.
fn decide_answers(
    rows: &dyn AgentRows,
    thread: &Thread,
    answers: &[InterruptAnswer],
    key: &str,
    digest: &str,
) -> anyhow::Result<Result<Admitted, RunError>> {
    let mut run = None;
    for answer in answers {
        if let Err(e) = parse_decision(&answer.value) {
            return Ok(Err(e));
        }
        let approval = rows.approval(&answer.id)?;
        let owner = match &approval {
            Some(a) => rows.run(&a.run)?.filter(|r| r.thread == thread.key),
            None => None,
        };
        let (Some(approval), Some(owner)) = (approval, owner) else {
            return Ok(Err(RunError::Rejected("there is no such interrupt in this conversation".into())));
        };
        if answer.checkpoint.as_ref().is_some_and(|at| *at != approval.checkpoint) {
            return Ok(Err(RunError::Rejected("the interrupt belongs to another checkpoint".into())));
        }
        if approval.decision.is_some() {
            return Ok(Err(RunError::Rejected(
                "this approval has been settled already; the first answer counts".into(),
            )));
        }
        if owner.ended() || owner.cancel {
            return Ok(Err(RunError::Rejected("the run that asked for this approval has ended".into())));
        }
        run = Some(owner);
    }
    for (i, answer) in answers.iter().enumerate() {
        if answers[..i].iter().any(|a| a.id == answer.id) {
            return Ok(Err(RunError::Rejected("the same interrupt is answered twice".into())));
        }
    }
    let Some(mut run) = run else { return Ok(Err(RunError::Rejected("no answer".into()))) };
    for answer in answers {
        rows.decide(&answer.id, &answer.value)?;
    }
    rows.insert_key(thread.key, key, digest, &run.id)?;
    let spawn = run.status == RunStatus::Interrupted;
    if spawn {
        rows.set_going(&run.id)?;
        run.status = RunStatus::Running;
    }
    Ok(Ok(Admitted { run, spawn }))
}

/// The digest of an input's bytes. Without background it is that of the format
/// before there was any.
fn start_digest(input: &Input, answers: &str) -> String {
    let parts = [input.message_id.as_str(), &input.text, answers, &input.provenance, &input.context];
    ids::digest("start", if input.context.is_empty() { &parts[..4] } else { &parts })
}

#[async_trait]
impl AgentRuns for UserRuns {
    async fn agents(&self) -> Result<Vec<String>, RunError> {
        self.agents.check_user(&self.user)?;
        Ok(self.agents.catalogue(&self.user).into_iter().map(|card| card.name).collect())
    }

    async fn create_thread(&self, id: &str, agent: &str, title: &str, _group: &str) -> Result<(), RunError> {
        self.agents.create_thread(&self.user, id, agent, title).await
    }

    async fn describe(&self, thread: &str) -> Result<Description, RunError> {
        self.agents.check_user(&self.user)?;
        let found = self.agents.tables.read(|rows| rows.thread(&self.user, thread));
        found.map_err(read_failed)?.ok_or_else(no_thread)?;
        Ok(Description {
            tool_profile: "full".into(),
            durable_keys: true,
            asks: true,
            team_tools: true,
            ..Description::default()
        })
    }

    async fn start(&self, thread: &str, input: &Input, key: &str) -> Result<Run, RunError> {
        self.agents.start(&self.user, thread, input, key, false).await
    }

    async fn resume(&self, thread: &str, answers: &[InterruptAnswer], key: &str) -> Result<Run, RunError> {
        self.agents.resume(&self.user, thread, answers, key).await
    }

    /// Keys are durable here, so `NotFound` says that the key was never
    /// admitted; an attempt that is still being written is decided first.
    async fn find(&self, thread: &str, key: &str) -> Result<Run, RunError> {
        self.agents.check_user(&self.user)?;
        let (user, thread_id, key) = (self.user.clone(), thread.to_owned(), key.to_owned());
        // By the writer, so that it waits behind every write before it.
        let found = self.agents.tables.write(move |rows| {
            let Some(thread) = rows.thread(&user, &thread_id)? else { return Ok(Err(no_thread())) };
            let Some((_, run)) = rows.key(thread.key, &key)? else { return Ok(Err(no_run())) };
            Ok(rows.run(&run)?.ok_or_else(no_run))
        });
        Ok(found.await.map_err(read_failed)??.into())
    }

    async fn get(&self, thread: &str, run: &str) -> Result<Run, RunError> {
        self.agents.check_user(&self.user)?;
        let found = self.agents.tables.read(|rows| {
            let Some(thread) = rows.thread(&self.user, thread)? else { return Ok(Err(no_thread())) };
            Ok(rows.run(run)?.filter(|r| r.thread == thread.key).ok_or_else(no_run))
        });
        Ok(found.map_err(read_failed)??.into())
    }

    async fn state(&self, thread: &str, since: Option<&Marker>, after: Option<&str>) -> Result<ThreadState, RunError> {
        self.agents.check_user(&self.user)?;
        let found = self.agents.tables.read(|rows| match rows.thread(&self.user, thread)? {
            Some(thread) => Ok(Some(state::read(rows, &thread, since, after)?)),
            None => Ok(None),
        });
        found.map_err(read_failed)?.ok_or_else(no_thread)
    }

    async fn cancel(&self, thread: &str, run: &str) -> Result<Cancellation, RunError> {
        self.agents.cancel(&self.user, thread, run).await
    }
}
