//! `log`: the component's lines in the operator's log.

use wasmtime::Result;

use super::State;
use crate::engine::bindings::agent_teams::plugin::log::{Host, Level};

/// The longest line, in bytes.
const MAX_LINE: usize = 4096;

impl Host for State {
    fn write(&mut self, level: Level, message: String) -> Result<()> {
        if self.log_lines_left == 0 {
            return Ok(());
        }
        self.log_lines_left -= 1;
        if self.log_lines_left == 0 {
            tracing::warn!(target: "agent_teams::component", "more lines of this call are left out");
        }
        let line = one_line(&message);
        match level {
            Level::Debug => tracing::debug!(target: "agent_teams::component", "{line}"),
            Level::Info => tracing::info!(target: "agent_teams::component", "{line}"),
            Level::Warn => tracing::warn!(target: "agent_teams::component", "{line}"),
            Level::Error => tracing::error!(target: "agent_teams::component", "{line}"),
        }
        Ok(())
    }
}

/// The message without control characters, which could forge lines or steer
/// a terminal, cut at `MAX_LINE`.
fn one_line(message: &str) -> String {
    let cut = message.floor_char_boundary(MAX_LINE);
    message[..cut].chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_one_line_of_bounded_length() {
        assert_eq!(one_line("a\nb\u{1b}[31mc"), "a b [31mc");
        assert_eq!(one_line(&"é".repeat(MAX_LINE)).len(), MAX_LINE);
    }
}
