//! The tool loop of one run.
//!
//! Each round reads from the tables what has been done, does the one next
//! thing (a model call, or one tool call) and writes its outcome. Nothing is
//! remembered between rounds but the clock, so a crash at any point is only
//! another round. An assistant message is written before its calls run, and
//! calls carry ids made from run, message number and index: a call that is
//! made again after a crash is the same call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use tokio::sync::watch;

use super::steps::{
    At, Decision, MAX_CALLS, MAX_REPEATS, Situation, append_result, ask, count_repeats, decided, going, last_calls,
    situation, take_calls,
};
use super::tables::{self, MessageRow, Problem, StoredCall};
use super::{BuiltinAgents, MAX_RUN_MESSAGES, Signal, ids, tools, window};
use crate::agents::config::AgentConfig;
use crate::agents::providers::{ModelError, ModelReply, ModelRequest};
use crate::agents::runs::RunStatus;
use crate::contract::{CallError, Caller, EndedRun, ErrorKind, ToolDef};

/// Bytes stored of one assistant text.
const MAX_TEXT: usize = 256 * 1024;
/// Smallest window after a provider has said that the input is too long.
const MIN_WINDOW: usize = 256;
/// How often a tool call whose outcome is unknown is repeated.
const UNKNOWN_RETRIES: u32 = 3;
/// Rounds in a row that may fail on the database before the run is ended.
const MAX_FAULTS: u32 = 8;

/// The task's own knowledge: clock and window. A later task starts afresh.
struct Leg {
    begun: Instant,
    /// Budget of the window, once a provider found the configured one too large.
    window: Option<usize>,
    pause: Duration,
}

/// What a round came to.
enum Round {
    Next,
    /// The task ends; the run stays as it is stored.
    Leave,
    End(RunStatus, Option<String>),
}

fn failed(why: impl Into<String>) -> Round {
    Round::End(RunStatus::Failed, Some(why.into()))
}

