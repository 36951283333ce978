//! What the host answers, and what it means for the job and for its team.

use agent_teams_plugin::host::RunError;
use agent_teams_tests::both;
use agent_teams_tests::double::{Effect, Method, Turn};
use agent_teams_tests::harness::World;
use serde_json::json;

both!(
    refusals_that_take_turns_disconnect_like_one_that_stays,
    lifecycle_9_a_lost_reply_to_start_is_one_run,
    lifecycle_9_what_never_arrived_is_sent_again_with_the_same_bytes,
    lifecycle_10_denied_while_running_disconnects_and_replaces_nothing,
    lifecycle_11_the_process_ends_while_a_job_runs,
    lifecycle_14_a_fresh_conversation_is_not_found_at_first,
    lifecycle_15_another_human_turn_follows,
    lifecycle_16_the_message_is_gone,
    fault_10_a_denied_outside_conversation_is_the_receipts_own_trouble,
    fault_12_temporary_refusals_are_retried_with_growing_pauses,
    fault_12_repeated_refusals_disconnect_with_the_reason,
    fault_12_a_rejected_start_fails_with_a_receipt,
    an_agent_that_is_gone_fails_its_jobs_with_that_reason,
    busy_at_start_gives_the_slot_back,
    denied_at_start_leaves_the_job_as_it_was,
    an_unclear_start_on_a_durable_host_goes_back_to_the_queue,
    an_unclear_start_on_a_forgetful_host_is_unknown,
    an_unclear_start_that_was_admitted_is_found,
    a_key_conflict_fails_the_job,
    repeated_time_outs_disconnect_and_keep_the_slot,
    a_read_that_fails_is_tried_later,
    refusals_of_different_kinds_do_not_add_up,
    a_cancelled_run_in_its_conversation_fails_the_job,
);

fn lifecycle_9_a_lost_reply_to_start_is_one_run(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1, Effect::reply_lost());
    w.work();
    assert_eq!(w.status(&team, &job), "running");
    assert_eq!(w.reason(&team, &job), "host_timeout");
    assert_eq!(w.slots().len(), 1);
    // The context has changed since; the frozen bytes have not.
    w.send(&team, 1, "other");
    w.later(60_000);
    // The key is looked up first, so nothing is sent a second time.
    let calls: Vec<_> = w.double.calls().into_iter().filter(|c| c.thread == team.thread(0)).collect();
    let of = |method| calls.iter().filter(|c| c.method == method).collect::<Vec<_>>();
    let (starts, finds) = (of(Method::Start), of(Method::Find));
    assert_eq!((starts.len(), finds.len()), (1, 1));
    assert_eq!(starts[0].key, finds[0].key);
    assert_eq!(w.runs(&team, 0), 1);
    assert!(w.job(&team, &job)["run_id"].is_string());
    w.double.release_all();
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
}

fn lifecycle_9_what_never_arrived_is_sent_again_with_the_same_bytes(mut w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 2, Effect::timed_out());
    w.work();
    w.restart();
    w.connect(&team).expect("connected");
    w.later(60_000);
    w.later(60_000);
    let starts: Vec<_> = w.double.calls().into_iter().filter(|c| c.method == Method::Start).collect();
    assert_eq!(starts.len(), 3);
    assert!(starts.iter().all(|s| (&s.key, &s.input) == (&starts[0].key, &starts[0].input)));
    assert_eq!(w.status(&team, &job), "completed");
    assert_eq!(w.runs(&team, 0), 1);
}

fn lifecycle_10_denied_while_running_disconnects_and_replaces_nothing(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    let queued = w.send(&team, 1, "q");
    w.work();
    w.double.revoke("ann");
    w.double.release_all();
    w.work();
    let view = w.view(&team);
    assert_eq!(view["team"]["connected"], false);
    assert_eq!(view["team"]["reason"]["code"], "denied");
    assert_eq!(w.status(&team, &job), "running");
    assert_eq!(w.slots().len(), 2);
    w.connect(&team).expect_err("still denied");
    w.double.restore("ann");
    w.double.hold(false);
    w.connect(&team).expect("connected");
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "completed");
    assert_eq!(w.status(&team, &queued), "completed");
    assert_eq!((w.runs(&team, 0), w.runs(&team, 1)), (1, 1));
}

