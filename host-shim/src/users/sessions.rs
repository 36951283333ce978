//! Sign-in: a single-use link, exchanged for a session of the browser.

use rusqlite::{OptionalExtension, params};

use super::secret::{Presented, Secret};
use super::{AuthError, Identity, UserError, Users, Via, find_user};

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
        self.write(move |c| {
            match find_user(c, &user)? {
                None => return Ok(Err(UserError::NoUser(user))),
                Some(found) if !found.enabled => return Ok(Err(UserError::Disabled(user))),
                Some(_) => {}
            }
            c.execute("DELETE FROM sign_in_links WHERE user = ?1", [&user])?;
            c.execute(
                "INSERT INTO sign_in_links (id, user, hash, expires_at) VALUES (?1, ?2, ?3, ?4)",
                params![secret.id, user, secret.hash.as_slice(), expires_at_ms],
            )?;
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
        self.write(move |c| {
            let Some(presented) = Presented::parse("", &text) else { return Ok(Err(UserError::BadLink)) };
            let found = c
                .query_row(
                    "SELECT l.hash, l.user FROM sign_in_links l JOIN users u ON u.id = l.user
                     WHERE l.id = ?1 AND l.expires_at > ?2 AND u.disabled_at IS NULL",
                    params![presented.id, now],
                    |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, String>(1)?)),
                )
                .optional()?;
            let Some((hash, user)) = found else { return Ok(Err(UserError::BadLink)) };
            if !presented.matches(&hash) {
                return Ok(Err(UserError::BadLink));
            }
            c.execute("DELETE FROM sign_in_links WHERE id = ?1 OR expires_at <= ?2", params![presented.id, now])?;
            c.execute("DELETE FROM user_sessions WHERE expires_at <= ?1", [now])?;
            c.execute(
                "INSERT INTO user_sessions (id, user, hash, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![session.id, user, session.hash.as_slice(), now, now.saturating_add(SESSION_LIFETIME_MS)],
            )?;
            Ok(Ok(Session { user, secret: session.text }))
        })
        .await
    }

    /// Who presents this session.
    pub fn authenticate_session(&self, text: &str) -> Result<Identity, AuthError> {
        let presented = Presented::parse("", text).ok_or(AuthError::Unknown)?;
        let now = self.now();
        let row = self.db.read(|c| {
            let mut statement = c.prepare_cached(
                "SELECT s.hash, s.user, u.disabled_at FROM user_sessions s JOIN users u ON u.id = s.user
                 WHERE s.id = ?1 AND s.expires_at > ?2",
            )?;
            let row = statement.query_row(params![presented.id, now], |row| {
                Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<i64>>(2)?))
            });
            Ok(row.optional()?)
        });
        let (hash, user, disabled) = row.map_err(AuthError::Database)?.ok_or(AuthError::Unknown)?;
        if !presented.matches(&hash) {
            return Err(AuthError::Unknown);
        }
        if disabled.is_some() {
            return Err(AuthError::Disabled);
        }
        Ok(Identity { user, via: Via::Session, id: presented.id.to_owned() })
    }

    /// Ends a session. An ended one is no error.
    pub async fn sign_out(&self, identity: &Identity) -> Result<(), UserError> {
        let id = identity.id.clone();
        self.write(move |c| {
            c.execute("DELETE FROM user_sessions WHERE id = ?1", [id])?;
            Ok(Ok(()))
        })
        .await
    }
}
