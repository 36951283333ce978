//! The tool loop of one run.
//!
//! Each round reads from the tables what has been done and does the one next
//! thing, a model call or one tool call; what it came to is written before the
//! next round (`outcome`). Nothing else is remembered between rounds but the
//! clock, so a crash at any point is only another round. An assistant message
//! is written before its calls run, and calls carry ids made from run, message
//! number and index: a call that is made again after a crash is the same call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::live::{Begin, Signal};
use super::outcome::{Kept, Outcome, Pending, Place};
use super::steps::{At, Decision, MAX_CALLS, Situation, decided, situation};
use super::{BuiltinAgents, MAX_ATTEMPTS, MAX_RUN_MESSAGES, tools, window};
use crate::agents::config::AgentConfig;
use crate::agents::providers::{ModelError, ModelReply, ModelRequest};
use crate::contract::{CallError, Caller, FaultCode, ToolDef};
use crate::storage::tables::agents::{Problem, RunStatus, StoredCall};
use crate::storage::tables::temporary;

/// Smallest window after a provider has said that the input is too long.
const MIN_WINDOW: usize = 256;
/// How often a tool call whose outcome is unknown is repeated.
const UNKNOWN_RETRIES: u32 = 3;
/// Rounds in a row that may fail for a reason that waiting does not end, before
/// the run is ended.
const MAX_FAULTS: u32 = 8;
/// The pause after a fault; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause before the work on a run is begun again that has ended in
/// crashes of the host.
const LONGEST_REST: Duration = Duration::from_secs(300);

/// The task's own knowledge: clock and window. A later task starts afresh.
struct Leg {
    /// Whether the run's own count holds this attempt.
    counted: bool,
    /// Since when working time is not written yet.
    since: Instant,
    /// Budget of the window, once a provider found the configured one too large.
    window: Option<usize>,
    pause: Duration,
    faults: u32,
    /// A write has failed. The run may have ended by it all the same, which is
    /// then still to be announced.
    doubt: bool,
}

impl Leg {
    fn new(begin: Begin) -> Self {
        Self {
            counted: begin == Begin::Committed,
            since: Instant::now(),
            window: None,
            pause: FIRST_PAUSE,
            faults: 0,
            doubt: false,
        }
    }

    /// An outcome was written.
    fn written(&mut self) {
        self.since = Instant::now();
        self.pause = FIRST_PAUSE;
        self.faults = 0;
    }
}

/// What a round came to.
enum Round {
    Next,
    Write(Pending),
    /// The run has ended, or waits; of the conversation with this id.
    Over(Option<Place>),
}

/// Why a round did not come to anything.
enum Fault {
    /// The store does not answer now. It costs nothing to try again for as long
    /// as it takes, and ending the run would have to be written, too.
    Later(anyhow::Error),
    /// Waiting is not known to help.
    Broken(anyhow::Error),
}

impl From<anyhow::Error> for Fault {
    fn from(error: anyhow::Error) -> Self {
        if temporary(&error) { Self::Later(error) } else { Self::Broken(error) }
    }
}

type Step = Result<Round, Fault>;
type Told = watch::Receiver<Signal>;

fn failed(why: impl Into<String>) -> Step {
    Ok(Round::Write(Pending::failed(why)))
}

/// What a round works with.
struct Turn<'a> {
    at: Box<At>,
    agent: &'a AgentConfig,
    allowed: Vec<ToolDef>,
    /// Working time left.
    left: Duration,
}

impl Turn<'_> {
    fn knows(&self, call: &StoredCall) -> bool {
        self.allowed.iter().any(|t| t.name == call.name)
    }

    /// Whether the call asks a question.
    fn clarifies(&self, call: &StoredCall) -> bool {
        call.name == tools::CLARIFY && call.problem.is_none() && self.knows(call)
    }

    fn limit_minutes(&self) -> Step {
        limit_minutes(self.agent)
    }
}

