//! Teams and jobs as people read them. The documents come from the component
//! and are shown as they are; what a status means is not decided here, only
//! how its row looks.

use serde_json::Value;

use super::output::{Output, Tone, clean, excerpt};

/// So much of an id tells jobs of one team apart.
const SHORT_ID: usize = 12;

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn number(value: &Value, key: &str) -> String {
    value[key].as_u64().map(|n| n.to_string()).unwrap_or_default()
}

pub fn short_id(id: &str) -> String {
    id.chars().take(SHORT_ID).collect()
}

/// Finished, and with what end.
pub fn finished(job: &Value) -> bool {
    !job["completed_at"].is_null()
}

/// Finished with a result.
pub fn succeeded(job: &Value) -> bool {
    finished(job) && job["error"].is_null() && job["result"]["available"] == Value::Bool(true)
}

/// Waits for a person: a question, or a step to approve.
pub fn asks(job: &Value) -> bool {
    !finished(job) && (!job["question"].is_null() || !list(job, "interrupts").is_empty())
}

/// How it ended is unknown; a person must look.
pub fn doubtful(job: &Value) -> bool {
    text(job, "status") == "unknown"
}

pub fn tone(job: &Value) -> Tone {
    match () {
        () if succeeded(job) => Tone::Good,
        () if finished(job) => Tone::Bad,
        () if asks(job) || doubtful(job) => Tone::Attention,
        () if job["run_id"].is_null() => Tone::Faint,
        () => Tone::Busy,
    }
}

/// Who asked for it.
pub fn requester(job: &Value) -> String {
    let from = &job["requester"];
    match text(from, "kind") {
        "member" => text(from, "member").to_owned(),
        "conversation" => format!("conversation {}", short_id(text(from, "thread"))),
        _ => "owner".into(),
    }
}

/// `Ada → Bo`; for a receipt, whose result goes to whom.
pub fn direction(job: &Value) -> String {
    let to = match text(job, "member") {
        "" => format!("conversation {}", short_id(text(job, "thread"))),
        member => member.to_owned(),
    };
    match text(job, "kind") {
        "receipt" => format!("{} ⇒ {to} (result)", requester(job)),
        _ => format!("{} → {to}", requester(job)),
    }
}

/// What there is to say about a job in a few words: its result, its error,
/// its question, or why it does not move.
pub fn gist(job: &Value, limit: usize) -> String {
    if !job["error"].is_null() {
        return excerpt(text(&job["error"], "message"), limit);
    }
    if finished(job) {
        let result = &job["result"];
        return if result["available"] == Value::Bool(true) {
            excerpt(text(result, "text"), limit)
        } else {
            String::new()
        };
    }
    if !job["question"].is_null() {
        return excerpt(&format!("asks: {}", text(&job["question"], "text")), limit);
    }
    if let Some(interrupt) = list(job, "interrupts").first() {
        return excerpt(&format!("to approve: {}", interrupt["value"]), limit);
    }
    excerpt(text(&job["reason"], "message"), limit)
}

pub fn teams(output: &Output, answer: &Value) -> String {
    let teams = list(answer, "teams");
    if teams.is_empty() {
        return "No teams yet. `agent-teams teams create --help` shows how to make one.".into();
    }
    let rows = teams
        .iter()
        .map(|team| {
            let (state, tone) = state(team);
            [
                (Tone::Plain, text(team, "name").to_owned()),
                (tone, state.to_owned()),
                (Tone::Plain, number(team, "members")),
                (Tone::Plain, number(team, "unfinished")),
                (Tone::Faint, text(team, "created_at").to_owned()),
                (Tone::Faint, text(team, "id").to_owned()),
            ]
        })
        .collect();
    output.table(["NAME", "STATE", "MEMBERS", "UNFINISHED", "CREATED", "ID"], rows)
}

/// The agents that can be members.
pub fn agents(output: &Output, answer: &Value) -> String {
    let agents = list(answer, "agents");
    if agents.is_empty() {
        return crate::config::NO_AGENTS_HINT.into();
    }
    let rows = agents
        .iter()
        .map(|agent| {
            [
                (Tone::Plain, text(agent, "name").to_owned()),
                (Tone::Plain, text(agent, "display_name").to_owned()),
                (Tone::Faint, excerpt(text(agent, "description"), 80)),
            ]
        })
        .collect();
    output.table(["AGENT", "NAME", "DESCRIPTION"], rows)
}

fn state(team: &Value) -> (&'static str, Tone) {
    if team["reason"]["code"] == "damaged" {
        return ("damaged", Tone::Bad);
    }
    match (team["ready"] == Value::Bool(true), team["connected"] == Value::Bool(true)) {
        (true, true) => ("ready", Tone::Good),
        (false, true) => ("not ready", Tone::Attention),
        (_, false) => ("not connected", Tone::Attention),
    }
}

