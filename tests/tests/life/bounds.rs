//! Every bound at n−1, n and n+1 in characters of one to four bytes, and
//! arguments that cannot be right: each a typed refusal that names the field,
//! and nothing stored.

use agent_teams_host::contract::{Caller, ErrorKind};
use agent_teams_tests::both;
use agent_teams_tests::harness::{Answer, World, invalid, refused, roster};
use serde_json::{Value, json};

both!(
    names_goals_and_ids_of_a_team_at_their_bounds,
    requests_at_their_bounds,
    bounds_count_the_trimmed_text,
    empty_texts_are_refused,
    nul_is_refused,
    unknown_fields_are_refused_by_name,
    fault_18_wrong_types_name_their_field,
    missing_fields_are_named,
    what_is_no_json_object_is_refused,
    lone_surrogates_are_refused,
    null_and_empty_optionals_count_as_absent,
    ids_that_cannot_be_ours_are_simply_unknown,
    page_sizes_and_cursors,
    unknown_actions_and_tools_are_refused,
    a_caller_without_a_capability_reads_and_changes_nothing,
);

/// What is stored, where the test can see it: refusals leave it as it was.
fn stored(w: &World) -> Vec<(String, String)> {
    w.native_host().map(|host| host.store().dump()).unwrap_or_default()
}

/// Checks one field at its bound with characters of each length. `call` is
/// given a text and a number that is new each time.
fn at_bound(w: &World, field: &str, chars: usize, bytes: usize, mut call: impl FnMut(&str, usize) -> Answer) {
    let mut n = 0;
    for unit in ["a", "é", "研", "🙂"] {
        let most = chars.min(bytes / unit.len());
        for count in [most - 1, most] {
            n += 1;
            let text = unit.repeat(count);
            if let Err(e) = call(&text, n) {
                panic!("{field}: {count} × {unit}: {e:?}");
            }
        }
        n += 1;
        let before = stored(w);
        invalid(call(&unit.repeat(most + 1), n), "too_long", field);
        assert_eq!(stored(w), before, "{field}");
    }
}

/// Creates a team, as an owner of its own so that no bound on teams is met.
fn create(w: &World, owner: usize, payload: Value) -> Answer {
    w.action(&format!("owner-{owner}"), "create", payload)
}

fn names_goals_and_ids_of_a_team_at_their_bounds(w: World) {
    let with = |field: &str, text: &str| {
        let mut payload = roster("c", &["ada", "bo"]);
        payload[field] = json!(text);
        payload
    };
    at_bound(&w, "name", 80, 160, |text, n| create(&w, n, with("name", text)));
    at_bound(&w, "goal", 2_000, 4_000, |text, n| create(&w, 100 + n, with("goal", text)));
    at_bound(&w, "request_id", 128, 256, |text, n| create(&w, 200 + n, with("request_id", text)));
    at_bound(&w, "members[1].name", 80, 160, |text, n| create(&w, 300 + n, roster("c", &["ada", text])));
    at_bound(&w, "members[1].agent", 128, 256, |text, n| {
        let mut payload = roster("c", &["ada", "bo"]);
        payload["members"][1]["agent"] = json!(text);
        create(&w, 400 + n, payload)
    });
    at_bound(&w, "query", 200, 800, |text, _| w.action("ann", "search", json!({"query": text})));
}

fn requests_at_their_bounds(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    at_bound(&w, "text", 4_000, 8_000, |text, n| w.try_send(&team, 0, &format!("r{n}"), text));
    at_bound(&w, "request_id", 128, 256, |text, _| w.try_send(&team, 0, text, "Do it."));
    let caller = w.caller(&team, 0);
    let tool = |field: &str, text: &str, n: usize| {
        let mut arguments =
            json!({"team_id": team.id, "member": "bo", "request_id": format!("t{n}"), "text": "Please."});
        arguments[field] = json!(text);
        w.tool(&caller, "send_member", arguments)
    };
    at_bound(&w, "text", 4_000, 8_000, |text, n| tool("text", text, n));
    at_bound(&w, "request_id", 128, 256, |text, n| tool("request_id", text, n));
}

