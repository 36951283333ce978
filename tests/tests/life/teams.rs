//! Teams: made, connected, read, deleted.

use agent_teams_plugin::domain::ids;
use agent_teams_tests::both;
use agent_teams_tests::double::{Effect, Method, Turn};
use agent_teams_tests::harness::{Team, World, invalid, refused, roster};
use serde_json::json;

both!(
    lifecycle_12_a_creation_that_stopped_half_way,
    lifecycle_12_connecting_twice_is_harmless,
    lifecycle_13_a_deleted_team_leaves_no_connection,
    fault_15_a_used_request_id_with_another_roster_is_a_conflict,
    a_repeated_create_answers_with_the_team_as_it_is,
    fault_18_names_that_could_deceive_are_refused,
    sec_6_strange_names_go_nowhere,
    names_that_are_equal_after_normalisation_cannot_both_exist,
    a_name_is_found_in_either_normal_form,
    words_with_a_meaning_are_no_members_names,
    an_agents_name_is_the_hosts,
    an_id_that_cannot_be_one_is_not_found_and_not_busy,
    agents_that_do_not_exist_are_refused_with_those_that_do,
    a_connection_that_works_outlives_an_answer_that_did_not_come,
    a_call_from_a_conversation_is_no_action,
    sec_5_the_same_names_of_two_owners_do_not_meet,
    fault_19_unchanged_is_short,
    rst_5_the_same_members_after_a_restart,
    rst_4_an_existing_team_is_found_again,
    twenty_teams_an_owner,
    the_list_counts_what_needs_a_person,
    a_successor_begins_with_the_public_state,
    a_team_made_again_never_meets_its_old_runs,
    a_team_has_two_to_eight_members,
    a_mention_reconnects_its_team,
    a_mention_that_is_told_again_reconnects_its_team,
    a_member_is_found_by_its_label_first,
    a_mention_is_all_or_nothing,
    fault_17_an_over_long_mention_is_refused_before_anything,
    inst_7_a_newer_store_is_refused_by_naming_both_formats,
);

fn the_list_counts_what_needs_a_person(w: World) {
    let waiting = |w: &World, team: &Team| {
        let listed = w.action("ann", "list", json!({})).expect("lists");
        let row = listed["teams"].as_array().expect("teams").iter().find(|t| t["id"] == json!(team.id)).cloned();
        row.expect("listed")["waiting"].as_u64().expect("a number")
    };
    // In a store of an earlier version the heads do not count.
    let forget = |w: &World| {
        let Some(host) = w.native_host() else { return };
        for (key, value) in host.store().dump().into_iter().filter(|(key, _)| key.ends_with("/head")) {
            let mut head: serde_json::Value = serde_json::from_str(&value).expect("a record");
            head.as_object_mut().expect("an object").remove("waiting");
            host.store().put_raw(&key, &head.to_string());
        }
    };
    for counted in [true, false] {
        let name = |part: &str| format!("{part}-{counted}");
        let (team, other) =
            (w.team_named("ann", &name("one"), &["ada", "bo"]), w.team_named("ann", &name("two"), &["ada", "bo"]));
        if !counted {
            forget(&w);
        }
        w.double.script(team.thread(0), [Turn::ask("Which?")]);
        w.double.script(team.thread(1), [Turn::interrupt("i1", "{}")]);
        let (asks, stops) = (w.send(&team, 0, "asks"), w.send(&team, 1, "stops"));
        let next = w.send(&team, 0, "next");
        w.work();
        assert_eq!((waiting(&w, &team), waiting(&w, &other)), (2, 0));
        w.answer(&team, &asks, "a", json!("blue")).expect("accepted");
        assert_eq!(waiting(&w, &team), 1, "answered, whether it goes on yet or not");
        w.work();
        assert_eq!((w.status(&team, &next).as_str(), waiting(&w, &team)), ("completed", 1));
        w.cancel(&team, &stops).expect("cancelled");
        assert_eq!(waiting(&w, &team), 0);
        w.double.durable_keys(false);
        let lost = w.send(&other, 0, "r");
        w.double.fault(Method::Start, Some(other.thread(0)), 2, Effect::other());
        w.work();
        w.later(60_000);
        assert_eq!(w.status(&other, &lost), "unknown");
        assert_eq!((waiting(&w, &team), waiting(&w, &other)), (0, 1));
        w.settle(&other, &lost, "failed").expect("settled");
        assert_eq!(waiting(&w, &other), 0);
        w.double.durable_keys(true);
    }
}

