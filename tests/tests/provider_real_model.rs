//! The tool loop on a real model server. Opt-in: see `real-model/README.md`.

use std::sync::{Arc, Mutex};

use agent_teams_host::agents::builtin::BuiltinAgents;
use agent_teams_host::agents::config::AgentsConfig;
use agent_teams_host::agents::host::ToolHost;
use agent_teams_host::agents::runs::{Input, RunStatus};
use agent_teams_host::clock::SystemClock;
use agent_teams_host::contract::{CallError, Caller, ToolDef};
use agent_teams_host::storage::SqliteTables;
use agent_teams_host::storage::database::Database;
use agent_teams_host::users::UserDirectory;
use async_trait::async_trait;
use serde_json::{Value, json};

#[derive(Default)]
struct Tools(Mutex<Vec<(Caller, Value)>>);

#[async_trait]
impl ToolHost for Tools {
    async fn list(&self) -> Result<Vec<ToolDef>, CallError> {
        Ok(vec![ToolDef {
            name: "send_member".into(),
            description: "Send a request to a member of your team.".into(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "member": {"type": "string", "enum": ["Researcher", "Writer"]},
                    "text": {"type": "string", "minLength": 1, "maxLength": 200},
                },
                "required": ["member", "text"],
                "additionalProperties": false,
            }),
            ..ToolDef::default()
        }])
    }

    async fn call(&self, caller: Caller, name: &str, arguments: &str) -> Result<String, CallError> {
        assert_eq!(name, "send_member");
        let arguments = serde_json::from_str(arguments).expect("arguments are JSON");
        self.0.lock().unwrap_or_else(|e| e.into_inner()).push((caller, arguments));
        Ok(json!({"job": {"status": "queued"}}).to_string())
    }
}

struct Everybody;

impl UserDirectory for Everybody {
    fn enabled(&self, _: &str) -> anyhow::Result<bool> {
        Ok(true)
    }
}

#[tokio::test]
async fn a_real_model_calls_send_member_and_ends_its_turn() {
    let Ok(url) = std::env::var("AGENT_TEAMS_REAL_MODEL") else {
        println!("not run: AGENT_TEAMS_REAL_MODEL names no model server (see tests/real-model/README.md)");
        return;
    };
    let name = std::env::var("AGENT_TEAMS_REAL_MODEL_NAME").unwrap_or_else(|_| "smollm2-135m".into());
    let key = match std::env::var("AGENT_TEAMS_REAL_MODEL_KEY") {
        Ok(_) => "api_key_env = 'AGENT_TEAMS_REAL_MODEL_KEY'",
        Err(_) => "",
    };
    let config: AgentsConfig = toml::from_str(&format!(
        "[[agents]]\nname = 'planner'\nmodel = 'real'\ntools = ['send_member']\nmax_model_calls = 8\n\
         instructions = 'You plan. Hand work to a member with send_member, then say what you did.'\n\
         [models.real]\nkind = 'openai'\nbase_url = '{url}'\nmodel = '{name}'\ntemperature = 0.0\n\
         max_tokens = 200\ntimeout_seconds = 300\n{key}"
    ))
    .expect("the configuration is valid");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let db = Database::open(&dir.path().join("data.db")).expect("a new database");
    let tools = Arc::new(Tools::default());
    let tables = SqliteTables::open(db, Arc::new(SystemClock)).await.expect("the tables");
    let agents = BuiltinAgents::open(tables, config, tools.clone(), Arc::new(Everybody), dir.path().join("workspaces"))
        .expect("the agents open");
    let runs = agents.capability("ada").runs;
    let mut ended = agents.ended();
    runs.create_thread("t", "planner", "", "group").await.expect("a conversation");
    let input = Input {
        message_id: "h1".into(),
        text: "Ask the Researcher to find the height of Mont Blanc.".into(),
        answers: None,
        provenance: "{}".into(),
        ..Input::default()
    };
    let run = runs.start("t", &input, "k1").await.expect("the run starts");
    while ended.recv().await.expect("the run ends").run != run.id {}
    let run = runs.get("t", &run.id).await.expect("the run is there");
    let page = agents.conversation("ada", "t", None, 100).expect("the conversation is there");
    for message in &page.messages {
        println!("{}: {} {:?}", message.role, message.text, message.tool_calls);
    }
    assert_eq!(run.status, RunStatus::Succeeded, "{run:?}");
    let calls = tools.0.lock().unwrap_or_else(|e| e.into_inner());
    assert!(!calls.is_empty(), "the model called no tool");
    let (caller, arguments) = &calls[0];
    assert_eq!((caller.owner.as_str(), caller.thread.as_deref()), ("ada", Some("t")));
    assert!(arguments["text"].as_str().is_some_and(|t| !t.is_empty()));
    let answer = page.messages.last().expect("there are messages");
    assert!(answer.role == "assistant" && !answer.text.is_empty());
}
