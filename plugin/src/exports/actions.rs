//! What people and programs can do.

use alloc::format;
use alloc::vec::Vec;

use super::{Entry, Outcome, parse, schema};
use crate::app::board::{create_task, history as task_history, import, list_tasks, update_task};
use crate::app::commands::{
    cancel, connect, create, delete, get, history, import_team, list, read_state, results, resume, search, send, settle,
};
use crate::app::{Ctx, Reply, check_caller};
use crate::domain::error::{Error, Kind, Result};

macro_rules! actions {
    ($($name:literal, $writes:literal, $type:ty, $command:path;)*) => {
        /// All actions, in a stable order.
        pub fn actions() -> Vec<Entry> {
            alloc::vec![$({
                let (description, schema) = schema::of::<$type>();
                Entry { name: $name, description, schema, writes: $writes }
            }),*]
        }

        /// Calls an action; the reply is compact JSON, or a wait.
        pub fn call(ctx: Ctx, action: &str, payload: &str) -> Result<Outcome> {
            check_caller(ctx.caller)?;
            let reply: Reply = match action {
                $($name => $command(ctx, &parse::<$type>(payload)?)?.into(),)*
                _ => return Err(unknown()),
            };
            Outcome::of(reply)
        }
    };
}

actions! {
    "create", true, create::Create, create::create;
    "list", false, list::List, list::list;
    "get", false, get::Get, get::get;
    "connect", true, connect::Connect, connect::connect;
    "search", false, search::Search, search::search;
    "send", true, send::Send, send::send;
    "cancel", true, cancel::Cancel, cancel::cancel;
    "resume", true, resume::Resume, resume::resume;
    "settle", true, settle::Settle, settle::settle;
    "delete", true, delete::Delete, delete::delete;
    "state", false, read_state::State, read_state::state;
    "history", false, history::History, history::history;
    "results", false, results::Results, results::results;
    "import_team", true, import_team::ImportTeam, import_team::import_team;
    "tasks", false, list_tasks::Tasks, list_tasks::tasks;
    "create_task", true, create_task::CreateTask, create_task::create_task;
    "update_task", true, update_task::UpdateTask, update_task::update_task;
    "task_history", false, task_history::TaskHistory, task_history::task_history;
    "import_tasks", true, import::ImportTasks, import::import_tasks;
}

fn unknown() -> Error {
    let names: Vec<&str> = actions().iter().map(|a| a.name).collect();
    Error::new(
        Kind::NotFound,
        "action_not_found",
        format!("There is no such action. The actions are: {}.", names.join(", ")),
    )
}
