//! History and results: pages, filters, cursors, provenance.
//!
//! | sentence of the specification | test |
//! |---|---|
//! | history pages through retained messages, newest first | `pag_1_pages_cover_everything_once_newest_first` |
//! | filters apply before pagination | `filters_apply_before_pagination` |
//! | the record retains at most 100 messages | `an_anchor_that_left_the_record_is_an_expired_cursor` |
//! | results: finished requests by the same filters, task and answer searched | `results_search_task_and_answer_literally` |
//! | newest-first by creation; completed, failed, cancelled; no receipts | `results_list_every_end_and_no_receipts` |
//! | a result by its job: member, requester, status, parent, times, conversation | `a_result_names_where_it_came_from` |
//! | available after leaving the context and the record | `a_result_outlives_the_record_and_a_restart` |
//! | reads work after restart without reconnect or runs | same |
//! | only current member conversations | `isolation` |
//! | eight by default, 1 to 20 | `page_sizes_have_bounds` |
//! | the same tool and filters; page size may change | `a_cursor_is_for_its_tool_team_owner_and_filters` |
//! | newer arrivals do not shift a page | `cursors_cover_all_records_once_while_new_ones_arrive` |
//! | newly completed older requests may appear on later pages | `a_request_that_ends_late_appears_on_a_later_page` |
//! | `cursor_expired` | `an_anchor_that_left_the_record_is_an_expired_cursor` |
//! | 24,000 bytes of JSON with escapes | `pages_stay_within_their_bytes` |
//! | 500-byte excerpts, 6,000-byte texts | `uni_1_excerpts_end_on_a_character_with_a_mark` |
//! | truncation provenance; availability | `results_say_whether_and_why_there_is_no_answer`, `import_legacy` |
//! | cancelled requests have no answer; their notices stay | `results_list_every_end_and_no_receipts` |

use agent_teams_plugin::app::Caller;
use agent_teams_plugin::domain::limits;
use agent_teams_tests::double::Turn;
use agent_teams_tests::native::Cost;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::desk::{Desk, Team, awkward, bytes, text, use_tool};

fn ids(reply: &Value, list: &str) -> Vec<String> {
    reply[list].as_array().expect("a list").iter().map(|m| text(&m["job_id"])).collect()
}

/// All pages of a list, each checked against its bounds.
fn all(desk: &Desk, team: &Team, tool: &str, list: &str, filters: &Value, limit: u32) -> Vec<Value> {
    let mut out = Vec::new();
    let mut args = filters.clone();
    args["limit"] = json!(limit);
    loop {
        let page = desk.member(team, 0, tool, args.clone()).expect("reads");
        assert!(bytes(&page) <= limits::PAGE_BYTES, "{}", bytes(&page));
        let records = page[list].as_array().expect("a list").clone();
        assert!(records.len() <= limit as usize);
        out.extend(records);
        match page.get("next_cursor") {
            Some(cursor) => args["cursor"] = cursor.clone(),
            None => return out,
        }
    }
}

#[test]
fn pag_1_pages_cover_everything_once_newest_first() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    // The clock stands still: all carry the same millisecond.
    let mut sent: Vec<String> = (0..100).map(|n| desk.send(&team, n % 2, &format!("r{n}"), "work")).collect();
    sent.reverse();
    for limit in [1, 7, 20] {
        let got = all(&desk, &team, "read_team_history", "messages", &json!({}), limit);
        assert_eq!(got.iter().map(|m| text(&m["job_id"])).collect::<Vec<_>>(), sent, "{limit}");
    }
    // Back to the first page: the same as before.
    let first = desk.member(&team, 0, "read_team_history", json!({"limit": 20})).expect("reads");
    assert_eq!(ids(&first, "messages"), sent[..20]);
    desk.work();
    let got = all(&desk, &team, "search_team_results", "results", &json!({}), 20);
    assert_eq!(got.iter().map(|m| text(&m["job_id"])).collect::<Vec<_>>(), sent);
}

