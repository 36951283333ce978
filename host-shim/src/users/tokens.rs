//! Tokens: how programs call the API.

use serde::{Deserialize, Serialize};

use super::secret::{Presented, Secret};
use super::{
    AuthError, Identity, MAX_TOKEN_NAME, UserDirectory, UserError, Users, Via, enabled_user, known_user, rfc3339, shown,
};
use crate::storage::tables::users::{TokenKind, TokenRow};

/// What every token begins with, so that people and scanners recognise one.
pub(super) const PREFIX: &str = "att_";

/// How exact "last used" is: a token in steady use costs one write a minute.
const LAST_USED_STEP_MS: i64 = 60_000;

/// A token as it may be shown: never its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    pub id: String,
    pub user: String,
    /// What it is for; only those of kind `user` are made so far.
    pub kind: TokenKind,
    pub name: String,
    /// RFC 3339, as the other times.
    pub created_at: String,
    /// Exact to a minute. Absent: never used.
    pub last_used_at: Option<String>,
    /// Absent: it is valid.
    pub revoked_at: Option<String>,
}

/// A new token. The secret is known now and never again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
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
        self.write(move |rows| {
            if let Err(refused) = enabled_user(rows, &user)? {
                return Ok(Err(refused));
            }
            rows.insert_token(&TokenRow {
                id: secret.id.clone(),
                user: user.clone(),
                kind: TokenKind::User,
                thread: None,
                name: name.clone(),
                hash: secret.hash.to_vec(),
                created_ms: now,
                last_used_ms: None,
                revoked_ms: None,
            })?;
            Ok(Ok(NewToken { id: secret.id, user, name, secret: secret.text }))
        })
        .await
    }

    /// The tokens of one user, or of all, oldest first; revoked ones too.
    pub fn tokens(&self, user: Option<&str>) -> Result<Vec<Token>, UserError> {
        self.read(|rows| {
            if let Err(refused) = known_user(rows, user)? {
                return Ok(Err(refused));
            }
            Ok(Ok(rows.tokens(user)?.into_iter().map(Token::from).collect()))
        })?
    }

    /// Ends a token, named by its id. Repeating it changes nothing.
    pub async fn revoke_token(&self, id: &str) -> Result<(), UserError> {
        let (id, now) = (id.to_owned(), self.now());
        self.write(move |rows| {
            Ok(if rows.revoke_token(&id, now)? { Ok(()) } else { Err(UserError::NoToken(shown(&id))) })
        })
        .await
    }

    /// Who presents this token. That it is used is noted without waiting for
    /// it. Must be called inside the runtime.
    pub fn authenticate_token(&self, text: &str) -> Result<Identity, AuthError> {
        if let Some(identity) = self.authenticate_cli(text) {
            return identity;
        }
        let presented = Presented::parse(PREFIX, text).ok_or(AuthError::Unknown)?;
        let found = self.tables.read(|rows| {
            let Some(token) = rows.token(presented.id)?.filter(lets_in) else { return Ok(None) };
            let enabled = rows.user(&token.user)?.is_some_and(|user| user.enabled());
            Ok(Some((token, enabled)))
        });
        let (token, enabled) = found.map_err(AuthError::Database)?.ok_or(AuthError::Unknown)?;
        if !presented.matches(&token.hash) {
            return Err(AuthError::Unknown);
        }
        if !enabled {
            return Err(AuthError::Disabled);
        }
        let id = presented.id.to_owned();
        let now = self.now();
        if token.last_used_ms.is_none_or(|last| now.saturating_sub(last) >= LAST_USED_STEP_MS) {
            let used = id.clone();
            self.note(&id, move |rows| rows.set_token_used(&used, now));
        }
        Ok(Identity { user: token.user, via: Via::Token, id })
    }

    /// Whether what let this caller in still does: for streams that stay open.
    /// An error: it cannot be told now.
    pub fn still_valid(&self, identity: &Identity) -> Result<bool, UserError> {
        if self.is_cli(identity) {
            return self.enabled(&identity.user).map_err(UserError::Database);
        }
        let (now, of) = (self.now(), &identity.user);
        self.read(|rows| {
            let valid = match identity.via {
                Via::Token => rows.token(&identity.id)?.is_some_and(|t| t.user == *of && lets_in(&t)),
                Via::Session => rows.session(&identity.id)?.is_some_and(|s| s.user == *of && s.expires_ms > now),
            };
            Ok(valid && rows.user(of)?.is_some_and(|user| user.enabled()))
        })
    }
}

/// Whether this token may call the API: one of another kind may not, and is
/// refused like one that does not exist.
fn lets_in(token: &TokenRow) -> bool {
    token.kind == TokenKind::User && token.revoked_ms.is_none()
}

impl From<TokenRow> for Token {
    fn from(row: TokenRow) -> Self {
        Self {
            id: row.id,
            user: row.user,
            kind: row.kind,
            name: row.name,
            created_at: rfc3339(row.created_ms),
            last_used_at: row.last_used_ms.map(rfc3339),
            revoked_at: row.revoked_ms.map(rfc3339),
        }
    }
}
