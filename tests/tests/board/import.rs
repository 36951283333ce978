//! Imports in parts: repeated, out of order, unfinished, too much.

use agent_teams_tests::both;
use agent_teams_tests::harness::{Answer, World, refused};
use serde_json::{Value, json};

use crate::replay::{log, task};
use crate::support::{Board, Lead, M};

both! {
    parts_follow_each_other_and_may_be_repeated,
    an_unfinished_import_is_settled_by_the_lead,
    only_an_empty_board_takes_a_history,
    a_wrong_log_leaves_the_board_unused,
    a_log_whose_tasks_hold_too_much_is_refused,
    a_log_without_a_header_needs_its_teams_id,
    a_part_is_bounded,
    a_real_log_of_the_first_version,
}

fn send(board: &Board, part: u32, last: bool, lines: &str) -> Answer {
    let payload = json!({"team_id": board.team.id, "part": part, "last": last, "lines": lines});
    board.world.action("ann", "import_tasks", payload)
}

fn one(n: u32) -> String {
    task(&format!("task-{n}"), 1, json!({})).to_string()
}

fn parts_follow_each_other_and_may_be_repeated(world: World) {
    let board = Board::new(&world);
    let first = format!("{}\n{}\n", log(&[]), one(1));
    refused(send(&board, 1, false, &first), "TEAM_BOARD_IMPORT_CONFLICT");
    let reply = send(&board, 0, false, &first).expect("part 0");
    assert_eq!((&reply["import"]["parts"], &reply["import"]["done"]), (&json!(1), &json!(false)));
    assert_eq!(send(&board, 0, false, &first).expect("part 0 again"), reply);
    refused(send(&board, 0, false, &one(9)), "TEAM_BOARD_IMPORT_CONFLICT");
    refused(send(&board, 2, false, &one(9)), "TEAM_BOARD_IMPORT_CONFLICT");
    refused(board.create(Lead, json!({"subject": "s", "description": "d"})), "TEAM_BOARD_IMPORT_UNFINISHED");
    let reply = send(&board, 1, true, &one(2)).expect("part 1");
    assert_eq!((&reply["import"]["done"], &reply["tasks"]), (&json!(true), &json!(2)));
    board.must(M(0), "task-1", "claim");
    let again = send(&board, 0, false, &first).expect("all of it again");
    assert_eq!((&again["tasks"], &again["changes"]), (&json!(2), &json!(3)));
    send(&board, 1, true, &one(2)).expect("to its end");
    assert_eq!(board.revision("task-1"), 2);
    refused(send(&board, 2, true, &one(3)), "TEAM_BOARD_NOT_EMPTY");
}

fn an_unfinished_import_is_settled_by_the_lead(world: World) {
    let board = Board::new(&world);
    send(&board, 0, false, &log(&[task("task-1", 1, json!({}))])).expect("part 0");
    let accept = json!({"team_id": board.team.id, "accept": true});
    world.action("ann", "import_tasks", accept.clone()).expect("accept");
    board.must(M(0), "task-1", "claim");
    world.action("ann", "import_tasks", accept.clone()).expect("once more is no harm");
    let unused = Board { team: world.team_named("ann", "unused", &["a", "b"]), world: &world };
    let nothing = world.action("ann", "import_tasks", json!({"team_id": unused.team.id, "accept": true}));
    refused(nothing, "TEAM_INVALID_ARGUMENT");
    let mut both = accept;
    both["lines"] = json!("x");
    refused(world.action("ann", "import_tasks", both), "TEAM_INVALID_ARGUMENT");
}

fn only_an_empty_board_takes_a_history(world: World) {
    let board = Board::new(&world);
    let lines = log(&[task("task-1", 1, json!({}))]);
    let other = json!({"team_id": board.team.id, "source": "another", "lines": lines});
    world.action("ann", "import_tasks", other).expect("nothing of this team in it");
    send(&board, 0, true, &lines).expect("so the board is still empty");
    let used = Board { team: world.team_named("ann", "used", &["a", "b"]), world: &world };
    let id = used.add(&[], &[]);
    refused(send(&used, 0, true, &lines), "TEAM_BOARD_NOT_EMPTY");
    used.must(Lead, &id, "delete");
    refused(send(&used, 0, true, &lines), "TEAM_BOARD_NOT_EMPTY");
}

