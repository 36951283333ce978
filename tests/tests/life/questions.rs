//! Clarifications and interrupts: a job waits, a person answers, the turn goes
//! on.

use agent_teams_host::contract::EndedRun;
use agent_teams_tests::both;
use agent_teams_tests::double::{Call, Effect, Method, Turn};
use agent_teams_tests::harness::{Team, World, invalid, refused};
use serde_json::{Value, json};

both!(
    lifecycle_3_an_interrupt_waits_for_a_person_and_holds_its_conversation,
    lifecycle_3_where_an_interrupted_run_ends_as_success,
    lifecycle_4_exactly_the_given_json_is_resumed_then_the_queue_moves_on,
    lifecycle_5_a_clarification_waits_without_a_receipt_and_its_answer_names_it,
    lifecycle_6_two_rounds_of_questions_with_a_restart_between,
    lifecycle_7_a_lost_acknowledgement_and_a_rewritten_message,
    lifecycle_7_an_answer_that_never_arrived_is_sent_again_with_the_same_bytes,
    lifecycle_7_an_interrupt_after_a_rewritten_message_is_still_attributed,
    lifecycle_8_somebody_typed_while_it_waited,
    lifecycle_8_a_question_that_was_answered_elsewhere_says_so,
    lifecycle_8_somebody_typed_while_the_answer_was_queued,
    lifecycle_8_somebody_typed_while_the_request_was_queued,
    an_interrupt_that_was_replaced_is_not_answered,
    lifecycle_22_responses_at_their_bounds,
    fault_8_the_receipt_of_a_request_that_asked_is_clean,
    apr_3_each_answer_reaches_its_own_asker,
    several_interrupts_take_a_map_of_their_ids,
    an_answer_that_names_another_question_is_refused,
    a_repeated_answer_is_the_same_answer,
    an_answer_that_waits_for_a_slot_holds_none,
    an_answer_without_a_waiting_job_is_refused,
);

fn calls(w: &World, method: Method) -> Vec<Call> {
    w.double.calls().into_iter().filter(|c| c.method == method).collect()
}

/// A job of member 0 that waits after this turn.
fn waiting(w: &World, turn: Turn) -> (Team, String) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.script(team.thread(0), [turn]);
    let job = w.send(&team, 0, "r");
    w.work();
    assert_eq!(w.status(&team, &job), "waiting_input");
    (team, job)
}

