//! Requests on their way: one job a request, conversations in order, chains
//! and their bound, the team's bound.

use agent_teams_host::contract::Caller;
use agent_teams_tests::both;
use agent_teams_tests::double::{Effect, Method, Turn};
use agent_teams_tests::harness::{World, ids_of, refused};
use serde_json::json;

both!(
    lifecycle_1_four_identical_sends_make_one_job_and_one_run,
    dup_1_a_repeated_send_answers_with_the_present_state_also_days_later,
    lifecycle_2_one_run_a_conversation_and_the_rest_waits,
    the_same_request_id_with_other_content_is_a_conflict,
    loop_1_two_members_may_ask_each_other_until_the_chain_ends,
    lifecycle_17_a_chain_ends_at_twelve_and_the_refusal_names_it,
    lifecycle_17_an_ordinary_member_chat_starts_its_own_chain,
    lifecycle_17_a_queued_job_never_lends_its_chain,
    lifecycle_18_a_handoff_inherits_a_parent_whose_admission_is_unknown,
    lifecycle_19_a_hundred_requests_with_receipts_fill_a_team,
    loop_7_a_team_without_work_calls_nobody,
    loop_4_receipts_ask_for_nothing_so_the_talk_ends,
    lost_6_three_receipts_follow_by_themselves_in_order,
    fault_5_busy_conversations_hold_no_slot,
    fault_6_a_pass_collects_before_it_admits,
    fault_16_a_request_of_the_same_pass_sees_its_results,
    a_late_call_of_an_ended_run_is_never_given_to_the_next_job,
    a_late_call_is_known_also_when_the_team_of_its_run_is_gone,
    a_repeated_tool_call_is_the_same_call,
    a_request_to_oneself_is_refused,
    a_descendant_conversation_speaks_for_its_member,
);

fn lifecycle_1_four_identical_sends_make_one_job_and_one_run(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let replies: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..4).map(|_| scope.spawn(|| w.try_send(&team, 0, "r1", "Do it."))).collect();
        calls.into_iter().map(|c| c.join().expect("no panic").expect("accepted")).collect()
    });
    let ids = ids_of(&replies);
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    w.work();
    assert_eq!(w.jobs(&team).len(), 1);
    assert_eq!(w.runs(&team, 0), 1);
    assert_eq!(w.status(&team, &ids[0]), "completed");
}

fn dup_1_a_repeated_send_answers_with_the_present_state_also_days_later(mut w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let first = w.try_send(&team, 0, "k-100", "Do it.").expect("accepted");
    assert_eq!(first["status"], "queued");
    w.clock.advance(1_000);
    w.work();
    assert_eq!(w.try_send(&team, 0, "k-100", "Do it.").expect("accepted")["status"], "running");
    w.clock.advance(600_000);
    w.double.release_all();
    w.work();
    assert_eq!(w.try_send(&team, 0, "k-100", "Do it.").expect("accepted")["status"], "completed");
    w.clock.advance(2 * 86_400_000);
    w.restart();
    let last = w.try_send(&team, 0, "k-100", "Do it.").expect("accepted");
    assert_eq!((&last["id"], &last["status"]), (&first["id"], &json!("completed")));
    assert_eq!(last["result"]["text"], "ok");
    assert_eq!(w.runs(&team, 0), 1);
    assert_eq!(w.jobs(&team).len(), 1);
}

fn lifecycle_2_one_run_a_conversation_and_the_rest_waits(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let first = w.send(&team, 0, "a1");
    let second = w.send(&team, 0, "a2");
    let other = w.send(&team, 1, "b1");
    w.work();
    assert_eq!((w.runs(&team, 0), w.runs(&team, 1)), (1, 1));
    assert_eq!(w.status(&team, &first), "running");
    assert_eq!(w.status(&team, &other), "running");
    let waiting = w.job(&team, &second);
    assert_eq!(waiting["status"], "queued");
    assert_eq!(waiting["reason"]["code"], "waiting_for_conversation");
    assert!(waiting["reason"]["message"].as_str().is_some_and(|m| m.contains(&first)), "{waiting}");
    w.release(&team, 0);
    w.work();
    assert_eq!(w.status(&team, &first), "completed");
    assert_eq!(w.status(&team, &second), "running");
}

fn the_same_request_id_with_other_content_is_a_conflict(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.try_send(&team, 0, "r1", "Do it.").expect("accepted");
    for (member, text) in [(0, "Do it!"), (0, "do it."), (0, "Do\nit."), (1, "Do it.")] {
        let refusal = refused(w.try_send(&team, member, "r1", text), "request_id_reused");
        assert_eq!(refusal.field.as_deref(), Some("request_id"));
    }
    // Also long after it ended.
    w.work();
    w.clock.advance(86_400_000);
    refused(w.try_send(&team, 1, "r1", "Do it."), "request_id_reused");
    // White space around it is no content.
    w.try_send(&team, 0, " r1 ", "\u{feff} Do it.\u{3000}\n").expect("the same");
    assert_eq!(w.jobs(&team).len(), 1);
}

