//! What member agents can call.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value;

use super::{Entry, parse, schema};
use crate::app::{Ctx, check_caller, read_context, send};
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
}

fn unknown() -> Error {
    let names: Vec<&str> = tools().iter().map(|t| t.name).collect();
    Error::new(Kind::NotFound, "tool_not_found", format!("There is no such tool. The tools are: {}.", names.join(", ")))
}
