//! The transitions of a job, as a pure function of its phase and an event.
//! An event that does not fit the phase is late and changes nothing.

use alloc::string::String;

use super::job::{Answer, Phase, Wait};

/// What happened, or what was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The input and its key were stored; the host will be asked.
    Freeze,
    /// The host said that nothing was admitted under the key.
    NotAdmitted,
    /// The host named the run that the key started.
    Started { run: String },
    /// The run ended with an answer.
    Completed { run: String },
    /// The run ended, or can never start; there is no answer.
    Failed,
    /// The run stopped with a question or interrupts.
    Asked { run: String, wait: Wait },
    /// A person answered.
    Answer(Answer),
    /// The host refused the answer, and what it answers is still open.
    AnswerRefused,
    /// The owner wants the job to end.
    Cancel { key: String },
    /// The host accepted the cancel; the run has not ended yet.
    CancelAccepted,
    /// The run ended, or never began, after a cancel.
    Stopped,
    /// The run was known and is not any more, or it is unknown whether there
    /// is one. `answer`: what its input carried, if not the request.
    Lost { key: String, answer: Option<Answer> },
    /// A person says that it failed, whatever the host would say of it.
    SettleFailed,
    /// A person says: ask the host again, with the same frozen bytes and key.
    SettleRetry,
}

/// The next phase, or nothing if the event is late.
pub fn transition(phase: &Phase, event: Event) -> Option<Phase> {
    use Event as E;
    use Phase as P;
    Some(match (phase.clone(), event) {
        (P::Queued, E::Freeze) => P::Starting,
        (P::Answered { run, answer }, E::Freeze) => P::Resuming { run, answer },

        (P::Starting, E::NotAdmitted) => P::Queued,
        (P::Resuming { run, answer }, E::NotAdmitted) => P::Answered { run, answer },
        // Only a run that was never named can turn out not to exist.
        // It is still frozen: the same bytes are sent under the same key.
        (P::Unknown { run: None, answer: None, cancel: false, .. }, E::NotAdmitted) => P::Starting,
        (P::Unknown { run: None, answer: Some(answer), cancel: false, .. }, E::NotAdmitted) => {
            P::Resuming { run: asker(&answer, None), answer }
        }
        (P::Resuming { run, answer }, E::AnswerRefused) => P::Waiting { run, wait: answer.wait },

        (P::Starting | P::Resuming { .. } | P::Unknown { cancel: false, .. }, E::Started { run }) => P::Running { run },
        (P::Cancelling { run: None, key, accepted }, E::Started { run }) => {
            P::Cancelling { run: Some(run), key, accepted }
        }
        (P::Unknown { key, cancel: true, .. }, E::Started { run }) => {
            P::Cancelling { run: Some(run), key, accepted: false }
        }

        (P::Starting | P::Resuming { .. }, E::Completed { .. }) => P::Completed,
        (P::Running { run }, E::Completed { run: ended }) if run == ended => P::Completed,
        (P::Unknown { cancel: false, .. }, E::Completed { .. }) => P::Completed,

        (P::Starting | P::Resuming { .. }, E::Asked { run, wait }) => P::Waiting { run, wait },
        (P::Running { run }, E::Asked { run: asked, wait }) if run == asked => P::Waiting { run, wait },
        (P::Unknown { cancel: false, .. }, E::Asked { run, wait }) => P::Waiting { run, wait },

        (P::Queued | P::Starting | P::Running { .. } | P::Answered { .. } | P::Resuming { .. }, E::Failed) => P::Failed,
        (P::Waiting { .. } | P::Unknown { cancel: false, .. }, E::Failed) => P::Failed,
        (frozen, E::SettleFailed) if frozen.holds_slot() => P::Failed,
        (P::Unknown { run, answer: Some(answer), .. }, E::SettleRetry) => {
            P::Resuming { run: asker(&answer, run), answer }
        }
        (P::Unknown { answer: None, .. }, E::SettleRetry) => P::Starting,

        (P::Waiting { run, wait }, E::Answer(answer)) if wait == answer.wait => P::Answered { run, answer },

        // The run stopped at an interrupt: the host withdraws it.
        (
            P::Waiting { run, wait: Wait::Interrupts { .. } }
            | P::Answered { run, answer: Answer { wait: Wait::Interrupts { .. }, .. } },
            E::Cancel { key },
        ) => P::Cancelling { run: Some(run), key, accepted: false },
        (P::Queued | P::Waiting { .. } | P::Answered { .. }, E::Cancel { .. }) => P::Cancelled,
        (phase @ (P::Starting | P::Resuming { .. } | P::Running { .. } | P::Unknown { .. }), E::Cancel { key }) => {
            P::Cancelling { run: phase.attempt().map(String::from), key, accepted: false }
        }
        (P::Cancelling { run, key, accepted: false }, E::CancelAccepted) => P::Cancelling { run, key, accepted: true },
        (P::Cancelling { .. } | P::Unknown { cancel: true, .. }, E::Stopped) => P::Cancelled,

        (P::Starting, E::Lost { key, .. }) => P::Unknown { run: None, key, answer: None, cancel: false },
        (P::Resuming { run, answer }, E::Lost { key, .. }) => {
            let asker = Some(asker(&answer, Some(run)));
            P::Unknown { run: None, key, answer: Some(Answer { asker, ..answer }), cancel: false }
        }
        (P::Running { run }, E::Lost { key, answer }) => P::Unknown { run: Some(run), key, answer, cancel: false },
        (P::Cancelling { run, .. }, E::Lost { key, answer }) => P::Unknown { run, key, answer, cancel: true },

        _ => return None,
    })
}

