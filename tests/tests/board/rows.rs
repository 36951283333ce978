//! Rules of tasks: rows 1 to 62.

use agent_teams_tests::both;
use agent_teams_tests::harness::{ComponentOptions, World, refused};
use agent_teams_tests::native::CommitFault;
use serde_json::json;

use crate::support::{Board, Lead, M, status};

both! {
    row_02_no_number_is_left,
    row_03_scopes_are_stored_once_in_one_form,
    row_04_a_blocked_task_cannot_be_claimed,
    row_05_of_two_claims_one_loses,
    row_06_an_overlap_is_warned_of,
    row_07_others_cannot_edit,
    row_08_a_stale_revision_changes_nothing,
    row_09_a_completed_blocker_makes_ready,
    row_10_and_55_blockers_must_exist,
    rows_11_and_12_no_task_waits_for_itself,
    row_13_a_blocker_is_listed_once,
    rows_14_to_21_and_63_bad_scopes,
    rows_22_to_24_texts,
    row_25_an_unknown_task,
    rows_26_to_28_wrong_states,
    rows_29_and_30_missing_fields,
    rows_31_and_50_a_blocker_cannot_be_deleted,
    rows_32_33_34_and_38_reassign,
    row_35_reopen_claim_delete,
    rows_36_37_and_44_deleted_and_unknown,
    row_39_the_lead_claims,
    rows_40_and_58_each_edit_is_a_revision,
    row_41_a_blank_owner_is_nobody,
    row_42_only_overlaps_are_warned_of,
    row_45_the_creator_has_no_right,
    rows_46_and_47_claims_of_what_is_not_pending,
    rows_48_and_49_work_goes_on_when_a_blocker_comes_back,
    row_51_reassign_of_a_blocked_task,
    row_52_names,
    row_54_the_order_of_checks,
    rows_59_and_60_a_tombstone_stays_and_its_number_too,
    row_61_an_unknown_action,
}

fn row_02_no_number_is_left(world: World) {
    let board = Board::new(&world);
    let task = json!({"id": "task-9007199254740991", "revision": 1, "subject": "s", "description": "d",
        "status": "pending", "blockedBy": [], "writeScopes": []});
    let line = json!({"type": "team/task", "data": {"version": 2, "teamId": "r", "task": task}});
    let payload = json!({"team_id": board.team.id, "source": "r", "lines": line.to_string()});
    world.action("ann", "import_tasks", payload).expect("import");
    refused(board.create(Lead, json!({"subject": "s", "description": "d"})), "TEAM_TASK_LIMIT");
}

fn row_03_scopes_are_stored_once_in_one_form(world: World) {
    let board = Board::new(&world);
    let id = board.add(&[], &["src", "./src/", "src/"]);
    let task = board.task(&id);
    assert_eq!((&task["writeScopes"], &task["revision"]), (&json!(["src"]), &json!(1)));
}

fn row_04_a_blocked_task_cannot_be_claimed(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    let b = board.add(&[&a], &[]);
    let refusal = refused(board.act(M(0), &b, "claim", json!({})), "TEAM_TASK_BLOCKED");
    assert!(refusal.message.contains("task-1 (pending)"), "{refusal:?}");
}

fn row_05_of_two_claims_one_loses(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    assert_eq!(board.must(M(0), &a, "claim")["revision"], 2);
    let refusal = refused(board.update(M(1), &a, 2, "claim", json!({})), "TEAM_TASK_ALREADY_CLAIMED");
    assert!(refusal.message.contains("held by a"), "{refusal:?}");
}

fn row_06_an_overlap_is_warned_of(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &["src"]);
    let b = board.add(&[&a], &["src/feature"]);
    board.must(M(0), &a, "claim");
    let task = board.get(M(1), &b).expect("get");
    assert_eq!(task["ready"], false);
    assert_eq!(task["writeScopeWarnings"], json!(["write scopes overlap with task-1"]));
}

fn row_07_others_cannot_edit(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    board.must(M(0), &a, "claim");
    refused(board.act(M(1), &a, "edit", json!({"subject": "mine"})), "TEAM_TASK_UNAUTHORIZED");
    assert_eq!(board.task(&a)["subject"], "Task");
}