fn bounds_count_the_trimmed_text(w: World) {
    let padded = format!("\u{feff}\u{3000}{}\n\t ", "é".repeat(80));
    let mut payload = roster("c", &["ada", "bo"]);
    payload["name"] = json!(padded);
    let made = w.action("ann", "create", payload).expect("made");
    assert_eq!(made["team"]["name"], json!("é".repeat(80)));
    // U+0085 is no white space in ECMAScript, and a control character.
    let mut payload = roster("d", &["ada", "bo"]);
    payload["name"] = json!("\u{85}core");
    invalid(w.action("ann", "create", payload), "invalid_name", "name");
}

fn empty_texts_are_refused(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    for empty in ["", " ", "\n\t", "\u{feff}\u{3000}"] {
        invalid(w.try_send(&team, 0, "r", empty), "empty", "text");
        invalid(w.try_send(&team, 0, empty, "Do it."), "empty", "request_id");
        for field in ["name", "goal", "request_id"] {
            let mut payload = roster("c", &["ada", "bo"]);
            payload[field] = json!(empty);
            invalid(w.action("ann", "create", payload), "empty", field);
        }
        invalid(w.action("ann", "create", roster("c", &["ada", empty])), "empty", "members[1].name");
    }
    assert!(w.jobs(&team).is_empty());
}

fn nul_is_refused(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    invalid(w.try_send(&team, 0, "r", "a\0b"), "nul_character", "text");
    invalid(w.try_send(&team, 0, "a\0b", "Do it."), "nul_character", "request_id");
    for field in ["name", "goal", "request_id"] {
        let mut payload = roster("c", &["ada", "bo"]);
        payload[field] = json!("a\0b");
        invalid(w.action("ann", "create", payload), "nul_character", field);
    }
    invalid(w.action("ann", "search", json!({"query": "a\0"})), "nul_character", "query");
}

fn unknown_fields_are_refused_by_name(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let before = stored(&w);
    for action in agent_teams_plugin::exports::actions::actions() {
        let refusal = invalid(w.action("ann", action.name, json!({"act_as": "bea"})), "unknown_field", "act_as");
        assert!(refusal.message.contains("act_as"), "{refusal:?}");
    }
    for tool in agent_teams_plugin::exports::tools::tools() {
        let answer = w.tool(&w.caller(&team, 0), tool.name, json!({"sender": "bo"}));
        invalid(answer, "unknown_field", "sender");
    }
    let mut payload = roster("c", &["ada", "bo"]);
    payload["members"][1]["model"] = json!("big");
    invalid(w.action("ann", "create", payload), "unknown_field", "members[1].model");
    assert_eq!(stored(&w), before);
}

fn fault_18_wrong_types_name_their_field(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let before = stored(&w);
    let send = |field: &str, value: Value| {
        let mut payload =
            json!({"team_id": team.id, "member_id": team.members[0].id, "request_id": "r", "text": "Do it."});
        payload[field] = value;
        w.action("ann", "send", payload)
    };
    for field in ["team_id", "member_id", "request_id", "text"] {
        for value in [json!(1), json!(null), json!(true), json!(["x"]), json!({"text": "x"})] {
            invalid(send(field, value), "wrong_type", field);
        }
    }
    for (field, value) in [("limit", json!("20")), ("limit", json!(-1)), ("limit", json!(1.5)), ("cursor", json!(1))] {
        let mut payload = json!({"team_id": team.id});
        payload[field] = value;
        invalid(w.action("ann", "get", payload), "wrong_type", field);
    }
    for members in [json!("ada, bo"), json!({"ada": "a"}), json!(null), json!(2)] {
        let mut payload = roster("c", &[]);
        payload["members"] = members;
        invalid(w.action("ann", "create", payload), "wrong_type", "members");
    }
    for entry in [json!("bo"), json!(null), json!(1), json!(["bo", "agent-bo"])] {
        let mut payload = roster("c", &["ada", "bo"]);
        payload["members"][1] = entry;
        invalid(w.action("ann", "create", payload), "wrong_type", "members[1]");
    }
    let mut payload = roster("c", &["ada", "bo"]);
    payload["members"][1]["name"] = json!(7);
    invalid(w.action("ann", "create", payload), "wrong_type", "members[1].name");
    let settle = json!({"team_id": team.id, "job_id": "job-0", "outcome": "done"});
    let refusal = w.action("ann", "settle", settle).expect_err("refused");
    assert_eq!(refusal.field.as_deref(), Some("outcome"), "{refusal:?}");
    assert!(refusal.message.contains("retry"), "{refusal:?}");
    assert_eq!(stored(&w), before);
}

