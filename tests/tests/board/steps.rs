//! Random commands through the real component: after every one, the board is
//! what its journal gives. Row 81.

use std::collections::BTreeMap;

use agent_teams_tests::both;
use agent_teams_tests::harness::World;
use serde_json::{Value, json};

use crate::support::{Board, Lead, M, status};

both! {
    after_every_random_step_the_board_is_its_replay,
}

const STEPS: usize = 150;
const ACTIONS: [&str; 8] = ["claim", "release", "edit", "set_dependencies", "complete", "reopen", "reassign", "delete"];

/// A small generator of numbers, so that every run is the same.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// The whole journal, oldest first.
fn journal(board: &Board) -> Vec<Value> {
    let (mut events, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let payload = json!({"team_id": board.team.id, "limit": 100, "cursor": cursor});
        let page = board.world.action("ann", "task_history", payload).expect("history");
        events.extend(page["events"].as_array().expect("events").iter().cloned());
        match page.get("nextCursor") {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    events.reverse();
    events
}

/// The newest snapshot of each task, in the order in which they were made.
fn replay(events: &[Value]) -> Vec<Value> {
    let mut tasks: Vec<Value> = Vec::new();
    for (i, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], i + 1);
        let task = &event["task"];
        match tasks.iter_mut().find(|known| known["id"] == task["id"]) {
            Some(known) => {
                assert_eq!(task["revision"].as_u64(), known["revision"].as_u64().map(|r| r + 1));
                *known = task.clone();
            }
            None => {
                assert_eq!(task["revision"], 1);
                tasks.push(task.clone());
            }
        }
    }
    tasks
}

const STORED: [&str; 8] = ["id", "revision", "subject", "description", "status", "ownerId", "blockedBy", "writeScopes"];

/// Compares every task, deleted ones too, with what the journal gives; then
/// what only views tell, and that no task waits for itself.
fn check(board: &Board) {
    let tasks = replay(&journal(board));
    let states: BTreeMap<&str, &str> = tasks.iter().map(|t| (t["id"].as_str().expect("id"), status(t))).collect();
    let blockers = |task: &Value| -> Vec<String> {
        task["blockedBy"].as_array().expect("a list").iter().map(|b| b.as_str().expect("id").to_owned()).collect()
    };
    let live: Vec<&Value> = tasks.iter().filter(|t| status(t) != "deleted").collect();
    let page = board.list(Lead, json!({})).expect("list");
    let listed = page["tasks"].as_array().expect("tasks");
    assert_eq!(listed.len(), live.len());
    for (shown, task) in listed.iter().zip(&live).map(|(s, t)| (s, *t)) {
        for field in STORED {
            assert_eq!(shown.get(field), task.get(field), "{field} of {}", task["id"]);
        }
        let open = |b: &String| states[b.as_str()] != "completed";
        let ready = status(task) == "pending" && !blockers(task).iter().any(open);
        assert_eq!(shown["ready"], ready, "{shown}");
        let dependants: Vec<&Value> = live
            .iter()
            .filter(|t| t["blockedBy"].as_array().expect("a list").contains(&task["id"]))
            .map(|t| &t["id"])
            .collect();
        assert_eq!(shown["dependants"], json!(dependants), "{shown}");
    }
    for task in tasks.iter().filter(|t| status(t) == "deleted") {
        let whole = board.task(task["id"].as_str().expect("id"));
        assert!(STORED.iter().all(|field| whole.get(field) == task.get(field)), "{whole} is not {task}");
    }
    // Taking away what waits for nothing that is left ends with nothing left.
    let mut left: Vec<&Value> = live.clone();
    loop {
        let ids: Vec<&Value> = left.iter().map(|t| &t["id"]).collect();
        let before = left.len();
        let waits = |t: &&&Value| t["blockedBy"].as_array().expect("a list").iter().any(|b| ids.contains(&b));
        left = left.iter().filter(waits).copied().collect();
        if left.len() == before {
            break;
        }
    }
    assert!(left.is_empty(), "a cycle: {left:?}");
}

fn after_every_random_step_the_board_is_its_replay(world: World) {
    let board = Board::new(&world);
    let mut seeded = Seeded(11);
    let (mut made, mut accepted, mut refused) = (0_usize, 0, 0);
    for step in 0..STEPS {
        let who = [Lead, M(0), M(1), M(2)][seeded.below(4)];
        let some: Vec<String> = (0..seeded.below(3)).map(|_| format!("task-{}", seeded.below(made + 1) + 1)).collect();
        let answer = if made < 3 || seeded.below(6) == 0 {
            let new =
                json!({"subject": format!("s{step}"), "description": "d", "blocked_by": some, "write_scopes": ["x"]});
            board.create(who, new).inspect(|_| made += 1)
        } else {
            let id = format!("task-{}", seeded.below(made) + 1);
            let action = ACTIONS[seeded.below(ACTIONS.len())];
            let owner = [json!("a"), json!("c"), json!("lead"), Value::Null][seeded.below(4)].clone();
            // Sometimes the revision is an old one.
            let revision = board.revision(&id).saturating_sub(u64::from(seeded.below(8) == 0));
            let more = json!({"subject": format!("s{step}"), "blocked_by": some, "owner": owner});
            board.update(who, &id, revision, action, more)
        };
        match answer {
            Ok(_) => accepted += 1,
            Err(refusal) => {
                assert!(refusal.code.starts_with("TEAM_"), "{refusal:?}");
                refused += 1;
            }
        }
        check(&board);
    }
    assert!(accepted > STEPS / 4 && refused > STEPS / 10, "{accepted} accepted, {refused} refused");
    // Row 81: the journal, written as another host's log and read back, gives
    // the same board once more.
    let lines: Vec<String> = journal(&board)
        .iter()
        .map(|event| {
            let mut task = event["task"].clone();
            task.as_object_mut().expect("an object").remove("ownerName");
            json!({"type": "team/task", "data": {"version": 2, "teamId": "r", "task": task}}).to_string()
        })
        .collect();
    let copy = Board { team: world.team_named("ann", "copy", &["a", "b", "c"]), world: &world };
    let payload = json!({"team_id": copy.team.id, "source": "r", "lines": lines.join("\n")});
    let report = world.action("ann", "import_tasks", payload).expect("import");
    assert!(report["import"].get("failure").is_none(), "{report}");
    let (mine, theirs) = (replay(&journal(&board)), replay(&journal(&copy)));
    assert_eq!(mine.len(), theirs.len());
    for (mine, theirs) in mine.iter().zip(&theirs) {
        assert!(STORED.iter().all(|field| mine.get(field) == theirs.get(field)), "{mine} is not {theirs}");
    }
    check(&copy);
}
