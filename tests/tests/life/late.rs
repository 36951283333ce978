//! Calls of runs whose job has ended, or waits: they change nothing.

use agent_teams_host::contract::Caller;
use agent_teams_tests::both;
use agent_teams_tests::double::{Effect, Method, Turn};
use agent_teams_tests::harness::{Team, World, refused};
use serde_json::{Value, json};

both!(
    a_settled_run_can_start_nothing,
    a_run_that_asked_can_start_nothing,
    a_run_without_a_name_that_was_settled_can_start_nothing,
    a_direct_turn_after_a_settled_start_belongs_to_nobody,
    a_run_of_a_deleted_team_can_start_nothing,
);

/// The calls of a member's tools that change something.
fn mutations(team: &Team) -> Vec<(&'static str, Value)> {
    let bo = &team.members[1].name;
    vec![
        ("send_member", json!({"team_id": team.id, "member": bo, "request_id": "late", "text": "late"})),
        (
            "publish_team_state",
            json!({"team_id": team.id, "request_id": "late", "kind": "finding", "title": "t", "content": "c"}),
        ),
        ("create_team_task", json!({"team_id": team.id, "subject": "s", "description": "d"})),
    ]
}

#[track_caller]
fn starts_nothing(w: &World, team: &Team, caller: &Caller) {
    let before = w.view(team);
    for (tool, arguments) in mutations(team) {
        refused(w.tool(caller, tool, arguments), "run_ended");
    }
    let after = w.view(team);
    assert_eq!(before["jobs"], after["jobs"]);
    assert_eq!(before["team"]["state_revision"], after["team"]["state_revision"]);
}

fn a_settled_run_can_start_nothing(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.work();
    let caller = w.caller(&team, 0);
    w.tool(&caller, "read_team_context", json!({"team_id": team.id})).expect("it may read");
    w.settle_as_operator("ann", &team.id, &job).expect("settled");
    starts_nothing(&w, &team, &caller);
}

fn a_run_that_asked_can_start_nothing(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.work();
    let caller = w.caller(&team, 0);
    let run = w.double.running_in(team.thread(0)).expect("running");
    assert!(w.double.finish(&run, Turn::ask("Which?")));
    w.work();
    assert_eq!(w.status(&team, &job), "waiting_input");
    starts_nothing(&w, &team, &caller);
}

fn a_run_without_a_name_that_was_settled_can_start_nothing(w: World) {
    for durable in [true, false] {
        let team = w.team_named("ann", &format!("create-{durable}"), &["ada", "bo"]);
        w.double.durable_keys(durable);
        w.double.hold(true);
        let job = w.send(&team, 0, "r");
        w.double.fault(Method::Start, None, 1, Effect::reply_lost());
        w.work();
        let caller = w.caller(&team, 0);
        assert!(caller.run.is_some(), "the run is alive");
        w.settle_as_operator("ann", &team.id, &job).expect("settled");
        // While the host cannot be asked, nothing is done either.
        w.double.fault(Method::State, None, 1, Effect::unavailable());
        let (tool, arguments) = mutations(&team).remove(0);
        refused(w.tool(&caller, tool, arguments), "run_unclear");
        starts_nothing(&w, &team, &caller);
        w.double.release_all();
    }
}

fn a_direct_turn_after_a_settled_start_belongs_to_nobody(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1, Effect::timed_out());
    w.work();
    w.settle_as_operator("ann", &team.id, &job).expect("settled");
    // It never arrived; a person speaks with the member.
    w.double.type_message(team.thread(0), "hello");
    let caller = Caller { run: Some("direct".into()), ..w.caller(&team, 0) };
    let (tool, arguments) = mutations(&team).remove(0);
    let reply = w.tool(&caller, tool, arguments).expect("a chain of its own");
    let made = w.job(&team, reply["job_id"].as_str().expect("id"));
    assert_eq!(made["parent_id"], Value::Null);
}

fn a_run_of_a_deleted_team_can_start_nothing(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.work();
    let caller = w.caller(&team, 0);
    w.settle_as_operator("ann", &team.id, &job).expect("settled");
    w.delete(&team).expect("deleted");
    let (tool, arguments) = mutations(&team).remove(0);
    refused(w.tool(&caller, tool, arguments), "team_not_found");
}
