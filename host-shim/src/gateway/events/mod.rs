//! Live updates: a stream of "something changed" (server-sent events).
//!
//! Topics belong to an owner and are served to that owner alone. An event says
//! only that something changed; the page reads again, conditionally. Changes
//! that a slow client has not taken yet fold into one, so a stream holds a
//! bounded amount, and no reader falls behind.
//!
//! A stream of one team (`?team=`) has the team's revision as event id. The
//! client names the revision it has read (`Last-Event-ID`, or `?since=` at the
//! first connect). Only if that is the newest revision that this process has
//! seen, nothing is sent; in every other case (an older, newer, unreadable or
//! missing one, or a team of which this process has seen nothing yet) one
//! event is sent at once. The stream of all topics cannot know what was missed
//! and always begins with one event.

mod hub;

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior};

use super::actions::query_of;
use super::auth::SignedIn;
use super::listen::until;
use super::{App, Problem};
use crate::users::{Identity, Users};

pub(super) use hub::Hub;
use hub::{Change, Subscription};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    team: Option<String>,
    since: Option<String>,
}

/// `GET /api/events?team=&since=`
pub(super) async fn stream(
    State(app): State<App>,
    caller: SignedIn,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let EventsQuery { team, since } = query_of(&uri)?;
    if team.as_ref().is_some_and(|team| team.is_empty() || team.len() > 64) {
        return Err(Problem::invalid("invalid_query", "A team's id has 1 to 64 bytes.", "team"));
    }
    let subscription = app.hub.subscribe(caller.user(), team.as_deref()).ok_or_else(|| {
        Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_streams",
            "You have too many live-update streams open; close one first.",
        )
        .retry(5)
    })?;
    // A reconnect names the newest event; it counts more than the first address.
    let named = headers.get("last-event-id").map(|value| value.to_str().unwrap_or_default().to_owned()).or(since);
    let current = team.is_some() && {
        let seen = subscription.newest();
        seen.is_some() && seen == named.and_then(|text| text.parse().ok())
    };
    if !current {
        subscription.mark_gap();
    }
    let mut recheck = tokio::time::interval(app.limits.recheck);
    recheck.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let live = Live {
        subscription,
        identity: caller.0,
        users: app.parts.users.clone(),
        stopping: app.stopping.clone(),
        recheck,
    };
    let events = futures_util::stream::unfold(live, |mut live| async move {
        let event = live.next().await?;
        Some((Ok::<_, Infallible>(event), live))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(app.limits.keep_alive)).into_response())
}

/// One open stream.
struct Live {
    subscription: Subscription,
    identity: Identity,
    users: Arc<Users>,
    stopping: watch::Receiver<bool>,
    recheck: Interval,
}

impl Live {
    /// The next event; none ends the stream: the server stops, or the caller
    /// is not let in any more. While that cannot be told, nothing is sent; the
    /// change is made up for afterwards.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let change = tokio::select! {
                biased;
                () = until(&mut self.stopping) => return None,
                _ = self.recheck.tick() => None,
                change = self.subscription.next() => Some(change),
            };
            match (self.users.still_valid(&self.identity), change) {
                (Ok(true), Some(change)) => return Some(self.event(change)),
                (Ok(true), None) => {}
                (Ok(false), _) => return None,
                (Err(error), change) => {
                    tracing::warn!(%error, "a stream waits until its user can be looked up");
                    if change.is_some() {
                        self.subscription.mark_gap();
                    }
                    tokio::select! {
                        biased;
                        () = until(&mut self.stopping) => return None,
                        _ = self.recheck.tick() => {}
                    }
                }
            }
        }
    }

    fn event(&self, change: Change) -> Event {
        let event = Event::default().event("changed");
        match change {
            Change::Topic { topic, revision } => {
                let id =
                    if self.subscription.of_one_team() { revision.to_string() } else { format!("{topic}:{revision}") };
                // A change without a revision has no id; nor has one whose topic
                // would break the line.
                let plain = revision == 0 || id.contains(['\n', '\r', '\0']);
                let event = if plain { event } else { event.id(id) };
                event.data(json!({ "topic": topic, "revision": revision }).to_string())
            }
            Change::Gap { newest: Some(revision) } => {
                event.id(revision.to_string()).data(json!({ "revision": revision }).to_string())
            }
            Change::Gap { newest: None } => event.data("{}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::{Signals, SystemClock};
    use crate::storage::SqliteTables;
    use crate::storage::database::Database;

    #[tokio::test]
    async fn a_stream_outlives_a_time_in_which_its_user_cannot_be_looked_up() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::open(&folder.path().join("test.db")).unwrap();
        let tables = SqliteTables::open(db.clone(), Arc::new(SystemClock)).await.unwrap();
        let users = Users::new(tables, Arc::new(SystemClock));
        users.add("ann").await.unwrap();
        let token = users.add_token("ann", "x").await.unwrap();
        let identity = users.authenticate_token(&token.secret).unwrap();
        // The use of the token is noted by a commit of its own.
        db.write(|_| Ok(())).await.unwrap();
        let signals = Signals::default();
        let (hub, _life) = Hub::start(&signals, 8);
        let (_stop, stopping) = watch::channel(false);
        let mut live = Live {
            subscription: hub.subscribe("ann", None).unwrap(),
            identity,
            users: users.clone(),
            stopping,
            recheck: tokio::time::interval(Duration::from_millis(10)),
        };
        // A commit of unknown outcome: reads are refused until it is settled.
        db.fail_commits(&[rusqlite::ffi::SQLITE_IOERR_FSYNC, rusqlite::ffi::SQLITE_IOERR_WRITE]);
        users.add("bob").await.unwrap_err();
        signals.publish("ann", "team:t1", 1);
        assert!(live.next().await.is_some(), "the change is told afterwards");
        users.revoke_token(&token.id).await.unwrap();
        assert!(live.next().await.is_none());
    }
}