fn row_08_a_stale_revision_changes_nothing(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    board.must(M(0), &a, "claim");
    let refusal = refused(board.update(M(0), &a, 1, "complete", json!({})), "TEAM_TASK_STALE_REVISION");
    assert!(refusal.message.contains("stale team task"), "{refusal:?}");
    assert!(refusal.message.contains("task-1") && refusal.message.contains('1') && refusal.message.contains('2'));
    assert_eq!(status(&board.task(&a)), "in_progress");
}

fn row_09_a_completed_blocker_makes_ready(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    let b = board.add(&[&a], &[]);
    board.must(M(0), &a, "claim");
    board.must(M(0), &a, "complete");
    assert_eq!(board.task(&b)["ready"], true);
    board.update(M(1), &b, 1, "claim", json!({})).expect("claim");
    let task = board.must(M(1), &b, "release");
    assert_eq!((status(&task), &task["ready"], task.get("ownerId")), ("pending", &json!(true), None));
}

fn row_10_and_55_blockers_must_exist(world: World) {
    let board = Board::new(&world);
    let new = |blocker: &str| json!({"subject": "s", "description": "d", "blocked_by": [blocker]});
    refused(board.create(M(0), new("missing")), "TEAM_TASK_NOT_FOUND");
    let a = board.add(&[], &[]);
    board.must(Lead, &a, "delete");
    refused(board.create(M(0), new(&a)), "TEAM_TASK_NOT_FOUND");
}

fn rows_11_and_12_no_task_waits_for_itself(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    let b = board.add(&[&a], &[]);
    let set = |on: &str| board.act(Lead, &a, "set_dependencies", json!({"blocked_by": [on]}));
    let refusal = refused(set(&b), "TEAM_TASK_DEPENDENCY_CYCLE");
    assert!(refusal.message.contains(&b), "{refusal:?}");
    refused(set(&a), "TEAM_TASK_DEPENDENCY_CYCLE");
    assert_eq!(board.task(&a)["blockedBy"], json!([]));
}

fn row_13_a_blocker_is_listed_once(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    let b = board.add(&[], &[]);
    let twice = board.act(Lead, &a, "set_dependencies", json!({"blocked_by": [b, b]}));
    refused(twice, "TEAM_INVALID_ARGUMENT");
}

fn rows_14_to_21_and_63_bad_scopes(world: World) {
    let board = Board::new(&world);
    for scope in
        ["", ".", "..", "/root", "C:\\root", "C:root", "a//b", "a/../b", "./", "././src", ".//src", "src/.", "a\0"]
    {
        let new = json!({"subject": "s", "description": "d", "write_scopes": [scope]});
        let refusal = refused(board.create(M(0), new), "TEAM_INVALID_WRITE_SCOPE");
        assert!(refusal.message.contains(&json!(scope).to_string()), "{refusal:?}");
    }
    let id = board.add(&[], &["src///", ".\\src\\a\\"]);
    assert_eq!(board.task(&id)["writeScopes"], json!(["src", "src/a"]));
}

fn rows_22_to_24_texts(world: World) {
    let board = Board::new(&world);
    for (subject, description) in [(" ", "d"), ("s", ""), (&*"x".repeat(201), "d"), ("s\0", "d"), ("s", "\0")] {
        let new = json!({"subject": subject, "description": description});
        refused(board.create(M(0), new), "TEAM_INVALID_ARGUMENT");
    }
    assert!(board.ids().is_empty());
}

fn row_25_an_unknown_task(world: World) {
    let board = Board::new(&world);
    for id in ["missing", "task-1", "", "../x", "😀"] {
        refused(board.get(M(0), id), "TEAM_TASK_NOT_FOUND");
    }
    refused(board.get(Lead, "missing"), "TEAM_TASK_NOT_FOUND");
}

fn rows_26_to_28_wrong_states(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    for action in ["release", "complete", "reopen"] {
        refused(board.act(Lead, &a, action, json!({})), "TEAM_TASK_INVALID_TRANSITION");
    }
}

