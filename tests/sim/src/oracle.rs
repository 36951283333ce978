//! A second, small and obvious model of teams, without storage, slots, keys or
//! faults: what a calm world must look like after each command and the passes
//! that follow it.

use std::collections::BTreeMap;

/// Where a job stands, in the words that everybody sees.
pub type Status = &'static str;

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    pub request: bool,
    /// The conversation in which it runs.
    pub thread: String,
    pub member: String,
    /// The conversation to which its result returns.
    pub asker: Option<String>,
    pub request_id: String,
    pub text: String,
    pub root: usize,
    pub status: Status,
    /// What it waits for: true for a question, false for an interrupt.
    pub question: bool,
    pub answers: BTreeMap<String, String>,
}

/// One team.
#[derive(Clone, Debug, Default)]
pub struct Team {
    pub goal: String,
    pub members: Vec<(String, String)>,
    pub jobs: Vec<Job>,
}

/// One conversation: its unfinished jobs in order, and whether something is
/// asked there.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    pub queue: Vec<((String, String), usize)>,
    pub open: bool,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    pub teams: BTreeMap<(String, String), Team>,
    pub conversations: BTreeMap<String, Conversation>,
}

/// The refusal's code, or the status of the job.
pub type Answer = Result<Status, &'static str>;

const FINISHED: [Status; 3] = ["completed", "failed", "cancelled"];

impl Oracle {
    fn at(owner: &str, team: &str) -> (String, String) {
        (owner.into(), team.into())
    }

    /// Asks a member for work. `asker`: a conversation; `during`: the job whose
    /// turn asks.
    #[allow(clippy::too_many_arguments)]
    pub fn send(
        &mut self,
        owner: &str,
        team: &str,
        member: &str,
        request_id: &str,
        text: &str,
        asker: Option<&str>,
        during: Option<usize>,
    ) -> Answer {
        let text = text.trim();
        if text.is_empty() {
            return Err("empty");
        }
        if text.chars().count() > 4_000 || text.len() > 8_000 {
            return Err("too_long");
        }
        let at = Self::at(owner, team);
        let Some(known) = self.teams.get_mut(&at) else { return Err("team_not_found") };
        let Some((_, thread)) = known.members.iter().find(|(id, _)| id == member).cloned() else {
            return Err("member_not_found");
        };
        if asker == Some(&thread) {
            return Err("request_to_self");
        }
        let same_id = |j: &&Job| j.request && j.asker.as_deref() == asker && j.request_id == request_id;
        if let Some(old) = known.jobs.iter().find(same_id) {
            return if old.member == member && old.text == text { Ok(old.status) } else { Err("request_id_reused") };
        }
        let n = known.jobs.len();
        let root = during.map_or(n, |parent| known.jobs[parent].root);
        let requests =
            |root: Option<usize>| known.jobs.iter().filter(|j| j.request && root.is_none_or(|r| j.root == r)).count();
        if during.is_some() && requests(Some(root)) >= 12 {
            return Err("chain_limit");
        }
        if requests(None) >= 100 {
            return Err("request_limit");
        }
        known.jobs.push(Job {
            request: true,
            thread: thread.clone(),
            member: member.into(),
            asker: asker.map(String::from),
            request_id: request_id.into(),
            text: text.into(),
            root,
            status: "queued",
            question: false,
            answers: BTreeMap::new(),
        });
        self.conversations.entry(thread).or_default().queue.push((at, n));
        Ok("queued")
    }

    /// The owner cancels; what runs, or stopped at an interrupt, is only told to
    /// stop. A question is left to be answered in its conversation.
    pub fn cancel(&mut self, owner: &str, team: &str, n: usize) -> Answer {
        let at = Self::at(owner, team);
        let Some(job) = self.teams.get_mut(&at).and_then(|t| t.jobs.get_mut(n)) else { return Err("job_not_found") };
        match job.status {
            "running" => job.status = "cancelling",
            "waiting_input" if !job.question => job.status = "cancelling",
            "queued" | "waiting_input" | "resuming" => self.end(&at, n, "cancelled"),
            _ => {}
        }
        Ok(self.teams[&at].jobs[n].status)
    }

    /// The owner answers.
    pub fn resume(
        &mut self,
        owner: &str,
        team: &str,
        n: usize,
        request_id: &str,
        answer: &str,
        is_text: bool,
    ) -> Answer {
        let Some(job) = self.teams.get_mut(&Self::at(owner, team)).and_then(|t| t.jobs.get_mut(n)) else {
            return Err("job_not_found");
        };
        if let Some(given) = job.answers.get(request_id) {
            return if given == answer { Ok(job.status) } else { Err("request_id_reused") };
        }
        if job.status != "waiting_input" {
            return Err("not_waiting");
        }
        if job.question && !is_text {
            return Err("response_not_text");
        }
        job.answers.insert(request_id.into(), answer.into());
        job.status = "resuming";
        Ok("resuming")
    }

