//! What the host says of one job, and what that means for it.

use crate::app::shared::turn::Turn;
use crate::app::shared::turn::read_turn;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::finish::Ending;
use crate::domain::error::Error;
use crate::domain::hold_code::HoldCode;
use crate::domain::job::{Answer, Answered, Failure, OpenInterrupt, Phase, Wait};
use crate::domain::{asked, limits, text};
use crate::host::{Cancellation, Input, Interrupt, InterruptAnswer, Run, RunError, RunStatus, Runs, ThreadState};
use crate::store::records::{Frozen, FrozenInput, Job};

/// One observation of the host.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// At work, as before.
    Nothing,
    /// The run exists and has not ended.
    Started {
        run: String,
    },
    Ended {
        run: String,
        ending: Ending,
    },
    Asked {
        run: String,
        wait: Wait,
    },
    /// Nothing was admitted: back to the queue.
    NotNow {
        code: HoldCode,
        message: String,
        disconnect: bool,
    },
    /// Nothing was admitted, and it never can be.
    Never(Failure),
    /// The host refused the answer, and what it answers is still open.
    Refused {
        message: String,
    },
    /// The host refused the answer, since another one came first; this is what
    /// became of the job by that.
    Overtaken(Box<Observation>),
    /// The host could not be asked; whatever was true still is.
    Later {
        code: HoldCode,
        message: String,
        disconnect: bool,
    },
    /// The outcome is unknown, and the host cannot tell.
    Lost,
    /// The host accepted a cancel.
    CancelAccepted {
        run: String,
    },
    /// Nothing runs any more (or ever did), after a cancel.
    Stopped {
        run: Option<String>,
    },
}

impl Observation {
    /// The run that the host named.
    pub fn run(&self) -> Option<&str> {
        match self {
            Observation::Started { run }
            | Observation::Ended { run, .. }
            | Observation::Asked { run, .. }
            | Observation::CancelAccepted { run }
            | Observation::Stopped { run: Some(run) } => Some(run),
            Observation::Overtaken(seen) => seen.run(),
            _ => None,
        }
    }
}

/// The first attempt of a frozen input, or the first that can have been
/// admitted: a refusal says that nothing was. At any other one an earlier
/// attempt may have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    First,
    Again,
}

/// Sends a frozen input.
pub fn send(runs: &dyn Runs, job: &Job, frozen: &Frozen, attempt: Attempt) -> Observation {
    let asked = match &frozen.input {
        FrozenInput::Message { id, text, answers, provenance } => {
            let input = Input {
                message_id: id.clone(),
                text: text.clone(),
                context: String::new(),
                answers: answers.clone(),
                provenance: provenance.clone(),
            };
            runs.start(&job.thread, &input, &frozen.key)
        }
        FrozenInput::Interrupts { answers } => {
            let answers: Vec<InterruptAnswer> = answers
                .iter()
                .map(|a| InterruptAnswer { checkpoint: a.checkpoint.clone(), id: a.id.clone(), value: a.value.clone() })
                .collect();
            runs.resume(&job.thread, &answers, &frozen.key)
        }
    };
    match asked {
        Ok(run) => look(runs, job, &run),
        Err(error) => refused(runs, job, &frozen.key, error, attempt),
    }
}

fn refused(runs: &dyn Runs, job: &Job, key: &str, error: RunError, attempt: Attempt) -> Observation {
    match error {
        RunError::TimedOut => {
            return later(
                HoldCode::HostTimeout,
                "The host did not answer in time; it is asked again with the same key.",
                often(job, HoldCode::HostTimeout),
            );
        }
        RunError::Other(_) if attempt == Attempt::First => {
            return later(
                HoldCode::HostUnclear,
                &format!("The host's answer was unclear ({}); it is asked again with the same key.", say(&error)),
                false,
            );
        }
        _ => {}
    }
    if attempt == Attempt::Again && error != RunError::KeyConflict {
        // An earlier attempt may have been admitted. Only the host can say that it was not.
        match find(runs, job, key) {
            KeyLookup::Known(seen) => return seen,
            KeyLookup::Never => {}
            KeyLookup::Unclear => return Observation::Lost,
        }
    }
    match (&job.phase, &error) {
        (Phase::Resuming { .. }, RunError::Rejected(_) | RunError::Busy(_)) => answer_refused(runs, job, &error),
        _ => not_admitted(job, &error),
    }
}

