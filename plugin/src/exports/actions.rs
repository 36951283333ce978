//! What people and programs can do.

use alloc::format;
use alloc::vec::Vec;

use super::{Effect, Entry, Outcome, parse, schema};
use crate::app::board::{create_task, history as task_history, import, list_tasks, update_task};
use crate::app::commands::{
    cancel, connect, create, delete, get, history, import_team, list, read_state, results, resume, search, send, settle,
};
use crate::app::{Ctx, Reply, check_caller};
use crate::domain::error::{Error, Kind, Result};

macro_rules! actions {
    ($($name:literal, $effect:ident, $type:ty, $command:path;)*) => {
        /// All actions, in a stable order.
        pub fn actions() -> Vec<Entry> {
            alloc::vec![$({
                let (description, schema) = schema::of::<$type>();
                Entry { name: $name, title: "", description, schema, effect: Effect::$effect }
            }),*]
        }

        /// Calls an action; the reply is compact JSON, or a wait.
        pub fn call(ctx: Ctx, action: &str, payload: &str) -> Result<Outcome> {
            check_caller(ctx.caller)?;
            check_owner(ctx)?;
            let reply: Reply = match action {
                $($name => $command(ctx, &parse::<$type>(payload)?)?.into(),)*
                _ => return Err(unknown()),
            };
            Outcome::of(reply)
        }
    };
}

actions! {
    "create", AddsOnce, create::Create, create::create;
    "list", Reads, list::List, list::list;
    "get", Reads, get::Get, get::get;
    "connect", Changes, connect::Connect, connect::connect;
    "search", Reads, search::Search, search::search;
    "send", AddsOnce, send::Send, send::send;
    "cancel", Changes, cancel::Cancel, cancel::cancel;
    "resume", Changes, resume::Resume, resume::resume;
    "settle", Changes, settle::Settle, settle::settle;
    "delete", Changes, delete::Delete, delete::delete;
    "state", Reads, read_state::State, read_state::state;
    "history", Reads, history::History, history::history;
    "results", Reads, results::Results, results::results;
    "import_team", AddsOnce, import_team::ImportTeam, import_team::import_team;
    "tasks", Reads, list_tasks::Tasks, list_tasks::tasks;
    "create_task", Adds, create_task::CreateTask, create_task::create_task;
    "update_task", Changes, update_task::UpdateTask, update_task::update_task;
    "task_history", Reads, task_history::TaskHistory, task_history::task_history;
    "import_tasks", AddsOnce, import::ImportTasks, import::import_tasks;
}

/// Whether an action needs the caller's capability.
pub fn needs_runs(action: &str) -> bool {
    matches!(action, "create" | "connect" | "send" | "resume")
}

/// Actions are the owner's. A call from a conversation is an agent's: it has tools.
fn check_owner(ctx: Ctx) -> Result<()> {
    match ctx.caller.thread {
        None => Ok(()),
        Some(_) => Err(Error::denied("not_the_owner", "Actions are the owner's; an agent calls tools.")),
    }
}

fn unknown() -> Error {
    let names: Vec<&str> = actions().iter().map(|a| a.name).collect();
    Error::new(
        Kind::NotFound,
        "action_not_found",
        format!("There is no such action. The actions are: {}.", names.join(", ")),
    )
}