#[test]
fn filters_apply_before_pagination() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let mut wanted = Vec::new();
    for n in 0..30 {
        let id =
            desk.send(&team, n % 2, &format!("r{n}"), &format!("task {}", if n % 10 == 1 { "needle" } else { "hay" }));
        if n % 10 == 1 {
            wanted.insert(0, id);
        }
    }
    desk.work();
    for (tool, list) in [("read_team_history", "messages"), ("search_team_results", "results")] {
        let filters = json!({"query": "NEEDLE"});
        let got: Vec<String> = all(&desk, &team, tool, list, &filters, 2).iter().map(|m| text(&m["job_id"])).collect();
        assert_eq!(got, wanted, "{tool}");
        for who in ["Bo", &team.members[1].0] {
            let got = all(&desk, &team, tool, list, &json!({"member_id": who, "query": "needle"}), 2);
            assert_eq!(got.len(), 3, "{tool} {who}");
        }
        assert!(all(&desk, &team, tool, list, &json!({"member_id": "Ada", "query": "needle"}), 2).is_empty());
        let one = all(&desk, &team, tool, list, &json!({"job_id": wanted[0]}), 20);
        assert!(!one.is_empty() && one.iter().all(|m| m["job_id"] == json!(wanted[0])), "{tool}");
        for (args, code) in [
            (json!({"job_id": "job-0"}), "job_not_found"),
            (json!({"member_id": "Nobody"}), "member_not_found"),
            (json!({"query": "x".repeat(201)}), "too_long"),
        ] {
            assert_eq!(desk.member(&team, 0, tool, args).expect_err("refused").code, code);
        }
    }
}

#[test]
fn a_cut_answer_is_said_to_be_cut_wherever_it_is_read() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    for (answer, cut) in [("a".repeat(6_000), false), ("b".repeat(7_000), true)] {
        desk.double.script(team.thread(1), [Turn::answer(&answer)]);
        let id = desk.send(&team, 1, &format!("r-{cut}"), "work");
        desk.work();
        let of = |read: &Value, list: &str| {
            let all = read[list].as_array().expect("messages").clone();
            let line = all.into_iter().find(|m| m["kind"] == "result" && m["job_id"] == json!(id));
            line.expect("its line")["truncated"].clone()
        };
        let read = desk.member(&team, 0, "read_team_history", json!({})).expect("reads");
        assert_eq!(of(&read, "messages"), json!(cut));
        let read = desk.action("ann", "history", &json!({"team_id": team.id})).expect("reads");
        assert_eq!(of(&read, "messages"), json!(cut));
        let read = desk.member(&team, 0, "read_team_context", json!({})).expect("reads");
        // Absent: it is whole.
        assert_eq!(of(&read, "recent_messages").as_bool().unwrap_or(false), cut);
    }
}

#[test]
fn results_search_task_and_answer_literally() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let texts = ["Le CAFÉ du coin", "没有空格的引用来源文本", "growth of 17%_ net", "say \"bar OR foo\"", "a * b"];
    let mut tasks = Vec::new();
    let mut answers = Vec::new();
    for (i, body) in texts.iter().enumerate() {
        tasks.push(desk.send(&team, 0, &format!("t{i}"), body));
        answers.push(desk.send(&team, 1, &format!("a{i}"), "plain"));
    }
    desk.double.script(team.thread(1), texts.map(Turn::answer));
    desk.double.set_default(Turn::answer("plain"));
    desk.work();
    for (query, i) in [("café", 0), ("引用", 1), ("17%_", 2), ("\"bar OR", 3), ("*", 4)] {
        let found = desk.member(&team, 0, "search_team_results", json!({"query": query})).expect("reads");
        assert_eq!(ids(&found, "results"), [answers[i].clone(), tasks[i].clone()], "{query}");
        let found = desk.member(&team, 0, "read_team_history", json!({"query": query})).expect("reads");
        assert_eq!(ids(&found, "messages").len(), 2, "{query}");
        let found = desk.action("ann", "history", &json!({"team_id": team.id, "query": query})).expect("reads");
        assert_eq!(ids(&found, "messages").len(), 2, "{query}");
    }
    for none in ["17_%", "% ", "bar AND foo", "引 用"] {
        let found = desk.member(&team, 0, "search_team_results", json!({"query": none})).expect("reads");
        let expected = usize::from(none == "% ");
        assert_eq!(ids(&found, "results").len(), expected * 2, "{none}");
    }
}