fn a_successor_begins_with_the_public_state(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let entry =
        json!({"team_id": team.id, "request_id": "p", "kind": "plan", "title": "Plan", "content": "数据 \"first\""});
    w.tool(&w.caller(&team, 0), "publish_team_state", entry).expect("published");
    let mut asked = roster("next", &["ada", "bo"]);
    asked["successor_of"] = json!(team.id);
    let next = Team::from_answer("ann", &w.action("ann", "create", asked.clone()).expect("made"));
    let read = w.action("ann", "state", json!({"team_id": next.id})).expect("reads");
    let carried = &read["entries"][0];
    assert_eq!((&carried["title"], &carried["content"]), (&json!("Plan"), &json!("数据 \"first\"")));
    assert_eq!((&carried["created_by"]["team"], &carried["created_by"]["member"]), (&json!(team.id), &json!("ada")));
    w.send(&next, 0, "r");
    w.work();
    assert!(w.double.last_input(next.thread(0)).contains("数据"));
    asked["request_id"] = json!("theirs");
    let refusal = refused(w.action("bob", "create", asked), "team_not_found");
    assert_eq!(refusal.field.as_deref(), Some("successor_of"));
}

fn lifecycle_12_a_creation_that_stopped_half_way(w: World) {
    // The second conversation cannot be made.
    w.double.remove_agent("agent-bo");
    let made = w.action("ann", "create", roster("c", &["ada", "bo"])).expect("the team exists");
    assert_eq!((&made["team"]["ready"], &made["team"]["connected"]), (&json!(false), &json!(false)));
    assert_eq!(made["team"]["reason"]["code"], "agent_rejected");
    let team = Team::from_answer("ann", &made);
    assert_eq!(w.double.threads(), [team.thread(0)]);
    refused(w.connect(&team), "agent_rejected");
    assert_eq!(w.view(&team)["team"]["ready"], false);
    w.double.restore_agent("agent-bo");
    let connected = w.connect(&team).expect("connected");
    assert_eq!((&connected["team"]["ready"], &connected["team"]["connected"]), (&json!(true), &json!(true)));
    assert_eq!(connected["team"]["reason"], json!(null));
    let mut threads = vec![team.thread(0).to_owned(), team.thread(1).to_owned()];
    threads.sort();
    assert_eq!(w.double.threads(), threads);
    let job = w.send(&team, 1, "r");
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
}

fn lifecycle_12_connecting_twice_is_harmless(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let before = w.view(&team);
    assert_eq!(w.connect(&team).expect("connected")["team"], before["team"]);
    w.connect(&team).expect("connected");
    assert_eq!(w.double.threads().len(), 2);
    // A conversation that the host has lost is made again, under its id.
    w.double.fault(Method::CreateThread, Some(team.thread(1)), 1, Effect::timed_out());
    refused(w.connect(&team), "host_timeout");
    w.connect(&team).expect("connected");
    assert_eq!(w.view(&team)["team"]["members"], before["team"]["members"]);
}

fn lifecycle_13_a_deleted_team_leaves_no_connection(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    refused(w.delete(&team), "team_not_finished");
    w.cancel(&team, &job).expect("cancelled");
    std::thread::scope(|scope| {
        scope.spawn(|| w.connect(&team));
        scope.spawn(|| w.delete(&team).expect("deleted"));
    });
    // One order or the other: it is gone, and so is its connection.
    refused(w.connect(&team), "team_not_found");
    refused(w.delete(&team), "team_not_found");
    assert_eq!(w.action("ann", "list", json!({})).expect("list")["teams"], json!([]));
    let made = w.action("ann", "create", roster("create-1", &["ada", "bo"])).expect("made again");
    assert_ne!(made["team"]["members"][0]["thread"], json!(team.thread(0)));
    assert_eq!(made["jobs"], json!([]));
    // The members' conversations stay.
    assert!(w.double.thread(team.thread(0)).is_some());
}

