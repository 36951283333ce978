//! Tokens: how programs call the API.

use rusqlite::{OptionalExtension, params};
use serde::Serialize;

use super::secret::{Presented, Secret};
use super::{AuthError, Identity, MAX_TOKEN_NAME, UserDirectory, UserError, Users, Via, find_user, rfc3339};

/// What every token begins with, so that people and scanners recognise one.
pub(super) const PREFIX: &str = "att_";

/// How exact "last used" is: a token in steady use costs one write a minute.
const LAST_USED_STEP_MS: i64 = 60_000;

/// A token as it may be shown: never its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Token {
    pub id: String,
    pub user: String,
    pub name: String,
    /// RFC 3339, as the other times.
    pub created_at: String,
    /// Exact to a minute. Absent: never used.
    pub last_used_at: Option<String>,
    /// Absent: it is valid.
    pub revoked_at: Option<String>,
}

/// A new token. The secret is known now and never again.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct NewToken {
    pub id: String,
    pub user: String,
    pub name: String,
    pub secret: String,
}

impl std::fmt::Debug for NewToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewToken").field("id", &self.id).field("user", &self.user).finish_non_exhaustive()
    }
}

impl Users {
    /// Makes a token for an enabled user. `name` is for people: 1 to 80
    /// characters.
    pub async fn add_token(&self, user: &str, name: &str) -> Result<NewToken, UserError> {
        let name = name.trim();
        if name.is_empty() || name.chars().count() > MAX_TOKEN_NAME || name.chars().any(char::is_control) {
            return Err(UserError::BadTokenName);
        }
        let secret = Secret::new(PREFIX).map_err(UserError::Database)?;
        let (user, name, now) = (user.to_owned(), name.to_owned(), self.now());
        self.write(move |c| {
            match find_user(c, &user)? {
                None => return Ok(Err(UserError::NoUser(user))),
                Some(found) if !found.enabled => return Ok(Err(UserError::Disabled(user))),
                Some(_) => {}
            }
            c.execute(
                "INSERT INTO user_tokens (id, user, name, hash, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![secret.id, user, name, secret.hash.as_slice(), now],
            )?;
            Ok(Ok(NewToken { id: secret.id, user, name, secret: secret.text }))
        })
        .await
    }

    /// The tokens of one user, or of all, oldest first; revoked ones too.
    pub fn tokens(&self, user: Option<&str>) -> Result<Vec<Token>, UserError> {
        self.read(|c| {
            let mut statement = c.prepare_cached(
                "SELECT id, user, name, created_at, last_used_at, revoked_at FROM user_tokens
                 WHERE ?1 IS NULL OR user = ?1 ORDER BY created_at, id",
            )?;
            let tokens = statement
                .query_map([user], |row| {
                    Ok(Token {
                        id: row.get(0)?,
                        user: row.get(1)?,
                        name: row.get(2)?,
                        created_at: rfc3339(row.get(3)?),
                        last_used_at: row.get::<_, Option<i64>>(4)?.map(rfc3339),
                        revoked_at: row.get::<_, Option<i64>>(5)?.map(rfc3339),
                    })
                })?
                .collect::<Result<_, _>>()?;
            Ok(tokens)
        })
    }

    /// Ends a token, named by its id. Repeating it changes nothing.
    pub async fn revoke_token(&self, id: &str) -> Result<(), UserError> {
        let (id, now) = (id.to_owned(), self.now());
        self.write(move |c| {
            let sql = "UPDATE user_tokens SET revoked_at = coalesce(revoked_at, ?2) WHERE id = ?1";
            Ok(if c.execute(sql, params![id, now])? == 0 { Err(UserError::NoToken(id)) } else { Ok(()) })
        })
        .await
    }

    /// Who presents this token.
    pub async fn authenticate_token(&self, text: &str) -> Result<Identity, AuthError> {
        if let Some(identity) = self.authenticate_cli(text) {
            return identity;
        }
        let presented = Presented::parse(PREFIX, text).ok_or(AuthError::Unknown)?;
        let row = self.db.read(|c| {
            let mut statement = c.prepare_cached(
                "SELECT t.hash, t.user, t.last_used_at, u.disabled_at FROM user_tokens t JOIN users u ON u.id = t.user
                 WHERE t.id = ?1 AND t.revoked_at IS NULL",
            )?;
            let row = statement.query_row([presented.id], |row| {
                Ok((
                    row.get::<_, Vec<u8>>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, Option<i64>>(2)?,
                    row.get::<_, Option<i64>>(3)?,
                ))
            });
            Ok(row.optional()?)
        });
        let (hash, user, last_used, disabled) = row.map_err(AuthError::Database)?.ok_or(AuthError::Unknown)?;
        if !presented.matches(&hash) {
            return Err(AuthError::Unknown);
        }
        if disabled.is_some() {
            return Err(AuthError::Disabled);
        }
        let id = presented.id.to_owned();
        let now = self.now();
        if last_used.is_none_or(|last| now.saturating_sub(last) >= LAST_USED_STEP_MS) {
            let id = id.clone();
            let noted = self.db.write(move |c| {
                c.execute("UPDATE user_tokens SET last_used_at = ?2 WHERE id = ?1", params![id, now])?;
                Ok(())
            });
            // A full disk must not lock people out of reading.
            if let Err(error) = noted.await {
                tracing::warn!(%error, "could not note the use of a token");
            }
        }
        Ok(Identity { user, via: Via::Token, id })
    }

    /// Whether what let this caller in still does: for streams that stay open.
    /// An error: it cannot be told now.
    pub fn still_valid(&self, identity: &Identity) -> Result<bool, UserError> {
        if self.is_cli(identity) {
            return self.enabled(&identity.user).map_err(UserError::Database);
        }
        let now = self.now();
        let sql = match identity.via {
            Via::Token => {
                "SELECT EXISTS (SELECT 1 FROM user_tokens t JOIN users u ON u.id = t.user
                 WHERE t.id = ?1 AND t.user = ?2 AND t.revoked_at IS NULL AND u.disabled_at IS NULL AND ?3 = ?3)"
            }
            Via::Session => {
                "SELECT EXISTS (SELECT 1 FROM user_sessions s JOIN users u ON u.id = s.user
                 WHERE s.id = ?1 AND s.user = ?2 AND s.expires_at > ?3 AND u.disabled_at IS NULL)"
            }
        };
        self.read(|c| {
            Ok(c.prepare_cached(sql)?
                .query_row(params![identity.id, identity.user, now], |row| row.get::<_, bool>(0))?)
        })
    }
}
