//! Calls at the same time: what one hanging call of the host holds up, and
//! what it does not; commits whose outcome is unknown.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_teams_tests::double::{Effect, Method};
use agent_teams_tests::harness::{ComponentOptions, World, refused};
use agent_teams_tests::native::CommitFault;
use serde_json::json;

/// Waits until a call hangs. The hang itself is the event; this only lets the
/// other thread run.
fn until_hanging(w: &World) {
    while w.double.hanging() == 0 {
        std::thread::yield_now();
    }
}

fn a_hanging_start_holds_up_nobody_else(w: &World) {
    let (team, other) = (w.team("ann", &["ada", "bo"]), w.team("bea", &["ada", "bo"]));
    let job = w.send(&team, 0, "r");
    let done = AtomicBool::new(false);
    w.double.fault(Method::Start, Some(team.thread(0)), 1, Effect::HangAfter);
    std::thread::scope(|scope| {
        let step = scope.spawn(|| {
            let plan = w.plan(Vec::new(), false);
            let step = plan.steps.iter().find(|s| s.team.team == team.id).expect("a step");
            let result = w.advance(step);
            done.store(true, Ordering::SeqCst);
            result
        });
        until_hanging(w);
        // The other team: everything.
        let theirs = w.send(&other, 0, "r");
        for step in w.plan(Vec::new(), false).steps.iter().filter(|s| s.team.team == other.id) {
            w.advance(step).expect("a step of the other team");
        }
        w.sweep();
        assert_eq!(w.status(&other, &theirs), "completed");
        let made = w.team_named("bea", "t2", &["ada", "bo"]);
        w.delete(&made).expect("deleted");
        // The same team: what needs no host.
        w.send(&team, 1, "while it hangs");
        let queued = w.send(&team, 1, "to be cancelled");
        w.cancel(&team, &queued).expect("cancelled");
        // And a call from inside the run that is being started.
        let handoff = w.tell(&team, 0, 1, "from inside");
        assert_eq!(w.job(&team, &handoff)["parent_id"], json!(job));
        assert!(!done.load(Ordering::SeqCst));
        w.double.release_hangs();
        step.join().expect("no panic").expect("a step");
    });
    // Its end may have been announced while the step was under way.
    w.sweep();
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "completed");
    assert_eq!(w.runs(&team, 0), 2, "the request and the receipt of its handoff");
}

#[test]
fn lifecycle_24_fault_4_native() {
    a_hanging_start_holds_up_nobody_else(&World::native());
}

#[test]
fn lifecycle_24_fault_4_component() {
    a_hanging_start_holds_up_nobody_else(&World::component());
}

#[test]
fn lifecycle_24_a_hanging_call_ends_at_the_hosts_bound() {
    let options = ComponentOptions { host_call_time: Duration::from_millis(200), ..ComponentOptions::default() };
    let w = World::component_with(options);
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.double.hold(true);
    w.double.fault(Method::Start, None, 1, Effect::HangAfter);
    // It returns without anybody releasing the hang.
    w.work();
    assert_eq!(w.double.hanging(), 0);
    assert_eq!(w.status(&team, &job), "running");
    assert_eq!(w.reason(&team, &job), "host_timeout");
    w.double.release_all();
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "completed");
    assert_eq!(w.runs(&team, 0), 1);
}

#[test]
fn fault_2_a_hanging_create_or_connect_is_its_teams_own_trouble() {
    let options = ComponentOptions { host_call_time: Duration::from_millis(200), ..ComponentOptions::default() };
    let w = World::component_with(options);
    let other = w.team("bea", &["ada", "bo"]);
    w.double.fault(Method::CreateThread, None, 2, Effect::HangBefore);
    let made = w.action("ann", "create", agent_teams_tests::harness::roster("c", &["ada", "bo"])).expect("made");
    assert_eq!((&made["team"]["ready"], &made["team"]["reason"]["code"]), (&json!(false), &json!("host_timeout")));
    let team = agent_teams_tests::harness::Team::from_answer("ann", &made);
    refused(w.connect(&team), "host_timeout");
    let job = w.send(&other, 0, "r");
    w.work();
    assert_eq!(w.status(&other, &job), "completed");
    w.connect(&team).expect("connected");
}

#[test]
fn lifecycle_25_calls_under_way_end_with_the_process_and_another_one_goes_on() {
    let mut w = World::component();
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1, Effect::reply_lost());
    w.work();
    // The database is released: the restart opens the same file.
    w.restart();
    w.connect(&team).expect("connected");
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "completed");
    assert_eq!(w.runs(&team, 0), 1);
}

#[test]
fn fault_1_a_storage_error_is_that_calls_and_nothing_else() {
    let w = World::native();
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.fail_commits([CommitFault::Unavailable]);
    let step = &w.plan(Vec::new(), false).steps[0];
    assert_eq!(w.advance(step).expect_err("refused").code, "store_unavailable");
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
    // Planning and a step that race a deletion.
    let step = step.clone();
    w.delete(&team).expect("deleted");
    let _ = w.advance(&step);
    let other = w.team("bea", &["ada", "bo"]);
    let job = w.send(&other, 0, "r");
    w.work();
    assert_eq!(w.status(&other, &job), "completed");
}

