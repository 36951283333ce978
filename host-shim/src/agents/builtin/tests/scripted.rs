//! Agents on a script file, as a demo uses them.

use super::*;
use crate::agents::config::AgentsConfig;

const SCRIPT: &str = r#"
# The planner hands the work on; what comes back is its answer.
[[rules]]
agent = "Planner"
human = "*RECEIPT*"
text = "Final: {{after:Result: }}"

[[rules]]
agent = "Planner"
tool = ""
[[rules.calls]]
tool = "send_member"
arguments = { team_id = "{{human:team.id}}", member = "Researcher", request_id = "ask-{{run}}", text = "{{after:Task: }}" }

[[rules]]
agent = "Planner"
tool = "send_member"
result = '*"status":"queued"*'
text = "I asked the Researcher (job {{json:job.id}})."

[[rules]]
agent = "Planner"
tool = "send_member"
text = "It was refused: {{json:error.code}}"

# The researcher asks back once, then answers.
[[rules]]
agent = "Researcher"
human = "*unclear*"
tool = ""
[[rules.calls]]
tool = "ask_clarification"
arguments = { question = "In metres or in feet?", options = ["metres", "feet"] }

[[rules]]
agent = "Researcher"
text = "It is 4,806 ({{text}})."
"#;

#[tokio::test]
async fn three_agents_follow_a_script_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("demo.toml"), SCRIPT).unwrap();
    let mut config: AgentsConfig = toml::from_str(
        "[[agents]]\nname='Planner'\nmodel='script'\n[[agents]]\nname='Researcher'\nmodel='script'\n\
         [models.script]\nkind='scripted'\nscript='demo.toml'",
    )
    .unwrap();
    config.resolve_paths(dir.path());
    let db = Database::open(&dir.path().join("data.db")).unwrap();
    let refuse = Arc::new(Mutex::new(false));
    let told = refuse.clone();
    let hand = move |_: &Caller, _: &str, _: &Value| match *told.lock().unwrap() {
        true => Act::Do(Err(refusal("chain_full"))),
        false => Act::Do(Ok(r#"{"job":{"id":"j1","status":"queued"}}"#.into())),
    };
    let tools = Arc::new(FakeTools::new(Box::new(hand)));
    let users = Arc::new(FakeUsers::default());
    let agents = BuiltinAgents::open(open_tables(&db), config, tools.clone(), users, dir.path().join("w")).unwrap();
    let say = async |thread: &str, agent: &str, id: &str, words: &str, answers: Option<&str>| {
        let runs = agents.capability("ada").runs;
        let mut ended = agents.ended();
        runs.create_thread(thread, agent, "", "group").await.unwrap();
        let run = runs.start(thread, &input(id, words, answers), id).await.unwrap();
        while ended.recv().await.unwrap().run != run.id {}
        let run = runs.get(thread, &run.id).await.unwrap();
        assert_eq!(run.status, RunStatus::Succeeded, "{run:?}");
        let page = agents.conversation("ada", thread, None, 100).unwrap();
        page.messages.last().unwrap().text.clone()
    };
    let request = "Context: {\"team\":{\"id\":\"t-9\"}}\nTask: How high is Mont Blanc? unclear";
    assert_eq!(say("p", "Planner", "h1", request, None).await, "I asked the Researcher (job j1).");
    let (caller, _, arguments) = tools.calls.lock().unwrap()[0].clone();
    let expected = json!({
        "team_id": "t-9", "member": "Researcher", "text": "How high is Mont Blanc? unclear",
        "request_id": format!("ask-{}", caller.run.unwrap()),
    });
    assert_eq!(arguments, expected);
    say("r", "Researcher", "h1", arguments["text"].as_str().unwrap(), None).await;
    let question = agents.capability("ada").runs.state("r", None, None).await.unwrap().open_question.unwrap();
    assert_eq!(question.options, ["metres", "feet"]);
    let answer = say("r", "Researcher", "h2", "metres", Some(&question.id)).await;
    assert_eq!(answer, "It is 4,806 (metres).");
    let receipt = format!("RECEIPT\nResult: {answer}\n");
    assert_eq!(say("p", "Planner", "h2", &receipt, None).await, format!("Final: {answer}"));
    *refuse.lock().unwrap() = true;
    assert_eq!(say("p", "Planner", "h3", request, None).await, "It was refused: chain_full");
}
