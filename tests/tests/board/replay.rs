//! Session logs of the other host: rows 64 and 66 to 92.

use agent_teams_tests::both;
use agent_teams_tests::harness::{World, refused};
use serde_json::{Value, json};

use crate::support::{Board, Lead, M};

both! {
    row_66_a_log_with_everything,
    rows_67_and_68_revisions,
    rows_69_to_73_edges,
    row_74_ids_of_other_forms,
    rows_75_76_89_and_91_payloads,
    row_77_an_unsupported_version_ends_it,
    rows_64_78_79_and_83_records_of_others,
    row_84_a_record_twice,
    row_85_after_a_failure_nothing_counts,
    row_86_a_forward_reference,
    row_87_what_replay_does_not_judge,
    row_88_leading_zeros,
    row_90_edges_of_a_deleted_task,
    row_92_delivery_belongs_to_version_1,
    both_versions_are_read,
    lines_that_are_no_records,
}

pub fn task(id: &str, revision: u64, more: Value) -> Value {
    let mut task = json!({"id": id, "revision": revision, "subject": "s", "description": "d", "status": "pending",
        "blockedBy": [], "writeScopes": []});
    for (key, value) in more.as_object().into_iter().flatten() {
        task[key] = value.clone();
    }
    json!({"type": "team/task", "seq": 1, "time": 1_767_225_600_000_u64, "data": {"version": 2, "teamId": "root", "task": task}})
}

fn member(id: &str, phase: &str) -> Value {
    json!({"type": "team/member", "data": {"version": 2, "teamId": "root", "member": {"id": id, "name": id,
        "description": "d", "provider": "p", "context": "fresh", "phase": phase}}})
}

fn queued(id: &str) -> Value {
    json!({"type": "team/message/queued", "data": {"version": 2, "teamId": "root", "message": {"id": id,
        "senderId": "root", "senderName": "lead", "targetId": "m", "content": [{"type": "text", "text": "hello"}]}}})
}

fn delivered(id: &str) -> Value {
    json!({"type": "team/message/delivered", "data": {"version": 2, "teamId": "root", "messageId": id, "targetId": "m"}})
}

/// The same record of another team.
fn foreign(mut record: Value) -> Value {
    record["data"]["teamId"] = json!("elsewhere");
    record
}

/// A log of these records, with its header.
pub fn log(records: &[Value]) -> String {
    let mut lines = vec![json!({"type": "session", "version": 0, "id": "root", "createdAt": 1}).to_string()];
    lines.extend(records.iter().map(Value::to_string));
    lines.join("\n")
}

pub fn import(board: &Board, records: &[Value]) -> Value {
    let payload = json!({"team_id": board.team.id, "lines": log(records)});
    board.world.action("ann", "import_tasks", payload).expect("import")
}

/// Imports into a new team; the failure's words, or nothing.
#[track_caller]
fn failure(world: &World, records: &[Value]) -> String {
    let team = world.action("ann", "list", json!({})).expect("list")["teams"].as_array().map_or(0, Vec::len);
    if team == 20 {
        for team in world.action("ann", "list", json!({})).expect("list")["teams"].as_array().into_iter().flatten() {
            world.action("ann", "delete", json!({"team_id": team["id"]})).expect("delete");
        }
    }
    let board = Board { team: world.team_named("ann", &format!("t{team}"), &["a", "b"]), world };
    let reply = import(&board, records);
    let failure = reply["import"]["failure"]["message"].as_str().unwrap_or("").to_owned();
    let told = board.list(Lead, json!({})).expect("list")["board"]["failure"]["message"].clone();
    assert_eq!(told.as_str().unwrap_or(""), failure, "the failure stands beside the tasks");
    failure
}

#[track_caller]
fn rejected(world: &World, records: &[Value], words: &str) {
    let failure = failure(world, records);
    assert!(!failure.is_empty() && failure.contains(words), "{failure:?} should say {words:?}");
}

#[track_caller]
fn accepted(world: &World, records: &[Value]) {
    assert_eq!(failure(world, records), "");
}

