use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

use super::*;

pub const BOUNDS: Bounds = Bounds { tasks: 256, blockers: 64, scopes: 32, scope_bytes: 256 };

/// A whole board in memory.
#[derive(Default)]
struct Board {
    tasks: BTreeMap<u64, Task>,
    reads: Cell<usize>,
}

impl Board {
    fn find(&self, id: &str) -> Option<&Task> {
        match number(id) {
            TaskNumber::Is(n) => self.tasks.get(&n),
            _ => None,
        }
    }

    fn put(&mut self, task: Task) {
        let TaskNumber::Is(n) = number(&task.id) else { panic!("no number") };
        self.tasks.insert(n, task);
    }

    fn add(&mut self, blocked_by: &[&str]) -> Result<String> {
        let live = self.tasks.values().filter(|t| t.status != Status::Deleted).count() as u64;
        let blocked_by: Vec<String> = blocked_by.iter().map(|s| s.to_string()).collect();
        let new = NewTask { subject: "s", description: "d", blocked_by: &blocked_by, write_scopes: &[] };
        let task = create(self, live, self.tasks.len() as u64 + 1, &new, &BOUNDS)?;
        let id = task.id.clone();
        self.put(task);
        Ok(id)
    }

    fn act(&mut self, id: &str, actor: Actor, action: &str, change: impl FnOnce(&mut Change)) -> Result<()> {
        let task = self.find(id).expect("the task").clone();
        let mut asked =
            Change { action, subject: None, description: None, blocked_by: None, write_scopes: None, owner: None };
        change(&mut asked);
        let around = Around { graph: self, people: &Names, bounds: &BOUNDS };
        let next = update(&task, task.revision, &asked, actor, around)?;
        assert_eq!(next.revision, task.revision + 1);
        self.put(next);
        Ok(())
    }
}

impl Graph for Board {
    fn nodes(&self, ids: &[String]) -> Result<Vec<Option<Node>>> {
        self.reads.set(self.reads.get() + ids.len());
        Ok(ids
            .iter()
            .map(|id| self.find(id).map(|t| Node { status: t.status, blocked_by: t.blocked_by.clone() }))
            .collect())
    }

    fn first_dependant(&self, id: &str) -> Result<Option<String>> {
        let waits = |t: &&Task| t.status != Status::Deleted && t.blocked_by.iter().any(|b| b == id);
        Ok(self.tasks.values().find(waits).map(|t| t.id.clone()))
    }
}

struct Names;

impl People for Names {
    fn find(&self, name: &str) -> Option<String> {
        ["a", "b", "lead"].contains(&name).then(|| name.into())
    }
    fn name(&self, owner: &str) -> String {
        owner.into()
    }
    fn all(&self) -> String {
        "a, b, lead".into()
    }
}

const LEADER: Actor = Actor { id: LEAD, lead: true };
const A: Actor = Actor { id: "a", lead: false };
const B: Actor = Actor { id: "b", lead: false };

/// What the eight actions answer to (lead, owner a, other b).
fn matrix(make: impl Fn(&mut Board) -> String) -> Vec<(String, [String; 3])> {
    let assign: fn(&mut Change) = |c| c.owner = Some("b");
    let edit: fn(&mut Change) = |c| c.subject = Some("new");
    let edges: fn(&mut Change) = |c| c.blocked_by = Some(&[]);
    let plain: fn(&mut Change) = |_| {};
    let rows = [
        ("claim", "claim", plain),
        ("release", "release", plain),
        ("complete", "complete", plain),
        ("reopen", "reopen", plain),
        ("edit", "edit", edit),
        ("set_dependencies", "set_dependencies", edges),
        ("delete", "delete", plain),
        ("reassign", "reassign b", assign),
        ("reassign", "reassign nobody", plain),
    ];
    let answer = |action: &str, change: fn(&mut Change), actor: Actor| {
        let mut board = Board::default();
        let id = make(&mut board);
        let result = board.act(&id, actor, action, change);
        result.map_or_else(|e| e.code.replace("TEAM_TASK_", "").replace("TEAM_", ""), |()| "ok".into())
    };
    rows.iter()
        .map(|(action, name, change)| (name.to_string(), [LEADER, A, B].map(|actor| answer(action, *change, actor))))
        .collect()
}

