//! Users, their tokens and their sign-in.
//!
//! Everything is in the host's own tables. Secrets have 256 random bits and are
//! stored only as SHA-256; they are compared in constant time. Users, tokens and
//! sessions change while the server runs: nothing is remembered in the process,
//! so that a user who is disabled or a token that is revoked is refused at the
//! next call.

mod cli_token;
mod noting;
mod operator;
mod process_secret;
mod secret;
mod sessions;
mod tokens;

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::storage::Tables;
use crate::storage::tables::UserRows;
pub use crate::storage::tables::users::TokenKind;
use crate::storage::tables::users::UserRow;

pub use cli_token::CLI_TOKEN_FILE;
pub use operator::{OPERATOR_TOKEN_FILE, Operator};
use process_secret::ProcessSecret;
pub use sessions::{
    Ending, LINK_LIFETIME_MS, NewSession, SESSION_LIFETIME_MS, SESSION_LONGEST_MS, Session, SignInLink,
};
pub use tokens::{NewToken, Token};

/// The user that the first start makes.
pub const LOCAL_USER: &str = "local";
/// The longest user id, in bytes.
pub const MAX_USER_ID: usize = 64;
/// The longest name of a token, in characters.
pub const MAX_TOKEN_NAME: usize = 80;

/// Why a command about users was refused. Nothing was changed, except with
/// `Database`, where the next read tells.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    #[error(
        "`{0}` is not a valid user id: use 1 to 64 characters of a-z, 0-9, dot, underscore and hyphen, beginning with a letter or a digit"
    )]
    BadId(String),
    #[error("a token's name has 1 to 80 characters, without control characters")]
    BadTokenName,
    #[error("there is a user `{0}` already")]
    Exists(String),
    #[error("there is no user `{0}`")]
    NoUser(String),
    #[error("the user `{0}` is disabled; enable it first")]
    Disabled(String),
    #[error("there is no token `{0}`")]
    NoToken(String),
    #[error("there is no session `{0}`")]
    NoSession(String),
    #[error("this sign-in link is not valid (any more); ask for a new one")]
    BadLink,
    #[error("the user database cannot answer")]
    Database(#[source] anyhow::Error),
    #[error("{0:#}")]
    TokenFile(anyhow::Error),
}

impl UserError {
    /// Stable and machine-readable.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadId(_) => "bad_user_id",
            Self::BadTokenName => "bad_token_name",
            Self::Exists(_) => "user_exists",
            Self::NoUser(_) => "no_user",
            Self::Disabled(_) => "user_disabled",
            Self::NoToken(_) => "no_token",
            Self::NoSession(_) => "no_session",
            Self::BadLink => "sign_in_link_invalid",
            Self::Database(_) => "database",
            Self::TokenFile(_) => "token_file",
        }
    }

    /// The argument at fault.
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Self::BadId(_) | Self::Exists(_) | Self::NoUser(_) | Self::Disabled(_) => Some("user"),
            Self::BadTokenName => Some("name"),
            Self::NoToken(_) | Self::NoSession(_) => Some("id"),
            Self::BadLink | Self::Database(_) | Self::TokenFile(_) => None,
        }
    }
}

/// Why somebody is not let in.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// No such secret, or a revoked or expired one; which of them is not told.
    #[error("not signed in")]
    Unknown,
    #[error("this user is disabled")]
    Disabled,
    #[error("the user database cannot answer")]
    Database(#[source] anyhow::Error),
}

/// How a call was authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    Token,
    Session,
}

/// Somebody who was authenticated, and with which token or session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub user: String,
    pub via: Via,
    /// The public id of the token or session, never its secret.
    pub id: String,
}

/// One user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub id: String,
    pub enabled: bool,
    /// RFC 3339.
    pub created_at: String,
    /// Whether the first start made it by itself.
    pub automatic: bool,
}

/// The users of one database. Cheap to share.
pub struct Users {
    tables: Tables,
    clock: Arc<dyn Clock>,
    /// The command line's secret of this process, if it serves.
    cli: OnceLock<ProcessSecret>,
    waiting: noting::Waiting,
}

