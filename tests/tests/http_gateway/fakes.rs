//! The component and the agents as the gateway sees them, faked: they note who
//! calls with what, and answer as a test wants.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use agent_teams_host::agents::host::{AgentCard, AgentHost, Conversation, Post, Posted, Transcript, TranscriptMessage};
use agent_teams_host::agents::runs::{
    AgentRuns, Cancellation, Capability, Input, InterruptAnswer, Marker, Run, RunError, ThreadState,
};
use agent_teams_host::contract::EndedRun;
use agent_teams_host::contract::{
    ActionDef, Asset, AssetInfo, CallError, Caller, ErrorKind, MentionHit, MentionMessage, Refusal, TeamRef, ToolDef,
};
use agent_teams_host::gateway::{HealthApi, TeamApi};
use async_trait::async_trait;
use serde_json::json;
use tokio::sync::Notify;
use tokio::sync::broadcast;

pub fn refusal(kind: ErrorKind) -> Refusal {
    Refusal {
        kind,
        code: "some_code".into(),
        message: "Say what to do.".into(),
        field: Some("members[2].name".into()),
        detail: Some(json!({ "revision": 7 })),
    }
}

/// A call into the fake component: who, whose capability, what, with what.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub caller: Caller,
    pub capability: String,
    pub name: String,
    pub payload: String,
}

#[derive(Default)]
pub struct FakeTeam {
    calls: Mutex<Vec<Call>>,
    /// The error of the next action or dispatch.
    pub fail: Mutex<Option<CallError>>,
    /// The owners whose capabilities were taken away.
    pub forgotten: Mutex<Vec<String>>,
    /// `slow` tells of its begin and its end, and goes on when told.
    pub begun: Notify,
    pub go_on: Notify,
    pub ended: Notify,
}

impl FakeTeam {
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }
    fn note(&self, caller: Caller, runs: &Capability, name: &str, payload: &str) -> Result<(), CallError> {
        let call = Call { caller, capability: runs.owner.clone(), name: name.to_owned(), payload: payload.to_owned() };
        self.calls.lock().unwrap().push(call);
        self.fail.lock().unwrap().take().map_or(Ok(()), Err)
    }
}

pub const PAGE: &str = "<!doctype html><title>page</title>";