#[test]
fn sec_5_teams_of_equal_names_never_meet() {
    let desk = Desk::default();
    let mine = desk.team("u1", "core", &["ada", "bo"]);
    let yours = desk.team("u2", "core", &["ada", "bo"]);
    for (team, word) in [(&mine, "apple"), (&yours, "pear")] {
        desk.send(team, 0, "r1", &format!("shared {word}"));
        let args = json!({"request_id": "plan", "kind": "plan", "title": "plan", "content": word});
        desk.member(team, 0, "publish_team_state", args).expect("publishes");
    }
    desk.work();
    for (team, word) in [(&mine, "apple"), (&yours, "pear")] {
        let found = desk.member(team, 0, "search_team_results", json!({"query": "shared"})).expect("reads");
        assert_eq!(found["results"].as_array().map(Vec::len), Some(1));
        assert_eq!(found["results"][0]["request"]["text"], format!("shared {word}"));
        let state = desk.member(team, 1, "read_team_state", json!({})).expect("reads");
        assert_eq!(
            (&state["entries"][0]["content"], state["entries"].as_array().map(Vec::len)),
            (&json!(word), Some(1))
        );
        let hits = desk.action(team.owner, "search", &json!({"query": "ada"})).expect("reads");
        assert_eq!(hits["hits"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn results_list_every_end_and_no_receipts() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    desk.double.script(team.thread(0), [Turn::answer("good"), Turn::Fail("broke".into())]);
    let good = desk.send(&team, 0, "r1", "one");
    let bad = desk.send(&team, 0, "r2", "two");
    let gone = desk.send(&team, 0, "r3", "three");
    desk.action("ann", "cancel", &json!({"team_id": team.id, "job_id": gone})).expect("cancels");
    desk.work();
    let asked = desk.member(&team, 1, "send_member", json!({"member": "Ada", "request_id": "h", "text": "x"}));
    let asked = text(&asked.expect("asks")["job_id"]);
    desk.double.set_default(Turn::answer("for Bo"));
    desk.work();
    let open = {
        desk.double.hold(true);
        let open = desk.send(&team, 0, "r4", "open");
        desk.work();
        open
    };
    let found = desk.member(&team, 0, "search_team_results", json!({})).expect("reads");
    assert_eq!(ids(&found, "results"), [asked.clone(), gone.clone(), bad.clone(), good]);
    let statuses: Vec<&Value> = found["results"].as_array().expect("list").iter().map(|r| &r["status"]).collect();
    assert_eq!(statuses, [&json!("completed"), &json!("cancelled"), &json!("failed"), &json!("completed")]);
    let read = |id: &str| desk.member(&team, 1, "read_team_result", json!({"job_id": id})).expect("reads");
    assert_eq!(read(&gone)["result"]["available"], false);
    assert_eq!(read(&gone)["result"]["reason"], "cancelled");
    assert_eq!(
        (&read(&bad)["result"]["reason"], &read(&bad)["error"]["code"]),
        (&json!("failed"), &json!("run_failed"))
    );
    assert!(!read(&bad)["conversation"]["run_id"].is_null(), "the failed run is named");
    assert_eq!(read(&open)["result"]["reason"], "unfinished");
    // The receipt can be read, though it is not listed.
    let feed = desk.action("ann", "get", &json!({"team_id": team.id, "limit": 200})).expect("reads");
    let receipt = feed["jobs"].as_array().expect("jobs").iter().find(|j| j["kind"] == "receipt").expect("a receipt");
    let receipt = read(&text(&receipt["id"]));
    assert_eq!((&receipt["kind"], &receipt["parent_id"]), (&json!("receipt"), &json!(asked)));
    // The cancellation's notice stays in the shared record.
    let notices = desk.member(&team, 0, "read_team_history", json!({"job_id": gone})).expect("reads");
    assert_eq!(notices["messages"][0]["kind"], "notice");
}

#[test]
fn a_result_names_where_it_came_from() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    desk.double.hold(true);
    let root = desk.send(&team, 0, "r1", "work");
    desk.work();
    let run = desk.double.running_in(team.thread(0)).expect("runs");
    let caller = Caller {
        owner: "ann".into(),
        thread: Some(team.thread(0).into()),
        run: Some(run.clone()),
        ..Caller::default()
    };
    let args = json!({"team_id": team.id, "member": "Bo", "request_id": "h1", "text": "help me"});
    let job = text(&desk.tool_as(&caller, "send_member", &args).expect("asks")["job_id"]);
    desk.work();
    let helper = desk.double.running_in(team.thread(1)).expect("runs");
    desk.host.clock().advance(5_000);
    desk.double.finish(&helper, Turn::answer("helped"));
    desk.work();
    let read = desk.member(&team, 0, "read_team_result", json!({"job_id": job})).expect("reads");
    assert_eq!(
        (&read["member"], &read["status"], &read["kind"]),
        (&json!("Bo"), &json!("completed"), &json!("request"))
    );
    assert_eq!((&read["parent_id"], &read["root_id"]), (&json!(root), &json!(root)));
    assert_eq!(read["requester"]["member"], "Ada");
    assert_eq!(read["conversation"], json!({"thread": team.thread(1), "run_id": helper}));
    assert_eq!(read["request"], json!({"text": "help me", "truncated": false}));
    assert_eq!(
        read["result"],
        json!({"available": true, "text": "helped", "truncated": false, "stored_truncated": false})
    );
    assert!(
        read["created_at"].is_string()
            && read["completed_at"].is_string()
            && read["created_at"] != read["completed_at"]
    );
    assert!(read.to_string().len() < 2_000 && !read.to_string().contains("[Agent team request]"), "no inputs");
}

#[test]
fn a_result_outlives_the_record_and_a_restart() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    desk.double.script(team.thread(0), [Turn::answer("the old evidence")]);
    let old = desk.send(&team, 0, "old", "find it");
    desk.work();
    for n in 0..60 {
        desk.send(&team, 1, &format!("r{n}"), "later");
    }
    desk.work();
    let later = Desk { host: desk.host.restarted(), double: desk.double.clone() };
    let calls = later.double.calls().len();
    let gone = later.member(&team, 1, "read_team_history", json!({"query": "old evidence"})).expect("reads");
    assert_eq!(gone["messages"], json!([]));
    let found = later.member(&team, 1, "search_team_results", json!({"query": "OLD evidence"})).expect("reads");
    assert_eq!(ids(&found, "results"), [old.as_str()]);
    let read = later.member(&team, 1, "read_team_result", json!({"job_id": old})).expect("reads");
    assert_eq!(read["result"]["text"], "the old evidence");
    assert_eq!(later.double.calls().len(), calls, "no agent host was asked");
}

#[test]
fn page_sizes_have_bounds() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    for n in 0..25 {
        desk.send(&team, 0, &format!("r{n}"), "work");
    }
    desk.work();
    for (tool, list) in [("read_team_history", "messages"), ("search_team_results", "results")] {
        for (limit, expected) in [(json!(null), 8), (json!(1), 1), (json!(20), 20)] {
            let page = desk.member(&team, 0, tool, json!({"limit": limit})).expect("reads");
            assert_eq!(page[list].as_array().map(Vec::len), Some(expected));
        }
        for limit in [0, 21] {
            let refused = desk.member(&team, 0, tool, json!({"limit": limit})).expect_err("refused");
            assert_eq!((refused.code.as_ref(), refused.field.as_deref()), ("bad_limit", Some("limit")));
        }
    }
}