fn rows_29_and_30_missing_fields(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    refused(board.act(Lead, &a, "edit", json!({})), "TEAM_INVALID_ARGUMENT");
    refused(board.act(Lead, &a, "edit", json!({"subject": "", "description": null})), "TEAM_INVALID_ARGUMENT");
    refused(board.act(Lead, &a, "set_dependencies", json!({})), "TEAM_INVALID_ARGUMENT");
    board.act(Lead, &a, "set_dependencies", json!({"blocked_by": []})).expect("an empty list is a list");
}

fn rows_31_and_50_a_blocker_cannot_be_deleted(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    let b = board.add(&[&a], &[]);
    let refusal = refused(board.act(Lead, &a, "delete", json!({})), "TEAM_TASK_HAS_DEPENDENTS");
    assert!(refusal.message.contains(&format!("{a} still blocks {b}")), "{refusal:?}");
    board.must(Lead, &a, "claim");
    board.must(Lead, &a, "complete");
    refused(board.act(Lead, &a, "delete", json!({})), "TEAM_TASK_HAS_DEPENDENTS");
    board.must(Lead, &b, "delete");
    board.must(Lead, &a, "delete");
}

fn rows_32_33_34_and_38_reassign(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    let b = board.add(&[&a], &[]);
    refused(board.act(Lead, &b, "reassign", json!({"owner": "a"})), "TEAM_TASK_BLOCKED");
    let task = board.act(Lead, &a, "reassign", json!({"owner": "a"})).expect("reassign");
    assert_eq!((status(&task), &task["ownerId"]), ("in_progress", &json!(board.owner(0))));
    assert_eq!(task["ownerName"], "a");
    refused(board.act(M(0), &a, "reassign", json!({"owner": "lead"})), "TEAM_LEAD_REQUIRED");
    board.must(M(0), &a, "complete");
    refused(board.act(Lead, &a, "reassign", json!({"owner": "b"})), "TEAM_TASK_INVALID_TRANSITION");
}

fn row_35_reopen_claim_delete(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    board.must(M(0), &a, "claim");
    board.must(M(0), &a, "complete");
    let task = board.must(M(0), &a, "reopen");
    assert_eq!((status(&task), task.get("ownerId")), ("pending", None));
    board.must(M(0), &a, "claim");
    assert_eq!(status(&board.must(M(0), &a, "delete")), "deleted");
    assert!(board.ids().is_empty());
}

fn rows_36_37_and_44_deleted_and_unknown(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    board.must(Lead, &a, "delete");
    refused(board.update(Lead, &a, 2, "edit", json!({"subject": "x"})), "TEAM_TASK_DELETED");
    refused(board.update(Lead, &a, 1, "edit", json!({"subject": "x"})), "TEAM_TASK_STALE_REVISION");
    refused(board.update(M(0), &a, 1, "nonsense", json!({})), "TEAM_TASK_STALE_REVISION");
    refused(board.update(M(0), &a, 2, "nonsense", json!({})), "TEAM_TASK_DELETED");
    refused(board.update(Lead, "task-9", 1, "delete", json!({})), "TEAM_TASK_NOT_FOUND");
}

fn row_39_the_lead_claims(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    let task = board.must(Lead, &a, "claim");
    assert_eq!((&task["ownerId"], &task["ownerName"]), (&json!("lead"), &json!("lead")));
}

fn rows_40_and_58_each_edit_is_a_revision(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &["src"]);
    let mut before = board.task(&a);
    for (i, (field, argument, value)) in [
        ("subject", "subject", json!("New")),
        ("description", "description", json!("Newer")),
        ("writeScopes", "write_scopes", json!(["docs"])),
        ("subject", "subject", json!("New")),
    ]
    .into_iter()
    .enumerate()
    {
        let task = board.act(Lead, &a, "edit", json!({argument: value})).expect("edit");
        assert_eq!(task["revision"], i + 2);
        before[field] = value;
        for field in ["subject", "description", "writeScopes", "status", "blockedBy"] {
            assert_eq!(task[field], before[field], "{field} after {argument}");
        }
    }
}

fn row_41_a_blank_owner_is_nobody(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    for blank in [json!(" "), json!(""), json!(null)] {
        board.must(Lead, &a, "claim");
        let task = board.act(Lead, &a, "reassign", json!({"owner": blank})).expect("reassign");
        assert_eq!((status(&task), task.get("ownerId")), ("pending", None));
    }
}

