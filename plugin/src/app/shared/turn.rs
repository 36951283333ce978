//! A turn of a conversation, read to its end page by page. Only what decides
//! about it is kept, however long it is.

use alloc::format;
use alloc::string::String;

use crate::host::{Message, Question, Role, RunError, Runs, ThreadState};

/// Pages of one turn that are read.
const PAGES: usize = 500;

/// What a conversation holds from a message of the team's on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Whether that message is there. If not, the rest says nothing.
    pub found: bool,
    /// Whether another human message follows it.
    pub interrupted: bool,
    /// The newest message of the agent.
    pub answer: Option<Message>,
    /// The newest question of the turn.
    pub question: Option<Question>,
    /// The conversation at its end, without its messages.
    pub end: ThreadState,
}

/// Reads the conversation from the message with this id on, or from the one
/// that carries the stamp of this run.
pub fn read_turn(runs: &dyn Runs, thread: &str, since: (&str, Option<&str>)) -> Result<Turn, RunError> {
    let mut turn = Turn::default();
    let mut after: Option<String> = None;
    for page in 0..PAGES {
        let mut state = runs.state(thread, after.is_none().then_some(since), after.as_deref())?;
        if page == 0 {
            turn.found = state.found;
        } else if !state.found {
            return Err(RunError::Unavailable(String::from("the conversation changed while it was read")));
        }
        let messages = core::mem::take(&mut state.messages);
        let own = usize::from(page == 0);
        turn.interrupted |= messages.iter().skip(own).any(|m| m.role == Role::Human);
        let last = messages.last().map(|m| m.id.clone());
        for message in messages {
            turn.question = message.question.clone().or(turn.question);
            if message.role == Role::Assistant {
                turn.answer = Some(message);
            }
        }
        let more = state.more && state.found;
        turn.end = state;
        match last {
            Some(last) if more => after = Some(last),
            _ => return Ok(turn),
        }
    }
    Err(RunError::Other(format!("the conversation did not end within {PAGES} pages")))
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::host::{Cancellation, Input, InterruptAnswer, NotOwner, Run};

    /// Pages of a conversation, by the message behind which they begin.
    struct Pages(Vec<(Option<&'static str>, ThreadState)>);

    impl Runs for Pages {
        fn state(
            &self,
            _: &str,
            since: Option<(&str, Option<&str>)>,
            after: Option<&str>,
        ) -> Result<ThreadState, RunError> {
            assert!(since.is_some() != after.is_some(), "one of the two says where the page begins");
            let page = self.0.iter().find(|(from, _)| *from == after);
            Ok(page.map(|(_, state)| state.clone()).unwrap_or_default())
        }

        fn bind(&self, _: &str, _: &str) -> Result<(), NotOwner> {
            unreachable!()
        }
        fn create_thread(&self, _: &str, _: &str, _: &str, _: &str) -> Result<(), RunError> {
            unreachable!()
        }
        fn start(&self, _: &str, _: &Input, _: &str) -> Result<Run, RunError> {
            unreachable!()
        }
        fn resume(&self, _: &str, _: &[InterruptAnswer], _: &str) -> Result<Run, RunError> {
            unreachable!()
        }
        fn find(&self, _: &str, _: &str) -> Result<Run, RunError> {
            unreachable!()
        }
        fn get(&self, _: &str, _: &str) -> Result<Run, RunError> {
            unreachable!()
        }
        fn cancel(&self, _: &str, _: &str) -> Result<Cancellation, RunError> {
            unreachable!()
        }
    }

    fn said(id: &str, role: Role) -> Message {
        Message { id: id.into(), role, text: id.into(), shortened: false, run: None, question: None }
    }

    fn page(messages: Vec<Message>, more: bool) -> ThreadState {
        ThreadState { found: true, messages, more, ..ThreadState::default() }
    }

    fn read(pages: Vec<(Option<&'static str>, ThreadState)>) -> Result<Turn, RunError> {
        read_turn(&Pages(pages), "t", ("m", None))
    }

    #[test]
    fn the_answer_is_on_the_last_page() {
        let first = page(vec![said("m", Role::Human), said("a", Role::Assistant)], true);
        let second = page(vec![said("b", Role::Tool), said("c", Role::Assistant)], false);
        let turn = read(vec![(None, first), (Some("a"), second)]).unwrap();
        assert_eq!((turn.found, turn.interrupted, turn.answer.unwrap().id.as_str()), (true, false, "c"));
    }

    #[test]
    fn a_human_message_on_a_later_page_is_seen() {
        let first = page(vec![said("m", Role::Human), said("a", Role::Assistant)], true);
        let second = page(vec![said("x", Role::Human), said("c", Role::Assistant)], false);
        assert!(read(vec![(None, first), (Some("a"), second)]).unwrap().interrupted);
    }

    #[test]
    fn a_conversation_that_loses_its_place_is_read_again_later() {
        let first = page(vec![said("m", Role::Human)], true);
        assert!(matches!(read(vec![(None, first)]), Err(RunError::Unavailable(_))));
    }

    #[test]
    fn pages_without_an_end_are_given_up() {
        let endless = || page(vec![said("m", Role::Tool)], true);
        assert!(matches!(read(vec![(None, endless()), (Some("m"), endless())]), Err(RunError::Other(_))));
    }
}
