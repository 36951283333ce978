//! Everything that began can be ended: by its owner, by the operator, or by
//! what the host says, in every order, and nothing of it stays behind.

use agent_teams_tests::both;
use agent_teams_tests::double::{Effect, Method, Turn};
use agent_teams_tests::harness::{Team, World, invalid, refused};
use serde_json::{Value, json};

both!(
    cancelling_at_an_interrupt_withdraws_it_at_the_host,
    cancelling_an_answer_that_was_not_sent_withdraws_the_interrupt,
    cancelling_an_answer_that_never_arrived_withdraws_the_interrupt,
    a_cancel_that_is_accepted_too_late_withdraws_the_interrupt_that_came_first,
    an_interrupt_that_a_settled_job_left_open_is_withdrawn_for_the_next,
    a_run_that_outlived_its_settled_job_is_ended_for_the_next,
    an_approval_takes_its_exact_form_and_nothing_else,
    an_approval_among_several_is_named_by_its_id,
    any_other_interrupt_takes_any_value,
    a_refused_answer_waits_again_and_can_be_given_anew,
    a_refused_clarification_waits_again,
    a_refused_answer_follows_the_one_that_came_first,
    a_refused_answer_to_what_is_gone_ends_the_job,
    a_run_that_is_ended_in_its_conversation_ends_the_job_that_waits,
    a_lost_answer_is_never_called_cancelled_while_its_run_may_live,
    a_cancel_that_became_unknown_stays_a_cancel,
    an_answer_is_sent_again_as_the_answer,
    a_start_that_was_never_admitted_is_sent_as_it_was,
    a_cancel_that_the_host_never_carries_out_can_be_settled,
    what_a_disconnected_team_has_under_way_can_be_settled,
    a_missing_agent_takes_down_its_own_member_alone,
    a_member_whose_agent_is_gone_works_again_when_it_is_back,
    a_team_that_was_never_ready_still_needs_all_its_agents,
);

const APPROVAL: &str = r#"{"kind":"approval","tool":"write_file","arguments":{"path":"a.txt","text":"x"}}"#;

/// A team whose first member waits for an approval; its job.
fn waiting(w: &World) -> (Team, String) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.script(team.thread(0), [Turn::interrupt("i1", APPROVAL)]);
    let job = w.send(&team, 0, "r");
    w.work();
    assert_eq!(w.status(&team, &job), "waiting_input");
    (team, job)
}

/// Another request to the first member runs to its end.
#[track_caller]
fn takes_other_work(w: &World, team: &Team) {
    let next = w.send(team, 0, "next");
    for _ in 0..3 {
        w.later(60_000);
    }
    let shown = w.job(team, &next);
    assert_eq!(shown["status"], "completed", "{shown}");
    assert!(w.slots().is_empty());
    assert!(w.double.violations().is_empty(), "{:?}", w.double.violations());
}

fn cancelling_at_an_interrupt_withdraws_it_at_the_host(w: World) {
    let (team, job) = waiting(&w);
    let run = w.job(&team, &job)["run_id"].as_str().expect("run").to_owned();
    assert_eq!(w.cancel(&team, &job).expect("accepted")["status"], "cancelling");
    assert!(w.slots().is_empty(), "a withdrawal takes no slot");
    w.work();
    let shown = w.job(&team, &job);
    assert_eq!(shown["status"], "cancelled");
    assert_eq!(shown["run_id"], run.as_str());
    assert!(w.double.thread(team.thread(0)).expect("thread").interrupts.is_empty());
    takes_other_work(&w, &team);
}

fn cancelling_an_answer_that_was_not_sent_withdraws_the_interrupt(w: World) {
    let (team, job) = waiting(&w);
    w.answer(&team, &job, "a", json!({"approved": true})).expect("stored");
    assert_eq!(w.cancel(&team, &job).expect("accepted")["status"], "cancelling");
    w.work();
    assert_eq!(w.status(&team, &job), "cancelled");
    assert_eq!(w.double.count(Method::Resume, None), 0);
    takes_other_work(&w, &team);
}