fn row_42_only_overlaps_are_warned_of(world: World) {
    let board = Board::new(&world);
    let ids: Vec<String> = ["src", "src/nested", "docs"].iter().map(|s| board.add(&[], &[s])).collect();
    for id in &ids {
        board.must(M(0), id, "claim");
    }
    assert_eq!(board.task(&ids[0])["writeScopeWarnings"], json!(["write scopes overlap with task-2"]));
    board.must(M(0), &ids[1], "complete");
    assert_eq!(board.task(&ids[0])["writeScopeWarnings"], json!([]));
    assert_eq!(board.task(&ids[1])["writeScopeWarnings"], json!(["write scopes overlap with task-1"]));
}

fn row_45_the_creator_has_no_right(world: World) {
    let board = Board::new(&world);
    let task = board.create(M(0), json!({"subject": "s", "description": "d"})).expect("create");
    let id = task["id"].as_str().expect("id");
    for (action, more) in
        [("edit", json!({"subject": "x"})), ("delete", json!({})), ("set_dependencies", json!({"blocked_by": []}))]
    {
        refused(board.act(M(0), id, action, more), "TEAM_TASK_UNAUTHORIZED");
    }
}

fn rows_46_and_47_claims_of_what_is_not_pending(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    board.must(M(0), &a, "claim");
    refused(board.act(M(0), &a, "claim", json!({})), "TEAM_TASK_BLOCKED");
    board.must(M(0), &a, "complete");
    refused(board.act(M(0), &a, "claim", json!({})), "TEAM_TASK_BLOCKED");
    refused(board.act(M(1), &a, "claim", json!({})), "TEAM_TASK_ALREADY_CLAIMED");
}

fn rows_48_and_49_work_goes_on_when_a_blocker_comes_back(world: World) {
    let board = Board::new(&world);
    let (a, b) = (board.add(&[], &[]), board.add(&[], &[]));
    board.must(M(0), &b, "claim");
    board.act(M(0), &b, "set_dependencies", json!({"blocked_by": [a]})).expect("set");
    board.must(M(0), &b, "complete");
    board.must(M(0), &b, "reopen");
    board.must(M(1), &a, "claim");
    board.must(M(1), &a, "complete");
    board.must(M(0), &b, "claim");
    board.must(M(1), &a, "reopen");
    let task = board.task(&b);
    assert_eq!((status(&task), &task["ready"]), ("in_progress", &json!(false)));
    board.must(M(0), &b, "complete");
}

fn row_51_reassign_of_a_blocked_task(world: World) {
    let board = Board::new(&world);
    let (a, b) = (board.add(&[], &[]), board.add(&[], &[]));
    board.must(M(0), &b, "claim");
    board.act(Lead, &b, "set_dependencies", json!({"blocked_by": [a]})).expect("set");
    refused(board.act(Lead, &b, "reassign", json!({"owner": "b"})), "TEAM_TASK_BLOCKED");
    refused(board.act(Lead, &b, "reassign", json!({"owner": "nobody known"})), "TEAM_TASK_BLOCKED");
    let task = board.act(Lead, &b, "reassign", json!({})).expect("to nobody");
    assert_eq!((status(&task), task.get("ownerId")), ("pending", None));
}

fn row_52_names(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    for name in ["unknown", "Lead", "A", "unowned"] {
        let refusal = refused(board.act(Lead, &a, "reassign", json!({"owner": name})), "TEAM_MEMBER_NOT_FOUND");
        assert!(refusal.message.contains("a, b, c, lead"), "{refusal:?}");
    }
    let to = |name: &str| board.act(Lead, &a, "reassign", json!({"owner": name})).expect("reassign")["ownerId"].clone();
    assert_eq!(to(" a "), board.owner(0));
    assert_eq!(to(&board.team.members[1].id), board.owner(1));
    assert_eq!(to(board.owner(2)), board.owner(2));
    assert_eq!(to("lead"), "lead");
}

