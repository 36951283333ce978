use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::storage::SqliteTables;
use crate::storage::database::{Database, outcome_unknown};

const START: u64 = 1_800_000_000_000;

struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

struct Fixture {
    folder: tempfile::TempDir,
    clock: Arc<TestClock>,
    db: Database,
    users: Arc<Users>,
}

async fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(TestClock(AtomicU64::new(START)));
    let db = Database::open(&folder.path().join("test.db")).unwrap();
    let tables = SqliteTables::open(db.clone(), clock.clone()).await.unwrap();
    // Opening again changes nothing.
    SqliteTables::open(db.clone(), clock.clone()).await.unwrap();
    let users = Users::new(tables, clock.clone());
    Fixture { folder, clock, db, users }
}

impl Fixture {
    fn pass(&self, ms: i64) {
        self.clock.0.fetch_add(ms as u64, Ordering::SeqCst);
    }
    /// Signs a user in.
    async fn session(&self, user: &str) -> NewSession {
        self.users.redeem(&self.users.sign_in_link(user).await.unwrap().secret).await.unwrap()
    }
    /// Waits until the writes that run in the background are done.
    async fn noted(&self) {
        self.users.tables.write(|_| Ok(())).await.unwrap();
    }
}

#[test]
fn ids_have_one_form() {
    for good in ["a", "local", "0", "ann.b-c_d", &"a".repeat(64)] {
        assert!(check_id(good).is_ok(), "{good}");
    }
    for bad in ["", "A", ".", "..", "../x", "a/b", "a\\b", "-a", "_a", "a b", "研究员", "a\0", "%2e", &"a".repeat(65)]
    {
        assert!(matches!(check_id(bad), Err(UserError::BadId(_))), "{bad}");
    }
}

#[tokio::test]
async fn the_first_start_makes_the_local_user_once() {
    let f = fixture().await;
    assert!(f.users.first_start().await.unwrap());
    assert!(!f.users.first_start().await.unwrap());
    let users = f.users.list().unwrap();
    assert_eq!(users.len(), 1);
    assert_eq!((users[0].id.as_str(), users[0].enabled, users[0].automatic), (LOCAL_USER, true, true));
    assert_eq!(users[0].created_at, "2027-01-15T08:00:00.000Z");
    // It alone opens no door to other machines.
    assert!(!f.users.any_added().unwrap());
    f.users.add("ann").await.unwrap();
    assert!(f.users.any_added().unwrap());
    f.users.set_enabled("ann", false).await.unwrap();
    assert!(!f.users.any_added().unwrap());
}

#[tokio::test]
async fn adding_and_disabling_are_refused_by_name() {
    let f = fixture().await;
    f.users.add("ann").await.unwrap();
    assert!(matches!(f.users.add("ann").await, Err(UserError::Exists(_))));
    assert!(matches!(f.users.add("Ann").await, Err(UserError::BadId(_))));
    assert!(matches!(f.users.set_enabled("bob", false).await, Err(UserError::NoUser(_))));
    assert!(matches!(f.users.add_token("bob", "x").await, Err(UserError::NoUser(_))));
    assert!(matches!(f.users.sign_in_link("bob").await, Err(UserError::NoUser(_))));
    assert!(!f.users.set_enabled("ann", false).await.unwrap().enabled);
    assert!(matches!(f.users.add_token("ann", "x").await, Err(UserError::Disabled(_))));
    assert!(matches!(f.users.sign_in_link("ann").await, Err(UserError::Disabled(_))));
    assert!(!f.users.enabled("ann").unwrap());
    assert!(!f.users.enabled("bob").unwrap());
    assert!(f.users.set_enabled("ann", true).await.unwrap().enabled);
    assert!(f.users.enabled("ann").unwrap());
}

