//! Who may start next.

use agent_teams_tests::both;
use agent_teams_tests::harness::{Team, World};

both!(
    lifecycle_23_owners_rotate_with_one_slot,
    lifecycle_23_the_round_goes_on_after_a_restart,
    lifecycle_23_a_cancelled_queue_drops_out,
    fault_7_a_single_request_is_not_behind_anothers_backlog,
    at_most_eight_jobs_are_admitted,
    slots_stay_taken_across_a_restart,
);

/// One slot; a team for each owner, whose conversations all have work.
fn one_slot(w: &mut World, owners: &[(&str, usize)]) -> Vec<Team> {
    w.restart_with(r#"{"slots": 1}"#);
    w.double.hold(true);
    let mut teams = Vec::new();
    for (owner, requests) in owners {
        let team = w.team(owner, &["ada", "bo"]);
        for n in 0..*requests {
            w.clock.advance(1);
            w.send(&team, n % 2, &format!("r{n}"));
        }
        teams.push(team);
    }
    teams
}

/// Whose run is at work, then ends it.
fn next(w: &World) -> String {
    w.work();
    let running = w.double.running();
    assert_eq!(running.len(), 1, "one slot");
    let owner = w.double.admissions().into_iter().find(|a| a.run == running[0]).expect("admitted").owner;
    w.double.release_all();
    owner
}

fn lifecycle_23_owners_rotate_with_one_slot(mut w: World) {
    one_slot(&mut w, &[("a", 20), ("b", 1), ("c", 1)]);
    let mut order: Vec<String> = (0..3).map(|_| next(&w)).collect();
    // A new owner joins at the tail.
    let late = w.team("d", &["ada", "bo"]);
    w.send(&late, 0, "r");
    order.extend((0..3).map(|_| next(&w)));
    assert_eq!(order, ["a", "b", "c", "a", "d", "a"]);
}

fn lifecycle_23_the_round_goes_on_after_a_restart(mut w: World) {
    let teams = one_slot(&mut w, &[("a", 6), ("b", 6), ("c", 6)]);
    let mut order: Vec<String> = (0..2).map(|_| next(&w)).collect();
    w.restart();
    for team in &teams {
        w.connect(team).expect("connected");
    }
    w.sweep();
    order.extend((0..4).map(|_| next(&w)));
    assert_eq!(order, ["a", "b", "c", "a", "b", "c"]);
}

fn lifecycle_23_a_cancelled_queue_drops_out(mut w: World) {
    let teams = one_slot(&mut w, &[("a", 6), ("b", 2), ("c", 6)]);
    let mut order = vec![next(&w)];
    for job in w.jobs(&teams[1]) {
        w.cancel(&teams[1], job["id"].as_str().expect("id")).expect("cancelled");
    }
    order.extend((0..3).map(|_| next(&w)));
    assert_eq!(order, ["a", "c", "a", "c"]);
}

fn fault_7_a_single_request_is_not_behind_anothers_backlog(mut w: World) {
    one_slot(&mut w, &[("a", 30)]);
    next(&w);
    next(&w);
    let team = w.team("b", &["ada", "bo"]);
    w.send(&team, 0, "r");
    // Whoever is at work continues; the next slot is b's.
    let order: Vec<String> = (0..2).map(|_| next(&w)).collect();
    assert!(order.contains(&"b".to_owned()), "{order:?}");
}

fn at_most_eight_jobs_are_admitted(w: World) {
    w.double.hold(true);
    let names = ["a", "b", "c", "d", "e", "f"];
    let (one, two) = (w.team("ann", &names), w.team("bea", &names));
    for n in 0..6 {
        w.send(&one, n, &format!("r{n}"));
        w.send(&two, n, &format!("r{n}"));
    }
    w.work();
    assert_eq!(w.double.running().len(), 8);
    assert_eq!(w.slots().len(), 8);
    // Each owner has its share: four, or one less where the last slot was the
    // other's turn. (A pass runs team by team, and each admission goes by the
    // round as it then is.)
    let shares = [w.at_work(&one).len(), w.at_work(&two).len()];
    assert!(shares.iter().all(|share| *share >= 3), "{shares:?}");
    let waiting: Vec<_> = w.jobs(&one).into_iter().filter(|j| j["status"] == "queued").collect();
    assert_eq!(waiting[0]["reason"]["code"], "waiting_for_slot");
    let run = w.double.running_in(one.thread(w.at_work(&one)[0])).expect("at work");
    w.double.release(&run);
    w.work();
    assert_eq!(w.double.running().len(), 8);
}

fn slots_stay_taken_across_a_restart(mut w: World) {
    let teams = one_slot(&mut w, &[("a", 1), ("b", 1)]);
    w.work();
    w.restart();
    // a is not connected, so its run may still be at work: b waits.
    w.connect(&teams[1]).expect("connected");
    w.sweep();
    w.work();
    assert_eq!(w.double.admissions().len(), 1);
    w.connect(&teams[0]).expect("connected");
    w.double.release_all();
    w.work();
    assert_eq!(w.double.admissions().len(), 2);
}
