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
/// added later. Public state is refused where this is over the budget, so that
/// [`fit`] always ends within it.
pub fn fixed_bytes(context: &Context) -> usize {
    let fixed = Context { recent_messages: Vec::new(), omitted: None, board: None, ..context.clone() };
    serde_json::to_string(&fixed).map_or(0, |text| text.len()) + limits::CONTEXT_RESERVE
}

/// Compact JSON of the context within `budget` bytes, and the context as it
/// then is.
pub fn fit(mut context: Context, budget: usize) -> (Context, String) {
    let over = context.recent_messages.len().saturating_sub(limits::CONTEXT_MESSAGES);
    context.recent_messages.drain(..over);
    let mut omitted = 0;
    loop {
        if omitted > 0 {
            context.omitted = Some(alloc::format!(
                "{omitted} older recent messages did not fit here; read_team_history pages through them."
            ));
        }
        let text = serde_json::to_string(&context).unwrap_or_default();
        if text.len() <= budget || context.recent_messages.is_empty() {
            return (context, text);
        }
        context.recent_messages.remove(0);
        omitted += 1;
    }
}
