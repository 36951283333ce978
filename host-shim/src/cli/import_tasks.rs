//! `import-tasks`: takes over another host's session log as the history of a
//! team's empty task board.
//!
//! The lines are handed to the component as they are, in parts: what they mean
//! is the component's to say.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::Place;
use super::client::Client;
use super::fail::{Exit, Fail};
use super::find;
use super::output::{Output, Tone, clean};

const ACTION: &str = "import_tasks";
/// Bytes of one part, where its lines are shorter. Small enough that each part
/// is quick, and always the same: a repetition is recognised by its parts.
const PART: usize = 256 * 1024;
/// The longest line that can be sent: the bound of a part.
const LONGEST: usize = 1024 * 1024;

#[derive(Debug, Args)]
#[command(
    after_help = "The log is a file of JSON lines as that host writes it; records of both versions are read. Members and\n\
                  messages of the older kind are kept to be read, and never delivered. The first record that cannot be\n\
                  accepted is named; the board then shows its last valid state and takes no commands until you accept\n\
                  that state with --accept. A second import of the same file changes nothing; one that was interrupted\n\
                  continues.\n\n\
                  The exit code is 0 when everything was accepted, 1 when a record was not.\n\n\
                  Examples:\n  agent-teams import-tasks \"Market watch\" session.jsonl\n  agent-teams import-tasks \"Market watch\" --accept"
)]
pub struct ImportTasks {
    /// The team, by id or name. Its board must never have been used.
    team: String,
    /// The session log. It is only read.
    #[arg(required_unless_present = "accept", conflicts_with = "accept")]
    file: Option<PathBuf>,
    /// The team's id in the log [default: the session that the log's header names].
    #[arg(long, value_name = "ID", conflicts_with = "accept")]
    source: Option<String>,
    /// Go on from the last valid state of an import that failed or was not finished.
    #[arg(long)]
    accept: bool,
}

pub async fn run(place: &Place, args: ImportTasks, output: &Output) -> Result<Exit, Fail> {
    let parts = args.file.as_deref().map(Parts::open).transpose()?;
    let client = Client::open(place)?;
    let team = find::team(&client, &args.team).await?;
    let answer = match parts {
        None => client.write(ACTION, json!({ "team_id": team, "accept": true })).await?,
        Some(parts) => send(&client, &team, parts, args.source.as_deref(), output).await?,
    };
    output.answer(&answer, || report(output, &answer));
    let import = &answer["import"];
    let complete = import["failure"].is_null() || import["accepted"] == Value::Bool(true);
    Ok(if complete { Exit::Ok } else { Exit::Refused })
}

/// Sends all parts, in order. The answer to the last one tells of all.
async fn send(
    client: &Client,
    team: &str,
    mut parts: Parts,
    source: Option<&str>,
    output: &Output,
) -> Result<Value, Fail> {
    let bar = output.bar(parts.size);
    let mut number = 0;
    let mut next = parts.next()?.unwrap_or_default();
    loop {
        let lines = next;
        let after = parts.next()?;
        let mut payload = json!({ "team_id": team, "part": number, "lines": lines, "last": after.is_none() });
        if let Some(source) = source {
            payload["source"] = source.into();
        }
        let answer = client.write(ACTION, payload).await.map_err(|fail| match fail.exit {
            Exit::Unknown => Fail::unknown(
                "the connection was lost before the answer came; import the same file again: what was taken is not \
                 taken twice",
            ),
            _ => fail,
        })?;
        bar.inc(lines.len() as u64);
        number += 1;
        match after {
            Some(lines) => next = lines,
            None => {
                bar.finish_and_clear();
                return Ok(answer);
            }
        }
    }
}

/// A log in parts of whole lines.
struct Parts {
    name: String,
    size: u64,
    lines: BufReader<File>,
    /// Of the line that was read last, from 1.
    line: u64,
    /// A line that did not fit into the part before.
    kept: String,
}

impl Parts {
    fn open(file: &Path) -> Result<Self, Fail> {
        let name = clean(&file.display().to_string());
        let refuse = |why: std::io::Error| refused(format!("{name} cannot be read: {why}"));
        let open = File::open(file).map_err(refuse)?;
        let about = open.metadata().map_err(refuse)?;
        if !about.is_file() {
            return Err(refused(format!("{name} is not a file")));
        }
        Ok(Self { size: about.len(), lines: BufReader::new(open), line: 0, kept: String::new(), name })
    }

