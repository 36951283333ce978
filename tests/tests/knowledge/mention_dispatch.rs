//! Mentions: search and dispatch.
//!
//! | sentence of the specification | test |
//! |---|---|
//! | labels fall back to the member name over 120 UTF-16 units | `labels_are_bounded_in_utf_16_units` |
//! | at most 16 results; queries of at most 200 characters | `a_search_is_bounded_and_finds_names_literally` |
//! | routing by the structured reference, never by text | `men_2_typed_text_gives_nobody_work` |
//! | references are de-duplicated | `a_message_is_dispatched_once_to_each` |
//! | an unknown or foreign one fails the whole dispatch, naming which | `isolation`, `all_or_nothing_and_the_culprit_is_named` |
//! | a mention of the conversation's own member is skipped | `a_members_own_mention_is_skipped_and_a_person_wrote_it` |
//! | both conversations authorised by the capability | `both_conversations_must_be_allowed` |
//! | de-duplicated by message id | `a_message_is_dispatched_once_to_each` |
//! | a mention can reconnect its team; queued jobs continue | `a_new_mention_reconnects_its_team` |
//! | text parts count; an over-long one is refused by name (reference fault 17) | `fault_17_…` |
//! | results return to the conversation that asked | `the_result_returns_to_the_conversation_that_asked` |

use agent_teams_plugin::app::commands::search::label;
use agent_teams_plugin::domain::error::Kind;
use agent_teams_plugin::domain::limits;
use agent_teams_tests::double::{Effect, Method};
use serde_json::json;

use crate::desk::{Desk, Team, text};

fn chat(desk: &Desk) -> &'static str {
    desk.double.open_thread("ann", "chat", "assistant");
    "chat"
}

fn to(team: &Team, member: usize) -> (&str, &str) {
    (team.id.as_str(), team.members[member].0.as_str())
}

fn jobs(desk: &Desk, team: &Team) -> usize {
    let read = desk.action(team.owner, "get", &json!({"team_id": team.id, "limit": 200})).expect("reads");
    read["jobs"].as_array().map_or(0, Vec::len)
}

#[test]
fn men_1_the_exact_name_comes_first_and_punctuation_is_no_part_of_it() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["plan-b2", "plan-b", "plan"]);
    let names = |query: &str| -> Vec<String> {
        let hits = desk.action("ann", "search", &json!({"query": query})).expect("searches");
        let hits = hits["hits"].as_array().expect("hits").clone();
        let name = |member: &str| team.members.iter().position(|(id, _)| id == member).expect("a member");
        hits.iter().map(|h| ["plan-b2", "plan-b", "plan"][name(&text(&h["member"]))].into()).collect()
    };
    assert_eq!(names("plan"), ["plan", "plan-b2", "plan-b"]);
    assert_eq!(names("plan-b")[0], "plan-b");
    assert_eq!(names("plan-b2,"), ["plan-b2"]);
    assert_eq!(names("plan-b.")[0], "plan-b");
    assert_eq!(names("(@plan)")[0], "plan");
    assert_eq!(names("PLAN-B2"), ["plan-b2"]);
    assert_eq!(names("@"), Vec::<String>::new());
    assert_eq!(names("").len(), 3);
    // Whatever was typed, the reference alone routes.
    let sent = desk.mention("ann", chat(&desk), "m1", "@plan-b2, (@plan) do it", &[to(&team, 1)]).expect("sends");
    assert_eq!(sent["jobs"].as_array().map(Vec::len), Some(1));
    assert_eq!(sent["jobs"][0]["member"], "plan-b");
}