fn row_66_a_log_with_everything(world: World) {
    let board = Board::new(&world);
    let records = [
        foreign(member("x", "provisioning")),
        member("m", "provisioning"),
        member("m", "active"),
        task("task-7", 1, json!({})),
        queued("q"),
        queued("q2"),
        delivered("q"),
        json!({"type": "message", "data": {"anything": true}}),
    ];
    let reply = import(&board, &records);
    let report = &reply["import"];
    for (field, expected) in [
        ("source", json!("root")),
        ("done", json!(true)),
        ("taskRecords", json!(1)),
        ("memberRecords", json!(2)),
        ("messages", json!(2)),
        ("deliveries", json!(1)),
        ("ignored", json!(2)),
        ("lines", json!(9)),
    ] {
        assert_eq!(report[field], expected, "{field} in {report}");
    }
    assert_eq!(board.ids(), ["task-7"]);
    assert_eq!(board.add(&[], &[]), "task-8");
    let old = |of: &str| {
        let payload = json!({"team_id": board.team.id, "of": of});
        world.action("ann", "task_history", payload).expect("history")[of].clone()
    };
    let members = old("members");
    assert_eq!((members.as_array().map(Vec::len), &members[0]["phase"]), (Some(1), &json!("active")));
    let messages = old("messages");
    assert_eq!(messages[0]["message"]["content"][0]["text"], "hello");
    assert_eq!((&messages[0]["delivered"], &messages[1]["delivered"]), (&json!(true), &json!(false)));
    // Nothing of it is delivered, and it gives nobody a right.
    assert!(world.jobs(&board.team).is_empty());
    world.work();
    assert!(world.double.admissions().is_empty());
}

fn rows_67_and_68_revisions(world: World) {
    rejected(&world, &[task("task-1", 2, json!({}))], "revision 2, not 1");
    rejected(&world, &[task("task-1", 1, json!({})), task("task-1", 3, json!({}))], "from revision 1 to 3");
}

fn rows_69_to_73_edges(world: World) {
    let on = |id: &str, revision: u64, blockers: Value| task(id, revision, json!({"blockedBy": blockers}));
    rejected(&world, &[on("task-1", 1, json!(["task-9"]))], "missing or deleted");
    rejected(&world, &[on("task-1", 1, json!(["task-1"]))], "waits for itself");
    let twice = [task("task-1", 1, json!({})), on("task-2", 1, json!(["task-1", "task-1"]))];
    rejected(&world, &twice, "twice");
    let cycle = [task("task-1", 1, json!({})), on("task-2", 1, json!(["task-1"])), on("task-1", 2, json!(["task-2"]))];
    rejected(&world, &cycle, "waits for itself through task-2");
    let gone = [
        task("task-1", 1, json!({})),
        on("task-2", 1, json!(["task-1"])),
        task("task-1", 2, json!({"status": "deleted"})),
    ];
    rejected(&world, &gone, "missing or deleted");
}

fn row_74_ids_of_other_forms(world: World) {
    let board = Board::new(&world);
    let long = "é/".repeat(80);
    let records = [task("external-task", 1, json!({})), task(&long, 1, json!({"blockedBy": ["external-task"]}))];
    import(&board, &records);
    assert_eq!(board.ids(), ["external-task", &*long]);
    assert_eq!(board.task("external-task")["dependants"], json!([long]));
    board.must(M(0), "external-task", "claim");
    assert_eq!(board.add(&[&long], &[]), "task-1");
}

fn rows_75_76_89_and_91_payloads(world: World) {
    let invalid = "payload is invalid";
    rejected(&world, &[task("task-9007199254740992", 1, json!({}))], invalid);
    rejected(&world, &[task("task-1", 1, json!({"blockedBy": [42]}))], invalid);
    rejected(&world, &[task("task-1", 1, json!({"ownerId": null}))], invalid);
    rejected(&world, &[task("task-1", 1, json!({"extra": 1}))], invalid);
    rejected(&world, &[task("task-1", 0, json!({}))], invalid);
    let mut record = task("task-1", 1, json!({}));
    record["data"]["version"] = json!("2");
    rejected(&world, &[record], invalid);
    let mut record = member("m", "provisioning");
    record["data"]["member"]["name"] = json!(42);
    rejected(&world, &[record], invalid);
    let mut record = queued("q");
    record["data"]["message"]["content"][0]["text"] = json!(42);
    rejected(&world, &[record], invalid);
    let mut record = delivered("q");
    record["data"]["targetId"] = json!(42);
    rejected(&world, &[record], invalid);
    accepted(&world, &[json!({"type": "team/unknown", "data": 7}), task("task-1", 1, json!({}))]);
}

