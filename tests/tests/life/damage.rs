//! Records that are too large or cannot be read: the trouble of one job or of
//! one team alone, and shown as such.

use agent_teams_plugin::store::keys::{self, TeamKeys};
use agent_teams_tests::both;
use agent_teams_tests::double::{Effect, Method, Turn};
use agent_teams_tests::harness::{Team, World, refused};
use serde_json::{Value, json};

both!(
    what_a_run_stopped_at_may_be_of_any_size,
    more_interrupts_than_can_be_answered_fail_the_job,
    a_job_is_answered_as_often_as_its_record_bears,
    a_damaged_record_stops_its_own_team_alone,
    a_damaged_team_gives_its_slots_back_and_can_be_deleted,
    a_damaged_job_is_marked_and_everything_beside_it_is_read,
    a_damaged_job_at_work_stops_its_own_conversation_until_it_is_settled,
    a_receipt_whose_request_cannot_be_read_is_given_up,
    a_frozen_input_that_cannot_be_read_is_an_unknown_outcome,
);

const BROKEN: &str = r#"{"v":1,"#;

fn keys_of(team: &Team) -> TeamKeys {
    TeamKeys::new(&team.owner, &team.id)
}

fn bytes(value: &Value) -> usize {
    value.to_string().len()
}

fn what_a_run_stopped_at_may_be_of_any_size(w: World) {
    let team = w.team("ann", &["ada", "bo", "cy"]);
    let call = |content: &str| json!({"tool": "write_file", "arguments": {"path": "a.txt", "content": content}});
    let huge = call(&"x".repeat(1_100_000)).to_string();
    w.double.script(team.thread(0), [Turn::Interrupt(vec![("i1".into(), huge.clone())])]);
    w.double.script(team.thread(1), [Turn::ask(&"Which? ".repeat(400_000))]);
    let (stops, asks, works) = (w.send(&team, 0, "r0"), w.send(&team, 1, "r1"), w.send(&team, 2, "r2"));
    w.work();
    assert_eq!(w.status(&team, &works), "completed");
    assert!(w.slots().is_empty());
    let shown = w.job(&team, &stops);
    assert_eq!(shown["status"], "waiting_input");
    let one = &shown["interrupts"][0];
    assert_eq!((&one["value"]["tool"], &one["value"]["arguments"]["path"]), (&json!("write_file"), &json!("a.txt")));
    assert!(one["value"]["arguments"]["content"].as_str().is_some_and(|c| c.ends_with("[cut: 1100000 bytes in all]")));
    assert_eq!(one["cut"]["bytes"], huge.len());
    assert!(bytes(one) < 40_000);
    let question = w.job(&team, &asks)["question"]["text"].as_str().expect("a question").to_owned();
    assert!(question.starts_with("Which? ") && question.ends_with("[cut: 2800000 bytes in all]"));
    // A page of many jobs has the beginnings alone.
    let page = w.action("ann", "get", json!({"team_id": team.id})).expect("get");
    let one = &page["jobs"].as_array().expect("jobs").iter().find(|j| j["id"] == stops).expect("it")["interrupts"][0];
    assert_eq!((&one["value"]["tool"], &one["excerpt"]), (&json!("write_file"), &json!(true)));
    assert!(bytes(one) < 1_000, "{one}");
    // Each is answered as what it is.
    w.answer(&team, &stops, "a", json!({"approved": true})).expect("accepted");
    w.answer(&team, &asks, "a", json!("the red one")).expect("accepted");
    w.work();
    assert_eq!((w.status(&team, &stops).as_str(), w.status(&team, &asks).as_str()), ("completed", "completed"));
}

fn more_interrupts_than_can_be_answered_fail_the_job(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let many = (0..65).map(|n| (format!("i{n}"), "{}".into())).collect();
    w.double.script(team.thread(0), [Turn::Interrupt(many)]);
    w.double.script(team.thread(1), [Turn::Interrupt(vec![("i".repeat(600), "{}".into())])]);
    let jobs = [w.send(&team, 0, "r0"), w.send(&team, 1, "r1")];
    w.work();
    for job in &jobs {
        assert_eq!(w.job(&team, job)["error"]["code"], "not_answerable");
    }
}

fn a_job_is_answered_as_often_as_its_record_bears(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.script(team.thread(0), [Turn::ask("Which?"), Turn::ask("Which?")]);
    let job = w.send(&team, 0, "r");
    w.work();
    let mut record: Value = serde_json::from_str(&w.raw(&keys_of(&team).job(1)).expect("a job")).expect("JSON");
    record["answers"] = (0..199).map(|n| json!([format!("a{n}"), "d"])).collect();
    w.put_raw(&keys_of(&team).job(1), &record.to_string());
    w.answer(&team, &job, "the last", json!("red")).expect("accepted");
    w.work();
    assert_eq!(w.status(&team, &job), "waiting_input");
    refused(w.answer(&team, &job, "one more", json!("red")), "answer_limit");
    w.answer(&team, &job, "the last", json!("red")).expect("the same");
    w.cancel(&team, &job).expect("cancelled");
}

