//! Users, their tokens, sessions and sign-in links. Times are milliseconds since
//! 1970. Secrets are stored as their SHA-256 alone.

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

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// Public; never the secret.
    pub id: String,
    /// Whose it is.
    pub user: String,
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
    /// Adds a session.
    fn insert_session(&self, session: &SessionRow) -> anyhow::Result<()>;
    /// Ends a session.
    fn delete_session(&self, id: &str) -> anyhow::Result<()>;
    /// Ends all sessions of a user.
    fn delete_sessions_of(&self, user: &str) -> anyhow::Result<()>;
    /// Deletes the sessions that have expired at this time.
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
