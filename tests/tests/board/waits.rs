//! Waits as the component decides them; natively, so that every moment in
//! between can be chosen. Rows 93 to 101 and 105.

use agent_teams_plugin::app::{Caller, Ctx, Park, Wake};
use agent_teams_plugin::domain::error::Error;
use agent_teams_plugin::exports::{self, Outcome};
use agent_teams_plugin::host::Host;
use agent_teams_tests::harness::World;
use agent_teams_tests::native::NativeHost;
use serde_json::{Value, json};

use crate::support::{Board, Lead, M};

fn caller(board: &Board, n: usize) -> Caller {
    Caller { owner: "ann".into(), thread: Some(board.owner(n).into()), ..Caller::default() }
}

fn host(world: &World) -> &NativeHost {
    world.native_host().expect("native")
}

fn wait(board: &Board, n: usize, timeout_ms: Value) -> Result<Outcome, Error> {
    let caller = caller(board, n);
    let ctx = Ctx { host: host(board.world), caller: &caller, runs: None };
    let arguments = json!({"team_id": board.team.id, "timeout_ms": timeout_ms}).to_string();
    exports::tools::call(ctx, "wait_for_team_tasks", &arguments)
}

fn resume(board: &Board, n: usize, park: &Park, wake: Wake) -> Outcome {
    let caller = caller(board, n);
    let ctx = Ctx { host: host(board.world), caller: &caller, runs: None };
    exports::tools::resume(ctx, &park.token, wake).expect("resume")
}

#[track_caller]
fn parked(outcome: Outcome) -> Park {
    match outcome {
        Outcome::Park(park) => park,
        Outcome::Done(text) => panic!("it does not wait: {text}"),
    }
}

#[track_caller]
fn done(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Done(text) => serde_json::from_str(&text).expect("json"),
        Outcome::Park(park) => panic!("it waits: {park:?}"),
    }
}

/// Whether the host would resume this wait at once.
fn woken(board: &Board, park: &Park) -> bool {
    host(board.world).position("ann", &park.topic) != park.seen
}

/// A board of a team whose member `b` is at work.
fn busy(world: &World) -> Board<'_> {
    let board = Board::new(world);
    world.double.hold(true);
    world.send(&board.team, 1, "r");
    world.work();
    board
}

#[test]
fn rows_93_and_101_the_time_has_bounds_also_with_nobody_at_work() {
    let world = World::native();
    let board = Board::new(&world);
    for bad in [9_999_i64, 3_600_001, 0, -1, 9_007_199_254_740_992] {
        let error = wait(&board, 0, json!(bad)).expect_err("refused");
        assert_eq!(error.code, "TEAM_INVALID_TIMEOUT");
        assert!(error.message.contains("10000") && error.message.contains("3600000"), "{error:?}");
    }
    for good in [json!(10_000), json!(3_600_000), json!(null)] {
        wait(&board, 0, good).expect("accepted");
    }
    let stranger = Caller { owner: "ann".into(), thread: Some("x".into()), ..Caller::default() };
    let ctx = Ctx { host: host(&world), caller: &stranger, runs: None };
    let arguments = json!({"team_id": board.team.id, "timeout_ms": 1}).to_string();
    let error = exports::tools::call(ctx, "wait_for_team_tasks", &arguments).expect_err("refused");
    assert_eq!(error.code, "TEAM_NOT_MEMBER", "who asks is looked at first");
}

#[test]
fn row_100_with_nobody_else_at_work_there_is_nothing_to_wait_for() {
    let world = World::native();
    let board = Board::new(&world);
    let answer = done(wait(&board, 0, json!(3_600_000)).expect("wait"));
    assert_eq!((&answer["timedOut"], &answer["noProgress"]["reason"]), (&json!(false), &json!("no-active-peer")));
    // One's own job is nobody else's.
    world.send(&board.team, 0, "own");
    done(wait(&board, 0, json!(10_000)).expect("wait"));
    world.send(&board.team, 1, "other");
    parked(wait(&board, 0, json!(10_000)).expect("wait"));
    // Somebody who waits for a person changes nothing either.
    world.double.script(board.owner(1), [agent_teams_tests::double::Turn::ask("Which?")]);
    world.work();
    let answer = done(wait(&board, 2, json!(10_000)).expect("wait"));
    assert_eq!(answer["noProgress"]["reason"], "no-active-peer");
}

#[test]
fn row_95_a_commit_ends_a_wait_and_nothing_before_it_does() {
    let world = World::native();
    let board = busy(&world);
    let park = parked(wait(&board, 0, json!(3_600_000)).expect("wait"));
    assert!(!woken(&board, &park));
    world.fail_commits([agent_teams_tests::native::CommitFault::Unavailable]);
    board.create(M(1), json!({"subject": "s", "description": "d"})).expect_err("not stored");
    assert!(!woken(&board, &park), "a commit that failed wakes nobody");
    board.add(&[], &[]);
    assert!(woken(&board, &park));
    assert_eq!(done(resume(&board, 0, &park, Wake::Signalled)), json!({"timedOut": false}));
}

#[test]
fn row_97_everybody_who_waits_is_woken_the_writer_too() {
    let world = World::native();
    let board = busy(&world);
    world.send(&board.team, 2, "r2");
    let waits: Vec<(usize, Park)> =
        (0..3).map(|n| (n, parked(wait(&board, n, json!(60_000)).expect("wait")))).collect();
    board.create(M(2), json!({"subject": "s", "description": "d"})).expect("create");
    for (n, park) in &waits {
        assert!(woken(&board, park));
        assert_eq!(done(resume(&board, *n, park, Wake::Signalled)), json!({"timedOut": false}));
    }
}