fn lifecycle_11_the_process_ends_while_a_job_runs(mut w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.work();
    w.double.release_all();
    w.restart();
    for _ in 0..3 {
        w.clock.advance(60_000);
        assert!(!w.sweep());
    }
    assert_eq!(w.status(&team, &job), "running");
    assert_eq!(w.reason(&team, &job), "waiting_for_reconnect");
    assert_eq!(w.slots().len(), 1);
    // A host that reconnects by itself is told which team.
    let plan = w.plan(Vec::new(), true);
    assert_eq!(plan.connect.iter().map(|t| t.team.as_str()).collect::<Vec<_>>(), [team.id.as_str()]);
    w.connect_as_worker("ann", &team.id).expect("connected");
    w.sweep();
    assert_eq!(w.status(&team, &job), "completed");
    assert_eq!(w.runs(&team, 0), 1);
    // Where people reconnect, it is not.
    w.restart_with(r#"{"reconnect": "manual"}"#);
    w.send(&team, 0, "next");
    assert!(w.plan(Vec::new(), true).connect.is_empty());
}

fn lifecycle_14_a_fresh_conversation_is_not_found_at_first(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.pass();
    assert_eq!(w.double.count(Method::Start, None), 1);
    let reads: Vec<_> = w.double.calls().into_iter().filter(|c| c.method == Method::State).collect();
    assert!(matches!(reads[0].error, Some(RunError::NotFound(_))));
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
}

fn lifecycle_15_another_human_turn_follows(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.work();
    w.double.type_message(team.thread(0), "Something else.");
    let run = w.double.running_in(team.thread(0)).expect("at work");
    w.double.finish(&run, Turn::answer("an unrelated answer"));
    w.work();
    let shown = w.job(&team, &job);
    assert_eq!((&shown["status"], &shown["error"]["code"]), (&json!("failed"), &json!("not_attributable")));
    assert!(shown["error"]["message"].as_str().is_some_and(|m| m.contains("Inspect the conversation")));
    assert!(!w.view(&team).to_string().contains("an unrelated answer"));
    w.send(&team, 1, "next");
    w.work();
    assert!(!w.double.last_input(team.thread(1)).contains("an unrelated answer"));
}

fn lifecycle_16_the_message_is_gone(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.send(&team, 0, "start");
    w.work();
    let job = w.tell(&team, 0, 1, "ask");
    w.work();
    let run = w.double.running_in(team.thread(1)).expect("at work");
    w.double.finish(&run, Turn::answer("an answer to something"));
    w.double.compact(team.thread(1), 1);
    w.work();
    let shown = w.job(&team, &job);
    assert_eq!((&shown["status"], &shown["error"]["code"]), (&json!("failed"), &json!("not_attributable")));
    assert!(!w.view(&team).to_string().contains("an answer to something"));
    // Its requester is told.
    assert_eq!(w.receipts(&team).len(), 1);
}

fn fault_10_a_denied_outside_conversation_is_the_receipts_own_trouble(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.open_thread("ann", "chat", "assistant");
    let member = &team.members[0].id;
    w.mention("ann", "chat", "m1", "Please look.", &[(&team.id, member)]).expect("dispatched");
    w.work();
    let receipt = w.receipts(&team)[0]["id"].as_str().expect("id").to_owned();
    assert_eq!(w.status(&team, &receipt), "completed", "without a fault it arrives");
    w.mention("ann", "chat", "m2", "Please look again.", &[(&team.id, member)]).expect("dispatched");
    w.double.fault(Method::State, Some("chat"), 1_000, Effect::denied());
    w.work();
    let receipt = w.receipts(&team)[0]["id"].as_str().expect("id").to_owned();
    assert_eq!(w.reason(&team, &receipt), "conversation_denied");
    assert!(w.connected(&team));
    let other = w.send(&team, 1, "other");
    w.work();
    assert_eq!(w.status(&team, &other), "completed");
    for _ in 0..10 {
        w.later(120_000);
    }
    assert_eq!(w.status(&team, &receipt), "failed");
    assert!(w.connected(&team));
}

fn fault_12_temporary_refusals_are_retried_with_growing_pauses(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 3, Effect::unavailable());
    w.work();
    let mut pauses = Vec::new();
    for _ in 0..3 {
        let shown = w.job(&team, &job);
        assert_eq!((&shown["status"], &shown["reason"]["code"]), (&json!("queued"), &json!("host_unavailable")));
        assert!(shown["reason"]["next_at"].is_string());
        assert!(w.slots().is_empty());
        let pause = u64::from(w.plan(Vec::new(), false).next_ms);
        // Nothing before its time.
        let before = w.double.count(Method::Start, None);
        w.later(pause - 1);
        assert_eq!(w.double.count(Method::Start, None), before);
        w.later(1);
        pauses.push(pause);
    }
    assert!(pauses.windows(2).all(|p| p[0] < p[1]), "{pauses:?}");
    assert_eq!(w.status(&team, &job), "completed");
    assert!(w.connected(&team));
}

