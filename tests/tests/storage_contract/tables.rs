//! The host's own tables (`storage::tables`), held against every backend: a rule
//! a test, and random transactions that both must answer alike.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use agent_teams_host::storage::database::Database;
use agent_teams_host::storage::tables::agents::{Approval, MessageRow, Role, RunStatus, StoredCall, StoredQuestion};
use agent_teams_host::storage::tables::users::{LinkRow, SessionRow, TokenKind, TokenRow, UserRow};
use agent_teams_host::storage::tables::{AgentRows, Rows, outcome_unknown, temporary};
use agent_teams_host::storage::{MemoryTables, SqliteTables, Tables};
use agent_teams_tests::clock::FakeClock;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

/// Tables under test, their clock, and what must live as long as them.
pub struct Subject {
    tables: Tables,
    clock: FakeClock,
    _folder: Option<tempfile::TempDir>,
}

impl std::ops::Deref for Subject {
    type Target = Tables;
    fn deref(&self) -> &Tables {
        &self.tables
    }
}

fn memory() -> Subject {
    let clock = FakeClock::default();
    Subject { tables: Tables::new(MemoryTables::new(Arc::new(clock.clone()))), clock, _folder: None }
}

fn sqlite() -> Subject {
    let (clock, folder) = (FakeClock::default(), tempfile::tempdir().unwrap());
    let db = Database::open(&folder.path().join("test.db")).unwrap();
    let tables = SqliteTables::new(db, Arc::new(clock.clone())).unwrap();
    Subject { tables: tables.into(), clock, _folder: Some(folder) }
}

