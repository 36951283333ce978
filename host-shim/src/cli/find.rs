//! Teams, members and jobs as people name them: by id, by name, jobs also by
//! the first characters of their id.

use serde_json::{Value, json};

use super::client::Client;
use super::fail::Fail;

/// The shortest beginning of a job's id that is taken for one.
const SHORTEST_PREFIX: usize = 4;
/// All entries that a team can have fit into one page.
pub const ALL_JOBS: u32 = 200;

/// A team's id, from its id or its name.
pub async fn team(client: &Client, given: &str) -> Result<String, Fail> {
    let list = client.read("list", json!({})).await?;
    let teams = list["teams"].as_array().map(Vec::as_slice).unwrap_or_default();
    one(teams, given, "team", "team_id")
}

/// A team with all its jobs, whole texts included.
pub async fn whole_team(client: &Client, given: &str) -> Result<(String, Value), Fail> {
    let id = team(client, given).await?;
    let answer = client.read("get", json!({ "team_id": id, "limit": ALL_JOBS, "details": true })).await?;
    Ok((id, answer))
}

/// A member's id, from its id or its name, in the answer of `get`.
pub fn member(team: &Value, given: &str) -> Result<String, Fail> {
    let members = team["team"]["members"].as_array().map(Vec::as_slice).unwrap_or_default();
    one(members, given, "member", "member_id")
}

/// A job of the answer of `get`, from its id or the beginning of it.
pub fn job<'a>(team: &'a Value, given: &str) -> Result<&'a Value, Fail> {
    let jobs = team["jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let id = |job: &Value| job["id"].as_str().unwrap_or_default().to_owned();
    if let Some(job) = jobs.iter().find(|job| id(job) == given) {
        return Ok(job);
    }
    let found: Vec<&Value> = match given.len() {
        0..SHORTEST_PREFIX => Vec::new(),
        _ => jobs.iter().filter(|job| id(job).starts_with(given)).collect(),
    };
    match found[..] {
        [job] => Ok(job),
        [] => Err(refused(
            "not_found",
            "job_id",
            format!("there is no job `{given}` in this team; `agent-teams jobs list` shows them"),
        )),
        _ => Err(refused(
            "ambiguous",
            "job_id",
            format!("{} jobs begin with `{given}`; give more of the id", found.len()),
        )),
    }
}

/// The id of the one entry that is meant: by id, by its exact name, or by its
/// name in other letters (upper or lower case).
fn one(entries: &[Value], given: &str, what: &str, field: &str) -> Result<String, Fail> {
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    if let Some(entry) = entries.iter().find(|entry| text(entry, "id") == given) {
        return Ok(text(entry, "id"));
    }
    let exact = |entry: &&Value| text(entry, "name") == given;
    let alike = |entry: &&Value| text(entry, "name").to_lowercase() == given.to_lowercase();
    let mut found: Vec<&Value> = entries.iter().filter(exact).collect();
    if found.is_empty() {
        found = entries.iter().filter(alike).collect();
    }
    match found[..] {
        [entry] => Ok(text(entry, "id")),
        [] => {
            let names: Vec<String> = entries.iter().map(|entry| text(entry, "name")).collect();
            let known =
                if names.is_empty() { "there are none yet".into() } else { format!("there are: {}", names.join(", ")) };
            Err(refused("not_found", field, format!("there is no {what} `{given}`; {known}")))
        }
        _ => {
            let ids: Vec<String> = found.iter().map(|entry| text(entry, "id")).collect();
            let message = format!("{} {what}s are called `{given}`; give the id: {}", found.len(), ids.join(", "));
            Err(refused("ambiguous", field, message))
        }
    }
}

fn refused(code: &str, field: &str, message: String) -> Fail {
    Fail { field: Some(field.into()), ..Fail::refused(code, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Value> {
        vec![
            json!({"id": "1a", "name": "Ada"}),
            json!({"id": "2b", "name": "Bo"}),
            json!({"id": "3c", "name": "Bo"}),
            json!({"id": "4d", "name": "ada"}),
        ]
    }

    #[test]
    fn ids_and_names_are_found_and_ambiguity_is_said() {
        let found = |given: &str| one(&entries(), given, "member", "member_id");
        assert_eq!(found("2b").unwrap(), "2b");
        assert_eq!(found("Ada").unwrap(), "1a", "the exact name goes before others");
        assert_eq!(found("ada").unwrap(), "4d");
        let many = found("Bo").unwrap_err();
        assert_eq!((many.code.as_str(), many.field.as_deref()), ("ambiguous", Some("member_id")));
        assert!(many.message.contains("2b, 3c"));
        assert_eq!(found("bo").unwrap_err().code, "ambiguous");
        assert!(found("Cy").unwrap_err().message.contains("Ada, Bo"));
        assert!(found("").is_err());
    }

    #[test]
    fn jobs_are_found_by_the_beginning_of_their_id() {
        let team = json!({"jobs": [{"id": "abcdef01"}, {"id": "abcd9999"}]});
        assert_eq!(job(&team, "abcde").unwrap()["id"], "abcdef01");
        assert_eq!(job(&team, "abcd9999").unwrap()["id"], "abcd9999");
        assert_eq!(job(&team, "abcd").unwrap_err().code, "ambiguous");
        assert_eq!(job(&team, "abc").unwrap_err().code, "not_found", "too short to mean one");
    }
}
