//! One bounded step of one team: collect what ended, then admit what the
//! permit allows. Nothing here waits; whatever is repeated is the same.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::admit::Ready;
use super::finish::{Ending, finish};
use super::observe::{self, Attempt, Found, Seen};
use super::setback::{self, Wanted};
use super::timed::{Cut, Timed};
use super::{admit, cut_short, input};
use crate::app::commands::connect;
use crate::app::shared::heads;
use crate::app::topic;
use crate::domain::error::{Error, Result};
use crate::domain::job::{Hold, Phase, Wait};
use crate::domain::limits;
use crate::domain::machine::{Event, step};
use crate::host::{Host, Runs};
use crate::store::records::{Frozen, Job};
use crate::store::{TeamTx, commit_lock, keys, read, readable, step_lock, transact};

/// What one step may do, as planned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    /// Jobs to ask the host about.
    pub collect: Vec<u32>,
    /// Jobs that may try to start, in order.
    pub admit: Vec<Admission>,
    /// The round of owners as planned.
    pub round: Vec<String>,
    /// No slot is left once everything planned is admitted.
    pub full: bool,
    /// Teams (owner, id) for whose turn nobody waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resting: Vec<(String, String)>,
}

/// A job that may try to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    pub job: u32,
    /// Its conversation.
    pub thread: String,
    /// Since when it may try, as the plan read it: a job that has been tried
    /// since then is planned anew.
    pub due: u64,
    /// The slot that was planned for it.
    pub slot: u32,
    /// Owners that were planned before this one, each with a slot of its own in
    /// the same plan: they may stand before its owner in the round.
    pub after: Vec<(String, u32)>,
}

/// True: something changed.
pub fn advance(host: &dyn Host, owner: &str, team: &str, permit: &str) -> Result<bool> {
    let permit: Permit = serde_json::from_str(permit)
        .map_err(|_| Error::invalid("bad_permit", "permit", "This permit was not made by plan."))?;
    let held = host.lock(&step_lock(owner, team), 0);
    let Some(runs) = host.lookup(owner, team) else { return Ok(false) };
    let step = Step { host, owner, team, runs: &*runs, permit: &permit };
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

/// A team's step under way: it holds the team's step lock.
pub struct Step<'a> {
    pub host: &'a dyn Host,
    pub owner: &'a str,
    pub team: &'a str,
    pub runs: &'a dyn Runs,
    pub permit: &'a Permit,
}

