//! The invariants, held against every commit. A mirror of the store is kept
//! from the commits alone, so that a check costs what the commit changed.

use std::collections::{BTreeMap, BTreeSet};

use agent_teams_plugin::domain::job::{JobKind, Phase};
use agent_teams_plugin::domain::limits;
use agent_teams_plugin::store::records::{Head, Job, Need, Slot, Team, Work};
use agent_teams_plugin::store::{keys, step_lock};

use super::agents::Agents;
use super::ending::allowed;
use super::fairness::Fairness;
pub use super::store::Change;

/// A team as the commits left it.
#[derive(Clone, Debug, Default)]
pub struct TeamMirror {
    pub team: Option<Team>,
    pub head: Option<Head>,
    pub jobs: BTreeMap<u32, Job>,
    /// The tries of the last disconnect. Absent: some job has changed since.
    pub disconnected: Option<u32>,
}

/// An owner and a team id.
pub type TeamKey = (String, String);

/// The mirror and what is counted on the way.
#[derive(Debug)]
pub struct Checker {
    pub teams: BTreeMap<TeamKey, TeamMirror>,
    pub work: BTreeMap<String, (String, Work)>,
    /// Who holds each slot: owner, team, number of the job.
    pub slots: BTreeMap<String, (String, String, u32)>,
    pub fairness: Fairness,
    /// Statuses, reasons and failures that some job went through.
    pub reached: BTreeSet<String>,
    limit: u32,
    /// Frozen jobs that need no slot of the deployment's: taken over, or stopped
    /// at what they asked.
    slotless: BTreeSet<(TeamKey, u32)>,
    /// Runs that the host has named for some job.
    named: BTreeSet<String>,
    /// Jobs that the last commit had tried again, by a person's leave.
    pub retried: Vec<String>,
    /// Jobs that somebody has cancelled.
    cancelled: BTreeSet<(TeamKey, u32)>,
    /// Those of them that somebody wants tried again since this step began: the
    /// host may have been asked by then to stop their runs.
    pub retracted: BTreeSet<(TeamKey, u32)>,
    /// Jobs that a caller was told of, as owner, team, nonce, job.
    accepted: BTreeSet<(String, String, String, String)>,
    /// What was asked under each request id: owner, team, nonce, id.
    requests: BTreeMap<[String; 4], String>,
}

pub type Check = Result<(), String>;

/// What a commit is held against, apart from the mirror.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'w> {
    pub now: u64,
    pub agents: &'w Agents,
    /// Teams that are connected.
    pub connections: &'w BTreeSet<TeamKey>,
    /// Locks that are held.
    pub locks: &'w BTreeSet<String>,
}

fn parse<T: serde::de::DeserializeOwned>(key: &str, text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|e| format!("the record {key} cannot be read: {e}"))
}

/// What one commit has changed.
#[derive(Default)]
struct Commit {
    /// Each job with what it was before.
    jobs: BTreeMap<TeamKey, Vec<(Option<Job>, u32)>>,
    heads: BTreeMap<TeamKey, Option<Head>>,
    /// The work lists, by their prefixes.
    threads: BTreeSet<String>,
    /// The owners that took a slot, and those that had their turn.
    admitted: Vec<String>,
    served: Vec<String>,
}

impl Checker {
    /// A mirror of an empty store with so many slots.
    pub fn new(slots: u32) -> Self {
        Self {
            teams: BTreeMap::new(),
            work: BTreeMap::new(),
            slots: BTreeMap::new(),
            fairness: Fairness::default(),
            reached: BTreeSet::new(),
            limit: slots,
            slotless: BTreeSet::new(),
            named: BTreeSet::new(),
            retried: Vec::new(),
            cancelled: BTreeSet::new(),
            retracted: BTreeSet::new(),
            accepted: BTreeSet::new(),
            requests: BTreeMap::new(),
        }
    }

    /// A team that exists.
    pub fn team(&self, owner: &str, team: &str) -> Option<&TeamMirror> {
        self.teams.get(&(owner.to_string(), team.to_string())).filter(|t| t.team.is_some())
    }