#[test]
fn a_search_is_bounded_and_finds_names_literally() {
    let desk = Desk::default();
    for n in 0..3 {
        let names: Vec<String> = (0..8).map(|m| format!("Agent {n}{m}")).collect();
        desk.team("ann", &format!("team{n}"), &names.iter().map(String::as_str).collect::<Vec<_>>());
    }
    desk.team("ann", "研究", &["CAFÉ", "100%_x", "研究员"]);
    let hits = |query: &str| {
        let hits = desk.action("ann", "search", &json!({"query": query})).expect("searches");
        hits["hits"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(hits("agent"), limits::MENTION_HITS);
    assert_eq!((hits("café"), hits("%_"), hits("_%"), hits("究员"), hits("agent 21")), (1, 1, 0, 1, 1));
    let refused = desk.action("ann", "search", &json!({"query": "x".repeat(201)})).expect_err("too long");
    assert_eq!((refused.code.as_ref(), refused.field.as_deref()), ("too_long", Some("query")));
    assert_eq!(hits(&"x".repeat(200)), 0);
}

#[test]
fn labels_are_bounded_in_utf_16_units() {
    // "team / member": three units lie between.
    for (unit, units) in [("a", 1), ("研", 1), ("😀", 2)] {
        let member = unit.repeat(40 / units);
        let fits = unit.repeat((limits::MENTION_LABEL - 3 - 40) / units);
        let odd = (limits::MENTION_LABEL - 3 - 40) % units;
        assert_eq!(label(&fits, &member).encode_utf16().count() + odd, limits::MENTION_LABEL);
        let over = format!("{fits}{unit}");
        assert_eq!(label(&over, &member), member, "{unit}");
    }
    // Two members of one long-named team keep labels of their own.
    assert_ne!(label(&"t".repeat(80), &"a".repeat(80)), label(&"t".repeat(80), &"b".repeat(80)));
}

#[test]
fn men_2_typed_text_gives_nobody_work() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["ada", "builder"]);
    let body = "ops@builder.io `@builder`\n```\n@builder\n```\n> @builder\n\\@builder please";
    let sent = desk.mention("ann", chat(&desk), "m1", body, &[to(&team, 0)]).expect("sends");
    assert_eq!((sent["jobs"].as_array().map(Vec::len), &sent["jobs"][0]["member"]), (Some(1), &json!("ada")));
    desk.work();
    assert!(desk.double.admissions_in(team.thread(1)).is_empty());
    assert!(desk.double.last_input(team.thread(0)).contains(body), "the text is passed on as it is");
    // Nobody picked: nobody asked.
    let none = desk.mention("ann", "chat", "m2", "@ada @builder", &[]).expect("nothing to do");
    assert_eq!(none, json!({"jobs": []}));
}

#[test]
fn a_message_is_dispatched_once_to_each() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let other = desk.team("ann", "next", &["Cy", "Di"]);
    let picked = [to(&team, 1), to(&other, 0), to(&team, 1), to(&team, 0), to(&other, 0)];
    let first = desk.mention("ann", chat(&desk), "m1", "do it", &picked).expect("sends");
    let list = first["jobs"].as_array().expect("jobs");
    assert_eq!(list.len(), 3);
    assert!(list.iter().all(|j| j["created"] == true && j["status"] == "queued"));
    desk.work();
    let later = Desk { host: desk.host.restarted(), double: desk.double.clone() };
    let again = later.mention("ann", "chat", "m1", "do it", &picked).expect("the same");
    let known = again["jobs"].as_array().expect("jobs");
    assert!(known.iter().zip(list).all(|(a, b)| a["job_id"] == b["job_id"] && a["created"] == false));
    assert!(known.iter().all(|j| j["status"] == "completed"), "its present state");
    let refused = later.mention("ann", "chat", "m1", "do something else", &picked).expect_err("other content");
    assert_eq!((refused.kind, refused.code.as_ref()), (Kind::Conflict, "request_id_reused"));
    // The same words in another message are other work.
    later.mention("ann", "chat", "m2", "do it", &picked[..1]).expect("sends");
    assert_eq!(later.double.violations(), Vec::<String>::new());
}

#[test]
fn all_or_nothing_and_the_culprit_is_named() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let full = desk.team("ann", "full", &["Cy", "Di"]);
    for n in 0..limits::REQUESTS_PER_TEAM {
        desk.send(&full, 0, &format!("r{n}"), "x");
    }
    let thread = chat(&desk);
    let before = desk.host.store().dump();
    let picked = [to(&team, 0), to(&team, 0), to(&team, 1), to(&full, 1)];
    let refused = desk.mention("ann", thread, "m1", "x", &picked).expect_err("one team is full");
    assert_eq!((refused.code.as_ref(), refused.field.as_deref()), ("request_limit", Some("references[3]")));
    let refused = desk.mention("ann", thread, "m1", "x", &[to(&team, 0), to(&team, 0), (&team.id, "m-0")]);
    let refused = refused.expect_err("nobody");
    assert_eq!((refused.code.as_ref(), refused.field.as_deref()), ("mention_not_found", Some("references[2]")));
    let many: Vec<String> = (0..17).map(|n| format!("m-{n}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|m| (team.id.as_str(), m.as_str())).collect();
    let refused = desk.mention("ann", thread, "m1", "x", &many).expect_err("too many");
    assert_eq!((refused.code.as_ref(), refused.field.as_deref()), ("too_many_mentions", Some("references[16]")));
    assert_eq!(desk.host.store().dump(), before);
}

#[test]
fn fault_17_a_long_or_empty_text_is_refused_by_name_before_anything_is_queued() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let thread = chat(&desk);
    let before = desk.host.store().dump();
    for (body, code) in [("x".repeat(4_001), "too_long"), ("研".repeat(2_667), "too_long"), (" \n".into(), "empty")] {
        let refused = desk.mention("ann", thread, "m1", &body, &[to(&team, 0)]).expect_err("refused");
        assert_eq!((refused.code.as_ref(), refused.field.as_deref()), (code, Some("text")));
    }
    let refused = desk.mention("ann", thread, &"m".repeat(129), "x", &[to(&team, 0)]).expect_err("refused");
    assert_eq!(refused.field.as_deref(), Some("id"));
    assert_eq!(desk.host.store().dump(), before);
    // The text of a message with images is its text parts, joined.
    desk.mention("ann", thread, "m1", "look at this\nand this", &[to(&team, 0)]).expect("sends");
    desk.mention("ann", thread, "m2", &"x".repeat(4_000), &[to(&team, 0)]).expect("the bound");
}

