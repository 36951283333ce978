//! Runs that people begin by posting: how many, also after a restart.

use super::*;
use crate::agents::builtin::{Post, Posted};
use crate::storage::tables::agents::{MessageRow, Role, RunRow};

async fn post(w: &World, user: &str, id: &str) -> Result<Posted, RunError> {
    let post = Post { thread: None, agent: Some("a".into()), message_id: id.into(), text: "hi".into() };
    w.agents.post(user, post).await
}

fn open(dir: &std::path::Path, more: &str) -> World {
    World::open(dir, vec![agent("a", more)], |_: &_| Act::Hang, fine)
}

fn refused(result: Result<Posted, RunError>) {
    match result {
        Err(RunError::TooMany(why)) => {
            assert!(why.contains("3 of your conversations") && why.contains("again"), "{why}")
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_user_has_so_many_direct_runs_at_work_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let w = open(dir.path(), "");
    let mut posted = Vec::new();
    for n in 0..MAX_DIRECT {
        posted.push(post(&w, "ada", &format!("m{n}")).await.unwrap());
    }
    refused(post(&w, "ada", "one-more").await);
    assert!(matches!(w.agents.room("ada"), Err(RunError::TooMany(_))));
    assert_eq!(w.count("SELECT count(*) FROM agent_runs"), i64::from(MAX_DIRECT), "nothing happened");
    // What was begun is answered as before; jobs and other users have their own bounds.
    assert_eq!(post(&w, "ada", "m0").await.unwrap(), posted[0]);
    w.begin("h1", "a job").await;
    post(&w, "bo", "m0").await.unwrap();

    let runs = w.runs("ada");
    runs.cancel(&posted[1].thread, &posted[1].run).await.unwrap();
    let ended = runs.get(&posted[1].thread, &posted[1].run).await.unwrap();
    assert_eq!(ended.status, RunStatus::Cancelled);
    post(&w, "ada", "one-more").await.unwrap();
    refused(post(&w, "ada", "and-more").await);
}

#[tokio::test]
async fn at_once_no_more_are_admitted_than_one_after_another() {
    let dir = tempfile::tempdir().unwrap();
    let w = Arc::new(open(dir.path(), ""));
    let posts: Vec<_> = (0..20)
        .map(|n| {
            let w = w.clone();
            tokio::spawn(async move { post(&w, "ada", &format!("m{n}")).await.is_ok() })
        })
        .collect();
    let mut admitted = 0;
    for post in posts {
        admitted += u32::from(post.await.unwrap());
    }
    assert_eq!(admitted, MAX_DIRECT);
}

#[tokio::test]
async fn a_run_that_waits_for_a_person_leaves_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let w = World::open(
        dir.path(),
        vec![agent("a", "approve = ['send_member']")],
        |_: &_| calls(&[("send_member", "{}")]),
        fine,
    );
    for n in 0..=MAX_DIRECT {
        let posted = post(&w, "ada", &format!("m{n}")).await.unwrap();
        let run = Run::new(posted.run, RunStatus::Running);
        assert_eq!(w.until_event(&run).await.status, RunStatus::Interrupted);
    }
}

/// Leaves `count` direct runs of each user and one job's run to the next host.
fn leave(dir: &std::path::Path, users: &[&str], count: u32) {
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let w = open(dir, "");
    rt.block_on(async {
        w.begin("h1", "a job").await;
        for user in users {
            for n in 0..count.min(MAX_DIRECT) {
                post(&w, user, &format!("m{n}")).await.unwrap();
            }
        }
    });
    drop(rt);
    w.db.close();
}

#[tokio::test]
async fn the_bound_outlives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    tokio::task::spawn_blocking(move || leave(&path, &["ada"], MAX_DIRECT)).await.unwrap();
    let w = open(dir.path(), "");
    refused(post(&w, "ada", "one-more").await);
    w.agents.recover().await.unwrap();
    refused(post(&w, "ada", "one-more").await);
    reached(&w.model.begun, MAX_DIRECT as usize + 1).await;
}

#[tokio::test]
async fn after_a_restart_no_user_gets_more_at_once_than_may_be_begun() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    tokio::task::spawn_blocking(move || leave(&path, &["ada", "bo"], MAX_DIRECT)).await.unwrap();
    let w = open(dir.path(), "");
    // As an earlier version left them, which had no bound.
    let more = MAX_DIRECT as usize * 4;
    w.tables
        .write(move |rows| {
            for n in 0..more {
                let (run, thread) = (format!("run-{n}"), format!("thread-{n}"));
                rows.insert_thread("ada", &thread, "a", "")?;
                let key = rows.thread("ada", &thread)?.unwrap().key;
                let message = MessageRow {
                    number: rows.next_number(key)?,
                    id: "h".into(),
                    role: Role::Human,
                    run: run.clone(),
                    ..MessageRow::default()
                };
                rows.append(key, &message)?;
                rows.insert_run(&run, key, &format!("post:{n}"), message.number)?;
            }
            Ok(())
        })
        .await
        .unwrap();
    w.agents.recover().await.unwrap();
    // The job's run, all of bo's, and as many of ada's as may be: one more
    // begins only when one of hers has ended.
    let at_work = MAX_DIRECT as usize * 2 + 1;
    reached(&w.model.begun, at_work).await;
    for ended in 1..=more {
        let mut begun: Vec<String> = w.requests().into_iter().map(|request| request.run).collect();
        begun.dedup();
        assert_eq!(begun.len(), at_work + ended - 1);
        let row = w.tables.read(|rows| {
            let open = rows.open_runs()?;
            let hers = |run: &RunRow| rows.thread_by_key(run.thread).is_ok_and(|t| t.owner == "ada");
            let run = open
                .into_iter()
                .find(|r| begun.contains(&r.id) && rows.direct_owner(&r.id).ok().flatten().is_some() && hers(r))
                .unwrap();
            Ok((rows.thread_by_key(run.thread)?.id, run.id))
        });
        let (thread, run) = row.unwrap();
        w.runs("ada").cancel(&thread, &run).await.unwrap();
        reached(&w.model.begun, at_work + ended).await;
    }
    assert_eq!(w.count("SELECT count(*) FROM agent_runs WHERE ended_ms IS NULL"), at_work as i64);
}