#[test]
fn row_98_a_change_before_the_wait_is_not_remembered() {
    let world = World::native();
    let board = busy(&world);
    board.add(&[], &[]);
    let mut park = parked(wait(&board, 0, json!(25_000)).expect("wait"));
    assert!(!woken(&board, &park));
    // The host looks in parts of ten seconds.
    for left in [10_000, 10_000, 5_000] {
        assert_eq!(park.timeout_ms, left);
        world.clock.advance(left.into());
        match resume(&board, 0, &park, Wake::TimedOut) {
            Outcome::Park(next) => park = next,
            Outcome::Done(text) => {
                assert_eq!((left, text.as_str()), (5_000, "{\"timedOut\":true}"));
                return;
            }
        }
    }
    panic!("it never ends");
}

#[test]
fn a_wait_ends_in_time_also_when_the_clock_stands_still() {
    let world = World::native();
    let board = busy(&world);
    let park = parked(wait(&board, 0, json!(10_000)).expect("wait"));
    assert_eq!(done(resume(&board, 0, &park, Wake::TimedOut)), json!({"timedOut": true}));
}

#[test]
fn row_99_a_host_that_stops_ends_every_wait() {
    let world = World::native();
    let board = busy(&world);
    let park = parked(wait(&board, 0, json!(3_600_000)).expect("wait"));
    assert_eq!(done(resume(&board, 0, &park, Wake::Closed)), json!({"timedOut": false}));
}

#[test]
fn row_105_the_usual_time_is_thirty_seconds() {
    let world = World::native();
    let board = busy(&world);
    let park = parked(wait(&board, 0, json!(null)).expect("wait"));
    board.add(&[], &[]);
    done(resume(&board, 0, &park, Wake::Signalled));
    let mut park = parked(wait(&board, 0, json!(null)).expect("wait"));
    for _ in 0..2 {
        park = parked(resume(&board, 0, &park, Wake::TimedOut));
    }
    assert_eq!(done(resume(&board, 0, &park, Wake::TimedOut)), json!({"timedOut": true}));
}

#[test]
fn other_changes_of_the_team_do_not_end_a_wait() {
    let world = World::native();
    let board = busy(&world);
    let park = parked(wait(&board, 0, json!(60_000)).expect("wait"));
    world.send(&board.team, 1, "more");
    assert!(woken(&board, &park), "the topic is the team's");
    let again = parked(resume(&board, 0, &park, Wake::Signalled));
    assert!(!woken(&board, &again));
    assert_eq!(again.timeout_ms, 10_000);
}

#[test]
fn a_wait_ends_when_the_last_peer_does() {
    let world = World::native();
    let board = busy(&world);
    let park = parked(wait(&board, 0, json!(60_000)).expect("wait"));
    world.double.hold(false);
    world.double.release_all();
    world.work();
    assert!(woken(&board, &park));
    let answer = done(resume(&board, 0, &park, Wake::Signalled));
    assert_eq!(answer["noProgress"]["reason"], "no-active-peer");
}

#[test]
fn a_change_between_the_read_and_the_wait_is_not_lost() {
    let world = World::native();
    let board = busy(&world);
    let park = parked(wait(&board, 0, json!(60_000)).expect("wait"));
    // Committed after the snapshot, before the host began to wait.
    board.add(&[], &[]);
    assert!(woken(&board, &park));
    assert_eq!(done(resume(&board, 0, &park, Wake::Signalled)), json!({"timedOut": false}));
}

#[test]
fn with_every_slot_taken_and_jobs_queued_waiting_is_in_vain() {
    let world = World::native_with(1, "{\"slots\":2}");
    let board = Board::new(&world);
    world.double.hold(true);
    for n in 0..2 {
        world.send(&board.team, n, &format!("r{n}"));
    }
    world.work();
    let park = parked(wait(&board, 0, json!(60_000)).expect("both slots are taken, and nobody waits for one"));
    // Another owner's request finds no slot. The teams that hold slots are not
    // signalled, since their owner must not see it; a wait checks by itself.
    let other = world.team("bob", &["x", "y"]);
    world.send(&other, 0, "theirs");
    assert!(!woken(&board, &park));
    let answer = done(resume(&board, 0, &park, Wake::TimedOut));
    assert_eq!((&answer["timedOut"], &answer["noProgress"]["reason"]), (&json!(false), &json!("no-free-slot")));
    done(wait(&board, 1, json!(60_000)).expect("and a new wait returns at once"));
}

#[test]
fn a_token_of_a_team_that_is_gone_ends_in_a_refusal() {
    let world = World::native();
    let board = busy(&world);
    let park = parked(wait(&board, 0, json!(60_000)).expect("wait"));
    let stranger = Caller { owner: "bob".into(), thread: Some(board.owner(0).into()), ..Caller::default() };
    let ctx = Ctx { host: host(&world), caller: &stranger, runs: None };
    assert_eq!(exports::tools::resume(ctx, &park.token, Wake::Closed).expect_err("refused").code, "TEAM_NOT_MEMBER");
    assert_eq!(exports::tools::resume(ctx, "{}", Wake::Closed).expect_err("refused").code, "wait_not_found");
    assert!(board.list(Lead, json!({})).is_ok());
}