fn loop_1_two_members_may_ask_each_other_until_the_chain_ends(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.send(&team, 0, "start");
    w.work();
    let mut refusal = None;
    // Each asks the other, ends its turn, and the other is at work with that.
    for n in 0..40 {
        let at = w.at_work(&team);
        let Some(me) = at.first().copied() else { break };
        match w.try_tell(&team, me, 1 - me, &format!("n{n}")) {
            Ok(_) => {}
            Err(refused) => {
                refusal = Some(refused);
                break;
            }
        }
        w.release(&team, me);
        w.work();
    }
    let refusal = refusal.expect("the chain ends");
    assert_eq!(refusal.code, "chain_limit");
    let requests = w.jobs(&team).into_iter().filter(|j| j["kind"] == "request").count();
    assert_eq!(requests, 12);
    w.double.hold(false);
    w.double.release_all();
    w.work();
    assert!(w.jobs(&team).iter().all(|j| j["status"] == "completed"));
}

fn lifecycle_17_a_chain_ends_at_twelve_and_the_refusal_names_it(w: World) {
    let team = w.team("ann", &["ada", "bo", "cy"]);
    w.double.hold(true);
    let root = w.send(&team, 0, "start");
    w.work();
    for n in 1..12 {
        w.tell(&team, 0, 1 + n % 2, &format!("h{n}"));
    }
    let refusal = refused(w.try_tell(&team, 0, 1, "h12"), "chain_limit");
    assert!(refusal.message.contains("ada → bo"), "{}", refusal.message);
    assert_eq!(refusal.detail.as_ref().map(|d| &d["root_id"]), Some(&json!(root)));
    assert!(w.jobs(&team).iter().all(|j| j["root_id"] == json!(root)));
    // A person begins another chain, also in a conversation of this one.
    w.send(&team, 1, "again");
    // What was accepted is still answered under its name.
    w.tell(&team, 0, 2, "h1");
}

fn lifecycle_17_an_ordinary_member_chat_starts_its_own_chain(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    // Somebody talks with ada in her conversation; no job of the team runs.
    let caller = Caller {
        owner: "ann".into(),
        thread: Some(team.thread(0).into()),
        run: Some("a run of its own".into()),
        ..Caller::default()
    };
    let arguments = json!({"team_id": team.id, "member": "bo", "request_id": "x", "text": "Please."});
    let reply = w.tool(&caller, "send_member", arguments).expect("accepted");
    let job = w.job(&team, reply["job_id"].as_str().expect("id"));
    assert_eq!(job["root_id"], job["id"]);
    assert_eq!(job["parent_id"], json!(null));
    assert_eq!(job["requester"]["member"], "ada");
}

fn lifecycle_17_a_queued_job_never_lends_its_chain(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let first = w.send(&team, 0, "first");
    let second = w.send(&team, 0, "second");
    w.work();
    let handoff = w.tell(&team, 0, 1, "h");
    let job = w.job(&team, &handoff);
    assert_eq!((&job["parent_id"], &job["root_id"]), (&json!(first), &json!(first)));
    // The first ended; the second is queued, not at work.
    w.double.fault(Method::State, Some(team.thread(0)), 100, Effect::busy());
    let caller = w.caller(&team, 0);
    w.release(&team, 0);
    w.double.clear_faults();
    w.double.occupy(team.thread(0), true);
    w.work();
    assert_eq!(w.status(&team, &second), "queued");
    let arguments = json!({"team_id": team.id, "member": "bo", "request_id": "late", "text": "Please."});
    let late = w.tool(&Caller { run: None, ..caller }, "send_member", arguments).expect("accepted");
    let job = w.job(&team, late["job_id"].as_str().expect("id"));
    assert_eq!(job["root_id"], job["id"], "{job}");
}

fn lifecycle_18_a_handoff_inherits_a_parent_whose_admission_is_unknown(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let parent = w.send(&team, 0, "start");
    w.double.fault(Method::Start, Some(team.thread(0)), 1, Effect::reply_lost());
    w.work();
    assert_eq!(w.job(&team, &parent)["run_id"], json!(null));
    // The run exists and calls, before its admission is acknowledged.
    let handoff = w.tell(&team, 0, 1, "h");
    let job = w.job(&team, &handoff);
    assert_eq!((&job["parent_id"], &job["root_id"]), (&json!(parent), &json!(parent)));
}