#[async_trait]
impl TeamApi for FakeTeam {
    async fn actions(&self) -> Result<Vec<ActionDef>, CallError> {
        let input_schema = json!({ "type": "object" });
        Ok(vec![ActionDef {
            name: "list".into(),
            description: "Lists.".into(),
            input_schema,
            output_schema: None,
            read_only: true,
            needs_runs: false,
        }])
    }
    async fn call_action(
        &self,
        caller: Caller,
        runs: Capability,
        action: &str,
        payload: &str,
    ) -> Result<String, CallError> {
        self.note(caller, &runs, action, payload)?;
        match action {
            "panic" => panic!("on purpose"),
            "slow" => {
                self.begun.notify_one();
                self.go_on.notified().await;
                self.ended.notify_one();
            }
            _ => {}
        }
        Ok(r#"{"answer":  "as given"}"#.to_owned())
    }
    async fn tools(&self) -> Result<Vec<ToolDef>, CallError> {
        let input_schema = json!({ "type": "object" });
        Ok(vec![ToolDef {
            name: "send_member".into(),
            description: "Sends.".into(),
            input_schema,
            ..ToolDef::default()
        }])
    }
    async fn search_mentions(&self, caller: Caller, query: &str) -> Result<Vec<MentionHit>, CallError> {
        Ok(vec![MentionHit {
            team: caller.owner,
            member: "m1".into(),
            label: query.to_owned(),
            description: "d".into(),
        }])
    }
    async fn dispatch_mention(
        &self,
        caller: Caller,
        runs: Capability,
        message: MentionMessage,
    ) -> Result<String, CallError> {
        let members: Vec<_> = message.references.iter().map(|r| format!("{}/{}", r.team, r.member)).collect();
        self.note(caller, &runs, &format!("dispatch {}", message.id), &members.join(" "))?;
        Ok(json!({ "jobs": members }).to_string())
    }
    async fn slots(&self) -> Result<String, CallError> {
        Ok(json!([{ "owner": "ann", "job": "job-1" }]).to_string())
    }
    async fn settle(&self, team: &TeamRef, job: &str) -> Result<String, CallError> {
        let TeamRef { owner, team } = team;
        Ok(json!({ "job": { "owner": owner, "team": team, "id": job } }).to_string())
    }
    fn forget(&self, owner: &str) {
        self.forgotten.lock().unwrap().push(owner.to_owned());
    }
    async fn assets(&self) -> Result<Vec<AssetInfo>, CallError> {
        let info =
            |path: &str, media: &str| AssetInfo { path: path.into(), media_type: media.into(), sha256: String::new() };
        Ok(vec![info("index.html", "text/html; charset=utf-8"), info("js/app.js", "text/javascript")])
    }
    async fn asset(&self, path: &str) -> Result<Asset, CallError> {
        Ok(match path {
            "index.html" => Asset { media_type: "text/html; charset=utf-8".into(), body: PAGE.into() },
            _ => Asset { media_type: "text/javascript".into(), body: b"export {};".to_vec() },
        })
    }
}

pub struct Thread {
    pub owner: String,
    pub agent: String,
    pub title: String,
    pub active_run: Option<String>,
    /// Id and text.
    pub messages: Vec<(String, String)>,
}

/// Conversations in memory; every user has the agent `writer`.
#[derive(Clone, Default)]
pub struct FakeAgents {
    threads: Arc<Mutex<HashMap<String, Thread>>>,
    /// The error of the next post.
    pub fail_post: Arc<Mutex<Option<RunError>>>,
    /// Whether every user has as many runs at work as may be.
    pub full: Arc<Mutex<bool>>,
    /// What is wrong with the process.
    pub ill: Arc<Mutex<Option<&'static str>>>,
}

impl FakeAgents {
    pub fn threads(&self) -> MutexGuard<'_, HashMap<String, Thread>> {
        self.threads.lock().unwrap()
    }
    pub fn add_thread(&self, owner: &str, id: &str) {
        let thread = Thread {
            owner: owner.into(),
            agent: "writer".into(),
            title: "t".into(),
            active_run: None,
            messages: Vec::new(),
        };
        self.threads().insert(id.into(), thread);
    }
}

fn not_found() -> RunError {
    RunError::NotFound("a detail that nobody may see".into())
}

#[async_trait]
impl AgentHost for FakeAgents {
    fn ended(&self) -> broadcast::Receiver<EndedRun> {
        broadcast::channel(1).1
    }
    fn catalogue(&self, user: &str) -> Vec<AgentCard> {
        let card = |name: &str| AgentCard { name: name.into(), display_name: user.into(), description: "d".into() };
        vec![card("writer"), card("reader")]
    }
    fn capability(&self, user: &str) -> Capability {
        Capability { owner: user.into(), runs: Arc::new(FakeRuns { user: user.into(), agents: self.clone() }) }
    }
    fn conversations(&self, user: &str, limit: u32) -> Result<Vec<Conversation>, RunError> {
        let threads = self.threads();
        let mut mine: Vec<_> = threads.iter().filter(|(_, t)| t.owner == user).map(|(id, t)| card(id, t)).collect();
        mine.sort_by(|a, b| a.id.cmp(&b.id));
        mine.truncate(limit as usize);
        Ok(mine)
    }
    fn conversation(&self, user: &str, id: &str, after: Option<u64>, limit: u32) -> Result<Transcript, RunError> {
        let threads = self.threads();
        let thread = threads.get(id).filter(|t| t.owner == user).ok_or_else(not_found)?;
        let after = after.unwrap_or(0);
        let numbered = thread.messages.iter().zip(1..).filter(|(_, number)| *number > after);
        let mut messages: Vec<_> = numbered
            .map(|((id, text), number)| TranscriptMessage {
                number,
                id: id.clone(),
                role: "human",
                text: text.clone(),
                run: None,
                tool_calls: Vec::new(),
                created_at: "2026-01-01T00:00:00Z".into(),
                provenance: None,
            })
            .collect();
        let more = messages.len() > limit as usize;
        messages.truncate(limit as usize);
        Ok(Transcript { conversation: card(id, thread), messages, more })
    }
    fn room(&self, _: &str) -> Result<(), RunError> {
        if *self.full.lock().unwrap() { Err(RunError::TooMany("Wait for one.".into())) } else { Ok(()) }
    }
    async fn post(&self, user: &str, post: Post) -> Result<Posted, RunError> {
        if let Some(error) = self.fail_post.lock().unwrap().take() {
            return Err(error);
        }
        let id = post.thread.expect("the gateway names the conversation");
        let mut threads = self.threads();
        let thread = threads.get_mut(&id).filter(|t| t.owner == user).ok_or_else(not_found)?;
        match thread.messages.iter().find(|(known, _)| *known == post.message_id) {
            Some((_, text)) if *text != post.text => return Err(RunError::KeyConflict),
            Some(_) => {}
            None if thread.active_run.is_some() => return Err(RunError::Busy("x".into())),
            None => thread.messages.push((post.message_id.clone(), post.text)),
        }
        Ok(Posted { thread: id, run: format!("run-{}", post.message_id) })
    }
}

