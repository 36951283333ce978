//! What one owner does cannot keep another's work from starting: an import
//! with runs under way, a team whose lock is held, others who commit first.

use agent_teams_tests::both;
use agent_teams_tests::double::{Effect, Method};
use agent_teams_tests::harness::{Team, World, refused};
use agent_teams_tests::native::CommitFault;
use serde_json::{Value, json};

both!(
    imported_runs_take_no_slot_and_their_owner_can_end_them,
    what_the_earlier_plugin_froze_is_not_sent_without_a_slot,
    an_imported_member_without_an_agent_fails_its_own_jobs_alone,
    a_team_whose_lock_is_held_loses_its_turn,
    a_refused_delete_does_not_wait_for_a_step,
);

/// A team of eight, as the earlier plugin stored it, with these jobs.
fn document(jobs: Vec<Value>) -> Value {
    let member =
        |n: u32| json!({"id": format!("m{n}"), "name": format!("M{n}"), "agent": "x", "thread_id": format!("old-{n}")});
    json!({
        "id": "1".repeat(32), "name": "Old", "goal": "g", "ready": true, "messages": [],
        "members": (0..8).map(member).collect::<Vec<_>>(), "jobs": jobs,
    })
}

fn import(w: &World, owner: &str, jobs: Vec<Value>) -> Team {
    import_document(w, owner, document(jobs))
}

fn import_document(w: &World, owner: &str, team: Value) -> Team {
    w.action(owner, "import_team", json!({"team": team})).expect("imported");
    Team::from_answer(owner, &w.action(owner, "get", json!({"team_id": team["id"]})).expect("get"))
}

/// A run that was under way in the conversation of member `n`.
fn under_way(n: u32) -> Value {
    json!({"id": format!("j{n}"), "member_id": format!("m{n}"), "thread_id": format!("old-{n}"), "kind": "request",
           "text": "x", "status": "running", "run_id": format!("r{n}")})
}

fn imported_runs_take_no_slot_and_their_owner_can_end_them(mut w: World) {
    let old = import(&w, "ann", (0..8).map(under_way).collect());
    let team = w.team("bob", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
    assert!(w.slots().is_empty());
    w.restart();
    w.connect(&team).expect("connected");
    let job = w.send(&team, 1, "after the restart");
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
    // Their owner ends them, some before anything is connected.
    for n in 0..4 {
        w.settle(&old, &format!("j{n}"), "failed").expect("settled");
    }
    w.connect(&old).expect("connected");
    w.work();
    for n in 4..8 {
        let id = format!("j{n}");
        assert_eq!(w.status(&old, &id), "unknown", "the host knows no such run");
        w.settle(&old, &id, "failed").expect("settled");
    }
    w.delete(&old).expect("nothing is unfinished");
}

fn what_the_earlier_plugin_froze_is_not_sent_without_a_slot(mut w: World) {
    w.restart_with(r#"{"slots": 1}"#);
    w.double.hold(true);
    let team = w.team("bob", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.work();
    let frozen = (0..8).map(|n| {
        let mut job = under_way(n);
        job["run_id"] = Value::Null;
        job["input"] = json!({"messages": [{"id": format!("h{n}"), "content": "Do it."}]});
        job
    });
    let old = import(&w, "ann", frozen.collect());
    w.connect(&old).expect("connected");
    for _ in 0..5 {
        w.later(60_000);
        assert_eq!(w.double.running().len(), 1, "one slot, one run");
    }
    assert_eq!((w.status(&team, &job).as_str(), w.status(&old, "j0").as_str()), ("running", "queued"));
    // One after the other, each once.
    for _ in 0..20 {
        w.double.release_all();
        w.later(60_000);
        assert!(w.double.running().len() <= 1);
    }
    assert!(w.jobs(&old).iter().all(|j| j["status"] == "completed"), "{:?}", w.jobs(&old));
    assert_eq!(w.double.admissions().len(), 9);
}

fn an_imported_member_without_an_agent_fails_its_own_jobs_alone(w: World) {
    w.double.remove_agent("agent-nowhere");
    let mut team = document(Vec::new());
    team["members"][1]["agent"] = json!("agent-nowhere");
    let old = import_document(&w, "ann", team);
    w.connect(&old).expect("connected");
    let (lost, done) = (w.send(&old, 1, "r"), w.send(&old, 0, "s"));
    for _ in 0..3 {
        w.later(60_000);
    }
    // Its conversation was never made here, and no reconnect makes it.
    assert_eq!(w.job(&old, &lost)["error"]["code"], "rejected");
    assert_eq!(w.status(&old, &done), "completed");
    assert_eq!(w.view(&old)["team"]["connected"], true);
    // The first request after its agent is there creates it.
    w.double.restore_agent("agent-nowhere");
    let job = w.send(&old, 1, "t");
    w.work();
    assert_eq!(w.status(&old, &job), "completed");
}

/// Ends the hangs also where the test fails.
struct Release<'a>(&'a World);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.double.release_hangs();
    }
}

/// Runs `f` while a connect of the team hangs in the host and holds its lock.
fn while_locked(w: &World, team: &Team, f: impl FnOnce()) {
    w.double.fault(Method::CreateThread, Some(team.thread(0)), 1, Effect::HangBefore);
    std::thread::scope(|scope| {
        let connecting = scope.spawn(|| w.connect(team));
        let release = Release(w);
        while w.double.hanging() == 0 {
            std::thread::yield_now();
        }
        f();
        drop(release);
        connecting.join().expect("no panic").expect("connected");
    });
}

fn a_team_whose_lock_is_held_loses_its_turn(mut w: World) {
    w.restart_with(r#"{"slots": 1}"#);
    w.double.hold(true);
    let (ann, bea) = (w.team("ann", &["ada", "bo"]), w.team("bea", &["ada", "bo"]));
    let first = w.send(&ann, 0, "r");
    w.clock.advance(1);
    let second = w.send(&bea, 0, "r");
    while_locked(&w, &ann, || {
        // It is ann's turn, and her team can take no step.
        w.work();
        assert_eq!(w.status(&bea, &second), "running");
        assert_eq!(w.status(&ann, &first), "queued");
    });
    w.double.release_all();
    w.later(1_000);
    assert_eq!((w.status(&ann, &first).as_str(), w.status(&bea, &second).as_str()), ("running", "completed"));
    // An end that is announced while the lock is held is not forgotten.
    while_locked(&w, &ann, || {
        w.double.release_all();
        w.work();
    });
    w.later(1_000);
    assert_eq!(w.status(&ann, &first), "completed");
}

fn a_refused_delete_does_not_wait_for_a_step(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.send(&team, 0, "r");
    while_locked(&w, &team, || {
        refused(w.delete(&team), "team_not_finished");
    });
}

#[test]
fn where_others_commit_first_no_team_is_at_fault() {
    let w = World::native();
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    let step = &w.plan(Vec::new(), false).steps[0];
    w.fail_commits([CommitFault::Conflict; 16]);
    assert!(!w.advance(step).expect("no failure of the team's"));
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
}
