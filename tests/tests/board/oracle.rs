//! Random commands against a plain model of the board: the same answers, an
//! acyclic graph, contiguous revisions, and a state that its journal gives.

use std::collections::BTreeMap;

use agent_teams_plugin::domain::board::Task;
use agent_teams_tests::harness::World;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Board, Lead, M, Who};

#[derive(Clone, Debug)]
struct Step {
    who: usize,
    /// Below 8: an action; otherwise a new task.
    action: usize,
    task: usize,
    blockers: Vec<usize>,
    owner: usize,
    stale: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..4_usize, 0..11_usize, 0..7_usize, prop::collection::vec(0..7_usize, 0..3), 0..5_usize, 0..10_u8);
    let step = step.prop_map(|(who, action, task, blockers, owner, stale)| Step {
        who,
        action,
        task,
        blockers,
        owner,
        stale: stale == 0,
    });
    prop::collection::vec(step, 1..60)
}

const ACTIONS: [&str; 8] = ["claim", "release", "edit", "set_dependencies", "complete", "reopen", "reassign", "delete"];

/// Revision, status, owner, blockers.
type Known = (u64, &'static str, Option<String>, Vec<usize>);

#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    /// By number.
    tasks: BTreeMap<usize, Known>,
}

impl Model {
    fn done(&self, id: usize) -> bool {
        self.tasks.get(&id).is_some_and(|t| t.1 == "completed")
    }

    fn live(&self, id: usize) -> bool {
        self.tasks.get(&id).is_some_and(|t| t.1 != "deleted")
    }

    fn dependants(&self, id: usize) -> bool {
        self.tasks.values().any(|t| t.1 != "deleted" && t.3.contains(&id))
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        from == to || self.tasks[&from].3.iter().any(|b| self.live(*b) && self.reaches(*b, to))
    }

    fn blockers(&self, id: usize, blockers: &[usize]) -> Result<(), &'static str> {
        for (i, b) in blockers.iter().enumerate() {
            match () {
                () if *b == id => return Err("TEAM_TASK_DEPENDENCY_CYCLE"),
                () if blockers[..i].contains(b) => return Err("TEAM_INVALID_ARGUMENT"),
                () if !self.live(*b) => return Err("TEAM_TASK_NOT_FOUND"),
                () => {}
            }
        }
        let closes = blockers.iter().any(|b| self.reaches(*b, id));
        if closes { Err("TEAM_TASK_DEPENDENCY_CYCLE") } else { Ok(()) }
    }

    fn step(&mut self, step: &Step, owners: &[String]) -> Result<(), &'static str> {
        if step.action >= ACTIONS.len() {
            let id = self.tasks.len() + 1;
            self.blockers(id, &step.blockers)?;
            self.tasks.insert(id, (1, "pending", None, step.blockers.clone()));
            return Ok(());
        }
        let (lead, me) = (step.who == 3, &owners[step.who]);
        let Some((_, status, owner, blockers)) = self.tasks.get(&step.task).cloned() else {
            return Err("TEAM_TASK_NOT_FOUND");
        };
        if step.stale {
            return Err("TEAM_TASK_STALE_REVISION");
        }
        if status == "deleted" {
            return Err("TEAM_TASK_DELETED");
        }
        let action = ACTIONS[step.action];
        let ready = blockers.iter().all(|b| self.done(*b));
        if !matches!(action, "claim" | "reassign") && !lead && owner.as_ref() != Some(me) {
            return Err("TEAM_TASK_UNAUTHORIZED");
        }
        let wrong = Err("TEAM_TASK_INVALID_TRANSITION");
        let next: (&'static str, Option<String>, Vec<usize>) = match action {
            "claim" if owner.as_ref().is_some_and(|o| o != me) => return Err("TEAM_TASK_ALREADY_CLAIMED"),
            "claim" if status != "pending" || !ready => return Err("TEAM_TASK_BLOCKED"),
            "claim" => ("in_progress", Some(me.clone()), blockers),
            "release" if status == "in_progress" => ("pending", None, blockers),
            "complete" if status == "in_progress" => ("completed", owner, blockers),
            "reopen" if status == "completed" => ("pending", None, blockers),
            "edit" => (status, owner, blockers),
            "set_dependencies" => {
                self.blockers(step.task, &step.blockers)?;
                (status, owner, step.blockers.clone())
            }
            "reassign" if !lead => return Err("TEAM_LEAD_REQUIRED"),
            "reassign" if status == "completed" => return wrong,
            "reassign" if step.owner == 4 => ("pending", None, blockers),
            "reassign" if !ready => return Err("TEAM_TASK_BLOCKED"),
            "reassign" => ("in_progress", Some(owners[step.owner].clone()), blockers),
            "delete" if self.dependants(step.task) => return Err("TEAM_TASK_HAS_DEPENDENTS"),
            "delete" => ("deleted", owner, blockers),
            _ => return wrong,
        };
        let task = self.tasks.get_mut(&step.task).expect("there");
        *task = (task.0 + 1, next.0, next.1, next.2);
        Ok(())
    }
}

