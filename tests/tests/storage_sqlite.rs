//! The database file: sharing commits, the process lock, versions, backups,
//! and what survives a kill.

use std::future::Future;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::task::{Context, Waker};

use agent_teams_host::storage::database::{Database, InUse, TooNew, WriteError, backup_file};
use agent_teams_host::storage::{CommitError, SqliteStore, Store, StoreError};
use rusqlite::Connection;

const TABLE: &str = "CREATE TABLE t (n INTEGER PRIMARY KEY, v INTEGER)";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn open(folder: &tempfile::TempDir) -> Database {
    Database::open(&folder.path().join("test.db")).unwrap()
}

async fn put(store: &SqliteStore, key: &str, value: &str) {
    let mut tx = store.begin().unwrap();
    tx.put(key.into(), value.into()).unwrap();
    tx.commit().await.unwrap();
}

fn get(store: &SqliteStore, key: &str) -> Option<String> {
    store.begin().unwrap().get(key).unwrap()
}

type Task = Pin<Box<dyn Future<Output = Result<(), CommitError>> + Send>>;

/// Lets every future queue its write while the writer is held, then lets the
/// writer go: all of them are in one group.
async fn together(db: &Database, mut tasks: Vec<Task>) -> Vec<Result<(), CommitError>> {
    let (go, wait) = mpsc::channel::<()>();
    let mut context = Context::from_waker(Waker::noop());
    let mut holder = Box::pin(db.write(move |_| Ok(wait.recv()?)));
    assert!(holder.as_mut().poll(&mut context).is_pending());
    for task in &mut tasks {
        assert!(task.as_mut().poll(&mut context).is_pending());
    }
    go.send(()).unwrap();
    holder.await.unwrap();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await);
    }
    results
}

#[tokio::test]
async fn waiting_writers_share_one_fsync() {
    let folder = folder();
    let store = SqliteStore::new(open(&folder)).unwrap();
    let before = store.database().stats();
    let tasks = (0..64)
        .map(|n| {
            let mut tx = store.begin().unwrap();
            tx.get(&format!("key/{n}")).unwrap();
            tx.put(format!("key/{n}"), "1".into()).unwrap();
            tx.commit() as Task
        })
        .collect();
    for result in together(store.database(), tasks).await {
        result.unwrap();
    }
    let after = store.database().stats();
    assert_eq!(after.commits - before.commits, 1);
    assert_eq!(after.writes - before.writes, 65);
    assert_eq!(store.begin().unwrap().scan("key/", "key0", 99, false).unwrap().len(), 64);
}

#[tokio::test]
async fn of_conflicting_writers_in_one_group_one_wins() {
    let folder = folder();
    let store = SqliteStore::new(open(&folder)).unwrap();
    let tasks = (0..8)
        .map(|n| {
            let mut tx = store.begin().unwrap();
            assert_eq!(tx.get("holder").unwrap(), None);
            tx.put("holder".into(), n.to_string()).unwrap();
            tx.commit() as Task
        })
        .collect();
    let results = together(store.database(), tasks).await;
    assert_eq!(results.iter().filter(|r| r.is_ok()).count(), 1);
    assert_eq!(results.iter().filter(|r| **r == Err(CommitError::Conflict)).count(), 7);
    assert!(get(&store, "holder").is_some());
}

#[tokio::test]
async fn equal_values_write_nothing() {
    let folder = folder();
    let store = SqliteStore::new(open(&folder)).unwrap();
    put(&store, "a", "1").await;
    let before = store.database().stats();
    put(&store, "a", "1").await;
    let mut tx = store.begin().unwrap();
    tx.delete("absent".into()).unwrap();
    tx.commit().await.unwrap();
    let after = store.database().stats();
    assert_eq!((after.commits, after.wal_pages), (before.commits, before.wal_pages));
}

#[tokio::test]
async fn two_stores_on_one_database_see_each_other() {
    let folder = folder();
    let db = open(&folder);
    let (one, two) = (SqliteStore::new(db.clone()).unwrap(), SqliteStore::new(db).unwrap());
    let mut tx = one.begin().unwrap();
    tx.get("a").unwrap();
    tx.put("b".into(), "1".into()).unwrap();
    put(&two, "a", "1").await;
    assert_eq!(tx.commit().await, Err(CommitError::Conflict));
}

