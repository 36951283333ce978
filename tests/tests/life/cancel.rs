//! Cancelling, from every state, and settling what nobody knows.

use agent_teams_tests::both;
use agent_teams_tests::double::{Effect, Method, Turn};
use agent_teams_tests::harness::{World, refused};
use serde_json::{Value, json};

both!(
    lifecycle_20_queued_is_cancelled_at_once,
    lifecycle_20_running_is_told_to_the_host,
    rst_9_a_host_that_only_accepts_keeps_the_job_cancelling,
    lifecycle_20_waiting_leaves_its_question_which_blocks_new_work,
    lifecycle_20_a_lost_acknowledgement_is_found_and_stopped,
    lifecycle_20_a_finished_job_stays_as_it_is,
    fault_13_cancelling_what_waits_for_a_busy_conversation_starts_nothing,
    fault_14_the_requester_learns_of_a_cancelled_request,
    a_cancel_that_the_run_overtook_is_cancelled_once,
    a_cancelled_start_that_never_arrived_is_cancelled,
    a_cancelled_start_on_a_forgetful_host_is_unknown,
    a_vanished_run_is_unknown_until_it_is_settled,
    a_vanished_answer_is_retried_as_the_answer,
    settle_needs_an_unknown_job,
    the_operator_frees_a_slot,
    stale_3_a_late_end_changes_nothing,
);

fn lifecycle_20_queued_is_cancelled_at_once(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    assert_eq!(w.cancel(&team, &job).expect("cancelled")["status"], "cancelled");
    w.work();
    assert!(w.double.admissions().is_empty());
    assert_eq!(w.double.count(Method::Cancel, None), 0);
    let shown = w.job(&team, &job);
    assert_eq!(shown["result"]["available"], false);
    assert!(shown["completed_at"].is_string());
}

fn lifecycle_20_running_is_told_to_the_host(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.work();
    assert_eq!(w.cancel(&team, &job).expect("accepted")["status"], "cancelling");
    w.work();
    assert_eq!(w.status(&team, &job), "cancelled");
    assert_eq!(w.double.count(Method::Cancel, None), 1);
    assert!(w.slots().is_empty());
    w.delete(&team).expect("nothing is unfinished");
}

fn rst_9_a_host_that_only_accepts_keeps_the_job_cancelling(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.double.cancel_only_accepts(true);
    let job = w.send(&team, 0, "r");
    w.work();
    w.cancel(&team, &job).expect("accepted");
    w.work();
    for _ in 0..5 {
        w.clock.advance(60_000);
        w.sweep();
        w.work();
    }
    assert_eq!(w.status(&team, &job), "cancelling");
    assert_eq!(w.reason(&team, &job), "stopping");
    assert_eq!(w.double.count(Method::Cancel, None), 1);
    refused(w.delete(&team), "team_not_finished");
    w.double.release_all();
    w.work();
    assert_eq!(w.status(&team, &job), "cancelled");
    w.delete(&team).expect("nothing is unfinished");
}

fn lifecycle_20_waiting_leaves_its_question_which_blocks_new_work(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.script(team.thread(0), [Turn::ask("Which?")]);
    let job = w.send(&team, 0, "r");
    w.work();
    let cancelled = w.cancel(&team, &job).expect("cancelled");
    assert_eq!(cancelled["status"], "cancelled");
    assert!(cancelled["note"].as_str().is_some_and(|n| n.contains("question")), "{cancelled}");
    let next = w.send(&team, 0, "next");
    w.work();
    assert_eq!(w.status(&team, &next), "queued");
    assert_eq!(w.reason(&team, &next), "conversation_has_open_question");
    assert!(w.slots().is_empty());
    // Somebody answers it in the conversation itself.
    w.double.answer_outside(team.thread(0));
    w.later(60_000);
    assert_eq!(w.status(&team, &next), "completed");
    assert!(w.double.violations().is_empty(), "{:?}", w.double.violations());
}

