//! Many at once: each change is decided against what is stored.

use std::sync::Barrier;
use std::thread;

use agent_teams_tests::both;
use agent_teams_tests::harness::World;
use serde_json::json;

use crate::support::{Board, Lead, M, status};

both! {
    race_1_of_fifty_claims_exactly_one_wins,
    two_edges_that_close_a_cycle_together,
    stale_1_tasks_made_at_the_same_instant,
}

/// Runs `f` for each number at the same time.
fn at_once<T: Send>(n: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(n);
    thread::scope(|scope| {
        let run = |i| {
            let (start, f) = (&start, &f);
            scope.spawn(move || {
                start.wait();
                f(i)
            })
        };
        let all: Vec<_> = (0..n).map(run).collect();
        all.into_iter().map(|t| t.join().expect("no panic")).collect()
    })
}

fn race_1_of_fifty_claims_exactly_one_wins(world: World) {
    let board = Board::new(&world);
    for _ in 0..100 {
        let id = board.add(&[], &[]);
        let answers = at_once(50, |i| {
            let who = if i % 4 == 3 { Lead } else { M(i % 4) };
            board.update(who, &id, 1, "claim", json!({}))
        });
        let won: Vec<_> = answers.iter().filter_map(|a| a.as_ref().ok()).collect();
        assert_eq!(won.len(), 1);
        let holder = won[0]["ownerName"].as_str().expect("a name");
        for lost in answers.iter().filter_map(|a| a.as_ref().err()) {
            assert_eq!(lost.code, "TEAM_TASK_STALE_REVISION", "{lost:?}");
            assert!(lost.message.contains(&format!("held by {holder}")), "{lost:?}");
        }
        assert_eq!((board.revision(&id), status(&board.task(&id))), (2, "in_progress"));
        board.must(Lead, &id, "delete");
    }
}

fn two_edges_that_close_a_cycle_together(world: World) {
    let board = Board::new(&world);
    for _ in 0..100 {
        let ids = [board.add(&[], &[]), board.add(&[], &[])];
        let answers =
            at_once(2, |i| board.update(Lead, &ids[i], 1, "set_dependencies", json!({"blocked_by": [ids[1 - i]]})));
        let refused: Vec<_> = answers.iter().filter_map(|a| a.as_ref().err()).collect();
        assert_eq!(refused.len(), 1, "{answers:?}");
        assert_eq!(refused[0].code, "TEAM_TASK_DEPENDENCY_CYCLE");
    }
}

fn stale_1_tasks_made_at_the_same_instant(world: World) {
    let board = Board::new(&world);
    let before = board.list(Lead, json!({})).expect("list")["revision"].as_u64().expect("revision");
    let made = at_once(8, |i| board.create(M(i % 3), json!({"subject": "s", "description": "d"})));
    let mut ids: Vec<String> =
        made.iter().map(|t| t.as_ref().expect("made")["id"].as_str().expect("id").into()).collect();
    ids.sort();
    assert_eq!(ids, (1..=8).map(|n| format!("task-{n}")).collect::<Vec<_>>());
    let after = board.list(Lead, json!({})).expect("list")["revision"].as_u64().expect("revision");
    assert_eq!(after, before + 8);
}
