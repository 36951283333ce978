//! A name in the configuration that exists nowhere stops the start: ignored in
//! silence, it would switch off what it was written for.

use crate::program::Folder;

/// A configuration with one agent, which has this line besides.
fn with(line: &str) -> Folder {
    Folder::with(&format!(
        "[server]\nbind = \"127.0.0.1:0\"\n[[agents]]\nname = \"writer\"\nmodel = \"m\"\n{line}\n\
         [models.m]\nkind = \"scripted\"\n[[models.m.rules]]\ntext = \"Done.\"\n"
    ))
}

#[track_caller]
fn refused(line: &str, words: &[&str]) {
    let folder = with(line);
    let error = folder.serve_refused();
    assert_eq!(error["code"], "configuration");
    let doctor = folder.json(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{}", doctor.stdout);
    let found: serde_json::Value = serde_json::from_str(&doctor.stdout).unwrap();
    let row = found["checks"].as_array().unwrap().iter().find(|c| c["check"] == "agent writer").unwrap().clone();
    for text in [error["message"].as_str().unwrap(), row["text"].as_str().unwrap()] {
        assert!(text.contains("agent-teams.toml, line 6"), "the file and the line: {text}");
        assert!(text.contains("agent \"writer\""), "whose it is: {text}");
        for word in words {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}

#[test]
fn a_misspelt_tool_under_approve_stops_the_server_and_the_doctor() {
    refused("approve = [\"write_flie\"]", &["`agents.0.approve.0`", "\"write_flie\"", "nearest are \"write_file\""]);
    refused("approve = [\"read_file\", \"send_members\"]", &["`agents.0.approve.1`", "\"send_member\""]);
}

#[test]
fn a_misspelt_tool_or_user_does_so_too() {
    refused("tools = [\"extension\"]", &["`agents.0.tools.0`", "\"extensions\""]);
    refused("users = [\"locale\"]", &["`agents.0.users.0`", "\"local\"", "agent-teams users add locale"]);
}

#[test]
fn an_approval_that_would_change_nothing_is_refused() {
    for line in ["approve = [\"ask_clarification\"]", "tools = [\"read_file\"]\napprove = [\"extensions\"]"] {
        assert_eq!(with(line).serve_refused()["code"], "configuration", "{line}");
    }
}

#[test]
fn names_that_exist_are_served() {
    let folder =
        with("tools = [\"extensions\", \"write_file\"]\napprove = [\"extensions\", \"write_file\"]\nusers = [\"ada\"]");
    folder.json(&["users", "add", "ada"]).json();
    assert_eq!(folder.json(&["doctor"]).json()["ok"], true);
    assert_eq!(folder.serve().stop(), Some(0));
}