#[async_trait]
impl HealthApi for FakeAgents {
    async fn check(&self) -> Result<(), &'static str> {
        self.ill.lock().unwrap().map_or(Ok(()), Err)
    }
}

fn card(id: &str, thread: &Thread) -> Conversation {
    Conversation {
        id: id.to_owned(),
        agent: thread.agent.clone(),
        title: thread.title.clone(),
        created_at: "2026-01-01T00:00:00Z".into(),
        active_run: thread.active_run.clone(),
        waiting_run: None,
    }
}

struct FakeRuns {
    user: String,
    agents: FakeAgents,
}

#[async_trait]
impl AgentRuns for FakeRuns {
    async fn create_thread(&self, id: &str, agent: &str, title: &str, _group: &str) -> Result<(), RunError> {
        let mut threads = self.agents.threads();
        match threads.get(id) {
            Some(thread) if thread.owner != self.user || thread.agent != agent => {
                Err(RunError::Rejected("another agent".into()))
            }
            Some(_) => Ok(()),
            None => {
                let thread = Thread {
                    owner: self.user.clone(),
                    agent: agent.into(),
                    title: title.into(),
                    active_run: None,
                    messages: Vec::new(),
                };
                threads.insert(id.into(), thread);
                Ok(())
            }
        }
    }
    async fn state(&self, id: &str, since: Option<&Marker>, _: Option<&str>) -> Result<ThreadState, RunError> {
        let threads = self.agents.threads();
        let thread = threads.get(id).filter(|t| t.owner == self.user).ok_or_else(not_found)?;
        let found = since.is_some_and(|marker| thread.messages.iter().any(|(id, _)| *id == marker.message_id));
        Ok(ThreadState { found, active_run: thread.active_run.clone(), ..ThreadState::default() })
    }
    async fn start(&self, _: &str, _: &Input, _: &str) -> Result<Run, RunError> {
        unreachable!("the gateway starts no run by itself")
    }
    async fn resume(&self, _: &str, _: &[InterruptAnswer], _: &str) -> Result<Run, RunError> {
        unreachable!("the gateway resumes nothing")
    }
    async fn find(&self, _: &str, _: &str) -> Result<Run, RunError> {
        unreachable!("the gateway looks no run up")
    }
    async fn get(&self, _: &str, _: &str) -> Result<Run, RunError> {
        unreachable!("the gateway reads no run")
    }
    async fn cancel(&self, id: &str, run: &str) -> Result<Cancellation, RunError> {
        let mut threads = self.agents.threads();
        let thread = threads.get_mut(id).filter(|t| t.owner == self.user).ok_or_else(not_found)?;
        if thread.active_run.as_deref() != Some(run) {
            return Err(not_found());
        }
        thread.active_run = None;
        Ok(Cancellation::Stopped)
    }
}