/// A team of ann's with a run at work in each conversation, and one of bea's.
/// The jobs at work, and one behind the first.
fn at_work(w: &World) -> (Team, [String; 3], Team) {
    w.double.hold(true);
    let (ann, bea) = (w.team("ann", &["ada", "bo"]), w.team("bea", &["ada", "bo"]));
    let jobs = [w.send(&ann, 0, "r0"), w.send(&ann, 1, "r1"), w.send(&ann, 0, "behind it")];
    w.work();
    w.double.hold(false);
    (ann, jobs, bea)
}

/// The slot of the team's `n`-th job.
fn slot_of(w: &World, team: &Team, n: u32) -> String {
    let job: Value = serde_json::from_str(&w.raw(&keys_of(team).job(n)).expect("a job")).expect("JSON");
    keys::slot(u32::try_from(job["slot"].as_u64().expect("a slot")).expect("small"))
}

fn a_damaged_record_stops_its_own_team_alone(mut w: World) {
    let (ann, _, bea) = at_work(&w);
    let entry = keys::work_entry("ann", ann.thread(0), 1);
    let records = [
        entry.clone(),
        slot_of(&w, &ann, 1),
        keys_of(&ann).head(),
        keys_of(&ann).team(),
        keys_of(&ann).job(1),
        keys::ROUND.into(),
    ];
    for (n, key) in records.iter().enumerate() {
        let whole = w.raw(key);
        w.put_raw(key, BROKEN);
        w.restart();
        w.connect(&bea).expect("connected");
        let job = w.send(&bea, n % 2, &format!("{n}"));
        // Whether its own team is connected or not.
        for _ in 0..2 {
            w.later(60_000);
            w.sweep();
            assert_eq!(w.status(&bea, &job), "completed", "{key}");
            let listed = w.action("ann", "list", json!({})).expect("list");
            assert_eq!(listed["teams"][0]["id"], json!(ann.id), "{key}");
            let get = w.action("ann", "get", json!({"team_id": ann.id})).expect("get");
            let damaged = [&get["team"]["reason"], &listed["teams"][0]["reason"]];
            if [&keys_of(&ann).head(), &keys_of(&ann).team()].contains(&key) {
                assert!(damaged.iter().all(|r| r["code"] == "damaged" && r["key"] == json!(key)), "{key}: {damaged:?}");
            }
            if [&entry, &keys_of(&ann).job(1)].contains(&key) {
                assert_eq!((&damaged[0]["code"], &damaged[0]["key"]), (&json!("damaged"), &json!(key)));
                assert_eq!(get["team"]["members"][0]["state"], "unclear");
            }
            let _ = w.connect(&ann);
        }
        if let Some(whole) = whole {
            w.put_raw(key, &whole);
        }
    }
    // Restored, it works again.
    w.connect(&ann).expect("connected");
    w.double.release_all();
    w.later(60_000);
    w.sweep();
    w.work();
    assert!(w.jobs(&ann).iter().all(|j| j["status"] == "completed"), "{:?}", w.jobs(&ann));
    assert!(w.slots().is_empty());
}

fn a_damaged_team_gives_its_slots_back_and_can_be_deleted(w: World) {
    let (ann, jobs, bea) = at_work(&w);
    w.put_raw(&keys_of(&ann).team(), BROKEN);
    assert_eq!(w.slots().iter().filter(|s| s["status"] == "damaged").count(), 2);
    let refused = w.delete(&ann).expect_err("a job may be at work");
    assert_eq!(refused.code, "team_not_finished");
    let queued = w.action("ann", "get", json!({"team_id": ann.id})).expect("get");
    assert_eq!(queued["team"]["counts"]["unfinished"], 3);
    for job in &jobs[..2] {
        let settled = w.settle_as_operator("ann", &ann.id, job).expect("settled");
        assert_eq!((&settled["job"]["id"], &settled["job"]["status"]), (&json!(job), &json!("damaged")));
    }
    assert!(w.slots().is_empty());
    let job = w.send(&bea, 0, "r");
    w.work();
    assert_eq!(w.status(&bea, &job), "completed");
    // What is queued behind them is written off by its owner.
    w.settle(&ann, &jobs[2], "failed").expect("written off");
    w.delete(&ann).expect("deleted");
    assert_eq!(w.action("ann", "list", json!({})).expect("list")["teams"], json!([]));
}