fn lifecycle_20_a_lost_acknowledgement_is_found_and_stopped(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.script(team.thread(0), [Turn::ask("Which?")]);
    let job = w.send(&team, 0, "r");
    w.work();
    w.double.hold(true);
    w.answer(&team, &job, "a", json!("blue")).expect("accepted");
    w.double.fault(Method::Start, None, 1, Effect::reply_lost());
    w.work();
    assert_eq!(w.status(&team, &job), "resuming");
    assert_eq!(w.cancel(&team, &job).expect("accepted")["status"], "cancelling");
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "cancelled");
    assert!(w.double.running().is_empty());
    assert_eq!(w.runs(&team, 0), 2);
}

fn lifecycle_20_a_finished_job_stays_as_it_is(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.work();
    let before = w.job(&team, &job);
    assert_eq!(before["status"], "completed");
    assert_eq!(w.cancel(&team, &job).expect("unchanged"), before);
    w.work();
    assert_eq!(w.job(&team, &job), before);
}

fn fault_13_cancelling_what_waits_for_a_busy_conversation_starts_nothing(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.type_message(team.thread(0), "A chat.");
    w.double.occupy(team.thread(0), true);
    let job = w.send(&team, 0, "r");
    w.work();
    w.later(5_000);
    assert_eq!(w.cancel(&team, &job).expect("cancelled")["status"], "cancelled");
    w.double.occupy(team.thread(0), false);
    w.later(60_000);
    assert!(w.double.admissions().is_empty());
    assert_eq!(w.double.count(Method::Start, None), 0);
}

fn fault_14_the_requester_learns_of_a_cancelled_request(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.send(&team, 0, "start");
    w.work();
    let job = w.tell(&team, 0, 1, "ask");
    w.cancel(&team, &job).expect("cancelled");
    w.double.hold(false);
    w.release(&team, 0);
    w.work();
    // No run of its own, no receipt.
    assert_eq!(w.runs(&team, 0), 1);
    assert!(w.receipts(&team).is_empty());
    w.send(&team, 0, "next");
    w.work();
    let input = w.double.last_input(team.thread(0));
    assert!(input.contains("Notice: ") && input.contains(&job) && input.contains("cancelled"), "{input}");
    // Told once.
    w.send(&team, 0, "after");
    w.work();
    assert!(!w.double.last_input(team.thread(0)).contains("Notice: "));
}

fn a_cancel_that_the_run_overtook_is_cancelled_once(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.send(&team, 0, "start");
    w.work();
    let job = w.tell(&team, 0, 1, "ask");
    w.work();
    // The run ends well before the cancel reaches the host.
    w.release(&team, 1);
    w.cancel(&team, &job).expect("accepted");
    w.work();
    let shown = w.job(&team, &job);
    assert_eq!((&shown["status"], &shown["result"]["available"]), (&json!("cancelled"), &json!(false)));
    assert!(w.receipts(&team).is_empty());
}

fn a_cancelled_start_that_never_arrived_is_cancelled(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.fault(Method::Start, None, 1, Effect::timed_out());
    let job = w.send(&team, 0, "r");
    w.work();
    assert_eq!(w.status(&team, &job), "running");
    w.cancel(&team, &job).expect("accepted");
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "cancelled");
    assert!(w.double.admissions().is_empty());
}

fn a_cancelled_start_on_a_forgetful_host_is_unknown(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.durable_keys(false);
    w.double.fault(Method::Start, None, 1, Effect::timed_out());
    let job = w.send(&team, 0, "r");
    w.work();
    w.cancel(&team, &job).expect("accepted");
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "unknown");
    assert_eq!(w.slots().len(), 1);
    let ended = w.settle(&team, &job, "failed").expect("settled");
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("failed"), &json!("outcome_unknown")));
    assert!(w.slots().is_empty());
}