/// A refused answer is looked up before it is told. Still open: it can be
/// answered again. Else see [`answered_elsewhere`].
fn answer_refused(runs: &dyn Runs, job: &Job, error: &RunError) -> Observation {
    let Some(answer) = &job.answer else { return not_admitted(job, error) };
    match runs.state(&job.thread, None, None) {
        Ok(state) if !still_open(&answer.wait, &state) => answered_elsewhere(runs, job, &state, &say(error)),
        Ok(_) if matches!(error, RunError::Rejected(_)) => {
            Observation::Refused { message: format!("The host refused the last answer: {}. Answer again.", say(error)) }
        }
        Ok(_) => not_admitted(job, error),
        Err(RunError::NotFound(why)) => withdrawn(&why),
        // Asked again with the same key, and looked up again.
        Err(error) => cannot_ask(job, &error),
    }
}

/// What a job's answer is for is not open any more. Answered by somebody else:
/// the job follows that answer's run. If not, the answer that the job waits for
/// cannot come.
pub fn answered_elsewhere(runs: &dyn Runs, job: &Job, state: &ThreadState, why: &str) -> Observation {
    // A clarification is answered by a message of its own, which begins another turn.
    let Some(Answer { asker: Some(asker), wait: Wait::Interrupts { .. }, .. }) = &job.answer else {
        return withdrawn(why);
    };
    let follows = match &state.active_run {
        Some(run) => Observation::Started { run: run.clone() },
        None => match runs.get(&job.thread, asker) {
            Ok(run) if run.status == RunStatus::Cancelled => return withdrawn(why),
            Ok(run) if run.status == RunStatus::Interrupted && state.interrupts.is_empty() => return withdrawn(why),
            Ok(run) => look(runs, job, &run),
            Err(RunError::NotFound(why)) => return withdrawn(&why),
            Err(error) => return cannot_ask(job, &error),
        },
    };
    match follows {
        // Nothing of that answer is known yet.
        Observation::Later { .. } | Observation::Nothing => follows,
        follows => Observation::Overtaken(Box::new(follows)),
    }
}

fn withdrawn(why: &str) -> Observation {
    Observation::Never(Failure {
        code: "question_withdrawn".into(),
        message: format!(
            "What was asked is not open any more, so the answer was not used: {why}. Inspect the conversation."
        ),
    })
}

/// What a refusal means when nothing was admitted.
pub fn not_admitted(job: &Job, error: &RunError) -> Observation {
    let member = job.member.is_some();
    let why = say(error);
    match error {
        RunError::Busy(_) => {
            not_now(HoldCode::ConversationBusy, format!("The conversation is busy in the host: {why}."), false)
        }
        RunError::Denied(_) if member => {
            not_now(HoldCode::Denied, format!("The host denies access: {why}. Resolve it, then reconnect."), true)
        }
        RunError::Denied(_) | RunError::NotFound(_) if !member => {
            if job.tries(HoldCode::ConversationDenied.as_str()) >= limits::RECEIPT_TRIES {
                return Observation::Never(Failure {
                    code: "conversation_denied".into(),
                    message: format!("The conversation that asked cannot be reached: {why}."),
                });
            }
            not_now(
                HoldCode::ConversationDenied,
                format!("The conversation that asked cannot be reached: {why}."),
                false,
            )
        }
        RunError::NotFound(_) => not_now(
            HoldCode::ConversationMissing,
            format!("The member's conversation is missing: {why}. Reconnect makes it again."),
            true,
        ),
        RunError::Rejected(_) => Observation::Never(Failure {
            code: "rejected".into(),
            message: format!("The host rejects this run: {why}."),
        }),
        RunError::KeyConflict => Observation::Never(Failure {
            code: "key_conflict".into(),
            message: "The host knows this job's key with another input. Inspect the conversation.".into(),
        }),
        _ => not_now(
            HoldCode::HostUnavailable,
            format!("The host cannot start it now: {why}."),
            often(job, HoldCode::HostUnavailable),
        ),
    }
}

