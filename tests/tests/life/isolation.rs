//! Another owner's ids answer, byte for byte, as ids that never existed: in
//! every action, every tool and every mention. The arguments are made from the
//! schemas, so that a new action or tool is covered when it is added.

use agent_teams_host::contract::Caller;
use agent_teams_plugin::exports::{Entry, actions::actions, tools::tools};
use agent_teams_tests::both;
use agent_teams_tests::harness::{Answer, Team, World, bytes_of};
use serde_json::{Map, Value, json};

both!(
    another_owners_ids_are_unknown_in_every_action,
    another_owners_ids_are_unknown_in_every_tool,
    another_owners_ids_are_unknown_in_mentions,
    another_owners_conversation_gives_no_access,
    lists_and_searches_show_ones_own,
);

/// Ids to put into arguments.
#[derive(Clone)]
struct Ids {
    team: String,
    member: String,
    other: String,
}

fn unknown() -> Ids {
    Ids {
        team: format!("team-{}", "0".repeat(32)),
        member: format!("m-{}", "0".repeat(32)),
        other: format!("job-{}", "0".repeat(32)),
    }
}

/// A value that fits a property's schema.
fn sample(name: &str, schema: &Value, ids: &Ids) -> Value {
    match name {
        "team_id" => return json!(ids.team),
        "member_id" | "member" => return json!(ids.member),
        "request_id" => return json!("r"),
        _ if name.ends_with("_id") => return json!(ids.other),
        _ => {}
    }
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    if let Some(first) = schema["oneOf"].get(0) {
        return first.get("const").cloned().unwrap_or_else(|| sample(name, first, ids));
    }
    if let Some(first) = schema["anyOf"].get(0) {
        return sample(name, first, ids);
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str).unwrap_or(""),
        kind => kind.as_str().unwrap_or(""),
    };
    match kind {
        "integer" | "number" => json!(1),
        "boolean" => json!(true),
        "array" => json!([]),
        "object" => json!({}),
        _ => json!("x"),
    }
}

/// Arguments for an action or tool. Nothing: it names no team.
fn arguments(entry: &Entry, ids: &Ids) -> Option<Value> {
    let schema: Value = serde_json::from_str(&entry.schema).expect("a schema");
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    properties.contains_key("team_id").then(|| {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        // A tool's own team may be left out; here another one is named.
        let needed = properties.iter().filter(|(name, _)| *name == "team_id" || required.contains(&json!(name)));
        let values: Map<String, Value> =
            needed.map(|(name, schema)| (name.clone(), sample(name, schema, ids))).collect();
        Value::Object(values)
    })
}

/// A team of bea with a job, and its ids.
fn foreign(w: &World) -> (Team, Ids) {
    let team = w.team("bea", &["ada", "bo"]);
    let job = w.send(&team, 0, "r");
    w.work();
    let ids = Ids { team: team.id.clone(), member: team.members[0].id.clone(), other: job };
    (team, ids)
}

#[track_caller]
fn same(what: &str, foreign: &Answer, unknown: &Answer) {
    match (foreign, unknown) {
        (Err(foreign), Err(unknown)) => assert_eq!(bytes_of(foreign), bytes_of(unknown), "{what}"),
        _ => panic!("{what}: {foreign:?} {unknown:?}"),
    }
}

fn another_owners_ids_are_unknown_in_every_action(w: World) {
    let (team, theirs) = foreign(&w);
    let mine = w.team("ann", &["ada", "bo"]);
    let before = w.view(&team);
    let mut checked = 0;
    for action in actions() {
        let Some(with_theirs) = arguments(&action, &theirs) else { continue };
        let with_unknown = arguments(&action, &unknown()).expect("the same");
        let answer = w.action("ann", action.name, with_theirs);
        same(action.name, &answer, &w.action("ann", action.name, with_unknown));
        assert_eq!(answer.expect_err("refused").code, "team_not_found", "{}", action.name);
        // One's own team with the other's job or member.
        let mixed = |ids: &Ids| arguments(&action, &Ids { team: mine.id.clone(), ..ids.clone() }).expect("the same");
        if mixed(&theirs) != mixed(&unknown()) {
            let answer = w.action("ann", action.name, mixed(&theirs));
            same(action.name, &answer, &w.action("ann", action.name, mixed(&unknown())));
        }
        checked += 1;
    }
    assert!(checked >= 7, "{checked}");
    assert_eq!(w.view(&team), before);
}

