//! Teams of the earlier plugin: the frozen sample in
//! `fixtures/legacy/teams.sqlite` and documents that are damaged one way or
//! another.
//!
//! | sentence of the specification | test |
//! |---|---|
//! | same ids everywhere; every job readable with its status | `the_sample_imports_with_its_ids_and_states` |
//! | old answers through the messages, or no longer retained | `old_answers_are_found_or_said_to_be_gone` |
//! | truncation unknown; answers up to 8,000 bytes as they are | `answers_stay_as_they_are_and_their_provenance_is_unknown` |
//! | empty public state, and it works | `an_imported_team_works_like_any_other` |
//! | unfinished jobs keep frozen input and keys, and move only after a reconnect | `nothing_moves_before_a_reconnect_and_the_running_one_is_collected` |
//! | the running one is collected, not restarted | same |
//! | a second import changes nothing; other content is a named conflict | `a_second_import_changes_nothing_and_other_content_is_a_conflict` |
//! | damaged rows are reported, the others imported | `damaged_documents_are_refused_by_field` and the command's own tests |
//! | bob's team is visible to bob alone | `the_sample_imports_with_its_ids_and_states` |
//! | the dry run is the component's | `a_dry_run_says_what_would_happen_and_changes_nothing` |
//! | U+0000 is kept in imports | `answers_stay_as_they_are_and_their_provenance_is_unknown` |

use agent_teams_plugin::domain::error::Kind;
use agent_teams_plugin::host::{Input, Runs};
use agent_teams_plugin::store::keys::TeamKeys;
use agent_teams_tests::double::{Effect, Method, Turn};
use serde_json::{Value, json};

use crate::desk::{Desk, text};

const RELEASE: &str = "1caba5a8ebdf0bd63950aaa151303504";
const ARCHIVE: &str = "08f1b88a33c5bb4768debd600afa6b95";
const FORGOTTEN: &str = "d55dc56164b0db32cd33e5b27f0c1d11";
const BOBS: &str = "20daae6cf0e3ca6c3585a5b010fca2b9";
const RESEARCH: &str = "07f23248-d9df-45be-b6bc-80128c9f39c2";
const WRITER: &str = "fa45857f-ffa5-414b-806a-76e25a6f39dd";
const CHECKER: &str = "6717c5c1-5fd5-47a5-b3cf-715e416313f4";
const RUNNING: &str = "5b0d33a1cb373e9bbc341469169dd350";
const BEHIND: &str = "3e74c5c8772a198dbaf0b77d9910d961";
const INTERRUPTED: &str = "eba3cd47ba069b6bc4ae816a524f42d9";
const ASKING: &str = "d2e1f4e6213ca4bbe0706e8e5b3f49af";

/// The rows of the sample: owner and document.
fn rows() -> Vec<(String, Value)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/legacy/teams.sqlite");
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let db = rusqlite::Connection::open_with_flags(path, flags).expect("the sample opens");
    let mut read = db.prepare("SELECT owner, data FROM teams ORDER BY rowid").expect("reads");
    let row = |r: &rusqlite::Row| Ok((r.get::<_, String>(0)?, r.get::<_, String>(1)?));
    let found = read.query_map([], row).expect("reads").map(|r| r.expect("a row"));
    found.map(|(owner, data)| (owner, serde_json::from_str(&data).expect("a document"))).collect()
}

fn document(id: &str) -> Value {
    rows().into_iter().map(|(_, d)| d).find(|d| d["id"] == id).expect("in the sample")
}

fn import(desk: &Desk, owner: &str, document: &Value) -> Value {
    desk.action(owner, "import_team", &json!({"team": document})).expect("imports")
}

