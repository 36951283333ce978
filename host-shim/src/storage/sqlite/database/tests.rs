//! What becomes of writes when a commit fails.

use rusqlite::ffi;

use super::*;

const STEP: &[&str] =
    &["CREATE TABLE t (n INTEGER PRIMARY KEY, parent INTEGER REFERENCES t DEFERRABLE INITIALLY DEFERRED)"];

fn open() -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(&folder.path().join("test.db")).unwrap();
    db.migrate("test", STEP).unwrap();
    (folder, db)
}

fn insert(n: i64) -> impl FnOnce(&Connection) -> anyhow::Result<()> + Send + 'static {
    move |conn| {
        conn.execute("INSERT INTO t VALUES (?1, NULL)", [n])?;
        Ok(())
    }
}

fn numbers(db: &Database) -> anyhow::Result<Vec<i64>> {
    db.read(|conn| {
        Ok(conn.prepare("SELECT n FROM t ORDER BY n")?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    })
}

fn write_error<T>(result: anyhow::Result<T>) -> Option<WriteError> {
    result.err().and_then(|e| e.downcast().ok())
}

type Write = Box<dyn FnOnce(&Connection) -> anyhow::Result<()> + Send>;

/// Runs all in one group: the first waits until the others are queued.
fn together(db: &Database, writes: Vec<Write>) -> Vec<anyhow::Result<()>> {
    let (go, wait) = mpsc::channel::<()>();
    let (reply, replies) = mpsc::channel();
    db.submit(move |_| Ok(wait.recv()?), |_| ());
    for (index, write) in writes.into_iter().enumerate() {
        let reply = reply.clone();
        db.submit(write, move |result| reply.send((index, result)).unwrap());
    }
    drop(reply);
    go.send(()).unwrap();
    let mut results: Vec<_> = replies.iter().collect();
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[test]
fn a_failed_sync_is_unknown_and_reads_tell() {
    let (_folder, db) = open();
    db.fail_commits(&[ffi::SQLITE_IOERR_FSYNC]);
    assert!(matches!(write_error(db.write_blocking(insert(1))), Some(WriteError::Unknown(_))));
    // Settled at once: what is read now stays true.
    assert_eq!(numbers(&db).unwrap(), [0; 0]);
    db.write_blocking(insert(2)).unwrap();
    assert_eq!(numbers(&db).unwrap(), [2]);
}

#[test]
fn reads_and_writes_are_refused_while_the_outcome_can_still_change() {
    let (_folder, db) = open();
    // The second fault meets the commit that would settle the first.
    db.fail_commits(&[ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_WRITE]);
    assert!(matches!(write_error(db.write_blocking(insert(1))), Some(WriteError::Unknown(_))));
    assert!(numbers(&db).unwrap_err().to_string().contains("unknown"));
    // Meanwhile the writer tries again; each try ends one fault.
    let result = write_error(db.write_blocking(insert(2)));
    if let Some(error) = result {
        assert!(matches!(error, WriteError::NotWritten(_)));
        while let Some(error) = write_error(db.write_blocking(insert(2))) {
            assert!(matches!(error, WriteError::NotWritten(_)));
        }
    }
    assert_eq!(numbers(&db).unwrap(), [2]);
}

#[test]
fn a_full_disk_writes_nothing() {
    let (_folder, db) = open();
    db.fail_commits(&[ffi::SQLITE_FULL]);
    assert!(matches!(write_error(db.write_blocking(insert(1))), Some(WriteError::NotWritten(_))));
    assert_eq!(numbers(&db).unwrap(), [0; 0]);
    db.write_blocking(insert(1)).unwrap();
}

#[tokio::test]
async fn that_the_store_refuses_writes_is_known_until_it_takes_one_that_changes_something() {
    let (_folder, db) = open();
    assert!(!db.last_write_failed());
    db.fail_commits(&[ffi::SQLITE_FULL, ffi::SQLITE_FULL]);
    assert!(db.write_blocking(insert(1)).is_err());
    assert!(db.last_write_failed());
    // A write that changes nothing says nothing.
    db.write_blocking(|_| Ok(())).unwrap_err();
    db.write_blocking(|_| Ok(())).unwrap();
    assert!(db.last_write_failed());
    db.probe().await.unwrap();
    assert!(!db.last_write_failed());
    assert_eq!(db.stats().failures, 2);

    // The file itself is full, in the middle of a write and not at its commit.
    let full = |conn: &Connection| {
        let pages: i64 = conn.query_row("PRAGMA page_count", [], |row| row.get(0))?;
        Ok(conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?)
    };
    db.write_blocking(full).unwrap();
    let error = db
        .write_blocking(|conn| Ok(conn.execute_batch("CREATE TABLE big AS SELECT randomblob(100000) AS b")?))
        .unwrap_err();
    assert!(temporary(&error) && !outcome_unknown(&error), "{error:#}");
    assert!(db.last_write_failed());

    // What a caller does wrong says nothing of the store.
    db.probe().await.unwrap();
    let error = db.write_blocking(|conn| Ok(conn.execute_batch("no SQL")?)).unwrap_err();
    assert!(!temporary(&error) && !db.last_write_failed());
}

#[test]
fn a_read_that_is_refused_is_temporary_and_one_that_is_wrong_is_not() {
    let (_folder, db) = open();
    assert!(!temporary(&db.read(|conn| Ok(conn.execute_batch("no SQL")?)).unwrap_err()));
    db.close();
    assert!(temporary(&numbers(&db).unwrap_err()));
}

#[test]
fn more_writes_than_may_wait_are_refused() {
    let (_folder, db) = open();
    let (go, wait) = mpsc::channel::<()>();
    let (running, runs) = mpsc::channel();
    db.submit(move |_| Ok((running.send(())?, wait.recv()?)), |_| ());
    runs.recv().unwrap();
    let (reply, replies) = mpsc::channel();
    for n in 0..MAX_QUEUED as i64 {
        let reply = reply.clone();
        db.submit(insert(n), move |result| reply.send(result.is_ok()).unwrap());
    }
    assert!(matches!(write_error(db.write_blocking(insert(-1))), Some(WriteError::NotWritten(_))));
    go.send(()).unwrap();
    drop(reply);
    assert_eq!(replies.iter().filter(|written| *written).count(), MAX_QUEUED);
    db.write_blocking(insert(-1)).unwrap();
}

#[test]
fn a_commit_that_breaks_a_rule_writes_nothing() {
    let (_folder, db) = open();
    let orphan = |conn: &Connection| Ok(conn.execute("INSERT INTO t VALUES (1, 99)", [])?);
    assert!(matches!(write_error(db.write_blocking(orphan)), Some(WriteError::NotWritten(_))));
    assert_eq!(numbers(&db).unwrap(), [0; 0]);
}

#[test]
fn in_a_failed_group_nobody_is_told_of_a_write() {
    let (_folder, db) = open();
    db.fail_commits(&[ffi::SQLITE_IOERR]);
    let results = together(&db, vec![Box::new(insert(1)), Box::new(|_| anyhow::bail!("refused")), Box::new(insert(2))]);
    let errors: Vec<_> = results.into_iter().map(|r| write_error(r).unwrap()).collect();
    // The one that refused certainly wrote nothing, but may have refused for
    // what is not there now.
    assert!(
        matches!(&errors[..], [WriteError::Unknown(_), WriteError::NotWritten(_), WriteError::Unknown(_)]),
        "{errors:?}"
    );
}

#[test]
fn errors_and_panics_undo_their_own_writes_alone() {
    let (_folder, db) = open();
    let before = db.stats();
    let results = together(
        &db,
        vec![
            Box::new(insert(1)),
            Box::new(|conn| {
                insert(2)(conn)?;
                anyhow::bail!("refused")
            }),
            Box::new(|conn| {
                insert(3)(conn)?;
                panic!("on purpose")
            }),
            Box::new(insert(1)),
            Box::new(insert(4)),
        ],
    );
    let texts: Vec<_> = results.iter().map(|r| r.as_ref().map_err(ToString::to_string)).collect();
    assert_eq!(texts[0], Ok(&()));
    assert_eq!(texts[1], Err("refused".to_owned()));
    assert_eq!(texts[2], Err("nothing was written: the write panicked".to_owned()));
    assert!(texts[3].as_ref().is_err_and(|text| text.contains("UNIQUE")));
    assert_eq!(texts[4], Ok(&()));
    assert_eq!(numbers(&db).unwrap(), [1, 4]);
    assert_eq!(db.stats().commits - before.commits, 1);
}

#[test]
fn a_write_cannot_end_the_transaction_of_its_group() {
    let (_folder, db) = open();
    let results = together(
        &db,
        vec![
            Box::new(insert(1)),
            Box::new(|conn| {
                insert(2)(conn)?;
                Ok(conn.execute_batch("COMMIT")?)
            }),
        ],
    );
    for result in results {
        assert!(matches!(write_error(result), Some(WriteError::NotWritten(_))));
    }
    assert_eq!(numbers(&db).unwrap(), [0; 0]);
    db.write_blocking(insert(3)).unwrap();
    assert_eq!(numbers(&db).unwrap(), [3]);
}

#[test]
fn the_last_handle_may_be_dropped_by_a_write() {
    let (folder, db) = open();
    let path = db.path().to_owned();
    let (ended, end) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let held = db.clone();
    db.submit(
        move |conn| {
            wait.recv()?;
            drop(held);
            insert(1)(conn)
        },
        move |result| ended.send(result).unwrap(),
    );
    drop(db);
    go.send(()).unwrap();
    end.recv().unwrap().unwrap();
    drop(folder);
    assert!(!path.exists());
}

#[test]
fn a_damaged_page_is_named_as_such() {
    use crate::storage::{SqliteStore, Store, StoreError};
    use std::os::unix::fs::FileExt;

    let (folder, db) = open();
    let path = folder.path().join("test.db");
    let store = SqliteStore::new(db.clone()).unwrap();
    db.write_blocking(|conn| {
        for n in 0..2_000 {
            conn.execute("INSERT INTO kv VALUES (?1, ?2)", (format!("k{n:05}"), "v".repeat(100)))?;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(check_file(&path).unwrap(), Vec::<String>::new(), "while it is open");
    db.close();
    drop(store);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let pages = file.metadata().unwrap().len() / u64::from(PAGE);
    for page in pages / 2..pages {
        file.write_all_at(&[0xff; 512], page * u64::from(PAGE)).unwrap();
    }
    let faults = check_file(&path).unwrap();
    assert!(!faults.is_empty() && faults.len() <= 21, "{faults:?}");
    let db = Database::open(&path).unwrap();
    let read = SqliteStore::new(db).unwrap().begin().unwrap().scan("k", "l", 5_000, false);
    assert_eq!(read, Err(StoreError::Unavailable(DAMAGED.into())));
}

#[test]
fn an_unfinished_copy_of_a_process_that_has_ended_is_removed() {
    let (folder, db) = open();
    let copy = folder.path().join("copy.db");
    let (abandoned, used) = (folder.path().join("copy.db.17.partial"), folder.path().join("copy.db.18.partial"));
    let other = folder.path().join("copy.db.old.partial");
    for file in [&abandoned, &used, &other] {
        std::fs::write(file, "x").unwrap();
    }
    let held = std::fs::File::open(&used).unwrap();
    held.lock().unwrap();
    db.backup_to(&copy, |_, _| ()).unwrap();
    assert_eq!((abandoned.exists(), used.exists(), other.exists()), (false, true, true));
}
