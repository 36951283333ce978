//! Answer a job's question or interrupts. The component never makes an answer
//! of its own.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::Ctx;
use crate::app::scheduling::observe;
use crate::app::shared::change::change_team;
use crate::app::shared::view;
use crate::domain::error::{Error, Result};
use crate::domain::job::{Answer, OpenInterrupt, Phase, Wait};
use crate::domain::machine::{Event, transition};
use crate::domain::{ids, limits, text};
use crate::host::{RunError, Runs};
use crate::store::records::Job;
use crate::store::{TeamTx, read};

/// Answers a job that waits. A clarification takes a text; a graph interrupt
/// takes any JSON value, and several open ones a map from their ids.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    pub team_id: String,
    pub job_id: String,
    /// Names this answer, so that a retry answers nothing twice.
    pub request_id: String,
    /// The id of the question, or of one of the interrupts, that is answered,
    /// as the job shows it: if it is not open any more, nothing is answered.
    /// Absent: whatever is open.
    #[serde(default)]
    pub question_id: Option<String>,
    /// A text of at most 4,000 characters and 8,000 bytes, or for an
    /// interrupt a JSON value of at most 8,000 bytes. An approval takes
    /// `{"approved": true | false, "note"?: text}` and nothing else.
    pub response: Value,
}

/// The answer as it will be frozen, in its form and within its bound: a text
/// counts its raw bytes, anything else its compact JSON.
fn check_response(wait: &Wait, response: &Value) -> Result<String> {
    match (wait, response) {
        (Wait::Question { .. }, Value::String(answer)) => text::bounded("response", answer, limits::TEXT),
        (Wait::Question { .. }, _) => Err(Error::invalid(
            "response_not_text",
            "response",
            "This is a clarification: answer it with a text (a JSON string).",
        )),
        (Wait::Interrupts { open }, response) => {
            let compact =
                serde_json::to_string(response).map_err(|_| Error::internal("a response cannot be written"))?;
            let size = response.as_str().map_or(compact.len(), str::len);
            if size > limits::RESPONSE_BYTES {
                return Err(Error::invalid(
                    "too_long",
                    "response",
                    format!("The response has {size} bytes; at most {} are allowed.", limits::RESPONSE_BYTES),
                ));
            }
            match open.as_slice() {
                [one] => check_form(one, response, "response")?,
                several => check_all(several, response)?,
            }
            Ok(compact)
        }
    }
}

/// Several interrupts take an object that maps exactly their ids to values.
fn check_all(open: &[OpenInterrupt], response: &Value) -> Result<()> {
    for one in open {
        let field = format!("response.{}", one.id);
        let Some(value) = response.get(&one.id) else {
            return Err(Error::invalid(
                "response_incomplete",
                field,
                "Several interrupts are open: answer with an object that maps each of their ids to a value.",
            ));
        };
        check_form(one, value, &field)?;
    }
    let unknown = response.as_object().and_then(|map| map.keys().find(|id| !open.iter().any(|one| one.id == **id)));
    match unknown {
        Some(id) if !open.is_empty() => Err(Error::invalid(
            "interrupt_not_open",
            format!("response.{id}"),
            "This interrupt is not open. Answer exactly those that the job shows.",
        )),
        _ => Ok(()),
    }
}

/// An approval takes one form, so that a slip of the pen is not taken for a
/// decision. What other interrupts take is between the agent and the person.
fn check_form(one: &OpenInterrupt, value: &Value, field: &str) -> Result<()> {
    if one.value.get("kind").and_then(Value::as_str) != Some("approval") {
        return Ok(());
    }
    let legal = value.as_object().is_some_and(|form| {
        form.get("approved").is_some_and(Value::is_boolean)
            && form.iter().all(|(name, value)| name == "approved" || (name == "note" && value.is_string()))
    });
    if legal {
        return Ok(());
    }
    Err(Error::invalid(
        "approval_form",
        field,
        "This is an approval: answer with exactly {\"approved\": true} or {\"approved\": false}, and if you like a \
         \"note\" (text). Nothing was stored; the job still waits.",
    ))
}