#[test]
fn a_cursor_is_for_its_tool_team_owner_and_filters() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let other = desk.team("ann", "next", &["Ada", "Bo"]);
    let theirs = desk.team("bob", "core", &["Ada", "Bo"]);
    for team in [&team, &other, &theirs] {
        for n in 0..12 {
            desk.send(team, 0, &format!("r{n}"), "work");
        }
    }
    desk.work();
    let cursor = |tool: &str, args: Value| text(&desk.member(&team, 0, tool, args).expect("reads")["next_cursor"]);
    let mine = cursor("read_team_history", json!({}));
    let page = desk.member(&team, 0, "read_team_history", json!({"cursor": mine, "limit": 3})).expect("another size");
    assert_eq!(page["messages"].as_array().map(Vec::len), Some(3));
    desk.member(&team, 1, "read_team_history", json!({"cursor": mine})).expect("from another member");
    let results = cursor("search_team_results", json!({}));
    let filtered = cursor("read_team_history", json!({"query": "work"}));
    let feed =
        text(&desk.action("ann", "get", &json!({"team_id": team.id, "limit": 3})).expect("reads")["next_cursor"]);
    let page = desk.action("ann", "history", &json!({"team_id": team.id})).expect("reads");
    let owners = text(&page["next_cursor"]);
    let bad = |reply: crate::desk::Reply| {
        let refused = reply.expect_err("refused");
        assert_eq!((refused.code.as_ref(), refused.field.as_deref()), ("bad_cursor", Some("cursor")));
    };
    for wrong in [&results, &filtered, &feed, &owners, "x", &mine[1..], &mine.replace('0', "1").replace('a', "b")] {
        bad(desk.member(&team, 0, "read_team_history", json!({"cursor": wrong})));
    }
    bad(desk.member(&team, 0, "search_team_results", json!({"cursor": mine})));
    bad(desk.member(&team, 0, "read_team_history", json!({"cursor": filtered, "query": "works"})));
    bad(desk.member(&team, 0, "read_team_history", json!({"cursor": mine, "member_id": "Ada"})));
    bad(desk.member(&other, 0, "read_team_history", json!({"cursor": mine})));
    bad(desk.member(&theirs, 0, "read_team_history", json!({"cursor": mine})));
    bad(desk.action("ann", "history", &json!({"team_id": team.id, "cursor": mine})));
    bad(desk.action("ann", "get", &json!({"team_id": team.id, "cursor": mine})));
    // Nothing can be read off one: neither a number nor the order.
    assert!(mine.bytes().all(|b| b.is_ascii_hexdigit()));
    assert!(!mine.starts_with("0000"));
}

