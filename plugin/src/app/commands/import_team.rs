//! Take over a team of the earlier plugin.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::shared::args::optional;
use crate::app::shared::deleted_team;
use crate::app::{Ctx, topic};
use crate::domain::error::{Error, Result};
use crate::domain::job::{Failure, JobKind, Phase};
use crate::domain::legacy::{self, Imported};
use crate::domain::{ids, limits};
use crate::store::records::{
    Frozen, FrozenInput, Head, Job, Member, Message, MessageKind, NewJob, ResultMeta, Team, V1, Work,
};
use crate::store::{Db, keys, read, transact};

/// Takes over one team of the earlier plugin with its jobs, messages and
/// answers, under the same ids. The same document again changes nothing; a
/// team of that id with other content is a conflict. Unfinished jobs move on
/// only after a reconnect.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportTeam {
    /// The team's document, as the earlier plugin stored it.
    pub team: Value,
    /// True: say what would happen, and change nothing.
    #[serde(default, deserialize_with = "optional")]
    pub dry_run: Option<bool>,
}

/// What became of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Imported,
    WouldImport,
    Unchanged,
}

pub fn import_team(ctx: Ctx, import: &ImportTeam) -> Result<Value> {
    let owner = ctx.owner();
    let imported = legacy::read(&import.team)?;
    if import.dry_run.unwrap_or(false) {
        let known = read(ctx.host, |db| known(db, owner, &imported))?;
        return Ok(report(&imported, if known { Outcome::Unchanged } else { Outcome::WouldImport }));
    }
    let now = ctx.now();
    let nonce = ids::hex(&ctx.host.random(16));
    deleted_team::purge_all(ctx.host, owner, &imported.id)?;
    let lock = format!("create/{}", keys::part(owner));
    let made = transact(ctx.host, &lock, |db| {
        if known(db, owner, &imported)? {
            return Ok(false);
        }
        store(db, owner, &imported, &nonce, now)?;
        Ok(true)
    })?;
    if made {
        ctx.host.publish(owner, &topic(&imported.id), 1);
    }
    Ok(report(&imported, if made { Outcome::Imported } else { Outcome::Unchanged }))
}

/// Whether this very document was imported before.
fn known(db: &Db, owner: &str, imported: &Imported) -> Result<bool> {
    if let Some(existing) = db.get::<Team>(&keys::TeamKeys::new(owner, &imported.id).team())? {
        if existing.digest == imported.digest {
            return Ok(true);
        }
        return Err(Error::conflict(
            "team_exists",
            format!(
                "The team {} (\"{}\") exists with other content. Delete it first if this document should replace it.",
                existing.id, existing.name
            ),
        )
        .at("team.id"));
    }
    let teams = db.scan_prefix(&keys::list(owner), limits::TEAMS_PER_OWNER as u32)?;
    if teams.len() >= limits::TEAMS_PER_OWNER {
        return Err(Error::limit(
            "team_limit",
            format!("This owner has {} teams, which is the bound. Delete a finished one first.", teams.len()),
        ));
    }
    Ok(false)
}

fn store(db: &Db, owner: &str, imported: &Imported, nonce: &str, now: u64) -> Result<()> {
    let at = keys::TeamKeys::new(owner, &imported.id);
    // The earlier plugin kept no time for a team: that of its first job.
    // Whatever a document says, no team is younger than its import.
    let created_at = imported.jobs.iter().map(|j| j.created_at).filter(|t| *t > 0).min().unwrap_or(now).min(now);
    let team = Team {
        v: V1,
        id: imported.id.clone(),
        name: imported.name.clone(),
        goal: imported.goal.clone(),
        nonce: nonce.into(),
        members: imported
            .members
            .iter()
            .map(|m| Member {
                id: m.id.clone(),
                name: m.name.clone(),
                agent: m.agent.clone(),
                thread: m.thread_id.clone(),
            })
            .collect(),
        lead: None,
        successor_of: None,
        request_id: imported.id.clone(),
        digest: imported.digest.clone(),
        created_at,
    };
    let count = |kind| imported.jobs.iter().filter(|j| j.kind == kind).count() as u32;
    let head = Head {
        revision: 1,
        ready: imported.ready,
        jobs: imported.jobs.len() as u32,
        messages: imported.messages.len() as u32,
        requests: count(JobKind::Request),
        receipts: count(JobKind::Receipt),
        unfinished: imported.jobs.iter().filter(|j| !j.phase.finished()).count() as u32,
        waiting: Some(imported.jobs.iter().filter(|j| j.phase.needs_person()).count() as u32),
        ..Head::default()
    };
    db.put(&at.team(), &team)?;
    db.put(&at.head(), &head)?;
    db.put_text(&keys::list_entry(owner, created_at, &imported.id), "{}")?;
    for (i, message) in imported.messages.iter().enumerate() {
        put_message(db, &at, imported, i as u32 + 1, message)?;
    }
    let mut jobs: Vec<Job> = (1..).zip(&imported.jobs).map(|(n, job)| record(imported, n, job)).collect();
    for (job, from) in jobs.iter().zip(&imported.jobs) {
        db.put(&at.job_id(&job.id), &job.n)?;
        db.put_text(&at.text(job.n), &from.text)?;
        if let Some(answer) = &from.result {
            db.put_text(&at.result(job.n), &answer.text)?;
        }
    }
    // In each conversation the frozen job is the head, then the order as it was.
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|i| !jobs[*i].phase.holds_slot() && !matches!(jobs[*i].phase, Phase::Waiting { .. }));
    for i in order {
        let job = &mut jobs[i];
        if !job.phase.finished() {
            place(db, owner, &at, &imported.id, job, imported.jobs[i].input.as_ref(), now)?;
        }
        db.put(&at.job(job.n), job)?;
    }
    Ok(())
}