fn another_owners_ids_are_unknown_in_every_tool(w: World) {
    let (team, theirs) = foreign(&w);
    let mine = w.team("ann", &["ada", "bo"]);
    let before = w.view(&team);
    let caller = w.caller(&mine, 0);
    // Whatever conversation is claimed: the owner decides.
    let as_theirs = Caller { owner: "ann".into(), ..w.caller(&team, 0) };
    let below = Caller { ancestors: vec![team.thread(0).into()], ..caller.clone() };
    let mut checked = 0;
    for tool in tools() {
        let Some(with_theirs) = arguments(&tool, &theirs) else { continue };
        let with_unknown = arguments(&tool, &unknown()).expect("the same");
        for caller in [&caller, &as_theirs, &below] {
            let answer = w.tool(caller, tool.name, with_theirs.clone());
            same(tool.name, &answer, &w.tool(caller, tool.name, with_unknown.clone()));
            // The board has a code of its own for it.
            let code = answer.expect_err("refused").code;
            assert!(matches!(&*code, "team_not_found" | "TEAM_NOT_MEMBER"), "{} {code}", tool.name);
        }
        let mixed = |ids: &Ids| arguments(&tool, &Ids { team: mine.id.clone(), ..ids.clone() }).expect("the same");
        if mixed(&theirs) != mixed(&unknown()) {
            let answer = w.tool(&caller, tool.name, mixed(&theirs));
            same(tool.name, &answer, &w.tool(&caller, tool.name, mixed(&unknown())));
        }
        checked += 1;
    }
    assert!(checked >= 2, "{checked}");
    assert_eq!(w.view(&team), before);
}

fn another_owners_ids_are_unknown_in_mentions(w: World) {
    let (team, theirs) = foreign(&w);
    let mine = w.team("ann", &["ada", "bo"]);
    w.double.open_thread("ann", "chat", "assistant");
    let none = unknown();
    let before = (w.view(&team), w.view(&mine));
    let dispatch = |team: &str, member: &str| w.mention("ann", "chat", "m", "Please.", &[(team, member)]);
    same("both", &dispatch(&theirs.team, &theirs.member), &dispatch(&none.team, &none.member));
    same("member", &dispatch(&mine.id, &theirs.member), &dispatch(&mine.id, &none.member));
    same("team", &dispatch(&theirs.team, &mine.members[0].id), &dispatch(&none.team, &mine.members[0].id));
    assert_eq!((w.view(&team), w.view(&mine)), before);
}

fn another_owners_conversation_gives_no_access(w: World) {
    let team = w.team("ann", &["ada", "bo"]);
    let mine = w.team("bea", &["ada", "bo"]);
    // bea calls a tool from her own conversation, with a claim on ann's below
    // or above it; neither opens ann's team.
    for ancestors in [vec![team.thread(0).to_owned()], vec![]] {
        let caller = Caller { ancestors, ..w.caller(&mine, 0) };
        let refusal = w.tool(&caller, "read_team_context", json!({"team_id": team.id})).expect_err("refused");
        assert_eq!(refusal.code, "team_not_found");
    }
    // Of one owner's teams, a conversation speaks for its own.
    let second = w.team_named("ann", "second", &["ada", "bo"]);
    let refusal = w.tool(&w.caller(&second, 0), "read_team_context", json!({"team_id": team.id})).expect_err("refused");
    assert_eq!(refusal.code, "team_not_found");
    w.tool(&w.caller(&team, 0), "read_team_context", json!({"team_id": team.id})).expect("a member");
}

fn lists_and_searches_show_ones_own(w: World) {
    foreign(&w);
    assert_eq!(w.action("ann", "list", json!({})).expect("list"), json!({"teams": []}));
    for query in ["", "ada", "core", "%", "_"] {
        assert_eq!(w.action("ann", "search", json!({"query": query})).expect("hits"), json!({"hits": []}), "{query}");
    }
    assert!(!w.action("bea", "search", json!({"query": "ada"})).expect("hits")["hits"][0].is_null());
}