fn a_damaged_job_is_marked_and_everything_beside_it_is_read(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let jobs: Vec<String> = (0..3).map(|n| w.send(&team, 0, &format!("r{n}"))).collect();
    w.work();
    let key = keys_of(&team).job(2);
    w.put_raw(&key, BROKEN);
    let view = w.view(&team);
    let shown: Vec<&Value> = view["jobs"].as_array().expect("jobs").iter().collect();
    let statuses: Vec<&Value> = shown.iter().map(|j| &j["status"]).collect();
    assert_eq!(statuses, ["completed", "damaged", "completed"]);
    assert_eq!((&shown[1]["id"], &shown[1]["text"]), (&json!(jobs[1]), &json!("Do r1.")));
    assert_eq!((&shown[1]["reason"]["code"], &shown[1]["reason"]["key"]), (&json!("damaged"), &json!(key)));
    assert_eq!(view["team"]["reason"], json!(null), "the team works");
    let history = w.action("ann", "history", json!({"team_id": team.id})).expect("history");
    let lines = history["messages"].as_array().expect("lines");
    assert_eq!(lines.iter().filter(|l| l["kind"] == "damaged" && l["job_id"] == json!(jobs[1])).count(), 2);
    assert_eq!(lines.len(), 6);
    let results = w.action("ann", "results", json!({"team_id": team.id})).expect("results");
    let found: Vec<&Value> = results["results"].as_array().expect("list").iter().map(|r| &r["status"]).collect();
    assert_eq!(found, ["completed", "damaged", "completed"]);
    let none = w.action("ann", "results", json!({"team_id": team.id, "query": "r1"})).expect("results");
    assert_eq!(none["results"], json!([]), "what it says is not known");
    // A member finds the others, and the next job starts with what is left.
    let caller = w.caller(&team, 1);
    let tool = w.tool(&caller, "search_team_results", json!({"team_id": team.id})).expect("finds");
    assert_eq!(tool["results"].as_array().map(Vec::len), Some(3));
    let next = w.send(&team, 1, "next");
    w.work();
    assert_eq!(w.status(&team, &next), "completed");
    assert!(w.double.last_input(team.thread(1)).contains("Do r2."));
    // A line of the record itself.
    w.put_raw(&keys_of(&team).message(1), BROKEN);
    let history = w.action("ann", "history", json!({"team_id": team.id, "limit": 20})).expect("history");
    assert_eq!(history["messages"].as_array().map(Vec::len), Some(8));
    w.delete(&team).expect("deleted");
}

fn a_damaged_job_at_work_stops_its_own_conversation_until_it_is_settled(w: World) {
    let (ann, jobs, bea) = at_work(&w);
    w.put_raw(&keys_of(&ann).job(1), BROKEN);
    w.double.release_all();
    w.later(60_000);
    w.sweep();
    // The other member's work continues, and so do all other teams.
    let other = w.send(&ann, 1, "more");
    let theirs = w.send(&bea, 0, "r");
    w.work();
    assert_eq!((w.status(&ann, &other).as_str(), w.status(&bea, &theirs).as_str()), ("completed", "completed"));
    assert_eq!(w.status(&ann, &jobs[1]), "completed");
    assert_eq!(w.status(&ann, &jobs[0]), "damaged");
    assert_eq!(w.slots().len(), 1, "whether its run is at work is not known");
    w.settle(&ann, &jobs[0], "failed").expect("settled");
    w.work();
    assert!(w.slots().is_empty());
    let shown = w.job(&ann, &jobs[0]);
    assert_eq!((&shown["status"], &shown["error"]["code"]), (&json!("failed"), &json!("damaged")));
    // What was behind it went on.
    let view = w.view(&ann);
    assert!(view["jobs"].as_array().expect("jobs").iter().all(|j| j["completed_at"].is_string()), "{view}");
    assert_eq!(view["team"]["counts"]["unfinished"], 0);
    w.delete(&ann).expect("deleted");
}

fn a_receipt_whose_request_cannot_be_read_is_given_up(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.send(&team, 0, "start");
    w.work();
    let request = w.tell(&team, 0, 1, "ask");
    w.work();
    w.release(&team, 1);
    w.work();
    assert_eq!(w.status(&team, &request), "completed");
    w.put_raw(&keys_of(&team).job(2), BROKEN);
    w.double.hold(false);
    w.double.release_all();
    let behind = w.send(&team, 0, "behind the receipt");
    w.work();
    let receipt = w.receipts(&team)[0].clone();
    assert_eq!((&receipt["status"], &receipt["reason"]["code"]), (&json!("queued"), &json!("damaged_record")));
    for _ in 0..10 {
        w.later(60_000);
    }
    assert_eq!(w.receipts(&team)[0]["error"]["code"], "damaged_record");
    assert_eq!(w.status(&team, &behind), "completed");
}

fn a_frozen_input_that_cannot_be_read_is_an_unknown_outcome(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1, Effect::reply_lost());
    w.work();
    w.put_raw(&keys_of(&team).input(1), BROKEN);
    w.later(60_000);
    assert_eq!((w.status(&team, &job).as_str(), w.reason(&team, &job).as_str()), ("running", "damaged_record"));
    let other = w.send(&team, 1, "other");
    w.double.hold(false);
    w.work();
    assert_eq!(w.status(&team, &other), "completed");
    for _ in 0..10 {
        w.later(60_000);
    }
    // Its key is derived, so the host may still name the run.
    assert!(["unknown", "running"].contains(&w.status(&team, &job).as_str()), "{}", w.job(&team, &job));
    w.double.release_all();
    w.later(120_000);
    w.sweep();
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
    assert!(w.slots().is_empty());
}
