//! A scriptable host of agents. It keeps the rules of `wit/agent-runs.wit`
//! and does nothing on its own: a test says what the next turn of a
//! conversation brings, which calls fail and how, and when a run ends.
//!
//! One deterministic core ([`Double`]); `adapter` offers it as the host's
//! trait and `crate::native` as the component's.

mod adapter;
mod model;
mod script;

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use agent_teams_plugin::host::{
    Cancellation, Input, Interrupt, InterruptAnswer, Message, Role, Run, RunError, RunStatus, ThreadState,
};
use tokio::sync::Notify;

pub use model::{Admission, Call, Thread};
pub use script::{Effect, Method, Turn};

use model::{Inner, Known};
use script::Fault;

use crate::clock::FakeClock;

/// The host double. Clones are the same double.
#[derive(Clone, Default)]
pub struct Double(Arc<Shared>);

#[derive(Default)]
struct Shared {
    inner: Mutex<Inner>,
    /// Wakes blocked and awaiting calls when a hang is released.
    woken: Condvar,
    notify: Notify,
}

type Result<T> = std::result::Result<T, RunError>;

/// Where a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Before,
    After,
}

impl Double {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    // ---- what a test scripts -------------------------------------------

    /// The next turns of a conversation, in order. Without one, a turn answers
    /// with [`Double::set_default`]'s text.
    pub fn script(&self, thread: &str, turns: impl IntoIterator<Item = Turn>) {
        self.inner().scripts.entry(thread.into()).or_default().extend(turns);
    }

    /// What an unscripted turn brings. At first: the answer "ok".
    pub fn set_default(&self, turn: Turn) {
        self.inner().default_turn = turn;
    }

    /// Whether runs stay running until they are released. At first they end
    /// at once.
    pub fn hold(&self, hold: bool) {
        self.inner().hold = hold;
    }

    /// The next `times` calls of `method` (on `thread`, if one is given) meet
    /// `effect`.
    pub fn fault(&self, method: Method, thread: Option<&str>, times: u32, effect: Effect) {
        self.inner().faults.push(Fault { method, thread: thread.map(Into::into), times, effect });
    }

    /// Drops all faults that were not met yet, and wakes what hangs.
    pub fn clear_faults(&self) {
        self.inner().faults.clear();
        self.release_hangs();
    }

    /// Lets every hanging call go on.
    pub fn release_hangs(&self) {
        self.inner().hang_epoch += 1;
        self.0.woken.notify_all();
        self.0.notify.notify_waiters();
    }

    /// Calls that hang now.
    pub fn hanging(&self) -> usize {
        self.inner().hanging
    }

    /// Each call takes so long, by this clock.
    pub fn takes(&self, clock: &FakeClock, ms: u64) {
        self.inner().slow = (ms > 0).then(|| (clock.clone(), ms));
    }

    /// Every call of this user is denied from now on.
    pub fn revoke(&self, owner: &str) {
        self.inner().revoked.insert(owner.into());
    }

    pub fn restore(&self, owner: &str) {
        self.inner().revoked.remove(owner);
    }

    /// The agent no longer exists.
    pub fn remove_agent(&self, agent: &str) {
        self.inner().gone_agents.insert(agent.into());
    }

    pub fn restore_agent(&self, agent: &str) {
        self.inner().gone_agents.remove(agent);
    }

    /// Whether message ids are rewritten at the start of a run, with the run's
    /// id stamped on the message.
    pub fn rewrite_messages(&self, rewrite: bool) {
        self.inner().rewrite = rewrite;
    }

    /// Whether every human message carries the run's id. At first: only those
    /// whose id was rewritten.
    pub fn stamp_messages(&self, stamp: bool) {
        self.inner().stamp = stamp;
    }

    /// Whether a run that stops at an interrupt ends as success.
    pub fn interrupts_succeed(&self, succeed: bool) {
        self.inner().interrupts_succeed = succeed;
    }

    /// Whether a resumed interrupt goes on in the same run.
    pub fn resume_same_run(&self, same: bool) {
        self.inner().resume_same_run = same;
    }

    /// Whether a cancel is only accepted: the run then ends when released.
    pub fn cancel_only_accepts(&self, accepts: bool) {
        self.inner().cancel_accepts = accepts;
    }

    /// Whether keys are durable, so that an unknown one proves that nothing
    /// was admitted. At first they are.
    pub fn durable_keys(&self, durable: bool) {
        self.inner().forgetful = !durable;
    }