/// Whether this refusal, of a kind that has come again and again, disconnects
/// the team.
fn often(job: &Job, code: HoldCode) -> bool {
    job.tries(code.as_str()) >= limits::FAILURES_TO_DISCONNECT
}

/// What the host knows of a key that may have been used.
pub enum KeyLookup {
    /// The run that it started, or that the host cannot be asked now.
    Known(Observation),
    /// Nothing was or will be admitted under it.
    Never,
    /// The host cannot tell.
    Unclear,
}

/// Asks for the run of a key.
pub fn find(runs: &dyn Runs, job: &Job, key: &str) -> KeyLookup {
    match runs.find(&job.thread, key) {
        Ok(run) => KeyLookup::Known(look(runs, job, &run)),
        Err(RunError::NotFound(_)) => KeyLookup::Never,
        Err(RunError::Other(_)) => KeyLookup::Unclear,
        Err(RunError::TimedOut) => KeyLookup::Known(later(
            HoldCode::HostTimeout,
            "The host did not answer in time; it is asked again with the same key.",
            often(job, HoldCode::HostTimeout),
        )),
        Err(other) => {
            let denied = matches!(other, RunError::Denied(_)) && job.member.is_some();
            KeyLookup::Known(later(
                HoldCode::HostUnclear,
                &format!("Whether the run exists is not known yet ({}).", say(&other)),
                denied || often(job, HoldCode::HostUnclear),
            ))
        }
    }
}

/// Asks the host about a job that is under way, or that waits for an answer.
pub fn ask(runs: &dyn Runs, job: &Job) -> Observation {
    match &job.phase {
        Phase::Waiting { run, wait } => match runs.state(&job.thread, None, None) {
            Ok(state) if !still_open(wait, &state) => match runs.get(&job.thread, run) {
                // Somebody has ended it in the conversation: no answer can come.
                Ok(found) if found.status == RunStatus::Cancelled => look(runs, job, &found),
                _ => later(HoldCode::ClarificationChanged, CHANGED, false),
            },
            Err(error @ RunError::Denied(_)) => cannot_ask(job, &error),
            // What it waits for is a person; the host may be asked another time.
            _ => Observation::Nothing,
        },
        Phase::Running { run } => match runs.get(&job.thread, run) {
            Ok(found) => look(runs, job, &found),
            Err(RunError::NotFound(_)) => Observation::Lost,
            Err(error) => cannot_ask(job, &error),
        },
        Phase::Cancelling { run: Some(run), accepted, .. } => stop(runs, job, run, *accepted),
        Phase::Cancelling { run: None, key, .. } => match runs.find(&job.thread, key) {
            Ok(found) => stop(runs, job, &found.id, false),
            Err(RunError::NotFound(_)) => withdraw(runs, job),
            Err(RunError::Other(_)) => Observation::Lost,
            Err(error) => cannot_ask(job, &error),
        },
        Phase::Unknown { run, key, cancel, .. } => match runs.find(&job.thread, key) {
            Ok(found) if *cancel => stop(runs, job, &found.id, false),
            Ok(found) => look(runs, job, &found),
            // Never admitted, of a run that was never named: nothing happened. A key
            // of an imported job may have been used at another host.
            Err(RunError::NotFound(_)) if run.is_none() && *cancel => withdraw(runs, job),
            Err(RunError::NotFound(_)) if run.is_none() && job.key.is_none() => not_now(
                HoldCode::NotAdmitted,
                "The host says that nothing was started; it is tried again.".into(),
                false,
            ),
            Err(RunError::Denied(why)) => cannot_ask(job, &RunError::Denied(why)),
            Err(_) => later(
                HoldCode::OutcomeUnknown,
                "The outcome of its run is unknown. Look at the conversation, then settle the job.",
                false,
            ),
        },
        _ => Observation::Nothing,
    }
}