    /// The teams that exist.
    pub fn living(&self) -> impl Iterator<Item = (&TeamKey, &TeamMirror, &Team)> {
        self.teams.iter().filter_map(|(key, mirror)| Some((key, mirror, mirror.team.as_ref()?)))
    }

    /// A job by its id.
    pub fn job(&self, owner: &str, job: &str) -> Option<(&TeamKey, &Job)> {
        self.living()
            .filter(|((o, _), ..)| o == owner)
            .find_map(|(key, mirror, _)| Some((key, mirror.jobs.values().find(|j| j.id == job)?)))
    }

    /// A caller was told that this job exists: it is durable, and is never lost.
    pub fn accepted(&mut self, owner: &str, team: &str, job: &str) -> Check {
        let Some(mirror) = self.teams.get(&(owner.to_string(), team.to_string())) else {
            return Err(format!("a job of team {team} was answered, and the team never existed"));
        };
        if mirror.team.is_none() {
            // Deleted by the time of the answer: the job had ended.
            return Ok(());
        }
        if !mirror.jobs.values().any(|j| j.id == job) {
            return Err(format!("{job} was accepted and is not stored"));
        }
        let nonce = mirror.team.as_ref().map(|t| t.nonce.clone()).unwrap_or_default();
        self.accepted.insert((owner.into(), team.into(), nonce, job.into()));
        Ok(())
    }

    /// A request was accepted under this id, which names one request only.
    pub fn requested(&mut self, owner: &str, team: &str, id: &str, what: String) -> Check {
        let Some(nonce) = self.team(owner, team).and_then(|t| Some(t.team.as_ref()?.nonce.clone())) else {
            return Ok(());
        };
        let first = self.requests.entry([owner.into(), team.into(), nonce, id.into()]).or_insert_with(|| what.clone());
        match *first == what {
            true => Ok(()),
            false => Err(format!("{id} of {team} was accepted for `{first}`, and then for `{what}`")),
        }
    }

    /// Every job that anyone was told of is there, for as long as its team is.
    pub fn nothing_lost(&self) -> Check {
        for (owner, team, nonce, job) in &self.accepted {
            let Some(mirror) = self.team(owner, team) else { continue };
            if mirror.team.as_ref().is_some_and(|t| t.nonce == *nonce) && !mirror.jobs.values().any(|j| j.id == *job) {
                return Err(format!("the accepted {job} is lost"));
            }
        }
        Ok(())
    }

    /// Takes one commit into the mirror and checks what it changed.
    pub fn committed(&mut self, changes: &[Change], scene: Scene, planned: Option<&BTreeSet<String>>) -> Check {
        let free_before = self.free_slots(scene.agents);
        let waiting = (free_before == 1).then(|| self.waiting_owners(scene, &[]));
        let mut commit = Commit::default();
        for change in changes {
            self.mirror(change, &mut commit, planned.is_some())?;
        }
        self.fairness.taken(&commit.admitted, waiting, planned)?;
        self.learn(&commit.jobs);
        for thread in &commit.threads {
            self.check_conversation(thread)?;
        }
        for at in commit.jobs.keys() {
            if let Some(mirror) = self.teams.get_mut(at) {
                mirror.disconnected = None;
            }
        }
        for (at, before) in &commit.heads {
            self.check_head(at, before.as_ref())?;
            self.check_pause(at, before.as_ref())?;
        }
        self.check_jobs(commit, changes, scene, planned.is_some())
    }

