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
    /// The owner wants the job to end.
    Cancel { key: String },
    /// The host took note of the cancel; the run has not ended yet.
    CancelAccepted,
    /// The run ended, or never began, after a cancel.
    Stopped,
    /// The run was known and is not any more, or nobody can tell whether there
    /// is one. `answer`: what its input carried, if not the request.
    Lost { key: String, answer: Option<Answer> },
    /// A person says that it failed; the owner may for an unknown outcome, the
    /// operator for whatever holds a slot.
    SettleFailed,
    /// A person says: ask the host again, with the same frozen bytes and key.
    SettleRetry,
}

/// The next phase, or nothing if the event is late.
pub fn step(phase: &Phase, event: Event) -> Option<Phase> {
    use Event as E;
    use Phase as P;
    Some(match (phase.clone(), event) {
        (P::Queued, E::Freeze) => P::Starting,
        (P::Answered { run, answer }, E::Freeze) => P::Resuming { run, answer },

        (P::Starting, E::NotAdmitted) => P::Queued,
        (P::Resuming { run, answer }, E::NotAdmitted) => P::Answered { run, answer },
        (P::Cancelling { .. }, E::NotAdmitted) => P::Cancelled,

        (P::Starting | P::Resuming { .. } | P::Unknown { .. }, E::Started { run }) => P::Running { run },
        (P::Cancelling { run: None, key, accepted }, E::Started { run }) => {
            P::Cancelling { run: Some(run), key, accepted }
        }

        (P::Starting | P::Resuming { .. }, E::Completed { .. }) => P::Completed,
        (P::Running { run }, E::Completed { run: ended }) if run == ended => P::Completed,
        (P::Unknown { .. }, E::Completed { .. }) => P::Completed,

        (P::Starting | P::Resuming { .. }, E::Asked { run, wait }) => P::Waiting { run, wait },
        (P::Running { run }, E::Asked { run: asked, wait }) if run == asked => P::Waiting { run, wait },
        (P::Unknown { .. }, E::Asked { run, wait }) => P::Waiting { run, wait },

        (P::Queued | P::Starting | P::Running { .. } | P::Answered { .. } | P::Resuming { .. }, E::Failed) => P::Failed,
        (P::Unknown { .. }, E::Failed) => P::Failed,
        (frozen, E::SettleFailed) if frozen.holds_slot() => P::Failed,
        (P::Unknown { run: Some(run), answer: Some(answer), .. }, E::SettleRetry) => P::Resuming { run, answer },
        (P::Unknown { .. }, E::SettleRetry) => P::Starting,

        (P::Waiting { run, wait }, E::Answer(answer)) if wait == answer.wait => P::Answered { run, answer },

        (P::Queued | P::Waiting { .. } | P::Answered { .. }, E::Cancel { .. }) => P::Cancelled,
        (P::Starting | P::Resuming { .. }, E::Cancel { key }) => P::Cancelling { run: None, key, accepted: false },
        (P::Running { run }, E::Cancel { key }) => P::Cancelling { run: Some(run), key, accepted: false },
        (P::Unknown { run, .. }, E::Cancel { key }) => P::Cancelling { run, key, accepted: false },
        (P::Cancelling { run, key, accepted: false }, E::CancelAccepted) => P::Cancelling { run, key, accepted: true },
        (P::Cancelling { .. }, E::Stopped) => P::Cancelled,

        (P::Starting, E::Lost { key, .. }) => P::Unknown { run: None, key, answer: None },
        (P::Resuming { run, answer }, E::Lost { key, .. }) => P::Unknown { run: Some(run), key, answer: Some(answer) },
        (P::Running { run }, E::Lost { key, answer }) => P::Unknown { run: Some(run), key, answer },
        (P::Cancelling { run, .. }, E::Lost { key, answer }) => P::Unknown { run, key, answer },

        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn wait() -> Wait {
        Wait::Question { id: "q".into(), text: "?".into(), options: Vec::new() }
    }

    fn answer() -> Answer {
        Answer { request_id: "a".into(), digest: "d".into(), key: "k".into(), wait: wait() }
    }

    fn phases() -> Vec<Phase> {
        let run = || String::from("r");
        alloc::vec![
            Phase::Queued,
            Phase::Starting,
            Phase::Running { run: run() },
            Phase::Waiting { run: run(), wait: wait() },
            Phase::Answered { run: run(), answer: answer() },
            Phase::Resuming { run: run(), answer: answer() },
            Phase::Cancelling { run: None, key: "k".into(), accepted: false },
            Phase::Unknown { run: None, key: "k".into(), answer: None },
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
                assert_eq!(step(&phase, event.clone()), None, "{phase:?} {event:?}");
            }
        }
    }

    #[test]
    fn every_unfinished_phase_can_be_cancelled_and_only_what_was_admitted_is_told_to_the_host() {
        for phase in phases().into_iter().filter(|p| !p.finished()) {
            if matches!(phase, Phase::Cancelling { .. }) {
                continue;
            }
            let next = step(&phase, Event::Cancel { key: "k".into() }).expect("cancel applies");
            let expected_at_once = !phase.holds_slot();
            assert_eq!(next == Phase::Cancelled, expected_at_once, "{phase:?}");
        }
    }

    #[test]
    fn a_slot_is_taken_by_freezing_and_by_nothing_else() {
        for phase in phases() {
            for event in events() {
                let Some(next) = step(&phase, event.clone()) else { continue };
                if !phase.holds_slot() && next.holds_slot() {
                    // Nothing else asks the host for a run.
                    assert_eq!(event, Event::Freeze, "{phase:?}");
                }
            }
        }
    }

    #[test]
    fn an_answer_of_another_run_changes_nothing() {
        let phase = Phase::Running { run: "now".into() };
        assert_eq!(step(&phase, Event::Completed { run: "old".into() }), None);
        assert_eq!(step(&phase, Event::Asked { run: "old".into(), wait: wait() }), None);
    }
}