fn check(found: &[(String, [String; 3])], expected: &[(&str, &str)]) {
    for ((name, answers), (expected_name, expected)) in found.iter().zip(expected) {
        assert_eq!((name.as_str(), answers.join("/").as_str()), (*expected_name, *expected));
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn matrix_of_a_pending_ready_task_that_nobody_holds() {
    check(
        &matrix(|b| b.add(&[]).expect("made")),
        &[
            ("claim", "ok/ok/ok"),
            ("release", "INVALID_TRANSITION/UNAUTHORIZED/UNAUTHORIZED"),
            ("complete", "INVALID_TRANSITION/UNAUTHORIZED/UNAUTHORIZED"),
            ("reopen", "INVALID_TRANSITION/UNAUTHORIZED/UNAUTHORIZED"),
            ("edit", "ok/UNAUTHORIZED/UNAUTHORIZED"),
            ("set_dependencies", "ok/UNAUTHORIZED/UNAUTHORIZED"),
            ("delete", "ok/UNAUTHORIZED/UNAUTHORIZED"),
            ("reassign b", "ok/LEAD_REQUIRED/LEAD_REQUIRED"),
            ("reassign nobody", "ok/LEAD_REQUIRED/LEAD_REQUIRED"),
        ],
    );
}

#[test]
fn matrix_of_a_pending_blocked_task() {
    let make = |b: &mut Board| {
        b.add(&[]).expect("made");
        b.add(&["task-1"]).expect("made")
    };
    check(
        &matrix(make),
        &[
            ("claim", "BLOCKED/BLOCKED/BLOCKED"),
            ("release", "INVALID_TRANSITION/UNAUTHORIZED/UNAUTHORIZED"),
            ("complete", "INVALID_TRANSITION/UNAUTHORIZED/UNAUTHORIZED"),
            ("reopen", "INVALID_TRANSITION/UNAUTHORIZED/UNAUTHORIZED"),
            ("edit", "ok/UNAUTHORIZED/UNAUTHORIZED"),
            ("set_dependencies", "ok/UNAUTHORIZED/UNAUTHORIZED"),
            ("delete", "ok/UNAUTHORIZED/UNAUTHORIZED"),
            ("reassign b", "BLOCKED/LEAD_REQUIRED/LEAD_REQUIRED"),
            ("reassign nobody", "ok/LEAD_REQUIRED/LEAD_REQUIRED"),
        ],
    );
}

fn claimed(board: &mut Board) -> String {
    let id = board.add(&[]).expect("made");
    board.act(&id, A, "claim", |_| {}).expect("claimed");
    id
}

#[test]
fn matrix_of_a_task_in_progress() {
    check(
        &matrix(claimed),
        &[
            ("claim", "ALREADY_CLAIMED/BLOCKED/ALREADY_CLAIMED"),
            ("release", "ok/ok/UNAUTHORIZED"),
            ("complete", "ok/ok/UNAUTHORIZED"),
            ("reopen", "INVALID_TRANSITION/INVALID_TRANSITION/UNAUTHORIZED"),
            ("edit", "ok/ok/UNAUTHORIZED"),
            ("set_dependencies", "ok/ok/UNAUTHORIZED"),
            ("delete", "ok/ok/UNAUTHORIZED"),
            ("reassign b", "ok/LEAD_REQUIRED/LEAD_REQUIRED"),
            ("reassign nobody", "ok/LEAD_REQUIRED/LEAD_REQUIRED"),
        ],
    );
}

#[test]
fn matrix_of_a_completed_task() {
    let make = |b: &mut Board| {
        let id = claimed(b);
        b.act(&id, A, "complete", |_| {}).expect("completed");
        id
    };
    check(
        &matrix(make),
        &[
            ("claim", "ALREADY_CLAIMED/BLOCKED/ALREADY_CLAIMED"),
            ("release", "INVALID_TRANSITION/INVALID_TRANSITION/UNAUTHORIZED"),
            ("complete", "INVALID_TRANSITION/INVALID_TRANSITION/UNAUTHORIZED"),
            ("reopen", "ok/ok/UNAUTHORIZED"),
            ("edit", "ok/ok/UNAUTHORIZED"),
            ("set_dependencies", "ok/ok/UNAUTHORIZED"),
            ("delete", "ok/ok/UNAUTHORIZED"),
            ("reassign b", "INVALID_TRANSITION/LEAD_REQUIRED/LEAD_REQUIRED"),
            ("reassign nobody", "INVALID_TRANSITION/LEAD_REQUIRED/LEAD_REQUIRED"),
        ],
    );
}

#[test]
fn matrix_of_a_deleted_task() {
    let make = |b: &mut Board| {
        let id = claimed(b);
        b.act(&id, A, "delete", |_| {}).expect("deleted");
        id
    };
    for (name, answers) in matrix(make) {
        assert_eq!(answers.join("/"), "DELETED/DELETED/DELETED", "{name}");
    }
}

#[test]
fn rows_2_and_88_numbers() {
    assert_eq!(number("task-007"), TaskNumber::Is(7));
    assert_eq!(number("task-0"), TaskNumber::Is(0));
    assert_eq!(number(&format!("task-{MAX_SAFE}")), TaskNumber::Is(MAX_SAFE));
    assert_eq!(number(&format!("task-{}", MAX_SAFE + 1)), TaskNumber::TooLarge);
    assert_eq!(number("task-99999999999999999999999"), TaskNumber::TooLarge);
    for id in ["external-task", "Task-5", "task--1", "task-", "task-٣", "task-1 "] {
        assert_eq!(number(id), TaskNumber::None, "{id}");
        assert_eq!(next_number(4, id), 4);
    }
    assert_eq!(next_number(1, "task-007"), 8);
    assert_eq!(next_number(1, "task-0"), 1);
    assert_eq!(next_number(9, "task-3"), 9);
    assert_eq!(next_number(1, &format!("task-{}", MAX_SAFE - 1)), MAX_SAFE);
    assert_eq!(next_number(1, &format!("task-{MAX_SAFE}")), MAX_SAFE);
}

#[test]
fn a_cycle_of_any_length_is_refused_and_a_diamond_is_not() {
    let mut board = Board::default();
    let ids: Vec<String> = (0..2000)
        .map(|i| {
            let before = format!("task-{i}");
            let blockers: Vec<&str> = if i == 0 { vec![] } else { vec![&before] };
            let task = Task {
                id: format!("task-{}", i + 1),
                revision: 1,
                subject: "s".into(),
                description: "d".into(),
                status: Status::Pending,
                owner_id: None,
                blocked_by: blockers.iter().map(|b| b.to_string()).collect(),
                write_scopes: vec![],
            };
            let id = task.id.clone();
            board.put(task);
            id
        })
        .collect();
    let last = core::slice::from_ref(&ids[1999]);
    let fault = check_blockers(&board, "task-1", last, &[]).expect("checked");
    assert_eq!(fault, Some(Fault::Cycle("task-2000".into())));
    assert!(board.reads.get() <= 2002, "each task is looked at once: {}", board.reads.get());
    // An edge that was there before, and a task that nobody waits for, cost
    // nothing more than their own blockers.
    board.reads.set(0);
    assert_eq!(check_blockers(&board, "task-2000", &ids[0..64], &[]), Ok(None));
    assert_eq!(check_blockers(&board, "task-1000", &ids[998..999], &ids[998..999]), Ok(None));
    assert_eq!(board.reads.get(), 65);
    // A diamond: 3 waits for 2, which waits for 1, and for 1 itself.
    assert_eq!(check_blockers(&board, "task-3", &["task-2".into(), "task-1".into()], &["task-2".into()]), Ok(None));
}

#[test]
fn the_largest_legal_record_stays_under_its_bound() {
    let text = |n: usize| "\u{1}".repeat(n);
    let task = Task {
        id: format!("task-{MAX_SAFE}"),
        revision: MAX_SAFE,
        subject: text(SUBJECT),
        description: text(DESCRIPTION),
        status: Status::InProgress,
        owner_id: Some("x".repeat(256)),
        blocked_by: (0..64).map(|i| format!("task-{}", MAX_SAFE - i)).collect(),
        write_scopes: (0..32).map(|_| text(256)).collect(),
    };
    assert!(serde_json::to_string(&task).expect("writes").len() < 160 * 1024);
}