#[test]
fn conflicts_are_decided_again() {
    let w = World::native();
    let team = w.team("ann", &["ada", "bo"]);
    w.fail_commits([CommitFault::Conflict, CommitFault::Conflict]);
    let job = w.send(&team, 0, "r");
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
    assert_eq!(w.jobs(&team).len(), 1);
}

#[test]
fn an_unknown_commit_of_a_send_is_told_by_sending_again() {
    for (fault, made) in [(CommitFault::UnknownWritten, true), (CommitFault::UnknownLost, false)] {
        let w = World::native();
        let team = w.team("ann", &["ada", "bo"]);
        w.fail_commits([fault]);
        let refusal = refused(w.try_send(&team, 0, "r", "Do it."), "commit_unknown");
        assert_eq!(refusal.kind, agent_teams_host::contract::ErrorKind::Unknown);
        assert_eq!(w.jobs(&team).len(), usize::from(made));
        w.try_send(&team, 0, "r", "Do it.").expect("accepted");
        w.work();
        assert_eq!(w.jobs(&team).len(), 1);
        assert_eq!(w.runs(&team, 0), 1);
    }
}

#[test]
fn an_unknown_commit_in_any_step_runs_nothing_twice() {
    for fault in [CommitFault::UnknownWritten, CommitFault::UnknownLost] {
        for skip in 0..8 {
            let w = World::native();
            let team = w.team("ann", &["ada", "bo"]);
            w.double.hold(true);
            w.send(&team, 0, "start");
            w.work();
            let job = w.tell(&team, 0, 1, "ask");
            w.double.hold(false);
            w.double.release_all();
            // The commits up to the fault go well.
            for _ in 0..skip {
                if !w.pass() {
                    break;
                }
            }
            w.fail_commits([fault]);
            w.work();
            for _ in 0..3 {
                w.clock.advance(60_000);
                w.sweep();
                w.work();
            }
            assert_eq!(w.status(&team, &job), "completed", "{fault:?} {skip}");
            assert_eq!(w.receipts(&team).len(), 1);
            assert_eq!((w.runs(&team, 0), w.runs(&team, 1)), (2, 1), "{fault:?} {skip}");
            assert!(w.double.violations().is_empty());
        }
    }
}

/// Records that a call reads.
fn cost(w: &World, call: impl FnOnce()) -> u64 {
    let store = w.native_host().expect("native").store();
    let before = store.reads();
    call();
    store.reads() - before
}

#[test]
fn fault_19_20_reads_do_not_grow_with_finished_work() {
    let w = World::native();
    let team = w.team("ann", &["ada", "bo"]);
    let measure = || {
        let revision = w.view(&team)["team"]["revision"].clone();
        [
            cost(&w, || {
                w.action("ann", "get", json!({"team_id": team.id, "revision": revision})).expect("unchanged");
            }),
            cost(&w, || {
                w.action("ann", "list", json!({})).expect("list");
            }),
            cost(&w, || {
                w.action("ann", "search", json!({"query": "ada"})).expect("hits");
            }),
            cost(&w, || {
                w.plan(Vec::new(), true);
            }),
        ]
    };
    w.send(&team, 0, "first");
    w.work();
    let few = measure();
    for n in 0..60 {
        w.send(&team, n % 2, &format!("r{n}"));
        w.work();
    }
    assert_eq!(measure(), few);
    assert!(few[0] <= 2, "{few:?}");
}

#[test]
fn fault_21_an_answer_is_stored_once_and_no_input_is_kept() {
    let w = World::native();
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.send(&team, 0, "start");
    w.work();
    let text = json!({"team_id": team.id, "member": "bo", "request_id": "x", "text": "the-request-77"});
    w.tool(&w.caller(&team, 0), "send_member", text).expect("accepted");
    w.work();
    let run = w.double.running_in(team.thread(1)).expect("at work");
    w.double.finish(&run, agent_teams_tests::double::Turn::answer("the-answer-99"));
    w.double.hold(false);
    w.release(&team, 0);
    w.work();
    assert!(w.jobs(&team).iter().all(|j| j["status"] == "completed"));
    let dump = w.native_host().expect("native").store().dump();
    for needle in ["the-answer-99", "the-request-77"] {
        let keys: Vec<&str> = dump.iter().filter(|(_, v)| v.contains(needle)).map(|(k, _)| k.as_str()).collect();
        assert_eq!(keys.len(), 1, "{needle}: {keys:?}");
    }
    assert!(!dump.iter().any(|(k, _)| k.ends_with("/input") || k.starts_with("slot/") || k.starts_with("work/")));
}
