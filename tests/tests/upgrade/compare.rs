//! What owners read after the upgrade, beside what they could read before.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::frozen::Frozen;

/// What never changes about a job, whatever becomes of it.
const FIXED: [&str; 13] = [
    "id",
    "n",
    "kind",
    "member_id",
    "member",
    "requester",
    "parent_id",
    "root_id",
    "request_id",
    "text",
    "text_truncated",
    "thread",
    "created_at",
];

/// Jobs that do not end with a result: owner, team, request, how they may end.
/// An imported approval that the host does not know is cancelled, or, where its
/// cancel asks the host first, settled.
const OTHERWISE: [(&str, &str, &str, &[&str]); 11] = [
    ("ann", "Release", "Deploy the notes", &["cancelled", "failed"]),
    ("ann", "Release", "Check the environment", &["cancelled"]),
    ("ann", "Release", "Keep collecting", &["failed"]),
    ("ann", "Waiting", "to-be-cancelled", &["cancelled"]),
    ("dana", "Release", "Deploy the notes", &["cancelled", "failed"]),
    ("dana", "Release", "Check the environment", &["cancelled"]),
    ("eve", "Cancel not sent", "hold", &["cancelled"]),
    ("eve", "Cancel accepted", "hold", &["cancelled"]),
    ("eve", "Cancel at the start", "start", &["cancelled"]),
    // The host says that they were never admitted, unless a person is faster.
    ("eve", "Unknown", "never-failed", &["failed", "completed"]),
    ("eve", "Unknown", "never-cancel", &["cancelled", "completed"]),
];

/// Whether everything in `old` is in `new`, which may say more.
pub fn contains(new: &Value, old: &Value) -> Result<(), String> {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => old.iter().try_for_each(|(name, value)| match new.get(name) {
            Some(now) => contains(now, value).map_err(|e| format!("{name}: {e}")),
            None => Err(format!("{name} is gone")),
        }),
        (Value::Array(new), Value::Array(old)) if new.len() == old.len() => new
            .iter()
            .zip(old)
            .enumerate()
            .try_for_each(|(i, (new, old))| contains(new, old).map_err(|e| format!("{i}: {e}"))),
        _ if new == old => Ok(()),
        _ => Err(format!("{new} was {old}")),
    }
}

/// The list begins as it did.
fn begins(new: &Value, old: &Value) -> Result<(), String> {
    let (new, old) = (list(new), list(old));
    if new.len() < old.len() {
        return Err(format!("{} of {} are left", new.len(), old.len()));
    }
    contains(&Value::from(&new[..old.len()]), &Value::from(old))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

pub fn finished(job: &Value) -> bool {
    ["completed", "failed", "cancelled"].contains(&text(job, "status"))
}

/// The same team after the upgrade.
fn now<'v>(after: &'v Value, owner: &str, team: &Value) -> &'v Value {
    let mut teams = list(&after[owner]).iter();
    teams.find(|now| now["team"]["id"] == team["team"]["id"]).unwrap_or_else(|| panic!("{} is gone", team["team"]))
}

fn job<'v>(team: &'v Value, id: &Value) -> Option<&'v Value> {
    list(&team["jobs"]).iter().find(|job| job["id"] == *id)
}

/// The shared record as it was. Its program called an answer whole that was cut
/// when it was stored, and the job beside it told the truth.
fn lines(team: &Value) -> Value {
    let told = |line: &Value| {
        let cut = job(team, &line["job_id"]).is_some_and(|job| job["result"]["truncated"] == Value::Bool(true));
        let mut line = line.clone();
        if line["kind"] == "result" && cut {
            line["truncated"] = Value::Bool(true);
        }
        line
    };
    list(&team["messages"]).iter().map(told).collect()
}

/// Every team, job, line, entry, task and change is there with the same words.
pub fn nothing_is_lost(frozen: &Frozen, after: &Value) {
    for (owner, old) in frozen.views() {
        let new = now(after, owner, old);
        let name = format!("{} of {owner}", text(&old["team"], "name"));
        let same = |what: &str, found: Result<(), String>| {
            found.unwrap_or_else(|e| panic!("{name}: {what}: {e}"));
        };
        for field in ["id", "name", "goal", "lead", "successor_of", "created_at"] {
            assert_eq!(new["team"][field], old["team"][field], "{name}: {field}");
        }
        for (new, old) in list(&new["team"]["members"]).iter().zip(list(&old["team"]["members"])) {
            for field in ["id", "name", "agent", "thread"] {
                assert_eq!(new[field], old[field], "{name}: a member's {field}");
            }
        }
        for old in list(&old["jobs"]) {
            let request = text(old, "request_id");
            let new = job(new, &old["id"]).unwrap_or_else(|| panic!("{name}: the job {request} is gone"));
            if finished(old) {
                same(request, contains(new, old));
            } else {
                FIXED.iter().for_each(|field| assert_eq!(new[*field], old[*field], "{name}/{request}: {field}"));
            }
        }
        same("messages", begins(&new["messages"], &lines(old)));
        for what in ["state", "events"] {
            same(what, begins(&new[what], &old[what]));
        }
        for what in ["old_members", "old_messages"] {
            same(what, contains(&new[what], &old[what]));
        }
        same("the import of the board", contains(&new["board"]["import"], &old["board"]["import"]));
        let kept = |tasks: &Value| -> Vec<Value> {
            // This one was changed after the upgrade, to be noticed.
            list(tasks).iter().filter(|task| task["subject"] != "To be changed").cloned().collect()
        };
        assert_eq!(list(&new["tasks"]).len(), list(&old["tasks"]).len(), "{name}: tasks");
        same("tasks", contains(&kept(&new["tasks"]).into(), &kept(&old["tasks"]).into()));
    }
}

