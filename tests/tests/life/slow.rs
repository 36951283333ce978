//! A host whose every call takes as long as one call may: a step of one job
//! takes ten seconds of its time at most, and each job comes to its end.

use std::collections::BTreeMap;

use agent_teams_host::contract::EndedRun;
use agent_teams_tests::both;
use agent_teams_tests::double::{Effect, Method, Turn};
use agent_teams_tests::harness::{Team, World};
use serde_json::json;

both!(
    a_request_is_started_and_collected_call_by_call,
    a_run_whose_start_was_not_answered_is_found_and_read,
    an_answer_is_sent_and_collected_call_by_call,
    a_run_that_is_not_named_yet_is_found_and_cancelled,
    what_a_person_wants_sent_again_is_sent_once,
    a_sent_input_is_never_taken_for_one_that_was_not_sent,
    no_job_of_a_team_waits_for_the_others_to_be_quick,
);

/// The longest that one call may take.
const CALL_MS: u64 = 9_000;

/// One pass; what ended is announced once, as by a host. True: it changed
/// something.
fn pass(w: &World) -> bool {
    let ended = w.double.take_ended().into_iter().map(|(owner, thread, run)| EndedRun { owner, thread, run }).collect();
    let mut changed = false;
    for step in w.plan(ended, false).steps {
        let before = w.double.calls().len();
        changed |= w.advance(&step).expect("a step");
        // Each conversation has one job.
        let mut time: BTreeMap<String, u64> = BTreeMap::new();
        for call in &w.double.calls()[before..] {
            *time.entry(call.thread.clone()).or_default() += CALL_MS;
        }
        assert!(time.values().all(|ms| *ms <= 10_000), "{time:?}");
    }
    changed
}

/// Passes until the job has this status.
#[track_caller]
fn until(w: &World, team: &Team, job: &str, status: &str) {
    for _ in 0..30 {
        if w.status(team, job) == status {
            return;
        }
        if !pass(w) {
            w.clock.advance(1_000);
        }
    }
    panic!("{status} is not reached: {}", w.job(team, job));
}

fn a_request_is_started_and_collected_call_by_call(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.takes(&w.clock, CALL_MS);
    let job = w.send(&team, 0, "r");
    until(&w, &team, &job, "completed");
    assert_eq!((w.runs(&team, 0), w.double.count(Method::Start, None)), (1, 1));
    // A conversation that is not fresh any more, and one that stops.
    w.double.script(team.thread(0), [Turn::interrupt("i", "{}")]);
    w.double.interrupts_succeed(true);
    let job = w.send(&team, 0, "stops");
    until(&w, &team, &job, "waiting_input");
    // An interrupt that was answered elsewhere leaves no answer of the job's.
    w.double.interrupts_succeed(false);
    w.cancel(&team, &job).expect("cancelled");
    w.double.answer_outside(team.thread(0));
    w.double.script(team.thread(0), [Turn::interrupt("i", "{}")]);
    let job = w.send(&team, 0, "answered elsewhere");
    while w.reason(&team, &job) != "interrupt_unread" {
        pass(&w);
    }
    w.double.answer_outside(team.thread(0));
    w.double.say(team.thread(0), "an unrelated text");
    until(&w, &team, &job, "failed");
    assert_eq!(w.job(&team, &job)["error"]["code"], "not_attributable");
}

fn a_run_whose_start_was_not_answered_is_found_and_read(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.takes(&w.clock, CALL_MS);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1, Effect::reply_lost());
    until(&w, &team, &job, "completed");
    assert_eq!(w.runs(&team, 0), 1);
    // What never arrived is sent, though looking for it takes all of a step.
    let job = w.send(&team, 1, "lost on its way");
    w.double.fault(Method::Start, None, 1, Effect::timed_out());
    until(&w, &team, &job, "completed");
    assert_eq!(w.runs(&team, 1), 1);
}

fn an_answer_is_sent_and_collected_call_by_call(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.takes(&w.clock, CALL_MS);
    w.double.script(team.thread(0), [Turn::interrupt("i1", "{}"), Turn::ask("Which?")]);
    let job = w.send(&team, 0, "r");
    until(&w, &team, &job, "waiting_input");
    w.answer(&team, &job, "a", json!({"approved": true})).expect("accepted");
    until(&w, &team, &job, "waiting_input");
    w.answer(&team, &job, "b", json!("the red one")).expect("accepted");
    until(&w, &team, &job, "completed");
    assert_eq!(w.runs(&team, 0), 3);
    assert_eq!(w.double.violations(), Vec::<String>::new());
}

fn a_run_that_is_not_named_yet_is_found_and_cancelled(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.double.takes(&w.clock, CALL_MS);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1, Effect::reply_lost());
    while w.double.running().is_empty() {
        pass(&w);
    }
    w.cancel(&team, &job).expect("cancelling");
    until(&w, &team, &job, "cancelled");
    assert!(w.double.running().is_empty() && w.slots().is_empty());
}

fn what_a_person_wants_sent_again_is_sent_once(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.durable_keys(false);
    w.double.takes(&w.clock, CALL_MS);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1, Effect::other());
    until(&w, &team, &job, "unknown");
    w.settle(&team, &job, "retry").expect("tried again");
    until(&w, &team, &job, "completed");
    assert_eq!(w.runs(&team, 0), 1);
}

/// Its start was answered "busy", and whether an earlier attempt was admitted
/// cannot be asked any more in that step.
fn a_sent_input_is_never_taken_for_one_that_was_not_sent(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.durable_keys(false);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1, Effect::Lose(agent_teams_plugin::host::RunError::Other("?".into())));
    w.work();
    w.double.forget_keys();
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "unknown");
    w.double.release_all();
    w.double.takes(&w.clock, CALL_MS);
    w.double.fault(Method::Start, None, 1, Effect::busy());
    w.settle(&team, &job, "retry").expect("tried again");
    until(&w, &team, &job, "unknown");
    assert_eq!(w.runs(&team, 0), 1);
}

fn no_job_of_a_team_waits_for_the_others_to_be_quick(w: World) {
    let names = ["a", "b", "c", "d", "e", "f"];
    let team = w.team("ann", &names);
    w.double.hold(true);
    let jobs: Vec<String> = (0..5).map(|n| w.send(&team, n, &format!("r{n}"))).collect();
    w.work();
    // All end at once, and each end is announced once; another job is to start.
    w.double.takes(&w.clock, CALL_MS);
    w.double.hold(false);
    w.double.release_all();
    let queued = w.send(&team, 5, "queued");
    for _ in 0..30 {
        pass(&w);
    }
    for job in jobs.iter().chain([&queued]) {
        assert_eq!(w.status(&team, job), "completed");
    }
}
