//! The exact input of a run, made and stored before the host is asked.

use alloc::string::String;
use alloc::vec::Vec;

use serde_json::json;

use super::finish::receipt_document;
use crate::app::shared::team_context::{author, shared_context};
use crate::domain::envelope::{self, ReceiptFrame, RequestFrame};
use crate::domain::error::{Error, Result};
use crate::domain::job::{JobKind, Phase, Wait};
use crate::domain::{context, ids, limits};
use crate::store::records::{Frozen, FrozenAnswer, FrozenInput, Job, V1};
use crate::store::{TeamTx, readable};

/// Makes and stores the input of a queued or answered job, under its key.
/// Gives the frozen input; the job's message and digest are set.
pub fn freeze(team: &TeamTx, job: &mut Job) -> Result<Frozen> {
    let frozen = match &job.phase {
        Phase::Answered { answer, .. } => freeze_answer(team, job, answer)?,
        _ => freeze_message(team, job)?,
    };
    if let FrozenInput::Message { id, .. } = &frozen.input {
        job.message = Some(id.clone());
        job.message_run = None;
    }
    job.answer = match &job.phase {
        Phase::Answered { answer, .. } => Some(answer.clone()),
        _ => None,
    };
    let stored = serde_json::to_string(&frozen).map_err(|_| Error::internal("an input cannot be written"))?;
    job.input = Some(ids::digest("input", &[&stored]));
    team.db.put_text(&team.keys.input(job.n), &stored)?;
    Ok(frozen)
}

fn freeze_answer(team: &TeamTx, job: &Job, answer: &crate::domain::job::Answer) -> Result<Frozen> {
    let given = team.db.get_text(&team.keys.answer(job.n))?.unwrap_or_default();
    let input = match &answer.wait {
        Wait::Question { id, .. } => FrozenInput::Message {
            id: ids::message(&answer.key),
            text: given,
            answers: Some(id.clone()),
            provenance: json!({
                "team_id": team.team.id, "job_id": job.id, "kind": "answer", "from": {"kind": "owner"}, "question_id": id,
            })
            .to_string_compact(),
        },
        Wait::Interrupts { open } => FrozenInput::Interrupts {
            answers: interrupt_answers(open, &given),
        },
    };
    Ok(Frozen { v: V1, key: answer.key.clone(), input, notices: Vec::new(), insist: false })
}

/// One open interrupt takes the whole response. Several take a map of their
/// ids, which the resume command has checked.
fn interrupt_answers(open: &[crate::domain::job::OpenInterrupt], given: &str) -> Vec<FrozenAnswer> {
    let map: Option<serde_json::Map<String, serde_json::Value>> =
        (open.len() > 1).then(|| serde_json::from_str(given).ok()).flatten();
    open.iter()
        .filter_map(|one| {
            let value = match &map {
                None => String::from(given),
                Some(map) => serde_json::to_string(map.get(&one.id)?).ok()?,
            };
            Some(FrozenAnswer { checkpoint: one.checkpoint.clone(), id: one.id.clone(), value })
        })
        .collect()
}

/// The idempotency key under which a job's request is sent next.
pub fn next_key(team: &TeamTx, job: &Job) -> String {
    let first = job.key.clone().unwrap_or_else(|| ids::run_key(&team.team.nonce, &job.id));
    if job.refused == 0 { first } else { ids::run_key_again(&first, job.refused) }
}

fn freeze_message(team: &TeamTx, job: &Job) -> Result<Frozen> {
    let key = next_key(team, job);
    let (_, context) = context::fit(shared_context(team, Some(job.n))?, limits::CONTEXT_BYTES);
    let notices = team.notices(&job.thread)?;
    let notice_lines = envelope::notices(&notices.iter().map(|(_, text)| text.clone()).collect::<Vec<_>>());
    let me = job.member.as_deref().and_then(|id| team.team.member(id));
    // A root that cannot be read stops none of its chain.
    let root = if job.root == job.n { None } else { readable(team.job(job.root))? };
    let root = root.unwrap_or_else(|| job.clone());
    let body = match job.kind {
        JobKind::Request => {
            let place = chain_place(team, job)?;
            envelope::request(
                &RequestFrame {
                    team_id: &team.team.id,
                    team: &team.team.name,
                    me: me.map_or("", |m| &m.name),
                    job_id: &job.id,
                    from: author(team, &job.source),
                    root_id: &root.id,
                    root_from: author(team, &root.source),
                    place,
                    bound: limits::REQUESTS_PER_CHAIN,
                    context: &context,
                    notices: &notice_lines,
                },
                &team.text(job.n)?,
            )
        }
        JobKind::Receipt => {
            let request = team.job(job.parent.unwrap_or(0))?;
            envelope::receipt(
                &ReceiptFrame {
                    team_id: &team.team.id,
                    team: &team.team.name,
                    me: me.map(|m| m.name.as_str()),
                    receipt_id: &job.id,
                    request_id: &request.id,
                    from: author(team, &job.source),
                    context: &context,
                    notices: &notice_lines,
                },
                &receipt_document(team, &request)?,
            )
        }
    };
    let provenance = json!({
        "team_id": team.team.id, "job_id": job.id, "kind": job.kind,
        "from": crate::app::shared::view::requester(&team.team, &job.source), "root_id": root.id,
        "root_from": crate::app::shared::view::requester(&team.team, &root.source),
    });
    Ok(Frozen {
        v: V1,
        input: FrozenInput::Message {
            id: ids::message(&key),
            text: body,
            answers: None,
            provenance: provenance.to_string_compact(),
        },
        key,
        notices: notices.into_iter().map(|(n, _)| n).collect(),
        insist: false,
    })
}

/// A request's place in its chain, by counting its chain's requests before it.
fn chain_place(team: &TeamTx, job: &Job) -> Result<u32> {
    if job.root == job.n {
        return Ok(1);
    }
    let numbers: Vec<String> = (job.root..=job.n).map(|n| team.keys.job(n)).collect();
    let jobs = team.db.get_each::<Job>(&numbers)?;
    Ok(jobs.into_iter().flatten().flatten().filter(|j| j.root == job.root && j.kind == JobKind::Request).count() as u32)
}

trait Compact {
    fn to_string_compact(&self) -> String;
}

impl Compact for serde_json::Value {
    fn to_string_compact(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