    /// Whether a conversation without messages answers `not-found` to `state`.
    /// At first it does.
    pub fn fresh_state_not_found(&self, not_found: bool) {
        self.inner().fresh_has_state = !not_found;
    }

    // ---- what a test does in the host ----------------------------------

    /// A conversation that was made outside any team.
    pub fn open_thread(&self, owner: &str, thread: &str, agent: &str) {
        self.inner().thread(owner, thread, agent);
    }

    /// Ends a running run with the turn that was scripted for it. False: it
    /// is not running.
    pub fn release(&self, run: &str) -> bool {
        let mut inner = self.inner();
        let Some(record) = inner.runs.get(run) else { return false };
        if record.status != RunStatus::Running {
            return false;
        }
        let turn = record.turn.clone();
        inner.end(run, turn);
        true
    }

    /// Ends a running run with another turn than was scripted.
    pub fn finish(&self, run: &str, turn: Turn) -> bool {
        let mut inner = self.inner();
        if inner.runs.get(run).is_none_or(|r| r.status != RunStatus::Running) {
            return false;
        }
        inner.end(run, turn);
        true
    }

    /// Ends all running runs, oldest first; how many there were.
    pub fn release_all(&self) -> usize {
        let running = self.running();
        running.iter().filter(|run| self.release(run)).count()
    }

    /// The runs that are running, oldest first.
    pub fn running(&self) -> Vec<String> {
        let inner = self.inner();
        inner.order.iter().filter(|id| inner.is_running(id)).cloned().collect()
    }

    /// The running run of a conversation.
    pub fn running_in(&self, thread: &str) -> Option<String> {
        self.inner().active(thread)
    }

    /// Somebody types a message into the conversation; its id.
    pub fn type_message(&self, thread: &str, text: &str) -> String {
        let mut inner = self.inner();
        let id = inner.next_id("typed");
        inner.push_human(thread, &id, text, None, None);
        id
    }

    /// The agent says something in the conversation, outside any turn.
    pub fn say(&self, thread: &str, text: &str) {
        self.inner().push(thread, Role::Assistant, text, None);
    }

    /// Something that no team knows runs in the conversation, or ends.
    pub fn occupy(&self, thread: &str, busy: bool) {
        let mut inner = self.inner();
        if let Some(thread) = inner.threads.get_mut(thread) {
            thread.occupied = busy;
        }
    }

    /// The host forgets the oldest messages and keeps the newest `keep`.
    pub fn compact(&self, thread: &str, keep: usize) {
        if let Some(thread) = self.inner().threads.get_mut(thread) {
            let drop = thread.messages.len().saturating_sub(keep);
            thread.messages.drain(..drop);
        }
    }

    /// The host loses a run: it is not found any more, nor is its key.
    pub fn vanish(&self, run: &str) {
        let mut inner = self.inner();
        inner.runs.remove(run);
        inner.order.retain(|id| id != run);
        inner.keys.retain(|_, known| known.run != run);
    }

    /// A host without durable keys starts again: it knows its runs and has
    /// forgotten which keys they were started under.
    pub fn forget_keys(&self) {
        self.inner().keys.clear();
    }

    /// Answers what is open in the conversation itself, not through a team.
    pub fn answer_outside(&self, thread: &str) {
        let mut inner = self.inner();
        if let Some(thread) = inner.threads.get_mut(thread) {
            thread.interrupts.clear();
            thread.answer_questions();
        }
    }

    /// Somebody ends the run that stopped at interrupts, in the conversation.
    pub fn stop_outside(&self, thread: &str) {
        let mut inner = self.inner();
        if let Some(run) = inner.interrupted(thread) {
            inner.threads.entry(thread.into()).and_modify(|thread| thread.interrupts.clear());
            inner.end(&run, Turn::Cancelled);
        }
    }

    /// An interrupt opens in the conversation, at a checkpoint of its own.
    pub fn open_interrupt(&self, thread: &str, id: &str, value: &str) {
        let mut inner = self.inner();
        let checkpoint = Some(inner.next_id("checkpoint"));
        if let Some(thread) = inner.threads.get_mut(thread) {
            thread.interrupts.push(Interrupt { checkpoint, id: id.into(), value: value.into() });
        }
    }

    // ---- what a test looks at ------------------------------------------