    /// Nothing is unknown in a calm world.
    pub fn settle(&self, owner: &str, team: &str, n: usize) -> Answer {
        match self.teams.get(&Self::at(owner, team)).and_then(|t| t.jobs.get(n)) {
            None => Err("job_not_found"),
            Some(job) if FINISHED.contains(&job.status) => Ok(job.status),
            Some(_) => Err("not_unknown"),
        }
    }

    /// The owner deletes a team.
    pub fn delete(&mut self, owner: &str, team: &str) -> Answer {
        let at = Self::at(owner, team);
        let Some(known) = self.teams.get(&at) else { return Err("team_not_found") };
        if known.jobs.iter().any(|j| !FINISHED.contains(&j.status)) {
            return Err("team_not_finished");
        }
        self.teams.remove(&at);
        Ok("deleted")
    }

    /// The turn of a conversation ends: `completed`, `failed`, or `question`,
    /// `interrupt`.
    pub fn turn_ends(&mut self, thread: &str, how: &str) {
        let Some((at, n)) = self.conversations.get(thread).and_then(|c| c.queue.first().cloned()) else { return };
        let job = self.teams.get_mut(&at).map(|t| &mut t.jobs[n]);
        let Some(job) = job.filter(|j| j.status == "running") else { return };
        match how {
            "completed" => self.end(&at, n, "completed"),
            "failed" => self.end(&at, n, "failed"),
            _ => {
                job.status = "waiting_input";
                job.question = how == "question";
                self.conversations.entry(thread.into()).or_default().open = true;
            }
        }
    }

    /// What the worker does: stop what is to stop, start every first job.
    pub fn pass(&mut self) {
        let threads: Vec<String> = self.conversations.keys().cloned().collect();
        for thread in &threads {
            let first = |o: &Self| o.conversations[thread].queue.first().cloned();
            if let Some((at, n)) = first(self)
                && self.teams[&at].jobs[n].status == "cancelling"
            {
                // What it asked by an interrupt is withdrawn.
                if let Some(conversation) = self.conversations.get_mut(thread) {
                    conversation.open = false;
                }
                self.end(&at, n, "cancelled");
            }
        }
        for thread in &threads {
            let conversation = self.conversations.get_mut(thread);
            let Some(conversation) = conversation else { continue };
            let Some((at, n)) = conversation.queue.first().cloned() else { continue };
            let Some(job) = self.teams.get_mut(&at).map(|t| &mut t.jobs[n]) else { continue };
            match job.status {
                "queued" if !conversation.open => job.status = "running",
                "resuming" => {
                    job.status = "running";
                    conversation.open = false;
                }
                _ => {}
            }
        }
    }

    fn end(&mut self, at: &(String, String), n: usize, status: Status) {
        let Some(team) = self.teams.get_mut(at) else { return };
        team.jobs[n].status = status;
        let job = team.jobs[n].clone();
        if let Some(conversation) = self.conversations.get_mut(&job.thread) {
            conversation.queue.retain(|(a, m)| (a, *m) != (at, n));
        }
        let Some(asker) = job.asker.filter(|_| job.request && status != "cancelled") else { return };
        let receipt = team.jobs.len();
        team.jobs.push(Job {
            request: false,
            thread: asker.clone(),
            asker: None,
            status: "queued",
            answers: BTreeMap::new(),
            question: false,
            ..job
        });
        self.conversations.entry(asker).or_default().queue.push((at.clone(), receipt));
    }

    /// Statuses in order, and the counts of requests, receipts, unfinished.
    pub fn view(&self, owner: &str, team: &str) -> Option<(Vec<Status>, [usize; 3])> {
        let team = self.teams.get(&Self::at(owner, team))?;
        let count = |f: &dyn Fn(&Job) -> bool| team.jobs.iter().filter(|j| f(j)).count();
        let counts = [count(&|j| j.request), count(&|j| !j.request), count(&|j| !FINISHED.contains(&j.status))];
        Some((team.jobs.iter().map(|j| j.status).collect(), counts))
    }

    /// Why a job does not move, by code; nothing if it moves or is finished.
    pub fn reason(&self, owner: &str, team: &str, n: usize) -> Option<&'static str> {
        let at = Self::at(owner, team);
        let job = &self.teams[&at].jobs[n];
        let first = self.conversations[&job.thread].queue.first() == Some(&(at, n));
        match job.status {
            "waiting_input" => Some("waiting_for_answer"),
            "queued" if !first => Some("waiting_for_conversation"),
            "queued" => Some("conversation_has_open_question"),
            _ => None,
        }
    }
}