/// Every job has ended, and the shared record says so once.
pub fn each_job_ended_once(frozen: &Frozen, after: &Value) {
    for (owner, old) in frozen.views() {
        let new = now(after, owner, old);
        let name = format!("{} of {owner}", text(&old["team"], "name"));
        let mut seen = BTreeSet::new();
        for one in list(&new["jobs"]) {
            let request = text(one, "request_id");
            assert!(seen.insert(text(one, "id")), "{name}/{request} is there twice");
            assert!(finished(one), "{name}/{request} is {}", one["status"]);
            let before = job(old, &one["id"]);
            if before.is_some_and(finished) {
                continue;
            }
            let ends = list(&new["messages"]).iter().filter(|line| line["job_id"] == one["id"]);
            let ends = ends.filter(|line| line["kind"] != "request").count();
            assert_eq!(ends, 1, "{name}/{request} ended once");
        }
        assert_eq!(new["team"]["counts"]["unfinished"], 0, "{name}");
    }
}

/// Nearly all end with a result, which is that of the job's own run.
pub fn each_job_ended_as_expected(frozen: &Frozen, after: &Value) {
    let mut expected: BTreeMap<(&str, &str, &str), &[&str]> =
        OTHERWISE.iter().map(|(owner, team, request, ends)| ((*owner, *team, *request), *ends)).collect();
    for (owner, old) in frozen.views() {
        let (new, name) = (now(after, owner, old), text(&old["team"], "name"));
        for one in list(&new["jobs"]).iter().filter(|one| !job(old, &one["id"]).is_some_and(finished)) {
            // Imported jobs are known by what they ask.
            let request = if name == "Release" { text(one, "text") } else { text(one, "request_id") };
            let other = if one["kind"] == "request" { expected.remove(&(owner, name, request)) } else { None };
            if let Some(ends) = other {
                assert!(ends.contains(&text(one, "status")), "{owner}/{name}/{request}: {one}");
                continue;
            }
            assert_eq!(one["status"], "completed", "{owner}/{name}/{request}: {one}");
            let run = text(one, "run_id");
            assert!(!run.is_empty(), "{owner}/{name}/{request}: {one}");
            let results = [format!("Done in run {run}."), format!("Noted in run {run}.")];
            assert!(results.iter().any(|text| one["result"]["text"] == **text), "{owner}/{name}/{request}: {one}");
        }
    }
    assert!(expected.is_empty(), "never met: {expected:?}");
}

/// A request from a conversation has one receipt there, unless it was
/// cancelled; each new one has the id that was to be expected.
pub fn results_returned_once(frozen: &Frozen, after: &Value) {
    let mut promised: BTreeMap<&str, &str> = BTreeMap::new();
    for promise in frozen.promises().iter().filter(|promise| promise["receipt"].is_string()) {
        promised.insert(text(promise, "job"), text(promise, "receipt"));
    }
    for (owner, old) in frozen.views() {
        let new = now(after, owner, old);
        let name = text(&old["team"], "name");
        for request in list(&new["jobs"]).iter().filter(|job| job["kind"] == "request") {
            let receipts: Vec<&Value> = list(&new["jobs"])
                .iter()
                .filter(|job| job["kind"] == "receipt" && job["parent_id"] == request["id"])
                .collect();
            let returns = request["requester"]["kind"] != "owner" && request["status"] != "cancelled";
            let what = format!("{owner}/{name}/{}", text(request, "request_id"));
            assert_eq!(receipts.len(), usize::from(returns), "{what}: receipts");
            let Some(receipt) = receipts.first() else { continue };
            assert_eq!(receipt["thread"], request["requester"]["thread"], "{what}: where the result returned");
            if let Some(id) = promised.remove(text(request, "id")) {
                assert_eq!(receipt["id"], id, "{what}: the receipt's id");
            }
        }
        let added = list(&new["jobs"]).len() - list(&old["jobs"]).len();
        let receipts = list(&new["jobs"]).iter().filter(|one| job(old, &one["id"]).is_none());
        assert!(receipts.clone().all(|job| job["kind"] == "receipt"), "{owner}/{name}: only results are new");
        assert_eq!(receipts.count(), added, "{owner}/{name}");
    }
    assert!(promised.is_empty(), "never returned: {promised:?}");
}