fn fault_15_a_used_request_id_with_another_roster_is_a_conflict(w: World) {
    w.team("ann", &["ada", "bo"]);
    let mut others = vec![roster("create-1", &["ada", "cy"]), roster("create-1", &["bo", "ada"])];
    others.push(roster("create-1", &["ada", "bo", "cy"]));
    let mut other = roster("create-1", &["ada", "bo"]);
    other["goal"] = json!("Another.");
    others.push(other.clone());
    other["goal"] = json!("Find out.");
    other["lead"] = json!("ada");
    others.push(other);
    for other in others {
        let refusal = refused(w.action("ann", "create", other), "request_id_reused");
        assert_eq!(refusal.field.as_deref(), Some("request_id"));
    }
    assert_eq!(w.action("ann", "list", json!({})).expect("list")["teams"].as_array().map(Vec::len), Some(1));
}

fn a_repeated_create_answers_with_the_team_as_it_is(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.send(&team, 0, "r");
    w.work();
    let again = w.action("ann", "create", roster("create-1", &["ada", "bo"])).expect("the same");
    assert_eq!(again["team"]["id"], json!(team.id));
    assert_eq!(again["jobs"].as_array().map(Vec::len), Some(1));
    assert_eq!(w.double.threads().len(), 2);
}

fn fault_18_names_that_could_deceive_are_refused(w: World) {
    for bad in
        ["a\nb", "a\r\nb", "a\tb", "a\u{2028}b", "a\u{200b}da", "a\u{202e}b", "a\u{2060}b", "a\u{fe0f}b", "\u{7f}a"]
    {
        invalid(w.action("ann", "create", roster("c", &["ada", bad])), "invalid_name", "members[1].name");
        let mut payload = roster("c", &["ada", "bo"]);
        payload["name"] = json!(bad);
        invalid(w.action("ann", "create", payload), "invalid_name", "name");
    }
    for control in ["a\nb", "a\tb", "\u{7f}a", "a\u{85}b"] {
        let mut payload = roster("c", &["ada", "bo"]);
        payload["members"][1]["agent"] = json!(control);
        invalid(w.action("ann", "create", payload), "invalid_name", "members[1].agent");
    }
    invalid(w.action("ann", "create", roster("c", &["ada", "a\0b"])), "nul_character", "members[1].name");
    assert_eq!(w.action("ann", "list", json!({})).expect("list")["teams"], json!([]));
    assert!(w.double.threads().is_empty());
}