    /// Runs that ended since the last call: owner, conversation and run.
    pub fn take_ended(&self) -> Vec<(String, String, String)> {
        std::mem::take(&mut self.inner().ended)
    }

    /// Every call so far.
    pub fn calls(&self) -> Vec<Call> {
        self.inner().calls.clone()
    }

    /// How often `method` was called on `thread`.
    pub fn count(&self, method: Method, thread: Option<&str>) -> usize {
        let inner = self.inner();
        inner.calls.iter().filter(|c| c.method == method && thread.is_none_or(|t| t == c.thread)).count()
    }

    /// Every run that was admitted, oldest first.
    pub fn admissions(&self) -> Vec<Admission> {
        self.inner().admissions.clone()
    }

    /// The runs that were admitted in a conversation.
    pub fn admissions_in(&self, thread: &str) -> Vec<Admission> {
        self.inner().admissions.iter().filter(|a| a.thread == thread).cloned().collect()
    }

    /// The conversation as it is.
    pub fn thread(&self, thread: &str) -> Option<Thread> {
        self.inner().threads.get(thread).cloned()
    }

    /// All conversations' ids.
    pub fn threads(&self) -> Vec<String> {
        self.inner().threads.keys().cloned().collect()
    }

    /// The newest human text of a conversation; empty if there is none.
    pub fn last_input(&self, thread: &str) -> String {
        let inner = self.inner();
        let messages = inner.threads.get(thread).map(|t| t.messages.as_slice()).unwrap_or_default();
        messages.iter().rev().find(|m| m.role == Role::Human).map(|m| m.text.clone()).unwrap_or_default()
    }

    pub fn status(&self, run: &str) -> Option<RunStatus> {
        self.inner().runs.get(run).map(|r| r.status)
    }

    /// Rules that whoever called has broken: two admissions under one key, a
    /// new task on an open question or interrupt.
    pub fn violations(&self) -> Vec<String> {
        self.inner().violations.clone()
    }

    // ---- the calls of the contract -------------------------------------

    fn begin(&self, call: Call) -> (usize, Option<Effect>) {
        let mut inner = self.inner();
        let effect = inner.meet(call.method, &call.thread);
        inner.calls.push(call);
        if let Some((clock, ms)) = &inner.slow {
            clock.advance(*ms);
        }
        (inner.calls.len() - 1, effect)
    }

    fn end<T>(&self, call: usize, result: Result<T>) -> Result<T> {
        let mut inner = self.inner();
        inner.calls[call].error = result.as_ref().err().cloned();
        result
    }

    /// One call: what was scripted for it, then the rules.
    fn perform<T>(
        &self,
        owner: &str,
        call: usize,
        effect: Option<Effect>,
        act: impl FnOnce(&mut Inner) -> Result<T>,
    ) -> Result<T> {
        let mut inner = self.inner();
        if inner.revoked.contains(owner) {
            drop(inner);
            return self.end(call, Err(RunError::Denied("the user's access was revoked".into())));
        }
        let result = match effect {
            Some(Effect::Refuse(error)) => {
                // A known key is looked up before the checks that these
                // refusals come from.
                let known = inner.calls[call].key.clone();
                let thread = inner.calls[call].thread.clone();
                let late = matches!(error, RunError::Busy(_) | RunError::Rejected(_) | RunError::NotFound(_));
                if late && known.is_some_and(|key| inner.keys.contains_key(&(thread, key))) {
                    act(&mut inner)
                } else {
                    Err(error)
                }
            }
            Some(Effect::Lose(error)) => act(&mut inner).and(Err(error)),
            Some(Effect::Overtaken) => {
                let thread = inner.calls[call].thread.clone();
                inner.answer_outside(owner, &thread);
                act(&mut inner)
            }
            Some(Effect::Withdrawn) => {
                let thread = inner.calls[call].thread.clone();
                inner.threads.entry(thread).and_modify(|thread| thread.interrupts.clear());
                act(&mut inner)
            }
            _ => act(&mut inner),
        };
        drop(inner);
        self.end(call, result)
    }

    /// The epoch that ends a hang, or nothing if the call does not hang here.
    fn hang(&self, effect: &Option<Effect>, gate: Gate) -> Option<u64> {
        let here = match effect {
            Some(Effect::HangBefore) => Gate::Before,
            Some(Effect::HangAfter) => Gate::After,
            _ => return None,
        };
        (here == gate).then(|| self.inner().hang_epoch)
    }

