//! The team that a tool means: the one that it names, or the only one to which
//! the calling conversation belongs.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};

use super::{args, owned_teams};
use crate::app::Ctx;
use crate::domain::error::{Error, Result};
use crate::store::read;
use crate::store::records::Team;

/// A tool's `team_id`. Left out, it is filled in by [`OwnTeam::fill_in`] before
/// the command runs; empty means that there is none, which the command answers
/// like a team that does not exist. Small models write the team's name here:
/// that is refused like any other id that is not one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnTeam(String);

impl OwnTeam {
    /// Fills in what was left out. Refused where the conversation belongs to
    /// several teams. It gives no right: who may speak in the team is the
    /// command's to check.
    pub fn fill_in(&mut self, ctx: Ctx) -> Result<()> {
        if !self.0.is_empty() {
            return Ok(());
        }
        let teams = read(ctx.host, |db| owned_teams::owned(db, ctx.owner()))?;
        // The nearest conversation that is a member's, as for the calling member.
        for thread in ctx.caller.thread.iter().chain(&ctx.caller.ancestors) {
            let of: Vec<&Team> =
                teams.iter().map(|(t, _)| t).filter(|t| t.member_of_thread(thread).is_some()).collect();
            match of[..] {
                [] => {}
                [team] => {
                    self.0 = team.id.clone();
                    return Ok(());
                }
                _ => {
                    let named: Vec<String> = of.iter().map(|t| format!("{} ({})", t.id, t.name)).collect();
                    return Err(Error::invalid(
                        "missing_field",
                        "team_id",
                        format!(
                            "This conversation belongs to several teams: {}. Give the id of one.",
                            named.join(", ")
                        ),
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Deref for OwnTeam {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for OwnTeam {
    fn from(id: String) -> Self {
        Self(id)
    }
}

impl<'de> Deserialize<'de> for OwnTeam {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
        args::optional::<D, String>(deserializer).map(|id| Self(id.unwrap_or_default()))
    }
}

impl JsonSchema for OwnTeam {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Option::<String>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<String>::json_schema(generator)
    }
}