#[test]
fn an_anchor_that_left_the_record_is_an_expired_cursor() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    for n in 0..10 {
        desk.send(&team, 0, &format!("r{n}"), "work");
    }
    let page = desk.member(&team, 0, "read_team_history", json!({"limit": 4})).expect("reads");
    assert_eq!(page["cursor_expired"], false);
    // The anchor is the seventh message: it goes with the 107th, not before.
    let args = json!({"cursor": page["next_cursor"], "limit": 4});
    desk.work();
    for n in 10..53 {
        desk.send(&team, 0, &format!("r{n}"), "work");
        desk.work();
    }
    let last = desk.member(&team, 0, "read_team_history", args.clone()).expect("reads");
    assert_eq!((&last["cursor_expired"], last["messages"].as_array().map(Vec::len)), (&json!(false), Some(0)));
    desk.send(&team, 0, "r53", "work");
    let expired = desk.member(&team, 0, "read_team_history", args).expect("an answer");
    assert_eq!((&expired["cursor_expired"], &expired["messages"]), (&json!(true), &json!([])));
    assert!(expired.get("next_cursor").is_none());
    assert_eq!(all(&desk, &team, "read_team_history", "messages", &json!({}), 20).len(), 100, "begin again");
}

#[test]
fn a_request_that_ends_late_appears_on_a_later_page() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    desk.double.hold(true);
    let early = desk.send(&team, 1, "early", "slow");
    desk.work();
    let slow = desk.double.running_in(team.thread(1)).expect("runs");
    desk.double.hold(false);
    for n in 0..4 {
        desk.send(&team, 0, &format!("r{n}"), "quick");
    }
    desk.work();
    let page = desk.member(&team, 0, "search_team_results", json!({"limit": 2})).expect("reads");
    assert_eq!(page["results"].as_array().map(Vec::len), Some(2));
    desk.double.release(&slow);
    desk.work();
    let page = desk.member(&team, 0, "search_team_results", json!({"limit": 20, "cursor": page["next_cursor"]}));
    let page = page.expect("reads");
    assert_eq!(page["results"].as_array().map(Vec::len), Some(3));
    assert_eq!(ids(&page, "results").last(), Some(&early));
}

