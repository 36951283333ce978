//! The tools as models use them: lists, identity, repetition. Rows 64, 65 and
//! 102 to 107.

use agent_teams_host::contract::Caller;
use agent_teams_tests::both;
use agent_teams_tests::harness::{Answer, World, refused, roster};
use serde_json::{Value, json};

use crate::support::{Board, Lead, M, ids, status};

both! {
    row_102_a_task_is_listed_read_claimed_and_a_stale_delete_refused,
    row_103_filters_and_pages,
    row_104_edit_of_three_and_dependencies_of_work_in_progress,
    rows_64_and_65_only_conversations_of_the_team,
    row_106_replies_are_compact_json,
    cursors_belong_to_their_list,
    a_descendant_of_a_members_conversation_owns_what_it_claims,
    a_member_marked_as_lead_leads,
    a_repeated_call_is_the_same_call,
    a_repeated_request_of_the_owner_makes_no_second_task,
    optional_arguments_may_be_null_or_empty,
    owners_see_nothing_of_each_other,
}

fn row_102_a_task_is_listed_read_claimed_and_a_stale_delete_refused(world: World) {
    let board = Board::new(&world);
    board.create(M(0), json!({"subject": "First", "description": "d", "write_scopes": ["src"]})).expect("create");
    let page = board.list(M(1), json!({"ready": true, "limit": 1})).expect("list");
    assert_eq!(ids(&page), ["task-1"]);
    let task = board.get(M(1), "task-1").expect("get");
    for (field, value) in [
        ("id", json!("task-1")),
        ("revision", json!(1)),
        ("subject", json!("First")),
        ("description", json!("d")),
        ("status", json!("pending")),
        ("blockedBy", json!([])),
        ("writeScopes", json!(["src"])),
        ("ready", json!(true)),
        ("writeScopeWarnings", json!([])),
    ] {
        assert_eq!(task[field], value, "{field}");
    }
    let claimed = board.update(M(1), "task-1", 1, "claim", json!({})).expect("claim");
    assert_eq!((&claimed["ownerName"], &claimed["revision"]), (&json!("b"), &json!(2)));
    let stale = refused(board.update(M(1), "task-1", 1, "delete", json!({})), "TEAM_TASK_STALE_REVISION");
    assert!(stale.message.contains("stale team task"), "{stale:?}");
}

fn row_103_filters_and_pages(world: World) {
    let board = Board::new(&world);
    for _ in 0..2 {
        board.add(&[], &[]);
    }
    board.must(Lead, "task-1", "claim");
    let listed = |filter: Value| board.list(M(0), filter);
    assert_eq!(ids(&listed(json!({"status": "in_progress", "owner": "lead"})).expect("list")), ["task-1"]);
    assert_eq!(ids(&listed(json!({"owner": "unowned"})).expect("list")), ["task-2"]);
    assert!(ids(&listed(json!({"owner": "a"})).expect("list")).is_empty());
    refused(listed(json!({"owner": "nobody"})), "TEAM_MEMBER_NOT_FOUND");
    assert_eq!(ids(&listed(json!({"ready": false})).expect("list")), ["task-1"]);
    let first = listed(json!({"limit": 1})).expect("first page");
    assert_eq!(ids(&first), ["task-1"]);
    let next = first["nextCursor"].as_str().expect("there is more");
    let second = listed(json!({"limit": 1, "cursor": next})).expect("second page");
    assert_eq!((ids(&second), second.get("nextCursor")), (vec!["task-2".to_owned()], None));
    for limit in [0, 101] {
        refused(listed(json!({"limit": limit})), "TEAM_INVALID_ARGUMENT");
    }
    refused(listed(json!({"limit": -1})), "wrong_type");
    refused(listed(json!({"status": "deleted"})), "wrong_type");
}

fn row_104_edit_of_three_and_dependencies_of_work_in_progress(world: World) {
    let board = Board::new(&world);
    let (a, b) = (board.add(&[], &[]), board.add(&[], &[]));
    board.must(M(0), &a, "claim");
    let all = json!({"subject": "S", "description": "D", "write_scopes": ["x"]});
    let task = board.act(M(0), &a, "edit", all).expect("edit");
    assert_eq!(
        (&task["subject"], &task["description"], &task["writeScopes"]),
        (&json!("S"), &json!("D"), &json!(["x"]))
    );
    assert_eq!(task["revision"], 3);
    board.act(M(0), &a, "set_dependencies", json!({"blocked_by": [b]})).expect("set");
    refused(board.act(Lead, &a, "reassign", json!({"owner": "b"})), "TEAM_TASK_BLOCKED");
}