#[tokio::test]
async fn what_cannot_be_read_is_neither_disabled_nor_signed_out() {
    let f = fixture().await;
    f.users.add("ann").await.unwrap();
    let token = f.users.add_token("ann", "x").await.unwrap();
    let identity = f.users.authenticate_token(&token.secret).unwrap();
    f.noted().await;
    // A commit whose outcome is unknown, and then one that would settle it.
    f.db.fail_commits(&[rusqlite::ffi::SQLITE_IOERR_FSYNC, rusqlite::ffi::SQLITE_IOERR_WRITE]);
    let unknown = f.users.add("bob").await.unwrap_err();
    assert!(matches!(&unknown, UserError::Database(error) if outcome_unknown(error)));
    let problem = crate::gateway::Problem::from(unknown);
    assert_eq!((problem.status.as_u16(), problem.code.as_str()), (504, "outcome_unknown"));
    assert!(f.users.enabled("ann").is_err());
    assert!(f.users.still_valid(&identity).is_err());
    assert!(matches!(f.users.authenticate_token(&token.secret), Err(AuthError::Database(_))));
    while f.users.enabled("ann").is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(f.users.enabled("ann").unwrap() && f.users.still_valid(&identity).unwrap());
}

#[tokio::test]
async fn a_token_works_until_it_is_revoked() {
    let f = fixture().await;
    f.users.add("ann").await.unwrap();
    for bad in ["", "   ", "a\nb", &"x".repeat(81)] {
        assert!(matches!(f.users.add_token("ann", bad).await, Err(UserError::BadTokenName)), "{bad}");
    }
    let token = f.users.add_token("ann", &"研".repeat(80)).await.unwrap();
    assert_eq!(f.users.tokens(Some("ann")).unwrap()[0].last_used_at, None);
    let identity = f.users.authenticate_token(&token.secret).unwrap();
    assert_eq!((identity.user.as_str(), identity.via, &identity.id), ("ann", Via::Token, &token.id));
    assert!(f.users.still_valid(&identity).unwrap());
    let used = async || {
        f.noted().await;
        f.users.tokens(None).unwrap()[0].last_used_at.clone().unwrap()
    };
    assert_eq!(used().await, "2027-01-15T08:00:00.000Z");
    f.pass(59_999);
    f.users.authenticate_token(&token.secret).unwrap();
    assert_eq!(used().await, "2027-01-15T08:00:00.000Z");
    f.pass(1);
    f.users.authenticate_token(&token.secret).unwrap();
    assert_eq!(used().await, "2027-01-15T08:01:00.000Z");

    // Another secret under the same id is nobody's.
    let other = f.users.add_token("ann", "two").await.unwrap();
    let forged = format!("att_{}.{}", token.id, other.secret.split_once('.').unwrap().1);
    assert!(matches!(f.users.authenticate_token(&forged), Err(AuthError::Unknown)));

    f.users.revoke_token(&token.id).await.unwrap();
    f.users.revoke_token(&token.id).await.unwrap();
    assert!(matches!(f.users.revoke_token("no").await, Err(UserError::NoToken(_))));
    assert!(matches!(f.users.authenticate_token(&token.secret), Err(AuthError::Unknown)));
    assert!(!f.users.still_valid(&identity).unwrap());
    assert!(f.users.authenticate_token(&other.secret).is_ok());
    assert!(!format!("{other:?}").contains(&other.secret));
}

#[tokio::test]
async fn a_disabled_users_tokens_rest_and_its_sessions_end() {
    let f = fixture().await;
    f.users.add("ann").await.unwrap();
    let token = f.users.add_token("ann", "x").await.unwrap();
    let session = f.users.redeem(&f.users.sign_in_link("ann").await.unwrap().secret).await.unwrap();
    let link = f.users.sign_in_link("ann").await.unwrap();
    let identity = f.users.authenticate_session(&session.secret).unwrap();
    f.users.set_enabled("ann", false).await.unwrap();
    assert!(!f.users.still_valid(&identity).unwrap());
    assert!(matches!(f.users.authenticate_token(&token.secret), Err(AuthError::Disabled)));
    assert!(matches!(f.users.authenticate_session(&session.secret), Err(AuthError::Unknown)));
    f.users.set_enabled("ann", true).await.unwrap();
    assert!(f.users.authenticate_token(&token.secret).is_ok());
    assert!(matches!(f.users.authenticate_session(&session.secret), Err(AuthError::Unknown)));
    assert!(matches!(f.users.redeem(&link.secret).await, Err(UserError::BadLink)));
}