fn lifecycle_19_a_hundred_requests_with_receipts_fill_a_team(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    // A chat in ada's conversation asks bo, a hundred times.
    let caller = Caller { owner: "ann".into(), thread: Some(team.thread(0).into()), ..Caller::default() };
    let ask = |n: usize| {
        let arguments = json!({"team_id": team.id, "member": "bo", "request_id": format!("r{n}"), "text": "Please."});
        w.tool(&caller, "send_member", arguments)
    };
    let first = ask(0).expect("accepted");
    for n in 1..100 {
        ask(n).expect("accepted");
        w.work();
    }
    let refusal = refused(ask(100), "request_limit");
    assert!(refusal.message.contains("100"), "{}", refusal.message);
    w.work();
    let view = w.view(&team);
    assert_eq!(view["jobs"].as_array().map(Vec::len), Some(200));
    assert_eq!(view["team"]["counts"]["requests"], 100);
    assert_eq!(view["team"]["counts"]["receipts"], 100);
    assert_eq!(view["team"]["counts"]["requests_left"], 0);
    assert_eq!(view["team"]["counts"]["unfinished"], 0);
    assert_eq!(ask(0).expect("still known")["job_id"], first["job_id"]);
    refused(w.try_send(&team, 1, "another", "Please."), "request_limit");
}

fn loop_7_a_team_without_work_calls_nobody(w: World) {
    w.team("ann", &["ada", "bo", "cy", "di", "ed"]);
    for _ in 0..20 {
        w.clock.advance(60_000);
        w.sweep();
    }
    assert!(w.double.admissions().is_empty());
    assert_eq!(w.double.count(Method::State, None), 0);
}

fn loop_4_receipts_ask_for_nothing_so_the_talk_ends(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.set_default(Turn::answer("received, thanks"));
    w.double.hold(true);
    w.send(&team, 0, "start");
    w.work();
    w.tell(&team, 0, 1, "ask");
    w.double.hold(false);
    w.double.release_all();
    w.work();
    // ada's request, bo's, and one receipt to ada: nobody thanks for thanks.
    assert_eq!((w.runs(&team, 0), w.runs(&team, 1)), (2, 1));
    assert_eq!(w.jobs(&team).len(), 3);
}

fn lost_6_three_receipts_follow_by_themselves_in_order(w: World) {
    let team = w.team("ann", &["ada", "bo", "cy", "di"]);
    w.double.hold(true);
    w.send(&team, 0, "start");
    w.work();
    for (n, name) in ["first", "second", "third"].into_iter().enumerate() {
        w.tell(&team, 0, n + 1, name);
    }
    w.work();
    // While ada is still in her turn, the three end in another order.
    for n in [2, 3, 1] {
        let run = w.double.running_in(team.thread(n)).expect("at work");
        w.double.finish(&run, Turn::answer(format!("from {n}")));
        w.work();
    }
    assert_eq!(w.runs(&team, 0), 1);
    w.double.hold(false);
    w.release(&team, 0);
    w.work();
    let turns = w.double.admissions_in(team.thread(0));
    assert_eq!(turns.len(), 4);
    for (turn, n) in turns[1..].iter().zip([2, 3, 1]) {
        assert!(turn.text.starts_with("[Agent team result]"), "{}", turn.text);
        assert!(turn.text.contains(&format!("\"result\":\"from {n}\"")), "{}", turn.text);
    }
    assert!(w.receipts(&team).iter().all(|r| r["status"] == "completed"));
}

fn fault_5_busy_conversations_hold_no_slot(w: World) {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let team = w.team("ann", &names);
    let other = w.team("bea", &["x", "y"]);
    for n in 0..8 {
        w.double.occupy(team.thread(n), true);
        w.send(&team, n, &format!("r{n}"));
    }
    w.work();
    assert!(w.slots().is_empty());
    assert!(w.double.admissions().is_empty());
    assert_eq!(w.jobs(&team)[0]["reason"]["code"], "conversation_busy");
    let job = w.send(&other, 0, "r");
    w.work();
    assert_eq!(w.status(&other, &job), "completed");
    // A conversation that becomes free is served after its pause.
    w.double.occupy(team.thread(3), false);
    for _ in 0..8 {
        w.later(60_000);
    }
    assert_eq!(w.runs(&team, 3), 1);
}