fn imported() -> Desk {
    let desk = Desk::default();
    desk.host.set_settings(r#"{"reconnect": "manual"}"#);
    for (owner, document) in rows() {
        assert_eq!(import(&desk, &owner, &document)["outcome"], "imported");
    }
    desk
}

fn feed(desk: &Desk, owner: &str, team: &str) -> Vec<Value> {
    let read = desk.action(owner, "get", &json!({"team_id": team, "limit": 200, "details": true})).expect("reads");
    let mut jobs = read["jobs"].as_array().expect("jobs").clone();
    jobs.reverse();
    jobs
}

fn job(desk: &Desk, id: &str) -> Value {
    feed(desk, "alice", RELEASE).into_iter().find(|j| j["id"] == id).expect("a job")
}

#[test]
fn the_sample_imports_with_its_ids_and_states() {
    let desk = imported();
    for (owner, document) in rows() {
        let id = text(&document["id"]);
        let read = desk.action(&owner, "get", &json!({"team_id": id})).expect("reads");
        assert_eq!((&read["team"]["name"], &read["team"]["goal"]), (&document["name"], &document["goal"]));
        assert_eq!(read["team"]["ready"], document["ready"]);
        assert_eq!(read["team"]["connected"], false);
        let members = read["team"]["members"].as_array().expect("members");
        for (member, from) in members.iter().zip(document["members"].as_array().expect("members")) {
            for (here, there) in [("id", "id"), ("name", "name"), ("agent", "agent"), ("thread", "thread_id")] {
                assert_eq!(member[here], from[there]);
            }
        }
        let jobs = feed(&desk, &owner, &id);
        let from = document["jobs"].as_array().expect("jobs");
        assert_eq!(jobs.len(), from.len());
        for (job, from) in jobs.iter().zip(from) {
            assert_eq!(job["id"], from["id"]);
            for (here, there) in [
                ("kind", "kind"),
                ("status", "status"),
                ("text", "text"),
                ("member_id", "member_id"),
                ("thread", "thread_id"),
                ("root_id", "root"),
                ("parent_id", "parent_id"),
                ("run_id", "run_id"),
            ] {
                let expected = from.get(there).cloned().unwrap_or(Value::Null);
                assert_eq!(job[here], expected, "{} {here}", from["id"]);
            }
            let year = from.get("created_at").and_then(Value::as_str).map(|t| t[..23].to_string());
            assert_eq!(job["created_at"].as_str().map(|t| t[..23].to_string()), year, "to the millisecond, or unknown");
        }
        let history = desk.action(&owner, "history", &json!({"team_id": id, "limit": 20})).expect("reads");
        let mut texts: Vec<Value> =
            history["messages"].as_array().expect("list").iter().map(|m| m["text"].clone()).collect();
        texts.reverse();
        let kept = document["messages"].as_array().expect("messages");
        assert_eq!(texts.len(), kept.len());
        for (shown, kept) in texts.iter().zip(kept).filter(|(_, k)| text(&k["text"]).len() <= 6_000) {
            assert_eq!(*shown, kept["text"]);
        }
    }
    let teams = |owner: &str| -> Vec<Value> {
        let listed = desk.action(owner, "list", &json!({})).expect("lists");
        listed["teams"].as_array().expect("teams").iter().map(|t| t["id"].clone()).collect()
    };
    assert_eq!(teams("alice").len(), 3);
    assert_eq!(teams("bob"), [json!(BOBS)]);
    assert!(desk.action("alice", "get", &json!({"team_id": BOBS})).is_err());
    let failed = &feed(&desk, "alice", RELEASE)[3];
    assert_eq!(failed["error"]["message"], "run ended: error");
    let asking = job(&desk, ASKING);
    assert_eq!(
        (&asking["question"]["id"], &asking["question"]["text"]),
        (&json!("clar-1"), &json!("Which environment?"))
    );
    assert_eq!(job(&desk, BEHIND)["reason"]["code"], "waiting_for_reconnect");
}

#[test]
fn old_answers_are_found_or_said_to_be_gone() {
    let desk = imported();
    let read = |team: &str, thread: &str, id: &str| {
        desk.tool("alice", thread, "read_team_result", &json!({"team_id": team, "job_id": id})).expect("reads")
    };
    let old = read(ARCHIVE, "1dd0fde1-73f8-45ee-93cf-fdac4498df4a", "4c5db1bea6e73a9b129b17b646045daa");
    assert_eq!(
        old["result"],
        json!({"available": true, "text": "An old answer", "truncated": null, "stored_truncated": null})
    );
    assert_eq!((&old["created_at"], &old["parent_id"]), (&Value::Null, &Value::Null));
    let gone = read(FORGOTTEN, "96f3c7f4-1471-4dd2-a299-5aac6af6f0d9", "a34beac4f9e8ec8713b192f08b8fc0b8");
    assert_eq!((&gone["status"], &gone["result"]["available"]), (&json!("completed"), &json!(false)));
    assert_eq!((&gone["result"]["reason"], &gone["result"]["truncated"]), (&json!("not_retained"), &Value::Null));
    assert_eq!(gone["conversation"]["thread"], "96f3c7f4-1471-4dd2-a299-5aac6af6f0d9", "where to look");
    let listed = feed(&desk, "alice", FORGOTTEN);
    assert_eq!(listed[0]["result"]["available"], false);
}

#[test]
fn answers_stay_as_they_are_and_their_provenance_is_unknown() {
    let desk = imported();
    let review = "5d29256085a936fdc8c3646a615e7e7d";
    let stored = text(&document(RELEASE)["jobs"][1]["result"]);
    assert_eq!(stored.len(), 6_005);
    let read = desk.tool("alice", RESEARCH, "read_team_result", &json!({"team_id": RELEASE, "job_id": review}));
    let read = read.expect("reads");
    assert_eq!(read["result"]["text"], json!(stored));
    assert_eq!((&read["result"]["truncated"], &read["result"]["available"]), (&Value::Null, &json!(true)));
    // Up to 8,000 bytes are taken; what is over is cut, and that is known.
    for (bytes, cut) in [(7_999, false), (8_000, false), (8_001, true)] {
        let desk = Desk::default();
        let mut other = document(ARCHIVE);
        let answer = format!("a\0b{}", "x".repeat(bytes - 3));
        other["jobs"][0]["result"] = json!(answer);
        let report = import(&desk, "alice", &other);
        assert_eq!(report["warnings"].as_array().map(Vec::len), Some(usize::from(cut)), "{report}");
        let shown = &feed(&desk, "alice", ARCHIVE)[0]["result"];
        assert_eq!(shown["text"], json!(answer[..bytes.min(8_000)]), "{bytes}");
        assert_eq!(shown["truncated"], if cut { json!(true) } else { Value::Null });
    }
}

#[test]
fn a_second_import_changes_nothing_and_other_content_is_a_conflict() {
    let desk = imported();
    let before = desk.host.store().dump();
    for (owner, document) in rows() {
        assert_eq!(import(&desk, &owner, &document)["outcome"], "unchanged");
    }
    let mut other = document(RELEASE);
    other["jobs"][0]["result"] = json!("Something else.");
    let refused = desk.action("alice", "import_team", &json!({"team": other})).expect_err("a conflict");
    assert_eq!((refused.kind, refused.code.as_ref()), (Kind::Conflict, "team_exists"));
    assert!(refused.message.contains(RELEASE), "{}", refused.message);
    let dry = desk.action("alice", "import_team", &json!({"team": other, "dry_run": true}));
    assert_eq!(dry.expect_err("the dry run says so too").code, "team_exists");
    // What is not taken over makes no difference: inputs of finished jobs.
    let mut lean = document(RELEASE);
    lean["jobs"][0]["input"] = Value::Null;
    lean["jobs"][0].as_object_mut().expect("a job").remove("input");
    assert_eq!(import(&desk, "alice", &lean)["outcome"], "unchanged");
    assert_eq!(desk.host.store().dump(), before);
    // Work went on since: the same file is still the same import.
    desk.action("alice", "cancel", &json!({"team_id": RELEASE, "job_id": BEHIND})).expect("cancels");
    assert_eq!(import(&desk, "alice", &document(RELEASE))["outcome"], "unchanged");
    assert_eq!(job(&desk, BEHIND)["status"], "cancelled");
}

#[test]
fn a_dry_run_says_what_would_happen_and_changes_nothing() {
    let desk = Desk::default();
    for (owner, document) in rows() {
        let would = desk.action(&owner, "import_team", &json!({"team": document, "dry_run": true})).expect("reads");
        assert_eq!(would["outcome"], "would_import");
    }
    assert!(desk.host.store().dump().is_empty());
    let report = import(&desk, "alice", &document(RELEASE));
    assert_eq!((&report["requests"], &report["receipts"], &report["unfinished"]), (&json!(8), &json!(1), &json!(4)));
    assert_eq!(report["answers"], json!({"with_job": 4, "from_messages": 0, "not_retained": 0}));
    assert_eq!(import(&desk, "alice", &document(ARCHIVE))["answers"]["from_messages"], 1);
    assert_eq!(import(&desk, "alice", &document(FORGOTTEN))["answers"]["not_retained"], 1);
    let again =
        desk.action("alice", "import_team", &json!({"team": document(RELEASE), "dry_run": true})).expect("reads");
    assert_eq!(again["outcome"], "unchanged");
}

/// The sample's unfinished runs as a host would still have them, and the
/// document that names them.
fn alive(desk: &Desk) -> Value {
    let runs = desk.runs("alice");
    let mut document = document(RELEASE);
    desk.double.hold(true);
    for (id, thread, turn) in [
        (RUNNING, RESEARCH, Turn::answer("collected after all")),
        (INTERRUPTED, WRITER, Turn::interrupt("deploy", r#"{"tool":"deploy"}"#)),
        (ASKING, CHECKER, Turn::ask("Which environment?")),
    ] {
        let at = document["jobs"].as_array().expect("jobs").iter().position(|j| j["id"] == id).expect("a job");
        let message = &document["jobs"][at]["input"]["messages"][0];
        let input = Input {
            message_id: text(&message["id"]),
            text: text(&message["content"]),
            context: String::new(),
            answers: None,
            provenance: "{}".into(),
        };
        desk.double.open_thread(
            "alice",
            thread,
            &text(
                &document["members"]
                    .as_array()
                    .expect("members")
                    .iter()
                    .find(|m| m["thread_id"] == thread)
                    .expect("a member")["agent"],
            ),
        );
        desk.double.script(thread, [turn]);
        let run = runs.start(thread, &input, id).expect("starts");
        if id != RUNNING {
            desk.double.release(&run.id);
        }
        for field in ["run_id", "initial_run_id"] {
            document["jobs"][at][field] = json!(run.id);
        }
        if id == ASKING {
            let state = runs.state(thread, None, None).expect("a state");
            let question = state.open_question.expect("asks");
            document["jobs"][at]["clarification"]["request_id"] = json!(question.id);
        }
    }
    document
}

#[test]
fn nothing_moves_before_a_reconnect_and_the_running_one_is_collected() {
    let desk = Desk::default();
    desk.host.set_settings(r#"{"reconnect": "manual"}"#);
    let document = alive(&desk);
    let admitted = desk.double.admissions().len();
    import(&desk, "alice", &document);
    desk.double.release_all();
    let calls = desk.double.calls().len();
    desk.work();
    assert_eq!(desk.double.calls().len(), calls, "the host is not even asked");
    assert_eq!(job(&desk, RUNNING)["status"], "running");
    desk.double.hold(false);
    desk.action("alice", "connect", &json!({"team_id": RELEASE})).expect("reconnects");
    desk.work();
    let collected = job(&desk, RUNNING);
    assert_eq!(
        (&collected["status"], &collected["result"]["text"]),
        (&json!("completed"), &json!("collected after all"))
    );
    assert_eq!(job(&desk, BEHIND)["status"], "completed", "then the one behind it");
    let new = &desk.double.admissions()[admitted..];
    assert_eq!(new.iter().map(|a| (a.thread.as_str(), a.key.as_str())).collect::<Vec<_>>(), [(RESEARCH, BEHIND)]);
    // What the earlier plugin did not store is read from the conversation.
    let open = json!([{"id": "deploy", "checkpoint": job(&desk, INTERRUPTED)["interrupts"][0]["checkpoint"],
                       "value": {"tool": "deploy"}}]);
    assert_eq!(job(&desk, INTERRUPTED)["interrupts"], open);
    // The two that wait are answered here, under their old conversations.
    for (id, response) in [(INTERRUPTED, json!({"approved": false})), (ASKING, json!("the staging one"))] {
        assert_eq!(job(&desk, id)["status"], "waiting_input");
        let answer = json!({"team_id": RELEASE, "job_id": id, "request_id": "a1", "response": response});
        desk.action("alice", "resume", &answer).expect("answers");
        desk.work();
        assert_eq!(job(&desk, id)["status"], "completed");
    }
    assert_eq!(desk.double.admissions_in(WRITER).last().map(|a| a.text.clone()), Some(r#"{"approved":false}"#.into()));
    assert_eq!(desk.double.violations(), Vec::<String>::new());
}

#[test]
fn an_unnamed_interrupt_can_be_answered_before_any_reconnect() {
    let desk = Desk::default();
    desk.host.set_settings(r#"{"reconnect": "manual"}"#);
    import(&desk, "alice", &alive(&desk));
    assert_eq!(job(&desk, INTERRUPTED)["interrupts"], json!([]));
    let answer = json!({"team_id": RELEASE, "job_id": INTERRUPTED, "request_id": "a1", "response": {"approved": true}});
    desk.double.fault(Method::State, Some(WRITER), 2, Effect::unavailable());
    let refused = desk.action("alice", "resume", &answer).expect_err("nobody knows what is asked");
    assert_eq!((refused.kind, refused.code.as_ref()), (Kind::Unavailable, "host_unavailable"));
    desk.action("alice", "resume", &answer).expect("answers");
    assert_eq!(job(&desk, INTERRUPTED)["status"], "resuming");
    desk.double.hold(false);
    desk.action("alice", "connect", &json!({"team_id": RELEASE})).expect("reconnects");
    desk.work();
    assert_eq!(job(&desk, INTERRUPTED)["status"], "completed");
    // Answered in the conversation itself, there is nothing left to answer.
    let desk = Desk::default();
    import(&desk, "alice", &alive(&desk));
    desk.double.answer_outside(WRITER);
    assert_eq!(desk.action("alice", "resume", &answer).expect_err("gone").code, "clarification_changed");
}

#[test]
fn a_frozen_start_is_repeated_with_its_old_bytes_and_key() {
    let desk = Desk::default();
    let mut document = alive(&desk);
    let admitted = desk.double.admissions().len();
    // The earlier plugin had asked, and died before it learnt the run's id.
    let at = document["jobs"].as_array().expect("jobs").iter().position(|j| j["id"] == RUNNING).expect("a job");
    document["jobs"][at]["run_id"] = Value::Null;
    document["jobs"][at]["status"] = json!("queued");
    import(&desk, "alice", &document);
    desk.double.hold(false);
    desk.double.release_all();
    desk.work();
    assert_eq!(job(&desk, RUNNING)["status"], "completed");
    assert_eq!(job(&desk, RUNNING)["result"]["text"], "collected after all");
    let new = desk.double.admissions()[admitted..].iter().filter(|a| a.key == RUNNING).count();
    assert_eq!(new, 0, "the same key, the same bytes: the same run");
}

#[test]
fn a_run_that_the_host_lost_is_unknown_and_waits_for_a_person() {
    let desk = imported();
    desk.action("alice", "connect", &json!({"team_id": RELEASE})).expect("reconnects");
    desk.work();
    assert_eq!(job(&desk, RUNNING)["status"], "unknown");
    assert_eq!(job(&desk, BEHIND)["status"], "queued");
    assert!(desk.double.admissions().is_empty(), "nothing was started instead");
    let settled = json!({"team_id": RELEASE, "job_id": RUNNING, "outcome": "failed"});
    desk.action("alice", "settle", &settled).expect("settles");
    desk.work();
    assert_eq!(job(&desk, BEHIND)["status"], "completed");
}

#[test]
fn a_retry_is_no_start_while_the_host_cannot_tell_of_the_earlier_run() {
    let desk = imported();
    desk.action("alice", "connect", &json!({"team_id": RELEASE})).expect("reconnects");
    desk.work();
    let retry = json!({"team_id": RELEASE, "job_id": RUNNING, "outcome": "retry"});
    desk.double.durable_keys(false);
    desk.action("alice", "settle", &retry).expect("asks again");
    desk.work();
    // In the queue, a cancel would end it beside the run that it may have.
    assert_eq!(job(&desk, RUNNING)["status"], "unknown");
    assert!(desk.double.admissions().is_empty(), "nothing was started");
    desk.double.durable_keys(true);
    desk.action("alice", "settle", &retry).expect("asks again");
    desk.work();
    desk.host.clock().advance(60_000);
    desk.work();
    assert_eq!(job(&desk, RUNNING)["status"], "completed");
    assert_eq!(desk.double.admissions_in(RESEARCH).len(), 2, "once, and then the one behind it");
}

#[test]
fn an_imported_team_works_like_any_other() {
    let desk = imported();
    let state = desk.action("alice", "state", &json!({"team_id": RELEASE})).expect("reads");
    assert_eq!((&state["entries"], &state["state_revision"]), (&json!([]), &json!(0)));
    let args = json!({"team_id": RELEASE, "request_id": "s1", "kind": "plan", "title": "t", "content": "c"});
    desk.tool("alice", CHECKER, "publish_team_state", &args).expect("publishes");
    desk.action("alice", "connect", &json!({"team_id": RELEASE})).expect("reconnects");
    let idle = "c6f4fbe998804514b11910aed6b5da9b";
    let send = json!({"team_id": RELEASE, "member_id": idle, "request_id": "new", "text": "fresh work"});
    let sent = desk.action("alice", "send", &send).expect("sends");
    desk.work();
    assert_eq!(job(&desk, &text(&sent["job"]["id"]))["status"], "completed");
    let thread = "b9403abb-6af3-44dc-a7b5-9ca0c0f58c57";
    assert!(desk.double.last_input(thread).contains("And then compare"), "old messages in the context");
    // Bob's creation was interrupted: a connect finishes it.
    let connected = desk.action("bob", "connect", &json!({"team_id": BOBS})).expect("connects");
    assert_eq!((&connected["team"]["ready"], &connected["team"]["connected"]), (&json!(true), &json!(true)));
    // Deleted and taken over again, it is as it was.
    desk.action("bob", "delete", &json!({"team_id": BOBS})).expect("deletes");
    assert_eq!(import(&desk, "bob", &document(BOBS))["outcome"], "imported");
}

#[test]
fn damaged_documents_are_refused_by_field() {
    let desk = Desk::default();
    let mut cases: Vec<(Value, &str)> = vec![
        (json!("text"), "team"),
        (json!({}), "team"),
        (json!({"id": "x", "name": "n", "goal": "g", "members": []}), "team.members"),
    ];
    let mut damage = |path: &str, value: Value, field: &'static str| {
        let mut broken = document(RELEASE);
        *broken.pointer_mut(path).expect("a place") = value;
        cases.push((broken, field));
    };
    damage("/id", json!("a/b"), "team.id");
    damage("/members/0/id", json!("x".repeat(65)), "team.members[0].id");
    damage("/members/1/thread_id", json!(RESEARCH), "team.members[1]");
    damage("/members/0/name", json!("\u{200b}"), "team.members[0].name");
    damage("/jobs/0/status", json!("dreaming"), "team.jobs[0].status");
    damage("/jobs/1/id", json!("e00657dc805c03846ee63996816ec54d"), "team.jobs[1].id");
    damage("/jobs/0/member_id", json!("nobody"), "team.jobs[0].member_id");
    damage("/jobs/0/text", json!("x".repeat(70_000)), "team.jobs[0].text");
    damage("/jobs/0/kind", json!("wish"), "team");
    let behind = document(RELEASE)["jobs"].as_array().expect("jobs").iter().position(|j| j["id"] == BEHIND);
    let status = format!("/jobs/{}/status", behind.expect("a job"));
    damage(&status, json!("unknown"), "team.jobs[8].status");
    damage("/jobs", json!(vec![document(ARCHIVE)["jobs"][0].clone(); 101]), "team.jobs");
    for (broken, field) in cases {
        let refused = desk.action("alice", "import_team", &json!({"team": broken})).expect_err("damaged");
        assert_eq!((refused.code.as_ref(), refused.field.as_deref()), ("damaged_document", Some(field)));
    }
    assert!(desk.host.store().dump().is_empty());
    // A name that could not be made here is kept as far as it can be.
    let mut odd = document(ARCHIVE);
    odd["name"] = json!("Arch\nive\u{202e}");
    let report = import(&desk, "alice", &odd);
    assert_eq!(report["name"], "Archive");
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(1));
}

/// Twelve requests of one chain, each asked during the one before it, the
/// first during the last; the last is queued.
fn circle() -> Value {
    let job = |n: usize| {
        let mut job = document(ARCHIVE)["jobs"][0].clone();
        job["id"] = json!(format!("{n:032}"));
        job["kind"] = json!("request");
        job["member_id"] = document(ARCHIVE)["members"][0]["id"].clone();
        job["root"] = json!(format!("{:032}", 0));
        job["parent_id"] = json!(format!("{:032}", (n + 11) % 12));
        job["status"] = json!(if n == 11 { "queued" } else { "completed" });
        for absent in ["run_id", "result_run_id", "input"] {
            job[absent] = Value::Null;
        }
        job
    };
    let mut circle = document(ARCHIVE);
    circle["jobs"] = (0..12).map(job).collect();
    circle["messages"] = json!([]);
    circle
}

#[test]
fn jobs_that_descend_from_themselves_come_to_an_end() {
    for stored in [false, true] {
        let desk = Desk::default();
        let report = import(&desk, "alice", &circle());
        assert_eq!(report["warnings"].as_array().map(Vec::len), Some(1), "{report}");
        let jobs = feed(&desk, "alice", ARCHIVE);
        assert_eq!((&jobs[0]["parent_id"], &jobs[1]["parent_id"]), (&Value::Null, &jobs[0]["id"]));
        if stored {
            // As an earlier version of this component took it over.
            let key = TeamKeys::new("alice", ARCHIVE).job(1);
            let record = desk.host.store().dump().into_iter().find(|(k, _)| *k == key).expect("a record").1;
            let mut record: Value = serde_json::from_str(&record).expect("JSON");
            record["parent"] = json!(12);
            desk.host.store().put_raw(&key, &record.to_string());
        }
        desk.double.hold(true);
        desk.action("alice", "connect", &json!({"team_id": ARCHIVE})).expect("connects");
        desk.work();
        let members = document(ARCHIVE)["members"].as_array().expect("members").clone();
        let thread = text(&jobs[11]["thread"]);
        assert!(desk.double.running_in(&thread).is_some(), "the last one is at work");
        let args = json!({"team_id": ARCHIVE, "member": members[1]["name"], "request_id": "x", "text": "Please."});
        let refused = desk.tool("alice", &thread, "send_member", &args).expect_err("the chain is full");
        assert_eq!(refused.code, "chain_limit");
    }
}

#[test]
fn roots_are_their_own_roots() {
    let desk = Desk::default();
    let mut document = circle();
    for (n, root) in [(0, 1), (1, 2), (2, 2), (3, 4), (4, 3)] {
        document["jobs"][n]["root"] = json!(format!("{root:032}"));
    }
    import(&desk, "alice", &document);
    let jobs = feed(&desk, "alice", ARCHIVE);
    for (n, root) in [(0, 2), (1, 2), (2, 2), (3, 3), (4, 4), (5, 2)] {
        assert_eq!(jobs[n]["root_id"], jobs[root]["id"], "{n}");
    }
}

#[test]
fn a_team_dated_absurdly_late_is_listed_and_deleted() {
    let desk = Desk::default();
    let mut late = document(ARCHIVE);
    for job in late["jobs"].as_array_mut().expect("jobs") {
        job["created_at"] = json!("9999-12-31T23:59:59.999Z");
    }
    import(&desk, "alice", &late);
    let listed = || desk.action("alice", "list", &json!({})).expect("lists")["teams"].clone();
    assert_eq!(listed()[0]["id"], ARCHIVE);
    assert!(text(&listed()[0]["created_at"]).starts_with("2026-"), "{}", listed());
    desk.action("alice", "delete", &json!({"team_id": ARCHIVE})).expect("deletes");
    assert_eq!(listed(), json!([]));
    assert!(!desk.host.store().dump().iter().any(|(key, _)| key.starts_with("list/")));
}