/// A cancelled answer was never sent. The run that asked for it may still be
/// stopped at its interrupts, which nothing else would ever close.
fn withdraw(runs: &dyn Runs, job: &Job) -> Observation {
    match job.answer.as_ref() {
        Some(Answer { asker: Some(asker), wait: Wait::Interrupts { .. }, .. }) => match stop(runs, job, asker, false) {
            // A run that the host does not know waits for nothing.
            Observation::Lost => Observation::Stopped { run: None },
            seen => seen,
        },
        _ => Observation::Stopped { run: None },
    }
}

fn stop(runs: &dyn Runs, job: &Job, run: &str, accepted: bool) -> Observation {
    if accepted {
        match runs.get(&job.thread, run) {
            // It stopped at an interrupt before the cancel took effect.
            Ok(found) if found.status == RunStatus::Interrupted => {}
            Ok(found) if ended(found.status) => return Observation::Stopped { run: Some(run.into()) },
            Ok(_) => return Observation::Nothing,
            Err(RunError::NotFound(_)) => return Observation::Lost,
            Err(error) => return cannot_ask(job, &error),
        }
    }
    match runs.cancel(&job.thread, run) {
        Ok(Cancellation::Stopped) => Observation::Stopped { run: Some(run.into()) },
        Ok(Cancellation::Accepted) if accepted => Observation::Nothing,
        Ok(Cancellation::Accepted) => Observation::CancelAccepted { run: run.into() },
        // Known once and not found any more: that it ended cannot be told.
        Err(RunError::NotFound(_)) => Observation::Lost,
        Err(error) => cannot_ask(job, &error),
    }
}

fn ended(status: RunStatus) -> bool {
    matches!(status, RunStatus::Succeeded | RunStatus::Failed | RunStatus::Cancelled)
}

const CHANGED: &str = "The question was answered or replaced in the conversation itself, so an answer given here would \
     be refused. Inspect the conversation, then cancel this job.";

/// A read or a cancel that the host did not carry out.
fn cannot_ask(job: &Job, error: &RunError) -> Observation {
    let why = say(error);
    if matches!(error, RunError::Denied(_)) {
        return later(
            HoldCode::Denied,
            &format!("The host denies access: {why}. Resolve it, then reconnect."),
            job.member.is_some(),
        );
    }
    let disconnect = often(job, HoldCode::HostUnavailable);
    later(HoldCode::HostUnavailable, &format!("The host cannot be asked now: {why}."), disconnect)
}

/// What a run's status, and where it ended its conversation, mean.
pub fn look(runs: &dyn Runs, job: &Job, run: &Run) -> Observation {
    let failed = |code: &str, message: String| Observation::Ended {
        run: run.id.clone(),
        ending: Ending::Failed(Failure { code: code.into(), message }),
    };
    match run.status {
        RunStatus::Pending | RunStatus::Running | RunStatus::Suspended | RunStatus::Outside => match &job.phase {
            Phase::Running { run: known } if *known == run.id => Observation::Nothing,
            _ => Observation::Started { run: run.id.clone() },
        },
        RunStatus::Failed => {
            let why = run.error.as_deref().map_or("no reason was given", text::trim);
            let (why, _) = text::excerpt(why, limits::EXCERPT_BYTES);
            failed("run_failed", format!("The member's run failed: {why}"))
        }
        RunStatus::Cancelled => failed("run_cancelled", "The member's run was cancelled in its conversation.".into()),
        RunStatus::Interrupted | RunStatus::Succeeded => {
            let message = job.message.as_deref().unwrap_or("");
            // The message's own run: an answered interrupt continues in another.
            let stamp = job.message_run.as_deref().unwrap_or(&run.id);
            match read_turn(runs, &job.thread, (message, Some(stamp))) {
                Ok(turn) => judge(run, &turn),
                Err(RunError::NotFound(why)) => failed(
                    "not_attributable",
                    format!("The conversation is gone: {why}. Inspect it before you rely on anything."),
                ),
                Err(error) => cannot_ask(job, &error),
            }
        }
    }
}

/// Whether everything that was asked is still what the conversation asks.
pub fn still_open(wait: &Wait, state: &ThreadState) -> bool {
    match wait {
        Wait::Question { id, .. } => state.open_question.as_ref().is_some_and(|q| &q.id == id),
        Wait::Interrupts { open } => open
            .iter()
            .all(|asked| state.interrupts.iter().any(|i| i.id == asked.id && i.checkpoint == asked.checkpoint)),
    }
}