#[tokio::test]
async fn a_link_works_once_and_for_ten_minutes() {
    let f = fixture().await;
    f.users.add("ann").await.unwrap();
    let link = f.users.sign_in_link("ann").await.unwrap();
    assert_eq!(link.expires_at(), "2027-01-15T08:10:00.000Z");
    assert_eq!(link.address("http://h"), format!("http://h/sign-in#{}", link.secret));
    f.pass(LINK_LIFETIME_MS - 1);
    // Of several that try at the same time, one gets in.
    let tries = (0..8).map(|_| {
        let (users, secret) = (f.users.clone(), link.secret.clone());
        tokio::spawn(async move { users.redeem(&secret).await.is_ok() })
    });
    let mut successes = 0;
    for attempt in tries.collect::<Vec<_>>() {
        successes += usize::from(attempt.await.unwrap());
    }
    assert_eq!(successes, 1);

    let late = f.users.sign_in_link("ann").await.unwrap();
    f.pass(LINK_LIFETIME_MS);
    assert!(matches!(f.users.redeem(&late.secret).await, Err(UserError::BadLink)));
    for bad in [
        "",
        "x",
        &late.secret[1..],
        "0000000000000000.0000000000000000000000000000000000000000000000000000000000000000",
    ] {
        assert!(matches!(f.users.redeem(bad).await, Err(UserError::BadLink)), "{bad}");
    }
    // A newer link ends an older one.
    let older = f.users.sign_in_link("ann").await.unwrap();
    f.users.sign_in_link("ann").await.unwrap();
    assert!(matches!(f.users.redeem(&older.secret).await, Err(UserError::BadLink)));
}

#[tokio::test]
async fn a_session_ends_by_sign_out_and_by_time() {
    let f = fixture().await;
    f.users.add("ann").await.unwrap();
    let (one, two) = (f.session("ann").await, f.session("ann").await);
    let identity = f.users.authenticate_session(&one.secret).unwrap();
    f.users.sign_out(&identity).await.unwrap();
    f.users.sign_out(&identity).await.unwrap();
    assert!(matches!(f.users.authenticate_session(&one.secret), Err(AuthError::Unknown)));
    let identity = f.users.authenticate_session(&two.secret).unwrap();
    f.pass(SESSION_LIFETIME_MS - 1);
    assert!(f.users.still_valid(&identity).unwrap());
    f.pass(1);
    assert!(!f.users.still_valid(&identity).unwrap());
    assert!(matches!(f.users.authenticate_session(&two.secret), Err(AuthError::Unknown)));
    // A session is no token and a token is no session.
    assert!(matches!(f.users.authenticate_token(&two.secret), Err(AuthError::Unknown)));
}

const DAY: i64 = 24 * 60 * 60 * 1000;

#[tokio::test]
async fn a_session_that_is_used_stays_and_one_that_is_not_ends() {
    let f = fixture().await;
    f.users.add("ann").await.unwrap();
    let (used, idle) = (f.session("ann").await, f.session("ann").await);
    let shown = async |at: usize| {
        f.noted().await;
        let session = f.users.sessions(Some("ann")).unwrap().remove(at);
        (session.last_used_at[..10].to_owned(), session.expires_at[..10].to_owned())
    };
    let at = f.users.sessions(Some("ann")).unwrap().iter().position(|s| used.secret.starts_with(&s.id)).unwrap();
    // Within a day nothing is written.
    f.pass(DAY);
    f.users.authenticate_session(&used.secret).unwrap();
    assert_eq!(shown(at).await, ("2027-01-15".into(), "2027-02-14".into()));
    f.pass(1);
    f.users.authenticate_session(&used.secret).unwrap();
    assert_eq!(shown(at).await, ("2027-01-16".into(), "2027-02-15".into()));
    f.pass(29 * DAY);
    let identity = f.users.authenticate_session(&used.secret).unwrap();
    f.noted().await;
    assert!(matches!(f.users.authenticate_session(&idle.secret), Err(AuthError::Unknown)));
    assert_eq!(f.users.sessions(Some("ann")).unwrap().len(), 1, "an ended one is not listed");
    f.pass(29 * DAY);
    assert!(f.users.still_valid(&identity).unwrap());
    f.pass(DAY);
    assert!(matches!(f.users.authenticate_session(&used.secret), Err(AuthError::Unknown)));
}