macro_rules! contract {
    ($($name:ident)*) => {
        mod on_memory {
            $(#[test] fn $name() { crate::run(super::$name(super::memory())); })*
        }
        mod on_sqlite {
            $(#[test] fn $name() { crate::run(super::$name(super::sqlite())); })*
        }
    };
}

contract! {
    reads_write_nothing
    a_failed_write_is_undone_alone
    a_write_happens_also_when_its_caller_leaves
    users_have_one_id_and_come_by_it
    tokens_are_listed_by_age_and_revoked_once
    a_token_keeps_its_kind_and_its_conversation
    sessions_are_listed_by_age_and_their_end_moves
    sessions_and_links_end_by_user_and_by_time
    conversations_belong_to_their_owner
    a_run_is_the_active_one_until_it_ends
    direct_runs_are_counted_while_they_work
    attempts_and_progress_are_counted
    a_key_is_inserted_once
    messages_are_read_both_ways
    sizes_are_bytes
    an_open_question_is_its_message
    a_decision_is_made_once
}

fn user(id: &str) -> UserRow {
    UserRow { id: id.into(), automatic: false, created_ms: 1, disabled_ms: None }
}

pub fn token(id: &str, user: &str, created_ms: i64) -> TokenRow {
    let (id, user, name) = (id.into(), user.into(), "name".into());
    let (kind, thread) = (TokenKind::User, None);
    TokenRow { id, user, kind, thread, name, hash: vec![1, 2], created_ms, last_used_ms: None, revoked_ms: None }
}

pub fn session(id: &str, user: &str, expires_ms: i64) -> SessionRow {
    let (id, user) = (id.into(), user.into());
    SessionRow { id, user, hash: vec![3], created_ms: 1, last_used_ms: None, expires_ms }
}

fn message(number: i64, id: &str, role: Role, text: &str) -> MessageRow {
    MessageRow { number, id: id.into(), role, text: text.into(), run: "r".into(), ..MessageRow::default() }
}

/// The conversation `id` of ada, with its key.
fn thread(rows: &dyn AgentRows, id: &str) -> anyhow::Result<i64> {
    rows.insert_thread("ada", id, "agent", "title")?;
    Ok(rows.thread("ada", id)?.expect("it was inserted").key)
}

async fn write<T: Send + 'static>(
    tables: &Tables,
    f: impl FnOnce(&dyn Rows) -> anyhow::Result<T> + Send + 'static,
) -> T {
    tables.write(f).await.unwrap()
}

async fn reads_write_nothing(tables: Subject) {
    tables.read(|rows| rows.insert_user(&user("ada"))).unwrap_err();
    assert!(tables.read(|rows| rows.users()).unwrap().is_empty());
    assert_eq!(tables.read(|_| Ok(7)).unwrap(), 7);
    let error = tables.read(|_| -> anyhow::Result<()> { anyhow::bail!("by the caller") }).unwrap_err();
    assert_eq!(error.to_string(), "by the caller");
    tables.probe().await.unwrap();
    assert!(!tables.last_write_failed() && !tables.writer().has_ended());
}

async fn a_failed_write_is_undone_alone(tables: Subject) {
    let good = tables.queue(|rows| rows.insert_user(&user("ada")));
    let bad = tables.queue(|rows| {
        rows.insert_user(&user("bo"))?;
        // A write sees what was queued before it.
        rows.insert_user(&user("ada"))
    });
    let last = tables.queue(|rows| rows.insert_user(&user("cy")));
    good.await.unwrap();
    bad.await.unwrap_err();
    last.await.unwrap();
    let ids: Vec<String> = tables.read(|rows| rows.users()).unwrap().into_iter().map(|u| u.id).collect();
    assert_eq!(ids, ["ada", "cy"]);
}

async fn a_write_happens_also_when_its_caller_leaves(tables: Subject) {
    drop(tables.queue(|rows| rows.insert_user(&user("ada"))));
    write(&tables, |rows| rows.insert_user(&user("bo"))).await;
    assert_eq!(tables.read(|rows| rows.users()).unwrap().len(), 2);
}

async fn users_have_one_id_and_come_by_it(tables: Subject) {
    for id in ["b", "a", "ab"] {
        write(&tables, move |rows| rows.insert_user(&user(id))).await;
    }
    tables.write(|rows| rows.insert_user(&user("a"))).await.unwrap_err();
    write(&tables, |rows| rows.set_disabled("b", Some(9))).await;
    write(&tables, |rows| rows.set_disabled("none", Some(9))).await;
    let all = tables.read(|rows| rows.users()).unwrap();
    assert_eq!(all, [user("a"), user("ab"), UserRow { disabled_ms: Some(9), ..user("b") }]);
    write(&tables, |rows| rows.set_disabled("b", None)).await;
    assert_eq!(tables.read(|rows| rows.user("b")).unwrap(), Some(user("b")));
    assert_eq!(tables.read(|rows| rows.user("B")).unwrap(), None);
}

async fn tokens_are_listed_by_age_and_revoked_once(tables: Subject) {
    write(&tables, |rows| {
        rows.insert_user(&user("ada"))?;
        rows.insert_user(&user("bo"))?;
        for (id, of, at) in [("t2", "ada", 5), ("t1", "ada", 5), ("t3", "bo", 1)] {
            rows.insert_token(&token(id, of, at))?;
        }
        Ok(())
    })
    .await;
    tables.write(|rows| rows.insert_token(&token("t1", "bo", 1))).await.unwrap_err();
    tables.write(|rows| rows.insert_token(&token("t4", "unknown", 1))).await.unwrap_err();
    let ids = |of: Option<&str>| -> Vec<String> {
        tables.read(|rows| rows.tokens(of)).unwrap().into_iter().map(|t| t.id).collect()
    };
    assert_eq!(
        (ids(None), ids(Some("ada"))),
        (vec!["t3".into(), "t1".into(), "t2".into()], vec!["t1".into(), "t2".into()])
    );
    let revoked = write(&tables, |rows| {
        rows.set_token_used("t1", 20)?;
        Ok([rows.revoke_token("t1", 30)?, rows.revoke_token("t1", 40)?, rows.revoke_token("none", 40)?])
    })
    .await;
    assert_eq!(revoked, [true, true, false]);
    let stored = tables.read(|rows| rows.token("t1")).unwrap().unwrap();
    assert_eq!(stored, TokenRow { last_used_ms: Some(20), revoked_ms: Some(30), ..token("t1", "ada", 5) });
}

async fn a_token_keeps_its_kind_and_its_conversation(tables: Subject) {
    let rows = [
        TokenRow { kind: TokenKind::Conversation, thread: Some("t".into()), ..token("1", "ada", 1) },
        TokenRow { kind: TokenKind::Seat, thread: Some("t".into()), ..token("2", "ada", 2) },
        TokenRow { kind: TokenKind::User, ..token("3", "ada", 3) },
    ];
    let inserted = rows.clone();
    write(&tables, move |rows| {
        rows.insert_user(&user("ada"))?;
        inserted.iter().try_for_each(|token| rows.insert_token(token))
    })
    .await;
    assert_eq!(tables.read(|rows| rows.tokens(Some("ada"))).unwrap(), rows);
    assert_eq!(tables.read(|rows| rows.token("1")).unwrap().as_ref(), Some(&rows[0]));
}

async fn sessions_are_listed_by_age_and_their_end_moves(tables: Subject) {
    let began = |id: &str, of: &str, created_ms| SessionRow { created_ms, ..session(id, of, 90) };
    write(&tables, move |rows| {
        rows.insert_user(&user("ada"))?;
        rows.insert_user(&user("bo"))?;
        for (id, of, at) in [("s2", "ada", 5), ("s1", "ada", 5), ("s3", "bo", 1)] {
            rows.insert_session(&began(id, of, at))?;
        }
        rows.set_session_used("s1", 40, 95)?;
        rows.set_session_used("none", 40, 95)
    })
    .await;
    let used = SessionRow { last_used_ms: Some(40), expires_ms: 95, ..began("s1", "ada", 5) };
    let of = |user: Option<&str>| tables.read(|rows| rows.sessions(user)).unwrap();
    assert_eq!(of(None), [began("s3", "bo", 1), used.clone(), began("s2", "ada", 5)]);
    assert_eq!(of(Some("ada")), [used.clone(), began("s2", "ada", 5)]);
    assert_eq!(of(Some("cy")), []);
    assert_eq!(tables.read(|rows| rows.session("s1")).unwrap(), Some(used));
    // The end counts where it was moved to.
    write(&tables, |rows| rows.delete_sessions_expired(90)).await;
    let left: Vec<String> = of(None).into_iter().map(|session| session.id).collect();
    assert_eq!(left, ["s1"]);
}

async fn sessions_and_links_end_by_user_and_by_time(tables: Subject) {
    let link =
        |id: &str, user: &str, expires_ms| LinkRow { id: id.into(), user: user.into(), hash: vec![4], expires_ms };
    write(&tables, move |rows| {
        rows.insert_user(&user("ada"))?;
        rows.insert_user(&user("bo"))?;
        for (id, of, until) in [("1", "ada", 10), ("2", "ada", 11), ("3", "bo", 12), ("4", "bo", 13)] {
            rows.insert_session(&session(id, of, until))?;
            rows.insert_link(&link(id, of, until))?;
        }
        Ok(())
    })
    .await;
    tables.write(move |rows| rows.insert_session(&session("1", "bo", 1))).await.unwrap_err();
    tables.write(move |rows| rows.insert_link(&link("9", "unknown", 1))).await.unwrap_err();
    let left = || {
        let of = |id: &str| {
            let (session, link) =
                tables.read(|rows| Ok((rows.session(id)?.is_some(), rows.link(id)?.is_some()))).unwrap();
            assert_eq!(session, link, "{id}");
            session
        };
        ["1", "2", "3", "4"].map(of)
    };
    write(&tables, |rows| rows.delete_sessions_expired(10).and_then(|()| rows.delete_links_expired(10))).await;
    assert_eq!(left(), [false, true, true, true]);
    write(&tables, |rows| rows.delete_session("3").and_then(|()| rows.delete_link("3"))).await;
    write(&tables, |rows| rows.delete_sessions_of("ada").and_then(|()| rows.delete_links_of("ada"))).await;
    assert_eq!(left(), [false, false, false, true]);
    let kept = tables.read(|rows| Ok((rows.session("4")?, rows.link("4")?))).unwrap();
    assert_eq!(kept, (Some(session("4", "bo", 13)), Some(link("4", "bo", 13))));
}

async fn conversations_belong_to_their_owner(tables: Subject) {
    tables.clock.advance(5);
    let now = i64::try_from(tables.clock.now()).unwrap();
    write(&tables, |rows| {
        for (owner, id) in [("ada", "t"), ("bo", "t"), ("ada", "u"), ("ada", "v")] {
            rows.insert_thread(owner, id, "agent", "title")?;
        }
        Ok(())
    })
    .await;
    tables.write(|rows| rows.insert_thread("bo", "t", "other", "")).await.unwrap_err();
    let ids = |owner: &'static str, limit| -> Vec<String> {
        tables.read(|rows| rows.threads(owner, limit)).unwrap().into_iter().map(|t| t.id).collect()
    };
    assert_eq!((ids("ada", 2), ids("bo", 9)), (vec!["v".into(), "u".into()], vec!["t".into()]));
    let t = tables.read(|rows| rows.thread("bo", "t")).unwrap().unwrap();
    assert_eq!((t.owner.as_str(), t.agent.as_str(), t.next_number, t.created_ms), ("bo", "agent", 1, now));
    assert_eq!((&t.active_run, t.open_question), (&None, None));
    assert_eq!(tables.read(|rows| rows.thread_by_key(t.key)).unwrap(), t);
    assert_eq!(tables.read(|rows| rows.thread("cy", "t")).unwrap(), None);
    tables.read(|rows| rows.thread_by_key(t.key + 99)).unwrap_err();
    let numbers = write(&tables, move |rows| Ok([rows.next_number(t.key)?, rows.next_number(t.key)?])).await;
    assert_eq!(numbers, [1, 2]);
}