#[test]
fn pages_stay_within_their_bytes() {
    for kind in 0..9 {
        let desk = Desk::default();
        let team = desk.team("ann", "core", &["Ada", "Bo"]);
        let per = awkward(kind, 30).len().div_ceil(30);
        desk.double.set_default(Turn::answer(awkward(kind, 6_500 / per)));
        for n in 0..6 {
            let long = awkward(kind, (7_900 / per).min(4_000));
            desk.send(&team, n % 2, &format!("r{n}"), &long);
        }
        desk.work();
        for (tool, list, count) in [("read_team_history", "messages", 12), ("search_team_results", "results", 6)] {
            let got = all(&desk, &team, tool, list, &json!({}), 20);
            assert_eq!(got.len(), count, "{tool} {kind}");
            for record in &got {
                let shown = if list == "messages" { &record["text"] } else { &record["result"]["text"] };
                let bound = if list == "messages" { limits::ANSWER_BYTES } else { limits::EXCERPT_BYTES };
                assert!(text(shown).len() <= bound);
            }
        }
        let feed = desk.action("ann", "get", &json!({"team_id": team.id})).expect("reads");
        let id = text(&feed["jobs"][0]["id"]);
        let read = desk.member(&team, 0, "read_team_result", json!({"job_id": id})).expect("reads");
        assert!(bytes(&read) <= limits::PAGE_BYTES, "{}", bytes(&read));
        let stored = desk.job(&team, &id)["result"]["text"].clone();
        let whole = read["result"]["text"] == stored;
        assert_eq!(whole, bytes(&stored) < limits::PAGE_BYTES - 2_000, "as much as fits");
    }
}

#[test]
fn uni_1_excerpts_end_on_a_character_with_a_mark() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let mut n = 0;
    for unit in ["研", "😀"] {
        for lead in 0..4 {
            let long = format!("{}{}", "x".repeat(lead), unit.repeat(6_200 / unit.len()));
            desk.double.script(team.thread(0), [Turn::answer(long.clone())]);
            let id = desk.send(&team, 0, &format!("r{n}"), &long[..600 - (600 - lead) % unit.len()]);
            n += 1;
            desk.work();
            let found = desk.member(&team, 0, "search_team_results", json!({"job_id": id})).expect("reads");
            let record = &found["results"][0];
            for part in [&record["request"], &record["result"]] {
                let shown = text(&part["text"]);
                assert!(shown.len() <= 500 && shown.len() > 490 && shown.ends_with('…'), "{}", shown.len());
                assert_eq!(part["truncated"], true);
            }
            assert_eq!(record["result"]["stored_truncated"], true, "cut when it was stored");
            let input = desk.double.last_input(team.thread(0));
            assert!(!input.contains('\u{fffd}'));
        }
    }
}

