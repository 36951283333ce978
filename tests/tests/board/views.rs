//! What views add, the shared context, and conditional reads.

use agent_teams_tests::both;
use agent_teams_tests::harness::World;
use serde_json::json;

use crate::support::{Board, Lead, M};

both! {
    race_5_an_overlap_does_not_keep_anyone_from_claiming,
    race_7_a_blocked_task_says_why,
    views_name_dependants,
    the_context_tells_how_the_board_stands,
    the_board_is_read_conditionally,
    deleting_a_team_leaves_nothing_of_its_board,
}

fn race_5_an_overlap_does_not_keep_anyone_from_claiming(world: World) {
    let board = Board::new(&world);
    let (a, b) = (board.add(&[], &["src"]), board.add(&[], &["src/pages"]));
    board.must(M(0), &a, "claim");
    let task = board.must(M(1), &b, "claim");
    assert_eq!(task["writeScopeWarnings"], json!([format!("write scopes overlap with {a}")]));
}

fn race_7_a_blocked_task_says_why(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    let b = board.add(&[&a], &[]);
    let open = |status: &str| {
        let task = board.task(&b);
        assert_eq!(
            (&task["ready"], &task["openBlockers"]),
            (
                &json!(status.is_empty()),
                &match status {
                    "" => json!([]),
                    status => json!([{"id": a, "status": status}]),
                }
            )
        );
    };
    open("pending");
    board.must(M(0), &a, "claim");
    open("in_progress");
    board.must(M(0), &a, "complete");
    open("");
    board.must(M(0), &a, "reopen");
    open("pending");
}

fn views_name_dependants(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    let (b, c) = (board.add(&[&a], &[]), board.add(&[&a], &[]));
    assert_eq!(board.task(&a)["dependants"], json!([b, c]));
    assert_eq!(board.list(M(0), json!({})).expect("list")["tasks"][0]["dependants"], json!([b, c]));
    board.must(Lead, &b, "delete");
    board.act(Lead, &c, "set_dependencies", json!({"blocked_by": []})).expect("set");
    assert_eq!(board.task(&a)["dependants"], json!([]));
}

fn the_context_tells_how_the_board_stands(world: World) {
    let board = Board::new(&world);
    let context = || {
        let context = world.tool(&board.caller(0), "read_team_context", json!({"team_id": board.team.id}));
        context.expect("context")["board"].clone()
    };
    assert_eq!(context(), json!({"ready": 0, "in_progress": 0, "blocked": 0, "completed": 0}));
    let (a, b) = (board.add(&[], &[]), board.add(&[], &[]));
    board.add(&[&a], &[]);
    board.must(M(0), &b, "claim");
    assert_eq!(context(), json!({"ready": 1, "in_progress": 1, "blocked": 1, "completed": 0}));
    board.must(M(0), &b, "complete");
    board.must(M(0), &a, "claim");
    board.must(M(0), &a, "complete");
    assert_eq!(context(), json!({"ready": 1, "in_progress": 0, "blocked": 0, "completed": 2}));
    world.send(&board.team, 1, "r");
    world.work();
    assert!(world.double.last_input(board.team.thread(1)).contains("\"completed\":2"));
}

fn the_board_is_read_conditionally(world: World) {
    let board = Board::new(&world);
    let first = board.list(Lead, json!({})).expect("list");
    let revision = first["revision"].as_u64().expect("revision");
    let again = board.list(Lead, json!({"revision": revision})).expect("list");
    assert_eq!(again, json!({"unchanged": true, "revision": revision}));
    board.add(&[], &[]);
    let changed = board.list(Lead, json!({"revision": revision})).expect("list");
    assert!(changed["revision"].as_u64() > Some(revision));
    assert_eq!(changed["board"]["ready"], 1);
    assert_eq!(changed["board"]["changesLeft"], 9_999);
}

fn deleting_a_team_leaves_nothing_of_its_board(world: World) {
    let board = Board::new(&world);
    for _ in 0..60 {
        board.add(&[], &["src"]);
    }
    world.delete(&board.team).expect("delete");
    if let Some(host) = world.native_host() {
        let left = host.store().dump().into_iter().filter(|(key, _)| key.starts_with("team/"));
        assert_eq!(left.map(|(key, _)| key).collect::<Vec<_>>(), Vec::<String>::new());
    }
    let again = Board::new(&world);
    assert_eq!(again.team.id, board.team.id);
    assert!(again.ids().is_empty());
    assert_eq!(again.add(&[], &[]), "task-1");
}