    /// The next part; none: the file is at its end.
    fn next(&mut self) -> Result<Option<String>, Fail> {
        let mut part = std::mem::take(&mut self.kept);
        loop {
            let mut line = String::new();
            self.line += 1;
            let read = self
                .lines
                .read_line(&mut line)
                .map_err(|why| refused(format!("line {} of {} cannot be read: {why}", self.line, self.name)))?;
            if read == 0 {
                return Ok(Some(part).filter(|part| !part.is_empty()));
            }
            if line.len() > LONGEST {
                return Err(refused(format!(
                    "line {} of {} has {} bytes; at most {LONGEST} can be taken",
                    self.line,
                    self.name,
                    line.len()
                )));
            }
            if !part.is_empty() && part.len() + line.len() > PART {
                self.kept = line;
                return Ok(Some(part));
            }
            part.push_str(&line);
        }
    }
}

fn refused(why: String) -> Fail {
    Fail { field: Some("file".into()), ..Fail::refused("import_file", why) }
}

/// What came of it, for people.
fn report(output: &Output, answer: &Value) -> String {
    let import = &answer["import"];
    let n = |name: &str| import[name].as_u64().unwrap_or(0);
    let many = |count: u64, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
    let mut lines = vec![
        format!(
            "Team {} of the log: {} read, {} of them not about it.",
            import["source"].as_str().map_or_else(|| "?".into(), |source| format!("\"{}\"", clean(source))),
            many(n("lines"), "line", "lines"),
            n("ignored")
        ),
        format!(
            "{} taken; the board has {} now.",
            many(n("taskRecords"), "change of a task was", "changes of tasks were"),
            many(answer["tasks"].as_u64().unwrap_or(0), "task", "tasks")
        ),
    ];
    if n("memberRecords") + n("messages") > 0 {
        lines.push(format!(
            "Kept to be read, never delivered: {}, {} ({} delivered there).",
            many(n("memberRecords"), "record of a member", "records of members"),
            many(n("messages"), "message", "messages"),
            n("deliveries")
        ));
    }
    let failure = &import["failure"];
    if !failure.is_null() {
        let said = format!(
            "Line {} was not accepted: {}",
            failure["line"].as_u64().unwrap_or(0),
            failure["message"].as_str().unwrap_or_default()
        );
        if import["accepted"] == Value::Bool(true) {
            lines.push(output.tone(Tone::Faint, &said));
            lines.push("The state before it was accepted; the board takes commands.".into());
        } else {
            lines.push(output.tone(Tone::Bad, &said));
            lines.push(
                "Records before it were imported, records after it were skipped. Use --accept to continue from there."
                    .into(),
            );
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &[u8]) -> Result<Vec<String>, Fail> {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("log.jsonl");
        std::fs::write(&file, text).expect("writes");
        let mut parts = Parts::open(&file)?;
        let mut found = Vec::new();
        while let Some(part) = parts.next()? {
            found.push(part);
        }
        Ok(found)
    }

    #[test]
    fn parts_are_whole_lines_within_their_bound() {
        assert_eq!(parts(b"").expect("reads"), Vec::<String>::new());
        assert_eq!(parts(b"a\nb").expect("reads"), ["a\nb"]);
        let line = format!("{}\n", "x".repeat(PART / 3));
        let text = line.repeat(5);
        let found = parts(text.as_bytes()).expect("reads");
        assert_eq!(found.iter().map(String::len).collect::<Vec<_>>(), [line.len() * 2, line.len() * 2, line.len()]);
        assert_eq!(found.concat(), text);
        // A line longer than a part is one by itself.
        let long = format!("{}\n", "y".repeat(PART * 2));
        let found = parts(format!("a\n{long}b\n").as_bytes()).expect("reads");
        assert_eq!(found, ["a\n", long.as_str(), "b\n"]);
    }

    #[test]
    fn a_line_that_cannot_be_sent_is_named() {
        let long = "z".repeat(LONGEST + 1);
        let refusal = parts(format!("a\n{long}\n").as_bytes()).expect_err("too long");
        assert!(refusal.message.contains("line 2"), "{}", refusal.message);
        let refusal = parts(b"a\nb\n\xff\n").expect_err("no text");
        assert!(refusal.message.contains("line 3"), "{}", refusal.message);
        assert_eq!(Parts::open(Path::new("nowhere")).err().and_then(|fail| fail.field), Some("file".into()));
    }
}