fn fault_6_a_pass_collects_before_it_admits(w: World) {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let (first, second) = (w.team_named("ann", "t1", &names), w.team_named("ann", "t2", &names));
    w.double.hold(true);
    for n in 0..8 {
        w.send(&first, n, &format!("r{n}"));
    }
    w.pass();
    for n in 0..8 {
        w.send(&second, n, &format!("r{n}"));
    }
    w.pass();
    assert_eq!(w.at_work(&first).len(), 8);
    assert!(w.at_work(&second).is_empty());
    w.double.release_all();
    // One pass collects the eight that ended and starts eight others: the
    // steps of a plan may come in any order, so the second may need another.
    w.pass();
    let started = w.at_work(&second).len();
    w.pass();
    assert_eq!(w.at_work(&second).len(), 8, "{started} in the first pass");
}

fn fault_16_a_request_of_the_same_pass_sees_its_results(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.send(&team, 0, "a");
    w.work();
    w.send(&team, 1, "b");
    let run = w.double.running_in(team.thread(0)).expect("at work");
    w.double.finish(&run, Turn::answer("the nonce 7f3a"));
    // One pass collects ada's answer and starts bo.
    w.pass();
    assert!(w.double.last_input(team.thread(1)).contains("the nonce 7f3a"));
}

fn a_late_call_of_an_ended_run_is_never_given_to_the_next_job(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.send(&team, 0, "first");
    w.send(&team, 0, "second");
    w.work();
    let late = w.caller(&team, 0);
    w.release(&team, 0);
    w.work();
    let arguments = json!({"team_id": team.id, "member": "bo", "request_id": "x", "text": "Please."});
    refused(w.tool(&late, "send_member", arguments), "run_ended");
    assert_eq!(w.jobs(&team).len(), 2);
}

fn a_late_call_is_known_also_when_the_team_of_its_run_is_gone(w: World) {
    let (asked, team) = (w.team_named("ann", "asked", &["x", "y"]), w.team("ann", &["ada", "bo"]));
    // A result of one team runs in the conversation of the other's member.
    let picked = [(asked.id.as_str(), asked.members[0].id.as_str())];
    w.mention("ann", team.thread(0), "m", "Please.", &picked).expect("dispatched");
    w.double.script(asked.thread(0), [Turn::answer("done")]);
    w.double.hold(true);
    w.work();
    w.release(&asked, 0);
    w.work();
    let late = w.caller(&team, 0);
    assert!(late.run.is_some(), "the receipt is at work");
    w.double.release_all();
    w.work();
    w.delete(&asked).expect("deleted");
    // The next job's run is not named yet.
    w.double.fault(Method::Start, Some(team.thread(0)), 1, Effect::reply_lost());
    w.send(&team, 0, "next");
    w.work();
    let arguments = json!({"team_id": team.id, "member": "bo", "request_id": "x", "text": "Please."});
    refused(w.tool(&late, "send_member", arguments), "run_ended");
    // What is left of the other team goes with the conversation's own.
    w.double.hold(false);
    w.double.release_all();
    w.later(60_000);
    w.sweep();
    w.work();
    w.delete(&team).expect("deleted");
    if let Some(host) = w.native_host() {
        assert!(!host.store().dump().iter().any(|(key, _)| key.starts_with("ran/")));
    }
}

fn a_repeated_tool_call_is_the_same_call(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.send(&team, 0, "start");
    w.work();
    let caller = Caller { call: Some("run/3/0".into()), ..w.caller(&team, 0) };
    let ask = |text: &str| {
        let arguments = json!({"team_id": team.id, "member": "bo", "request_id": "x", "text": text});
        w.tool(&caller, "send_member", arguments)
    };
    let first = ask("Please.").expect("accepted");
    // Also when the job has moved on since: the first reply.
    w.work();
    assert_eq!(ask("Please.").expect("the same"), first);
    refused(ask("Please!"), "call_id_reused");
    assert_eq!(w.jobs(&team).len(), 2);
}

fn a_request_to_oneself_is_refused(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let refusal = refused(w.try_tell(&team, 0, 0, "x"), "request_to_self");
    assert_eq!(refusal.field.as_deref(), Some("member"));
    assert!(w.jobs(&team).is_empty());
}

fn a_descendant_conversation_speaks_for_its_member(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let arguments = json!({"team_id": team.id, "member": "bo", "request_id": "x", "text": "Please."});
    let stranger = Caller { owner: "ann".into(), thread: Some("elsewhere".into()), ..Caller::default() };
    refused(w.tool(&stranger, "send_member", arguments.clone()), "team_not_found");
    refused(w.tool(&Caller::owner("ann"), "send_member", arguments.clone()), "team_not_found");
    let child = Caller { ancestors: vec!["between".into(), team.thread(0).into()], ..stranger };
    let reply = w.tool(&child, "send_member", arguments).expect("accepted");
    let job = w.job(&team, reply["job_id"].as_str().expect("id"));
    assert_eq!(job["requester"]["member"], "ada");
    assert_eq!(job["requester"]["thread"], team.thread(0));
}
