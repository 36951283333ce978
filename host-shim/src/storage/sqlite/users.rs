//! The tables of users in the database file.

use rusqlite::types::Type;
use rusqlite::{Row, params};

use super::tables::SqliteRows;
use crate::storage::tables::users::{LinkRow, SessionRow, TokenKind, TokenRow, UserRow, UserRows};

type Sql<T> = rusqlite::Result<T>;

/// Migration steps of the module `users`, in order; a published one is never
/// edited.
pub(super) const STEPS: &[&str] = &[
    "
CREATE TABLE users (
    id TEXT PRIMARY KEY,
    automatic INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    disabled_at INTEGER
) STRICT;
CREATE TABLE user_tokens (
    id TEXT PRIMARY KEY,
    user TEXT NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    hash BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE INDEX user_tokens_by_user ON user_tokens (user, created_at);
CREATE TABLE user_sessions (
    id TEXT PRIMARY KEY,
    user TEXT NOT NULL REFERENCES users (id),
    hash BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX user_sessions_by_end ON user_sessions (expires_at);
CREATE TABLE sign_in_links (
    id TEXT PRIMARY KEY,
    user TEXT NOT NULL REFERENCES users (id),
    hash BLOB NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
",
    "
ALTER TABLE user_tokens ADD COLUMN kind TEXT NOT NULL DEFAULT 'user';
ALTER TABLE user_tokens ADD COLUMN thread TEXT;
ALTER TABLE user_sessions ADD COLUMN last_used_at INTEGER;
",
];

const USER: &str = "id, automatic, created_at, disabled_at";

fn user_row(row: &Row<'_>) -> Sql<UserRow> {
    Ok(UserRow { id: row.get(0)?, automatic: row.get(1)?, created_ms: row.get(2)?, disabled_ms: row.get(3)? })
}

const TOKEN: &str = "id, user, kind, thread, name, hash, created_at, last_used_at, revoked_at";

fn token_row(row: &Row<'_>) -> Sql<TokenRow> {
    Ok(TokenRow {
        id: row.get(0)?,
        user: row.get(1)?,
        kind: token_kind(row, 2)?,
        thread: row.get(3)?,
        name: row.get(4)?,
        hash: row.get(5)?,
        created_ms: row.get(6)?,
        last_used_ms: row.get(7)?,
        revoked_ms: row.get(8)?,
    })
}

/// A kind that this program does not know is damage: a newer program's tables
/// are refused when they are opened.
fn token_kind(row: &Row<'_>, column: usize) -> Sql<TokenKind> {
    let text = row.get_ref(column)?.as_str()?;
    let unknown = || format!("there is no kind of token {text:?}").into();
    TokenKind::parse(text).ok_or_else(|| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, unknown()))
}

const SESSION: &str = "id, user, hash, created_at, last_used_at, expires_at";

fn session_row(row: &Row<'_>) -> Sql<SessionRow> {
    Ok(SessionRow {
        id: row.get(0)?,
        user: row.get(1)?,
        hash: row.get(2)?,
        created_ms: row.get(3)?,
        last_used_ms: row.get(4)?,
        expires_ms: row.get(5)?,
    })
}

fn link_row(row: &Row<'_>) -> Sql<LinkRow> {
    Ok(LinkRow { id: row.get(0)?, user: row.get(1)?, hash: row.get(2)?, expires_ms: row.get(3)? })
}

impl UserRows for SqliteRows<'_> {
    fn user(&self, id: &str) -> anyhow::Result<Option<UserRow>> {
        self.one(&format!("SELECT {USER} FROM users WHERE id = ?"), [id], user_row)
    }

    fn users(&self) -> anyhow::Result<Vec<UserRow>> {
        self.all(&format!("SELECT {USER} FROM users ORDER BY id"), [], user_row)
    }

    fn insert_user(&self, u: &UserRow) -> anyhow::Result<()> {
        let sql = format!("INSERT INTO users ({USER}) VALUES (?, ?, ?, ?)");
        self.set(&sql, params![u.id, u.automatic, u.created_ms, u.disabled_ms])
    }

    fn set_disabled(&self, user: &str, since_ms: Option<i64>) -> anyhow::Result<()> {
        self.set("UPDATE users SET disabled_at = ? WHERE id = ?", params![since_ms, user])
    }

    fn token(&self, id: &str) -> anyhow::Result<Option<TokenRow>> {
        self.one(&format!("SELECT {TOKEN} FROM user_tokens WHERE id = ?"), [id], token_row)
    }

    fn tokens(&self, user: Option<&str>) -> anyhow::Result<Vec<TokenRow>> {
        let sql = format!("SELECT {TOKEN} FROM user_tokens WHERE ?1 IS NULL OR user = ?1 ORDER BY created_at, id");
        self.all(&sql, [user], token_row)
    }

    fn insert_token(&self, t: &TokenRow) -> anyhow::Result<()> {
        let sql = format!("INSERT INTO user_tokens ({TOKEN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
        let kind = t.kind.as_str();
        let row = params![t.id, t.user, kind, t.thread, t.name, t.hash, t.created_ms, t.last_used_ms, t.revoked_ms];
        self.set(&sql, row)
    }

    fn set_token_used(&self, id: &str, at_ms: i64) -> anyhow::Result<()> {
        self.set("UPDATE user_tokens SET last_used_at = ? WHERE id = ?", params![at_ms, id])
    }

    fn revoke_token(&self, id: &str, at_ms: i64) -> anyhow::Result<bool> {
        let sql = "UPDATE user_tokens SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?";
        Ok(self.change(sql, params![at_ms, id])? == 1)
    }

    fn session(&self, id: &str) -> anyhow::Result<Option<SessionRow>> {
        self.one(&format!("SELECT {SESSION} FROM user_sessions WHERE id = ?"), [id], session_row)
    }

    fn sessions(&self, user: Option<&str>) -> anyhow::Result<Vec<SessionRow>> {
        let sql = format!("SELECT {SESSION} FROM user_sessions WHERE ?1 IS NULL OR user = ?1 ORDER BY created_at, id");
        self.all(&sql, [user], session_row)
    }

    fn insert_session(&self, s: &SessionRow) -> anyhow::Result<()> {
        let sql = format!("INSERT INTO user_sessions ({SESSION}) VALUES (?, ?, ?, ?, ?, ?)");
        self.set(&sql, params![s.id, s.user, s.hash, s.created_ms, s.last_used_ms, s.expires_ms])
    }

    fn set_session_used(&self, id: &str, at_ms: i64, expires_ms: i64) -> anyhow::Result<()> {
        let sql = "UPDATE user_sessions SET last_used_at = ?, expires_at = ? WHERE id = ?";
        self.set(sql, params![at_ms, expires_ms, id])
    }

    fn delete_session(&self, id: &str) -> anyhow::Result<()> {
        self.set("DELETE FROM user_sessions WHERE id = ?", [id])
    }

    fn delete_sessions_of(&self, user: &str) -> anyhow::Result<()> {
        self.set("DELETE FROM user_sessions WHERE user = ?", [user])
    }

    fn delete_sessions_expired(&self, at_ms: i64) -> anyhow::Result<()> {
        self.set("DELETE FROM user_sessions WHERE expires_at <= ?", [at_ms])
    }

    fn link(&self, id: &str) -> anyhow::Result<Option<LinkRow>> {
        self.one("SELECT id, user, hash, expires_at FROM sign_in_links WHERE id = ?", [id], link_row)
    }

    fn insert_link(&self, l: &LinkRow) -> anyhow::Result<()> {
        let sql = "INSERT INTO sign_in_links (id, user, hash, expires_at) VALUES (?, ?, ?, ?)";
        self.set(sql, params![l.id, l.user, l.hash, l.expires_ms])
    }

    fn delete_link(&self, id: &str) -> anyhow::Result<()> {
        self.set("DELETE FROM sign_in_links WHERE id = ?", [id])
    }

    fn delete_links_of(&self, user: &str) -> anyhow::Result<()> {
        self.set("DELETE FROM sign_in_links WHERE user = ?", [user])
    }

    fn delete_links_expired(&self, at_ms: i64) -> anyhow::Result<()> {
        self.set("DELETE FROM sign_in_links WHERE expires_at <= ?", [at_ms])
    }
}