impl Step<'_> {
    pub fn lock(&self) -> String {
        commit_lock(self.owner, self.team)
    }

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
            Err(error) if matches!(error.code.as_ref(), "store_contended" | "team_busy") => Ok(false),
            left => left,
        }
    }

    /// Asks the host about one job and stores what it says.
    fn collect(&self, n: u32) -> Result<bool> {
        let timed = Timed::new(self.host, self.runs);
        let step = Step { runs: &timed, ..*self };
        match step.look(n) {
            Ok(Some((seen, again))) => step.conclude(n, seen, timed.cut(), again),
            Ok(None) => Ok(false),
            Err(error) => setback::after(self, n, Wanted::Collect(None), error),
        }
    }

    /// Stores what was seen of a job, or how far the step came. `again`: its
    /// input is sent once more, as a person wants.
    pub fn conclude(&self, n: u32, seen: Seen, cut: Option<Cut>, again: bool) -> Result<bool> {
        match cut {
            None => self.record(n, seen),
            Some(cut) => cut_short::store(self, n, &cut, again)
                .or_else(|error| setback::after(self, n, Wanted::Collect(None), error)),
        }
    }

    /// What the host says of one job, and whether a person wants its input sent
    /// once more. Nothing: there is nothing to ask.
    fn look(&self, n: u32) -> Result<Option<(Seen, bool)>> {
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
    /// admitted goes back into the queue.
    fn ask_only(&self, job: &Job, frozen: Option<&Frozen>) -> Seen {
        let key = frozen.map_or(job.id.as_str(), |f| &f.key);
        match observe::find(self.runs, job, key) {
            Found::Seen(seen) => seen,
            // A person wants it tried again.
            Found::Unclear if frozen.is_some_and(|f| !f.insist) => Seen::Lost,
            Found::Never | Found::Unclear => Seen::NotNow {
                code: "never_began",
                message: "The earlier plugin's run of it never began; it is started anew.".into(),
                disconnect: false,
            },
        }
    }

    /// A frozen input that may have been sent before. The host is asked for the
    /// key's run first: one that forgot its keys would run the input twice.
    fn send_again(&self, job: &Job, frozen: &Frozen) -> Result<Seen> {
        match observe::find(self.runs, job, &frozen.key) {
            Found::Seen(seen) => Ok(seen),
            // Somebody may have cancelled or settled it while the host was asked.
            Found::Never | Found::Unclear if !self.is_still(job)? => Ok(Seen::Nothing),
            Found::Never => Ok(observe::send(self.runs, job, frozen, Attempt::First)),
            Found::Unclear if frozen.insist => self.insist(job, frozen),
            Found::Unclear => Ok(Seen::Lost),
        }
    }

    /// A person wants it sent once more. What the earlier attempt may have left
    /// in the conversation, a run or a question, is not talked over.
    pub fn insist(&self, job: &Job, frozen: &Frozen) -> Result<Seen> {
        match admit::ready(&self.runs.state(&job.thread, None), job) {
            Ready::Hold { code, message, disconnect } => Ok(Seen::Later { code, message, disconnect }),
            Ready::Yes if self.insist_once(job)? => Ok(observe::send(self.runs, job, frozen, Attempt::Again)),
            // It may well be this answer that was admitted before.
            Ready::Yes | Ready::AnsweredElsewhere | Ready::Never(_) => Ok(Seen::Lost),
        }
    }

    fn is_still(&self, job: &Job) -> Result<bool> {
        read(self.host, |db| {
            let now = TeamTx::load(db, self.owner, self.team)?.planned_job(job.n)?;
            Ok(now.is_some_and(|now| now.id == job.id && now.phase == job.phase))
        })
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

    /// Stores an observation: the job is read again, since a cancel may have
    /// come in while the host was asked, and what does not fit any more is
    /// dropped.
    fn record(&self, n: u32, seen: Seen) -> Result<bool> {
        let stored = if seen == Seen::Nothing { self.clear_hold(n) } else { self.store(n, &seen) };
        stored.or_else(|error| setback::after(self, n, Wanted::Collect(Some(&seen)), error))
    }

    fn store(&self, n: u32, seen: &Seen) -> Result<bool> {
        let now = self.host.now_ms();
        let revision = transact(self.host, &self.lock(), |db| {
            let team = TeamTx::load(db, self.owner, self.team)?;
            let job = team.job(n)?;
            if !apply(&team, job, seen, now)? {
                return Ok(None);
            }
            team.finish().map(Some)
        })?;
        if let Some(revision) = revision {
            self.host.publish(self.owner, &topic(self.team), revision);
        }
        match seen {
            Seen::NotNow { code, message, disconnect: true } | Seen::Later { code, message, disconnect: true } => {
                connect::disconnected(self.host, self.owner, self.team, &observe::as_disconnect(code, message))?;
            }
            _ => {}
        }
        Ok(revision.is_some())
    }

    /// The host answers again: whatever held the job is over.
    fn clear_hold(&self, n: u32) -> Result<bool> {
        let held = read(self.host, |db| {
            let team = TeamTx::load(db, self.owner, self.team)?;
            team.has_due_time(&team.job(n)?)
        })?;
        if !held {
            return Ok(false);
        }
        let now = self.host.now_ms();
        let revision = transact(self.host, &self.lock(), |db| {
            let team = TeamTx::load(db, self.owner, self.team)?;
            let mut job = team.job(n)?;
            if job.phase.finished() {
                return Ok(None);
            }
            job.hold = None;
            team.save_job(&mut job, now)?;
            team.finish().map(Some)
        })?;
        if let Some(revision) = revision {
            self.host.publish(self.owner, &topic(self.team), revision);
        }
        Ok(false)
    }
}

/// Frozen by the earlier plugin: it holds no slot of this deployment.
fn taken_over(job: &Job) -> bool {
    job.slot.is_none() && matches!(job.phase, Phase::Starting)
}

/// Applies an observation to a job inside a transaction. False: it came late
/// and changed nothing.
pub fn apply(team: &TeamTx, mut job: Job, seen: &Seen, now: u64) -> Result<bool> {
    let before = job.phase.clone();
    let waiting = matches!((&before, seen), (Phase::Waiting { .. }, Seen::Later { .. } | Seen::Ended { .. }));
    if !before.holds_slot() && !waiting {
        return Ok(false);
    }
    let seen = match seen {
        Seen::Overtaken(seen) => {
            job.note = Some(OVERTAKEN.into());
            seen
        }
        seen => seen,
    };
    if seen.run().is_some() {
        team.head.borrow_mut().disconnects = 0;
    }
    if let Some(run) = seen.run().filter(|run| before.run() != Some(run)) {
        team.db.put(&keys::ran(team.owner, &job.thread, run), &(&team.team.id, job.n))?;
    }
    if let Seen::Later { code, message, .. } = seen {
        job.hold = Some(hold(&job, code, message, now));
        team.save_job(&mut job, now)?;
        return Ok(true);
    }
    let Some((event, ending)) = event(team, &mut job, seen)? else { return Ok(false) };
    let Some(phase) = step(&job.phase, event) else { return Ok(false) };
    job.phase = phase;
    job.hold = match seen {
        Seen::NotNow { code, message, .. } => Some(hold(&job, code, message, now)),
        // Until the next answer, with nothing to look at before.
        Seen::Refused { message } => Some(Hold { next_at: 0, ..hold(&job, "answer_refused", message, now) }),
        // Whether the host names the run later is looked at, ever more seldom.
        Seen::Lost => Some(hold(&job, "outcome_unknown", UNKNOWN, now)),
        _ => None,
    };
    match seen {
        Seen::NotNow { .. } if job.phase == Phase::Queued => {
            // The next input is made anew, and one key carries one input only.
            job.refused += 1;
        }
        Seen::Refused { .. } => {
            // Its request id stays with it: one key carries one answer only.
            job.answer = None;
            team.db.delete(&team.keys.answer(job.n))?;
            team.db.delete(&team.keys.input(job.n))?;
        }
        _ => {}
    }
    if let Some(run) = seen.run() {
        // The run of the newest message; an answered interrupt continues in another.
        if job.message_run.is_none() {
            job.message_run = Some(run.into());
        }
        // The notices that its input carried have arrived with the run.
        if before.attempt().is_none() {
            drop_notices(team, &job)?;
        }
    }
    if job.phase.finished() {
        let ending = ending.unwrap_or(Ending::Cancelled { note: None });
        finish(team, seen.run().or(before.run()), job, ending, now)?;
        return Ok(true);
    }
    team.save_job(&mut job, now)?;
    Ok(true)
}

/// What an observation means for a job, and how the job ends if it does.
fn event(team: &TeamTx, job: &mut Job, seen: &Seen) -> Result<Option<(Event, Option<Ending>)>> {
    let ends = matches!(seen, Seen::Ended { .. } | Seen::Asked { .. } | Seen::Stopped { .. } | Seen::Never(_));
    if job.phase.cancelling() && ends {
        return Ok(Some(match seen {
            // Seen before the cancel came in: the interrupts are still open.
            Seen::Asked { run, wait: Wait::Interrupts { .. } } => (Event::Started { run: run.clone() }, None),
            _ => (Event::Stopped, None),
        }));
    }
    let event = match seen {
        Seen::Nothing | Seen::Later { .. } | Seen::Stopped { .. } | Seen::Overtaken(_) => return Ok(None),
        Seen::Started { run } => Event::Started { run: run.clone() },
        Seen::Ended { run, ending } => {
            let event = match ending {
                Ending::Completed { .. } => Event::Completed { run: run.clone() },
                _ => Event::Failed,
            };
            return Ok(Some((event, Some(ending.clone()))));
        }
        Seen::Asked { run, wait } => Event::Asked { run: run.clone(), wait: wait.clone() },
        Seen::NotNow { .. } => Event::NotAdmitted,
        Seen::Never(failure) => return Ok(Some((Event::Failed, Some(Ending::Failed(failure.clone()))))),
        Seen::Refused { .. } => Event::AnswerRefused,
        Seen::Lost => Event::Lost { key: run_key(team, job)?, answer: job.answer.clone() },
        Seen::CancelAccepted { run } => {
            // The run may have been found only now.
            if let Some(phase) = step(&job.phase, Event::Started { run: run.clone() }) {
                job.phase = phase;
            }
            Event::CancelAccepted
        }
    };
    Ok(Some((event, None)))
}

const OVERTAKEN: &str = "The question was answered in the conversation itself before the answer given here arrived; that \
     first answer counts.";

const UNKNOWN: &str =
    "The outcome of its run is unknown. Look at the conversation, then settle the job as failed or try again.";

/// The key of a job's newest attempt.
pub fn run_key(team: &TeamTx, job: &Job) -> Result<String> {
    Ok(match &job.phase {
        Phase::Answered { answer, .. } | Phase::Resuming { answer, .. } => answer.key.clone(),
        Phase::Cancelling { key, .. } | Phase::Unknown { key, .. } => key.clone(),
        // What runs may have begun with an answer: the frozen input knows.
        _ => match readable(team.db.get::<Frozen>(&team.keys.input(job.n)))?.flatten() {
            Some(frozen) => frozen.key,
            None => input::next_key(team, job),
        },
    })
}

/// The next hold: a longer pause after each refusal of the same kind in a row.
pub fn hold(job: &Job, code: &str, message: &str, now: u64) -> Hold {
    let tries = job.tries(code);
    Hold { code: code.into(), message: message.into(), tries, next_at: now.saturating_add(limits::pause_ms(tries)) }
}

/// The notices that an input carried have arrived with its run.
fn drop_notices(team: &TeamTx, job: &Job) -> Result<()> {
    if let Some(frozen) = readable(team.db.get::<Frozen>(&team.keys.input(job.n)))?.flatten() {
        for n in frozen.notices {
            team.db.delete(&team.keys.notice(&job.thread, n))?;
        }
    }
    Ok(())
}

/// The line for the log of a step that failed.
pub fn failed_step(team: &str, error: &Error) -> String {
    format!("a step of team {team} failed: {}", error.code)
}