fn missing_fields_are_named(w: World) {
    invalid(w.action("ann", "send", json!({})), "missing_field", "team_id");
    let mut payload = roster("c", &["ada", "bo"]);
    payload["members"][1] = json!({"name": "bo"});
    invalid(w.action("ann", "create", payload), "missing_field", "members[1].agent");
    let resume = json!({"team_id": "team-0", "job_id": "job-0", "request_id": "a"});
    invalid(w.action("ann", "resume", resume), "missing_field", "response");
}

fn what_is_no_json_object_is_refused(w: World) {
    let ann = Caller::owner("ann");
    for text in ["[]", "\"x\"", "7", "null", "{", "{\"team_id\":", "not json", "{} {}", "\u{feff}{}", "{\"a\":1,}"] {
        let refusal = w.action_text(&ann, true, "list", text).expect_err(text);
        assert_eq!(refusal.kind, ErrorKind::Invalid, "{text}: {refusal:?}");
        assert!(refusal.code == "bad_json" || refusal.code == "unknown_field", "{text}: {refusal:?}");
    }
    // No arguments at all are an empty object.
    w.action_text(&ann, true, "list", "").expect("list");
    // The same field twice is no guess.
    let twice = r#"{"query":"a","query":"b"}"#;
    let refusal = w.action_text(&ann, true, "search", twice).expect_err("refused");
    assert_eq!((refusal.code.as_str(), refusal.field.as_deref()), ("duplicate_field", Some("query")));
    // Nor is a cut call (a model that ran out of tokens).
    let refusal = w.tool_text(&ann, "send_member", r#"{"team_id":"te"#).expect_err("refused");
    assert_eq!(refusal.code, "bad_json");
}

fn lone_surrogates_are_refused(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let before = stored(&w);
    let ann = Caller::owner("ann");
    for lone in [r"\ud800", r"x\udc00y", r"\ud83d", r"\ud800\ud800"] {
        let (team_id, member) = (&team.id, &team.members[0].id);
        let send = format!(r#"{{"team_id":"{team_id}","member_id":"{member}","request_id":"r","text":"{lone}"}}"#);
        let refusal = w.action_text(&ann, true, "send", &send).expect_err("refused");
        assert_eq!((refusal.kind, refusal.code.as_str()), (ErrorKind::Invalid, "bad_json"), "{refusal:?}");
        assert_eq!(refusal.field.as_deref(), Some("text"), "{refusal:?}");
        let resume =
            format!(r#"{{"team_id":"{team_id}","job_id":"job-0","request_id":"r","response":{{"a":"{lone}"}}}}"#);
        let refusal = w.action_text(&ann, true, "resume", &resume).expect_err("refused");
        assert_eq!((refusal.kind, refusal.code.as_str()), (ErrorKind::Invalid, "bad_json"), "{refusal:?}");
        assert_eq!(refusal.field.as_deref(), Some("response.a"), "{refusal:?}");
    }
    // A pair is a character.
    let pair = format!(
        r#"{{"team_id":"{}","member_id":"{}","request_id":"r","text":"\ud83d\ude42"}}"#,
        team.id, team.members[0].id
    );
    assert_eq!(stored(&w), before);
    w.action_text(&ann, true, "send", &pair).expect("accepted");
    assert_eq!(w.jobs(&team)[0]["text"], "🙂");
}

fn null_and_empty_optionals_count_as_absent(w: World) {
    let mut payload = roster("c", &["ada", "bo"]);
    payload["lead"] = json!(null);
    let made = w.action("ann", "create", payload.clone()).expect("made");
    payload["lead"] = json!("");
    assert_eq!(w.action("ann", "create", payload).expect("the same")["team"]["id"], made["team"]["id"]);
    let id = &made["team"]["id"];
    let all = json!({"team_id": id, "limit": null, "cursor": null, "details": null, "revision": null});
    let plain = w.action("ann", "get", json!({"team_id": id})).expect("get");
    assert_eq!(w.action("ann", "get", all).expect("get"), plain);
    assert_eq!(w.action("ann", "get", json!({"team_id": id, "cursor": ""})).expect("get"), plain);
    let hits = w.action("ann", "search", json!({})).expect("hits");
    assert_eq!(w.action("ann", "search", json!({"query": null})).expect("hits"), hits);
    assert_eq!(w.action("ann", "search", json!({"query": ""})).expect("hits"), hits);
}

fn ids_that_cannot_be_ours_are_simply_unknown(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let long = "x".repeat(65);
    for id in ["", " ", "..", "a/b", "%2f", "研", "a\0b", long.as_str(), "team-0"] {
        refused(w.action("ann", "get", json!({"team_id": id})), "team_not_found");
        refused(w.action("ann", "get", json!({"team_id": id, "revision": 1})), "team_not_found");
        refused(w.action("ann", "connect", json!({"team_id": id})), "team_not_found");
        refused(w.action("ann", "delete", json!({"team_id": id})), "team_not_found");
        refused(w.cancel(&team, id), "job_not_found");
        refused(w.answer(&team, id, "a", json!("x")), "job_not_found");
        let send = json!({"team_id": team.id, "member_id": id, "request_id": "r", "text": "Do it."});
        refused(w.action("ann", "send", send), "member_not_found");
    }
    assert!(w.jobs(&team).is_empty());
}

fn page_sizes_and_cursors(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    for n in 0..25 {
        w.send(&team, n % 2, &format!("r{n}"));
    }
    let page = |limit: Value, cursor: Value| {
        w.action("ann", "get", json!({"team_id": team.id, "limit": limit, "cursor": cursor}))
    };
    invalid(page(json!(0), json!(null)), "bad_limit", "limit");
    invalid(page(json!(201), json!(null)), "bad_limit", "limit");
    assert_eq!(page(json!(200), json!(null)).expect("a page")["jobs"].as_array().map(Vec::len), Some(25));
    let first = page(json!(null), json!(null)).expect("a page");
    assert_eq!(first["jobs"].as_array().map(Vec::len), Some(20));
    let cursor = first["next_cursor"].as_str().expect("a cursor");
    // New arrivals do not shift what a cursor stands for.
    w.send(&team, 0, "later");
    let second = page(json!(3), json!(cursor)).expect("a page");
    let third = page(json!(20), second["next_cursor"].clone()).expect("a page");
    let mut ids = agent_teams_tests::harness::ids_of(first["jobs"].as_array().expect("jobs"));
    ids.extend(agent_teams_tests::harness::ids_of(second["jobs"].as_array().expect("jobs")));
    ids.extend(agent_teams_tests::harness::ids_of(third["jobs"].as_array().expect("jobs")));
    assert_eq!(ids, agent_teams_tests::harness::ids_of(&w.jobs(&team))[1..]);
    assert_eq!(third.get("next_cursor"), None);
    let other = w.team_named("ann", "other", &["ada", "bo"]);
    for bad in ["x", "0001", "zz", "研究员研究员", &cursor[..cursor.len() - 1], &format!("{cursor}0")] {
        invalid(page(json!(null), json!(bad)), "bad_cursor", "cursor");
    }
    invalid(w.action("ann", "get", json!({"team_id": other.id, "cursor": cursor})), "bad_cursor", "cursor");
}

fn unknown_actions_and_tools_are_refused(w: World) {
    let refusal = refused(w.action("ann", "drop", json!({})), "action_not_found");
    assert!(refusal.message.contains("create"), "{refusal:?}");
    let refusal = refused(w.tool(&Caller::owner("ann"), "rm", json!({})), "tool_not_found");
    assert!(refusal.message.contains("send_member"), "{refusal:?}");
    let nobody = w.action("", "list", json!({}));
    refused(nobody, "bad_caller");
}

fn a_caller_without_a_capability_reads_and_changes_nothing(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let ann = Caller::owner("ann");
    w.action_text(&ann, false, "list", "{}").expect("list");
    let get = json!({"team_id": team.id}).to_string();
    w.action_text(&ann, false, "get", &get).expect("get");
    let send = json!({"team_id": team.id, "member_id": team.members[0].id, "request_id": "r", "text": "Do it."});
    let create = roster("c2", &["ada", "bo"]);
    for (action, payload) in [("send", send.to_string()), ("create", create.to_string()), ("connect", get)] {
        let refusal = w.action_text(&ann, false, action, &payload).expect_err("refused");
        assert_eq!((refusal.kind, refusal.code.as_str()), (ErrorKind::Denied, "no_capability"));
    }
    assert!(w.jobs(&team).is_empty());
}