    fn block(&self, epoch: u64) {
        let mut inner = self.inner();
        inner.hanging += 1;
        while inner.hang_epoch == epoch {
            inner = self.0.woken.wait(inner).unwrap_or_else(|e| e.into_inner());
        }
        inner.hanging -= 1;
    }

    /// A whole call, blocking where it hangs.
    pub(crate) fn blocking<T>(&self, owner: &str, call: Call, act: impl FnOnce(&mut Inner) -> Result<T>) -> Result<T> {
        let (n, effect) = self.begin(call);
        if let Some(epoch) = self.hang(&effect, Gate::Before) {
            self.block(epoch);
        }
        let result = self.perform(owner, n, effect.clone(), act);
        if let Some(epoch) = self.hang(&effect, Gate::After) {
            self.block(epoch);
        }
        result
    }
}

/// The rules of each call.
pub(crate) mod rules {
    use super::*;

    pub fn create_thread(inner: &mut Inner, owner: &str, id: &str, agent: &str) -> Result<()> {
        if inner.gone_agents.contains(agent) {
            return Err(RunError::Rejected(format!("there is no agent {agent}")));
        }
        match inner.threads.get(id) {
            Some(thread) if thread.owner != owner => Err(RunError::Denied("not your conversation".into())),
            Some(thread) if thread.agent != agent => Err(RunError::Rejected("bound to another agent".into())),
            Some(_) => Ok(()),
            None => {
                inner.thread(owner, id, agent);
                Ok(())
            }
        }
    }

    pub fn start(inner: &mut Inner, owner: &str, thread: &str, input: &Input, key: &str) -> Result<Run> {
        let digest = format!("{input:?}");
        if let Some(run) = known(inner, thread, key, &digest)? {
            return Ok(run);
        }
        admissible(inner, owner, thread)?;
        let conversation = &inner.threads[thread];
        if !conversation.interrupts.is_empty() {
            inner.violations.push(format!("a new turn in {thread} on an open interrupt"));
        } else if let Some(open) = conversation.open_question()
            && input.answers.as_ref() != Some(&open.id)
        {
            inner.violations.push(format!("a new turn in {thread} on an open question"));
        }
        let run = inner.admit(owner, thread, key, digest, input.text.clone(), None);
        let rewritten = inner.rewrite.then(|| inner.next_id("host"));
        let stamp = (inner.rewrite || inner.stamp).then(|| run.clone());
        let id = rewritten.unwrap_or_else(|| input.message_id.clone());
        inner.push_human(thread, &id, &input.text, stamp, input.answers.as_deref());
        Ok(inner.begun(&run))
    }

    pub fn resume(inner: &mut Inner, owner: &str, thread: &str, answers: &[InterruptAnswer], key: &str) -> Result<Run> {
        let digest = format!("{answers:?}");
        if let Some(run) = known(inner, thread, key, &digest)? {
            return Ok(run);
        }
        admissible(inner, owner, thread)?;
        let open = &inner.threads[thread].interrupts;
        let fits = |a: &InterruptAnswer| open.iter().any(|i| i.id == a.id && i.checkpoint == a.checkpoint);
        if answers.is_empty() || !answers.iter().all(fits) {
            return Err(RunError::Rejected("no such open interrupt".into()));
        }
        let text = answers.iter().map(|a| a.value.as_str()).collect::<Vec<_>>().join("\n");
        let same = inner.resume_same_run.then(|| inner.interrupted(thread)).flatten();
        let run = inner.admit(owner, thread, key, digest, text, same);
        if let Some(conversation) = inner.threads.get_mut(thread) {
            conversation.interrupts.retain(|i| !answers.iter().any(|a| a.id == i.id));
        }
        Ok(inner.begun(&run))
    }

    pub fn find(inner: &mut Inner, owner: &str, thread: &str, key: &str) -> Result<Run> {
        mine(inner, owner, thread)?;
        match inner.keys.get(&(thread.to_owned(), key.to_owned())).map(|k| k.run.clone()) {
            Some(run) => inner.run(&run).ok_or_else(|| RunError::Other("the key's run is gone".into())),
            None if inner.forgetful => Err(RunError::Other("keys are not durable here".into())),
            None => Err(RunError::NotFound("nothing was admitted under this key".into())),
        }
    }