#[tokio::test]
async fn no_session_lasts_longer_than_the_bound() {
    let f = fixture().await;
    f.users.add("ann").await.unwrap();
    let session = f.session("ann").await;
    for _ in 0..399 {
        f.pass(DAY + 1);
        f.users.authenticate_session(&session.secret).unwrap();
        f.noted().await;
    }
    let listed = f.users.sessions(None).unwrap();
    assert_eq!(listed[0].expires_at, "2028-02-19T08:00:00.000Z", "400 days after it began");
    f.pass(DAY - 399);
    assert!(matches!(f.users.authenticate_session(&session.secret), Err(AuthError::Unknown)));
}

#[tokio::test]
async fn a_request_does_not_wait_until_its_use_is_noted() {
    let f = fixture().await;
    f.users.add("ann").await.unwrap();
    let (token, session) = (f.users.add_token("ann", "x").await.unwrap(), f.session("ann").await);
    f.pass(DAY + 1);
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let held = f.db.queue(move |_| Ok(wait.recv()?));
    f.users.authenticate_token(&token.secret).unwrap();
    f.users.authenticate_session(&session.secret).unwrap();
    go.send(()).unwrap();
    held.await.unwrap();
    f.noted().await;
    assert!(f.users.tokens(None).unwrap()[0].last_used_at.is_some());
    assert_eq!(f.users.sessions(None).unwrap()[0].last_used_at, "2027-01-16T08:00:00.001Z");
}

#[tokio::test]
async fn a_clock_that_jumps_ahead_ends_no_session_for_good() {
    let f = fixture().await;
    for user in ["ann", "bob"] {
        f.users.add(user).await.unwrap();
    }
    let session = f.session("ann").await;
    f.pass(59 * DAY);
    assert!(matches!(f.users.authenticate_session(&session.secret), Err(AuthError::Unknown)));
    f.session("bob").await;
    f.pass(-59 * DAY);
    assert_eq!(f.users.authenticate_session(&session.secret).unwrap().user, "ann");
    // One that ended long ago is gone.
    f.pass(60 * DAY);
    f.session("bob").await;
    f.pass(-60 * DAY);
    assert!(matches!(f.users.authenticate_session(&session.secret), Err(AuthError::Unknown)));
}

#[tokio::test]
async fn sessions_end_by_name_by_user_and_all_but_one() {
    let f = fixture().await;
    for user in ["ann", "bob"] {
        f.users.add(user).await.unwrap();
    }
    let mut ann = Vec::new();
    for _ in 0..4 {
        ann.push(f.users.authenticate_session(&f.session("ann").await.secret).unwrap().id);
    }
    let bob = f.users.authenticate_session(&f.session("bob").await.secret).unwrap().id;
    let end = async |user, ending| f.users.end_sessions(user, ending).await;
    let refused = end(Some("ann"), Ending::One(bob.clone())).await.unwrap_err();
    assert!(matches!(refused, UserError::NoSession(id) if id == bob), "another user's is none");
    assert!(matches!(end(None, Ending::One("no".into())).await, Err(UserError::NoSession(_))));
    assert!(matches!(end(Some("cy"), Ending::All).await, Err(UserError::NoUser(_))));
    assert!(matches!(f.users.sessions(Some("cy")), Err(UserError::NoUser(_))));
    assert_eq!(end(Some("ann"), Ending::One(ann[0].clone())).await.unwrap(), 1);
    assert_eq!(end(Some("ann"), Ending::Others(ann[1].clone())).await.unwrap(), 2);
    let left: Vec<String> = f.users.sessions(None).unwrap().into_iter().map(|s| s.id).collect();
    assert!(left.len() == 2 && left.contains(&ann[1]) && left.contains(&bob), "{left:?}");
    assert_eq!(end(Some("ann"), Ending::All).await.unwrap(), 1);
    assert_eq!(end(None, Ending::One(bob)).await.unwrap(), 1);
    assert!(f.users.sessions(None).unwrap().is_empty());
}