async fn a_run_is_the_active_one_until_it_ends(tables: Subject) {
    let key = write(&tables, |rows| {
        let key = thread(rows, "t")?;
        rows.insert_run("r1", key, "k1", 1)?;
        Ok(key)
    })
    .await;
    tables.write(move |rows| rows.insert_run("r1", key, "k2", 1)).await.unwrap_err();
    tables.write(move |rows| rows.insert_run("r2", key, "k1", 1)).await.unwrap_err();
    let active = || tables.read(|rows| rows.thread_by_key(key)).unwrap().active_run;
    assert_eq!(active().as_deref(), Some("r1"));
    let run = tables.read(|rows| rows.run("r1")).unwrap().unwrap();
    assert_eq!((run.status, run.attempts, run.model_calls, run.cancel), (RunStatus::Running, 1, 0, false));
    // A run that is not the active one leaves the conversation as it is.
    write(&tables, move |rows| {
        rows.insert_run("r2", key, "k2", 2)?;
        rows.end_run(&run, RunStatus::Failed, Some("why"))
    })
    .await;
    assert_eq!(active().as_deref(), Some("r2"));
    let open: Vec<String> = tables.read(|rows| rows.open_runs()).unwrap().into_iter().map(|r| r.id).collect();
    assert_eq!(open, ["r2"]);
    let failed = tables.read(|rows| rows.run("r1")).unwrap().unwrap();
    assert_eq!((failed.ended(), failed.status, failed.error.as_deref()), (true, RunStatus::Failed, Some("why")));
    write(&tables, |rows| {
        let run = rows.run("r2")?.expect("it was inserted");
        rows.set_cancelled("r2")?;
        rows.set_status("r2", RunStatus::Interrupted)?;
        assert!(rows.run("r2")?.is_some_and(|r| !r.cut));
        rows.set_cut("r2")?;
        assert!(rows.run("r2")?.is_some_and(|r| r.cut));
        assert!(rows.run("r2")?.is_some_and(|r| r.cancel && r.status == RunStatus::Interrupted && !r.ended()));
        rows.end_run(&run, RunStatus::Cancelled, None)
    })
    .await;
    assert_eq!((active(), tables.read(|rows| rows.run("none")).unwrap()), (None, None));
}