    pub fn get(inner: &mut Inner, owner: &str, thread: &str, run: &str) -> Result<Run> {
        mine(inner, owner, thread)?;
        let here = inner.runs.get(run).is_some_and(|r| r.thread == thread);
        here.then(|| inner.run(run)).flatten().ok_or_else(|| RunError::NotFound("no such run".into()))
    }

    pub fn state(
        inner: &mut Inner,
        owner: &str,
        thread: &str,
        since: Option<(&str, Option<&str>)>,
        after: Option<&str>,
    ) -> Result<ThreadState> {
        mine(inner, owner, thread)?;
        let conversation = &inner.threads[thread];
        if conversation.messages.is_empty() && !inner.fresh_has_state {
            return Err(RunError::NotFound("no state yet".into()));
        }
        let marked = |(id, run): (&str, Option<&str>)| {
            let by_id = conversation.messages.iter().position(|m| m.id == id);
            let by_run = |m: &Message| m.role == Role::Human && run.is_some() && m.run.as_deref() == run;
            by_id.or_else(|| conversation.messages.iter().position(by_run))
        };
        let place = match after {
            Some(after) => conversation.messages.iter().position(|m| m.id == after).map(|place| place + 1),
            None => since.and_then(marked),
        };
        let from = place.unwrap_or(conversation.messages.len());
        let messages: Vec<Message> = conversation.messages.iter().skip(from).take(inner.page).cloned().collect();
        Ok(ThreadState {
            found: place.is_some(),
            more: conversation.messages.len() - from > messages.len(),
            messages,
            interrupts: conversation.interrupts.clone(),
            open_question: conversation.open_question(),
            active_run: inner.active(thread).or_else(|| conversation.occupied.then(|| "foreign".into())),
        })
    }

    pub fn cancel(inner: &mut Inner, owner: &str, thread: &str, run: &str) -> Result<Cancellation> {
        mine(inner, owner, thread)?;
        let status = inner.runs.get(run).filter(|r| r.thread == thread).map(|r| r.status);
        match status {
            None => Err(RunError::NotFound("no such run".into())),
            Some(RunStatus::Running | RunStatus::Pending) if inner.cancel_accepts => {
                if let Some(record) = inner.runs.get_mut(run) {
                    record.turn = Turn::Cancelled;
                }
                Ok(Cancellation::Accepted)
            }
            Some(RunStatus::Running | RunStatus::Pending) => {
                inner.end(run, Turn::Cancelled);
                Ok(Cancellation::Stopped)
            }
            // A run that stopped at an interrupt may say that it succeeded; it
            // is the last of its conversation.
            Some(status) if inner.last(thread).as_deref() == Some(run) => {
                if let Some(thread) = inner.threads.get_mut(thread).filter(|thread| !thread.interrupts.is_empty()) {
                    thread.interrupts.clear();
                    inner.end(run, Turn::Cancelled);
                } else if status == RunStatus::Interrupted {
                    inner.end(run, Turn::Cancelled);
                }
                Ok(Cancellation::Stopped)
            }
            Some(_) => Ok(Cancellation::Stopped),
        }
    }

    /// The run of a key that was used before. Nothing: it was not.
    fn known(inner: &mut Inner, thread: &str, key: &str, digest: &str) -> Result<Option<Run>> {
        let place = (thread.to_owned(), key.to_owned());
        match inner.keys.get(&place) {
            Some(Known { digest: other, .. }) if other != digest => Err(RunError::KeyConflict),
            Some(Known { run, .. }) => {
                let run = run.clone();
                inner.run(&run).map(Some).ok_or_else(|| RunError::Other("the key's run is gone".into()))
            }
            None => Ok(None),
        }
    }

    fn mine(inner: &Inner, owner: &str, thread: &str) -> Result<()> {
        match inner.threads.get(thread) {
            None => Err(RunError::NotFound("no such conversation".into())),
            Some(t) if t.owner != owner => Err(RunError::Denied("not your conversation".into())),
            Some(_) => Ok(()),
        }
    }

    fn admissible(inner: &mut Inner, owner: &str, thread: &str) -> Result<()> {
        mine(inner, owner, thread)?;
        let conversation = &inner.threads[thread];
        if inner.gone_agents.contains(&conversation.agent) {
            return Err(RunError::Rejected(format!("there is no agent {}", conversation.agent)));
        }
        if conversation.occupied || inner.active(thread).is_some() {
            return Err(RunError::Busy("the conversation runs something else".into()));
        }
        Ok(())
    }
}