pub fn resume(ctx: Ctx, resume: &Resume) -> Result<Value> {
    let runs = ctx.require_runs()?;
    let request_id = text::bounded("request_id", &resume.request_id, limits::REQUEST_ID)?;
    let given = serde_json::to_string(&resume.response).unwrap_or_default();
    let digest = ids::digest("answer", &[&given]);
    let job = read(ctx.host, |db| TeamTx::load(db, ctx.owner(), &resume.team_id)?.job_by_id(&resume.job_id))?;
    // An answer in the conversation itself has changed the question.
    if let Phase::Waiting { wait, .. } = &job.phase
        && !job.answers.iter().any(|(given, _)| *given == request_id)
    {
        match runs.state(&job.thread, None, None) {
            Ok(state) if !observe::still_open(wait, &state) => return Err(changed()),
            Err(RunError::Denied(_)) => {
                return Err(Error::denied(
                    "denied",
                    "The host denies access to this conversation. Resolve it, then answer again.",
                ));
            }
            _ => {}
        }
    }
    let read_now = open_interrupts(runs, &job)?;
    let now = ctx.now();
    let reply = change_team(ctx.host, ctx.owner(), &resume.team_id, |team| {
        let mut job = team.job_by_id(&resume.job_id)?;
        if let Some((_, known)) = job.answers.iter().find(|(id, _)| *id == request_id) {
            if *known == digest {
                return Ok(json!({"job": view::job(ctx, team, &job, true)?}));
            }
            return Err(
                Error::conflict("request_id_reused", "This request_id was used for another answer.").at("request_id")
            );
        }
        if let (Phase::Waiting { wait, .. }, Some(open)) = (&mut job.phase, &read_now)
            && *wait == (Wait::Interrupts { open: Vec::new() })
        {
            *wait = Wait::Interrupts { open: open.clone() };
        }
        let Phase::Waiting { run, wait } = &job.phase else { return Err(not_waiting(team, &job)?) };
        if let Some(about) = resume.question_id.as_deref().filter(|id| !id.is_empty())
            && !names(wait, about)
        {
            return Err(not_open(wait));
        }
        if job.answers.len() >= limits::ANSWERS_PER_JOB {
            return Err(Error::limit(
                "answer_limit",
                format!("This job was answered {} times, which is its bound. Cancel it.", job.answers.len()),
            ));
        }
        let answer_text = check_response(wait, &resume.response)?;
        let answer = Answer {
            asker: Some(run.clone()),
            request_id: request_id.clone(),
            digest: digest.clone(),
            key: ids::resume_key(&team.team.nonce, &job.id, &wait.identity(), &request_id),
            wait: wait.clone(),
        };
        let before = job.phase.clone();
        let Some(phase) = transition(&before, Event::Answer(answer)) else { return Err(not_waiting(team, &job)?) };
        job.phase = phase;
        job.hold = None;
        job.answers.push((request_id.clone(), digest.clone()));
        team.db.put_text(&team.keys.answer(job.n), &answer_text)?;
        team.save_job(&mut job, now)?;
        team.record_change()?;
        Ok(json!({"job": view::job(ctx, team, &job, true)?}))
    })?;
    Ok(reply)
}

/// An imported job says that it waits for interrupts, but not for
/// which: the conversation does.
fn open_interrupts(runs: &dyn Runs, job: &Job) -> Result<Option<Vec<OpenInterrupt>>> {
    let Phase::Waiting { wait: Wait::Interrupts { open }, .. } = &job.phase else { return Ok(None) };
    if !open.is_empty() {
        return Ok(None);
    }
    match runs.state(&job.thread, None, None) {
        Ok(state) if state.interrupts.is_empty() => Err(changed()),
        Ok(state) => observe::open_interrupts(&state)
            .map(Some)
            .map_err(|why| Error::conflict("not_answerable", why.message).at("response")),
        Err(error) => Err(Error::unavailable(
            "host_unavailable",
            format!(
                "The host cannot say now what is open in this conversation ({}). Answer again later.",
                observe::say(&error)
            ),
        )),
    }
}

/// Whether this id is one of what is asked.
fn names(wait: &Wait, id: &str) -> bool {
    match wait {
        Wait::Question { id: asked, .. } => asked == id,
        Wait::Interrupts { open } => open.iter().any(|one| one.id == id),
    }
}

/// The refusal for a job that does not wait; where another answer was first, with
/// that answer.
fn not_waiting(team: &TeamTx, job: &Job) -> Result<Error> {
    let status = job.phase.status();
    let refuse = |message: &str, detail| Error::conflict("not_waiting", message).at("job_id").with(detail);
    let (Phase::Answered { answer, .. } | Phase::Resuming { answer, .. }) = &job.phase else {
        let message = "This job does not wait for an answer. Read it to see its status.";
        return Ok(refuse(message, json!({"status": status})));
    };
    let given = team.db.get_text(&team.keys.answer(job.n))?.unwrap_or_default();
    let (given, _) = text::excerpt(&given, limits::EXCERPT_BYTES);
    let message = format!("Another answer was given first: {given}. Yours was not used. Read the job to follow it.");
    Ok(refuse(&message, json!({"status": status, "answered": {"request_id": answer.request_id, "response": given}})))
}

/// The answer was for another question of this job.
fn not_open(wait: &Wait) -> Error {
    let open: Vec<&str> = match wait {
        Wait::Question { id, .. } => alloc::vec![id.as_str()],
        Wait::Interrupts { open } => open.iter().map(|one| one.id.as_str()).collect(),
    };
    let message = format!(
        "This question is not open any more; nothing was answered. Open is {}. Read the job, then answer that.",
        open.join(", ")
    );
    Error::conflict("question_not_open", message).at("question_id").with(json!({"open": open}))
}

fn changed() -> Error {
    Error::conflict(
        "clarification_changed",
        "The question was answered or replaced in the conversation itself. Inspect the conversation, then cancel this job.",
    )
    .at("response")
}