fn a_wrong_log_leaves_the_board_unused(world: World) {
    let board = Board::new(&world);
    let lines = log(&[task("task-1", 1, json!({}))]);
    let reply = send(&board, 0, true, "hello\n").expect("a report");
    assert_eq!((&reply["import"]["failure"]["line"], &reply["tasks"]), (&json!(1), &json!(0)));
    let tasks = world.action("ann", "tasks", json!({"team_id": board.team.id})).expect("reads");
    assert_eq!(tasks["board"]["failure"]["line"], json!(1), "what was wrong is told");
    let both = Board { team: world.team_named("ann", "both", &["a", "b"]), world: &world };
    send(&both, 0, true, "hello\n").expect("a report");
    both.add(&[], &[]);
    let tasks = world.action("ann", "tasks", json!({"team_id": both.team.id})).expect("reads");
    assert_eq!(tasks["board"]["failure"], json!(null), "until the board is used");
    send(&board, 0, true, &lines).expect("the right log");
    assert_eq!(board.ids(), ["task-1"]);
    // Also where it came in parts, and the last never did.
    let other = Board { team: world.team_named("ann", "other", &["a", "b"]), world: &world };
    send(&other, 0, false, "hello\n").expect("a report");
    send(&other, 0, true, &lines).expect("the right log");
    let used = Board { team: world.team_named("ann", "used", &["a", "b"]), world: &world };
    used.add(&[], &[]);
    refused(send(&used, 0, true, "hello\n"), "TEAM_BOARD_NOT_EMPTY");
}

/// The rules read blockers and scopes of all tasks at once.
fn a_log_whose_tasks_hold_too_much_is_refused(world: World) {
    let board = Board::new(&world);
    let record = |n: u32| {
        let scopes: Vec<String> = (0..800).map(|s| format!("{n}/{s}/{}", "x".repeat(240))).collect();
        task(&format!("task-{n}"), 1, json!({"status": "in_progress", "writeScopes": scopes}))
    };
    let mut failure = json!(null);
    for part in 0..16 {
        let lines = log(&(1..=4).map(|n| record(part * 4 + n)).collect::<Vec<_>>());
        failure = send(&board, part, part == 15, &lines).expect("a report")["import"]["failure"].clone();
    }
    assert!(failure["message"].as_str().is_some_and(|why| why.contains("8388608 bytes")), "{failure}");
    // What was taken can be read and repaired.
    world.action("ann", "import_tasks", json!({"team_id": board.team.id, "accept": true})).expect("accepted");
    assert!(board.ids().len() > 30);
    board.must(Lead, "task-1", "delete");
}

fn a_log_without_a_header_needs_its_teams_id(world: World) {
    let board = Board::new(&world);
    refused(send(&board, 0, true, &one(1)), "TEAM_INVALID_ARGUMENT");
    let payload = json!({"team_id": board.team.id, "source": "root", "lines": one(1)});
    world.action("ann", "import_tasks", payload).expect("with it");
    assert_eq!(board.ids(), ["task-1"]);
}

fn a_part_is_bounded(world: World) {
    let board = Board::new(&world);
    let lines = |bytes: usize| {
        let mut lines = log(&[]);
        lines.push('\n');
        lines.extend(std::iter::repeat_n(' ', bytes - lines.len()));
        lines
    };
    refused(send(&board, 0, true, &lines(1024 * 1024 + 1)), "TEAM_INVALID_ARGUMENT");
    let reply = send(&board, 0, true, &lines(1024 * 1024)).expect("a whole MiB");
    assert_eq!(reply["import"]["failure"]["line"], 2, "but no such line: {reply}");
}

fn a_real_log_of_the_first_version(world: World) {
    let board = Board::new(&world);
    let lines = [
        r#"{"type":"session","version":0,"id":"lead","createdAt":1796044953840,"delegationDepth":0}"#,
        r#"{"type":"team/task","seq":0,"time":1796044953853,"data":{"version":1,"teamId":"lead","task":{"id":"task-1","revision":1,"subject":"First","description":"d","status":"pending","blockedBy":[],"writeScopes":["src"]}}}"#,
        r#"{"type":"team/task","seq":2,"time":1796044953854,"data":{"version":1,"teamId":"lead","task":{"id":"task-1","revision":2,"subject":"First","description":"d","status":"in_progress","ownerId":"lead","blockedBy":[],"writeScopes":["src"]}}}"#,
        r#"{"type":"team/task","seq":3,"time":1796044953855,"data":{"version":1,"teamId":"lead","task":{"id":"task-2","revision":1,"subject":"Second","description":"d","status":"pending","blockedBy":["task-1"],"writeScopes":[]}}}"#,
        r#"{"type":"team/task","seq":4,"time":1796044953856,"data":{"version":1,"teamId":"lead","task":{"id":"task-2","revision":2,"subject":"Second","description":"d","status":"deleted","blockedBy":["task-1"],"writeScopes":[]}}}"#,
    ];
    send(&board, 0, true, &lines.join("\n")).expect("import");
    assert_eq!(board.ids(), ["task-1"]);
    let task = board.task("task-1");
    assert_eq!((&task["ownerName"], &task["updatedAt"]), (&json!("lead"), &json!("2026-11-30T13:22:33.854Z")));
    assert_eq!(board.task("task-2")["status"], "deleted");
    let payload = json!({"team_id": board.team.id});
    let history = world.action("ann", "task_history", payload).expect("history");
    let seqs: Vec<&Value> = history["events"].as_array().expect("events").iter().map(|e| &e["sourceSeq"]).collect();
    assert_eq!(seqs, [&json!(4), &json!(3), &json!(2), &json!(0)]);
}