fn row_77_an_unsupported_version_ends_it(world: World) {
    let board = Board::new(&world);
    let mut newer = task("task-1", 1, json!({}));
    newer["data"]["version"] = json!(3);
    let reply = import(&board, &[newer, task("task-1", 1, json!({}))]);
    let failure = &reply["import"]["failure"];
    assert_eq!(failure["line"], 2);
    assert!(failure["message"].as_str().is_some_and(|m| m.contains("unsupported") && m.contains("version 3")));
    assert!(board.ids().is_empty());
}

fn rows_64_78_79_and_83_records_of_others(world: World) {
    let mut newer = foreign(task("task-1", 1, json!({})));
    newer["data"]["version"] = json!(99);
    let malformed = foreign(task("task-1", 1, json!({"revision": "x"})));
    accepted(&world, &[newer, malformed.clone(), task("task-1", 1, json!({}))]);
    let mut without = malformed;
    without["data"].as_object_mut().expect("object").remove("version");
    rejected(&world, &[without], "payload is invalid");
    // An ordinary fork has a team id of its own: of the log it inherits,
    // nothing is its.
    let board = Board::new(&world);
    let payload = json!({"team_id": board.team.id, "source": "fork", "lines": log(&[task("task-1", 1, json!({}))])});
    let reply = world.action("ann", "import_tasks", payload).expect("import");
    assert_eq!((&reply["import"]["ignored"], &reply["tasks"]), (&json!(1), &json!(0)));
    assert!(board.ids().is_empty());
}

fn row_84_a_record_twice(world: World) {
    let board = Board::new(&world);
    let first = task("task-1", 1, json!({"subject": "first"}));
    let reply = import(&board, &[first, task("task-1", 1, json!({"subject": "second"}))]);
    assert!(reply["import"]["failure"].is_object());
    assert_eq!(board.task("task-1")["subject"], "first");
}

fn row_85_after_a_failure_nothing_counts(world: World) {
    let board = Board::new(&world);
    let records = [1, 3, 2].map(|revision| task("task-1", revision, json!({"subject": format!("at {revision}")})));
    let reply = import(&board, &records);
    assert_eq!(reply["import"]["failure"]["line"], 3);
    assert_eq!((&board.task("task-1")["subject"], &reply["changes"]), (&json!("at 1"), &json!(1)));
    let refusal = refused(board.act(Lead, "task-1", "claim", json!({})), "TEAM_BOARD_RECORD_REJECTED");
    assert!(refusal.message.contains("line 3"), "{refusal:?}");
    refused(board.create(M(0), json!({"subject": "s", "description": "d"})), "TEAM_BOARD_RECORD_REJECTED");
    let listed = board.list(M(0), json!({})).expect("it can be read");
    assert!(listed["failure"].as_str().is_some_and(|f| f.contains("revision")));
    let reply = world.action("ann", "import_tasks", json!({"team_id": board.team.id, "accept": true})).expect("accept");
    assert_eq!(reply["import"]["accepted"], true);
    board.must(M(0), "task-1", "claim");
    let after = board.list(Lead, json!({})).expect("list");
    assert!(after["board"].get("failure").is_none());
    assert_eq!(after["board"]["import"]["failure"]["line"], 3, "what happened stays known");
}

fn row_86_a_forward_reference(world: World) {
    let records = [task("task-1", 1, json!({"blockedBy": ["task-2"]})), task("task-2", 1, json!({}))];
    rejected(&world, &records, "missing or deleted");
}