fn id(n: usize) -> String {
    format!("task-{n}")
}

fn send(board: &Board, model: &Model, step: &Step) -> Result<Value, String> {
    let who: Who = if step.who == 3 { Lead } else { M(step.who) };
    let blockers: Vec<String> = step.blockers.iter().map(|n| id(*n)).collect();
    let answer = if step.action >= ACTIONS.len() {
        board.create(who, json!({"subject": "s", "description": "d", "blocked_by": blockers}))
    } else {
        let revision = model.tasks.get(&step.task).map_or(1, |t| t.0) + u64::from(step.stale);
        let more = match ACTIONS[step.action] {
            "edit" => json!({"subject": format!("at {revision}")}),
            "set_dependencies" => json!({"blocked_by": blockers}),
            "reassign" if step.owner == 4 => json!({}),
            "reassign" => {
                let owner = ["a", "b", "c", "lead"][step.owner];
                json!({"owner": owner})
            }
            _ => json!({}),
        };
        board.update(who, &id(step.task), revision, ACTIONS[step.action], more)
    };
    answer.map_err(|refusal| refusal.code.clone())
}

/// The stored board is what its journal gives, in every index.
fn check_store(world: &World, board: &Board, model: &Model) {
    let dump = world.native_host().expect("native").store().dump();
    let prefix = format!("team/ann/{}/", board.team.id);
    let of = |kind: &str| -> Vec<(String, Value)> {
        let start = format!("{prefix}{kind}/");
        let found = dump.iter().filter_map(|(k, v)| Some((k.strip_prefix(&start)?.to_owned(), v)));
        found.map(|(k, v)| (k, serde_json::from_str(v).unwrap_or_else(|_| json!(v)))).collect()
    };
    let mut replayed: BTreeMap<String, Task> = BTreeMap::new();
    for (i, (_, event)) in of("event").iter().enumerate() {
        assert_eq!(event["seq"], i + 1);
        let task: Task = serde_json::from_value(event["task"].clone()).expect("a whole task");
        let before = replayed.get(&task.id).map_or(0, |t| t.revision);
        assert_eq!(task.revision, before + 1, "revisions are contiguous");
        replayed.insert(task.id.clone(), task);
    }
    assert_eq!(replayed.len(), model.tasks.len());
    for (n, (revision, status, owner, blockers)) in &model.tasks {
        let task = &replayed[&id(*n)];
        assert_eq!((task.revision, task.status.as_str()), (*revision, *status));
        assert_eq!((&task.owner_id, &task.blocked_by), (owner, &blockers.iter().map(|b| id(*b)).collect()));
    }
    let live = of("live");
    let alive = |t: &&Task| t.status.as_str() != "deleted";
    assert_eq!(live.len(), replayed.values().filter(alive).count());
    for (_, card) in live.iter().chain(&of("task")) {
        let task = &replayed[card["id"].as_str().expect("id")];
        assert_eq!((&card["status"], &card["blocked_by"]), (&json!(task.status), &json!(task.blocked_by)));
    }
    let doing: Vec<Value> = of("doing").into_iter().map(|(_, d)| d["id"].clone()).collect();
    let in_progress = replayed.values().filter(|t| t.status.as_str() == "in_progress").map(|t| json!(t.id));
    assert_eq!(doing, in_progress.collect::<Vec<_>>());
    let mut edges: Vec<String> = of("dep").into_iter().map(|(k, v)| format!("{} {v}", &k[..k.len() - 9])).collect();
    let mut expected: Vec<String> = replayed
        .values()
        .filter(alive)
        .flat_map(|t| t.blocked_by.iter().map(|b| format!("{b} {}", json!(t.id))))
        .collect();
    edges.sort();
    expected.sort();
    assert_eq!(edges, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn the_board_answers_as_the_model_does(steps in steps()) {
        let world = World::native();
        let board = Board::new(&world);
        let owners: Vec<String> = (0..3).map(|n| board.owner(n).to_owned()).chain(["lead".into()]).collect();
        let mut model = Model::default();
        for step in &steps {
            let before = model.clone();
            let expected = model.step(step, &owners);
            let answer = send(&board, &before, step);
            prop_assert_eq!(answer.as_ref().map(drop).map_err(String::as_str), expected, "{:?}", step);
            if expected.is_err() {
                prop_assert_eq!(&model, &before);
            }
            if let Ok(task) = answer {
                let n: usize = task["id"].as_str().and_then(|id| id[5..].parse().ok()).expect("a number");
                let (revision, status, _, blockers) = &model.tasks[&n];
                prop_assert_eq!(&task["revision"], &json!(revision));
                let ready = *status == "pending" && blockers.iter().all(|b| model.done(*b));
                prop_assert_eq!(&task["ready"], &json!(ready));
            }
            check_store(&world, &board, &model);
        }
        for (n, task) in &model.tasks {
            let cyclic = task.1 != "deleted" && task.3.iter().any(|b| model.reaches(*b, *n));
            prop_assert!(!cyclic);
        }
    }
}
