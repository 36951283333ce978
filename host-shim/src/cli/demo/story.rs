//! The demo as people see it: a line for each thing that happens to a job, to
//! the task board or in a wait, in the order in which it happened.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::output::{Output, Tone, excerpt};
use super::super::view;
use super::owner::Decision;

/// Columns before the texts.
const WHO: usize = 17;
const WORD: usize = 13;
const INDENT: usize = 2 + WHO + 1 + WORD + 1;
/// The widest a line gets, so that all stay readable.
const WIDEST: usize = 100;
/// Where the width is not known.
const USUAL: usize = 80;
const NARROWEST: usize = 60;

pub struct Story<'a> {
    output: &'a Output,
    width: usize,
    /// Status of the jobs that were told.
    jobs: BTreeMap<String, String>,
    /// The newest change of the board that was told.
    board: u64,
    /// The newest message that was read of each conversation.
    read: BTreeMap<String, u64>,
    /// Calls that wait for the board.
    waits: BTreeSet<String>,
    /// Not printed yet: when it happened, and its lines.
    pending: Vec<(String, Vec<String>)>,
}

impl<'a> Story<'a> {
    pub fn new(output: &'a Output) -> Self {
        let width = output.width().unwrap_or(USUAL).clamp(NARROWEST, WIDEST);
        Self {
            output,
            width,
            jobs: BTreeMap::new(),
            board: 0,
            read: BTreeMap::new(),
            waits: BTreeSet::new(),
            pending: Vec::new(),
        }
    }

    /// A chapter begins.
    pub fn title(&self, title: &str) {
        self.output.say("");
        self.output.say(self.output.tone(Tone::Strong, title));
    }

    /// Prints what was taken in since, oldest first.
    pub fn tell(&mut self) {
        self.pending.sort_by(|a, b| a.0.cmp(&b.0));
        for (_, lines) in self.pending.drain(..) {
            lines.iter().for_each(|line| self.output.say(line));
        }
    }

    /// The newest message of a conversation that was taken in.
    pub fn read_to(&self, thread: &str) -> Option<u64> {
        self.read.get(thread).copied()
    }

    /// A job as it is now: asked, ended, or nothing new.
    pub fn job(&mut self, job: &Value) {
        let (id, status) = (text(job, "id").to_owned(), text(job, "status").to_owned());
        let last = self.jobs.insert(id, status.clone());
        let who = view::direction(job);
        let receipt = text(job, "kind") == "receipt";
        if last.is_none() {
            let (word, said) =
                if receipt { ("returns", "to the conversation that asked") } else { ("asked", text(job, "text")) };
            let line = self.line(Tone::Busy, &who, word, said);
            self.pending.push((text(job, "created_at").to_owned(), vec![line]));
        }
        let ended = view::finished(job) && last.as_ref() != Some(&status);
        // What somebody makes of a result shows in what they do next.
        if ended && !(receipt && view::succeeded(job)) {
            let line = self.line(view::tone(job), &who, &status, &view::gist(job, WIDEST));
            self.pending.push((text(job, "completed_at").to_owned(), vec![line]));
        }
    }

    /// A job waits for a person: what for, and why it does not move.
    pub fn waits(&self, job: &Value) {
        let who = view::direction(job);
        let mut lines = Vec::new();
        if let Some(call) = job["interrupts"].as_array().and_then(|open| open.first()).map(|one| &one["value"]) {
            lines.push(format!("waits for approval: {}", text(call, "tool")));
            for (name, value) in call["arguments"].as_object().into_iter().flatten() {
                lines.extend(self.wrapped(&format!("{name} = {value}")));
            }
        } else {
            lines.extend(self.wrapped(&format!("waits for an answer: {}", text(&job["question"], "text"))));
            let options = job["question"]["options"].as_array().into_iter().flatten();
            lines.extend(options.filter_map(Value::as_str).map(|option| format!("- {option}")));
        }
        self.say(Tone::Attention, &who, text(job, "status"), &lines);
        let reason = format!("({})", text(&job["reason"], "message"));
        self.output.say(format!("{}{}", " ".repeat(INDENT), self.output.tone(Tone::Faint, &reason)));
    }

