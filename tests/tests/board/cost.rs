//! What a change costs, counted in records; and boards at their bounds.

use agent_teams_plugin::app::{Caller, Ctx};
use agent_teams_plugin::domain::error::Error;
use agent_teams_plugin::exports::{self, Outcome};
use agent_teams_tests::harness::{ComponentOptions, World, refused};
use agent_teams_tests::native::{Cost, NativeHost};
use serde_json::{Value, json};

use crate::replay::task;
use crate::support::{Board, Lead, M, ids};

/// An action of the owner, and the records that it read and wrote.
fn counted(host: &NativeHost, action: &str, payload: &Value) -> (Result<Value, Error>, (usize, usize)) {
    let cost = Cost::default();
    let caller = Caller { owner: "ann".into(), ..Caller::default() };
    let host = cost.count(host);
    let ctx = Ctx { host: &host, caller: &caller, runs: None };
    let answer = exports::actions::call(ctx, action, &payload.to_string()).map(|outcome| match outcome {
        Outcome::Done(text) => serde_json::from_str(&text).expect("json"),
        Outcome::Park(_) => panic!("no action waits"),
    });
    (answer, cost.so_far())
}

#[test]
fn a_change_costs_its_edges_and_not_the_board() {
    let world = World::native_with(1, "{\"board_tasks\":1000}");
    let board = Board::new(&world);
    let host = world.native_host().expect("native");
    let mut costs: Vec<Vec<(usize, usize)>> = Vec::new();
    for round in 0..2 {
        let mut costs_now = Vec::new();
        let blocker = board.add(&[], &[]);
        let new = json!({"team_id": board.team.id, "subject": "s", "description": "d", "blocked_by": [blocker],
            "write_scopes": [format!("round{round}")]});
        let (made, cost) = counted(host, "create_task", &new);
        costs_now.push(cost);
        let id = made.expect("create")["task"]["id"].as_str().expect("id").to_owned();
        board.must(Lead, &blocker, "claim");
        board.must(Lead, &blocker, "complete");
        for (revision, action) in
            ["claim", "complete", "reopen", "edit", "set_dependencies", "delete"].iter().enumerate()
        {
            let payload = json!({"team_id": board.team.id, "task_id": id, "expected_revision": revision + 1,
                "action": action, "subject": "new", "blocked_by": []});
            let (changed, cost) = counted(host, "update_task", &payload);
            changed.unwrap_or_else(|e| panic!("{action}: {e:?}"));
            costs_now.push(cost);
        }
        costs.push(costs_now);
        // Two hundred more tasks with a history of their own.
        for _ in 0..200 {
            let id = board.add(&[&blocker], &["elsewhere"]);
            board.must(Lead, &id, "claim");
            board.must(Lead, &id, "complete");
        }
    }
    assert_eq!(costs[0], costs[1]);
    assert!(costs[0].iter().all(|(reads, writes)| *reads <= 20 && *writes <= 10), "{:?}", costs[0]);
}

#[test]
fn the_workload_of_a_chain_of_two_hundred_comes_out_and_replays() {
    let world = World::native();
    let board = Board::new(&world);
    let mut before: Vec<String> = Vec::new();
    for n in 0..200 {
        let blockers: Vec<&str> = before.last().map(String::as_str).into_iter().collect();
        let scope = format!("part{n}");
        let id = board.add(&blockers, &[&scope]);
        before.push(id);
    }
    for (n, id) in before.iter().enumerate() {
        board.update(M(n % 3), id, 1, "claim", json!({})).expect("claim");
        board.update(M(n % 3), id, 2, "complete", json!({})).expect("complete");
    }
    let page = board.list(Lead, json!({})).expect("list");
    assert_eq!(ids(&page), before);
    assert_eq!((&page["board"]["completed"], &page["board"]["changes"]), (&json!(200), &json!(600)));
    // Its own journal, as another host's log, gives the same board.
    let lines: Vec<String> = world
        .native_host()
        .expect("native")
        .store()
        .dump()
        .into_iter()
        .filter(|(key, _)| key.contains("/event/"))
        .map(|(_, value)| {
            let event: Value = serde_json::from_str(&value).expect("json");
            json!({"type": "team/task", "data": {"version": 2, "teamId": "r", "task": event["task"]}}).to_string()
        })
        .collect();
    assert_eq!(lines.len(), 600);
    let copy = Board { team: world.team_named("ann", "copy", &["a", "b"]), world: &world };
    let payload = json!({"team_id": copy.team.id, "source": "r", "lines": lines.join("\n")});
    world.action("ann", "import_tasks", payload).expect("import");
    for id in &before {
        let (mine, theirs) = (board.task(id), copy.task(id));
        for field in ["revision", "status", "ownerId", "blockedBy", "writeScopes", "ready", "dependants"] {
            assert_eq!(mine[field], theirs[field], "{field} of {id}");
        }
    }
}