#[test]
fn results_say_whether_and_why_there_is_no_answer() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    for (n, (bytes, cut)) in [(5_999, false), (6_000, false), (6_001, true)].into_iter().enumerate() {
        desk.double.script(team.thread(0), [Turn::answer("x".repeat(bytes))]);
        let id = desk.send(&team, 0, &format!("r{n}"), "work");
        desk.work();
        let read = desk.member(&team, 0, "read_team_result", json!({"job_id": id})).expect("reads");
        assert_eq!(
            (&read["result"]["truncated"], &read["result"]["available"]),
            (&json!(cut), &json!(true)),
            "{bytes}"
        );
        assert_eq!(text(&read["result"]["text"]).len(), bytes.min(6_000));
    }
    desk.double.script(team.thread(0), [Turn::Silent]);
    let id = desk.send(&team, 0, "silent", "work");
    desk.work();
    let read = desk.member(&team, 0, "read_team_result", json!({"job_id": id})).expect("reads");
    assert_eq!((&read["status"], &read["result"]["available"]), (&json!("failed"), &json!(false)));
    assert_eq!(read["error"]["code"], "no_answer");
    assert_eq!(
        desk.member(&team, 0, "read_team_result", json!({"job_id": "job-0"})).expect_err("none").code,
        "job_not_found"
    );
}

#[test]
fn an_unfiltered_page_costs_the_same_whatever_the_history() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let cost = |tool: &str, args: Value| {
        let counted = Cost::default();
        let caller = Caller { owner: "ann".into(), thread: Some(team.thread(0).into()), ..Caller::default() };
        let mut args = args;
        args["team_id"] = json!(team.id);
        use_tool(&counted.count(&desk.host), &caller, tool, &args).expect("reads");
        counted.so_far().0
    };
    for n in 0..12 {
        desk.send(&team, 0, &format!("r{n}"), "work");
    }
    desk.work();
    let small = cost("read_team_history", json!({}));
    let small_results = cost("search_team_results", json!({}));
    for n in 12..95 {
        desk.send(&team, 0, &format!("r{n}"), "work");
    }
    desk.work();
    // Other teams cost nothing at all.
    for n in 0..5 {
        let other = desk.team("ann", &format!("other{n}"), &["Ada", "Bo"]);
        desk.send(&other, 0, "r", "work");
    }
    assert_eq!(cost("read_team_history", json!({})), small);
    // A chunk of jobs is looked at, not the history.
    assert!(cost("search_team_results", json!({})) <= small_results + 32);
    let search = cost("search_team_results", json!({"query": "nowhere"}));
    assert!(search <= 3 * 95 + 10, "{search}: the team's own requests at most");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Pages of any sizes, with new requests between them, give every record
    /// that was there at the first page once, in order, and none twice.
    #[test]
    fn cursors_cover_all_records_once_while_new_ones_arrive(
        before in 1usize..25,
        steps in prop::collection::vec((1u32..=20, 0usize..3), 1..30),
        query in any::<bool>(),
    ) {
        let desk = Desk::default();
        let team = desk.team("ann", "core", &["Ada", "Bo"]);
        let mut n = 0;
        let mut send = |count: usize| {
            // Within what a record retains: two messages for each.
            for _ in 0..count.min(45 - n) {
                desk.send(&team, n % 2, &format!("r{n}"), if n % 3 == 0 { "odd one" } else { "work" });
                n += 1;
            }
            desk.work();
        };
        send(before);
        let filters = if query { json!({"query": "ODD"}) } else { json!({}) };
        for (tool, list) in [("read_team_history", "messages"), ("search_team_results", "results")] {
            let key = |m: &Value| (text(&m["job_id"]), m.get("kind").map(ToString::to_string));
            let expected: Vec<_> = all(&desk, &team, tool, list, &filters, 20).iter().map(key).collect();
            let mut got = Vec::new();
            let mut args = filters.clone();
            for (limit, arrivals) in steps.iter().cycle() {
                args["limit"] = json!(limit);
                let page = desk.member(&team, 0, tool, args.clone()).expect("reads");
                got.extend(page[list].as_array().expect("a list").iter().map(key));
                let Some(cursor) = page.get("next_cursor") else { break };
                args["cursor"] = cursor.clone();
                send(*arrivals);
            }
            prop_assert_eq!(got, expected, "{}", tool);
        }
    }
}