impl Users {
    /// The users in these tables.
    pub fn new(tables: Tables, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { tables, clock, cli: OnceLock::new(), waiting: noting::Waiting::default() })
    }

    /// Makes the user `local` if there is no user at all. True: it was made
    /// now, so this is the first start.
    pub async fn first_start(&self) -> Result<bool, UserError> {
        let user = UserRow { id: LOCAL_USER.into(), automatic: true, created_ms: self.now(), disabled_ms: None };
        self.write(move |rows| {
            if !rows.users()?.is_empty() {
                return Ok(Ok(false));
            }
            rows.insert_user(&user)?;
            Ok(Ok(true))
        })
        .await
    }

    /// Adds an enabled user.
    pub async fn add(&self, id: &str) -> Result<User, UserError> {
        check_id(id)?;
        let user = UserRow { id: id.into(), automatic: false, created_ms: self.now(), disabled_ms: None };
        self.write(move |rows| {
            if rows.user(&user.id)?.is_some() {
                return Ok(Err(UserError::Exists(user.id)));
            }
            rows.insert_user(&user)?;
            Ok(Ok(user.into()))
        })
        .await
    }

    /// Disables a user: its tokens are refused and its sessions and sign-in
    /// links end, at once. Or enables it again: its tokens work again.
    pub async fn set_enabled(&self, id: &str, enabled: bool) -> Result<User, UserError> {
        check_id(id)?;
        let (id, now) = (id.to_owned(), self.now());
        self.write(move |rows| {
            let Some(mut user) = rows.user(&id)? else { return Ok(Err(UserError::NoUser(id))) };
            user.disabled_ms = if enabled { None } else { user.disabled_ms.or(Some(now)) };
            rows.set_disabled(&id, user.disabled_ms)?;
            if !enabled {
                rows.delete_sessions_of(&id)?;
                rows.delete_links_of(&id)?;
            }
            Ok(Ok(user.into()))
        })
        .await
    }

    /// All users, by id.
    pub fn list(&self) -> Result<Vec<User>, UserError> {
        self.read(|rows| Ok(rows.users()?.into_iter().map(User::from).collect()))
    }

    /// The ids of all users, by which they are named in a configuration; before
    /// the first start, that of the user whom it makes.
    pub fn ids(&self) -> Result<Vec<String>, UserError> {
        let mut ids: Vec<String> = self.list()?.into_iter().map(|user| user.id).collect();
        if ids.is_empty() {
            ids.push(LOCAL_USER.to_owned());
        }
        Ok(ids)
    }

    /// Whether somebody added a user who is enabled. The user that the first
    /// start makes does not count: it is for this machine alone.
    pub fn any_added(&self) -> Result<bool, UserError> {
        Ok(self.list()?.iter().any(|user| user.enabled && !user.automatic))
    }

    fn now(&self) -> i64 {
        i64::try_from(self.clock.now_ms()).unwrap_or(i64::MAX)
    }

    fn read<T>(&self, f: impl FnOnce(&dyn UserRows) -> anyhow::Result<T>) -> Result<T, UserError> {
        self.tables.read(|rows| f(rows)).map_err(UserError::Database)
    }

    /// Runs a command that may refuse. Commands refuse before they write.
    async fn write<T: Send + 'static>(
        &self,
        f: impl FnOnce(&dyn UserRows) -> anyhow::Result<Result<T, UserError>> + Send + 'static,
    ) -> Result<T, UserError> {
        self.tables.write(move |rows| f(rows)).await.map_err(UserError::Database)?
    }
}

/// Refuses a user that does not exist. None: all users are meant.
fn known_user(rows: &dyn UserRows, id: Option<&str>) -> anyhow::Result<Result<(), UserError>> {
    let Some(id) = id else { return Ok(Ok(())) };
    if let Err(bad) = check_id(id) {
        return Ok(Err(bad));
    }
    Ok(if rows.user(id)?.is_some() { Ok(()) } else { Err(UserError::NoUser(id.to_owned())) })
}

/// The user, if it exists and is enabled.
fn enabled_user(rows: &dyn UserRows, id: &str) -> anyhow::Result<Result<(), UserError>> {
    Ok(match rows.user(id)? {
        None => Err(UserError::NoUser(shown(id))),
        Some(user) if !user.enabled() => Err(UserError::Disabled(id.to_owned())),
        Some(_) => Ok(()),
    })
}

/// Who may act at all; asked at each call.
pub trait UserDirectory: Send + Sync + 'static {
    /// An error says that it is not known now: neither act for the user then,
    /// nor treat the user as disabled.
    fn enabled(&self, user: &str) -> anyhow::Result<bool>;
}

impl UserDirectory for Users {
    fn enabled(&self, user: &str) -> anyhow::Result<bool> {
        Ok(self.tables.read(|rows| rows.user(user))?.is_some_and(|user| user.enabled()))
    }
}

/// Whether `id` may be a user's id.
pub fn check_id(id: &str) -> Result<(), UserError> {
    let first = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let good = id.len() <= MAX_USER_ID
        && id.bytes().next().is_some_and(first)
        && id.bytes().all(|b| first(b) || matches!(b, b'.' | b'_' | b'-'));
    if good { Ok(()) } else { Err(UserError::BadId(shown(id))) }
}

/// What is refused goes into a message: at most a readable part of it.
fn shown(id: &str) -> String {
    id.chars().filter(|c| !c.is_control()).take(80).collect()
}

impl From<UserRow> for User {
    fn from(row: UserRow) -> Self {
        Self { enabled: row.enabled(), id: row.id, automatic: row.automatic, created_at: rfc3339(row.created_ms) }
    }
}

fn rfc3339(ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(ms).unwrap_or_default().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests;
