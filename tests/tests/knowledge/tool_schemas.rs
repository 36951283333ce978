//! What models read of the tools: schemas made from the types that parse the
//! arguments, and refusals that say what to send instead.

use agent_teams_plugin::app::Caller;
use agent_teams_plugin::domain::limits;
use agent_teams_plugin::exports;
use serde_json::{Value, json};

use crate::desk::Desk;

fn schema(entry: &exports::Entry) -> Value {
    serde_json::from_str(&entry.schema).expect("a schema is JSON")
}

#[test]
fn every_argument_is_described_and_no_other_is_taken() {
    for tool in exports::tools::tools() {
        assert!(tool.description.len() > 40, "{}", tool.name);
        let schema = schema(&tool);
        assert_eq!(
            (&schema["type"], &schema["additionalProperties"]),
            (&json!("object"), &json!(false)),
            "{}",
            tool.name
        );
        let required = schema["required"].as_array().into_iter().flatten();
        assert!(!required.into_iter().any(|name| name == "team_id"), "{}", tool.name);
        assert!(schema["properties"]["team_id"].to_string().contains("your own team"), "{}", tool.name);
        let properties = schema["properties"].as_object().expect("properties");
        for (name, property) in properties {
            assert!(property["description"].is_string(), "{} {name}: {property}", tool.name);
        }
        assert!(!tool.schema.contains("$ref") && !tool.schema.contains("$defs"), "{}: whole in itself", tool.name);
    }
    for action in exports::actions::actions() {
        let schema = schema(&action);
        assert_eq!(schema["additionalProperties"], false, "{}", action.name);
        assert!(!action.description.is_empty());
    }
}

#[test]
fn a_choice_names_its_values_in_the_schema_and_in_the_refusal() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let tools = exports::tools::tools();
    let find = |name: &str| schema(tools.iter().find(|t| t.name == name).expect("a tool"));
    let kinds = ["objective", "plan", "finding", "question", "requirement"];
    for name in ["publish_team_state", "read_team_state"] {
        let property = find(name)["properties"]["kind"].to_string();
        assert!(kinds.iter().all(|k| property.contains(&format!("\"{k}\""))), "{property}");
    }
    let args = json!({"request_id": "k", "kind": "opinion", "title": "t", "content": "c"});
    let refused = desk.member(&team, 0, "publish_team_state", args).expect_err("no such kind");
    assert!(kinds.iter().all(|k| refused.message.contains(k)), "{}", refused.message);
    let args = json!({"request_id": "k", "kind": "plan", "title": "t"});
    let refused = desk.member(&team, 0, "publish_team_state", args).expect_err("content is missing");
    assert_eq!((refused.code.as_ref(), refused.field.as_deref()), ("missing_field", Some("content")));
    let args = json!({"member_id": "Zed"});
    let refused = desk.member(&team, 0, "read_team_history", args).expect_err("nobody");
    assert!(refused.message.contains("Ada, Bo"), "{}", refused.message);
}

#[test]
fn the_bounds_are_reported() {
    let report = limits::report(limits::SLOTS, limits::BOARD_TASKS);
    assert_eq!(report["state"]["entries"], 20);
    assert_eq!(report["state"]["bytes"], 16_000);
    assert_eq!(report["state"]["title"], json!({"characters": 80, "bytes": 160}));
    assert_eq!(report["state"]["content"], json!({"characters": 1_000, "bytes": 2_000}));
    assert_eq!(report["page"], json!({"default": 8, "max": 20}));
    assert_eq!((&report["context_bytes"], &report["page_bytes"]), (&json!(24_000), &json!(24_000)));
}

#[test]
fn a_tool_means_the_team_of_its_conversation() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let other = desk.team("ann", "other", &["Cy", "Di"]);
    let context = |thread: &str, arguments: Value| desk.tool("ann", thread, "read_team_context", &arguments);
    for left_out in [json!({}), json!({"team_id": null}), json!({"team_id": ""})] {
        assert_eq!(context(team.thread(0), left_out.clone()).expect("reads")["team_id"], team.id.as_str());
        assert_eq!(context(other.thread(1), left_out).expect("reads")["team_id"], other.id.as_str());
    }
    // It is the same call either way, so that its repetition is, too.
    let send = json!({"member": "Bo", "request_id": "r", "text": "x"});
    let first = desk.tool("ann", team.thread(0), "send_member", &send).expect("sends");
    let again = desk.member(&team, 0, "send_member", send.clone()).expect("sends");
    assert_eq!((&again["job_id"], &again["created"]), (&first["job_id"], &json!(false)));
    // A conversation below a member's means that member's team.
    let below = Caller {
        owner: "ann".into(),
        thread: Some("below".into()),
        ancestors: vec!["between".into(), other.thread(0).into(), team.thread(0).into()],
        ..Caller::default()
    };
    let read = desk.tool_as(&below, "read_team_context", &json!({})).expect("reads");
    assert_eq!(read["team_id"], other.id.as_str());
    // Its name is no id, and neither is anything else.
    for wrong in ["core", "other", "nothing"] {
        let refused = context(team.thread(0), json!({"team_id": wrong})).expect_err("no such team");
        assert_eq!((refused.code.as_ref(), refused.field.as_deref()), ("team_not_found", Some("team_id")), "{wrong}");
    }
    // Elsewhere there is none to mean: the answer for a team that is not there.
    for thread in ["elsewhere", "lead"] {
        let unknown = context(thread, json!({"team_id": "team-0"})).expect_err("no team");
        assert_eq!(context(thread, json!({})).expect_err("no team"), unknown);
        let refused = desk.tool("ann", thread, "list_team_tasks", &json!({})).expect_err("no board");
        assert_eq!(
            refused,
            desk.tool("ann", thread, "list_team_tasks", &json!({"team_id": "team-0"})).expect_err("none")
        );
    }
    let refused = desk.tool("bob", team.thread(0), "read_team_context", &json!({})).expect_err("another owner");
    assert_eq!(refused.code, "team_not_found");
}

#[test]
fn a_conversation_of_two_teams_must_say_which() {
    let desk = Desk::default();
    let document = |id: &str| {
        json!({"id": id, "name": format!("Team {id}"), "goal": "g", "ready": true, "members": [
            {"id": format!("{id}1"), "name": "A", "agent": "a", "thread_id": "shared"},
            {"id": format!("{id}2"), "name": "B", "agent": "b", "thread_id": format!("{id}-own")},
        ]})
    };
    for id in ["one", "two"] {
        desk.action("ann", "import_team", &json!({"team": document(id)})).expect("imports");
    }
    let refused = desk.tool("ann", "shared", "read_team_context", &json!({})).expect_err("which?");
    assert_eq!((refused.code.as_ref(), refused.field.as_deref()), ("missing_field", Some("team_id")));
    assert!(refused.message.contains("one (Team one), two (Team two)"), "{}", refused.message);
    let named = desk.tool("ann", "shared", "read_team_context", &json!({"team_id": "two"})).expect("reads");
    assert_eq!(named["team_id"], "two");
    let own = desk.tool("ann", "one-own", "read_team_context", &json!({})).expect("reads");
    assert_eq!(own["team_id"], "one");
}
