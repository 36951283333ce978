//! What member agents can call.

use alloc::format;
use alloc::vec::Vec;

use super::{Effect, Entry, Outcome, parse, schema};
use crate::app::board::{create_task, get_task, list_tasks, update_task, wait};
use crate::app::commands::{
    history, publish_state, read_context, read_result, read_state, search_results, send, update_state,
};
use crate::app::shared::calling_member;
use crate::app::{Ctx, Reply, Wake, check_caller};
use crate::domain::error::{Error, Kind, Result};

macro_rules! tools {
    ($($name:literal, $title:literal, $effect:ident, $type:ty, $command:path;)*) => {
        /// All tools, in a stable order.
        pub fn tools() -> Vec<Entry> {
            alloc::vec![$({
                let (description, schema) = schema::of::<$type>();
                Entry { name: $name, title: $title, description, schema, effect: Effect::$effect }
            }),*]
        }

        /// Calls a tool; the reply is compact JSON, or a wait.
        pub fn call(ctx: Ctx, tool: &str, arguments: &str) -> Result<Outcome> {
            check_caller(ctx.caller)?;
            match call_once(ctx, tool, arguments) {
                // The host is asked outside of the call's transaction.
                Err(e) if e.code == calling_member::RUN_UNCLEAR => {
                    calling_member::look_up(ctx)?;
                    call_once(ctx, tool, arguments)
                }
                outcome => outcome,
            }
        }

        fn call_once(ctx: Ctx, tool: &str, arguments: &str) -> Result<Outcome> {
            let reply: Reply = match tool {
                $($name => {
                    let mut arguments = parse::<$type>(arguments)?;
                    arguments.team_id.fill_in(ctx)?;
                    $command(ctx, &arguments)?.into()
                })*
                _ => return Err(unknown()),
            };
            Outcome::of(reply)
        }
    };
}

tools! {
    "send_member", "Ask a member", AddsOnce, send::SendMember, send::send_member;
    "read_team_context", "Read the team's context", Reads, read_context::ReadTeamContext, read_context::read_team_context;
    "publish_team_state", "Publish to the team", AddsOnce, publish_state::PublishTeamState, publish_state::publish_team_state;
    "read_team_state", "Read the public state", Reads, read_state::ReadTeamState, read_state::read_team_state;
    "update_team_state", "Update the public state", Changes, update_state::UpdateTeamState, update_state::update_team_state;
    "read_team_history", "Read the team's history", Reads, history::ReadTeamHistory, history::read_team_history;
    "search_team_results", "Search earlier results", Reads, search_results::SearchTeamResults, search_results::search_team_results;
    "read_team_result", "Read a result", Reads, read_result::ReadTeamResult, read_result::read_team_result;
    "create_team_task", "Create a task", Adds, create_task::CreateTeamTask, create_task::create_team_task;
    "get_team_task", "Read a task", Reads, get_task::GetTeamTask, get_task::get_team_task;
    "list_team_tasks", "List the tasks", Reads, list_tasks::ListTeamTasks, list_tasks::list_team_tasks;
    "update_team_task", "Update a task", Changes, update_task::UpdateTeamTask, update_task::update_team_task;
    "wait_for_team_tasks", "Wait for tasks", Reads, wait::WaitForTeamTasks, wait::wait_for_team_tasks;
}

/// Continues a call that waited.
pub fn resume(ctx: Ctx, token: &str, wake: Wake) -> Result<Outcome> {
    check_caller(ctx.caller)?;
    Outcome::of(wait::resume(ctx, token, wake)?)
}

fn unknown() -> Error {
    let names: Vec<&str> = tools().iter().map(|t| t.name).collect();
    Error::new(Kind::NotFound, "tool_not_found", format!("There is no such tool. The tools are: {}.", names.join(", ")))
}