fn cancelling_an_answer_that_never_arrived_withdraws_the_interrupt(w: World) {
    let (team, job) = waiting(&w);
    w.answer(&team, &job, "a", json!({"approved": true})).expect("stored");
    w.double.fault(Method::Resume, None, 1, Effect::timed_out());
    w.work();
    assert_eq!(w.status(&team, &job), "resuming");
    w.cancel(&team, &job).expect("accepted");
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "cancelled");
    assert!(w.double.thread(team.thread(0)).expect("thread").interrupts.is_empty());
    takes_other_work(&w, &team);
}

fn a_cancel_that_is_accepted_too_late_withdraws_the_interrupt_that_came_first(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.double.cancel_only_accepts(true);
    let job = w.send(&team, 0, "r");
    w.work();
    w.cancel(&team, &job).expect("accepted");
    w.work();
    assert_eq!(w.reason(&team, &job), "stopping");
    // The run reaches an interrupt before the cancel takes effect.
    w.double.hold(false);
    let run = w.double.running_in(team.thread(0)).expect("running");
    assert!(w.double.finish(&run, Turn::interrupt("i1", APPROVAL)));
    w.sweep();
    w.work();
    assert_eq!(w.status(&team, &job), "cancelled");
    assert!(w.double.thread(team.thread(0)).expect("thread").interrupts.is_empty());
    takes_other_work(&w, &team);
}

fn an_interrupt_that_a_settled_job_left_open_is_withdrawn_for_the_next(w: World) {
    let (team, job) = waiting(&w);
    w.answer(&team, &job, "a", json!({"approved": true})).expect("stored");
    w.double.fault(Method::Resume, None, 1, Effect::timed_out());
    w.work();
    w.settle_as_operator("ann", &team.id, &job).expect("settled");
    assert_eq!(w.status(&team, &job), "failed");
    assert!(!w.double.thread(team.thread(0)).expect("thread").interrupts.is_empty());
    takes_other_work(&w, &team);
}

fn a_run_that_outlived_its_settled_job_is_ended_for_the_next(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.work();
    let run = w.double.running_in(team.thread(0)).expect("running");
    w.settle_as_operator("ann", &team.id, &job).expect("settled");
    w.double.hold(false);
    assert!(!w.double.running().is_empty());
    takes_other_work(&w, &team);
    assert!(w.double.status(&run).is_some_and(|status| format!("{status:?}") == "Cancelled"));
}

fn an_approval_takes_its_exact_form_and_nothing_else(w: World) {
    let (team, job) = waiting(&w);
    let before = w.job(&team, &job);
    let wrong = [
        json!("yes"),
        json!(true),
        json!({}),
        json!(null),
        json!([]),
        json!({"approve": true}),
        json!({"approved": "true"}),
        json!({"approved": 1}),
        json!({"approved": true, "extra": 1}),
        json!({"approved": true, "note": 7}),
        json!({"i1": {"approved": true}}),
    ];
    for response in wrong {
        let refusal = invalid(w.answer(&team, &job, "a", response.clone()), "approval_form", "response");
        assert!(refusal.message.contains("{\"approved\": true}"), "{refusal:?}");
        assert_eq!(w.job(&team, &job), before, "{response}");
    }
    w.answer(&team, &job, "a", json!({"approved": false, "note": "not now"})).expect("the exact form");
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
}

fn an_approval_among_several_is_named_by_its_id(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let open = |id: &str| (String::from(id), String::from(APPROVAL));
    w.double.script(team.thread(0), [Turn::Interrupt(vec![open("i1"), open("i2")])]);
    let job = w.send(&team, 0, "r");
    w.work();
    let one_wrong = json!({"i1": {"approved": true}, "i2": "yes"});
    invalid(w.answer(&team, &job, "a", one_wrong), "approval_form", "response.i2");
    let one_more = json!({"i1": {"approved": true}, "i2": {"approved": true}, "i3": {"approved": true}});
    invalid(w.answer(&team, &job, "a", one_more), "interrupt_not_open", "response.i3");
    invalid(w.answer(&team, &job, "a", json!({"i1": {"approved": true}})), "response_incomplete", "response.i2");
    assert_eq!(w.status(&team, &job), "waiting_input");
    w.answer(&team, &job, "a", json!({"i1": {"approved": true}, "i2": {"approved": false}})).expect("both");
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
}