fn record(imported: &Imported, n: u32, from: &legacy::Job) -> Job {
    let chain = imported.jobs.iter().filter(|j| j.kind == JobKind::Request && j.root == n).count() as u32;
    let truncated = from.result.as_ref().and_then(|r| r.cut.then_some(true));
    Job {
        n,
        root: from.root,
        parent: from.parent,
        chain: if from.root == n { chain } else { 0 },
        phase: from.phase.clone(),
        waits: from.phase.needs_person(),
        key: Some(from.id.clone()),
        refused: 0,
        message: from.message.clone(),
        message_run: from.message_run.clone(),
        result: from.result.as_ref().map(|_| ResultMeta { truncated, run: from.run.clone().unwrap_or_default() }),
        ended_run: from.run.clone().filter(|_| from.phase.finished() && from.result.is_none()),
        failure: from.failure.as_ref().map(|why| Failure { code: "imported".into(), message: why.clone() }),
        completed_at: from.completed_at,
        ..Job::queued(NewJob {
            id: from.id.clone(),
            kind: from.kind,
            member: from.member.clone(),
            thread: from.thread.clone(),
            source: from.source.clone(),
            request_id: from.id.clone(),
            digest: ids::digest("request", &[from.member.as_deref().unwrap_or(""), &from.text]),
            created_at: from.created_at,
        })
    }
}

/// Puts an unfinished job into its conversation's list, with its frozen input,
/// byte for byte and under its old key. What was frozen elsewhere takes no
/// slot of this deployment: its run is collected, and nothing is sent for it
/// before it was admitted here.
fn place(
    db: &Db,
    owner: &str,
    at: &keys::TeamKeys,
    team: &str,
    job: &mut Job,
    input: Option<&legacy::Input>,
    now: u64,
) -> Result<()> {
    let conversation = keys::work_thread(owner, &job.thread);
    let last = db.scan(&conversation, &keys::end(&conversation), 1, true)?;
    let last = last.first().and_then(|(key, _)| key.rsplit('/').next()).and_then(|seq| seq.parse::<u32>().ok());
    job.seq = last.map_or(1, |seq| seq.saturating_add(1));
    if let Some(input) = input {
        let frozen = Frozen {
            v: V1,
            key: job.id.clone(),
            input: FrozenInput::Message {
                id: input.message_id.clone(),
                text: input.text.clone(),
                answers: None,
                provenance: String::from("{}"),
            },
            notices: Vec::new(),
            insist: false,
        };
        let stored = serde_json::to_string(&frozen).map_err(|_| Error::internal("an input cannot be written"))?;
        job.input = Some(ids::digest("input", &[&stored]));
        db.put_text(&at.input(job.n), &stored)?;
    }
    // Its calls are this job's, for as long as the job is under way.
    if let Some(run) = job.phase.run() {
        db.put(&keys::ran(owner, &job.thread, run), &(team, job.n))?;
    }
    let work = Work {
        team: team.into(),
        job: job.n,
        // Poll: the run may have ended while the team was offline.
        need: crate::store::need(&job.phase),
        since: if job.created_at > 0 { job.created_at } else { now },
        next_at: 0,
        run: job.phase.run().map(String::from),
    };
    db.put(&keys::work_entry(owner, &job.thread, job.seq), &work)
}

fn put_message(db: &Db, at: &keys::TeamKeys, imported: &Imported, seq: u32, message: &legacy::Message) -> Result<()> {
    let job = &imported.jobs[message.job as usize - 1];
    let (kind, own, time) = match message.kind {
        legacy::MessageKind::Request => (MessageKind::Request, Some(&job.text), job.created_at),
        legacy::MessageKind::Result => {
            (MessageKind::Result, job.result.as_ref().map(|r| &r.text), job.completed_at.unwrap_or(0))
        }
        legacy::MessageKind::Notice => (MessageKind::Notice, job.failure.as_ref(), job.completed_at.unwrap_or(0)),
    };
    // Nothing is stored twice.
    let text = (own != Some(&message.text)).then(|| message.text.clone());
    db.put(&at.message(seq), &Message { v: V1, seq, kind, job: message.job, at: time, text })
}

fn report(imported: &Imported, outcome: Outcome) -> Value {
    let outcome = match outcome {
        Outcome::Imported => "imported",
        Outcome::WouldImport => "would_import",
        Outcome::Unchanged => "unchanged",
    };
    let jobs = |f: &dyn Fn(&legacy::Job) -> bool| imported.jobs.iter().filter(|j| f(j)).count();
    json!({
        "team_id": imported.id, "name": imported.name, "outcome": outcome, "ready": imported.ready,
        "requests": jobs(&|j| j.kind == JobKind::Request), "receipts": jobs(&|j| j.kind == JobKind::Receipt),
        "unfinished": jobs(&|j| !j.phase.finished()), "messages": imported.messages.len(),
        "answers": {
            "with_job": jobs(&|j| j.result.as_ref().is_some_and(|r| !r.from_messages)),
            "from_messages": jobs(&|j| j.result.as_ref().is_some_and(|r| r.from_messages)),
            "not_retained": jobs(&|j| j.phase == Phase::Completed && j.result.is_none()),
        },
        "warnings": imported.warnings,
    })
}