async fn direct_runs_are_counted_while_they_work(tables: Subject) {
    write(&tables, |rows| {
        for (n, key) in ["post:1", "post:2", "post:3", "job"].into_iter().enumerate() {
            let at = thread(rows, key)?;
            rows.insert_run(&format!("r{n}"), at, key, 1)?;
        }
        Ok(())
    })
    .await;
    let count = |owner: &'static str| tables.read(|rows| rows.direct_runs(owner)).unwrap();
    let owner = |run: &'static str| tables.read(|rows| rows.direct_owner(run)).unwrap();
    assert_eq!((count("ada"), count("bo")), (3, 0));
    assert_eq!((owner("r0").as_deref(), owner("r3")), (Some("ada"), None));
    write(&tables, |rows| {
        rows.set_status("r0", RunStatus::Interrupted)?;
        let second = rows.run("r1")?.expect("it was inserted");
        rows.end_run(&second, RunStatus::Succeeded, None)
    })
    .await;
    assert_eq!((count("ada"), owner("r0"), owner("r1")), (1, None, None));
    write(&tables, |rows| rows.set_going("r0")).await;
    assert_eq!(count("ada"), 2);
}

async fn attempts_and_progress_are_counted(tables: Subject) {
    write(&tables, |rows| {
        let at = thread(rows, "t")?;
        rows.insert_run("r", at, "k", 1)
    })
    .await;
    let now = || tables.read(|rows| rows.run("r")).unwrap().unwrap();
    write(&tables, |rows| rows.count_attempt("r").and_then(|()| rows.count_attempt("r"))).await;
    assert_eq!(now().attempts, 3);
    write(&tables, |rows| rows.uncount_attempt("r")).await;
    write(&tables, |rows| rows.count_model_call("r", Some("digest"), 4)).await;
    let run = now();
    assert_eq!((run.attempts, run.model_calls), (2, 1));
    assert_eq!((run.repeat_digest.as_deref(), run.repeat_count), (Some("digest"), 4));
    for _ in 0..2 {
        write(&tables, |rows| rows.progress("r", Duration::from_millis(7))).await;
    }
    write(&tables, |rows| rows.uncount_attempt("r")).await;
    assert_eq!((now().attempts, now().spent_ms), (0, 14));
    write(&tables, |rows| rows.set_going("r")).await;
    write(&tables, |rows| rows.end_run(&rows.run("r")?.expect("a run"), RunStatus::Succeeded, None)).await;
    // What has ended counts no more.
    write(&tables, |rows| rows.count_attempt("r").and_then(|()| rows.uncount_attempt("r"))).await;
    assert_eq!(now().attempts, 1);
}