fn sec_6_strange_names_go_nowhere(w: World) {
    // Names never reach a path or a key as they are, so these are only names.
    let names = ["..", "../x", "a/b", "a\\b", "CON", "%2e%2e", "研究员", "x."];
    let team = w.team("ann", &names);
    for (n, name) in names.iter().enumerate() {
        assert_eq!(team.members[n].name, *name);
        assert!(team.thread(n).bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'), "{}", team.thread(n));
    }
    invalid(w.action("ann", "create", roster("c", &["ada", &"x".repeat(300)])), "too_long", "members[1].name");
    // A strange owner and a strange conversation lie in their own places.
    for owner in ["a/b", "../../x", "%2f", "研究员"] {
        let team = w.team(owner, &["ada", "bo"]);
        w.send(&team, 0, "r");
        w.work();
        assert_eq!(w.jobs(&team).len(), 1);
        assert_eq!(w.action(owner, "list", json!({})).expect("list")["teams"].as_array().map(Vec::len), Some(1));
    }
}

fn a_name_is_found_in_either_normal_form(w: World) {
    let (composed, decomposed) = ("Zoë", "Zoe\u{308}");
    let team = w.team("ann", &["ada", decomposed]);
    assert_eq!(team.members[1].name, composed);
    for (n, name) in [composed, decomposed].into_iter().enumerate() {
        let payload = json!({"team_id": team.id, "member_id": name, "text": "work", "request_id": format!("r{n}")});
        let sent = w.action("ann", "send", payload).expect("found");
        assert_eq!(sent["job"]["member_id"], json!(team.members[1].id));
    }
}

fn words_with_a_meaning_are_no_members_names(w: World) {
    let id = format!("m-{}", "0f".repeat(16));
    for word in ["lead", "Lead", "OWNER", "unowned", "me", "all", "null", "none", id.as_str()] {
        invalid(w.action("ann", "create", roster("c", &["ada", word])), "reserved_name", "members[1].name");
    }
    w.team("ann", &["leader", "m-1"]);
}

#[test]
fn a_creation_from_before_the_reserved_words_can_be_repeated() {
    let w = World::native();
    let team = w.team_named("ann", "old", &["ada", "bo"]);
    let asked = |name: &str| {
        let mut asked = roster("old", &["ada", name]);
        asked["name"] = json!("old");
        asked
    };
    // The record of an earlier version: the second member is named as the board's lead.
    let host = w.native_host().expect("native");
    let (key, record) = host.store().dump().into_iter().find(|(key, _)| key.ends_with("/team")).expect("the team");
    let mut record: serde_json::Value = serde_json::from_str(&record).expect("a record");
    let members = r#"[["ada","agent-ada"],["lead","agent-lead"]]"#;
    record["digest"] = json!(ids::digest("create", &["old", "Find out.", members, ""]));
    record["members"][1]["name"] = json!("lead");
    host.store().put_raw(&key, &record.to_string());
    let mut repeated = asked("lead");
    repeated["request_id"] = json!("old");
    let again = w.action("ann", "create", repeated).expect("the same team");
    assert_eq!(again["team"]["id"], json!(team.id));
    let mut new = asked("lead");
    new["request_id"] = json!("another");
    invalid(w.action("ann", "create", new), "reserved_name", "members[1].name");
    // The word means the lead, and the member is named by its id.
    let task = json!({"team_id": team.id, "subject": "s", "description": "d"});
    let task = w.action("ann", "create_task", task).expect("a task")["task"].clone();
    let give = |to: &str, revision: u64| {
        let payload = json!({"team_id": team.id, "task_id": task["id"], "expected_revision": revision,
            "action": "reassign", "owner": to});
        w.action("ann", "update_task", payload).expect("reassigned")["task"]["ownerId"].clone()
    };
    assert_eq!(give("lead", 1), "lead");
    assert_eq!(give(&team.members[1].id, 2), json!(team.thread(1)));
}

fn an_agents_name_is_the_hosts(w: World) {
    // Not in NFC, and with a joiner: the host compares the bytes.
    for (n, agent) in ["Zoe\u{308}", "👩\u{200d}🔬", "می\u{200c}خواهم"].into_iter().enumerate() {
        let mut payload = roster(&format!("c{n}"), &["ada", "bo"]);
        payload["members"][1]["agent"] = json!(agent);
        let made = w.action("ann", "create", payload).expect("created");
        assert_eq!(made["team"]["members"][1]["agent"], json!(agent));
    }
}

fn an_id_that_cannot_be_one_is_not_found_and_not_busy(w: World) {
    for id in ["x".repeat(2_000), "研".repeat(400), "a/b".into()] {
        for (action, more) in [
            ("send", json!({"member_id": "ada", "text": "t", "request_id": "r"})),
            ("cancel", json!({"job_id": "job-1"})),
            ("settle", json!({"job_id": "job-1", "outcome": "failed"})),
            ("resume", json!({"job_id": "job-1", "request_id": "r", "response": "x"})),
            ("connect", json!({})),
            ("delete", json!({})),
            ("create_task", json!({"subject": "s", "description": "d"})),
            ("update_task", json!({"task_id": "task-1", "expected_revision": 1, "action": "claim"})),
        ] {
            let mut payload = more;
            payload["team_id"] = json!(id);
            refused(w.action("ann", action, payload), "team_not_found");
        }
    }
}

fn names_that_are_equal_after_normalisation_cannot_both_exist(w: World) {
    let (composed, decomposed) = ("Zoë", "Zoe\u{308}");
    invalid(w.action("ann", "create", roster("c", &[composed, decomposed])), "duplicate_member", "members[1].name");
    invalid(w.action("ann", "create", roster("c", &["ada", " ada "])), "duplicate_member", "members[1].name");
    // Case is content.
    w.team("ann", &["ada", "Ada"]);
}

fn sec_5_the_same_names_of_two_owners_do_not_meet(w: World) {
    let (one, two) = (w.team("u1", &["ada", "bo"]), w.team("u2", &["ada", "bo"]));
    assert_ne!(one.id, two.id);
    let (first, second) = (w.send(&one, 0, "plan"), w.send(&two, 0, "plan"));
    assert_ne!(first, second);
    w.work();
    let hits = w.action("u1", "search", json!({"query": "ada"})).expect("hits");
    assert_eq!(hits["hits"].as_array().map(Vec::len), Some(1));
    assert_eq!(hits["hits"][0]["team"], json!(one.id));
    assert_eq!((w.jobs(&one).len(), w.jobs(&two).len()), (1, 1));
}

fn fault_19_unchanged_is_short(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    for n in 0..5 {
        w.send(&team, n % 2, &format!("r{n}"));
    }
    w.work();
    let revision = w.view(&team)["team"]["revision"].clone();
    let again = w.action("ann", "get", json!({"team_id": team.id, "revision": revision, "details": true}));
    assert_eq!(again.expect("unchanged"), json!({"unchanged": true, "revision": revision}));
    w.send(&team, 0, "more");
    let changed = w.action("ann", "get", json!({"team_id": team.id, "revision": revision})).expect("changed");
    assert_eq!(changed["jobs"].as_array().map(Vec::len), Some(6));
}

fn rst_5_the_same_members_after_a_restart(mut w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.send(&team, 0, "r");
    w.work();
    let before = w.view(&team);
    w.restart();
    let after = w.view(&team);
    assert_eq!((&after["team"]["members"], &after["jobs"]), (&before["team"]["members"], &before["jobs"]));
    assert_eq!(after["team"]["connected"], false);
    assert_eq!(after["team"]["reason"]["code"], "not_connected");
    w.connect(&team).expect("connected");
    let connected = w.view(&team);
    assert_eq!(connected["team"]["members"], before["team"]["members"]);
    assert_eq!(w.double.threads().len(), 2);
}

fn rst_4_an_existing_team_is_found_again(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let listed = w.action("ann", "list", json!({})).expect("list");
    assert_eq!(listed["teams"][0]["id"], json!(team.id));
    // A tool that is called with a wrong team id does not offer to delete one.
    let refusal = w.tool(&w.caller(&team, 0), "read_team_context", json!({"team_id": "team-0"})).expect_err("refused");
    assert!(!refusal.message.to_lowercase().contains("delete"), "{}", refusal.message);
}

fn twenty_teams_an_owner(w: World) {
    for n in 0..20 {
        w.clock.advance(1);
        w.team_named("ann", &format!("t{n}"), &["ada", "bo"]);
    }
    refused(w.action("ann", "create", roster("t20", &["ada", "bo"])), "team_limit");
    w.action("ann", "create", roster("t3", &["ada", "bo"])).expect("a known one");
    w.team("bea", &["ada", "bo"]);
    let listed = w.action("ann", "list", json!({})).expect("list");
    let first = listed["teams"][0]["id"].as_str().expect("id").to_owned();
    assert_eq!(listed["teams"].as_array().map(Vec::len), Some(20));
    w.action("ann", "delete", json!({"team_id": first})).expect("deleted");
    w.action("ann", "create", roster("t20", &["ada", "bo"])).expect("room again");
}

fn a_team_made_again_never_meets_its_old_runs(w: World) {
    let old = w.team("ann", &["ada", "bo"]);
    let job = w.send(&old, 0, "r");
    w.work();
    w.delete(&old).expect("deleted");
    let new = w.team("ann", &["ada", "bo"]);
    assert_ne!(new.members, old.members);
    let again = w.send(&new, 0, "r");
    assert_ne!(again, job);
    w.work();
    let keys: Vec<String> = w.double.admissions().into_iter().map(|a| a.key).collect();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1]);
}