#[test]
fn both_conversations_must_be_allowed() {
    for denied in ["chat", "member"] {
        let desk = Desk::default();
        let team = desk.team("ann", "core", &["Ada", "Bo"]);
        let thread = chat(&desk);
        let target = if denied == "chat" { thread } else { team.thread(1) };
        let before = desk.host.store().dump();
        for (effect, code) in [
            (Effect::denied(), "denied"),
            (Effect::rejected(), "denied"),
            (Effect::unavailable(), "host_unavailable"),
            (Effect::timed_out(), "host_unavailable"),
        ] {
            desk.double.fault(Method::State, Some(target), 1, effect);
            let refused = desk.mention("ann", thread, "m1", "x", &[to(&team, 0), to(&team, 1)]).expect_err("refused");
            assert_eq!(refused.code, code, "{denied}");
            assert_eq!(desk.host.store().dump(), before);
        }
        desk.mention("ann", thread, "m1", "x", &[to(&team, 0), to(&team, 1)]).expect("allowed again");
    }
    // Another user's conversation, though its id is known.
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    desk.double.open_thread("bob", "bobs", "assistant");
    assert_eq!(desk.mention("ann", "bobs", "m1", "x", &[to(&team, 0)]).expect_err("denied").code, "denied");
    assert_eq!(jobs(&desk, &team), 0);
}

#[test]
fn a_members_own_mention_is_skipped_and_a_person_wrote_it() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let picked = [to(&team, 0), to(&team, 1)];
    let sent = desk.mention("ann", team.thread(0), "m1", "have a look", &picked).expect("sends");
    assert_eq!((sent["jobs"].as_array().map(Vec::len), &sent["jobs"][0]["member"]), (Some(1), &json!("Bo")));
    desk.work();
    let input = &desk.double.admissions_in(team.thread(1))[0].text;
    assert!(input.contains("From: the team's owner (a person), in the conversation"), "{input}");
    // Its result returns there, to the member whose conversation it is.
    let receipt = desk.double.last_input(team.thread(0));
    assert!(receipt.starts_with("[Agent team result]\nYou are Ada"), "{receipt}");
    let only = desk.mention("ann", team.thread(0), "m2", "note to self", &picked[..1]).expect("nothing to do");
    assert_eq!(only, json!({"jobs": []}));
}

#[test]
fn the_result_returns_to_the_conversation_that_asked() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let sent = desk.mention("ann", chat(&desk), "m1", "work", &[to(&team, 0)]).expect("sends");
    desk.work();
    let input = &desk.double.admissions_in(team.thread(0))[0].text;
    assert!(input.contains("in the conversation chat"), "{input}");
    let receipt = desk.double.last_input("chat");
    assert!(receipt.contains(&text(&sent["jobs"][0]["job_id"])) && receipt.contains("\"result\":\"ok\""), "{receipt}");
    assert_eq!(desk.double.admissions_in("chat").len(), 1);
}

#[test]
fn a_new_mention_reconnects_its_team() {
    let desk = Desk::default();
    desk.host.set_settings(r#"{"reconnect": "manual"}"#);
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let waiting = desk.send(&team, 1, "r1", "queued before the restart");
    let later = Desk { host: desk.host.restarted(), double: desk.double.clone() };
    later.work();
    assert_eq!(later.job(&team, &waiting)["reason"]["code"], "waiting_for_reconnect");
    let mut message = 0;
    later.double.fault(Method::CreateThread, None, 1, Effect::unavailable());
    for connected in [false, true] {
        message += 1;
        later.mention("ann", chat(&later), &format!("m{message}"), "work", &[to(&team, 0)]).expect("taken either way");
        let read = later.action("ann", "get", &json!({"team_id": team.id})).expect("reads");
        assert_eq!(read["team"]["connected"], connected);
    }
    later.work();
    assert_eq!(later.job(&team, &waiting)["status"], "completed");
    assert_eq!(later.double.violations(), Vec::<String>::new());
}