/// A check that follows the whole chain, within one call's time and memory.
fn a_chain_of_two_thousand(world: &World) {
    let board = Board::new(world);
    for n in 0..2_000 {
        let before = format!("task-{n}");
        let blockers: &[&str] = if n == 0 { &[] } else { &[&before] };
        board.add(blockers, &[]);
    }
    let closes = json!({"blocked_by": ["task-2000"]});
    refused(board.act(Lead, "task-1", "set_dependencies", closes), "TEAM_TASK_DEPENDENCY_CYCLE");
    board.act(Lead, "task-2000", "set_dependencies", json!({"blocked_by": ["task-1"]})).expect("a short cut");
    let page = board.list(M(0), json!({"ready": true})).expect("list");
    assert_eq!(ids(&page), ["task-1"]);
}

#[test]
fn a_chain_of_two_thousand_within_raised_limits_natively() {
    a_chain_of_two_thousand(&World::native_with(1, "{\"board_tasks\":3000}"));
}

#[test]
fn a_chain_of_two_thousand_within_raised_limits_in_the_component() {
    let options = ComponentOptions { settings: "{\"board_tasks\":3000}".into(), ..ComponentOptions::default() };
    a_chain_of_two_thousand(&World::component_with(options));
}

#[test]
fn the_journal_is_bounded_and_says_so_before() {
    let world = World::native();
    let board = Board::new(&world);
    let send = |part: u64, from: u64, to: u64, last: bool| {
        let lines: Vec<String> = (from..=to).map(|revision| task("task-1", revision, json!({})).to_string()).collect();
        let payload = json!({"team_id": board.team.id, "source": "root", "part": part, "last": last,
            "lines": lines.join("\n")});
        world.action("ann", "import_tasks", payload).expect("import")
    };
    for part in 0..3 {
        send(part, part * 3_000 + 1, part * 3_000 + 3_000, false);
    }
    let page = board.list(M(0), json!({})).expect("list");
    assert!(page.get("changesLeft").is_none());
    send(3, 9_001, 9_998, true);
    let page = board.list(M(0), json!({})).expect("list");
    assert_eq!(page["changesLeft"], 2);
    board.must(M(0), "task-1", "claim");
    board.must(M(0), "task-1", "complete");
    refused(board.act(M(0), "task-1", "reopen", json!({})), "TEAM_TASK_HISTORY_LIMIT");
    refused(board.create(M(0), json!({"subject": "s", "description": "d"})), "TEAM_TASK_HISTORY_LIMIT");
    assert_eq!(board.task("task-1")["status"], "completed");
    let context = world.tool(&board.caller(0), "read_team_context", json!({"team_id": board.team.id}));
    assert_eq!(context.expect("context")["board"]["changes_left"], 0);
    // A log that is too long stops at the bound, by name.
    let long = Board { team: world.team_named("ann", "long", &["a", "b"]), world: &world };
    for part in 0..4_u64 {
        let lines: Vec<String> = (part * 3_000 + 1..=(part * 3_000 + 3_000).min(10_001))
            .map(|revision| task("task-1", revision, json!({})).to_string())
            .collect();
        let payload = json!({"team_id": long.team.id, "source": "root", "part": part, "last": part == 3,
            "lines": lines.join("\n")});
        world.action("ann", "import_tasks", payload).expect("import");
    }
    let report = &long.list(Lead, json!({})).expect("list")["board"];
    assert_eq!(report["failure"]["line"], 10_001);
    assert_eq!(long.revision("task-1"), 10_000);
}