fn rows_64_and_65_only_conversations_of_the_team(world: World) {
    let board = Board::new(&world);
    board.add(&[], &[]);
    let other = world.action("ann", "create", roster("other", &["x", "y"])).expect("create");
    let thread = other["team"]["members"][0]["thread"].as_str().expect("thread");
    let from = |thread: Option<&str>, team: &str| {
        let caller = Caller { owner: "ann".into(), thread: thread.map(Into::into), ..Caller::default() };
        world.tool(&caller, "list_team_tasks", json!({"team_id": team}))
    };
    let strangers = [
        from(Some(thread), &board.team.id),
        from(Some("elsewhere"), &board.team.id),
        from(Some("lead"), &board.team.id),
        from(None, &board.team.id),
        from(Some(thread), "team-that-never-was"),
    ];
    let said: Vec<String> = strangers
        .into_iter()
        .map(|answer| {
            let refusal = refused(answer, "TEAM_NOT_MEMBER");
            format!("{refusal:?}")
        })
        .collect();
    assert!(said.windows(2).all(|w| w[0] == w[1]), "one answer for all: {said:?}");
    let own = from(Some(thread), other["team"]["id"].as_str().expect("id")).expect("its own board");
    assert!(ids(&own).is_empty(), "another team of the owner has its own board");
}

fn row_106_replies_are_compact_json(world: World) {
    let board = Board::new(&world);
    board.add(&[], &["研究"]);
    let arguments = json!({"team_id": board.team.id}).to_string();
    let text = world.tool_text(&board.caller(0), "list_team_tasks", &arguments).expect("list");
    let value: Value = serde_json::from_str(&text).expect("json");
    assert_eq!(text, serde_json::to_string(&value).expect("writes"));
    assert!(text.contains("研究"));
}

fn cursors_belong_to_their_list(world: World) {
    let board = Board::new(&world);
    for _ in 0..3 {
        board.add(&[], &[]);
    }
    let page = board.list(M(0), json!({"limit": 1})).expect("list");
    let cursor = page["nextCursor"].as_str().expect("cursor");
    for (who, filter) in [
        (M(0), json!({"cursor": cursor, "ready": true})),
        (M(0), json!({"cursor": "00000001"})),
        (M(0), json!({"cursor": format!("{cursor}0")})),
        (Lead, json!({"cursor": cursor})),
    ] {
        refused(board.list(who, filter), "bad_cursor");
    }
    // It is anchored at a task, so that others may come and go.
    board.must(Lead, "task-1", "delete");
    board.add(&[], &[]);
    let rest = board.list(M(1), json!({"cursor": cursor})).expect("the rest");
    assert_eq!(ids(&rest), ["task-2", "task-3", "task-4"]);
}

fn a_descendant_of_a_members_conversation_owns_what_it_claims(world: World) {
    let board = Board::new(&world);
    let a = board.add(&[], &[]);
    let deep = Caller {
        owner: "ann".into(),
        thread: Some("deep".into()),
        ancestors: vec!["middle".into(), board.owner(0).into(), "root".into()],
        ..Caller::default()
    };
    let call = |caller: &Caller, revision: u64, action: &str| {
        let arguments =
            json!({"team_id": board.team.id, "task_id": a, "expected_revision": revision, "action": action});
        world.tool(caller, "update_team_task", arguments)
    };
    let task = call(&deep, 1, "claim").expect("claim");
    assert_eq!((&task["ownerId"], task.get("ownerName")), (&json!("deep"), None));
    // The conversation above it is another one.
    refused(call(&board.caller(0), 2, "complete"), "TEAM_TASK_UNAUTHORIZED");
    assert_eq!(ids(&board.list(Lead, json!({"owner": "deep"})).expect("list")), std::slice::from_ref(&a));
    assert_eq!(status(&call(&deep, 2, "complete").expect("complete")), "completed");
    let history = world.action("ann", "task_history", json!({"team_id": board.team.id})).expect("history");
    let author = &history["events"][0]["author"];
    assert_eq!(
        (&author["kind"], &author["member"], &author["thread"]),
        (&json!("member"), &json!("a"), &json!("deep"))
    );
}

