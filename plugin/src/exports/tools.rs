//! What member agents can call.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value;

use super::{Entry, parse, schema};
use crate::app::{
    Ctx, check_caller, history, publish_state, read_context, read_result, read_state, search_results, send,
    update_state,
};
use crate::domain::error::{Error, Kind, Result};

macro_rules! tools {
    ($($name:literal, $writes:literal, $type:ty, $command:path;)*) => {
        /// All tools, in a stable order.
        pub fn tools() -> Vec<Entry> {
            alloc::vec![$({
                let (description, schema) = schema::of::<$type>();
                Entry { name: $name, description, schema, writes: $writes }
            }),*]
        }

        /// Calls a tool; the reply is compact JSON.
        pub fn call(ctx: Ctx, tool: &str, arguments: &str) -> Result<String> {
            check_caller(ctx.caller)?;
            let reply: Value = match tool {
                $($name => $command(ctx, &parse::<$type>(arguments)?)?,)*
                _ => return Err(unknown()),
            };
            serde_json::to_string(&reply).map_err(|e| Error::internal(format!("a reply cannot be written: {e}")))
        }
    };
}

tools! {
    "send_member", true, send::SendMember, send::send_member;
    "read_team_context", false, read_context::ReadTeamContext, read_context::read_team_context;
    "publish_team_state", true, publish_state::PublishTeamState, publish_state::publish_team_state;
    "read_team_state", false, read_state::ReadTeamState, read_state::read_team_state;
    "update_team_state", true, update_state::UpdateTeamState, update_state::update_team_state;
    "read_team_history", false, history::ReadTeamHistory, history::read_team_history;
    "search_team_results", false, search_results::SearchTeamResults, search_results::search_team_results;
    "read_team_result", false, read_result::ReadTeamResult, read_result::read_team_result;
}

fn unknown() -> Error {
    let names: Vec<&str> = tools().iter().map(|t| t.name).collect();
    Error::new(Kind::NotFound, "tool_not_found", format!("There is no such tool. The tools are: {}.", names.join(", ")))
}
