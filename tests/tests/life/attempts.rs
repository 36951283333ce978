//! What one attempt leaves behind for the next: keys, pauses, and what a host
//! has forgotten.

use agent_teams_tests::both;
use agent_teams_tests::double::{Effect, Method};
use agent_teams_tests::harness::{Team, World};
use serde_json::json;

both!(
    a_refused_attempt_is_followed_by_one_with_a_key_of_its_own,
    an_unknown_attempt_is_followed_by_the_same_one,
    lifecycle_9_a_host_that_forgot_its_keys_is_not_asked_to_start_again,
    a_cancelled_attempt_is_looked_for_under_the_key_that_it_used,
    fault_10_a_team_that_is_denied_again_and_again_pauses_longer_each_time,
);

/// Key and input of every start in a member's conversation.
fn starts(w: &World, team: &Team, member: usize) -> Vec<(Option<String>, Option<String>)> {
    let calls = w.double.calls().into_iter();
    let starts = calls.filter(|c| c.method == Method::Start && c.thread == team.thread(member));
    starts.map(|c| (c.key, c.input)).collect()
}

fn a_refused_attempt_is_followed_by_one_with_a_key_of_its_own(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.fault(Method::Start, Some(team.thread(0)), 2, Effect::busy());
    let job = w.send(&team, 0, "r");
    w.work();
    assert_eq!(w.status(&team, &job), "queued");
    // What everybody knows has changed, and so the input does.
    w.send(&team, 1, "other");
    w.later(60_000);
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "completed");
    let starts = starts(&w, &team, 0);
    assert_eq!(starts.len(), 3);
    assert_ne!(starts[0].1, starts[1].1, "another input");
    for (n, (key, input)) in starts.iter().enumerate() {
        let same = starts.iter().filter(|(k, _)| k == key).all(|(_, i)| i == input);
        assert!(key.is_some() && same, "attempt {n}: one key carries one input");
    }
    assert_eq!(w.runs(&team, 0), 1);
}

fn an_unknown_attempt_is_followed_by_the_same_one(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.fault(Method::Start, Some(team.thread(0)), 1, Effect::busy());
    w.double.fault(Method::Start, Some(team.thread(0)), 2, Effect::timed_out());
    let job = w.send(&team, 0, "r");
    w.work();
    w.send(&team, 1, "other");
    for _ in 0..4 {
        w.later(60_000);
    }
    assert_eq!(w.status(&team, &job), "completed");
    let starts = starts(&w, &team, 0);
    assert_eq!(starts.len(), 4);
    assert!(starts[1..].iter().all(|start| *start == starts[1]), "the same key and bytes until somebody knows");
    assert_ne!(starts[0].0, starts[1].0);
}

fn lifecycle_9_a_host_that_forgot_its_keys_is_not_asked_to_start_again(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.durable_keys(false);
    w.double.hold(true);
    w.double.fault(Method::Start, None, 1, Effect::reply_lost());
    let job = w.send(&team, 0, "r");
    w.work();
    w.double.forget_keys();
    w.later(60_000);
    // Even a person's leave does not talk over the run that is still there.
    w.settle(&team, &job, "retry").expect("to be tried again");
    w.work();
    assert_eq!((w.status(&team, &job).as_str(), w.reason(&team, &job).as_str()), ("running", "conversation_busy"));
    assert_eq!(w.runs(&team, 0), 1);
    w.double.release_all();
    w.double.fault(Method::Start, None, 1, Effect::reply_lost());
    w.later(60_000);
    assert_eq!(w.runs(&team, 0), 2, "once, as asked for");
    w.double.forget_keys();
    w.double.release_all();
    for _ in 0..5 {
        w.later(60_000);
    }
    assert_eq!((w.status(&team, &job).as_str(), w.runs(&team, 0)), ("unknown", 2), "and not on a guess");
    let starts = starts(&w, &team, 0);
    assert_eq!(starts.len(), 2);
    assert_eq!(starts[0], starts[1], "the same key and the same bytes");
}

fn a_cancelled_attempt_is_looked_for_under_the_key_that_it_used(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.double.fault(Method::Start, None, 1, Effect::busy());
    w.double.fault(Method::Start, None, 1, Effect::reply_lost());
    let job = w.send(&team, 0, "r");
    w.work();
    w.later(60_000);
    assert_eq!(w.runs(&team, 0), 1);
    w.cancel(&team, &job).expect("cancelled");
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "cancelled");
    assert!(w.double.running().is_empty(), "the run that nobody had named is stopped");
}

fn fault_10_a_team_that_is_denied_again_and_again_pauses_longer_each_time(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    // Its conversations are there, and connecting succeeds each time.
    w.double.fault(Method::State, None, 1_000, Effect::denied());
    let mut pauses = Vec::new();
    for _ in 0..8 {
        w.work();
        assert!(!w.connected(&team));
        let plan = w.plan(Vec::new(), true);
        assert!(plan.connect.is_empty(), "not before its pause is over");
        let mut pause = 0;
        while w.plan(Vec::new(), true).connect.is_empty() {
            w.clock.advance(500);
            pause += 500;
        }
        pauses.push(pause);
        w.connect_as_worker("ann", &team.id).expect("connected");
    }
    assert_eq!(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    assert_eq!(w.runs(&team, 0), 0);
    // What the host says of a run proves that it lets the team work.
    w.double.clear_faults();
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
    w.double.fault(Method::State, None, 1, Effect::denied());
    w.send(&team, 0, "next");
    w.work();
    let reason = &w.view(&team)["team"]["reason"];
    assert_eq!(reason["code"], json!("denied"));
    w.clock.advance(1_000);
    assert_eq!(w.plan(Vec::new(), true).connect.len(), 1, "the first pause again");
}