    /// Takes one change of a commit into the mirror. `step`: a step of the worker
    /// made the commit.
    fn mirror(&mut self, (key, old, new): &Change, commit: &mut Commit, step: bool) -> Check {
        let parts: Vec<&str> = key.split('/').collect();
        match parts.as_slice() {
            ["work", owner, thread, _] => {
                commit.threads.insert(format!("work/{owner}/{thread}/"));
                match new {
                    Some(text) => self.work.insert(key.clone(), (keys::unpart(owner), parse(key, text)?)),
                    None => self.work.remove(key),
                };
            }
            ["slot", _] => match new {
                Some(_) if old.is_some() => return Err(format!("{key} was taken from its holder")),
                Some(text) => {
                    let slot: Slot = parse(key, text)?;
                    commit.admitted.push(slot.owner.clone());
                    self.slots.insert(key.clone(), (slot.owner, slot.team, slot.n));
                }
                None => {
                    self.slots.remove(key);
                }
            },
            // The last owner had its turn, also if a step of its team was under way
            // and nothing could be tried.
            ["round"] => {
                let round: Vec<String> = new.as_deref().map(|t| parse(key, t)).transpose()?.unwrap_or_default();
                commit.served.extend(round.last().filter(|_| step).cloned());
            }
            ["team", owner, team, rest @ ..] => {
                let at = (keys::unpart(owner), (*team).to_string());
                let mirror = self.teams.entry(at.clone()).or_default();
                match rest {
                    ["team"] => {
                        if old.is_some() && new.is_some() {
                            return Err(format!("the roster of {team} changed"));
                        }
                        mirror.team = new.as_deref().map(|t| parse(key, t)).transpose()?;
                        mirror.disconnected = None;
                    }
                    ["head"] => {
                        commit.heads.insert(at, mirror.head.take());
                        mirror.head = new.as_deref().map(|t| parse(key, t)).transpose()?;
                    }
                    ["job", n] => {
                        let n: u32 = n.parse().map_err(|_| format!("a bad key {key}"))?;
                        let before = match new {
                            Some(text) => mirror.jobs.insert(n, parse(key, text)?),
                            None => mirror.jobs.remove(&n),
                        };
                        commit.jobs.entry(at).or_default().push((before, n));
                    }
                    ["job", n, part @ ("text" | "result")] => {
                        if old.is_some() && mirror.team.is_some() {
                            return Err(format!("the {part} of job {n} in {team} changed after it was stored"));
                        }
                        if new.as_deref().is_some_and(|t| t.contains("FOREIGN")) {
                            return Err(format!("a foreign answer was stored as the {part} of job {n} in {team}"));
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks the jobs that a commit changed, and counts the attempts of owners.
    fn check_jobs(&mut self, commit: Commit, changes: &[Change], scene: Scene, step: bool) -> Check {
        let mut attempts = commit.served;
        for (at, jobs) in commit.jobs {
            let Some(mirror) = self.teams.get(&at).filter(|m| m.team.is_some()) else { continue };
            if !commit.heads.contains_key(&at) {
                return Err(format!("a job of {} changed and its team's revision did not", at.1));
            }
            for (before, n) in jobs {
                if let Some(job) = mirror.jobs.get(&n) {
                    let codes = [job.hold.as_ref().map(|h| &h.code), job.failure.as_ref().map(|f| &f.code)];
                    for word in codes.into_iter().flatten().map(String::as_str).chain([job.phase.status()]) {
                        if !self.reached.contains(word) {
                            self.reached.insert(word.into());
                        }
                    }
                }
                if step && put_back(before.as_ref(), mirror.jobs.get(&n)) {
                    attempts.push(at.0.clone());
                }
                self.check_job(&at, mirror, before.as_ref(), n, changes, scene.agents)?;
            }
        }
        for owner in attempts {
            self.fairness.attempted(&owner);
        }
        Ok(())
    }

    /// Where each job of a team stands.
    pub fn statuses(&self, owner: &str, team: &str) -> Vec<&'static str> {
        self.team(owner, team).map_or(Vec::new(), |t| t.jobs.values().map(|job| job.phase.status()).collect())
    }

    /// Takes note of the runs that jobs name, and of the frozen jobs that need no
    /// slot.
    fn learn(&mut self, touched: &BTreeMap<TeamKey, Vec<(Option<Job>, u32)>>) {
        for (at, jobs) in touched {
            for (before, n) in jobs {
                let Some(job) = self.teams.get(at).and_then(|t| t.jobs.get(n)) else { continue };
                let result = job.result.as_ref().map(|r| &r.run);
                let runs = [job.message_run.as_ref(), job.ended_run.as_ref(), result].into_iter().flatten();
                self.named.extend(runs.map(String::as_str).chain(job.phase.run()).map(String::from));
                let stopped = before.as_ref().is_some_and(|b| b.phase.wait().is_some() && !b.phase.holds_slot());
                let taken_over = before.is_none() && job.phase.holds_slot();
                let place = (at.clone(), *n);
                let unknown = before.as_ref().is_some_and(|b| matches!(b.phase, Phase::Unknown { .. }));
                // Without a reason to wait, it was a person who had it tried again; with
                // one, the host has said that nothing was admitted.
                if unknown && job.hold.is_none() && matches!(job.phase, Phase::Starting | Phase::Resuming { .. }) {
                    self.retried.push(job.id.clone());
                }
                match job.phase {
                    Phase::Cancelling { .. } => drop(self.cancelled.insert(place.clone())),
                    // Somebody wants it tried again.
                    Phase::Starting | Phase::Resuming { .. } if self.cancelled.remove(&place) => {
                        self.retracted.insert(place.clone());
                    }
                    _ => {}
                }
                if !job.phase.holds_slot() {
                    self.slotless.remove(&place);
                } else if taken_over || (stopped && matches!(job.phase, Phase::Cancelling { .. })) {
                    self.slotless.insert(place);
                }
            }
        }
    }

    /// The number of slots.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Whether a frozen job needs no slot of the deployment's.
    pub fn needs_no_slot(&self, at: &TeamKey, n: u32) -> bool {
        self.slotless.contains(&(at.clone(), n))
    }

    /// Whether somebody has cancelled a job.
    pub fn cancelled(&self, at: &TeamKey, n: u32) -> bool {
        self.cancelled.contains(&(at.clone(), n))
    }

    /// Whether the host has named this run for some job.
    pub fn named(&self, run: &str) -> bool {
        self.named.contains(run)
    }

    /// Slots of the deployment that nobody's run needs: a job that was taken
    /// over takes none before the host has named its run.
    pub fn free_slots(&self, agents: &Agents) -> usize {
        let needed = |(key, (owner, team, n)): (&String, &(String, String, u32))| {
            let at = (owner.clone(), team.clone());
            let job = self.teams.get(&at).and_then(|t| t.jobs.get(n));
            let number = key.rsplit('/').next().and_then(|n| n.parse().ok()).unwrap_or(u32::MAX);
            let runs = |job: &Job| agents.threads.get(&job.thread).is_some_and(|t| t.executed(&job.id));
            number < self.limit && (!self.slotless.contains(&(at, *n)) || job.is_some_and(runs))
        };
        (self.limit as usize).saturating_sub(self.slots.iter().filter(|slot| needed(*slot)).count())
    }

    /// Only the first unfinished job of a conversation may be past the queue.
    fn check_conversation(&self, thread: &str) -> Check {
        let range = self.work.range(thread.to_string()..keys::end(thread));
        for (place, (key, (owner, work))) in range.enumerate() {
            let at = (owner.clone(), work.team.clone());
            let job = self.teams.get(&at).and_then(|m| m.jobs.get(&work.job));
            let Some(job) = job else { return Err(format!("{key} names a job that is not there")) };
            // An earlier plugin's document may have several.
            let taken_over = self.slotless.contains(&(at, work.job)) || job.key.is_some();
            if place > 0 && job.phase != Phase::Queued && !taken_over {
                return Err(format!("{} is {} behind another job of its conversation", job.id, job.phase.status()));
            }
        }
        Ok(())
    }

    fn check_head(&self, at: &TeamKey, before: Option<&Head>) -> Check {
        let Some(mirror) = self.teams.get(at).filter(|m| m.team.is_some()) else { return Ok(()) };
        let Some(head) = &mirror.head else { return Err(format!("team {} has no head", at.1)) };
        if before.is_some_and(|b| b.revision >= head.revision) {
            return Err(format!("the revision of {} did not grow", at.1));
        }
        let count = |f: &dyn Fn(&Job) -> bool| mirror.jobs.values().filter(|j| f(j)).count() as u32;
        let unfinished = count(&|j| !j.phase.finished());
        let (requests, receipts) = (count(&|j| j.kind == JobKind::Request), count(&|j| j.kind == JobKind::Receipt));
        let waiting = count(&|j| j.phase.needs_person());
        if (head.unfinished, head.requests, head.receipts, head.jobs, head.waiting)
            != (unfinished, requests, receipts, requests + receipts, Some(waiting))
        {
            return Err(format!(
                "the counters of {} are wrong: {head:?}, but {unfinished} unfinished, {waiting} waiting, {requests} requests, {receipts} receipts",
                at.1
            ));
        }
        if requests > limits::REQUESTS_PER_TEAM || receipts > limits::RECEIPTS_PER_TEAM {
            return Err(format!("team {} has {requests} requests and {receipts} receipts", at.1));
        }
        if head.ready != before.is_some_and(|b| b.ready) && !head.ready {
            return Err(format!("team {} is not ready any more", at.1));
        }
        Ok(())
    }

    /// A team that is disconnected again and again pauses longer each time.
    fn check_pause(&mut self, at: &TeamKey, before: Option<&Head>) -> Check {
        let Some(mirror) = self.teams.get_mut(at) else { return Ok(()) };
        let Some(now) = mirror.head.as_ref().and_then(|h| h.disconnect.as_ref()) else { return Ok(()) };
        if before.and_then(|b| b.disconnect.as_ref()) == Some(now) {
            return Ok(());
        }
        match mirror.disconnected.replace(now.tries) {
            Some(tries) if now.tries <= tries => {
                Err(format!("team {} is disconnected again and does not pause longer", at.1))
            }
            _ => Ok(()),
        }
    }

    fn check_job(
        &self,
        at: &TeamKey,
        mirror: &TeamMirror,
        before: Option<&Job>,
        n: u32,
        changes: &[Change],
        agents: &Agents,
    ) -> Check {
        let Some(job) = mirror.jobs.get(&n) else { return Err(format!("job {n} of {} vanished", at.1)) };
        let id = &job.id;
        match before {
            // What the earlier plugin made comes in any phase, and finished.
            None if job.key.is_some() && job.phase.finished() => return Ok(()),
            None if job.phase != Phase::Queued && job.key.is_none() => {
                return Err(format!("{id} began as {}", job.phase.status()));
            }
            Some(before) if before.phase.finished() => {
                // The root of a chain counts on; nothing else may change.
                let same = Job { chain: job.chain, ..before.clone() };
                if same != *job {
                    return Err(format!("{id} was finished and changed"));
                }
                return Ok(());
            }
            Some(before) if !allowed(&before.phase, &job.phase) => {
                return Err(format!("{id} went from {} to {}", before.phase.status(), job.phase.status()));
            }
            _ => {}
        }
        if job.chain > limits::REQUESTS_PER_CHAIN {
            return Err(format!("the chain of {id} has {} requests", job.chain));
        }
        self.check_slot(at, before, job, agents)?;
        self.check_indexes(at, job, changes)?;
        self.check_answer(before, job, agents)?;
        let goes_on = matches!(job.phase, Phase::Running { .. } | Phase::Waiting { .. } | Phase::Completed);
        if goes_on && self.cancelled(at, n) {
            return Err(format!("{id} was cancelled and is {}", job.phase.status()));
        }
        if job.phase.finished() {
            self.check_ending(at, mirror, job, changes, agents)?;
        }
        if before.is_none() && job.kind == JobKind::Receipt {
            let request = job.parent.and_then(|n| mirror.jobs.get(&n));
            let Some(request) = request else { return Err(format!("{id} is a receipt of nothing")) };
            if request.source.thread() != Some(&job.thread) {
                return Err(format!("the receipt {id} goes to another conversation than its requester's"));
            }
            if !matches!(request.phase, Phase::Completed | Phase::Failed) {
                return Err(format!("the receipt {id} was made while its request is {}", request.phase.status()));
            }
            if mirror.jobs.values().filter(|j| j.kind == JobKind::Receipt && j.parent == job.parent).count() > 1 {
                return Err(format!("{} has two receipts", request.id));
            }
        }
        if before.is_none() && job.kind == JobKind::Request {
            let chain =
                mirror.jobs.values().filter(|j| j.root == job.root && j.kind == JobKind::Request).count() as u32;
            let counted = mirror.jobs.get(&job.root).map_or(0, |root| root.chain);
            if chain != counted || chain > limits::REQUESTS_PER_CHAIN {
                return Err(format!("the chain of {id} has {chain} requests and counts {counted}"));
            }
        }
        Ok(())
    }

    /// Work list and slots say exactly what the job's phase says.
    fn check_indexes(&self, at: &TeamKey, job: &Job, changes: &[Change]) -> Check {
        let (owner, team) = at;
        let held = self.slots.iter().filter(|(_, (o, t, n))| o == owner && t == team && *n == job.n);
        let held: Vec<&String> = held.map(|(key, _)| key).collect();
        let named: Vec<String> = job.slot.iter().map(|number| keys::slot(*number)).collect();
        if held != named.iter().collect::<Vec<_>>() {
            return Err(format!("{} names the slots {named:?} and holds {held:?}", job.id));
        }
        let slot = !held.is_empty();
        if slot != job.phase.holds_slot() && !self.slotless.contains(&(at.clone(), job.n)) {
            return Err(format!(
                "{} is {} and its slot is {}",
                job.id,
                job.phase.status(),
                if slot { "taken" } else { "free" }
            ));
        }
        let key = keys::work_entry(owner, &job.thread, job.seq);
        let entry = self.work.get(&key);
        let own = entry.filter(|(o, work)| o == owner && work.team == *team && work.job == job.n);
        match (own, job.phase.finished()) {
            (None, true) => Ok(()),
            (None, false) => Err(format!("{} is unfinished and not in the work list", job.id)),
            (Some(_), true) => Err(format!("{} is finished and in the work list", job.id)),
            (Some((_, work)), false) => {
                let need = match &job.phase {
                    Phase::Queued | Phase::Answered { .. } => Need::Slot,
                    Phase::Waiting { .. } => Need::Person,
                    Phase::Running { .. } => Need::End,
                    _ => Need::Host,
                };
                // A step that ran out of time, or found its team's lock taken,
                // and a reconnect make a job due at another time.
                let written = changes.iter().any(|(changed, ..)| *changed == key);
                let next = !written || work.next_at == job.hold.as_ref().map_or(0, |hold| hold.next_at);
                if work.need != need || !next || work.run.as_deref() != job.phase.run() {
                    return Err(format!("the work list is wrong about {}: {work:?}", job.id));
                }
                Ok(())
            }
        }
    }

    /// Teams of which a first job could start now, if they are connected.
    pub fn due(&self, now: u64) -> BTreeSet<TeamKey> {
        let mut teams = BTreeSet::new();
        let mut conversation = "";
        for (key, (owner, work)) in &self.work {
            let thread = &key[..=key.rfind('/').unwrap_or(0)];
            if thread == conversation {
                continue;
            }
            conversation = thread;
            if work.need == Need::Slot && work.next_at <= now {
                teams.insert((owner.clone(), work.team.clone()));
            }
        }
        teams
    }

    /// Owners with a first job that could start now, in a team that does not
    /// rest and talks to the host for nobody else.
    pub fn waiting_owners(&self, scene: Scene, resting: &[TeamKey]) -> BTreeSet<String> {
        let free = |at: &TeamKey| {
            scene.connections.contains(at) && !resting.contains(at) && !scene.locks.contains(&step_lock(&at.0, &at.1))
        };
        self.due(scene.now).into_iter().filter(free).map(|(owner, _)| owner).collect()
    }

    /// The first unfinished job of a conversation.
    pub fn executing(&self, owner: &str, thread: &str) -> Option<String> {
        let under = keys::work_thread(owner, thread);
        let (_, (_, work)) = self.work.range(under.clone()..keys::end(&under)).next()?;
        Some(self.team(owner, &work.team)?.jobs.get(&work.job)?.id.clone())
    }
}

/// The attempt was the owner's turn, though the job stays in the queue.
fn put_back(before: Option<&Job>, after: Option<&Job>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    before.phase.wants_slot() && before.phase == after.phase && before.hold != after.hold && after.hold.is_some()
}
