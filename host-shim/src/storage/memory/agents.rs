//! The tables of the built-in agents in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::tables::{MemoryRows, State};
use crate::storage::tables::agents::{AgentRows, Approval, DIRECT, MessageRow, RunRow, RunStatus, Size, Thread};

#[derive(Clone, Default)]
pub(super) struct AgentState {
    /// By key, which counts from 1.
    threads: BTreeMap<i64, Thread>,
    /// By conversation and number.
    messages: BTreeMap<(i64, i64), MessageRow>,
    /// In the order of their beginning.
    runs: Vec<StoredRun>,
    /// Digest and run, by conversation and key.
    keys: BTreeMap<(i64, String), (String, String)>,
    approvals: BTreeMap<String, Approval>,
}

/// A run with what its row does not show.
#[derive(Clone)]
struct StoredRun {
    row: RunRow,
    /// The key that began it.
    key: String,
    ended: bool,
}

impl AgentState {
    fn find(&self, id: &str) -> Option<&RunRow> {
        self.runs.iter().map(|run| &run.row).find(|row| row.id == id)
    }

    /// A direct run at work, with its owner.
    fn direct(&self) -> impl Iterator<Item = (&RunRow, &str)> {
        self.runs.iter().filter_map(|StoredRun { row, key, ended }| {
            let direct = !ended && row.status == RunStatus::Running && key.starts_with(DIRECT);
            direct.then(|| Some((row, self.threads.get(&row.thread)?.owner.as_str())))?
        })
    }

    /// The messages of a conversation from a number on.
    fn from(&self, thread: i64, number: i64) -> impl DoubleEndedIterator<Item = &MessageRow> {
        self.messages.range((thread, number)..=(thread, i64::MAX)).map(|(_, message)| message)
    }
}

/// Changes a run, if it exists.
fn update(state: &mut State, run: &str, change: impl FnOnce(&mut RunRow)) {
    update_stored(state, run, |run| change(&mut run.row));
}

fn update_stored(state: &mut State, run: &str, change: impl FnOnce(&mut StoredRun)) {
    if let Some(run) = state.agents.runs.iter_mut().find(|stored| stored.row.id == run) {
        change(run);
    }
}

fn size(message: &MessageRow) -> anyhow::Result<Size> {
    let json = |value: Option<String>| value.map_or(0, |text| text.len());
    let calls = (!message.calls.is_empty()).then(|| serde_json::to_string(&message.calls)).transpose()?;
    Ok(Size {
        number: message.number,
        role: message.role,
        text: message.text.len(),
        question: json(message.question.as_ref().map(serde_json::to_string).transpose()?),
        rest: json(calls) + message.provenance.as_ref().map_or(0, String::len),
    })
}

fn count(limit: u32) -> usize {
    limit as usize
}