#[tokio::test]
async fn only_a_users_own_token_lets_in() {
    let f = fixture().await;
    f.users.add("ann").await.unwrap();
    for kind in [TokenKind::User, TokenKind::Conversation, TokenKind::Seat] {
        let secret = secret::Secret::new("att_").unwrap();
        let row = crate::storage::tables::users::TokenRow {
            id: secret.id.clone(),
            user: "ann".into(),
            kind,
            thread: Some("t".into()),
            name: "x".into(),
            hash: secret.hash.to_vec(),
            created_ms: 1,
            last_used_ms: None,
            revoked_ms: None,
        };
        f.users.tables.write(move |rows| rows.insert_token(&row)).await.unwrap();
        let identity = Identity { user: "ann".into(), via: Via::Token, id: secret.id };
        let user = kind == TokenKind::User;
        assert_eq!(f.users.authenticate_token(&secret.text).is_ok(), user, "{kind:?}");
        assert_eq!(f.users.still_valid(&identity).unwrap(), user, "{kind:?}");
        if !user {
            assert!(matches!(f.users.authenticate_token(&secret.text), Err(AuthError::Unknown)));
        }
    }
}

#[tokio::test]
async fn the_command_lines_token_is_new_in_each_process_and_ends_with_it() {
    let f = fixture().await;
    let file = f.folder.path().join(CLI_TOKEN_FILE);
    f.users.admit_cli(f.folder.path()).await.unwrap();
    assert!(!file.exists(), "without the local user there is none");

    f.users.first_start().await.unwrap();
    f.users.admit_cli(f.folder.path()).await.unwrap();
    let first = std::fs::read_to_string(&file).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let identity = f.users.authenticate_token(first.trim()).unwrap();
    assert_eq!((identity.user.as_str(), identity.via), (LOCAL_USER, Via::Token));
    assert!(f.users.still_valid(&identity).unwrap());
    assert!(f.users.tokens(None).unwrap().is_empty(), "it is stored nowhere");
    f.users.set_enabled(LOCAL_USER, false).await.unwrap();
    assert!(matches!(f.users.authenticate_token(first.trim()), Err(AuthError::Disabled)));
    assert!(!f.users.still_valid(&identity).unwrap());
    f.users.set_enabled(LOCAL_USER, true).await.unwrap();

    // The next process, after a kill.
    let tables = SqliteTables::open(f.db.clone(), f.clock.clone()).await.unwrap();
    let next = Users::new(tables, f.clock.clone());
    next.admit_cli(f.folder.path()).await.unwrap();
    let second = std::fs::read_to_string(&file).unwrap();
    assert!(next.authenticate_token(second.trim()).is_ok());
    assert!(matches!(next.authenticate_token(first.trim()), Err(AuthError::Unknown)));
    assert!(!next.still_valid(&identity).unwrap());
    f.users.dismiss_cli();
    assert!(file.exists(), "the newer process's stays");
    next.dismiss_cli();
    assert!(!file.exists());
}

#[tokio::test]
async fn the_token_that_an_earlier_version_left_is_ended() {
    let f = fixture().await;
    f.users.first_start().await.unwrap();
    let left = f.users.add_token(LOCAL_USER, "cli").await.unwrap();
    let own = f.users.add_token(LOCAL_USER, "cli").await.unwrap();
    std::fs::write(f.folder.path().join(CLI_TOKEN_FILE), format!("{}\n", left.secret)).unwrap();
    f.users.admit_cli(f.folder.path()).await.unwrap();
    assert!(matches!(f.users.authenticate_token(&left.secret), Err(AuthError::Unknown)));
    assert!(f.users.authenticate_token(&own.secret).is_ok(), "a person's own token of that name stays");
}

#[tokio::test]
async fn no_secret_is_stored() {
    let f = fixture().await;
    f.users.add("ann").await.unwrap();
    let token = f.users.add_token("ann", "x").await.unwrap();
    let session = f.users.redeem(&f.users.sign_in_link("ann").await.unwrap().secret).await.unwrap();
    let link = f.users.sign_in_link("ann").await.unwrap();
    let mut stored = Vec::new();
    for entry in std::fs::read_dir(f.folder.path()).unwrap() {
        stored.extend(std::fs::read(entry.unwrap().path()).unwrap());
    }
    let holds = |text: &str| stored.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds(&token.id), "the files that were looked at hold the tokens");
    for secret in [&token.secret, &session.secret, &link.secret] {
        let proof = secret.split_once('.').unwrap().1;
        assert!(!holds(proof));
        let bits: Vec<u8> = (0..64).step_by(2).map(|at| u8::from_str_radix(&proof[at..at + 2], 16).unwrap()).collect();
        assert!(!stored.windows(32).any(|window| window == bits));
    }
}
