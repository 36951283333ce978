//! Tables that an earlier program made, opened by this one.

use std::sync::Arc;

use agent_teams_host::storage::database::Database;
use agent_teams_host::storage::tables::users::TokenRow;
use agent_teams_host::storage::{SqliteTables, Tables};
use agent_teams_tests::clock::FakeClock;

use crate::tables::{session, token};

#[test]
fn tokens_and_sessions_of_the_first_tables_are_kept() {
    crate::run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("test.db");
        let db = Database::open(&file).unwrap();
        db.migrate("users", &[FIRST]).unwrap();
        db.write(|conn| Ok(conn.execute_batch(ROWS)?)).await.unwrap();
        let tables: Tables = SqliteTables::new(db, Arc::new(FakeClock::default())).unwrap().into();
        let kept = TokenRow { last_used_ms: Some(6), revoked_ms: Some(7), ..token("t", "ada", 5) };
        assert_eq!(tables.read(|rows| rows.tokens(None)).unwrap(), [kept]);
        assert_eq!(tables.read(|rows| rows.sessions(None)).unwrap(), [session("s", "ada", 9)]);
    });
}

/// The first step of the tables of users, as it was published; and rows in them.
const FIRST: &str = "
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
";
const ROWS: &str = "
INSERT INTO users VALUES ('ada', 0, 1, NULL);
INSERT INTO user_tokens VALUES ('t', 'ada', 'name', x'0102', 5, 6, 7);
INSERT INTO user_sessions VALUES ('s', 'ada', x'03', 1, 9);
";
