//! The shared context: what every member is told about its team, within one
//! budget. The oldest recent messages give way first, so that goal, roster,
//! public state and board always stay.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;
use serde_json::Value;

use super::limits;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Context {
    pub team_id: String,
    pub name: String,
    pub goal: String,
    pub members: Vec<ContextMember>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<String>,
    /// Active entries of the public state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<Value>,
    /// How many tasks are ready, in progress and blocked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub board: Option<Value>,
    /// Oldest first.
    pub recent_messages: Vec<ContextMessage>,
    /// What was left out, and how to fetch it. Absent: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContextMember {
    pub id: String,
    pub name: String,
    pub agent: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContextMessage {
    /// `request`, `result` or `notice`.
    pub kind: &'static str,
    pub job_id: String,
    /// The member, or who else wrote it.
    pub from: String,
    pub to: String,
    pub text: String,
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub truncated: bool,
    /// RFC 3339.
    pub at: String,
}

/// Bytes that the context takes before any message, with room for what may be
/// added later. Public state is refused where this exceeds the budget, so that
/// [`fit`] always ends within it.
pub fn fixed_bytes(context: &Context) -> usize {
    let fixed = Context { recent_messages: Vec::new(), omitted: None, board: None, ..context.clone() };
    serde_json::to_string(&fixed).map_or(0, |text| text.len()) + limits::CONTEXT_RESERVE
}

/// Compact JSON of the context within `budget` bytes, and the context as it
/// then is.
pub fn fit(mut context: Context, budget: usize) -> (Context, String) {
    let size = |message: &ContextMessage| serde_json::to_string(message).map_or(0, |text| text.len()) + 1;
    let over = context.recent_messages.len().saturating_sub(limits::CONTEXT_MESSAGES);
    let mut messages: Vec<ContextMessage> = core::mem::take(&mut context.recent_messages).split_off(over);
    let mut sizes: Vec<usize> = messages.iter().map(size).collect();
    let mut omitted = 0;
    loop {
        if omitted > 0 {
            context.omitted = Some(alloc::format!(
                "{omitted} older recent messages did not fit here; read_team_history pages through them."
            ));
        }
        // The messages are the only part that gives way; their sizes add up,
        // with a comma for all but one.
        let rest = serde_json::to_string(&context).unwrap_or_default().len();
        let all = sizes.iter().sum::<usize>().saturating_sub(1);
        if rest + all <= budget || messages.is_empty() {
            context.recent_messages = messages;
            let text = serde_json::to_string(&context).unwrap_or_default();
            return (context, text);
        }
        messages.remove(0);
        sizes.remove(0);
        omitted += 1;
    }
}
