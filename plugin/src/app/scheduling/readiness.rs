//! Whether a conversation takes what a job wants to send there.

use alloc::string::String;

use super::observe::{self, Observation, say};
use crate::domain::hold_code::HoldCode;
use crate::domain::job::{Failure, Phase, Wait};
use crate::host::{RunError, ThreadState};
use crate::store::records::Job;

/// What the host says of a conversation.
pub type State = core::result::Result<ThreadState, RunError>;

/// What the conversation says before anything is sent there.
pub enum Readiness {
    Yes,
    /// The interrupts that the job's answer is for are not open any more: it is
    /// not sent, and the job follows whatever became of them.
    AnsweredElsewhere,
    /// Not now.
    Hold {
        code: HoldCode,
        message: String,
        disconnect: bool,
    },
    Never(Failure),
}

/// A conversation that is busy or has an open question takes nothing new, and
/// an answer is for its own question only.
pub fn ready(seen: &State, job: &Job) -> Readiness {
    let state = match seen {
        Ok(state) => state,
        // A fresh conversation has no state yet.
        Err(RunError::NotFound(_)) => return Readiness::Yes,
        Err(error) => {
            return match observe::not_admitted(job, error) {
                Observation::NotNow { code, message, disconnect } => Readiness::Hold { code, message, disconnect },
                Observation::Never(failure) => Readiness::Never(failure),
                _ => Readiness::Hold { code: HoldCode::HostUnavailable, message: say(error), disconnect: false },
            };
        }
    };
    // Whatever runs there now may be what another answer has started.
    if let Phase::Answered { answer, .. } | Phase::Resuming { answer, .. } = &job.phase
        && let Wait::Interrupts { .. } = answer.wait
        && !observe::still_open(&answer.wait, state)
    {
        return Readiness::AnsweredElsewhere;
    }
    if state.active_run.is_some() {
        let message = String::from("The conversation is busy with a run outside the team's work.");
        return Readiness::Hold { code: HoldCode::ConversationBusy, message, disconnect: false };
    }
    let open = || state.open_question.is_some() || !state.interrupts.is_empty();
    match &job.phase {
        Phase::Answered { answer, .. } | Phase::Resuming { answer, .. } => {
            if observe::still_open(&answer.wait, state) {
                Readiness::Yes
            } else {
                Readiness::Never(changed())
            }
        }
        _ if open() => Readiness::Hold {
            code: HoldCode::OpenQuestion,
            message:
                "A question in this conversation is not answered; it blocks new work there until somebody answers it."
                    .into(),
            disconnect: false,
        },
        _ => Readiness::Yes,
    }
}

fn changed() -> Failure {
    Failure {
        code: "clarification_changed".into(),
        message: "The question was answered or replaced in the conversation itself. Inspect the conversation.".into(),
    }
}