#[tokio::test]
async fn reopening_sees_everything() {
    let folder = folder();
    for n in 0..5 {
        let store = SqliteStore::new(open(&folder)).unwrap();
        for old in 0..n {
            assert_eq!(get(&store, &format!("key/{old}")), Some(old.to_string()));
        }
        put(&store, &format!("key/{n}"), &n.to_string()).await;
    }
}

#[tokio::test]
async fn closing_finishes_what_waits_and_refuses_the_rest() {
    let folder = folder();
    let db = open(&folder);
    db.migrate("test", &[TABLE]).unwrap();
    let store = SqliteStore::new(db.clone()).unwrap();
    let mut reading = store.begin().unwrap();
    let mut writing = store.begin().unwrap();
    writing.put("late".into(), "1".into()).unwrap();
    let mut waiting = Box::pin(db.write(|conn| Ok(conn.execute("INSERT INTO t VALUES (1, 1)", [])?)));
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    db.close();
    db.close();
    assert_eq!(waiting.await.unwrap(), 1);
    assert_eq!(reading.get("late"), Ok(None));
    assert!(matches!(writing.commit().await, Err(CommitError::Unavailable(_))));
    assert!(matches!(store.begin().err(), Some(StoreError::Unavailable(_))));
    let error = db.write(|_| Ok(())).await.unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(WriteError::NotWritten(_))), "{error}");
    assert!(db.read(|_| Ok(())).is_err());
    // The lock is free although handles and a read are still there.
    let again = open(&folder);
    again.read(|conn| Ok(conn.query_row("SELECT n FROM t", [], |row| row.get::<_, i64>(0))?)).unwrap();
}

#[tokio::test]
async fn reads_are_one_snapshot_and_cannot_write() {
    let folder = folder();
    let db = open(&folder);
    db.migrate("test", &[TABLE]).unwrap();
    let count = |conn: &Connection| conn.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
    db.read(|conn| {
        assert_eq!(count(conn)?, 0);
        db.write_blocking(|conn| Ok(conn.execute("INSERT INTO t VALUES (1, 1)", [])?))?;
        assert_eq!(count(conn)?, 0);
        assert!(conn.execute("DELETE FROM t", []).is_err());
        Ok(())
    })
    .unwrap();
    assert_eq!(db.read(|conn| Ok(count(conn)?)).unwrap(), 1);
}

#[tokio::test]
async fn too_many_open_reads_are_refused_not_queued() {
    let folder = folder();
    let store = SqliteStore::new(open(&folder)).unwrap();
    let mut open = Vec::new();
    let error = loop {
        match store.begin() {
            Ok(tx) => open.push(tx),
            Err(error) => break error,
        }
        assert!(open.len() <= 256);
    };
    assert!(matches!(error, StoreError::Unavailable(_)));
    open.pop();
    store.begin().unwrap();
}

// The process lock.

#[test]
fn a_second_opener_here_is_refused() {
    let folder = folder();
    let db = open(&folder);
    let path = folder.path().join("test.db");
    let error = Database::open(&path).err().unwrap();
    assert_eq!(error.downcast_ref::<InUse>().unwrap().pid, Some(std::process::id()));
    assert!(format!("{error:#}").contains("this process"), "{error:#}");
    #[cfg(unix)]
    {
        let link = folder.path().join("link.db");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(Database::open(&link).err().unwrap().is::<InUse>());
    }
    drop(db);
    Database::open(&path).unwrap();
}

/// Starts this very test program again, as a child that does `what`.
fn child(what: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "as_a_child", "--nocapture"])
        .env("STORAGE_CHILD", what)
        .env("STORAGE_PATH", path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What a child says, without what the test harness says around it.
fn said(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).filter_map(|line| line.split_once("child: ").map(|(_, text)| text.to_owned()))
}