fn lifecycle_3_an_interrupt_waits_for_a_person_and_holds_its_conversation(w: World) {
    let (team, job) = waiting(&w, Turn::interrupt("i1", r#"{"tool":"delete","path":"tmp/a"}"#));
    let next = w.send(&team, 0, "next");
    assert!(w.slots().is_empty());
    for _ in 0..10 {
        w.clock.advance(3_600_000);
        w.sweep();
        w.work();
    }
    let shown = w.job(&team, &job);
    assert_eq!(shown["status"], "waiting_input");
    assert_eq!(shown["reason"]["code"], "waiting_for_answer");
    assert_eq!(shown["interrupts"][0]["id"], "i1");
    assert_eq!(shown["interrupts"][0]["value"], json!({"tool": "delete", "path": "tmp/a"}));
    assert_eq!(w.status(&team, &next), "queued");
    assert_eq!(w.runs(&team, 0), 1);
    assert_eq!(w.double.count(Method::Resume, None), 0);
}

fn lifecycle_3_where_an_interrupted_run_ends_as_success(w: World) {
    w.double.interrupts_succeed(true);
    let (team, job) = waiting(&w, Turn::interrupt("i1", "{}"));
    assert!(w.receipts(&team).is_empty());
    w.answer(&team, &job, "a", json!(true)).expect("accepted");
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
}

fn lifecycle_4_exactly_the_given_json_is_resumed_then_the_queue_moves_on(w: World) {
    let (team, job) = waiting(&w, Turn::interrupt("i1", "{}"));
    let next = w.send(&team, 0, "next");
    w.double.fault(Method::Resume, None, 1, Effect::reply_lost());
    let answered = w.answer(&team, &job, "a", json!({"approved": false})).expect("accepted");
    assert_eq!(answered["status"], "resuming");
    w.work();
    w.later(60_000);
    // The key is looked up, and found.
    let (resumes, finds) = (calls(&w, Method::Resume), calls(&w, Method::Find));
    assert_eq!((resumes.len(), finds.len()), (1, 1));
    assert_eq!(resumes[0].key, finds[0].key);
    assert_eq!(w.double.admissions_in(team.thread(0))[1].text, r#"{"approved":false}"#);
    w.later(60_000);
    assert_eq!(w.status(&team, &job), "completed");
    assert_eq!(w.status(&team, &next), "completed");
    assert_eq!(w.runs(&team, 0), 3);
    assert!(w.double.violations().is_empty(), "{:?}", w.double.violations());
}

fn lifecycle_5_a_clarification_waits_without_a_receipt_and_its_answer_names_it(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.send(&team, 0, "start");
    w.work();
    let job = w.tell(&team, 0, 1, "ask");
    w.work();
    let run = w.double.running_in(team.thread(1)).expect("at work");
    w.double.finish(&run, Turn::Ask("Which colour?".into(), vec!["red".into(), "blue".into()]));
    w.work();
    let shown = w.job(&team, &job);
    assert_eq!(shown["status"], "waiting_input");
    assert_eq!(shown["question"]["text"], "Which colour?");
    assert_eq!(shown["question"]["options"], json!(["red", "blue"]));
    assert!(w.receipts(&team).is_empty());
    invalid(w.answer(&team, &job, "a", json!({"colour": "blue"})), "response_not_text", "response");
    w.answer(&team, &job, "a", json!("blue")).expect("accepted");
    w.work();
    let start = w.double.calls().into_iter().rev().find(|c| c.method == Method::Start).expect("a start");
    let question = shown["question"]["id"].as_str().expect("id");
    assert!(start.input.expect("input").contains(&format!("answers: Some(\"{question}\")")));
    assert_eq!(w.double.last_input(team.thread(1)), "blue");
    w.double.hold(false);
    w.double.release_all();
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
    assert_eq!(w.receipts(&team).len(), 1);
}

fn lifecycle_6_two_rounds_of_questions_with_a_restart_between(mut w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.send(&team, 0, "start");
    w.work();
    let job = w.tell(&team, 0, 1, "ask");
    w.double.hold(false);
    w.double.script(team.thread(1), [Turn::ask("First?"), Turn::ask("Second?"), Turn::answer("7 and blue")]);
    w.double.release_all();
    w.work();
    w.answer(&team, &job, "a1", json!("7")).expect("accepted");
    w.restart();
    w.connect(&team).expect("connected");
    w.work();
    assert_eq!(w.job(&team, &job)["question"]["text"], "Second?");
    w.restart();
    w.connect(&team).expect("connected");
    w.answer(&team, &job, "a2", json!("blue")).expect("accepted");
    w.work();
    let turns: Vec<String> = w.double.admissions_in(team.thread(1)).into_iter().map(|a| a.text).collect();
    assert_eq!(turns[1..], ["7", "blue"]);
    assert_eq!(w.job(&team, &job)["result"]["text"], "7 and blue");
    assert_eq!(w.receipts(&team).len(), 1);
}

fn lifecycle_7_a_lost_acknowledgement_and_a_rewritten_message(mut w: World) {
    w.double.rewrite_messages(true);
    let (team, job) = waiting(&w, Turn::ask("Which?"));
    w.double.script(team.thread(0), [Turn::answer("blue it is")]);
    w.double.hold(true);
    w.answer(&team, &job, "a", json!("blue")).expect("accepted");
    w.double.fault(Method::Start, None, 1, Effect::reply_lost());
    w.work();
    assert_eq!(w.status(&team, &job), "resuming");
    w.restart();
    w.connect(&team).expect("connected");
    w.double.release_all();
    w.later(60_000);
    let (starts, finds) = (calls(&w, Method::Start), calls(&w, Method::Find));
    assert_eq!(starts.len(), 2, "no second turn");
    assert!(!finds.is_empty() && finds.iter().all(|find| find.key == starts[1].key));
    assert_eq!(w.runs(&team, 0), 2);
    let shown = w.job(&team, &job);
    assert_eq!((&shown["status"], &shown["result"]["text"]), (&json!("completed"), &json!("blue it is")));
}

fn lifecycle_7_an_answer_that_never_arrived_is_sent_again_with_the_same_bytes(mut w: World) {
    for (turn, response, method) in [
        (Turn::ask("Which?"), json!("blue"), Method::Start),
        (Turn::interrupt("i1", "{}"), json!({"approved": true}), Method::Resume),
    ] {
        let (team, job) = waiting(&w, turn);
        let before = calls(&w, method).len();
        w.double.fault(method, None, 2, Effect::timed_out());
        w.answer(&team, &job, "a", response).expect("accepted");
        w.work();
        w.restart();
        w.connect(&team).expect("connected");
        w.later(60_000);
        w.later(60_000);
        let sent = calls(&w, method).split_off(before);
        assert_eq!(sent.len(), 3);
        assert!(sent.iter().all(|s| (&s.key, &s.input) == (&sent[0].key, &sent[0].input)));
        assert_eq!((w.status(&team, &job).as_str(), w.runs(&team, 0)), ("completed", 2));
        w.delete(&team).expect("deleted");
    }
}

fn lifecycle_7_an_interrupt_after_a_rewritten_message_is_still_attributed(w: World) {
    w.double.rewrite_messages(true);
    let (team, job) = waiting(&w, Turn::interrupt("i1", "{}"));
    w.double.script(team.thread(0), [Turn::ask("And?"), Turn::interrupt("i2", "{}"), Turn::answer("done so")]);
    w.answer(&team, &job, "a1", json!(true)).expect("accepted");
    w.work();
    w.answer(&team, &job, "a2", json!("well")).expect("accepted");
    w.work();
    w.answer(&team, &job, "a3", json!(true)).expect("accepted");
    w.work();
    let shown = w.job(&team, &job);
    assert_eq!((&shown["status"], &shown["result"]["text"]), (&json!("completed"), &json!("done so")), "{shown}");
}

fn lifecycle_8_somebody_typed_while_it_waited(w: World) {
    let (team, job) = waiting(&w, Turn::ask("Which?"));
    w.double.type_message(team.thread(0), "Never mind.");
    refused(w.answer(&team, &job, "a", json!("blue")), "clarification_changed");
    assert_eq!(w.status(&team, &job), "waiting_input");
    w.work();
    assert_eq!(w.runs(&team, 0), 1);
    w.cancel(&team, &job).expect("cancelled");
}

fn lifecycle_8_a_question_that_was_answered_elsewhere_says_so(mut w: World) {
    let (team, job) = waiting(&w, Turn::ask("Which?"));
    assert_eq!(w.reason(&team, &job), "waiting_for_answer");
    w.double.type_message(team.thread(0), "Blue.");
    // A run that the team did not start ends in this conversation.
    let direct = EndedRun { owner: "ann".into(), thread: team.thread(0).into(), run: "direct".into() };
    let look = |w: &World, ended: Vec<EndedRun>| {
        for step in w.plan(ended, false).steps {
            w.advance(&step).expect("a step");
        }
    };
    look(&w, vec![direct]);
    assert_eq!(
        (w.status(&team, &job).as_str(), w.reason(&team, &job).as_str()),
        ("waiting_input", "clarification_changed")
    );
    refused(w.answer(&team, &job, "a", json!("blue")), "clarification_changed");
    assert!(w.slots().is_empty());
    w.cancel(&team, &job).expect("cancelled");

    // What happened while nobody was connected was announced to nobody.
    w.double.script(team.thread(1), [Turn::ask("Which?")]);
    let other = w.send(&team, 1, "other");
    w.work();
    w.restart();
    w.connect(&team).expect("connected");
    look(&w, Vec::new());
    assert_eq!(w.reason(&team, &other), "waiting_for_answer", "it is still asked");
    w.double.type_message(team.thread(1), "Red.");
    w.restart();
    w.connect(&team).expect("connected");
    look(&w, Vec::new());
    assert_eq!(w.reason(&team, &other), "clarification_changed");
}

fn lifecycle_8_somebody_typed_while_the_answer_was_queued(w: World) {
    let (team, job) = waiting(&w, Turn::ask("Which?"));
    w.answer(&team, &job, "a", json!("blue")).expect("accepted");
    w.double.type_message(team.thread(0), "Never mind.");
    w.work();
    let shown = w.job(&team, &job);
    assert_eq!(shown["status"], "failed");
    assert_eq!(shown["error"]["code"], "clarification_changed");
    assert_eq!(w.runs(&team, 0), 1);
    assert!(w.slots().is_empty());
}

fn lifecycle_8_somebody_typed_while_the_request_was_queued(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.double.type_message(team.thread(0), "By the way.");
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
}

fn an_interrupt_that_was_replaced_is_not_answered(w: World) {
    let (team, job) = waiting(&w, Turn::interrupt("i1", r#"{"path":"tmp/a"}"#));
    // Answered in the conversation itself; another one with the same id opens.
    w.double.answer_outside(team.thread(0));
    w.double.open_interrupt(team.thread(0), "i1", r#"{"path":"src"}"#);
    refused(w.answer(&team, &job, "a", json!(true)), "clarification_changed");
    w.work();
    assert_eq!(w.double.count(Method::Resume, None), 0);
}

fn lifecycle_22_responses_at_their_bounds(w: World) {
    let texts = |size: usize| {
        let mut all = vec!["é".repeat(size / 2) + &"x".repeat(size % 2)];
        if size == 8_000 {
            all.push("\"".repeat(4_000));
            all.push("\n".repeat(3_999) + "a");
        }
        all
    };
    let mut n = 0;
    let mut try_one = |turn: Turn, response: Value, fits: bool| {
        n += 1;
        let owner = format!("owner-{n}");
        let team = w.team(&owner, &["ada", "bo"]);
        w.double.script(team.thread(0), [turn]);
        let job = w.send(&team, 0, "r");
        w.work();
        let answer = w.answer(&team, &job, "a", response);
        if fits {
            assert!(answer.is_ok(), "{answer:?}");
        } else {
            invalid(answer, "too_long", "response");
            assert_eq!(w.status(&team, &job), "waiting_input");
        }
    };
    for size in [7_999, 8_000, 8_001] {
        let fits = size <= 8_000;
        for text in texts(size) {
            // A clarification counts characters too.
            try_one(Turn::ask("?"), json!(text.clone()), fits && text.chars().count() <= 4_000);
            try_one(Turn::interrupt("i", "{}"), json!(text), fits);
        }
        try_one(Turn::interrupt("i", "{}"), json!("\"".repeat(size)), fits);
        // {"a":"…"} takes eight bytes around its text.
        let object = |text: String| json!({ "a": text });
        assert_eq!(object(String::new()).to_string().len(), 8);
        try_one(Turn::interrupt("i", "{}"), object("x".repeat(size - 8)), fits);
        try_one(Turn::interrupt("i", "{}"), object("\"".repeat((size - 8) / 2) + &"x".repeat(size % 2)), fits);
    }
}

fn fault_8_the_receipt_of_a_request_that_asked_is_clean(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    w.send(&team, 0, "start");
    w.work();
    let job = w.tell(&team, 0, 1, "ask");
    w.double.hold(false);
    w.double.script(team.thread(1), [Turn::ask("Which?")]);
    w.double.release_all();
    w.work();
    w.answer(&team, &job, "a", json!("blue")).expect("accepted");
    w.work();
    let receipts = w.receipts(&team);
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0]["status"], "completed");
    assert_eq!(receipts[0]["error"], Value::Null);
    assert_eq!(receipts[0]["question"], Value::Null);
}

fn apr_3_each_answer_reaches_its_own_asker(mut w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.script(team.thread(0), [Turn::ask("Q1?")]);
    w.double.script(team.thread(1), [Turn::ask("Q2?")]);
    let (one, two) = (w.send(&team, 0, "r1"), w.send(&team, 1, "r2"));
    w.work();
    w.answer(&team, &two, "a", json!("blue")).expect("accepted");
    w.restart();
    w.connect(&team).expect("connected");
    w.answer(&team, &one, "a", json!("7")).expect("accepted");
    w.work();
    assert_eq!(w.double.last_input(team.thread(0)), "7");
    assert_eq!(w.double.last_input(team.thread(1)), "blue");
    assert_eq!((w.runs(&team, 0), w.runs(&team, 1)), (2, 2));
}

fn several_interrupts_take_a_map_of_their_ids(w: World) {
    let open = vec![("i1".into(), "{}".into()), ("i2".into(), "{}".into())];
    let (team, job) = waiting(&w, Turn::Interrupt(open));
    let refusal = refused(w.answer(&team, &job, "a", json!({"i1": true})), "response_incomplete");
    assert_eq!(refusal.field.as_deref(), Some("response.i2"));
    w.answer(&team, &job, "a", json!({"i1": true, "i2": {"no": 1}})).expect("accepted");
    w.work();
    assert_eq!(w.double.admissions_in(team.thread(0))[1].text, "true\n{\"no\":1}");
    assert_eq!(w.status(&team, &job), "completed");
}

fn an_answer_that_names_another_question_is_refused(w: World) {
    let (team, job) = waiting(&w, Turn::ask("First?"));
    w.double.script(team.thread(0), [Turn::ask("Second?")]);
    let first = w.job(&team, &job)["question"]["id"].clone();
    w.answer(&team, &job, "a1", json!("7")).expect("accepted");
    w.work();
    // A page that still shows the first question answers it again.
    let late = json!({
        "team_id": team.id, "job_id": job, "request_id": "a2", "question_id": first, "response": "meant for the first",
    });
    let refusal = w.action("ann", "resume", late).expect_err("another question is open");
    assert_eq!((refusal.code.as_ref(), refusal.field.as_deref()), ("question_not_open", Some("question_id")));
    let open = w.job(&team, &job)["question"].clone();
    assert_eq!((&open["text"], refusal.detail), (&json!("Second?"), Some(json!({"open": [open["id"]]}))));
}

fn a_repeated_answer_is_the_same_answer(w: World) {
    let (team, job) = waiting(&w, Turn::interrupt("i1", "{}"));
    w.answer(&team, &job, "a", json!({"approved": true})).expect("accepted");
    w.answer(&team, &job, "a", json!({"approved": true})).expect("the same");
    refused(w.answer(&team, &job, "a", json!({"approved": false})), "request_id_reused");
    let lost = refused(w.answer(&team, &job, "b", json!({"approved": false})), "not_waiting");
    assert!(lost.message.contains("{\"approved\":true"), "it says what was answered first: {lost:?}");
    w.work();
    // Also when all is over.
    assert_eq!(w.answer(&team, &job, "a", json!({"approved": true})).expect("the same")["status"], "completed");
    refused(w.answer(&team, &job, "a", json!(1)), "request_id_reused");
    assert_eq!(w.double.count(Method::Resume, None), 1);
}

fn an_answer_that_waits_for_a_slot_holds_none(mut w: World) {
    w.restart_with(r#"{"slots": 1}"#);
    let (team, job) = waiting(&w, Turn::ask("Which?"));
    w.double.hold(true);
    w.send(&team, 1, "other");
    w.work();
    w.answer(&team, &job, "a", json!("blue")).expect("accepted");
    w.work();
    let shown = w.job(&team, &job);
    assert_eq!(shown["status"], "resuming");
    assert_eq!(shown["reason"]["code"], "waiting_for_slot");
    assert_eq!(w.slots().len(), 1);
    // Cancelling an answer that was not sent admits nothing.
    assert_eq!(w.cancel(&team, &job).expect("cancelled")["status"], "cancelled");
    w.work();
    assert_eq!(w.runs(&team, 0), 1);
}

fn an_answer_without_a_waiting_job_is_refused(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    refused(w.answer(&team, &job, "a", json!("x")), "not_waiting");
    w.work();
    refused(w.answer(&team, &job, "a", json!("x")), "not_waiting");
    refused(w.answer(&team, "job-0", "a", json!("x")), "job_not_found");
}
