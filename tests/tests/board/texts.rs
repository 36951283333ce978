//! Bounds of texts and lists: rows 56 and 57, and n − 1, n, n + 1.

use agent_teams_tests::both;
use agent_teams_tests::harness::{World, refused};
use serde_json::json;

use crate::support::{Board, Lead, M};

both! {
    row_56_texts_are_counted_in_utf_16,
    row_57_texts_are_trimmed_as_pages_do,
    blockers_and_scopes_are_bounded,
    the_largest_task_can_be_made_read_and_listed,
}

fn row_56_texts_are_counted_in_utf_16(world: World) {
    let board = Board::new(&world);
    let subject = |text: String| board.create(M(0), json!({"subject": text, "description": "d"}));
    let description = |text: String| board.create(M(0), json!({"subject": "s", "description": text}));
    for (unit, width) in [("x", 1), ("é", 1), ("研", 1), ("😀", 2), ("\"", 1), ("\u{1}", 1)] {
        for fits in [199, 200] {
            subject(unit.repeat(fits / width)).expect("fits");
        }
        refused(subject(unit.repeat(200 / width + 1)), "TEAM_INVALID_ARGUMENT");
        description(unit.repeat(16_384 / width)).expect("fits");
        refused(description(unit.repeat(16_384 / width + 1)), "TEAM_INVALID_ARGUMENT");
    }
    subject(format!(" {} ", "x".repeat(200))).expect("counted when trimmed");
}

fn row_57_texts_are_trimmed_as_pages_do(world: World) {
    let board = Board::new(&world);
    let task = board
        .create(M(0), json!({"subject": "\u{feff}\u{a0}a\u{3000}", "description": "\u{85}b\u{85}\u{200b}"}))
        .expect("create");
    assert_eq!((&task["subject"], &task["description"]), (&json!("a"), &json!("\u{85}b\u{85}\u{200b}")));
    refused(board.create(M(0), json!({"subject": "\u{feff}\u{2028}", "description": "d"})), "TEAM_INVALID_ARGUMENT");
}

fn blockers_and_scopes_are_bounded(world: World) {
    let board = Board::new(&world);
    let all: Vec<String> = (0..65).map(|_| board.add(&[], &[])).collect();
    let blocked = |n: usize| json!({"subject": "s", "description": "d", "blocked_by": all[..n]});
    board.create(M(0), blocked(64)).expect("64 blockers");
    refused(board.create(M(0), blocked(65)), "TEAM_INVALID_ARGUMENT");
    let scoped = |scopes: Vec<String>| json!({"subject": "s", "description": "d", "write_scopes": scopes});
    let names = |n: usize| (0..n).map(|i| format!("p{i}")).collect::<Vec<_>>();
    board.create(M(0), scoped(names(32))).expect("32 scopes");
    refused(board.create(M(0), scoped(names(33))), "TEAM_INVALID_WRITE_SCOPE");
    board.create(M(0), scoped(vec!["x".repeat(256)])).expect("256 bytes");
    refused(board.create(M(0), scoped(vec!["研".repeat(86)])), "TEAM_INVALID_WRITE_SCOPE");
}

fn the_largest_task_can_be_made_read_and_listed(world: World) {
    let board = Board::new(&world);
    let scope = |i: usize| format!("{}{i:02}", "\u{1}".repeat(254));
    let scopes: Vec<String> = (0..32).map(scope).collect();
    let new =
        json!({"subject": "\u{1}".repeat(200) + "x", "description": "\u{1}".repeat(16_384), "write_scopes": scopes});
    refused(board.create(M(0), new.clone()), "TEAM_INVALID_ARGUMENT");
    let mut new = new;
    new["subject"] = json!("\u{1}".repeat(200));
    for _ in 0..3 {
        board.create(M(0), new.clone()).expect("create");
    }
    let whole = board.get(M(0), "task-1").expect("get");
    assert_eq!(whole["description"].as_str().map(str::len), Some(16_384));
    assert_eq!(whole["writeScopes"].as_array().map(Vec::len), Some(32));
    assert!(whole.get("truncated").is_none());
    let page = board.list(M(0), json!({})).expect("list");
    assert!(page.to_string().len() <= 24_000, "{}", page.to_string().len());
    assert_eq!(page["tasks"][0]["truncated"], true);
    assert!(page["tasks"][0]["description"].as_str().expect("text").ends_with('…'));
    assert!(board.list(Lead, json!({})).expect("list").to_string().len() <= 500_000);
}