fn a_member_marked_as_lead_leads(world: World) {
    let mut payload = roster("led", &["a", "b"]);
    payload["lead"] = json!("b");
    let answer = world.action("ann", "create", payload).expect("create");
    let board = Board { team: agent_teams_tests::harness::Team::from_answer("ann", &answer), world: &world };
    let id = board.add(&[], &[]);
    board.act(M(1), &id, "edit", json!({"subject": "x"})).expect("a lead may edit what nobody holds");
    refused(board.act(M(0), &id, "reassign", json!({"owner": "a"})), "TEAM_LEAD_REQUIRED");
    board.act(M(1), &id, "reassign", json!({"owner": "a"})).expect("reassign");
    let task = board.must(M(1), &id, "release");
    assert_eq!(status(&task), "pending");
    let claimed = board.must(M(1), &id, "claim");
    assert_eq!(claimed["ownerId"], board.owner(1), "a member's claim is its conversation's");
    // What a lead's conversation started does not lead.
    let below = Caller {
        owner: "ann".into(),
        thread: Some("below".into()),
        ancestors: vec![board.owner(1).into()],
        ..Caller::default()
    };
    let arguments = json!({"team_id": board.team.id, "task_id": id, "expected_revision": 5, "action": "release"});
    refused(world.tool(&below, "update_team_task", arguments), "TEAM_TASK_UNAUTHORIZED");
}

fn a_repeated_call_is_the_same_call(world: World) {
    let board = Board::new(&world);
    let caller = Caller { run: Some("run-1".into()), call: Some("call-1".into()), ..board.caller(0) };
    let create = |subject: &str| -> Answer {
        let arguments = json!({"team_id": board.team.id, "subject": subject, "description": "d"});
        world.tool(&caller, "create_team_task", arguments)
    };
    let first = create("s").expect("create");
    board.must(Lead, "task-1", "claim");
    assert_eq!(create("s").expect("again"), first);
    refused(create("other"), "call_id_reused");
    assert_eq!(board.ids(), ["task-1"]);
    let claim = Caller { call: Some("call-2".into()), ..caller.clone() };
    let id = board.add(&[], &[]);
    let arguments = json!({"team_id": board.team.id, "task_id": id, "expected_revision": 1, "action": "claim"});
    let first = world.tool(&claim, "update_team_task", arguments.clone()).expect("claim");
    assert_eq!(world.tool(&claim, "update_team_task", arguments).expect("again"), first, "and not stale");
}

fn a_repeated_request_of_the_owner_makes_no_second_task(world: World) {
    let board = Board::new(&world);
    let create = |description: &str| {
        let payload = json!({"team_id": board.team.id, "subject": "s", "description": description, "request_id": "r"});
        world.action("ann", "create_task", payload)
    };
    let first = create("d").expect("create");
    assert_eq!(first["created"], true);
    board.must(M(0), "task-1", "claim");
    let again = create("d").expect("again");
    assert_eq!((&again["created"], status(&again["task"])), (&json!(false), "in_progress"));
    refused(create("D"), "request_id_reused");
    assert_eq!(board.ids(), ["task-1"]);
}

fn optional_arguments_may_be_null_or_empty(world: World) {
    let board = Board::new(&world);
    let new = json!({"subject": "s", "description": "d", "blocked_by": null, "write_scopes": ""});
    board.create(M(0), new).expect("create");
    let filter = json!({"status": "", "owner": "", "ready": null, "cursor": "", "limit": null});
    assert_eq!(ids(&board.list(M(0), filter).expect("list")), ["task-1"]);
    refused(board.create(M(0), json!({"subject": "s", "description": "d", "owner": "a"})), "unknown_field");
}

fn owners_see_nothing_of_each_other(world: World) {
    let board = Board::new(&world);
    board.add(&[], &[]);
    let never = "team-00000000000000000000000000000000";
    let call = |action: &str, team: &str| {
        let payload = match action {
            "create_task" => json!({"team_id": team, "subject": "s", "description": "d"}),
            "update_task" => json!({"team_id": team, "task_id": "task-1", "expected_revision": 1, "action": "claim"}),
            "import_tasks" => json!({"team_id": team, "lines": "", "source": "x"}),
            _ => json!({"team_id": team}),
        };
        refused(world.action("bob", action, payload), "team_not_found")
    };
    for action in ["tasks", "create_task", "update_task", "task_history", "import_tasks"] {
        assert_eq!(call(action, &board.team.id), call(action, never), "{action}");
    }
    assert_eq!(board.ids(), ["task-1"]);
}