fn any_other_interrupt_takes_any_value(w: World) {
    for (n, response) in [json!("yes"), json!(true), json!({"approve": 1}), json!(null)].into_iter().enumerate() {
        let team = w.team_named("ann", &format!("create-{n}"), &["ada", "bo"]);
        w.double.script(team.thread(0), [Turn::interrupt("i1", r#"{"kind":"pick","from":[1,2]}"#)]);
        let job = w.send(&team, 0, "r");
        w.work();
        w.answer(&team, &job, "a", response).expect("any value");
        w.work();
        assert_eq!(w.status(&team, &job), "completed");
    }
}

fn a_refused_answer_waits_again_and_can_be_given_anew(w: World) {
    let (team, job) = waiting(&w);
    w.answer(&team, &job, "a", json!({"approved": true})).expect("stored");
    w.double.fault(Method::Resume, None, 1, Effect::rejected());
    w.work();
    let shown = w.job(&team, &job);
    assert_eq!(shown["status"], "waiting_input", "{shown}");
    assert_eq!(shown["reason"]["code"], "answer_refused");
    assert!(shown["reason"]["message"].as_str().is_some_and(|m| m.contains("scripted")), "{shown}");
    assert_eq!(shown["interrupts"][0]["id"], "i1");
    assert!(w.slots().is_empty());
    // The reason stays until somebody answers, and nothing is sent by itself.
    w.later(600_000);
    w.sweep();
    w.work();
    assert_eq!(w.reason(&team, &job), "answer_refused");
    assert_eq!(w.double.count(Method::Resume, None), 1);
    // One request id carries one answer; repeated, it says how things are.
    refused(w.answer(&team, &job, "a", json!({"approved": false})), "request_id_reused");
    assert_eq!(w.answer(&team, &job, "a", json!({"approved": true})).expect("repeated")["status"], "waiting_input");
    w.answer(&team, &job, "b", json!({"approved": false})).expect("another answer");
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
}

fn a_refused_clarification_waits_again(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.script(team.thread(0), [Turn::ask("Which?")]);
    let job = w.send(&team, 0, "r");
    w.work();
    w.double.fault(Method::Start, None, 1, Effect::rejected());
    w.answer(&team, &job, "a", json!("blue")).expect("stored");
    w.work();
    assert_eq!(w.status(&team, &job), "waiting_input");
    assert_eq!(w.reason(&team, &job), "answer_refused");
    w.answer(&team, &job, "b", json!("red")).expect("stored");
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
    assert_eq!(w.runs(&team, 0), 2);
}

fn a_refused_answer_follows_the_one_that_came_first(w: World) {
    for same in [true, false] {
        let team = w.team_named("ann", &format!("create-{same}"), &["ada", "bo"]);
        let thread = team.thread(0);
        w.double.resume_same_run(same);
        w.double.script(thread, [Turn::interrupt("i1", APPROVAL), Turn::answer("the other way")]);
        let job = w.send(&team, 0, "r");
        w.work();
        w.double.hold(true);
        w.answer(&team, &job, "mine", json!({"approved": true})).expect("stored");
        // Somebody answers in the conversation, after the look at it and before the answer arrives.
        w.double.fault(Method::Resume, Some(thread), 1, Effect::Overtaken);
        w.work();
        let shown = w.job(&team, &job);
        assert_eq!(shown["status"], "running", "{shown}");
        assert!(shown["note"].as_str().is_some_and(|n| n.contains("first answer")), "{shown}");
        assert_eq!(w.runs(&team, 0), 2, "the answer given here started nothing");
        w.double.hold(false);
        w.double.release_all();
        w.work();
        let shown = w.job(&team, &job);
        assert_eq!(shown["status"], "completed", "{shown}");
        assert_eq!(shown["result"]["text"], "the other way");
        assert!(w.slots().is_empty());
    }
}

fn a_refused_answer_to_what_is_gone_ends_the_job(w: World) {
    let (team, job) = waiting(&w);
    w.answer(&team, &job, "a", json!({"approved": true})).expect("stored");
    w.double.fault(Method::Resume, None, 1, Effect::Withdrawn);
    w.work();
    let shown = w.job(&team, &job);
    assert_eq!(shown["status"], "failed", "{shown}");
    assert_eq!(shown["error"]["code"], "question_withdrawn");
    takes_other_work(&w, &team);
}

fn a_run_that_is_ended_in_its_conversation_ends_the_job_that_waits(w: World) {
    let (team, job) = waiting(&w);
    w.double.stop_outside(team.thread(0));
    w.work();
    let shown = w.job(&team, &job);
    assert_eq!(shown["status"], "failed", "{shown}");
    assert_eq!(shown["error"]["code"], "run_cancelled");
    takes_other_work(&w, &team);
}

fn a_lost_answer_is_never_called_cancelled_while_its_run_may_live(w: World) {
    for interrupt in [true, false] {
        let team = w.team_named("ann", &format!("create-{interrupt}"), &["ada", "bo"]);
        w.double.durable_keys(false);
        let turn = if interrupt { Turn::interrupt("i1", APPROVAL) } else { Turn::ask("Which?") };
        w.double.script(team.thread(0), [turn]);
        let job = w.send(&team, 0, "r");
        w.work();
        w.double.hold(true);
        let (method, response) =
            if interrupt { (Method::Resume, json!({"approved": true})) } else { (Method::Start, json!("blue")) };
        w.answer(&team, &job, "a", response).expect("stored");
        w.double.fault(method, None, 1, Effect::reply_lost());
        w.double.fault(Method::Find, None, 1_000, Effect::other());
        w.work();
        w.later(60_000);
        assert_eq!(w.status(&team, &job), "unknown");
        w.cancel(&team, &job).expect("accepted");
        for _ in 0..3 {
            w.later(60_000);
            let status = w.status(&team, &job);
            let alive = !w.double.running().is_empty();
            assert!(!(status == "cancelled" && alive), "called cancelled while its run is alive");
        }
        // The host can tell again: its run is stopped.
        w.double.clear_faults();
        for _ in 0..3 {
            w.later(60_000);
        }
        assert_eq!(w.status(&team, &job), "cancelled");
        assert!(w.double.running().is_empty());
        w.double.hold(false);
        takes_other_work(&w, &team);
    }
}

fn a_cancel_that_became_unknown_stays_a_cancel(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1, Effect::reply_lost());
    w.work();
    w.double.fault(Method::Find, None, 2, Effect::other());
    w.cancel(&team, &job).expect("accepted");
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "unknown");
    w.double.clear_faults();
    for _ in 0..3 {
        w.later(60_000);
    }
    assert_eq!(w.status(&team, &job), "cancelled", "it does not run on");
    assert!(w.double.running().is_empty());
    assert!(w.slots().is_empty());
}

fn an_answer_is_sent_again_as_the_answer(w: World) {
    for cancelled in [true, false] {
        let team = w.team_named("ann", &format!("create-{cancelled}"), &["ada", "bo"]);
        w.double.durable_keys(false);
        w.double.script(team.thread(0), [Turn::interrupt("i1", APPROVAL), Turn::answer("done")]);
        let job = w.send(&team, 0, "r");
        w.work();
        w.answer(&team, &job, "a", json!({"approved": true})).expect("stored");
        w.double.fault(Method::Resume, None, 1, Effect::timed_out());
        w.work();
        if cancelled {
            w.cancel(&team, &job).expect("accepted");
        }
        w.later(60_000);
        assert_eq!(w.status(&team, &job), "unknown");
        w.settle(&team, &job, "retry").expect("sent again");
        for _ in 0..3 {
            w.later(60_000);
        }
        let shown = w.job(&team, &job);
        assert_eq!(shown["status"], "completed", "{shown}");
        assert_eq!(shown["result"]["text"], "done");
        assert_eq!(w.runs(&team, 0), 2, "the request itself ran once");
        assert!(w.slots().is_empty());
    }
}

fn a_start_that_was_never_admitted_is_sent_as_it_was(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.double.fault(Method::Start, None, 1, Effect::timed_out());
    w.double.fault(Method::Find, None, 1, Effect::other());
    w.work();
    w.later(2_000);
    assert_eq!(w.status(&team, &job), "unknown");
    // Everybody's context has changed, and the frozen input has not.
    w.send(&team, 1, "other");
    // The host's keys are durable: what it does not know was never admitted.
    for _ in 0..3 {
        w.later(60_000);
    }
    assert_eq!(w.status(&team, &job), "completed");
    assert_eq!(w.runs(&team, 0), 1);
    let starts: Vec<_> =
        w.double.calls().into_iter().filter(|c| c.method == Method::Start && c.thread == team.thread(0)).collect();
    assert_eq!(starts.len(), 2);
    assert_eq!((&starts[0].key, &starts[0].input), (&starts[1].key, &starts[1].input));
}

fn a_cancel_that_the_host_never_carries_out_can_be_settled(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.double.cancel_only_accepts(true);
    let job = w.send(&team, 0, "r");
    w.work();
    refused(w.settle(&team, &job, "failed"), "not_unknown");
    w.cancel(&team, &job).expect("accepted");
    w.work();
    assert_eq!(w.job(&team, &job)["settle"], json!(["failed"]));
    refused(w.settle(&team, &job, "retry"), "not_unknown");
    assert_eq!(w.settle(&team, &job, "failed").expect("settled")["status"], "failed");
    assert!(w.slots().is_empty());
    w.double.cancel_only_accepts(false);
    w.double.hold(false);
    takes_other_work(&w, &team);
}

fn what_a_disconnected_team_has_under_way_can_be_settled(mut w: World) {
    w.restart_with(r#"{"reconnect":"manual"}"#);
    w.open().expect("open");
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.work();
    w.restart();
    w.work();
    assert!(!w.connected(&team));
    assert_eq!(w.job(&team, &job)["settle"], json!(["failed"]));
    assert_eq!(w.settle(&team, &job, "failed").expect("settled")["status"], "failed");
    assert!(w.slots().is_empty());
    w.delete(&team).expect("nothing is unfinished");
}

fn a_missing_agent_takes_down_its_own_member_alone(mut w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let adas = w.send(&team, 0, "ada-1");
    w.work();
    let bos = w.tell(&team, 0, 1, "bo-1");
    w.work();
    let adas_next = w.send(&team, 0, "ada-2");
    let bos_next = w.send(&team, 1, "bo-2");
    w.double.remove_agent("agent-bo");
    w.restart();
    w.connect_as_worker("ann", &team.id).expect("the team is connected all the same");
    let members = w.view(&team)["team"]["members"].clone();
    assert_eq!(members[0]["problem"], Value::Null);
    assert_eq!(members[1]["problem"]["code"], "agent_rejected");
    // The host ends what ran there.
    let run = w.double.running_in(team.thread(1)).expect("running");
    assert!(w.double.finish(&run, Turn::Fail("the agent is gone".into())));
    w.double.hold(false);
    w.double.release_all();
    for _ in 0..3 {
        w.later(60_000);
    }
    assert_eq!(w.status(&team, &adas), "completed");
    assert_eq!(w.status(&team, &adas_next), "completed");
    assert_eq!(w.status(&team, &bos), "failed");
    assert_eq!(w.job(&team, &bos_next)["error"]["code"], "rejected");
    let receipts = w.receipts(&team);
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0]["status"], "completed", "the asker learns of it");
    assert!(w.slots().is_empty());
    w.delete(&team).expect("nothing is unfinished");
}

fn a_member_whose_agent_is_gone_works_again_when_it_is_back(mut w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.remove_agent("agent-bo");
    w.restart();
    w.connect(&team).expect("connected");
    let lost = w.send(&team, 1, "r1");
    w.work();
    assert_eq!(w.status(&team, &lost), "failed");
    w.double.restore_agent("agent-bo");
    w.connect(&team).expect("connected");
    assert_eq!(w.view(&team)["team"]["members"][1]["problem"], Value::Null);
    let job = w.send(&team, 1, "r2");
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
}

fn a_team_that_was_never_ready_still_needs_all_its_agents(w: World) {
    w.double.remove_agent("agent-bo");
    let roster = agent_teams_tests::harness::roster("create-1", &["ada", "bo"]);
    let answer = w.action("ann", "create", roster).expect("stored");
    assert_eq!(answer["team"]["ready"], false);
    let team = answer["team"]["id"].as_str().expect("id");
    refused(w.action("ann", "connect", json!({"team_id": team})), "agent_rejected");
}