/// A job's result, from the turn that begins with its own message. An answer is
/// the job's only if that message is there and no other human message follows
/// it.
fn judge(ended: &Run, turn: &Turn) -> Observation {
    let state = &turn.end;
    let run = ended.id.as_str();
    let failed = |code: &str, message: &str| Observation::Ended {
        run: run.into(),
        ending: Ending::Failed(Failure { code: code.into(), message: message.into() }),
    };
    if !turn.found {
        return failed(
            "not_attributable",
            "The request's own message is no longer in the conversation, so no answer can be attributed to it. Inspect the conversation.",
        );
    }
    if turn.interrupted {
        return failed(
            "not_attributable",
            "Another human message followed the request, so the answer cannot be attributed to it. Inspect the conversation.",
        );
    }
    if !state.interrupts.is_empty() {
        return match open_interrupts(state) {
            Ok(open) => Observation::Asked { run: run.into(), wait: Wait::Interrupts { open } },
            Err(failure) => Observation::Ended { run: run.into(), ending: Ending::Failed(failure) },
        };
    }
    let question = turn.question.as_ref().filter(|q| !q.answered);
    if let Some(q) = question.or(state.open_question.as_ref()) {
        if let Some(failure) = asked::unanswerable([q.id.as_str()].into_iter()) {
            return Observation::Ended { run: run.into(), ending: Ending::Failed(failure) };
        }
        return Observation::Asked { run: run.into(), wait: asked::question(&q.id, &q.text, &q.options) };
    }
    if ended.status == RunStatus::Interrupted {
        return failed(
            "not_attributable",
            "The run stopped at an interrupt that is not open any more: it was answered in the conversation itself. Inspect the conversation.",
        );
    }
    let cut = ended.cut || turn.answer.as_ref().is_some_and(|m| m.shortened);
    match turn.answer.as_ref().map(|m| text::trim(&m.text)) {
        Some(answer) if !answer.is_empty() => Observation::Ended {
            run: run.into(),
            ending: Ending::Completed {
                run: run.into(),
                answer: Answered {
                    text: text::cut(answer, limits::ANSWER_BYTES).to_string(),
                    truncated: cut || answer.len() > limits::ANSWER_BYTES,
                },
            },
        },
        _ => failed("no_answer", "The member ended its turn without any text."),
    }
}

/// The interrupts that are open in a conversation, as they are stored; or why
/// they cannot be answered here.
pub fn open_interrupts(state: &ThreadState) -> core::result::Result<Vec<OpenInterrupt>, Failure> {
    let open = &state.interrupts;
    let names = open.iter().map(|i| match &i.checkpoint {
        Some(checkpoint) if checkpoint.len() > i.id.len() => checkpoint.as_str(),
        _ => i.id.as_str(),
    });
    if let Some(failure) = asked::unanswerable(names) {
        return Err(failure);
    }
    let one = |i: &Interrupt| asked::interrupt(&i.id, i.checkpoint.as_deref(), &i.value, open.len());
    Ok(open.iter().map(one).collect())
}

fn not_now(code: HoldCode, message: String, disconnect: bool) -> Observation {
    Observation::NotNow { code, message, disconnect }
}

fn later(code: HoldCode, message: &str, disconnect: bool) -> Observation {
    Observation::Later { code, message: message.into(), disconnect }
}

/// The host's own words, bounded.
pub fn say(error: &RunError) -> String {
    let why = match error {
        RunError::Denied(why)
        | RunError::NotFound(why)
        | RunError::Busy(why)
        | RunError::Rejected(why)
        | RunError::Unavailable(why)
        | RunError::Unsupported(why)
        | RunError::Other(why) => why.as_str(),
        RunError::KeyConflict => "the key was used with another input",
        RunError::TimedOut => "no answer in time",
    };
    text::excerpt(why, limits::EXCERPT_BYTES).0
}

/// The refusal that a disconnecting observation stands for.
pub fn as_disconnect(code: HoldCode, message: &str) -> Error {
    Error::unavailable(code.as_str(), message)
}