/// No test of its own: the part of the children.
#[test]
fn as_a_child() {
    let (Ok(what), Ok(path)) = (std::env::var("STORAGE_CHILD"), std::env::var("STORAGE_PATH")) else { return };
    let db = match Database::open(Path::new(&path)) {
        Ok(db) => db,
        Err(error) => return println!("child: {error:#}"),
    };
    println!("child: open");
    match what.as_str() {
        "open" => {}
        "write" => {
            let store = SqliteStore::new(db).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            for n in 0_u64.. {
                runtime.block_on(async {
                    let mut tx = store.begin().unwrap();
                    for part in 0..5 {
                        tx.put(format!("{part}/{n}"), n.to_string()).unwrap();
                    }
                    tx.commit().await.unwrap();
                });
                println!("child: {n}");
            }
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_second_process_is_refused_by_the_holders_number() {
    let folder = folder();
    let path = folder.path().join("test.db");
    let mut holder = child("write", &path);
    let mut output = said(&mut holder);
    assert_eq!(output.next().as_deref(), Some("open"));
    let error = Database::open(&path).err().unwrap();
    assert_eq!(error.downcast_ref::<InUse>().unwrap().pid, Some(holder.id()));
    assert!(format!("{error:#}").contains(&format!("process {}", holder.id())), "{error:#}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    // The other way round; and a killed holder leaves nothing behind.
    let _db = Database::open(&path).unwrap();
    let mut second = child("open", &path);
    let text = said(&mut second).next().unwrap();
    assert!(text.contains(&format!("process {}", std::process::id())), "{text}");
    second.wait().unwrap();
}

#[test]
fn what_was_answered_survives_a_kill() {
    let folder = folder();
    let path = folder.path().join("test.db");
    for round in 0..3_u64 {
        let mut writer = child("write", &path);
        let mut output = said(&mut writer).skip(1);
        let mut last = 0;
        for _ in 0..200 + round * 50 {
            last = output.next().unwrap().parse().unwrap();
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        last = output.last().map_or(last, |text| text.parse().unwrap());
        let store = SqliteStore::new(Database::open(&path).unwrap()).unwrap();
        let mut tx = store.begin().unwrap();
        for n in 0..=last {
            for part in 0..5 {
                assert_eq!(tx.get(&format!("{part}/{n}")).unwrap(), Some(n.to_string()));
            }
        }
        // The one that was under way is there as a whole, or not at all.
        let parts = (0..5).filter(|part| tx.get(&format!("{part}/{}", last + 1)).unwrap().is_some()).count();
        assert!(parts == 0 || parts == 5);
    }
}

// Versions.

#[test]
fn steps_run_once_and_in_order() {
    let folder = folder();
    let db = open(&folder);
    let steps = [TABLE, "INSERT INTO t VALUES (1, 1)", "UPDATE t SET v = v * 10"];
    let value =
        |db: &Database| db.read(|conn| Ok(conn.query_row("SELECT v FROM t", [], |row| row.get::<_, i64>(0))?)).unwrap();
    db.migrate("one", &steps[..2]).unwrap();
    db.migrate("one", &steps[..2]).unwrap();
    assert_eq!(value(&db), 1);
    drop(db);
    let db = open(&folder);
    db.migrate("one", &steps).unwrap();
    assert_eq!(value(&db), 10);
    // Another module counts for itself.
    db.migrate("two", &["UPDATE t SET v = v + 1"]).unwrap();
    assert_eq!(value(&db), 11);
    let error = db.migrate("one", &steps[..2]).unwrap_err();
    let TooNew { stored, known, .. } = error.downcast_ref().unwrap();
    assert_eq!((*stored, *known), (3, 2));
    assert!(error.to_string().contains("one") && error.to_string().contains('3') && error.to_string().contains('2'));
}

#[test]
fn a_step_is_done_as_a_whole_or_not_at_all() {
    let folder = folder();
    let db = open(&folder);
    let broken = [TABLE, "INSERT INTO t VALUES (1, 1); INSERT INTO missing VALUES (1)"];
    assert!(db.migrate("one", &broken).is_err());
    let count = db.read(|conn| Ok(conn.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0))?));
    assert_eq!(count.unwrap(), 0);
    db.migrate("one", &[TABLE, "INSERT INTO t VALUES (2, 2)"]).unwrap();
    // Nor can it commit half of itself.
    let half = [TABLE, "", "INSERT INTO t VALUES (3, 3); COMMIT; INSERT INTO t VALUES (4, 4)"];
    assert!(db.migrate("one", &half).is_err());
    let count = db.read(|conn| Ok(conn.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0))?));
    assert_eq!(count.unwrap(), 1);
}

#[test]
fn a_newer_format_is_refused_by_naming_both() {
    let folder = folder();
    let path = folder.path().join("test.db");
    drop(open(&folder));
    let raw = Connection::open(&path).unwrap();
    assert_eq!(raw.execute("UPDATE meta SET value = 99 WHERE key = 'format'", []).unwrap(), 1);
    drop(raw);
    let error = Database::open(&path).err().unwrap();
    assert_eq!(error.downcast_ref::<TooNew>().unwrap().stored, 99);
    let text = format!("{error:#}");
    assert!(text.contains("99") && text.contains("up to version 1"), "{text}");
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let folder = folder();
    let path = folder.path().join("test.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
    let before = std::fs::read(&path).unwrap();
    let text = format!("{:#}", Database::open(&path).err().unwrap());
    assert!(text.contains("another program") && text.contains("test.db"), "{text}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    std::fs::write(&path, "not a database, but long enough to look like something else").unwrap();
    assert!(Database::open(&path).is_err());
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = folder();
    let data = folder.path().join("deep/data");
    let path = data.join("test.db");
    let db = Database::open(&path).unwrap();
    assert_eq!(mode(&data), 0o700);
    let backup = data.join("copy.db");
    db.backup_to(&backup, |_, _| ()).unwrap();
    for entry in std::fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    drop(db);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let _db = Database::open(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
}

// Backups.

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_while_writing_is_one_state() {
    let folder = folder();
    let db = open(&folder);
    let store = SqliteStore::new(db.clone()).unwrap();
    for n in 0..40 {
        put(&store, &format!("bulk/{n}"), &"x".repeat(200_000)).await;
    }
    put(&store, "a", "0").await;
    put(&store, "z", "0").await;
    // Writes go on while the copy is made: one between every two parts of it.
    let copy = folder.path().join("copy.db");
    let (runtime, mut seen) = (tokio::runtime::Handle::current(), Vec::new());
    tokio::task::block_in_place(|| {
        db.backup_to(&copy, |done, total| {
            seen.push((done, total));
            runtime.block_on(async {
                let mut tx = store.begin().unwrap();
                for key in ["a", "z"] {
                    let n: u64 = tx.get(key).unwrap().unwrap().parse().unwrap();
                    tx.put(key.into(), (n + 1).to_string()).unwrap();
                }
                tx.delete(format!("bulk/{}", seen.len())).unwrap();
                tx.commit().await.unwrap();
            });
        })
    })
    .unwrap();
    assert!(seen.len() > 1 && seen.is_sorted(), "{seen:?}");
    assert!(seen.last().is_some_and(|(done, total)| done == total));
    assert_eq!(get(&store, "a"), Some(seen.len().to_string()));

    let restored = SqliteStore::new(Database::open(&copy).unwrap()).unwrap();
    assert_eq!((get(&restored, "a").unwrap(), get(&restored, "z").unwrap()), ("0".into(), "0".into()));
    assert_eq!(restored.begin().unwrap().scan("bulk/", "bulk0", 99, false).unwrap().len(), 40);
    let check = |conn: &Connection| Ok(conn.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0))?);
    assert_eq!(restored.database().read(check).unwrap(), "ok");
    put(&restored, "a", "works").await;
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("partial")), "{names:?}");
}

