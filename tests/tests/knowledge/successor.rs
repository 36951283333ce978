//! A team that succeeds another: same people, same goal, and the public state
//! as it stands, in the commit that makes it.

use agent_teams_plugin::domain::error::Kind;
use agent_teams_plugin::domain::limits;
use agent_teams_tests::native::CommitFault;
use serde_json::{Value, json};

use crate::desk::{Desk, Reply, Team, bytes, text};

fn publish(desk: &Desk, team: &Team, member: usize, key: &str, title: &str, content: &str) -> Value {
    let args = json!({"request_id": key, "kind": "finding", "title": title, "content": content});
    desk.member(team, member, "publish_team_state", args).expect("publishes")["entry"].clone()
}

fn update(desk: &Desk, team: &Team, member: usize, entry: &Value, content: &str, status: &str) -> Reply {
    let args = json!({
        "entry_id": entry["id"], "expected_revision": entry["revision"], "title": entry["title"], "content": content,
        "status": status,
    });
    desk.member(team, member, "update_team_state", args)
}

fn asked(request_id: &str, earlier: &str, goal: &str) -> Value {
    json!({
        "request_id": request_id, "name": request_id, "goal": goal, "successor_of": earlier,
        "members": [{"name": "Ada", "agent": "ada-agent"}, {"name": "Bo", "agent": "bo-agent"}],
    })
}

fn succeed(desk: &Desk, owner: &'static str, request_id: &str, earlier: &str) -> Team {
    let made =
        desk.action(owner, "create", &asked(request_id, earlier, "Do good work")).expect("the successor is made");
    let members = made["team"]["members"].as_array().expect("members");
    let members = members.iter().map(|m| (text(&m["id"]), text(&m["thread"]))).collect();
    Team { owner, id: text(&made["team"]["id"]), members }
}

fn state(desk: &Desk, team: &Team) -> Value {
    desk.action(team.owner, "state", &json!({"team_id": team.id})).expect("reads")
}

fn entries(desk: &Desk, team: &Team) -> Vec<Value> {
    state(desk, team)["entries"].as_array().expect("entries").clone()
}

#[test]
fn a_successor_begins_with_the_active_state_and_its_authors() {
    let desk = Desk::default();
    let old = desk.team("ann", "core", &["Ada", "Bo"]);
    let plan = publish(&desk, &old, 0, "k1", "Plan", "Collect quotes");
    let gone = publish(&desk, &old, 0, "k2", "Gone", "No longer true");
    let fact = publish(&desk, &old, 1, "k3", "Fact", "Prices rose");
    update(&desk, &old, 0, &gone, "No longer true", "archived").expect("archives");
    desk.host.clock().advance(60_000);
    update(&desk, &old, 1, &plan, "Collect three quotes", "active").expect("updates");
    let before = state(&desk, &old);

    let new = succeed(&desk, "ann", "next", &old.id);
    let view = desk.action("ann", "get", &json!({"team_id": new.id})).expect("reads");
    assert_eq!(view["team"]["successor_of"], json!(old.id));
    let now = state(&desk, &new);
    assert_eq!((&now["state_revision"], &view["team"]["state_revision"]), (&json!(2), &json!(2)));
    assert_eq!(now["entries_left"], json!(limits::STATE_ENTRIES - 2), "what is archived takes no room");
    let carried = entries(&desk, &new);
    let told = |e: &Value| (text(&e["title"]), text(&e["content"]), text(&e["status"]), e["revision"].clone());
    assert_eq!(
        carried.iter().map(told).collect::<Vec<_>>(),
        [
            ("Plan".into(), "Collect three quotes".into(), "active".into(), json!(1)),
            ("Fact".into(), "Prices rose".into(), "active".into(), json!(1)),
        ]
    );
    // Whoever wrote the text as it stands, where and when.
    let edited = &entries(&desk, &old)[0]["edited_by"];
    let by = &carried[0]["created_by"];
    assert_eq!((&by["member"], &by["team"]), (&json!("Bo"), &json!(old.id)));
    assert_eq!((&by["thread"], &by["at"]), (&edited["thread"], &edited["at"]));
    assert_eq!((by.get("member_id"), carried[0].get("edited_by")), (None, None));
    assert_eq!(carried[1]["created_by"]["thread"], fact["created_by"]["thread"]);
    assert!(carried.iter().all(|e| e["id"] != plan["id"] && e["id"] != fact["id"]));
    // Members see it with their first task; the earlier team is as it was.
    desk.send(&new, 0, "r", "work");
    desk.work();
    assert!(desk.double.last_input(new.thread(0)).contains("Collect three quotes"));
    assert_eq!(state(&desk, &old), before);
    assert_eq!(
        desk.action("ann", "get", &json!({"team_id": old.id})).expect("reads")["team"]["successor_of"],
        json!(null)
    );
}

