//! Users, their tokens, sessions and sign-in links. Times are milliseconds since
//! 1970. Secrets are stored as their SHA-256 alone.

use serde::{Deserialize, Serialize};

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserRow {
    /// Chosen when the user was added.
    pub id: String,
    /// The first start made it by itself.
    pub automatic: bool,
    /// When it was added.
    pub created_ms: i64,
    /// Absent: the user is enabled.
    pub disabled_ms: Option<i64>,
}

impl UserRow {
    /// Whether the user may act.
    pub fn enabled(&self) -> bool {
        self.disabled_ms.is_none()
    }
}

/// What a token is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    /// A program of the user calls the API.
    #[default]
    User,
    /// Somebody acts in one conversation.
    Conversation,
    /// Somebody takes the place of one member.
    Seat,
}

impl TokenKind {
    /// How it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Conversation => "conversation",
            Self::Seat => "seat",
        }
    }

    /// The kind that is stored so.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::User, Self::Conversation, Self::Seat].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// Public; never the secret.
    pub id: String,
    /// Whose it is.
    pub user: String,
    /// What it is for.
    pub kind: TokenKind,
    /// The conversation to which it is bound. Absent: to none.
    pub thread: Option<String>,
    /// For people.
    pub name: String,
    /// SHA-256 of the secret.
    pub hash: Vec<u8>,
    /// When it was made.
    pub created_ms: i64,
    /// Exact to a minute. Absent: never.
    pub last_used_ms: Option<i64>,
    /// Absent: it is valid.
    pub revoked_ms: Option<i64>,
}

/// A session of a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Public; never the secret.
    pub id: String,
    /// Whose it is.
    pub user: String,
    /// SHA-256 of the secret.
    pub hash: Vec<u8>,
    /// When it began.
    pub created_ms: i64,
    /// When its use was last noted. Absent: never.
    pub last_used_ms: Option<i64>,
    /// When it ends.
    pub expires_ms: i64,
}

/// A sign-in link that was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRow {
    /// Public; never the secret.
    pub id: String,
    /// Who signs in with it.
    pub user: String,
    /// SHA-256 of the secret.
    pub hash: Vec<u8>,
    /// When it ends.
    pub expires_ms: i64,
}

/// The tables of users, inside a transaction. An insert under an id that exists,
/// or for a user that does not, is an error.
pub trait UserRows {
    /// The user with this id.
    fn user(&self, id: &str) -> anyhow::Result<Option<UserRow>>;
    /// All users, by id.
    fn users(&self) -> anyhow::Result<Vec<UserRow>>;
    /// Adds a user.
    fn insert_user(&self, user: &UserRow) -> anyhow::Result<()>;
    /// Disables a user from then on, or enables it.
    fn set_disabled(&self, user: &str, since_ms: Option<i64>) -> anyhow::Result<()>;

    /// The token with this id, also a revoked one.
    fn token(&self, id: &str) -> anyhow::Result<Option<TokenRow>>;
    /// The tokens of one user, or of all; oldest first, then by id.
    fn tokens(&self, user: Option<&str>) -> anyhow::Result<Vec<TokenRow>>;
    /// Adds a token.
    fn insert_token(&self, token: &TokenRow) -> anyhow::Result<()>;
    /// Notes the use of a token.
    fn set_token_used(&self, id: &str, at_ms: i64) -> anyhow::Result<()>;
    /// Revokes a token; the first time counts. False: there is no such token.
    fn revoke_token(&self, id: &str, at_ms: i64) -> anyhow::Result<bool>;

    /// The session with this id, also an expired one.
    fn session(&self, id: &str) -> anyhow::Result<Option<SessionRow>>;
    /// The sessions of one user, or of all, also expired ones; oldest first, then by id.
    fn sessions(&self, user: Option<&str>) -> anyhow::Result<Vec<SessionRow>>;
    /// Adds a session.
    fn insert_session(&self, session: &SessionRow) -> anyhow::Result<()>;
    /// Notes the use of a session, and moves its end.
    fn set_session_used(&self, id: &str, at_ms: i64, expires_ms: i64) -> anyhow::Result<()>;
    /// Ends a session.
    fn delete_session(&self, id: &str) -> anyhow::Result<()>;
    /// Ends all sessions of a user.
    fn delete_sessions_of(&self, user: &str) -> anyhow::Result<()>;
    /// Deletes the sessions whose end was at this time or before.
    fn delete_sessions_expired(&self, at_ms: i64) -> anyhow::Result<()>;

    /// The link with this id, also an expired one.
    fn link(&self, id: &str) -> anyhow::Result<Option<LinkRow>>;
    /// Adds a link.
    fn insert_link(&self, link: &LinkRow) -> anyhow::Result<()>;
    /// Ends a link.
    fn delete_link(&self, id: &str) -> anyhow::Result<()>;
    /// Ends all links of a user.
    fn delete_links_of(&self, user: &str) -> anyhow::Result<()>;
    /// Deletes the links that have expired at this time.
    fn delete_links_expired(&self, at_ms: i64) -> anyhow::Result<()>;
}
