//! Why a job does not move, as a stable word. It is stored with the job's hold,
//! and refusals of one kind in a row are counted by it.

/// The reason of a hold that the scheduler itself gives. A refusal of the
/// component's own has the code of its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldCode {
    /// The host did not answer in time.
    HostTimeout,
    /// The host's answer did not say whether something happened.
    HostUnclear,
    /// The host could not be asked, or could not start it.
    HostUnavailable,
    /// The time of the step was used up after the input was sent.
    HostSlow,
    /// Another run is at work in the conversation.
    ConversationBusy,
    /// The conversation that asked cannot be reached.
    ConversationDenied,
    /// The member's conversation does not exist.
    ConversationMissing,
    /// A question is open in the conversation.
    OpenQuestion,
    /// What it waits for was answered or replaced in the conversation itself.
    ClarificationChanged,
    /// The host denies access.
    Denied,
    /// The earlier plugin's run never began.
    NeverBegan,
    /// Nothing was started under its key.
    NotAdmitted,
    /// The host cannot tell what became of its run.
    OutcomeUnknown,
    /// The host refused the last answer.
    AnswerRefused,
}

/// Codes of a host that cannot be reached for a while, whatever it says each
/// time.
const UNREACHED: [HoldCode; 3] = [HoldCode::HostTimeout, HoldCode::HostUnclear, HoldCode::HostUnavailable];

/// Whether two stored codes are one kind of refusal, so that the pause grows from
/// one to the next.
pub fn one_kind(a: &str, b: &str) -> bool {
    let unreached = |code: &str| UNREACHED.iter().any(|known| known.as_str() == code);
    a == b || (unreached(a) && unreached(b))
}

impl HoldCode {
    /// The stored word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HostTimeout => "host_timeout",
            Self::HostUnclear => "host_unclear",
            Self::HostUnavailable => "host_unavailable",
            Self::HostSlow => "host_slow",
            Self::ConversationBusy => "conversation_busy",
            Self::ConversationDenied => "conversation_denied",
            Self::ConversationMissing => "conversation_missing",
            Self::OpenQuestion => "conversation_has_open_question",
            Self::ClarificationChanged => "clarification_changed",
            Self::Denied => "denied",
            Self::NeverBegan => "never_began",
            Self::NotAdmitted => "not_admitted",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::AnswerRefused => "answer_refused",
        }
    }
}