fn row_54_the_order_of_checks(world: World) {
    let board = Board::new(&world);
    let mut new = json!({"subject": " ", "description": "d", "blocked_by": ["missing"], "write_scopes": [".."]});
    refused(board.create(M(0), new.clone()), "TEAM_INVALID_ARGUMENT");
    new["subject"] = json!("s");
    refused(board.create(M(0), new.clone()), "TEAM_TASK_NOT_FOUND");
    new["blocked_by"] = json!([]);
    refused(board.create(M(0), new.clone()), "TEAM_INVALID_WRITE_SCOPE");
    new["write_scopes"] = json!(["src"]);
    board.create(M(0), new).expect("create");
}

fn rows_59_and_60_a_tombstone_stays_and_its_number_too(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    let b = board.add(&[&a], &[]);
    board.must(Lead, &b, "delete");
    let task = board.get(M(0), &b).expect("a tombstone");
    assert_eq!((status(&task), &task["ready"]), ("deleted", &json!(false)));
    assert_eq!(task["blockedBy"], json!([a]));
    assert_eq!(board.add(&[], &[]), "task-3");
    assert_eq!(board.ids(), ["task-1", "task-3"]);
}

fn row_61_an_unknown_action(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    for who in [Lead, M(0)] {
        let refusal = refused(board.act(who, &a, "finish", json!({})), "TEAM_INVALID_ARGUMENT");
        assert!(refusal.message.contains("set_dependencies"), "{refusal:?}");
    }
}

fn one_task(world: &World) {
    let board = Board::new(world);
    let a = board.add(&[], &[]);
    refused(board.create(Lead, json!({"subject": "s", "description": "d"})), "TEAM_TASK_LIMIT");
    // Row 53: the limit is looked at first.
    refused(board.create(Lead, json!({"subject": " ", "description": "d"})), "TEAM_TASK_LIMIT");
    board.must(Lead, &a, "delete");
    assert_eq!(board.add(&[], &[]), "task-2");
    assert_eq!(status(&board.task(&a)), "deleted");
    assert_eq!(board.ids(), ["task-2"]);
}

#[test]
fn rows_1_and_53_natively() {
    one_task(&World::native_with(1, "{\"board_tasks\":1}"));
}

#[test]
fn rows_1_and_53_in_the_component() {
    one_task(&World::component_with(ComponentOptions {
        settings: "{\"board_tasks\":1}".into(),
        ..ComponentOptions::default()
    }));
}

#[test]
fn row_43_a_limit_is_a_whole_number_from_one() {
    for bad in ["0", "1.5", "9007199254740992", "-1", "\"9\""] {
        let world = World::native();
        let host = world.native_host().expect("native");
        host.set_settings(&format!("{{\"board_tasks\":{bad}}}"));
        let refusal = world.open().expect_err("refused");
        assert_eq!(refusal.code, "bad_settings", "{bad}");
    }
}

#[test]
fn row_62_an_unconfirmed_commit_may_have_happened_and_wakes_nobody() {
    for (fault, visible) in [(CommitFault::UnknownWritten, true), (CommitFault::UnknownLost, false)] {
        let world = World::native();
        let board = Board::new(&world);
        let host = world.native_host().expect("native");
        let topic = format!("team/{}", board.team.id);
        let position = || agent_teams_plugin::host::Host::position(host, "ann", &topic);
        let before = position();
        world.fail_commits([fault]);
        let refusal = refused(
            board.create(M(0), json!({"subject": "s", "description": "d"})),
            "TEAM_TASK_PERSISTENCE_UNCONFIRMED",
        );
        assert_eq!(refusal.kind, agent_teams_host::contract::ErrorKind::Unknown);
        assert_eq!(position(), before, "nobody is woken");
        assert_eq!(board.get(Lead, "task-1").is_ok(), visible);
        let next = board.add(&[], &[]);
        assert_eq!(next, if visible { "task-2" } else { "task-1" });
        assert!(position() > before);
    }
}

#[test]
fn nothing_changes_when_the_store_is_away() {
    let world = World::native();
    let board = Board::new(&world);
    world.fail_commits([CommitFault::Unavailable]);
    let answer = board.create(M(0), json!({"subject": "s", "description": "d"}));
    refused(answer, "store_unavailable");
    assert!(board.ids().is_empty());
    assert_eq!(board.add(&[], &[]), "task-1");
}
