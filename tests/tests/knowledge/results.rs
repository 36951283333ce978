//! The owner's search over what was asked for and what came of it.

use agent_teams_plugin::app::Caller;
use agent_teams_plugin::domain::limits;
use agent_teams_tests::double::Turn;
use agent_teams_tests::native::Cost;
use serde_json::{Value, json};

use crate::desk::{Desk, Team, act, awkward, bytes, text};

fn results(desk: &Desk, team: &Team, mut filters: Value) -> Value {
    filters["team_id"] = json!(team.id);
    desk.action(team.owner, "results", &filters).expect("reads")
}

fn ids(page: &Value) -> Vec<String> {
    page["results"].as_array().expect("results").iter().map(|r| text(&r["job_id"])).collect()
}

#[test]
fn requests_of_every_state_are_found_by_their_text_and_by_their_end() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    desk.double.script(
        team.thread(0),
        [
            Turn::answer("Straße: 100% \"quoted\" 数据保护"),
            Turn::Fail("the endpoint broke".into()),
            Turn::ask("Which?"),
        ],
    );
    let done = desk.send(&team, 0, "r1", "collect snake_case evidence");
    let failed = desk.send(&team, 0, "r2", "try it");
    let waits = desk.send(&team, 0, "r3", "ask a person");
    let queued = desk.send(&team, 0, "r4", "still to come");
    let cancelled = desk.send(&team, 1, "r5", "never mind");
    desk.action("ann", "cancel", &json!({"team_id": team.id, "job_id": cancelled})).expect("cancels");
    desk.work();
    for (query, job, place) in [
        ("SNAKE_CASE", &done, "request"),
        ("STRASSE", &done, "result"),
        ("100%", &done, "result"),
        ("\"QUOTED\"", &done, "result"),
        ("数据", &done, "result"),
        ("endpoint", &failed, "error"),
        ("ask a", &waits, "request"),
        ("to come", &queued, "request"),
        ("never", &cancelled, "request"),
    ] {
        let found = results(&desk, &team, json!({"query": query}));
        assert_eq!(ids(&found), std::slice::from_ref(job), "{query}");
        assert_eq!(found["results"][0]["found"][0]["in"], place, "{query}");
    }
    for query in ["snake*case", "_ase", "nowhere", "Which?"] {
        assert_eq!(ids(&results(&desk, &team, json!({"query": query}))), [""; 0], "{query}");
    }
    // What stands around a find, in the text's own case.
    let found = &results(&desk, &team, json!({"query": "STRASSE"}))["results"][0]["found"][0];
    assert_eq!(found, &json!({"in": "result", "before": "", "text": "Straße", "after": ": 100% \"quoted\" 数据保护"}));
    let by = |status: &str| ids(&results(&desk, &team, json!({"status": status})));
    assert_eq!(by("open"), [queued.clone(), waits.clone()]);
    assert_eq!(
        (by("completed"), by("failed"), by("cancelled")),
        (vec![done.clone()], vec![failed.clone()], vec![cancelled.clone()])
    );
    assert_eq!(ids(&results(&desk, &team, json!({"member_id": "Bo"}))), [cancelled]);
    assert_eq!(ids(&results(&desk, &team, json!({}))).len(), 5);
    assert_eq!(results(&desk, &team, json!({}))["results"][0]["found"], json!([]));
}

#[test]
fn a_receipt_is_found_by_its_answer_and_not_by_what_it_delivers() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let args = json!({"member": "Bo", "request_id": "h", "text": "collect the facts"});
    desk.double.script(team.thread(1), [Turn::answer("a rare fact")]);
    desk.double.script(team.thread(0), [Turn::answer("noted with thanks")]);
    desk.member(&team, 0, "send_member", args).expect("asks Bo");
    desk.work();
    let fact = results(&desk, &team, json!({"query": "rare fact"}));
    assert_eq!(fact["results"].as_array().map(Vec::len), Some(1));
    assert_eq!((&fact["results"][0]["kind"], &fact["results"][0]["member"]), (&json!("request"), &json!("Bo")));
    let thanks = results(&desk, &team, json!({"query": "noted"}));
    assert_eq!((&thanks["results"][0]["kind"], &thanks["results"][0]["member"]), (&json!("receipt"), &json!("Ada")));
}

