//! What a test can script.

use agent_teams_plugin::host::RunError;

/// A call of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    CreateThread,
    Start,
    Resume,
    Find,
    Get,
    State,
    Cancel,
}

/// What a turn of an agent brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Ends well with this text.
    Answer(String),
    /// Ends well with these assistant texts, a tool message between each.
    Texts(Vec<String>),
    /// Ends well without any text.
    Silent,
    /// Ends well with a clarification: its text and suggested answers.
    Ask(String, Vec<String>),
    /// Stops at interrupts: id and JSON value of each.
    Interrupt(Vec<(String, String)>),
    /// Fails, with this reason.
    Fail(String),
    /// Ends as cancelled.
    Cancelled,
}

impl Turn {
    pub fn answer(text: impl Into<String>) -> Self {
        Self::Answer(text.into())
    }

    pub fn ask(text: &str) -> Self {
        Self::Ask(text.into(), Vec::new())
    }

    pub fn interrupt(id: &str, value: &str) -> Self {
        Self::Interrupt(vec![(id.into(), value.into())])
    }
}

/// What happens to a call instead of, or besides, its usual course.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing happens, and this is answered.
    Refuse(RunError),
    /// It happens, but this is answered.
    Lose(RunError),
    /// It hangs before anything happens, until the hangs are released.
    HangBefore,
    /// It happens, but its answer hangs until the hangs are released.
    HangAfter,
    /// Somebody answers what is open in the conversation just before it happens.
    Overtaken,
    /// What is open in the conversation is withdrawn just before it happens.
    Withdrawn,
}

impl Effect {
    pub fn denied() -> Self {
        Self::Refuse(RunError::Denied("scripted".into()))
    }

    pub fn busy() -> Self {
        Self::Refuse(RunError::Busy("scripted".into()))
    }

    pub fn unavailable() -> Self {
        Self::Refuse(RunError::Unavailable("scripted".into()))
    }

    pub fn not_found() -> Self {
        Self::Refuse(RunError::NotFound("scripted".into()))
    }

    pub fn rejected() -> Self {
        Self::Refuse(RunError::Rejected("scripted".into()))
    }

    /// Nothing happens, but the caller cannot know.
    pub fn timed_out() -> Self {
        Self::Refuse(RunError::TimedOut)
    }

    pub fn other() -> Self {
        Self::Refuse(RunError::Other("scripted".into()))
    }

    /// It happens, and the reply is lost.
    pub fn reply_lost() -> Self {
        Self::Lose(RunError::TimedOut)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub method: Method,
    pub thread: Option<String>,
    pub times: u32,
    pub effect: Effect,
}
