//! Every action on a task in every state, by the lead, its holder and another
//! member: the observed answers. The numbers in the tests' names are rows.

use agent_teams_tests::both;
use agent_teams_tests::harness::World;
use serde_json::{Value, json};

use crate::support::{Board, Lead, M, status};

both! {
    rows_26_to_50_who_may_do_what_in_which_state,
    row_82_a_refused_change_leaves_the_journal_as_it_was,
    row_107_without_a_conversation_there_is_no_board,
}

const OK: &str = "";
const BLOCKED: &str = "TEAM_TASK_BLOCKED";
const CLAIMED: &str = "TEAM_TASK_ALREADY_CLAIMED";
const DELETED: &str = "TEAM_TASK_DELETED";
const LEADS: &str = "TEAM_LEAD_REQUIRED";
const STATE: &str = "TEAM_TASK_INVALID_TRANSITION";
const RIGHT: &str = "TEAM_TASK_UNAUTHORIZED";

/// What is asked, and with which further fields.
const ASKED: [(&str, &str); 9] = [
    ("claim", "{}"),
    ("release", "{}"),
    ("edit", r#"{"subject": "x"}"#),
    ("set_dependencies", r#"{"blocked_by": []}"#),
    ("complete", "{}"),
    ("reopen", "{}"),
    ("reassign", r#"{"owner": "b"}"#),
    ("reassign", "{}"),
    ("delete", "{}"),
];

/// The answers to the lead, to `a` (who holds what is held) and to `b`, in the
/// order of `ASKED`.
type Answers = [[&'static str; 3]; 9];

const PENDING: Answers = [
    [OK, OK, OK],
    [STATE, RIGHT, RIGHT],
    [OK, RIGHT, RIGHT],
    [OK, RIGHT, RIGHT],
    [STATE, RIGHT, RIGHT],
    [STATE, RIGHT, RIGHT],
    [OK, LEADS, LEADS],
    [OK, LEADS, LEADS],
    [OK, RIGHT, RIGHT],
];

const PENDING_BLOCKED: Answers = [
    [BLOCKED, BLOCKED, BLOCKED],
    [STATE, RIGHT, RIGHT],
    [OK, RIGHT, RIGHT],
    [OK, RIGHT, RIGHT],
    [STATE, RIGHT, RIGHT],
    [STATE, RIGHT, RIGHT],
    [BLOCKED, LEADS, LEADS],
    [OK, LEADS, LEADS],
    [OK, RIGHT, RIGHT],
];

const HELD: Answers = [
    [CLAIMED, BLOCKED, CLAIMED],
    [OK, OK, RIGHT],
    [OK, OK, RIGHT],
    [OK, OK, RIGHT],
    [OK, OK, RIGHT],
    [STATE, STATE, RIGHT],
    [OK, LEADS, LEADS],
    [OK, LEADS, LEADS],
    [OK, OK, RIGHT],
];

const DONE: Answers = [
    [CLAIMED, BLOCKED, CLAIMED],
    [STATE, STATE, RIGHT],
    [OK, OK, RIGHT],
    [OK, OK, RIGHT],
    [STATE, STATE, RIGHT],
    [OK, OK, RIGHT],
    [STATE, LEADS, LEADS],
    [STATE, LEADS, LEADS],
    [OK, OK, RIGHT],
];

const GONE: Answers = [[DELETED, DELETED, DELETED]; 9];

/// A new task after these actions of member `a` or, for `delete`, the lead.
fn made(board: &Board, blocker: Option<&str>, after: &[&str]) -> String {
    let blockers: Vec<&str> = blocker.into_iter().collect();
    let id = board.add(&blockers, &[]);
    for action in after {
        let who = if *action == "delete" { Lead } else { M(0) };
        board.must(who, &id, action);
    }
    id
}

fn rows_26_to_50_who_may_do_what_in_which_state(world: World) {
    let board = Board::new(&world);
    let blocker = board.add(&[], &[]);
    let states: [(&str, Option<&str>, &[&str], &Answers); 5] = [
        ("pending", None, &[], &PENDING),
        ("pending", Some(&blocker), &[], &PENDING_BLOCKED),
        ("in_progress", None, &["claim"], &HELD),
        ("completed", None, &["claim", "complete"], &DONE),
        ("deleted", None, &["delete"], &GONE),
    ];
    for (name, blocked_by, after, expected) in states {
        for ((action, more), answers) in ASKED.iter().zip(expected) {
            for (who, expected) in [Lead, M(0), M(1)].into_iter().zip(answers) {
                let id = made(&board, blocked_by, after);
                let before = board.task(&id);
                assert_eq!(status(&before), name);
                let more: Value = serde_json::from_str(more).expect("json");
                let answer = board.act(who, &id, action, more.clone());
                let code = answer.as_ref().err().map_or(OK, |refusal| refusal.code.as_ref());
                assert_eq!(code, *expected, "{who:?}: {action} {more} of a task that is {name}");
                let task = board.task(&id);
                match answer {
                    Err(_) => assert_eq!(task, before, "a refusal changes nothing"),
                    Ok(_) => assert_eq!(task["revision"].as_u64(), before["revision"].as_u64().map(|r| r + 1)),
                }
                if status(&task) != "deleted" {
                    board.must(Lead, &id, "delete");
                }
            }
        }
    }
}

fn row_82_a_refused_change_leaves_the_journal_as_it_was(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    let b = board.add(&[&a], &[]);
    let journal = || world.action("ann", "task_history", json!({"team_id": board.team.id})).expect("history");
    let before = journal();
    for blocked_by in [json!([b]), json!([a]), json!(["task-9"]), json!(["task-2", "task-2"])] {
        let payload = json!({"blocked_by": blocked_by});
        board.act(Lead, &a, "set_dependencies", payload).expect_err("no graph allows it");
        let new = json!({"subject": "s", "description": "d", "blocked_by": ["task-9"]});
        board.create(M(0), new).expect_err("no such blocker");
        assert_eq!(journal(), before, "{blocked_by}");
    }
    assert_eq!(board.add(&[], &[]), "task-3", "no number was used up");
}

fn row_107_without_a_conversation_there_is_no_board(world: World) {
    let board = Board::new(&world);
    let id = board.add(&[], &[]);
    let nobody = agent_teams_host::contract::Caller::owner("ann");
    let call = |tool: &str, more: Value| {
        let mut arguments = more;
        arguments["team_id"] = json!(board.team.id);
        world.tool(&nobody, tool, arguments).expect_err("refused").code.to_string()
    };
    let claim = json!({"task_id": id, "expected_revision": 1, "action": "claim"});
    assert_eq!(call("create_team_task", json!({"subject": "s", "description": "d"})), "TEAM_NOT_MEMBER");
    assert_eq!(call("get_team_task", json!({"task_id": id})), "TEAM_NOT_MEMBER");
    assert_eq!(call("list_team_tasks", json!({})), "TEAM_NOT_MEMBER");
    assert_eq!(call("update_team_task", claim), "TEAM_NOT_MEMBER");
    assert_eq!(call("wait_for_team_tasks", json!({})), "TEAM_NOT_MEMBER");
    // What the owner does by actions is no tool.
    for action in ["tasks", "create_task", "update_task", "task_history", "import_tasks"] {
        assert_eq!(call(action, json!({})), "tool_not_found", "{action}");
    }
    assert_eq!(status(&board.task(&id)), "pending");
}