#[test]
fn pages_cover_everything_once_and_an_unchanged_team_says_only_that() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    for kind in 0..9 {
        desk.double.set_default(Turn::answer(awkward(kind, 5_000)));
        for n in 0..10 {
            desk.send(&team, n % 2, &format!("r{kind}-{n}"), &format!("find me {}", awkward(kind, 1_200)));
        }
        desk.work();
    }
    for limit in [1, 7, 20] {
        let mut filters = json!({"query": "find me", "limit": limit});
        let mut seen = Vec::new();
        loop {
            let page = results(&desk, &team, filters.clone());
            assert!(bytes(&page) <= limits::PAGE_BYTES, "{}", bytes(&page));
            seen.extend(ids(&page));
            match page.get("next_cursor") {
                Some(cursor) => filters["cursor"] = cursor.clone(),
                None => break,
            }
        }
        let mut once = seen.clone();
        once.sort();
        once.dedup();
        assert_eq!((seen.len(), once.len()), (90, 90));
    }
    let page = results(&desk, &team, json!({"query": "find me"}));
    let same = json!({"unchanged": true, "revision": page["revision"]});
    assert_eq!(results(&desk, &team, json!({"query": "find me", "revision": page["revision"]})), same);
    let mut history = json!({"team_id": team.id, "query": "find me"});
    let read = desk.action("ann", "history", &history).expect("reads");
    assert_eq!(read["revision"], page["revision"]);
    history["revision"] = read["revision"].clone();
    assert_eq!(desk.action("ann", "history", &history).expect("reads"), same);
    desk.send(&team, 0, "one more", "find me too");
    let changed = results(&desk, &team, json!({"query": "find me", "revision": page["revision"]}));
    assert_eq!(changed["results"][0]["request"]["text"], "find me too");
    assert!(desk.action("ann", "history", &history).expect("reads")["messages"].is_array());
    // A cursor is for its filters and for this list.
    let cursor = page["next_cursor"].clone();
    for wrong in [json!({"query": "find"}), json!({"query": "find me", "status": "failed"})] {
        let mut wrong = wrong;
        wrong["team_id"] = json!(team.id);
        wrong["cursor"] = cursor.clone();
        assert_eq!(desk.action("ann", "results", &wrong).expect_err("another list").code, "bad_cursor");
    }
    let other = json!({"team_id": team.id, "query": "find me", "cursor": cursor});
    assert_eq!(desk.action("ann", "history", &other).expect_err("another list").code, "bad_cursor");
}

#[test]
fn a_list_costs_the_same_whatever_the_teams_have_done_and_wait_for() {
    let desk = Desk::default();
    let teams: Vec<Team> = (0..3).map(|n| desk.team("ann", &format!("t{n}"), &["Ada", "Bo"])).collect();
    let cost = || {
        let counted = Cost::default();
        let caller = Caller { owner: "ann".into(), ..Caller::default() };
        let listed = act(&counted.count(&desk.host), &caller, None, "list", &json!({})).expect("lists");
        let mut waiting: Vec<u64> =
            listed["teams"].as_array().expect("teams").iter().filter_map(|t| t["waiting"].as_u64()).collect();
        // Teams of the same millisecond have no order of their own.
        waiting.sort_unstable();
        (counted.so_far().0, waiting)
    };
    let (before, none) = cost();
    assert_eq!(none, [0, 0, 0]);
    for team in &teams[..2] {
        desk.double.script(team.thread(0), [Turn::answer("done"), Turn::ask("Which?")]);
        for n in 0..30 {
            desk.send(team, 0, &format!("r{n}"), "work");
        }
    }
    desk.work();
    let (after, waiting) = cost();
    assert_eq!(waiting, [0, 1, 1], "the one that asks; those behind it need no person");
    assert_eq!(after, before);
}