#[test]
fn a_carried_entry_is_edited_archived_and_carried_on_like_any_other() {
    let desk = Desk::default();
    let first = desk.team("ann", "core", &["Ada", "Bo"]);
    publish(&desk, &first, 0, "k1", "Plan", "One");
    publish(&desk, &first, 0, "k2", "Fact", "Two");
    let second = succeed(&desk, "ann", "second", &first.id);
    let carried = entries(&desk, &second);
    let edited = update(&desk, &second, 1, &carried[0], "One, revised", "active").expect("updates");
    assert_eq!(edited["entry"]["revision"], 2);
    assert_eq!(edited["entry"]["created_by"]["team"], json!(first.id));
    assert_eq!((&edited["entry"]["edited_by"]["member_id"]), (&json!(second.members[1].0)));
    let stale = update(&desk, &second, 0, &carried[0], "Mine", "active").expect("an answer");
    assert_eq!((&stale["updated"], &stale["conflict"]), (&json!(false), &json!(true)));
    // The third names for each text the team in which it was written.
    let third = succeed(&desk, "ann", "third", &second.id);
    let teams: Vec<Value> = entries(&desk, &third).iter().map(|e| e["created_by"]["team"].clone()).collect();
    assert_eq!(teams, [json!(second.id), json!(first.id)]);
    // Publications number on: nothing is overwritten.
    publish(&desk, &third, 0, "k1", "New", "Three");
    assert_eq!(entries(&desk, &third).iter().map(|e| text(&e["title"])).collect::<Vec<_>>(), ["Plan", "Fact", "New"]);
}

#[test]
fn a_successor_is_made_once_whatever_becomes_of_the_earlier_team() {
    let desk = Desk::default();
    let old = desk.team("ann", "core", &["Ada", "Bo"]);
    let plan = publish(&desk, &old, 0, "k1", "Plan", "One");
    let new = succeed(&desk, "ann", "next", &old.id);
    let made = entries(&desk, &new);
    update(&desk, &old, 0, &plan, "Changed since", "active").expect("updates");
    assert_eq!(succeed(&desk, "ann", "next", &old.id).id, new.id);
    assert_eq!(entries(&desk, &new), made);
    for other in [json!(null), json!(new.id)] {
        let mut other_payload = asked("next", "", "Do good work");
        other_payload["successor_of"] = other;
        let refused = desk.action("ann", "create", &other_payload).expect_err("another content");
        assert_eq!((refused.kind, refused.code.as_ref()), (Kind::Conflict, "request_id_reused"));
    }
    desk.action("ann", "delete", &json!({"team_id": old.id})).expect("deletes");
    assert_eq!(succeed(&desk, "ann", "next", &old.id).id, new.id);
    assert_eq!(entries(&desk, &new), made);
}