/// A team's head and its members.
pub fn team(output: &Output, answer: &Value) -> String {
    let team = &answer["team"];
    let (state, tone) = state(team);
    let mut lines = vec![format!("{}  {}", clean(text(team, "name")), output.tone(tone, state))];
    if let Some(reason) = team["reason"].as_str().or_else(|| team["reason"]["message"].as_str()) {
        lines.push(output.tone(Tone::Attention, reason));
    }
    lines.push(clean(text(team, "goal")));
    lines.push(output.tone(Tone::Faint, &format!("id {}, revision {}", text(team, "id"), number(team, "revision"))));
    let counts = &team["counts"];
    lines.push(output.tone(
        Tone::Faint,
        &format!(
            "{} requests ({} left), {} receipts, {} unfinished",
            number(counts, "requests"),
            number(counts, "requests_left"),
            number(counts, "receipts"),
            number(counts, "unfinished")
        ),
    ));
    let rows = list(team, "members")
        .iter()
        .map(|member| {
            let lead = !team["lead"].is_null() && team["lead"] == member["id"];
            [
                (Tone::Plain, format!("{}{}", text(member, "name"), if lead { " (lead)" } else { "" })),
                (Tone::Plain, text(member, "agent").to_owned()),
                (Tone::Busy, text(member, "state").to_owned()),
                (Tone::Faint, text(member, "id").to_owned()),
            ]
        })
        .collect();
    lines.push(String::new());
    lines.push(output.table(["MEMBER", "AGENT", "STATE", "ID"], rows));
    lines.join("\n")
}

/// Jobs, one a row, in the order given.
pub fn jobs(output: &Output, jobs: &[Value]) -> String {
    if jobs.is_empty() {
        return "No jobs yet.".into();
    }
    let rows = jobs
        .iter()
        .map(|job| {
            [
                (Tone::Faint, short_id(text(job, "id"))),
                (Tone::Plain, direction(job)),
                (tone(job), text(job, "status").to_owned()),
                (Tone::Plain, excerpt(text(job, "text"), 40)),
                (Tone::Plain, gist(job, 60)),
            ]
        })
        .collect();
    output.table(["JOB", "FROM → TO", "STATUS", "REQUEST", "RESULT"], rows)
}

/// One job with all its texts.
pub fn job(output: &Output, job: &Value) -> String {
    let mut lines = vec![
        format!(
            "{}  {}  {}",
            clean(text(job, "id")),
            clean(&direction(job)),
            output.tone(tone(job), text(job, "status"))
        ),
        output.tone(
            Tone::Faint,
            &format!("conversation {}, run {}", text(job, "thread"), job["run_id"].as_str().unwrap_or("none")),
        ),
        output.tone(
            Tone::Faint,
            &format!(
                "created {}, completed {}",
                text(job, "created_at"),
                job["completed_at"].as_str().unwrap_or("not yet")
            ),
        ),
    ];
    let mut part = |title: &str, body: &str, cut: bool| {
        lines.push(String::new());
        lines.push(format!("{title}:"));
        lines.push(clean(body));
        if cut {
            lines.push("(shortened)".into());
        }
    };
    part("request", text(job, "text"), job["text_truncated"] == Value::Bool(true));
    if job["result"]["available"] == Value::Bool(true) {
        part("result", text(&job["result"], "text"), job["result"]["truncated"] == Value::Bool(true));
    }
    if !job["error"].is_null() {
        part("error", &format!("{}: {}", text(&job["error"], "code"), text(&job["error"], "message")), false);
    }
    if !job["reason"].is_null() && !finished(job) {
        part("why it does not move", text(&job["reason"], "message"), false);
    }
    if !job["question"].is_null() {
        let options: Vec<&str> = list(&job["question"], "options").iter().filter_map(Value::as_str).collect();
        part("question", text(&job["question"], "text"), false);
        if !options.is_empty() {
            part("options", &options.join("\n"), false);
        }
    }
    for interrupt in list(job, "interrupts") {
        let shown = interrupt["value"].to_string();
        let name = format!("to approve ({})", text(interrupt, "id"));
        match interrupt["cut"]["bytes"].as_u64() {
            Some(bytes) => part(&format!("{name}, shortened: the whole has {bytes} bytes"), &shown, false),
            None => part(&name, &shown, false),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::output::Color;
    use super::*;

    #[test]
    fn jobs_say_who_asked_whom_and_how_it_ended() {
        let output = Output::new(false, Color::Never);
        let done = json!({
            "id": "0123456789abcdef", "kind": "request", "status": "completed", "member": "Bo",
            "requester": {"kind": "member", "member": "Ada"}, "text": "Look\nclosely",
            "result": {"available": true, "text": "Seen \u{1b}[2J", "truncated": false}, "error": null,
            "completed_at": "2026-01-01T00:00:00Z", "run_id": "r",
        });
        let failed = json!({"id": "ff", "kind": "receipt", "status": "failed", "member": "Ada", "requester": {"kind": "member", "member": "Bo"},
            "text": "t", "result": null, "error": {"code": "c", "message": "no luck"}, "completed_at": "x"});
        assert!(succeeded(&done) && !succeeded(&failed));
        let shown = jobs(&output, &[done, failed]);
        assert!(shown.contains("Ada → Bo") && shown.contains("Bo ⇒ Ada (result)"), "{shown}");
        assert!(shown.contains("Look…") && shown.contains("no luck"), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }

    #[test]
    fn a_job_that_asks_is_neither_finished_nor_silent() {
        let job = json!({"status": "s", "completed_at": null, "question": {"text": "Which?"}, "interrupts": []});
        assert!(asks(&job) && !finished(&job));
        assert_eq!(gist(&job, 80), "asks: Which?");
    }
}
