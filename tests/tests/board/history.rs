//! The journal, read back.

use agent_teams_tests::both;
use agent_teams_tests::harness::{World, refused};
use serde_json::{Value, json};

use crate::support::{Board, Lead, M};

both! {
    every_change_is_kept_with_who_and_when,
    pages_of_history_are_whole_and_bounded,
}

fn history(board: &Board, mut payload: Value) -> Value {
    payload["team_id"] = json!(board.team.id);
    board.world.action(&board.team.owner, "task_history", payload).expect("history")
}

fn every_change_is_kept_with_who_and_when(world: World) {
    let board = Board::new(&world);
    let (a, b) = (board.add(&[], &[]), board.add(&[], &[]));
    world.clock.advance(60_000);
    board.must(M(0), &a, "claim");
    board.act(M(0), &a, "edit", json!({"subject": "Second"})).expect("edit");
    board.must(Lead, &b, "delete");
    let all = history(&board, json!({}));
    let seqs: Vec<u64> = all["events"].as_array().expect("events").iter().filter_map(|e| e["seq"].as_u64()).collect();
    assert_eq!(seqs, [5, 4, 3, 2, 1]);
    assert_eq!(all["changesLeft"], 9_995);
    assert_eq!(all["events"][0]["task"]["status"], "deleted");
    let own = history(&board, json!({"task_id": a}));
    let told: Vec<String> = own["events"]
        .as_array()
        .expect("events")
        .iter()
        .map(|e| format!("{} {} {} {}", e["task"]["revision"], e["author"]["kind"], e["task"]["subject"], e["at"]))
        .collect();
    assert_eq!(
        told,
        [
            "3 \"member\" \"Second\" \"2026-01-01T00:01:00.000Z\"",
            "2 \"member\" \"Task\" \"2026-01-01T00:01:00.000Z\"",
            "1 \"lead\" \"Task\" \"2026-01-01T00:00:00.000Z\"",
        ]
    );
    assert_eq!(own["events"][1]["author"]["thread"], board.owner(0));
    let tombstone = history(&board, json!({"task_id": b}));
    assert_eq!(tombstone["events"].as_array().map(Vec::len), Some(2));
    let missing = world.action("ann", "task_history", json!({"team_id": board.team.id, "task_id": "task-9"}));
    refused(missing, "TEAM_TASK_NOT_FOUND");
    let whole = history(&board, json!({"seq": 4}));
    assert_eq!(whole["events"][0]["task"]["subject"], "Second");
}

fn pages_of_history_are_whole_and_bounded(world: World) {
    let board = Board::new(&world);
    let id = board.add(&[], &[]);
    for n in 0..40 {
        let text = "😀".repeat(400 + n);
        board.act(Lead, &id, "edit", json!({"description": text})).expect("edit");
        board.add(&[], &[]);
    }
    for filter in [json!({}), json!({"task_id": id})] {
        let (mut seen, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let mut payload = filter.clone();
            payload["cursor"] = cursor;
            payload["limit"] = json!(30);
            let page = history(&board, payload);
            assert!(page.to_string().len() <= 24_000);
            let events = page["events"].as_array().expect("events");
            assert!(events.len() <= 30);
            seen.extend(events.iter().filter_map(|e| e["seq"].as_u64()));
            match page.get("nextCursor") {
                Some(next) => cursor = next.clone(),
                None => break,
            }
        }
        let expected: Vec<u64> = if filter == json!({}) {
            (1..=81).rev().collect()
        } else {
            (1..=81).rev().filter(|seq| *seq == 1 || seq % 2 == 0).collect()
        };
        assert_eq!(seen, expected);
    }
}