fn a_vanished_run_is_unknown_until_it_is_settled(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.work();
    let run = w.double.running_in(team.thread(0)).expect("at work");
    w.double.vanish(&run);
    w.sweep();
    w.work();
    let shown = w.job(&team, &job);
    assert_eq!((&shown["status"], &shown["reason"]["code"]), (&json!("unknown"), &json!("outcome_unknown")));
    // It is never restarted by itself, though the host says that no run has its key.
    for _ in 0..5 {
        w.later(120_000);
    }
    assert_eq!(w.status(&team, &job), "unknown");
    assert_eq!(w.runs(&team, 0), 1);
    assert_eq!(w.slots().len(), 1);
    w.double.hold(false);
    w.settle(&team, &job, "retry").expect("tried again");
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
    let starts: Vec<_> = w.double.calls().into_iter().filter(|c| c.method == Method::Start).collect();
    assert_eq!((&starts[0].key, &starts[0].input), (&starts[1].key, &starts[1].input));
}

fn a_vanished_answer_is_retried_as_the_answer(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.script(team.thread(0), [Turn::ask("Which?")]);
    let job = w.send(&team, 0, "r");
    w.work();
    w.double.hold(true);
    w.answer(&team, &job, "a", json!("blue")).expect("accepted");
    w.work();
    let run = w.double.running_in(team.thread(0)).expect("at work");
    w.double.vanish(&run);
    w.sweep();
    assert_eq!(w.status(&team, &job), "unknown");
    w.double.hold(false);
    w.settle(&team, &job, "retry").expect("tried again");
    w.work();
    let texts: Vec<String> = w.double.admissions_in(team.thread(0)).into_iter().map(|a| a.text).collect();
    assert_eq!(texts[1..], ["blue", "blue"]);
    assert_eq!(w.status(&team, &job), "completed");
}

fn settle_needs_an_unknown_job(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    refused(w.settle(&team, &job, "failed"), "not_unknown");
    w.work();
    let done = w.job(&team, &job);
    assert_eq!(w.settle(&team, &job, "failed").expect("unchanged"), done);
}

fn the_operator_frees_a_slot(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.send(&team, 0, "start");
    w.work();
    let job = w.tell(&team, 0, 1, "ask");
    w.work();
    let slots = w.slots();
    assert_eq!(slots.len(), 2);
    assert!(slots.iter().any(|s| s["job"] == json!(job) && s["owner"] == "ann" && s["team"] == json!(team.id)));
    let reply = w.settle_as_operator("ann", &team.id, &job).expect("settled");
    assert_eq!(reply["job"]["error"]["code"], "outcome_unknown");
    assert!(reply["job"]["error"]["message"].as_str().is_some_and(|m| m.contains("operator")));
    assert_eq!(w.slots().len(), 1);
    // Whoever asked is told.
    assert_eq!(w.receipts(&team).len(), 1);
    // A late end changes nothing.
    let before = w.job(&team, &job);
    w.double.hold(false);
    w.double.release_all();
    w.work();
    assert_eq!(w.job(&team, &job), before);
    assert_eq!(w.receipts(&team).len(), 1);
    let other = w.send(&team, 1, "queued");
    refused(w.settle_as_operator("ann", &team.id, &other), "no_slot");
}

fn stale_3_a_late_end_changes_nothing(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.send(&team, 0, "start");
    w.work();
    let job = w.tell(&team, 0, 1, "ask");
    w.work();
    let run = w.double.running_in(team.thread(1)).expect("at work");
    w.double.finish(&run, Turn::Fail("the run limit".into()));
    w.work();
    let before = w.job(&team, &job);
    assert_eq!(before["error"]["code"], "run_failed");
    assert!(before["error"]["message"].as_str().is_some_and(|m| m.contains("the run limit")));
    assert_ne!(before["result"]["text"], Value::String("late".into()));
    w.double.say(team.thread(1), "late");
    let ended = agent_teams_host::contract::EndedRun { owner: "ann".into(), thread: team.thread(1).into(), run };
    for step in &w.plan(vec![ended], true).steps {
        w.advance(step).expect("a step");
    }
    w.work();
    assert_eq!(w.job(&team, &job), before);
    assert_eq!(w.receipts(&team).len(), 1);
}