impl AgentRows for MemoryRows<'_> {
    fn thread(&self, owner: &str, id: &str) -> anyhow::Result<Option<Thread>> {
        Ok(self.look().agents.threads.values().find(|t| t.owner == owner && t.id == id).cloned())
    }

    fn thread_by_key(&self, key: i64) -> anyhow::Result<Thread> {
        self.look().agents.threads.get(&key).cloned().context("a run's conversation is missing")
    }

    fn threads(&self, owner: &str, limit: u32) -> anyhow::Result<Vec<Thread>> {
        let state = &self.look().agents;
        Ok(state.threads.values().rev().filter(|t| t.owner == owner).take(count(limit)).cloned().collect())
    }

    fn insert_thread(&self, owner: &str, id: &str, agent: &str, title: &str) -> anyhow::Result<()> {
        ensure!(self.thread(owner, id)?.is_none(), "there is such a conversation already");
        let threads = &mut self.change()?.agents.threads;
        let key = threads.keys().next_back().map_or(1, |last| last + 1);
        let thread = Thread {
            key,
            owner: owner.into(),
            id: id.into(),
            agent: agent.into(),
            title: title.into(),
            created_ms: self.now_ms,
            next_number: 1,
            active_run: None,
            open_question: None,
        };
        threads.insert(key, thread);
        Ok(())
    }

    fn set_open_question(&self, thread: i64, number: Option<i64>) -> anyhow::Result<()> {
        if let Some(thread) = self.change()?.agents.threads.get_mut(&thread) {
            thread.open_question = number;
        }
        Ok(())
    }

    fn run(&self, id: &str) -> anyhow::Result<Option<RunRow>> {
        Ok(self.look().agents.find(id).cloned())
    }

    fn open_runs(&self) -> anyhow::Result<Vec<RunRow>> {
        Ok(self.look().agents.runs.iter().filter(|run| !run.ended).map(|run| run.row.clone()).collect())
    }

    fn direct_runs(&self, owner: &str) -> anyhow::Result<u32> {
        Ok(u32::try_from(self.look().agents.direct().filter(|(_, of)| *of == owner).count())?)
    }

    fn direct_owner(&self, run: &str) -> anyhow::Result<Option<String>> {
        Ok(self.look().agents.direct().find(|(direct, _)| direct.id == run).map(|(_, of)| of.to_owned()))
    }

    fn insert_run(&self, id: &str, thread: i64, key: &str, message: i64) -> anyhow::Result<()> {
        let state = &mut self.change()?.agents;
        let same = |run: &StoredRun| run.row.id == id || (run.row.thread == thread && run.key == key);
        let taken = state.runs.iter().any(same);
        ensure!(!taken, "there is such a run already");
        let row = RunRow {
            id: id.into(),
            thread,
            status: RunStatus::Running,
            error: None,
            cancel: false,
            message,
            model_calls: 0,
            attempts: 1,
            spent_ms: 0,
            repeat_digest: None,
            repeat_count: 0,
            cut: false,
        };
        state.threads.get_mut(&thread).context("there is no such conversation")?.active_run = Some(id.into());
        state.runs.push(StoredRun { row, key: key.into(), ended: false });
        Ok(())
    }

    fn set_status(&self, run: &str, status: RunStatus) -> anyhow::Result<()> {
        update(*self.change()?, run, |run| run.status = status);
        Ok(())
    }

    fn set_cancelled(&self, run: &str) -> anyhow::Result<()> {
        update(*self.change()?, run, |run| run.cancel = true);
        Ok(())
    }

    fn set_going(&self, run: &str) -> anyhow::Result<()> {
        update(*self.change()?, run, |run| {
            run.status = RunStatus::Running;
            run.attempts = 1;
        });
        Ok(())
    }

    fn progress(&self, run: &str, spent: Duration) -> anyhow::Result<()> {
        let spent = i64::try_from(spent.as_millis()).unwrap_or(i64::MAX);
        update(*self.change()?, run, |run| {
            run.spent_ms = run.spent_ms.saturating_add(spent);
            run.attempts = 0;
        });
        Ok(())
    }

    fn count_attempt(&self, run: &str) -> anyhow::Result<()> {
        update_stored(*self.change()?, run, |run| run.row.attempts += u32::from(!run.ended));
        Ok(())
    }

    fn uncount_attempt(&self, run: &str) -> anyhow::Result<()> {
        update_stored(*self.change()?, run, |run| {
            run.row.attempts = run.row.attempts.saturating_sub(u32::from(!run.ended));
        });
        Ok(())
    }

    fn count_model_call(&self, run: &str, digest: Option<&str>, repeats: u32) -> anyhow::Result<()> {
        update(*self.change()?, run, |run| {
            run.model_calls += 1;
            run.repeat_digest = digest.map(String::from);
            run.repeat_count = repeats;
        });
        Ok(())
    }

    fn set_cut(&self, run: &str) -> anyhow::Result<()> {
        update(*self.change()?, run, |run| run.cut = true);
        Ok(())
    }

    fn end_run(&self, run: &RunRow, status: RunStatus, error: Option<&str>) -> anyhow::Result<()> {
        let mut state = self.change()?;
        update_stored(&mut state, &run.id, |run| {
            run.row.status = status;
            run.row.error = error.map(String::from);
            run.ended = true;
        });
        if let Some(thread) = state.agents.threads.get_mut(&run.thread)
            && thread.active_run.as_ref() == Some(&run.id)
        {
            thread.active_run = None;
        }
        Ok(())
    }

    fn key(&self, thread: i64, key: &str) -> anyhow::Result<Option<(String, String)>> {
        Ok(self.look().agents.keys.get(&(thread, key.into())).cloned())
    }

    fn insert_key(&self, thread: i64, key: &str, digest: &str, run: &str) -> anyhow::Result<()> {
        let state = &mut self.change()?.agents;
        let place = (thread, key.to_owned());
        ensure!(!state.keys.contains_key(&place), "there is such a key already");
        ensure!(state.threads.contains_key(&thread), "there is no such conversation");
        state.keys.insert(place, (digest.into(), run.into()));
        Ok(())
    }

    fn next_number(&self, thread: i64) -> anyhow::Result<i64> {
        let mut state = self.change()?;
        let thread = state.agents.threads.get_mut(&thread).context("the conversation is missing")?;
        thread.next_number += 1;
        Ok(thread.next_number - 1)
    }

    fn append(&self, thread: i64, message: &MessageRow) -> anyhow::Result<()> {
        let state = &mut self.change()?.agents;
        let taken = state.from(thread, 0).any(|m| m.id == message.id || m.number == message.number);
        ensure!(!taken, "there is such a message already");
        ensure!(state.threads.contains_key(&thread), "there is no such conversation");
        let message = MessageRow { created_ms: self.now_ms, ..message.clone() };
        state.messages.insert((thread, message.number), message);
        Ok(())
    }

    fn message(&self, thread: i64, id: &str) -> anyhow::Result<Option<MessageRow>> {
        Ok(self.look().agents.from(thread, 0).find(|m| m.id == id).cloned())
    }

    fn message_at(&self, thread: i64, number: i64) -> anyhow::Result<Option<MessageRow>> {
        Ok(self.look().agents.messages.get(&(thread, number)).cloned())
    }

    fn messages_from(&self, thread: i64, from: i64, limit: u32) -> anyhow::Result<Vec<MessageRow>> {
        Ok(self.look().agents.from(thread, from).take(count(limit)).cloned().collect())
    }

    fn messages_back(&self, thread: i64, before: i64, take: &mut dyn FnMut(MessageRow) -> bool) -> anyhow::Result<()> {
        let before: Vec<MessageRow> =
            self.look().agents.from(thread, 0).take_while(|m| m.number < before).cloned().collect();
        let _ = before.into_iter().rev().all(take);
        Ok(())
    }

    fn sizes_from(&self, thread: i64, from: i64, limit: u32) -> anyhow::Result<Vec<Size>> {
        self.look().agents.from(thread, from).take(count(limit)).map(size).collect()
    }

    fn sizes(&self, thread: i64, after: i64, take: &mut dyn FnMut(&Size) -> bool) -> anyhow::Result<()> {
        let sizes: anyhow::Result<Vec<Size>> =
            self.look().agents.from(thread, 0).filter(|m| m.number > after).map(size).collect();
        let _ = sizes?.iter().all(take);
        Ok(())
    }

    fn answered(&self, thread: i64, question: &str) -> anyhow::Result<bool> {
        Ok(self.look().agents.from(thread, 0).any(|m| m.answers.as_deref() == Some(question)))
    }

    fn insert_approval(&self, approval: &Approval) -> anyhow::Result<()> {
        let approvals = &mut self.change()?.agents.approvals;
        ensure!(!approvals.contains_key(&approval.id), "there is such an approval already");
        approvals.insert(approval.id.clone(), Approval { decision: None, ..approval.clone() });
        Ok(())
    }

    fn approval(&self, id: &str) -> anyhow::Result<Option<Approval>> {
        Ok(self.look().agents.approvals.get(id).cloned())
    }

    fn open_approvals(&self, run: &str) -> anyhow::Result<Vec<Approval>> {
        let open = |a: &&Approval| a.run == run && a.decision.is_none();
        let mut open: Vec<Approval> = self.look().agents.approvals.values().filter(open).cloned().collect();
        open.sort_by(|a, b| (a.id.chars().count(), &a.id).cmp(&(b.id.chars().count(), &b.id)));
        Ok(open)
    }

    fn decide(&self, id: &str, decision: &str) -> anyhow::Result<bool> {
        let mut state = self.change()?;
        let open = state.agents.approvals.get_mut(id).filter(|a| a.decision.is_none());
        let Some(approval) = open else { return Ok(false) };
        approval.decision = Some(decision.into());
        Ok(true)
    }
}