async fn a_key_is_inserted_once(tables: Subject) {
    let (t, u) = write(&tables, |rows| {
        let (t, u) = (thread(rows, "t")?, thread(rows, "u")?);
        rows.insert_key(t, "k", "digest", "r")?;
        rows.insert_key(u, "k", "other", "q")?;
        Ok((t, u))
    })
    .await;
    tables.write(move |rows| rows.insert_key(t, "k", "digest", "r")).await.unwrap_err();
    let of = |thread| tables.read(|rows| rows.key(thread, "k")).unwrap();
    assert_eq!((of(t), of(u)), (Some(("digest".into(), "r".into())), Some(("other".into(), "q".into()))));
    assert_eq!(tables.read(|rows| rows.key(t, "K")).unwrap(), None);
}

async fn messages_are_read_both_ways(tables: Subject) {
    tables.clock.advance(5);
    let created_ms = i64::try_from(tables.clock.now()).unwrap();
    let full = MessageRow {
        calls: vec![StoredCall { id: "c".into(), name: "n".into(), arguments: json!({"a": 1}), problem: None }],
        tool: Some("n".into()),
        question: Some(StoredQuestion { id: "q".into(), text: "?".into(), options: vec!["a".into()] }),
        provenance: Some("{}".into()),
        ..message(2, "b", Role::Tool, "研究\0x")
    };
    let stored = full.clone();
    let key = write(&tables, move |rows| {
        let (key, other) = (thread(rows, "t")?, thread(rows, "u")?);
        rows.append(key, &message(1, "a", Role::Human, "one"))?;
        rows.append(key, &full)?;
        rows.append(key, &MessageRow { answers: Some("q".into()), ..message(3, "c", Role::Human, "three") })?;
        rows.append(other, &message(1, "a", Role::Assistant, "elsewhere"))?;
        Ok(key)
    })
    .await;
    tables.write(move |rows| rows.append(key, &message(4, "a", Role::Human, ""))).await.unwrap_err();
    tables.write(move |rows| rows.append(key, &message(3, "z", Role::Human, ""))).await.unwrap_err();
    let want = MessageRow { created_ms, ..stored };
    assert_eq!(tables.read(|rows| rows.message(key, "b")).unwrap(), Some(want.clone()));
    assert_eq!(tables.read(|rows| rows.message_at(key, 2)).unwrap(), Some(want));
    let ids = |from, limit| -> Vec<String> {
        tables.read(|rows| rows.messages_from(key, from, limit)).unwrap().into_iter().map(|m| m.id).collect()
    };
    assert_eq!((ids(2, 9), ids(0, 1)), (vec!["b".into(), "c".into()], vec!["a".into()]));
    let back = |before, most: usize| {
        let mut seen = Vec::new();
        let all = &mut |m: MessageRow| {
            seen.push(m.number);
            seen.len() < most
        };
        tables.read(|rows| rows.messages_back(key, before, all)).unwrap();
        seen
    };
    assert_eq!(
        (back(i64::MAX, 9), back(3, 9), back(i64::MAX, 2), back(1, 9)),
        (vec![3, 2, 1], vec![2, 1], vec![3, 2], vec![])
    );
    let answered = |question: &'static str| tables.read(|rows| rows.answered(key, question)).unwrap();
    assert!(answered("q") && !answered("r"));
}