    /// What the demo decided in the owner's place.
    pub fn decided(&self, decision: &Decision) {
        let lines = self.wrapped(&format!("\"{}\"", decision.words));
        self.say(Tone::Strong, "owner (the demo)", decision.verb, &lines);
    }

    /// Changes of the board, in any order.
    pub fn board(&mut self, events: &[Value]) {
        let told = self.board;
        for event in events.iter().filter(|event| event["seq"].as_u64() > Some(told)) {
            let task = &event["task"];
            let status = text(task, "status");
            let by = event["author"]["member"].as_str().unwrap_or("the owner");
            let tone = match status {
                "completed" => Tone::Good,
                "in_progress" => Tone::Busy,
                _ => Tone::Plain,
            };
            let blockers: Vec<&str> =
                task["blockedBy"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let said = match status {
                "in_progress" => format!("claimed by {by}"),
                "completed" => format!("by {by}"),
                _ if blockers.is_empty() => format!("{} (by {by})", text(task, "subject")),
                _ => format!("blocked by {}: {} (by {by})", blockers.join(", "), text(task, "subject")),
            };
            let line = self.line(tone, &format!("board: {}", text(task, "id")), status, &said);
            self.pending.push((text(event, "at").to_owned(), vec![line]));
            self.board = self.board.max(event["seq"].as_u64().unwrap_or(0));
        }
    }

    /// New messages of a member's conversation, of which the waits are told.
    pub fn conversation(&mut self, member: &Value, messages: &[Value]) {
        let name = text(member, "name");
        for message in messages {
            let number = message["number"].as_u64().unwrap_or(0);
            self.read.insert(text(member, "thread").to_owned(), number);
            let at = text(message, "created_at").to_owned();
            let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
            for call in calls.iter().filter(|call| text(call, "name") == "wait_for_team_tasks") {
                self.waits.insert(text(call, "id").to_owned());
                let line = self.line(Tone::Attention, name, "waits", "until the board changes (wait_for_team_tasks)");
                self.pending.push((at.clone(), vec![line]));
            }
            if text(message, "role") == "tool" && self.waits.remove(text(message, "id")) {
                let answer: Value = serde_json::from_str(text(message, "text")).unwrap_or_default();
                let (word, said) = match () {
                    () if !answer["noProgress"].is_null() => ("continues", "no other member is at work on the board"),
                    () if answer["timedOut"] == Value::Bool(true) => ("continues", "the board did not change in time"),
                    () => ("is woken", "the board has changed"),
                };
                let line = self.line(Tone::Good, name, word, said);
                self.pending.push((at, vec![line]));
            }
        }
    }

    /// One line, its text cut where the line ends.
    fn line(&self, tone: Tone, who: &str, word: &str, said: &str) -> String {
        let said = excerpt(said, self.width.saturating_sub(INDENT + 1));
        format!("  {who:<WHO$} {} {}", self.output.tone(tone, &format!("{word:<WORD$}")), super::clean(&said))
            .trim_end()
            .to_owned()
    }

    /// Several lines under one head.
    fn say(&self, tone: Tone, who: &str, word: &str, lines: &[String]) {
        for (i, line) in lines.iter().enumerate() {
            let head = match i {
                0 => format!("  {who:<WHO$} {} ", self.output.tone(tone, &format!("{word:<WORD$}"))),
                _ => " ".repeat(INDENT),
            };
            self.output.say(format!("{head}{}", super::clean(line)));
        }
    }

    /// The words in lines of the width that is left.
    fn wrapped(&self, said: &str) -> Vec<String> {
        wrap(said, self.width.saturating_sub(INDENT))
    }

    /// A text of its own, over the whole width.
    pub fn paragraph(&self, tone: Tone, said: &str) {
        for line in wrap(said, self.width) {
            self.output.say(self.output.tone(tone, &line));
        }
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Breaks at spaces; a longer word stays whole.
fn wrap(said: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in said.split_whitespace() {
        let count = word.chars().count();
        if used > 0 && used + 1 + count > width {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += count;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_break_at_spaces() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("enormous x", 3), ["enormous", "x"]);
        assert_eq!(wrap("", 5), [""]);
    }
}
