//! Sign-in: a single-use link, exchanged for a session of the browser.
//!
//! A session that is used stays: its end moves along, up to a bound. One that is
//! left alone ends thirty days after its last use.

use serde::{Deserialize, Serialize};

use super::secret::{Presented, Secret};
use super::{AuthError, Identity, UserError, Users, Via, enabled_user, known_user, rfc3339, shown};
use crate::storage::tables::users::{LinkRow, SessionRow};

/// How long a sign-in link is valid, in milliseconds.
pub const LINK_LIFETIME_MS: i64 = 10 * 60 * 1000;
/// How long a session lasts without use, in milliseconds.
pub const SESSION_LIFETIME_MS: i64 = 30 * DAY_MS;
/// How long a session lasts at most, in milliseconds, however much it is used.
pub const SESSION_LONGEST_MS: i64 = 400 * DAY_MS;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// How exact the use of a session is: one in steady use costs one write a day.
const SESSION_STEP_MS: i64 = DAY_MS;
/// How long an ended session is kept; it cannot be used. A clock that was set too
/// far ahead is set back, and then the session has not ended at all.
const SESSION_KEPT_MS: i64 = 30 * DAY_MS;

/// A new sign-in link. The secret belongs into the fragment of the address
/// `<origin>/sign-in#<secret>`, which browsers send to no server.
#[derive(Clone, PartialEq, Eq)]
pub struct SignInLink {
    pub secret: String,
    /// Milliseconds since 1970.
    pub expires_at_ms: i64,
}

impl SignInLink {
    /// The whole address; `origin` is for example `http://127.0.0.1:8765`.
    pub fn address(&self, origin: &str) -> String {
        format!("{origin}/sign-in#{}", self.secret)
    }

    /// RFC 3339.
    pub fn expires_at(&self) -> String {
        rfc3339(self.expires_at_ms)
    }
}

/// A new session; the secret is the cookie's value.
#[derive(Clone, PartialEq, Eq)]
pub struct NewSession {
    pub user: String,
    pub secret: String,
}

/// A session as it may be shown: never its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub id: String,
    pub user: String,
    /// RFC 3339, as the other times.
    pub created_at: String,
    /// Exact to a day.
    pub last_used_at: String,
    /// It moves when the session is used.
    pub expires_at: String,
}

/// Which sessions are to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The one with this id.
    One(String),
    /// All of the user, except the one with this id.
    Others(String),
    /// All of the user.
    All,
}

impl Users {
    /// Makes a link with which this enabled user signs in once, within ten
    /// minutes. Earlier unused links of the user end.
    pub async fn sign_in_link(&self, user: &str) -> Result<SignInLink, UserError> {
        let secret = Secret::new("").map_err(UserError::Database)?;
        let expires_at_ms = self.now().saturating_add(LINK_LIFETIME_MS);
        let user = user.to_owned();
        self.write(move |rows| {
            if let Err(refused) = enabled_user(rows, &user)? {
                return Ok(Err(refused));
            }
            rows.delete_links_of(&user)?;
            let (id, hash) = (secret.id, secret.hash.to_vec());
            rows.insert_link(&LinkRow { id, user, hash, expires_ms: expires_at_ms })?;
            Ok(Ok(SignInLink { secret: secret.text, expires_at_ms }))
        })
        .await
    }

    /// Exchanges a link's secret for a session. The link is used up in the
    /// same commit: of two that try, one gets in.
    pub async fn redeem(&self, text: &str) -> Result<NewSession, UserError> {
        if Presented::parse("", text).is_none() {
            return Err(UserError::BadLink);
        }
        let session = Secret::new("").map_err(UserError::Database)?;
        let (text, now) = (text.to_owned(), self.now());
        self.write(move |rows| {
            let Some(presented) = Presented::parse("", &text) else { return Ok(Err(UserError::BadLink)) };
            let link = rows.link(presented.id)?.filter(|link| link.expires_ms > now && presented.matches(&link.hash));
            let Some(LinkRow { user, .. }) = link else { return Ok(Err(UserError::BadLink)) };
            if enabled_user(rows, &user)?.is_err() {
                return Ok(Err(UserError::BadLink));
            }
            rows.delete_link(presented.id)?;
            rows.delete_links_expired(now)?;
            rows.delete_sessions_expired(now.saturating_sub(SESSION_KEPT_MS))?;
            rows.insert_session(&SessionRow {
                id: session.id,
                user: user.clone(),
                hash: session.hash.to_vec(),
                created_ms: now,
                last_used_ms: None,
                expires_ms: now.saturating_add(SESSION_LIFETIME_MS),
            })?;
            Ok(Ok(NewSession { user, secret: session.text }))
        })
        .await
    }