impl BuiltinAgents {
    /// Works on a run until it ends, pauses, or the host stops.
    pub(super) async fn drive(self: Arc<Self>, run: String, mut signal: watch::Receiver<Signal>) {
        let mut leg = Leg { begun: Instant::now(), window: None, pause: Duration::from_millis(200) };
        let mut faults = 0;
        loop {
            if *signal.borrow_and_update() == Signal::Shutdown {
                return;
            }
            let error = match self.round(&run, &mut leg, &mut signal).await {
                Ok(Round::Next) => {
                    faults = 0;
                    continue;
                }
                Ok(Round::Leave) => return,
                Ok(Round::End(status, why)) => match self.finish(&run, status, why).await {
                    Ok(()) => return,
                    Err(e) => e,
                },
                Err(e) => e,
            };
            // The database did not answer. What was written is read again.
            faults += 1;
            tracing::error!(run, faults, "a step of a run failed: {error:#}");
            if faults >= MAX_FAULTS {
                let why = "internal: the host could not go on with this run".to_owned();
                if self.finish(&run, RunStatus::Failed, Some(why)).await.is_ok() {
                    return;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(leg.pause) => {}
                _ = signal.changed() => {}
            }
            leg.pause = (leg.pause * 2).min(Duration::from_secs(30));
        }
    }

    async fn round(&self, run: &str, leg: &mut Leg, signal: &mut watch::Receiver<Signal>) -> anyhow::Result<Round> {
        let (at, open) = match self.db.read(|c| situation(c, run))? {
            Situation::Over => return Ok(Round::Leave),
            Situation::Cancelled => return Ok(Round::End(RunStatus::Cancelled, None)),
            Situation::Model(at) => (at, None),
            Situation::Tools(at, open) => (at, Some(open)),
        };
        let Some(agent) = self.agent(&at.thread.agent).filter(|a| a.allows_user(&at.thread.owner)) else {
            return Ok(failed("agent_gone: the agent of this conversation does not exist any more"));
        };
        if !self.users.enabled(&at.thread.owner) {
            return Ok(failed("user_disabled: the user of this conversation is not enabled"));
        }
        let limit = Duration::from_secs(u64::from(agent.max_minutes) * 60);
        let spent = Duration::from_millis(u64::try_from(at.run.spent_ms).unwrap_or(0));
        let Some(left) = limit.checked_sub(spent).filter(|l| !l.is_zero()) else {
            return Ok(limit_minutes(agent));
        };
        leg.begun = Instant::now();
        let component = match self.component_tools.get_or_try_init(|| self.tools.list()).await {
            Ok(tools) => tools,
            Err(CallError::Fault { code: "host_stopping", .. }) => return Ok(until_told(signal).await),
            Err(e) => return Ok(failed(format!("tools_unavailable: {e}"))),
        };
        let allowed = tools::of_agent(agent, component);
        match open {
            None => self.model_round(&at, agent, allowed, leg, left, signal).await,
            Some(open) => self.tool_round(&at, agent, &allowed, open, leg, left, signal).await,
        }
    }

    async fn model_round(
        &self,
        at: &At,
        agent: &AgentConfig,
        allowed: Vec<ToolDef>,
        leg: &mut Leg,
        left: Duration,
        signal: &mut watch::Receiver<Signal>,
    ) -> anyhow::Result<Round> {
        if at.run.model_calls >= agent.max_model_calls {
            return Ok(failed(format!("limit_model_calls: the run made {} model calls", agent.max_model_calls)));
        }
        let added = at.thread.next_number - at.run.message;
        if added + MAX_CALLS as i64 + 1 > i64::from(MAX_RUN_MESSAGES) {
            return Ok(failed(format!("limit_messages: the run added {added} messages")));
        }
        let Some(model) = self.models.get(&agent.model) else {
            return Ok(failed("provider_misconfigured: the agent's model does not exist"));
        };
        let budget = leg.window.unwrap_or_else(|| budget(agent, &allowed));
        let messages = self.db.read(|c| window::build(c, &at.run, budget))?;
        let request = ModelRequest {
            agent: agent.name.clone(),
            run: at.run.id.clone(),
            call: at.run.model_calls,
            instructions: agent.instructions.clone(),
            messages,
            tools: allowed,
        };
        let answer = tokio::select! {
            answer = tokio::time::timeout(left, model.complete(&request)) => answer,
            _ = signal.changed() => return Ok(Round::Next),
        };
        let reply = match answer {
            Err(_) => return Ok(limit_minutes(agent)),
            Ok(Err(ModelError::ContextTooLong)) if budget / 2 >= MIN_WINDOW => {
                // Half of what was really sent, so that it always gets smaller.
                leg.window = Some((window::size(&request.messages).min(budget) / 2).max(MIN_WINDOW));
                tracing::info!(run = at.run.id, "the input was too long for the model endpoint: sending less");
                return Ok(Round::Next);
            }
            Ok(Err(e)) => return Ok(failed(e.to_string())),
            Ok(Ok(reply)) => reply,
        };
        self.keep_reply(at, reply, leg.begun.elapsed()).await
    }

    /// Writes the assistant message. Without calls it is the last one, and
    /// the run ends in the same commit.
    async fn keep_reply(&self, at: &At, reply: ModelReply, spent: Duration) -> anyhow::Result<Round> {
        let run = at.run.id.clone();
        let ended = self
            .db
            .write(move |c| {
                let Some(run) = going(c, &run)? else { return Ok(Kept::Go) };
                let number = tables::next_number(c, run.thread)?;
                let calls = take_calls(&run.id, number, &reply);
                let (digest, repeats, endless) = count_repeats(&run, &calls);
                let message = MessageRow {
                    number,
                    id: format!("{}-{number}", run.id),
                    role: "assistant".into(),
                    text: ids::shorten(&reply.text, MAX_TEXT).into_owned(),
                    run: run.id.clone(),
                    calls,
                    ..MessageRow::default()
                };
                tables::append(c, run.thread, &message)?;
                c.execute(
                    "UPDATE agent_runs SET model_calls = model_calls + 1, spent_ms = spent_ms + ?, repeat_digest = ?,
                        repeat_count = ? WHERE id = ?",
                    params![millis(spent), digest, repeats, run.id],
                )?;
                if message.calls.is_empty() {
                    tables::end_run(c, &run, RunStatus::Succeeded, None)?;
                    return Ok(Kept::Ended);
                }
                Ok(endless.map_or(Kept::Go, Kept::Endless))
            })
            .await?;
        Ok(match ended {
            Kept::Go => Round::Next,
            Kept::Ended => {
                self.announce(&at.thread.id, &at.run.id);
                Round::Leave
            }
            Kept::Endless(tool) => failed(format!(
                "limit_repeated_call: the tool {tool} was called more than {MAX_REPEATS} times in a row with the same arguments"
            )),
        })
    }

    /// Does the next call of the last assistant message.
    #[allow(clippy::too_many_arguments)]
    async fn tool_round(
        &self,
        at: &At,
        agent: &AgentConfig,
        allowed: &[ToolDef],
        mut open: Vec<StoredCall>,
        leg: &Leg,
        left: Duration,
        signal: &mut watch::Receiver<Signal>,
    ) -> anyhow::Result<Round> {
        let known = |call: &StoredCall| allowed.iter().any(|t| t.name == call.name);
        let clarifies = |call: &StoredCall| call.name == tools::CLARIFY && call.problem.is_none() && known(call);
        // Questions come last, whatever their place: they end the turn.
        let Some(next) = open.iter().position(|c| !clarifies(c)) else {
            let call = open.remove(open.len() - 1);
            if !open.is_empty() {
                let text = tools::error_text(
                    "one_question",
                    "Only the first question of a message is asked. Ask this one later.",
                    None,
                );
                return self.keep_result(at, &call, text, leg.begun.elapsed()).await;
            }
            return self.clarify(at, call, leg.begun.elapsed()).await;
        };
        let call = open[next].clone();
        if let Some(Problem { code, message }) = &call.problem {
            let text = tools::error_text(code, message, None);
            return self.keep_result(at, &call, text, leg.begun.elapsed()).await;
        }
        if !known(&call) {
            let names: Vec<&str> = allowed.iter().map(|t| t.name.as_str()).collect();
            let message = format!("There is no tool of this name. Your tools: {}.", names.join(", "));
            let text = tools::error_text("unknown_tool", &message, None);
            return self.keep_result(at, &call, text, leg.begun.elapsed()).await;
        }
        if agent.needs_approval(&call.name) {
            let asking: Vec<StoredCall> = open
                .iter()
                .filter(|c| c.problem.is_none() && known(c) && agent.needs_approval(&c.name) && !clarifies(c))
                .cloned()
                .collect();
            match self.approval(at, &call, asking, leg.begun.elapsed()).await? {
                Decision::Approved => {}
                Decision::Refused(text) => return self.keep_result(at, &call, text, leg.begun.elapsed()).await,
                Decision::Waits => return Ok(Round::Leave),
            }
        }
        let result = tokio::select! {
            result = tokio::time::timeout(left, self.execute(at, &call)) => result,
            // A cancel writes down that this call was given up; after a
            // shutdown it is made again with the same id.
            _ = signal.changed() => return Ok(Round::Next),
        };
        match result {
            Err(_) => Ok(limit_minutes(agent)),
            Ok(None) => Ok(until_told(signal).await),
            Ok(Some(text)) => self.keep_result(at, &call, text, leg.begun.elapsed()).await,
        }
    }

    /// The result text; absent while the host stops.
    async fn execute(&self, at: &At, call: &StoredCall) -> Option<String> {
        let root = self.workspace(&at.thread.owner, &at.thread.id);
        if let Some(text) = tools::files(root, &call.name, &call.arguments, &call.id).await {
            return Some(text);
        }
        let caller = Caller {
            owner: at.thread.owner.clone(),
            thread: Some(at.thread.id.clone()),
            ancestors: Vec::new(),
            run: Some(at.run.id.clone()),
            call: Some(call.id.clone()),
        };
        let arguments = call.arguments.to_string();
        let mut retries = 0;
        loop {
            match self.tools.call(caller.clone(), &call.name, &arguments).await {
                Ok(text) => return Some(text),
                Err(CallError::Fault { code: "host_stopping", .. }) => return None,
                // The same call id makes the repetition safe, and it tells.
                Err(CallError::Refused(r)) if r.kind == ErrorKind::Unknown && retries < UNKNOWN_RETRIES => {
                    retries += 1;
                    tokio::time::sleep(Duration::from_millis(200 * u64::from(retries))).await;
                }
                Err(e) => return Some(tools::call_error_text(&e)),
            }
        }
    }

    /// Writes the one result of a call.
    async fn keep_result(&self, at: &At, call: &StoredCall, text: String, spent: Duration) -> anyhow::Result<Round> {
        let (run, call) = (at.run.id.clone(), call.clone());
        self.db
            .write(move |c| {
                let Some(run) = going(c, &run)? else { return Ok(()) };
                append_result(c, &run, &call, tools::bounded(text))?;
                add_spent(c, &run.id, spent)
            })
            .await?;
        Ok(Round::Next)
    }

    /// Ends the turn with a question, if the call asks one.
    async fn clarify(&self, at: &At, call: StoredCall, spent: Duration) -> anyhow::Result<Round> {
        let question = match tools::clarification(&call.id, &call.arguments) {
            Ok(question) => question,
            Err(text) => return self.keep_result(at, &call, text, spent).await,
        };
        let run = at.run.id.clone();
        let ended = self
            .db
            .write(move |c| {
                let Some(run) = going(c, &run)? else { return Ok(false) };
                let number = tables::next_number(c, run.thread)?;
                let message = MessageRow {
                    number,
                    id: call.id,
                    role: "tool".into(),
                    text: tools::clarification_text(&question),
                    run: run.id.clone(),
                    tool: Some(call.name),
                    question: Some(question),
                    ..MessageRow::default()
                };
                tables::append(c, run.thread, &message)?;
                tables::set_open_question(c, run.thread, Some(number))?;
                add_spent(c, &run.id, spent)?;
                tables::end_run(c, &run, RunStatus::Succeeded, None)?;
                Ok(true)
            })
            .await?;
        if ended {
            self.announce(&at.thread.id, &at.run.id);
            return Ok(Round::Leave);
        }
        Ok(Round::Next)
    }

    /// What was decided about a call; asks for all of `asking` at once.
    async fn approval(
        &self,
        at: &At,
        call: &StoredCall,
        asking: Vec<StoredCall>,
        spent: Duration,
    ) -> anyhow::Result<Decision> {
        let (run, call) = (at.run.id.clone(), call.clone());
        let decision = self
            .db
            .write(move |c| {
                let Some(run) = going(c, &run)? else { return Ok(None) };
                if let Some(approval) = tables::approval(c, &call.id)?
                    && let Some(decision) = &approval.decision
                {
                    return Ok(Some(decided(&approval, decision, &call)));
                }
                for call in &asking {
                    if tables::approval(c, &call.id)?.is_none() {
                        tables::insert_approval(c, &ask(&run.id, call))?;
                    }
                }
                add_spent(c, &run.id, spent)?;
                tables::set_status(c, &run.id, RunStatus::Interrupted)?;
                Ok(Some(Decision::Waits))
            })
            .await?;
        if matches!(decision, Some(Decision::Waits)) {
            self.announce(&at.thread.id, &at.run.id);
        }
        // Cancelled meanwhile: the task of the cancelled run has to end it,
        // and does so on its next round.
        Ok(decision.unwrap_or(Decision::Refused(String::new())))
    }

    /// Ends a run that has not ended: its open calls get results that say so,
    /// in the same commit. Does nothing to an ended one.
    pub(super) async fn finish(&self, run: &str, status: RunStatus, why: Option<String>) -> anyhow::Result<()> {
        let id = run.to_owned();
        let ended = self
            .db
            .write(move |c| {
                let Some(run) = tables::run(c, &id)?.filter(|r| !r.ended()) else { return Ok(None) };
                let (status, why) = if run.cancel { (RunStatus::Cancelled, None) } else { (status, why) };
                let (_, open) = last_calls(c, &run)?;
                for call in open {
                    let text = tools::error_text(
                        "not_finished",
                        "The run ended before this call had a result; whether it had an effect is not known.",
                        None,
                    );
                    append_result(c, &run, &call, text)?;
                }
                tables::end_run(c, &run, status, why.as_deref())?;
                Ok(Some(tables::thread_by_key(c, run.thread)?.id))
            })
            .await?;
        if let Some(thread) = ended {
            self.announce(&thread, run);
        }
        Ok(())
    }

    /// After the commit only.
    fn announce(&self, thread: &str, run: &str) {
        let _ = self.ended.send(EndedRun { thread: thread.to_owned(), run: run.to_owned() });
    }
}

enum Kept {
    Go,
    Ended,
    Endless(String),
}

fn limit_minutes(agent: &AgentConfig) -> Round {
    failed(format!("limit_minutes: the run worked for {} minutes", agent.max_minutes))
}

/// The component answers no more because the host stops: so does this task.
async fn until_told(signal: &mut watch::Receiver<Signal>) -> Round {
    let _ = signal.changed().await;
    Round::Next
}

/// Estimated tokens left for messages: a quarter of the context, at most
/// 4,096, is left for the reply.
fn budget(agent: &AgentConfig, allowed: &[ToolDef]) -> usize {
    let context = agent.context_tokens as usize;
    let tools: usize = allowed
        .iter()
        .map(|t| 8 + window::tokens(t.name.len() + t.description.len() + t.input_schema.to_string().len()))
        .sum();
    let fixed = window::tokens(agent.instructions.len()) + tools + (context / 4).min(4096);
    context.saturating_sub(fixed).max(MIN_WINDOW)
}

fn millis(d: Duration) -> i64 {
    i64::try_from(d.as_millis()).unwrap_or(i64::MAX)
}

fn add_spent(c: &Connection, run: &str, spent: Duration) -> anyhow::Result<()> {
    c.execute("UPDATE agent_runs SET spent_ms = spent_ms + ? WHERE id = ?", params![millis(spent), run])?;
    Ok(())
}
