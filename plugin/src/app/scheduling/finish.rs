//! What follows from the end of a job: a line in the shared record, and for a
//! request from a conversation its receipt, or, if it was cancelled, a notice
//! that asks for no turn.

use alloc::format;
use alloc::string::String;

use serde_json::json;

use crate::domain::error::Result;
use crate::domain::ids;
use crate::domain::job::{Answered, Failure, JobKind, Phase, Source};
use crate::store::TeamTx;
use crate::store::records::{Job, MessageKind, NewJob, ResultMeta};

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Completed { run: String, answer: Answered },
    Failed(Failure),
    Cancelled { note: Option<String> },
}

/// Stores the end of a job whose phase is now finished, and everything that
/// follows, in the caller's commit. `run`: the last run that is known of it.
pub fn finish(team: &TeamTx, run: Option<&str>, mut job: Job, ending: Ending, now: u64) -> Result<Job> {
    job.hold = None;
    // The run, where there was one, leads to its conversation; of an answer that
    // began none, the run that asked.
    let asker = job.answer.take().and_then(|answer| answer.asker);
    let run = run.map(String::from).or(asker);
    job.completed_at = Some(now);
    let kind = match ending {
        Ending::Completed { run, answer } => {
            team.db.put_text(&team.keys.result(job.n), &answer.text)?;
            job.result = Some(ResultMeta { truncated: Some(answer.truncated), run });
            MessageKind::Result
        }
        Ending::Failed(failure) => {
            job.ended_run = run;
            job.failure = Some(failure);
            MessageKind::Notice
        }
        Ending::Cancelled { note } => {
            job.ended_run = run;
            job.note = note;
            MessageKind::Notice
        }
    };
    team.save_job(&mut job, now)?;
    team.add_message(kind, job.n, now)?;
    if job.kind == JobKind::Request
        && let Some(thread) = job.source.thread()
    {
        if job.phase == Phase::Cancelled {
            team.add_notice(thread, &cancelled_notice(team, &job))?;
        } else {
            queue_receipt(team, &job, thread, now)?;
        }
    }
    Ok(job)
}

fn member_name<'t>(team: &'t TeamTx, job: &Job) -> &'t str {
    job.member.as_deref().and_then(|id| team.team.member(id)).map_or("a member", |m| m.name.as_str())
}

fn cancelled_notice(team: &TeamTx, job: &Job) -> String {
    format!(
        "your request {} (request_id {}) to {} was cancelled by the owner. No result will come.",
        job.id,
        json!(job.request_id),
        member_name(team, job)
    )
}

/// Queues the receipt in the conversation that asked. Its text is derived from
/// the request's records when it is frozen, so that no answer is stored twice.
fn queue_receipt(team: &TeamTx, request: &Job, thread: &str, now: u64) -> Result<()> {
    // A person may have asked in a member's own conversation.
    let member = team.team.member_of_thread(thread).map(|m| m.id.clone());
    team.head.borrow_mut().receipts += 1;
    let receipt = Job {
        root: request.root,
        parent: Some(request.n),
        ..Job::queued(NewJob {
            id: ids::receipt(&team.team.nonce, &request.id),
            kind: JobKind::Receipt,
            member,
            thread: thread.into(),
            source: Source::Member {
                member: request.member.clone().unwrap_or_default(),
                thread: request.thread.clone(),
            },
            request_id: request.request_id.clone(),
            digest: request.digest.clone(),
            created_at: now,
        })
    };
    let text = format!("Result of {} from {}: {}.", request.id, member_name(team, request), request.phase.status());
    team.add_job(receipt, &text)?;
    Ok(())
}

/// The document that a receipt carries.
pub fn receipt_document(team: &TeamTx, request: &Job) -> Result<String> {
    let result = team.db.get_text(&team.keys.result(request.n))?;
    let document = json!({
        "job_id": request.id, "request_id": request.request_id, "member": member_name(team, request),
        "status": request.phase.status(), "result": result,
        "truncated": request.result.as_ref().and_then(|r| r.truncated),
        "error": request.failure, "conversation": request.thread,
    });
    Ok(serde_json::to_string(&document).unwrap_or_default())
}
