//! How a command ends.

use std::process::ExitCode;

/// The exit codes; `--help` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Ok = 0,
    /// Refused, or a job that failed, or a check that found something.
    Refused = 1,
    /// The command line cannot be right.
    Usage = 2,
    /// The server cannot be reached, or the data folder cannot be opened.
    Unreachable = 3,
    /// It may or may not have happened; the message says how to find out.
    Unknown = 4,
    /// The server had a fault of its own and ended; start it again.
    Broken = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not do what it was asked to.
#[derive(Clone, Debug)]
pub struct Fail {
    pub exit: Exit,
    /// Stable and machine-readable.
    pub code: String,
    /// Says what to do.
    pub message: String,
    /// The argument at fault.
    pub field: Option<String>,
}

impl Fail {
    fn new(exit: Exit, code: &str, message: impl Into<String>) -> Self {
        Self { exit, code: code.into(), message: message.into(), field: None }
    }

    pub fn refused(code: &str, message: impl Into<String>) -> Self {
        Self::new(Exit::Refused, code, message)
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message)
    }

    /// Something on this machine cannot be opened.
    pub fn open(code: &str, message: impl Into<String>) -> Self {
        Self::new(Exit::Unreachable, code, message)
    }

    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(Exit::Unreachable, "server_unreachable", message)
    }

    pub fn broken(message: impl Into<String>) -> Self {
        Self::new(Exit::Broken, "server_broken", message)
    }

    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(Exit::Unknown, "outcome_unknown", message)
    }
}