#[test]
fn a_creation_that_is_decided_again_or_repeated_after_silence_carries_the_state_once() {
    for fault in [CommitFault::Conflict, CommitFault::UnknownWritten, CommitFault::UnknownLost] {
        let desk = Desk::default();
        let old = desk.team("ann", "core", &["Ada", "Bo"]);
        publish(&desk, &old, 0, "k1", "Plan", "One");
        desk.host.store().fail_commits([fault]);
        let asked = asked("next", &old.id, "Do good work");
        let made = desk.action("ann", "create", &asked).or_else(|e| {
            assert_eq!(e.kind, Kind::Unknown, "{fault:?}");
            desk.action("ann", "create", &asked)
        });
        let id = text(&made.expect("made")["team"]["id"]);
        let read = desk.action("ann", "state", &json!({"team_id": id})).expect("reads");
        assert_eq!(
            (&read["state_revision"], read["entries"].as_array().map(Vec::len)),
            (&json!(1), Some(1)),
            "{fault:?}"
        );
    }
}

#[test]
fn only_a_team_of_ones_own_can_be_succeeded() {
    let desk = Desk::default();
    let anns = desk.team("ann", "core", &["Ada", "Bo"]);
    publish(&desk, &anns, 0, "k1", "Plan", "a secret");
    let before = desk.host.store().dump();
    let none = format!("team-{}", "0".repeat(32));
    let refused = |earlier: &str| desk.action("bob", "create", &asked("next", earlier, "g")).expect_err("no such team");
    let (foreign, unknown) = (refused(&anns.id), refused(&none));
    assert_eq!(foreign, unknown);
    assert_eq!((foreign.code.as_ref(), foreign.field.as_deref()), ("team_not_found", Some("successor_of")));
    assert_eq!(refused("../core").code, "team_not_found");
    assert_eq!(desk.host.store().dump(), before, "nothing was made");
}

#[test]
fn a_state_at_its_bounds_is_carried_whole_and_the_context_keeps_its_own() {
    let desk = Desk::default();
    let old = desk.team("ann", "core", &["Ada", "Bo"]);
    let filled = |content: usize| "x\"".repeat(content / 2);
    let mut left = limits::STATE_BYTES;
    // As much as fits to the last byte; every entry is edited once by another.
    for n in 0..limits::STATE_ENTRIES {
        let entry = publish(&desk, &old, 0, &format!("k{n}"), "t", "c");
        update(&desk, &old, 1, &entry, "c", "active").expect("updates");
    }
    let used = |desk: &Desk| bytes(&json!(entries(desk, &old)));
    left -= used(&desk);
    let first = entries(&desk, &old)[0].clone();
    let fits = (left / 3).min(998);
    update(&desk, &old, 1, &first, &format!("c{}", filled(fits)), "active").expect("fits");
    assert!(used(&desk) <= limits::STATE_BYTES);
    let new = succeed(&desk, "ann", "next", &old.id);
    let carried = entries(&desk, &new);
    assert_eq!(carried.len(), limits::STATE_ENTRIES);
    assert!(bytes(&json!(carried)) <= used(&desk));
    let full = desk.member(
        &new,
        0,
        "publish_team_state",
        json!({"request_id": "k", "kind": "plan", "title": "t", "content": "c"}),
    );
    assert_eq!(full.expect_err("full").code, "state_entries");

    // A state that fills the context beside a larger goal is refused, whole.
    let heavy = desk.team("ann", "heavy", &["Ada", "Bo"]);
    for n in 0..8 {
        publish(&desk, &heavy, 0, &format!("k{n}"), "t", &filled(1_000));
    }
    let before = desk.host.store().dump();
    let goal = "\u{1}".repeat(1_998);
    let refused = desk.action("ann", "create", &asked("heavy-2", &heavy.id, &format!("x{goal}x")));
    assert_eq!(refused.expect_err("over the context").code, "context_budget");
    assert_eq!(desk.host.store().dump(), before, "neither team nor state");
    succeed(&desk, "ann", "heavy-2", &heavy.id);
}