    /// Who presents this session. That it is used is noted without waiting for
    /// it. Must be called inside the runtime.
    pub fn authenticate_session(&self, text: &str) -> Result<Identity, AuthError> {
        let presented = Presented::parse("", text).ok_or(AuthError::Unknown)?;
        let now = self.now();
        let found = self.tables.read(|rows| {
            let Some(session) = rows.session(presented.id)?.filter(|session| session.expires_ms > now) else {
                return Ok(None);
            };
            let enabled = rows.user(&session.user)?.is_some_and(|user| user.enabled());
            Ok(Some((session, enabled)))
        });
        let (session, enabled) = found.map_err(AuthError::Database)?.ok_or(AuthError::Unknown)?;
        if !presented.matches(&session.hash) {
            return Err(AuthError::Unknown);
        }
        if !enabled {
            return Err(AuthError::Disabled);
        }
        if due(&session, now) {
            let id = session.id.clone();
            self.note(&session.id, move |rows| match rows.session(&id)? {
                // Of many requests at once, one moves the end.
                Some(session) if due(&session, now) => rows.set_session_used(&id, now, moved_end(&session, now)),
                _ => Ok(()),
            });
        }
        Ok(Identity { user: session.user, via: Via::Session, id: session.id })
    }

    /// The sessions that are valid now, of one user or of all, oldest first.
    pub fn sessions(&self, user: Option<&str>) -> Result<Vec<Session>, UserError> {
        let now = self.now();
        self.read(|rows| {
            if let Err(refused) = known_user(rows, user)? {
                return Ok(Err(refused));
            }
            let valid = rows.sessions(user)?.into_iter().filter(|session| session.expires_ms > now);
            Ok(Ok(valid.map(Session::from).collect()))
        })?
    }

    /// Ends sessions; with `user`, of that user alone. Says how many ended that
    /// were valid. One that is named and is not valid is refused.
    pub async fn end_sessions(&self, user: Option<&str>, ending: Ending) -> Result<usize, UserError> {
        let (user, now) = (user.map(str::to_owned), self.now());
        self.write(move |rows| {
            if let Err(refused) = known_user(rows, user.as_deref())? {
                return Ok(Err(refused));
            }
            let mut ended: Vec<SessionRow> = rows.sessions(user.as_deref())?;
            ended.retain(|session| match &ending {
                Ending::One(id) => session.id == *id && session.expires_ms > now,
                Ending::Others(id) => session.id != *id,
                Ending::All => true,
            });
            if let (Ending::One(id), true) = (ending, ended.is_empty()) {
                return Ok(Err(UserError::NoSession(shown(&id))));
            }
            for session in &ended {
                rows.delete_session(&session.id)?;
            }
            Ok(Ok(ended.iter().filter(|session| session.expires_ms > now).count()))
        })
        .await
    }

    /// Ends a session. An ended one is not an error.
    pub async fn sign_out(&self, identity: &Identity) -> Result<(), UserError> {
        let id = identity.id.clone();
        self.write(move |rows| {
            rows.delete_session(&id)?;
            Ok(Ok(()))
        })
        .await
    }
}

/// Whether the use of this session is to be noted, and its end to be moved.
fn due(session: &SessionRow, now: i64) -> bool {
    now.saturating_sub(session.last_used_ms.unwrap_or(session.created_ms)) > SESSION_STEP_MS
}

/// Where the end of a session moves that is used now: never back, and never
/// over the bound.
fn moved_end(session: &SessionRow, now: i64) -> i64 {
    let bound = session.created_ms.saturating_add(SESSION_LONGEST_MS);
    now.saturating_add(SESSION_LIFETIME_MS).min(bound).max(session.expires_ms)
}

impl From<SessionRow> for Session {
    fn from(row: SessionRow) -> Self {
        Self {
            id: row.id,
            user: row.user,
            created_at: rfc3339(row.created_ms),
            last_used_at: rfc3339(row.last_used_ms.unwrap_or(row.created_ms)),
            expires_at: rfc3339(row.expires_ms),
        }
    }
}