/// The run that asked what this answers; `known` is what an older record says.
fn asker(answer: &Answer, known: Option<String>) -> String {
    answer.asker.clone().or(known).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn wait() -> Wait {
        Wait::Question { id: "q".into(), text: "?".into(), options: Vec::new() }
    }

    fn interrupts() -> Wait {
        let one = crate::domain::job::OpenInterrupt {
            id: "i".into(),
            checkpoint: None,
            value: serde_json::json!(1),
            cut: None,
        };
        Wait::Interrupts { open: alloc::vec![one] }
    }

    fn answer() -> Answer {
        answer_to(wait())
    }

    fn answer_to(wait: Wait) -> Answer {
        let asker = Some("r".into());
        Answer { asker, request_id: "a".into(), digest: "d".into(), key: "k".into(), wait }
    }

    fn unknown(run: Option<&str>, answer: Option<Answer>, cancel: bool) -> Phase {
        Phase::Unknown { run: run.map(String::from), key: "k".into(), answer, cancel }
    }

    fn phases() -> Vec<Phase> {
        let run = || String::from("r");
        alloc::vec![
            Phase::Queued,
            Phase::Starting,
            Phase::Running { run: run() },
            Phase::Waiting { run: run(), wait: wait() },
            Phase::Waiting { run: run(), wait: interrupts() },
            Phase::Answered { run: run(), answer: answer() },
            Phase::Answered { run: run(), answer: answer_to(interrupts()) },
            Phase::Resuming { run: run(), answer: answer() },
            Phase::Resuming { run: run(), answer: answer_to(interrupts()) },
            Phase::Cancelling { run: None, key: "k".into(), accepted: false },
            unknown(None, None, false),
            unknown(None, None, true),
            unknown(Some("r2"), Some(answer()), false),
            unknown(None, Some(answer_to(interrupts())), true),
            Phase::Completed,
            Phase::Failed,
            Phase::Cancelled,
        ]
    }

    fn events() -> Vec<Event> {
        let run = || String::from("r");
        alloc::vec![
            Event::Freeze,
            Event::NotAdmitted,
            Event::Started { run: run() },
            Event::Completed { run: run() },
            Event::Failed,
            Event::Asked { run: run(), wait: wait() },
            Event::Answer(answer()),
            Event::AnswerRefused,
            Event::Cancel { key: "k".into() },
            Event::CancelAccepted,
            Event::Stopped,
            Event::Lost { key: "k".into(), answer: Some(answer()) },
            Event::SettleFailed,
            Event::SettleRetry,
        ]
    }

    #[test]
    fn finished_means_finished() {
        for phase in phases().into_iter().filter(Phase::finished) {
            for event in events() {
                assert_eq!(transition(&phase, event.clone()), None, "{phase:?} {event:?}");
            }
        }
    }

    #[test]
    fn every_unfinished_phase_can_be_cancelled_and_whatever_the_host_holds_is_told_to_it() {
        for phase in phases().into_iter().filter(|p| !p.finished()) {
            if matches!(phase, Phase::Cancelling { .. }) {
                continue;
            }
            let next = transition(&phase, Event::Cancel { key: "k".into() }).expect("cancel applies");
            let interrupted = matches!(phase.wait(), Some(Wait::Interrupts { .. }));
            let at_once = !phase.holds_slot() && !interrupted;
            assert_eq!(next == Phase::Cancelled, at_once, "{phase:?}");
        }
    }

    #[test]
    fn a_job_that_is_cancelled_never_runs_again_unless_a_person_says_so() {
        for phase in phases().into_iter().filter(Phase::cancelling) {
            for event in events() {
                let Some(next) = transition(&phase, event.clone()) else { continue };
                let settled = matches!(event, Event::SettleRetry | Event::SettleFailed);
                assert!(settled || next.cancelling() || next == Phase::Cancelled, "{phase:?} {event:?} {next:?}");
            }
        }
    }

    #[test]
    fn the_run_that_asked_is_never_taken_for_the_run_of_the_answer() {
        for wait in [wait(), interrupts()] {
            let resuming = Phase::Resuming { run: "asked".into(), answer: answer_to(wait) };
            let lost = transition(&resuming, Event::Lost { key: "k".into(), answer: None }).expect("lost");
            for phase in [resuming, lost] {
                let next = transition(&phase, Event::Cancel { key: "k".into() }).expect("cancelled");
                assert_eq!(next, Phase::Cancelling { run: None, key: "k".into(), accepted: false });
            }
        }
    }

    #[test]
    fn what_is_sent_again_is_what_was_sent() {
        let answer = answer();
        let cancelling = Phase::Cancelling { run: None, key: "k".into(), accepted: false };
        let lost = Event::Lost { key: "k".into(), answer: Some(answer.clone()) };
        let unknown = transition(&cancelling, lost).expect("unknown");
        let again = transition(&unknown, Event::SettleRetry).expect("sent again");
        assert_eq!(again, Phase::Resuming { run: "r".into(), answer });
    }

    #[test]
    fn only_freezing_and_withdrawing_ask_the_host_for_something_new() {
        for phase in phases() {
            for event in events() {
                let Some(next) = transition(&phase, event.clone()) else { continue };
                if !phase.holds_slot() && next.holds_slot() {
                    let withdraws = matches!(event, Event::Cancel { .. }) && phase.wait().is_some();
                    assert!(event == Event::Freeze || withdraws, "{phase:?} {event:?}");
                }
            }
        }
    }

    #[test]
    fn an_answer_of_another_run_changes_nothing() {
        let phase = Phase::Running { run: "now".into() };
        assert_eq!(transition(&phase, Event::Completed { run: "old".into() }), None);
        assert_eq!(transition(&phase, Event::Asked { run: "old".into(), wait: wait() }), None);
    }
}