#[test]
fn a_backup_replaces_nothing_and_leaves_no_half() {
    let folder = folder();
    let db = open(&folder);
    let taken = folder.path().join("taken.db");
    std::fs::write(&taken, "precious").unwrap();
    assert!(db.backup_to(&taken, |_, _| ()).is_err());
    assert_eq!(std::fs::read(&taken).unwrap(), b"precious");
    assert!(db.backup_to(&folder.path().join("missing/copy.db"), |_, _| ()).is_err());
    let copy = folder.path().join("copy.db");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        db.backup_to(&copy, |_, _| panic!("on purpose")).unwrap();
    }));
    assert!(panicked.is_err());
    let mut names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["taken.db", "test.db", "test.db-shm", "test.db-wal", "test.db.lock"]);
}

#[tokio::test]
async fn a_backup_of_another_process_needs_no_lock() {
    let folder = folder();
    let path = folder.path().join("test.db");
    let mut writer = child("write", &path);
    let mut output = said(&mut writer).skip(1);
    let seen: u64 = output.nth(20).unwrap().parse().unwrap();
    let copy = folder.path().join("copy.db");
    backup_file(&path, &copy, |_, _| ()).unwrap();
    // The writer has not noticed.
    let later: u64 = output.nth(20).unwrap().parse().unwrap();
    assert!(later > seen);
    writer.kill().unwrap();
    writer.wait().unwrap();
    let restored = SqliteStore::new(Database::open(&copy).unwrap()).unwrap();
    assert_eq!(get(&restored, &format!("4/{seen}")), Some(seen.to_string()));
    assert!(backup_file(&folder.path().join("absent.db"), &folder.path().join("x.db"), |_, _| ()).is_err());
}