async fn sizes_are_bytes(tables: Subject) {
    let key = write(&tables, |rows| {
        let key = thread(rows, "t")?;
        rows.append(key, &message(1, "a", Role::Human, "研究"))?;
        let call = StoredCall { id: "c".into(), name: "n".into(), arguments: json!({}), problem: None };
        rows.append(key, &MessageRow { calls: vec![call], ..message(2, "b", Role::Assistant, "ab") })?;
        let question = StoredQuestion { id: "q".into(), text: "é".into(), options: Vec::new() };
        let asks =
            MessageRow { question: Some(question), provenance: Some("{}".into()), ..message(3, "c", Role::Tool, "") };
        rows.append(key, &asks)?;
        Ok(key)
    })
    .await;
    let sizes = tables.read(|rows| rows.sizes_from(key, 1, 9)).unwrap();
    let shown: Vec<_> = sizes.iter().map(|s| (s.number, s.role, s.text, s.question, s.rest)).collect();
    let (call, asks) = (r#"[{"id":"c","name":"n","arguments":{}}]"#, r#"{"id":"q","text":"é","options":[]}"#);
    let want = [
        (1, Role::Human, "研究".len(), 0, 0),
        (2, Role::Assistant, 2, 0, call.len()),
        (3, Role::Tool, 0, asks.len(), 2),
    ];
    assert_eq!(shown, want);
    assert_eq!(tables.read(|rows| rows.sizes_from(key, 2, 1)).unwrap(), [sizes[1]]);
    let mut seen = Vec::new();
    tables
        .read(|rows| {
            rows.sizes(key, 1, &mut |size| {
                seen.push(*size);
                size.number < 2
            })
        })
        .unwrap();
    assert_eq!(seen, [sizes[1]]);
}

async fn an_open_question_is_its_message(tables: Subject) {
    let question = StoredQuestion { id: "q".into(), text: "?".into(), options: Vec::new() };
    let asked = question.clone();
    let key = write(&tables, move |rows| {
        let key = thread(rows, "t")?;
        rows.append(key, &MessageRow { question: Some(asked), ..message(1, "q", Role::Tool, "") })?;
        rows.set_open_question(key, Some(1))?;
        Ok(key)
    })
    .await;
    let open = || tables.read(|rows| rows.open_question(&rows.thread_by_key(key)?)).unwrap();
    assert_eq!(open(), Some(question));
    write(&tables, move |rows| rows.set_open_question(key, None)).await;
    assert_eq!(open(), None);
}

async fn a_decision_is_made_once(tables: Subject) {
    let approval = |id: &str, run: &str| Approval {
        id: id.into(),
        run: run.into(),
        checkpoint: "c".into(),
        tool: "t".into(),
        arguments: "{}".into(),
        digest: "d".into(),
        decision: None,
    };
    write(&tables, move |rows| {
        for (id, run) in [("r-1-10", "r"), ("r-1-2", "r"), ("s-1-0", "s")] {
            rows.insert_approval(&approval(id, run))?;
        }
        Ok(())
    })
    .await;
    tables.write(move |rows| rows.insert_approval(&approval("r-1-2", "s"))).await.unwrap_err();
    let open =
        || -> Vec<String> { tables.read(|rows| rows.open_approvals("r")).unwrap().into_iter().map(|a| a.id).collect() };
    assert_eq!(open(), ["r-1-2", "r-1-10"]);
    let decided = write(&tables, |rows| {
        Ok([rows.decide("r-1-2", "yes")?, rows.decide("r-1-2", "no")?, rows.decide("none", "no")?])
    })
    .await;
    assert_eq!((decided, open()), ([true, false, false], vec!["r-1-10".into()]));
    let stored = tables.read(|rows| rows.approval("r-1-2")).unwrap().unwrap();
    assert_eq!(stored, Approval { decision: Some("yes".into()), ..approval("r-1-2", "r") });
}

#[test]
fn a_database_that_cannot_answer_now_says_so() {
    crate::run(async {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::open(&folder.path().join("test.db")).unwrap();
        let tables: Tables = SqliteTables::new(db.clone(), Arc::new(FakeClock::default())).unwrap().into();
        let by_caller = tables.read(|_| -> anyhow::Result<()> { anyhow::bail!("by the caller") }).unwrap_err();
        let twice = |rows: &dyn Rows| rows.insert_user(&user("ada")).and_then(|()| rows.insert_user(&user("ada")));
        let by_data = tables.write(twice).await.unwrap_err();
        assert!(!temporary(&by_caller) && !temporary(&by_data), "{by_caller:#}, {by_data:#}");
        db.close();
        let read = tables.read(|rows| rows.users()).unwrap_err();
        let written = tables.write(|rows| rows.insert_user(&user("bo"))).await.unwrap_err();
        assert!(temporary(&read) && temporary(&written), "{read:#}, {written:#}");
        assert!(!outcome_unknown(&written));
    });
}

/// One call of a random transaction: which, and small numbers for its arguments.
type Call = (u8, u8, u8);

/// What it answers; of an error only that it is one, which ends the transaction.
fn call(rows: &dyn Rows, (which, a, b): Call) -> anyhow::Result<String> {
    fn show(value: anyhow::Result<impl Debug>) -> anyhow::Result<String> {
        value.map(|value| format!("{value:?}"))
    }
    let (id, other) = (format!("{a}"), format!("{b}"));
    let (key, n) = (i64::from(a), i64::from(b));
    let text = "x".repeat(usize::from(b));
    let status = [RunStatus::Running, RunStatus::Interrupted, RunStatus::Succeeded][usize::from(b) % 3];
    let key_of = if a.is_multiple_of(2) { format!("post:{b}") } else { other.clone() };
    let role = [Role::Human, Role::Assistant, Role::Tool][usize::from(a) % 3];
    match which {
        0 => show(rows.insert_user(&user(&id))),
        1 => show(rows.set_disabled(&id, (b > 1).then_some(n))),
        2 => show(rows.insert_token(&token(&id, &other, n))),
        3 => show(rows.revoke_token(&id, n)),
        4 => show(rows.tokens((b > 1).then_some(&id))),
        5 => show(rows.users()),
        6 => show(rows.insert_thread(&id, &other, "agent", "title")),
        7 => show(rows.threads(&id, u32::from(b))),
        8 => show(rows.insert_run(&id, n, &key_of, 1)),
        9 => show(rows.set_status(&id, status)),
        10 => show(rows.run(&id).and_then(|run| run.map_or(Ok(()), |run| rows.end_run(&run, status, Some(&other))))),
        11 => show(rows.open_runs()),
        12 => show(rows.direct_runs(&id).and_then(|count| Ok((count, rows.direct_owner(&other)?)))),
        13 => show(rows.append(key, &message(n, &format!("{b}"), role, &text))),
        14 => show(rows.next_number(key)),
        15 => show(rows.messages_from(key, n, 3)),
        16 => show(rows.sizes_from(key, n, 3)),
        17 => show(rows.insert_key(key, &other, "d", "r")),
        18 => show(rows.key(key, &other)),
        19 => show(rows.count_attempt(&id).and_then(|()| rows.run(&id))),
        20 => show(rows.thread_by_key(key)),
        21 => show(rows.insert_session(&SessionRow { created_ms: 3 - n, ..session(&id, &other, n) })),
        22 => show(rows.set_session_used(&id, n, n + 1)),
        23 => show(rows.sessions((b > 1).then_some(&id))),
        24 => show(rows.delete_sessions_expired(n)),
        _ => show(rows.set_open_question(key, Some(n))),
    }
}

#[test]
fn both_backends_answer_random_transactions_alike() {
    let calls = prop::collection::vec((0u8..26, 0u8..4, 0u8..4), 1..6);
    let transactions = prop::collection::vec(calls, 1..40);
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&transactions, |transactions| {
        crate::run(async move {
            let (memory, sqlite) = (memory(), sqlite());
            for calls in transactions {
                let of = |tables: &Subject| {
                    let calls = calls.clone();
                    tables
                        .queue(move |rows| calls.into_iter().map(|c| call(rows, c)).collect::<anyhow::Result<Vec<_>>>())
                };
                let (left, right) = (of(&memory).await.ok(), of(&sqlite).await.ok());
                assert_eq!(left, right, "{calls:?}");
            }
        });
        Ok(())
    });
    checked.unwrap();
}