impl BuiltinAgents {
    /// Works on a run until it ends, pauses, or the host stops.
    pub(super) async fn drive(self: Arc<Self>, run: String, begin: Begin, mut signal: Told) {
        let mut leg = Leg::new(begin);
        let mut pending: Option<Pending> = None;
        loop {
            let stopping = *signal.borrow_and_update() == Signal::Shutdown;
            // What is not written yet goes first, once more also before a stop.
            let step = match pending.take() {
                Some(outcome) => Ok(Round::Write(outcome)),
                None if stopping => return self.leave_in_order(&run, &leg).await,
                None => self.round(&run, &mut leg, &mut signal).await,
            };
            let fault = match step {
                Ok(Round::Next) => continue,
                Ok(Round::Over(place)) => {
                    if let Some(place) = place.filter(|_| leg.doubt) {
                        self.announce(&place, &run);
                    }
                    return;
                }
                Ok(Round::Write(outcome)) => match self.keep(&run, &outcome).await {
                    Ok(Kept::Left(_) | Kept::Gone) => return,
                    Ok(Kept::Go) => {
                        leg.written();
                        continue;
                    }
                    Ok(Kept::Fail(why)) => {
                        leg.written();
                        pending = Some(Pending::failed(why));
                        continue;
                    }
                    Err(error) => {
                        leg.doubt = true;
                        pending = Some(outcome);
                        Fault::from(error)
                    }
                },
                Err(fault) => fault,
            };
            if stopping {
                return self.leave_in_order(&run, &leg).await;
            }
            match fault {
                Fault::Later(error) => tracing::warn!(run, "a run waits for the database: {error:#}"),
                Fault::Broken(error) => {
                    leg.faults += 1;
                    tracing::error!(run, faults = leg.faults, "a step of a run failed: {error:#}");
                    if leg.faults >= MAX_FAULTS {
                        pending = Some(Pending::failed("internal: the host could not continue this run"));
                    }
                }
            }
            let paused = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(leg.pause) => {}
                _ = signal.changed() => {}
            }
            // Waiting does not count as working time.
            leg.since += paused.elapsed();
            leg.pause = (leg.pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The host stops: this attempt was no crash.
    async fn leave_in_order(&self, run: &str, leg: &Leg) {
        if !leg.counted {
            return;
        }
        let id = run.to_owned();
        if let Err(error) = self.tables.write(move |rows| rows.uncount_attempt(&id)).await {
            tracing::debug!(run, "an attempt that ended in order stays counted: {error:#}");
        }
    }

    async fn round(&self, run: &str, leg: &mut Leg, signal: &mut Told) -> Step {
        let (at, open) = match self.tables.read(|rows| situation(rows, run))? {
            Situation::Over(thread) => return Ok(Round::Over(thread)),
            Situation::Cancelled => return Ok(Round::Write(Pending::end(RunStatus::Cancelled, None))),
            Situation::Model(at) => (at, None),
            Situation::Tools(at, open) => (at, Some(open)),
        };
        let Some(agent) = self.agent(&at.thread.agent).filter(|a| a.allows_user(&at.thread.owner)) else {
            return failed("agent_gone: the agent of this conversation does not exist any more");
        };
        // While it cannot be told, the run waits: it is not ended on a guess.
        if !self.users.enabled(&at.thread.owner).map_err(Fault::Later)? {
            return failed("user_disabled: the user of this conversation is not enabled");
        }
        if !leg.counted
            && let Some(round) = self.begin_again(&at, leg, signal).await?
        {
            return Ok(round);
        }
        let limit = Duration::from_secs(u64::from(agent.max_minutes) * 60);
        let spent = Duration::from_millis(u64::try_from(at.run.spent_ms).unwrap_or(0)) + leg.since.elapsed();
        let Some(left) = limit.checked_sub(spent).filter(|l| !l.is_zero()) else {
            return limit_minutes(agent);
        };
        let component = match self.component_tools.get_or_try_init(|| self.tools.list()).await {
            Ok(tools) => tools,
            Err(CallError::Fault { code: FaultCode::Stopping, .. }) => return Ok(until_told(signal).await),
            Err(e) if leg.faults + 1 < MAX_FAULTS => return Err(Fault::Broken(e.into())),
            Err(e) => return failed(format!("tools_unavailable: {e}")),
        };
        let turn = Turn { at, agent, allowed: tools::of_agent(agent, component), left };
        match open {
            None => self.model_round(turn, leg, signal).await,
            Some(open) => self.tool_round(turn, open, leg, signal).await,
        }
    }

    /// Counts one more attempt on a run that an earlier process left, before
    /// anything is done that costs. A run whose attempts ended in crashes waits
    /// longer each time: whether it is what makes the host crash or not, the
    /// host gets time for the others, and the run is not used up.
    async fn begin_again(&self, at: &At, leg: &mut Leg, signal: &mut Told) -> Result<Option<Round>, Fault> {
        let attempts = at.run.attempts;
        if attempts >= MAX_ATTEMPTS {
            let why = format!(
                "limit_attempts: the work on this run was begun {attempts} times in a row and got nowhere; each time \
                 the host ended"
            );
            return Ok(Some(Round::Write(Pending::failed(why))));
        }
        let rest = rest_before(attempts).saturating_sub(leg.since.elapsed());
        if !rest.is_zero() {
            tracing::warn!(run = at.run.id, attempts, ?rest, "the host has ended during this run: it waits");
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                _ = signal.changed() => return Ok(Some(Round::Next)),
            }
        }
        let id = at.run.id.clone();
        self.tables.write(move |rows| rows.count_attempt(&id)).await?;
        leg.counted = true;
        leg.since = Instant::now();
        Ok(None)
    }

    async fn model_round(&self, turn: Turn<'_>, leg: &mut Leg, signal: &mut Told) -> Step {
        let Turn { at, agent, .. } = &turn;
        if at.run.model_calls >= agent.max_model_calls {
            return failed(format!("limit_model_calls: the run made {} model calls", agent.max_model_calls));
        }
        let added = at.thread.next_number - at.run.message;
        if added + MAX_CALLS as i64 + 1 > i64::from(MAX_RUN_MESSAGES) {
            return failed(format!("limit_messages: the run added {added} messages"));
        }
        let Some(model) = self.models.get(&agent.model) else {
            return failed("provider_misconfigured: the agent's model does not exist");
        };
        let budget = leg.window.unwrap_or_else(|| budget(agent, &turn.allowed));
        let messages = self.tables.read(|rows| window::build(rows, &at.run, budget))?;
        let call = at.run.model_calls;
        let request = ModelRequest {
            agent: agent.name.clone(),
            run: at.run.id.clone(),
            call,
            instructions: agent.instructions.clone(),
            messages,
            tools: turn.allowed.clone(),
        };
        // A call costs money, and what it gives has to be written.
        if self.tables.last_write_failed() {
            self.tables.probe().await?;
        }
        let answer = tokio::select! {
            answer = tokio::time::timeout(turn.left, model.complete(&request)) => answer,
            _ = signal.changed() => return Ok(Round::Next),
        };
        let reply: ModelReply = match answer {
            Err(_) => return turn.limit_minutes(),
            Ok(Err(ModelError::ContextTooLong)) if budget / 2 >= MIN_WINDOW => {
                // Half of what was really sent, so that it always gets smaller.
                leg.window = Some((window::size(&request.messages).min(budget) / 2).max(MIN_WINDOW));
                tracing::info!(run = at.run.id, "the input was too long for the model endpoint: sending less");
                return Ok(Round::Next);
            }
            Ok(Err(e)) => return failed(e.to_string()),
            Ok(Ok(reply)) => reply,
        };
        Ok(Round::Write(Pending::new(Outcome::Reply { call, reply }, leg.since.elapsed())))
    }

    /// Does the next call of the last assistant message.
    async fn tool_round(&self, turn: Turn<'_>, mut open: Vec<StoredCall>, leg: &Leg, signal: &mut Told) -> Step {
        let result = |call: &StoredCall, text: String| {
            let outcome = Outcome::Result { call: call.clone(), text };
            Ok(Round::Write(Pending::new(outcome, leg.since.elapsed())))
        };
        // Questions come last, whatever their place: they end the turn.
        let Some(next) = open.iter().position(|c| !turn.clarifies(c)) else {
            let call = open.remove(open.len() - 1);
            if !open.is_empty() {
                let message = "Only the first question of a message is asked. Ask this one later.";
                return result(&call, tools::error_text("one_question", message, None));
            }
            return match tools::clarification(&call.id, &call.arguments) {
                Ok(question) => {
                    Ok(Round::Write(Pending::new(Outcome::Question { call, question }, leg.since.elapsed())))
                }
                Err(text) => result(&call, text),
            };
        };
        let call = open[next].clone();
        if let Some(Problem { code, message }) = &call.problem {
            return result(&call, tools::error_text(code, message, None));
        }
        if !turn.knows(&call) {
            let names: Vec<&str> = turn.allowed.iter().map(|t| t.name.as_str()).collect();
            let message = format!("There is no tool of this name. Your tools: {}.", names.join(", "));
            return result(&call, tools::error_text("unknown_tool", &message, None));
        }
        // What a person was asked, or has said, about this very call counts also
        // when the configuration would not ask any more.
        let stored = self.tables.read(|rows| rows.approval(&call.id))?;
        match stored.as_ref().map(|approval| (approval, &approval.decision)) {
            Some((approval, Some(decision))) => match decided(approval, decision, &call) {
                Decision::Approved => {}
                Decision::Refused(text) => return result(&call, text),
            },
            None if !turn.agent.needs_approval(&call.name) => {}
            Some((_, None)) | None => return Ok(ask_for(&turn, &call, open, leg)),
        }
        let done = tokio::select! {
            done = tokio::time::timeout(turn.left, self.execute(&turn.at, &call)) => done,
            // A cancel writes down that this call was given up; after a
            // shutdown it is made again with the same id.
            _ = signal.changed() => return Ok(Round::Next),
        };
        match done {
            Err(_) => turn.limit_minutes(),
            Ok(None) => Ok(until_told(signal).await),
            Ok(Some(text)) => result(&call, text),
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
            ..Caller::default()
        };
        let arguments = call.arguments.to_string();
        let mut retries = 0;
        loop {
            match self.tools.call(caller.clone(), &call.name, &arguments).await {
                Ok(text) => return Some(text),
                Err(CallError::Fault { code: FaultCode::Stopping, .. }) => return None,
                // The same call id makes the repetition safe, and it tells. A
                // model would make the call anew, under another id.
                Err(e) if e.outcome_unknown() && retries < UNKNOWN_RETRIES => {
                    retries += 1;
                    tokio::time::sleep(Duration::from_millis(200 * u64::from(retries))).await;
                }
                Err(e) => return Some(tools::call_error_text(&e)),
            }
        }
    }
}

/// Asks a person about a call, and about all others of the message that need it.
fn ask_for(turn: &Turn<'_>, call: &StoredCall, open: Vec<StoredCall>, leg: &Leg) -> Round {
    let asks = |c: &StoredCall| {
        c.problem.is_none() && turn.knows(c) && turn.agent.needs_approval(&c.name) && !turn.clarifies(c)
    };
    let asking = open.into_iter().filter(asks).collect();
    Round::Write(Pending::new(Outcome::Ask { call: call.id.clone(), asking }, leg.since.elapsed()))
}

/// The pause before the work on a run is begun that was begun this often and
/// got nowhere. The first crash may have any reason.
fn rest_before(attempts: u32) -> Duration {
    match attempts {
        0 | 1 => Duration::ZERO,
        n => Duration::from_secs(1 << (n - 2).min(16)).min(LONGEST_REST),
    }
}

fn limit_minutes(agent: &AgentConfig) -> Step {
    failed(format!("limit_minutes: the run worked for {} minutes", agent.max_minutes))
}

/// The component answers no more because the host stops: so does this task.
async fn until_told(signal: &mut Told) -> Round {
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
