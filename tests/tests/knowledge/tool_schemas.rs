//! What models read of the tools: schemas made from the types that parse the
//! arguments, and refusals that say what to send instead.

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
        assert_eq!(schema["required"][0], "team_id", "{}", tool.name);
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
    let report = limits::report(limits::SLOTS);
    assert_eq!(report["state"]["entries"], 20);
    assert_eq!(report["state"]["bytes"], 16_000);
    assert_eq!(report["state"]["title"], json!({"characters": 80, "bytes": 160}));
    assert_eq!(report["state"]["content"], json!({"characters": 1_000, "bytes": 2_000}));
    assert_eq!(report["page"], json!({"default": 8, "max": 20}));
    assert_eq!((&report["context_bytes"], &report["page_bytes"]), (&json!(24_000), &json!(24_000)));
}
