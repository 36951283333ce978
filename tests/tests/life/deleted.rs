//! A deleted team leaves nothing behind, and no record grows without bound.

use agent_teams_host::contract::Caller;
use agent_teams_tests::both;
use agent_teams_tests::double::Turn;
use agent_teams_tests::harness::{Team, World, refused};
use agent_teams_tests::native::CommitFault;
use serde_json::json;

both!(
    a_large_board_is_removed_to_the_last_record,
    what_a_crash_left_of_a_deleted_team_is_swept,
    replies_to_calls_of_earlier_runs_are_forgotten,
    a_look_that_finds_nothing_new_is_no_change,
);

/// The keys that name a team. Nothing, where the store cannot be seen.
fn keys_of(w: &World, team: &Team) -> Vec<String> {
    let Some(host) = w.native_host() else { return Vec::new() };
    host.store().dump().into_iter().map(|(key, _)| key).filter(|key| key.contains(&team.id)).collect()
}

/// More records of a size than one read of the store may return.
fn a_large_board_is_removed_to_the_last_record(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let line = |n: u32| {
        let task = json!({
            "id": format!("task-{n}"), "revision": 1, "subject": "s", "description": "d".repeat(250_000),
            "status": "pending", "blockedBy": [], "writeScopes": [],
        });
        json!({"type": "team/task", "data": {"version": 1, "teamId": "root", "task": task}}).to_string()
    };
    for part in 0..27 {
        let mut lines = vec![json!({"type": "session", "id": "root"}).to_string()];
        lines.extend((1..=3).map(|n| line(part * 3 + n)));
        let sent = json!({"team_id": team.id, "part": part, "last": part == 26, "lines": lines.join("\n")});
        let taken = w.action("ann", "import_tasks", sent).expect("taken");
        assert_eq!(taken["tasks"], json!((part + 1) * 3));
    }
    w.delete(&team).expect("deleted");
    for _ in 0..8 {
        w.sweep();
    }
    assert_eq!(keys_of(&w, &team), Vec::<String>::new());
    let again = w.team("ann", &["ada", "bo"]);
    assert_eq!(again.id, team.id);
    let tasks = w.action("ann", "tasks", json!({"team_id": again.id})).expect("read");
    assert_eq!(tasks["tasks"], json!([]));
}

fn what_a_crash_left_of_a_deleted_team_is_swept(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    for n in 0..30 {
        w.send(&team, 0, &format!("r{n}"));
    }
    w.work();
    // The commit that deletes the team is written, and the process ends.
    if !w.fail_commits([CommitFault::UnknownWritten]) {
        return;
    }
    refused(w.delete(&team), "commit_unknown");
    refused(w.action("ann", "get", json!({"team_id": team.id})), "team_not_found");
    assert!(keys_of(&w, &team).len() > 30);
    w.sweep();
    assert_eq!(keys_of(&w, &team), Vec::<String>::new());
}

fn replies_to_calls_of_earlier_runs_are_forgotten(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let calls_of = |name: &str, calls: u32| {
        w.send(&team, 0, name);
        w.work();
        for n in 0..calls {
            let caller = Caller { call: Some(format!("{name}-{n}")), ..w.caller(&team, 0) };
            let task = json!({"subject": "s", "description": "d"});
            w.tool(&caller, "create_team_task", task).expect("made");
        }
        w.double.release_all();
        w.work();
    };
    calls_of("first", 40);
    calls_of("second", 5);
    calls_of("third", 1);
    let Some(host) = w.native_host() else { return };
    let replies: Vec<String> =
        host.store().dump().into_iter().map(|(key, _)| key).filter(|key| key.contains("/call/")).collect();
    assert_eq!(replies.len(), 1, "{replies:?}");
}

/// A question that was answered in the conversation is looked at again and
/// again; readers are not woken by that.
fn a_look_that_finds_nothing_new_is_no_change(mut w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let revision = |w: &World| w.view(&team)["team"]["revision"].as_u64().expect("a revision");
    w.double.script(team.thread(0), [Turn::ask("Which?")]);
    let job = w.send(&team, 0, "asks");
    w.work();
    w.double.type_message(team.thread(0), "Blue.");
    w.restart();
    w.connect(&team).expect("connected");
    for _ in 0..12 {
        w.later(61_000);
        w.sweep();
    }
    let reason = |w: &World| w.job(&team, &job)["reason"].clone();
    let (before, told) = (revision(&w), reason(&w));
    assert_eq!(told["code"], "clarification_changed");
    for _ in 0..10 {
        w.later(61_000);
        w.sweep();
    }
    assert_eq!(revision(&w), before);
    let later = &reason(&w)["next_at"];
    assert!(later.as_str() > told["next_at"].as_str(), "the next look is told: {later}");
}