fn fault_12_repeated_refusals_disconnect_with_the_reason(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1_000, Effect::unavailable());
    for _ in 0..10 {
        w.later(120_000);
    }
    let view = w.view(&team);
    assert_eq!(
        (&view["team"]["connected"], &view["team"]["reason"]["code"]),
        (&json!(false), &json!("host_unavailable"))
    );
    assert_eq!(w.status(&team, &job), "queued");
    w.double.clear_faults();
    w.connect(&team).expect("connected");
    w.later(120_000);
    assert_eq!(w.status(&team, &job), "completed");
}

fn fault_12_a_rejected_start_fails_with_a_receipt(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.send(&team, 0, "start");
    w.work();
    let job = w.tell(&team, 0, 1, "ask");
    w.double.fault(Method::Start, None, 1, Effect::rejected());
    w.work();
    let shown = w.job(&team, &job);
    assert_eq!((&shown["status"], &shown["error"]["code"]), (&json!("failed"), &json!("rejected")));
    w.double.hold(false);
    w.double.release_all();
    w.work();
    let input = w.double.last_input(team.thread(0));
    assert!(input.contains("[Agent team result]") && input.contains("\"status\":\"failed\""), "{input}");
    assert!(w.connected(&team));
}

fn an_agent_that_is_gone_fails_its_jobs_with_that_reason(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.remove_agent("agent-ada");
    let job = w.send(&team, 0, "r");
    let other = w.send(&team, 1, "q");
    w.work();
    let shown = w.job(&team, &job);
    assert_eq!(shown["status"], "failed");
    assert!(shown["error"]["message"].as_str().is_some_and(|m| m.contains("agent-ada")), "{shown}");
    assert_eq!(w.status(&team, &other), "completed");
}

fn busy_at_start_gives_the_slot_back(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1, Effect::busy());
    w.pass();
    assert_eq!(w.status(&team, &job), "queued");
    assert_eq!(w.reason(&team, &job), "conversation_busy");
    assert!(w.slots().is_empty());
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "completed");
}

fn denied_at_start_leaves_the_job_as_it_was(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1, Effect::denied());
    w.work();
    assert_eq!(w.status(&team, &job), "queued");
    assert!(!w.connected(&team));
    assert!(w.slots().is_empty());
    w.connect(&team).expect("connected");
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "completed");
}

