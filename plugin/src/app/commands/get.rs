//! Read a team: roster, state and the activity feed, newest first.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::Ctx;
use crate::app::shared::paging::bad_cursor;
use crate::app::shared::{damaged, view};
use crate::domain::error::{Error, Result};
use crate::domain::{cursor, limits, text};
use crate::store::records::{Head, Job};
use crate::store::{TeamTx, keys, read, readable};

/// Reads a team and a page of its jobs, newest first.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Get {
    pub team_id: String,
    /// Jobs on a page, 1 to 200. Absent: 20.
    #[serde(default)]
    pub limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[serde(default)]
    pub cursor: Option<String>,
    /// True: texts and results in full.
    #[serde(default)]
    pub details: Option<bool>,
    /// The revision that the caller has: if nothing changed since, the answer
    /// says so and no more.
    #[serde(default)]
    pub revision: Option<u64>,
}

/// Which part of the feed.
#[derive(Clone, Debug, Default)]
pub struct Page {
    pub limit: Option<u32>,
    pub cursor: Option<String>,
    pub details: bool,
}

pub fn get(ctx: Ctx, get: &Get) -> Result<Value> {
    if let Some(known) = get.revision {
        if !text::is_id(&get.team_id) {
            return Err(Error::no_team());
        }
        let head = read(ctx.host, |db| {
            readable(db.get::<Head>(&keys::TeamKeys::new(ctx.owner(), &get.team_id).head()))?
                .map(|head| head.ok_or_else(Error::no_team))
                .transpose()
        })?;
        // The process may have lost its capability since the last commit.
        if head.is_some_and(|h| h.revision == known && h.connected == ctx.connected(&get.team_id)) {
            return Ok(json!({"unchanged": true, "revision": known}));
        }
    }
    let cursor = get.cursor.clone().filter(|c| !c.is_empty());
    let page = Page { limit: get.limit, cursor, details: get.details.unwrap_or(false) };
    view(ctx, &get.team_id, &page)
}

/// The team and a page of its feed.
pub fn view(ctx: Ctx, team_id: &str, page: &Page) -> Result<Value> {
    let limit = page.limit.unwrap_or(limits::FEED_DEFAULT);
    if !(1..=limits::FEED_MAX).contains(&limit) {
        return Err(Error::invalid(
            "bad_limit",
            "limit",
            format!("`limit` must be between 1 and {}.", limits::FEED_MAX),
        ));
    }
    read(ctx.host, |db| {
        let team = match TeamTx::load(db, ctx.owner(), team_id) {
            Err(error) if error.damaged_key().is_some() => return damaged::team(ctx, db, team_id, &error),
            team => team?,
        };
        let newest = team.head.borrow().jobs;
        let from = match &page.cursor {
            None => newest,
            Some(cursor) => open_cursor(ctx, &team, cursor)?,
        };
        let to = from.saturating_sub(limit);
        let numbers: Vec<u32> = (to + 1..=from).rev().collect();
        let jobs = db.get_each::<Job>(&numbers.iter().map(|n| team.keys.job(*n)).collect::<Vec<_>>())?;
        let texts = db.get_many_texts(&numbers.iter().map(|n| team.keys.text(*n)).collect::<Vec<_>>())?;
        let results = db.get_many_texts(&numbers.iter().map(|n| team.keys.result(*n)).collect::<Vec<_>>())?;
        let mut shown = Vec::with_capacity(numbers.len());
        for (((n, job), text), result) in numbers.into_iter().zip(jobs).zip(texts).zip(results) {
            let (text, result) = (text.unwrap_or_default(), result.as_deref());
            shown.push(match job.ok_or_else(|| Error::internal("a job of this team is missing"))? {
                Ok(job) => view::job_with(ctx, &team, &job, &text, result, page.details)?,
                Err(error) => damaged::job(&team, n, &text, result, page.details, &error)?,
            });
        }
        let mut reply = json!({"team": view::team(ctx, &team)?, "jobs": shown});
        if to > 0 {
            reply["next_cursor"] = json!(make_cursor(ctx, &team, to));
        }
        Ok(reply)
    })
}

/// A cursor names the newest job of the next page.
fn make_cursor(ctx: Ctx, team: &TeamTx, n: u32) -> String {
    cursor::seal(&team.team.nonce, &["get", ctx.owner(), &team.team.id], n)
}

fn open_cursor(ctx: Ctx, team: &TeamTx, given: &str) -> Result<u32> {
    let n = cursor::open(&team.team.nonce, &["get", ctx.owner(), &team.team.id], given);
    n.filter(|n| (1..=team.head.borrow().jobs).contains(n)).ok_or_else(bad_cursor)
}
