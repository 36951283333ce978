//! Sign-in: a single-use link, exchanged for a session of the browser.

use super::secret::{Presented, Secret};
use super::{AuthError, Identity, UserError, Users, Via, enabled_user};
use crate::storage::tables::users::{LinkRow, SessionRow};

/// How long a sign-in link is valid, in milliseconds.
pub const LINK_LIFETIME_MS: i64 = 10 * 60 * 1000;
/// How long a session lasts, in milliseconds.
pub const SESSION_LIFETIME_MS: i64 = 30 * 24 * 60 * 60 * 1000;

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
        super::rfc3339(self.expires_at_ms)
    }
}

/// A new session; the secret is the cookie's value.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    pub user: String,
    pub secret: String,
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
    pub async fn redeem(&self, text: &str) -> Result<Session, UserError> {
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
            rows.delete_sessions_expired(now)?;
            rows.insert_session(&SessionRow {
                id: session.id,
                user: user.clone(),
                hash: session.hash.to_vec(),
                created_ms: now,
                expires_ms: now.saturating_add(SESSION_LIFETIME_MS),
            })?;
            Ok(Ok(Session { user, secret: session.text }))
        })
        .await
    }

    /// Who presents this session.
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
        Ok(Identity { user: session.user, via: Via::Session, id: presented.id.to_owned() })
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