fn a_team_has_two_to_eight_members(w: World) {
    let names: Vec<String> = (0..9).map(|n| format!("m{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for count in [0, 1, 9] {
        invalid(w.action("ann", "create", roster("c", &names[..count])), "member_count", "members");
    }
    w.team_named("ann", "c2", &names[..2]);
    w.team_named("ann", "c8", &names[..8]);
}

fn a_mention_reconnects_its_team(mut w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let queued = w.send(&team, 0, "r");
    w.restart();
    w.double.open_thread("ann", "chat", "assistant");
    w.mention("ann", "chat", "m1", "Please look.", &[(&team.id, &team.members[1].id)]).expect("dispatched");
    assert!(w.connected(&team));
    w.work();
    assert_eq!(w.status(&team, &queued), "completed");
    // The result returns to the conversation that asked.
    assert!(w.double.last_input("chat").starts_with("[Agent team result]"));
}

fn a_mention_is_all_or_nothing(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let foreign = w.team("bea", &["ada", "bo"]);
    w.double.open_thread("ann", "chat", "assistant");
    let good = (team.id.as_str(), team.members[0].id.as_str());
    for bad in [
        (foreign.id.as_str(), foreign.members[0].id.as_str()),
        (team.id.as_str(), foreign.members[0].id.as_str()),
        ("team-0", "m-0"),
    ] {
        let answer = w.mention("ann", "chat", "m1", "Please.", &[good, bad]);
        invalid(answer, "mention_not_found", "references[1]");
    }
    assert!(w.jobs(&team).is_empty());
    // Twice the same member is once; the same message again is the same.
    for _ in 0..2 {
        let reply = w.mention("ann", "chat", "m1", "Please.", &[good, good]).expect("dispatched");
        assert_eq!(reply["jobs"].as_array().map(Vec::len), Some(1));
    }
    // The member's own conversation is skipped.
    let own = w.mention("ann", team.thread(0), "m2", "Please.", &[good]).expect("dispatched");
    assert_eq!(own["jobs"], json!([]));
    assert_eq!(w.jobs(&team).len(), 1);
    let many: Vec<(&str, &str)> = vec![good; 17];
    invalid(w.mention("ann", "chat", "m3", "Please.", &many), "too_many_mentions", "references[16]");
}

fn fault_17_an_over_long_mention_is_refused_before_anything(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.open_thread("ann", "chat", "assistant");
    let picked = [(team.id.as_str(), team.members[0].id.as_str()), (team.id.as_str(), team.members[1].id.as_str())];
    let answer = w.mention("ann", "chat", "m1", &"é".repeat(4_001), &picked);
    invalid(answer, "too_long", "text");
    invalid(w.mention("ann", "chat", "m1", " \n", &picked), "empty", "text");
    assert!(w.jobs(&team).is_empty());
    w.mention("ann", "chat", "m1", &"é".repeat(4_000), &picked).expect("dispatched");
    assert_eq!(w.jobs(&team).len(), 2);
}

fn inst_7_a_newer_store_is_refused_by_naming_both_formats(w: World) {
    w.open().expect("harmless when repeated");
    let Some(host) = w.native_host() else { return };
    host.store().put_raw("meta", r#"{"format":3}"#);
    let refusal = w.open().expect_err("refused");
    assert_eq!(refusal.code, "store_format");
    assert!(refusal.message.contains("format 3") && refusal.message.contains("format 2"), "{}", refusal.message);
    // What an earlier component has written is read, and marked as changed.
    host.store().put_raw("meta", r#"{"format":1}"#);
    w.open().expect("format 1 is read");
    w.open().expect("harmless when repeated");
}

fn agents_that_do_not_exist_are_refused_with_those_that_do(w: World) {
    w.double.list_agents(&["agent-ada", "agent-cy"]);
    let refusal =
        invalid(w.action("ann", "create", roster("c", &["ada", "bo"])), "agent_not_found", "members[1].agent");
    assert!(refusal.message.contains("\"agent-bo\"") && refusal.message.contains("\"agent-cy\""), "{refusal:?}");
    assert_eq!(w.action("ann", "list", json!({})).expect("lists")["teams"], json!([]), "nothing was stored");
    w.double.list_agents(&["agent-ada", "agent-bo"]);
    let made = w.action("ann", "create", roster("c", &["ada", "bo"])).expect("the same request");
    assert_eq!(made["team"]["connected"], json!(true));
    // A team that exists is answered also when an agent has gone since.
    w.double.list_agents(&["agent-ada"]);
    w.action("ann", "create", roster("c", &["ada", "bo"])).expect("as it is");
}

fn a_connection_that_works_outlives_an_answer_that_did_not_come(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.hold(true);
    let job = w.send(&team, 0, "r");
    w.work();
    for effect in [Effect::timed_out(), Effect::unavailable(), Effect::other()] {
        w.double.fault(Method::CreateThread, None, 1, effect);
        let before = w.view(&team)["team"]["revision"].clone();
        let refusal = w.connect(&team).expect_err("the host did not answer");
        assert!(["host_timeout", "host_unavailable", "host_unclear"].contains(&&*refusal.code), "{refusal:?}");
        assert!(w.connected(&team));
        assert_eq!(w.view(&team)["team"]["revision"], before, "nothing was stored");
    }
    w.double.release_all();
    w.work();
    assert_eq!(w.status(&team, &job), "completed");
    w.double.revoke("ann");
    refused(w.connect(&team), "denied");
    assert!(!w.connected(&team));
}

/// An agent that reaches an action is not taken for the owner.
fn a_call_from_a_conversation_is_no_action(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let payload = json!({"team_id": team.id}).to_string();
    let answer = w.action_text(&w.caller(&team, 0), true, "delete", &payload);
    assert_eq!(answer.expect_err("refused").code, "not_the_owner");
    assert!(w.connected(&team));
}

fn a_mention_that_is_told_again_reconnects_its_team(mut w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    w.double.open_thread("ann", "chat", "agent-x");
    let to = [(team.id.as_str(), team.members[0].id.as_str())];
    w.mention("ann", "chat", "m", "hello", &to).expect("sent");
    w.restart_with(r#"{"reconnect": "manual"}"#);
    assert!(!w.connected(&team));
    w.mention("ann", "chat", "m", "hello", &to).expect("told again");
    assert!(w.connected(&team));
}

fn a_member_is_found_by_its_label_first(w: World) {
    for n in 0..16 {
        let members: Vec<String> = (1..=8).map(|m| format!("member {m}")).collect();
        let names: Vec<&str> = members.iter().map(String::as_str).collect();
        let mut asked = roster(&format!("c{n}"), &names);
        asked["name"] = json!(format!("team {n:03}"));
        w.action("ann", "create", asked).expect("made");
    }
    let first = |query: &str| {
        let hits = w.action("ann", "search", json!({"query": query})).expect("found");
        hits["hits"][0]["label"].as_str().expect("a label").to_owned()
    };
    assert_eq!(first("team 013 member 3"), "team 013 / member 3");
    assert_eq!(first("team 013 / member 3"), "team 013 / member 3");
    assert_eq!(first("013 3"), "team 013 / member 3", "whole words before parts");
    assert!(first("member 7").ends_with("/ member 7"));
}