fn row_87_what_replay_does_not_judge(world: World) {
    let board = Board::new(&world);
    let records = [
        task("task-1", 1, json!({"status": "completed"})),
        task("task-2", 1, json!({"status": "in_progress", "writeScopes": ["/etc", "..", "/etc"]})),
        task("task-3", 1, json!({"status": "deleted", "subject": "", "description": "x\u{0}y"})),
        task("task-3", 2, json!({"status": "pending", "ownerId": "somebody", "subject": "x".repeat(500)})),
        task("task-1", 2, json!({"status": "pending", "ownerId": "root"})),
        task("task-1", 3, json!({"status": "completed"})),
    ];
    assert!(import(&board, &records)["import"].get("failure").is_none());
    assert_eq!(board.ids(), ["task-1", "task-2", "task-3"]);
    refused(board.act(M(0), "task-3", "claim", json!({})), "TEAM_TASK_ALREADY_CLAIMED");
    let history = world.action("ann", "task_history", json!({"team_id": board.team.id, "task_id": "task-1"}));
    let history = history.expect("history");
    assert_eq!(history["events"][1]["task"]["ownerId"], "lead", "the root session led");
    assert_eq!(history["events"][0]["author"], json!({"kind": "import"}));
    assert_eq!(history["events"][0]["at"], "2026-01-01T00:00:00.000Z");
}

fn row_88_leading_zeros(world: World) {
    let board = Board::new(&world);
    import(&board, &[task("task-01", 1, json!({})), task("task-1", 1, json!({})), task("task-007", 1, json!({}))]);
    assert_eq!(board.ids(), ["task-01", "task-1", "task-007"]);
    assert_eq!(board.add(&[], &[]), "task-8");
    let zero = Board { team: world.team_named("ann", "zero", &["a", "b"]), world: &world };
    import(&zero, &[task("task-0", 1, json!({}))]);
    assert_eq!(zero.add(&[], &[]), "task-1");
}

fn row_90_edges_of_a_deleted_task(world: World) {
    let board = Board::new(&world);
    let gone = task("task-1", 1, json!({"status": "deleted", "blockedBy": ["task-9", "task-1"]}));
    assert!(import(&board, &[gone])["import"].get("failure").is_none());
    assert_eq!(board.task("task-1")["blockedBy"], json!(["task-9", "task-1"]));
}

fn row_92_delivery_belongs_to_version_1(world: World) {
    let with = |version: u64, delivery: Option<&str>| {
        let mut record = queued("q");
        record["data"]["version"] = json!(version);
        if let Some(delivery) = delivery {
            record["data"]["message"]["delivery"] = json!(delivery);
        }
        record
    };
    accepted(&world, &[with(1, Some("wakeup"))]);
    accepted(&world, &[with(2, None)]);
    rejected(&world, &[with(2, Some("quiet"))], "payload is invalid");
    rejected(&world, &[with(1, None)], "payload is invalid");
    rejected(&world, &[queued("q"), queued("q")], "queued twice");
    rejected(&world, &[delivered("q")], "never queued");
    rejected(&world, &[queued("q"), delivered("q"), delivered("q")], "delivered twice");
    rejected(&world, &[member("m", "active")], "provisioning");
}

fn both_versions_are_read(world: World) {
    let board = Board::new(&world);
    let mut first = task("task-1", 1, json!({}));
    first["data"]["version"] = json!(1);
    assert!(import(&board, &[first, task("task-1", 2, json!({}))])["import"].get("failure").is_none());
    assert_eq!(board.revision("task-1"), 2);
}

fn lines_that_are_no_records(world: World) {
    let board = Board::new(&world);
    let lines = format!("{}\r\n\n{}\nnot json\n", log(&[]), task("task-1", 1, json!({"subject": "a\u{0}b"})));
    let lines = lines.replace("\"d\"", "\"half \\ud83d\"");
    let payload = json!({"team_id": board.team.id, "lines": lines});
    let reply = world.action("ann", "import_tasks", payload).expect("import");
    assert_eq!(reply["import"]["failure"]["line"], 4, "{reply}");
    assert_eq!(board.task("task-1")["description"], "half \u{fffd}");
    assert_eq!(board.task("task-1")["subject"], "a\u{0}b");
}
