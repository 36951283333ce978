//! Users, their tokens, sessions and sign-in links. Times are milliseconds since
//! 1970. Secrets are stored as their SHA-256 alone.

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserRow {
    pub id: String,
    /// The first start made it by itself.
    pub automatic: bool,
    pub created_ms: i64,
    /// Absent: the user is enabled.
    pub disabled_ms: Option<i64>,
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    pub id: String,
    pub user: String,
    pub name: String,
    pub hash: Vec<u8>,
    pub created_ms: i64,
    pub last_used_ms: Option<i64>,
    /// Absent: it is valid.
    pub revoked_ms: Option<i64>,
}

/// A session of a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    pub id: String,
    pub user: String,
    pub hash: Vec<u8>,
    pub created_ms: i64,
    pub expires_ms: i64,
}

/// A sign-in link that was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRow {
    pub id: String,
    pub user: String,
    pub hash: Vec<u8>,
    pub expires_ms: i64,
}

/// The tables of users, inside a transaction. An insert under an id that exists,
/// or for a user that does not, is an error.
pub trait UserRows {
    fn user(&self, id: &str) -> anyhow::Result<Option<UserRow>>;
    /// All users, by id.
    fn users(&self) -> anyhow::Result<Vec<UserRow>>;
    fn insert_user(&self, user: &UserRow) -> anyhow::Result<()>;
    /// Disables a user from then on, or enables it.
    fn set_disabled(&self, user: &str, since_ms: Option<i64>) -> anyhow::Result<()>;

    fn token(&self, id: &str) -> anyhow::Result<Option<TokenRow>>;
    /// The tokens of one user, or of all; oldest first, then by id.
    fn tokens(&self, user: Option<&str>) -> anyhow::Result<Vec<TokenRow>>;
    fn insert_token(&self, token: &TokenRow) -> anyhow::Result<()>;
    fn set_token_used(&self, id: &str, at_ms: i64) -> anyhow::Result<()>;
    /// Revokes a token; the first time counts. False: there is no such token.
    fn revoke_token(&self, id: &str, at_ms: i64) -> anyhow::Result<bool>;

    fn session(&self, id: &str) -> anyhow::Result<Option<SessionRow>>;
    fn insert_session(&self, session: &SessionRow) -> anyhow::Result<()>;
    fn delete_session(&self, id: &str) -> anyhow::Result<()>;
    fn delete_sessions_of(&self, user: &str) -> anyhow::Result<()>;
    /// Deletes the sessions that have expired at this time.
    fn delete_sessions_expired(&self, at_ms: i64) -> anyhow::Result<()>;

    fn link(&self, id: &str) -> anyhow::Result<Option<LinkRow>>;
    fn insert_link(&self, link: &LinkRow) -> anyhow::Result<()>;
    fn delete_link(&self, id: &str) -> anyhow::Result<()>;
    fn delete_links_of(&self, user: &str) -> anyhow::Result<()>;
    /// Deletes the links that have expired at this time.
    fn delete_links_expired(&self, at_ms: i64) -> anyhow::Result<()>;
}