fn an_unclear_start_on_a_durable_host_goes_back_to_the_queue(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 3, Effect::other());
    w.work();
    assert_eq!(w.status(&team, &job), "running");
    for _ in 0..4 {
        w.later(60_000);
        assert_ne!(w.status(&team, &job), "unknown");
    }
    assert_eq!(w.status(&team, &job), "completed");
    assert_eq!(w.runs(&team, 0), 1);
}

fn an_unclear_start_on_a_forgetful_host_is_unknown(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.durable_keys(false);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1, Effect::other());
    w.work();
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "unknown");
    assert_eq!(w.slots().len(), 1);
    for _ in 0..5 {
        w.later(120_000);
    }
    assert!(w.double.admissions().is_empty());
    w.settle(&team, &job, "retry").expect("tried again");
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
}

fn an_unclear_start_that_was_admitted_is_found(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1, Effect::Lose(RunError::Other("?".into())));
    w.double.fault(Method::Start, None, 1, Effect::busy());
    w.work();
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "completed");
    assert_eq!(w.runs(&team, 0), 1);
}

fn a_key_conflict_fails_the_job(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1, Effect::Refuse(RunError::KeyConflict));
    w.work();
    assert_eq!(w.job(&team, &job)["error"]["code"], "key_conflict");
}

fn repeated_time_outs_disconnect_and_keep_the_slot(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1_000, Effect::timed_out());
    for _ in 0..10 {
        w.later(120_000);
    }
    assert!(!w.connected(&team));
    assert_eq!(w.view(&team)["team"]["reason"]["code"], "host_timeout");
    assert_eq!(w.status(&team, &job), "running");
    assert_eq!(w.slots().len(), 1);
    w.double.clear_faults();
    w.connect(&team).expect("connected");
    w.later(120_000);
    assert_eq!(w.status(&team, &job), "completed");
    assert_eq!(w.runs(&team, 0), 1);
}

fn a_read_that_fails_is_tried_later(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.work();
    w.double.fault(Method::Get, None, 1, Effect::unavailable());
    w.double.fault(Method::State, None, 1, Effect::timed_out());
    w.double.release_all();
    w.work();
    assert_eq!(w.status(&team, &job), "running");
    assert_eq!(w.reason(&team, &job), "host_unavailable");
    w.later(60_000);
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "completed");
    assert!(w.connected(&team));
}

fn refusals_of_different_kinds_do_not_add_up(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.occupy(team.thread(0), true);
    let job = w.send(&team, 0, "r");
    // Busy for a long time, then once unavailable: that is the first of its kind.
    for _ in 0..10 {
        w.later(120_000);
    }
    w.double.occupy(team.thread(0), false);
    w.double.fault(Method::Start, None, 1, Effect::unavailable());
    w.later(120_000);
    assert!(w.connected(&team));
    w.later(120_000);
    assert_eq!(w.status(&team, &job), "completed");
}

fn a_cancelled_run_in_its_conversation_fails_the_job(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.work();
    let run = w.double.running_in(team.thread(0)).expect("at work");
    w.double.finish(&run, Turn::Cancelled);
    w.work();
    assert_eq!(w.job(&team, &job)["error"]["code"], "run_cancelled");
}

/// A host that cannot be reached says so in several ways.
fn refusals_that_take_turns_disconnect_like_one_that_stays(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.fault(Method::Start, Some(team.thread(0)), 1, Effect::reply_lost());
    for _ in 0..6 {
        w.double.fault(Method::Find, Some(team.thread(0)), 1, Effect::timed_out());
        w.double.fault(Method::Find, Some(team.thread(0)), 1, Effect::unavailable());
    }
    w.send(&team, 0, "r");
    w.work();
    for _ in 0..8 {
        w.later(61_000);
    }
    assert!(!w.connected(&team), "after six in a row");
    assert_eq!(w.view(&team)["team"]["connected"], json!(false));
}
