//! The public state, sentence by sentence.
//!
//! | sentence of the specification | test |
//! |---|---|
//! | members maintain objectives, plans, findings, questions, requirements | `all_kinds_are_published_read_and_shown` |
//! | the original team goal remains unchanged | `all_kinds_are_published_read_and_shown` |
//! | the page displays entries with kind, revision, latest author, source | `the_owner_reads_what_members_wrote_with_author_and_source` |
//! | three member-only tools manage this state | `isolation` |
//! | a stable publication id deduplicates retries from the same conversation | `dup_9_a_publication_is_made_once` |
//! | reusing it with other content is rejected | `dup_9_a_publication_is_made_once` |
//! | retrying after an update returns the current entry, undoing nothing | `a_publication_repeated_after_an_update_undoes_nothing` |
//! | read takes entry, kind, literal query, archived | `reads_filter_literally_and_without_case` |
//! | returns all matching entries and the state's revision | `reads_filter_literally_and_without_case` |
//! | reads need no capability and no reconnect | `reads_need_no_capability_and_survive_a_restart` |
//! | any current member may update an entry | `a_conflict_carries_the_entry_and_changes_nothing` |
//! | updates compare the revision inside the commit | `stale_2_twenty_writers_lose_nothing` |
//! | a conflict returns updated=false, conflict=true and the entry | `a_conflict_carries_the_entry_and_changes_nothing` |
//! | an identical retry of the latest update succeeds without a new revision | `an_identical_retry_is_no_second_update` |
//! | older retries after another edit return a conflict | `an_identical_retry_is_no_second_update` |
//! | kind and creator are immutable; author, time, source are stamped | `a_conflict_carries_the_entry_and_changes_nothing`, `the_owner_reads…` |
//! | at most 20 entries, archived ones included; archiving frees no slot | `the_twenty_first_entry_is_refused_archived_ones_count` |
//! | 16,000 bytes of JSON together, exact with escapes | `the_budget_is_exact_with_escapes` |
//! | titles 80/160, content 1,000/2,000 | `titles_and_contents_have_exact_bounds` |
//! | archiving removes from context, stays queryable | `archiving_leaves_the_context_and_stays_queryable` |
//! | writes enforce the 24,000-byte shared context | `state_context` |
//! | the source names the current admitted task, when there is one | `the_source_names_the_job_at_hand` |
//! | no member can supply another author | `no_argument_names_an_author` |
//! | state persists across restart and history rotation | `reads_need_no_capability_and_survive_a_restart` |
//! | legacy teams start with empty state | `import_legacy` |
//! | pending jobs keep their frozen input | `state_context` |
//! | (ours) a repeated call is the same call; a late one is nobody's | `a_repeated_call_is_the_same_call`, `a_call_of_a_run_that_is_over_is_refused` |

use std::thread;

use agent_teams_plugin::app::Caller;
use agent_teams_plugin::domain::error::Kind;
use agent_teams_plugin::domain::limits;
use agent_teams_tests::double::Turn;
use agent_teams_tests::native::CommitFault;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::desk::{Desk, Reply, Team, awkward, bytes, text};

fn publish(desk: &Desk, team: &Team, member: usize, key: &str, kind: &str, title: &str, content: &str) -> Reply {
    let arguments = json!({"request_id": key, "kind": kind, "title": title, "content": content});
    desk.member(team, member, "publish_team_state", arguments)
}

fn update(desk: &Desk, team: &Team, member: usize, entry: &Value, content: &str) -> Reply {
    desk.member(
        team,
        member,
        "update_team_state",
        json!({
            "entry_id": entry["id"], "expected_revision": entry["revision"], "title": entry["title"],
            "content": content, "status": "active",
        }),
    )
}

fn entries(desk: &Desk, team: &Team) -> Vec<Value> {
    let read = desk.member(team, 0, "read_team_state", json!({"include_archived": true})).expect("reads");
    read["entries"].as_array().expect("entries").clone()
}

#[test]
fn all_kinds_are_published_read_and_shown() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    for kind in ["objective", "plan", "finding", "question", "requirement"] {
        let made = publish(&desk, &team, 0, kind, kind, "Cost review", "Research gathers quotes.").expect("publishes");
        assert_eq!((&made["entry"]["kind"], &made["entry"]["revision"]), (&json!(kind), &json!(1)));
        assert_eq!(made["created"], true);
    }
    assert_eq!(entries(&desk, &team).len(), 5);
    let refused = publish(&desk, &team, 0, "k", "opinion", "t", "c").expect_err("no such kind");
    assert_eq!(refused.kind, Kind::Invalid);
    assert!(refused.message.contains("objective"), "{}", refused.message);
    let context = desk.member(&team, 1, "read_team_context", json!({})).expect("reads");
    assert_eq!(context["goal"], "Do good work");
    assert_eq!(context["state"].as_array().map(Vec::len), Some(5));
}

#[test]
fn dup_9_a_publication_is_made_once() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let first = publish(&desk, &team, 0, "s1", "plan", "Plan", "A").expect("publishes");
    let later = Desk { host: desk.host.restarted(), double: desk.double.clone() };
    let again = publish(&later, &team, 0, "s1", "plan", " Plan ", "A\n").expect("the same after trimming");
    assert_eq!((&again["entry"], &again["state_revision"]), (&first["entry"], &first["state_revision"]));
    assert_eq!(again["created"], false);
    for (kind, title, content) in [("plan", "Plan", "B"), ("finding", "Plan", "A"), ("plan", "plan", "A")] {
        let refused = publish(&later, &team, 0, "s1", kind, title, content).expect_err("other content");
        assert_eq!((refused.kind, refused.code.as_ref()), (Kind::Conflict, "request_id_reused"));
        assert_eq!(refused.detail.expect("the entry")["entry"], first["entry"]);
    }
    assert_eq!(entries(&later, &team), [first["entry"].clone()]);
    // Another conversation's publication ids are its own.
    publish(&later, &team, 1, "s1", "plan", "Plan", "B").expect("another member's");
    assert_eq!(entries(&later, &team).len(), 2);
}

#[test]
fn a_publication_repeated_after_an_update_undoes_nothing() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let first = publish(&desk, &team, 0, "s1", "plan", "Plan", "A").expect("publishes");
    let second = update(&desk, &team, 1, &first["entry"], "B").expect("updates");
    let again = publish(&desk, &team, 0, "s1", "plan", "Plan", "A").expect("a retry");
    assert_eq!(again["entry"], second["entry"]);
    assert_eq!((&again["entry"]["content"], &again["entry"]["revision"]), (&json!("B"), &json!(2)));
    let refused = publish(&desk, &team, 0, "s1", "plan", "Plan", "B").expect_err("not the original content");
    assert_eq!(refused.code, "request_id_reused");
}

#[test]
fn a_conflict_carries_the_entry_and_changes_nothing() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo", "Cy"]);
    let first = publish(&desk, &team, 0, "s1", "plan", "Plan", "A").expect("publishes");
    desk.host.clock().advance(1_000);
    let second = update(&desk, &team, 1, &first["entry"], "B").expect("any member may");
    assert_eq!((&second["updated"], &second["conflict"]), (&json!(true), &json!(false)));
    let entry = &second["entry"];
    assert_eq!((&entry["kind"], &entry["created_by"]), (&first["entry"]["kind"], &first["entry"]["created_by"]));
    assert_eq!(entry["edited_by"]["member"], "Bo");
    assert_eq!(entry["edited_by"]["thread"], team.thread(1));
    assert_ne!(entry["edited_by"]["at"], entry["created_by"]["at"]);
    let before = desk.host.store().dump();
    let lost = update(&desk, &team, 2, &first["entry"], "C").expect("a conflict is an answer");
    assert_eq!((&lost["updated"], &lost["conflict"]), (&json!(false), &json!(true)));
    assert_eq!(&lost["entry"], entry);
    assert_eq!(desk.host.store().dump(), before);
    let merged = update(&desk, &team, 2, &lost["entry"], "B and C").expect("merged");
    assert_eq!((&merged["updated"], &merged["entry"]["revision"]), (&json!(true), &json!(3)));
    let none = desk.member(
        &team,
        0,
        "update_team_state",
        json!({"entry_id": "entry-0", "expected_revision": 1, "title": "t", "content": "c", "status": "active"}),
    );
    assert_eq!(none.expect_err("no such entry").code, "entry_not_found");
}

#[test]
fn an_identical_retry_is_no_second_update() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let first = publish(&desk, &team, 0, "s1", "plan", "Plan", "A").expect("publishes");
    let second = update(&desk, &team, 0, &first["entry"], "B").expect("updates");
    let before = desk.host.store().dump();
    let again = update(&desk, &team, 0, &first["entry"], "B").expect("repeats");
    assert_eq!((&again["updated"], &again["entry"]), (&json!(true), &second["entry"]));
    assert_eq!(desk.host.store().dump(), before, "nothing was written");
    let third = update(&desk, &team, 1, &second["entry"], "C").expect("updates");
    let old = update(&desk, &team, 0, &first["entry"], "B").expect("answers");
    assert_eq!((&old["conflict"], &old["entry"]), (&json!(true), &third["entry"]));
}

#[test]
fn a_repeated_call_is_the_same_call() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let caller = |call: &str| Caller {
        owner: "ann".into(),
        thread: Some(team.thread(0).into()),
        run: Some("chat".into()),
        call: Some(call.into()),
        ..Caller::default()
    };
    let args = json!({"team_id": team.id, "request_id": "s1", "kind": "plan", "title": "Plan", "content": "A"});
    let first = desk.tool_as(&caller("1"), "publish_team_state", &args).expect("publishes");
    let moved = update(&desk, &team, 1, &first["entry"], "B").expect("updates");
    let again = desk.tool_as(&caller("1"), "publish_team_state", &args).expect("the call is repeated");
    assert_eq!(again, first, "the first reply, not a new one");
    let mut other = args.clone();
    other["content"] = json!("Z");
    let refused = desk.tool_as(&caller("1"), "publish_team_state", &other).expect_err("another call");
    assert_eq!(refused.code, "call_id_reused");
    let args = json!({"team_id": team.id, "entry_id": moved["entry"]["id"], "expected_revision": 2, "title": "Plan",
                      "content": "C", "status": "active"});
    let third = desk.tool_as(&caller("2"), "update_team_state", &args).expect("updates");
    update(&desk, &team, 1, &third["entry"], "D").expect("updates");
    assert_eq!(desk.tool_as(&caller("2"), "update_team_state", &args).expect("repeats"), third);
    assert_eq!(entries(&desk, &team)[0]["content"], "D");
}

#[test]
fn a_commit_whose_outcome_is_unknown_is_found_out_by_repeating() {
    for fault in [CommitFault::UnknownWritten, CommitFault::UnknownLost] {
        let desk = Desk::default();
        let team = desk.team("ann", "core", &["Ada", "Bo"]);
        desk.host.store().fail_commits([fault]);
        let unknown = publish(&desk, &team, 0, "s1", "plan", "Plan", "A").expect_err("nobody knows");
        assert_eq!(unknown.kind, Kind::Unknown);
        let again = publish(&desk, &team, 0, "s1", "plan", "Plan", "A").expect("repeats");
        assert_eq!(again["created"], fault == CommitFault::UnknownLost);
        assert_eq!(entries(&desk, &team).len(), 1);
    }
}

#[test]
fn stale_2_twenty_writers_lose_nothing() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let made = publish(&desk, &team, 0, "s1", "finding", "scoreboard", "{}").expect("publishes");
    let id = text(&made["entry"]["id"]);
    thread::scope(|scope| {
        for writer in 0..20 {
            let (desk, team, id) = (&desk, &team, &id);
            scope.spawn(move || {
                loop {
                    let read =
                        desk.member(team, writer % 2, "read_team_state", json!({"entry_id": id})).expect("reads");
                    let entry = &read["entries"][0];
                    let mut board: Value = serde_json::from_str(&text(&entry["content"])).expect("a board");
                    board[format!("w{writer}")] = json!(1);
                    let reply = update(desk, team, writer % 2, entry, &board.to_string()).expect("answers");
                    if reply["updated"] == true {
                        return;
                    }
                }
            });
        }
    });
    let entry = &entries(&desk, &team)[0];
    let board: Value = serde_json::from_str(&text(&entry["content"])).expect("a board");
    assert_eq!(board.as_object().map(|b| b.len()), Some(20));
    assert_eq!(entry["revision"], 21);
}

#[test]
fn concurrent_publications_never_pass_the_bounds() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let made: usize = thread::scope(|scope| {
        let writers: Vec<_> = (0..6)
            .map(|writer| {
                let (desk, team) = (&desk, &team);
                scope.spawn(move || {
                    let key = |n| format!("w{writer}-{n}");
                    (0..6).filter(|n| publish(desk, team, 0, &key(*n), "plan", "t", "c").is_ok()).count()
                })
            })
            .collect();
        writers.into_iter().map(|w| w.join().expect("ends")).sum()
    });
    assert_eq!((made, entries(&desk, &team).len()), (20, 20));
}

#[test]
fn reads_filter_literally_and_without_case() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let texts =
        ["Le CAFÉ du coin", "包含引用来源的文本", "growth of 17%_ net", "say \"bar OR foo\"", "a * b", "Straße"];
    for (i, body) in texts.iter().enumerate() {
        let kind = if i == 0 { "plan" } else { "finding" };
        publish(&desk, &team, 0, &format!("k{i}"), kind, "Title", body).expect("publishes");
    }
    let found = |args: Value| -> Vec<String> {
        let read = desk.member(&team, 1, "read_team_state", args).expect("reads");
        read["entries"].as_array().expect("entries").iter().map(|e| text(&e["content"])).collect()
    };
    for (query, expected) in [("café", 0), ("引用", 1), ("17%_", 2), ("\"BAR or", 3), ("*", 4), ("STRASSE", 5)] {
        assert_eq!(found(json!({"query": query})), [texts[expected]], "{query}");
    }
    assert!(found(json!({"query": "17_%"})).is_empty());
    assert_eq!(found(json!({"query": "tItLe"})).len(), texts.len(), "titles too");
    assert_eq!(found(json!({"kind": "plan"})), [texts[0]]);
    assert!(found(json!({"kind": "plan", "query": "引用"})).is_empty());
    // What models send for "absent".
    assert_eq!(found(json!({"kind": "", "query": "", "entry_id": null, "include_archived": null})).len(), texts.len());
    let read = desk.member(&team, 1, "read_team_state", json!({})).expect("reads");
    assert_eq!((&read["state_revision"], &read["entries_left"]), (&json!(6), &json!(14)));
    let refused = desk.member(&team, 1, "read_team_state", json!({"query": "x".repeat(201)})).expect_err("too long");
    assert_eq!((refused.code.as_ref(), refused.field.as_deref()), ("too_long", Some("query")));
    let refused = desk.member(&team, 1, "read_team_state", json!({"entry": "x"})).expect_err("unknown field");
    assert_eq!((refused.code.as_ref(), refused.field.as_deref()), ("unknown_field", Some("entry")));
}

#[test]
fn archiving_leaves_the_context_and_stays_queryable() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let made = publish(&desk, &team, 0, "s1", "plan", "Plan", "A").expect("publishes");
    let archive = json!({
        "entry_id": made["entry"]["id"], "expected_revision": 1, "title": "Plan", "content": "A", "status": "archived",
    });
    desk.member(&team, 1, "update_team_state", archive).expect("archives");
    let in_context = || desk.member(&team, 0, "read_team_context", json!({})).expect("reads").get("state").is_some();
    let read = |args: Value| desk.member(&team, 0, "read_team_state", args).expect("reads")["entries"].clone();
    assert!(!in_context());
    assert_eq!(read(json!({})), json!([]));
    assert_eq!(read(json!({"include_archived": true}))[0]["status"], "archived");
    assert_eq!(read(json!({"entry_id": made["entry"]["id"]}))[0]["status"], "archived");
    let entry = read(json!({"include_archived": true}))[0].clone();
    update(&desk, &team, 0, &entry, "A again").expect("active again");
    assert!(in_context());
}

#[test]
fn the_twenty_first_entry_is_refused_archived_ones_count() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    for n in 0..limits::STATE_ENTRIES {
        let made = publish(&desk, &team, 0, &format!("k{n}"), "plan", "t", "c").expect("within the bound");
        let archive = json!({"entry_id": made["entry"]["id"], "expected_revision": 1, "title": "t", "content": "c",
                             "status": "archived"});
        desk.member(&team, 0, "update_team_state", archive).expect("archives");
    }
    let before = desk.host.store().dump();
    let refused = publish(&desk, &team, 1, "more", "plan", "t", "c").expect_err("the bound");
    assert_eq!((refused.kind, refused.code.as_ref()), (Kind::Limit, "state_entries"));
    assert!(refused.message.contains("update_team_state"));
    assert_eq!(desk.host.store().dump(), before);
    // A retry of what is there is no new entry.
    publish(&desk, &team, 0, "k0", "plan", "t", "c").expect("a retry");
}

#[test]
fn titles_and_contents_have_exact_bounds() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    // The unit's bytes decide which of the two bounds is met first.
    for (unit, title, content) in [("a", 80, 1_000), ("é", 80, 1_000), ("研", 53, 666), ("😀", 40, 500)] {
        for (title_chars, content_chars, field) in
            [(title, content, None), (title + 1, content, Some("title")), (title, content + 1, Some("content"))]
        {
            let key = format!("{unit}{title_chars}-{content_chars}");
            let reply = publish(&desk, &team, 0, &key, "plan", &unit.repeat(title_chars), &unit.repeat(content_chars));
            match field {
                None => assert!(reply.is_ok(), "{unit} {reply:?}"),
                Some(field) => {
                    let refused = reply.expect_err("over the bound");
                    assert_eq!((refused.code.as_ref(), refused.field.as_deref()), ("too_long", Some(field)));
                }
            }
        }
    }
    for (title, content, code) in [("", "c", "empty"), ("t", " \n", "empty"), ("t", "a\0b", "nul_character")] {
        assert_eq!(publish(&desk, &team, 0, "bad", "plan", title, content).expect_err("refused").code, code);
    }
}

#[test]
fn the_budget_is_exact_with_escapes() {
    for kind in 0..9 {
        let desk = Desk::default();
        let team = desk.team("ann", "core", &["Ada", "Bo"]);
        // One that will grow, with both stamps; then others until none fits.
        let made = publish(&desk, &team, 0, "last", "plan", "t", "x").expect("a short one fits");
        let grown = update(&desk, &team, 0, &made["entry"], "y").expect("updates");
        let big = awkward(kind, 1_800 / awkward(kind, 30).len().div_ceil(30).max(2));
        let mut n = 0;
        for content in [big.as_str(), "a small one"] {
            while publish(&desk, &team, 0, &format!("k{n}"), "plan", "t", content).is_ok() {
                n += 1;
            }
        }
        assert!(n + 1 < limits::STATE_ENTRIES, "the budget ended first, after {n}");
        let left = limits::STATE_BYTES - bytes(&json!(entries(&desk, &team)));
        assert!(left < 900, "{left}");
        let fits = "y".repeat(left + 1);
        let second = update(&desk, &team, 0, &grown["entry"], &fits).expect("exactly the budget");
        assert_eq!(bytes(&json!(entries(&desk, &team))), limits::STATE_BYTES);
        let before = desk.host.store().dump();
        let refused = update(&desk, &team, 0, &second["entry"], &format!("{fits}y")).expect_err("one byte over");
        assert_eq!((refused.kind, refused.code.as_ref()), (Kind::Limit, "state_budget"));
        assert_eq!(desk.host.store().dump(), before);
    }
}

#[test]
fn the_owner_reads_what_members_wrote_with_author_and_source() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let made = publish(&desk, &team, 0, "s1", "plan", "Plan", "A").expect("publishes");
    update(&desk, &team, 1, &made["entry"], "B").expect("updates");
    let read = desk.action("ann", "state", &json!({"team_id": team.id})).expect("reads");
    let entry = &read["entries"][0];
    assert_eq!((&entry["kind"], &entry["revision"]), (&json!("plan"), &json!(2)));
    assert_eq!((&entry["created_by"]["member"], &entry["edited_by"]["member"]), (&json!("Ada"), &json!("Bo")));
    assert_eq!(entry["edited_by"]["thread"], team.thread(1));
    assert_eq!(desk.action("ann", "get", &json!({"team_id": team.id})).expect("reads")["team"]["state_revision"], 2);
    let archive = json!({"entry_id": entry["id"], "expected_revision": 2, "title": "t", "content": "c",
                         "status": "archived"});
    desk.member(&team, 0, "update_team_state", archive).expect("archives");
    let all = desk.action("ann", "state", &json!({"team_id": team.id})).expect("reads");
    let active = desk.action("ann", "state", &json!({"team_id": team.id, "include_archived": false})).expect("reads");
    assert_eq!(
        (all["entries"].as_array().map(Vec::len), active["entries"].as_array().map(Vec::len)),
        (Some(1), Some(0))
    );
}

#[test]
fn the_source_names_the_job_at_hand() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    desk.double.hold(true);
    let job = desk.send(&team, 0, "r1", "work");
    let queued = desk.send(&team, 0, "r2", "later work");
    desk.work();
    let run = desk.double.running_in(team.thread(0)).expect("runs");
    let caller = Caller {
        owner: "ann".into(),
        thread: Some(team.thread(0).into()),
        run: Some(run.clone()),
        ..Caller::default()
    };
    let args = json!({"team_id": team.id, "request_id": "s1", "kind": "plan", "title": "t", "content": "c"});
    let made = desk.tool_as(&caller, "publish_team_state", &args).expect("publishes");
    assert_eq!(made["entry"]["created_by"]["job_id"], json!(job), "the executing job, not {queued}");
    // An agent that the member started speaks for it; its run is another.
    let below = Caller {
        owner: "ann".into(),
        thread: Some("sub".into()),
        ancestors: vec![team.thread(0).into()],
        run: Some("sub-run".into()),
        call: None,
    };
    let args = json!({"team_id": team.id, "request_id": "s2", "kind": "plan", "title": "t", "content": "c"});
    let made = desk.tool_as(&below, "publish_team_state", &args).expect("publishes");
    assert_eq!(made["entry"]["created_by"]["job_id"], json!(job));
    assert_eq!(made["entry"]["created_by"]["thread"], team.thread(0));
    let idle = publish(&desk, &team, 1, "s1", "plan", "t", "c").expect("an ordinary chat");
    assert!(idle["entry"]["created_by"].get("job_id").is_none());
}

#[test]
fn a_call_of_a_run_that_is_over_is_refused() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    desk.double.hold(true);
    desk.send(&team, 0, "r1", "work");
    desk.send(&team, 0, "r2", "next work");
    desk.work();
    let old = desk.double.running_in(team.thread(0)).expect("runs");
    desk.double.finish(&old, Turn::answer("done"));
    desk.work();
    assert_ne!(desk.double.running_in(team.thread(0)), Some(old.clone()));
    let late = Caller { owner: "ann".into(), thread: Some(team.thread(0).into()), run: Some(old), ..Caller::default() };
    let args = json!({"team_id": team.id, "request_id": "s1", "kind": "plan", "title": "t", "content": "c"});
    assert_eq!(desk.tool_as(&late, "publish_team_state", &args).expect_err("late").code, "run_ended");
    assert!(entries(&desk, &team).is_empty());
}

#[test]
fn no_argument_names_an_author() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    for field in ["author", "from", "member_id", "thread", "owner", "job_id"] {
        let mut args = json!({"request_id": "s1", "kind": "plan", "title": "t", "content": "c"});
        args[field] = json!("Bo");
        let refused = desk.member(&team, 0, "publish_team_state", args).expect_err("no such argument");
        assert_eq!((refused.code.as_ref(), refused.field.as_deref()), ("unknown_field", Some(field)));
    }
    let made = publish(&desk, &team, 0, "s1", "plan", "from: Bo", "{\"author\":\"Bo\"}").expect("text is data");
    assert_eq!(made["entry"]["created_by"]["member"], "Ada");
}

#[test]
fn reads_need_no_capability_and_survive_a_restart() {
    let desk = Desk::default();
    let team = desk.team("ann", "core", &["Ada", "Bo"]);
    let made = publish(&desk, &team, 0, "s1", "plan", "Plan", "A").expect("publishes");
    for n in 0..60 {
        desk.send(&team, 1, &format!("r{n}"), "work");
    }
    desk.work();
    let later = Desk { host: desk.host.restarted(), double: desk.double.clone() };
    let calls = later.double.calls().len();
    let read = later.member(&team, 1, "read_team_state", json!({})).expect("reads");
    assert_eq!(read["entries"], json!([made["entry"]]));
    publish(&later, &team, 1, "s2", "finding", "t", "c").expect("writes need none either");
    assert_eq!(later.double.calls().len(), calls, "no agent host was asked");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is published and updated, in whatever order, the budgets hold
    /// and every refusal changes nothing.
    #[test]
    fn budgets_are_never_exceeded(steps in prop::collection::vec((0usize..9, 1usize..1_000, 0usize..24, any::<bool>()), 1..40)) {
        let desk = Desk::default();
        let goal = awkward(8, 600);
        let team = desk.team_for("ann", "core", &["Ada", "Bo"], &goal);
        for (kind, chars, slot, archive) in steps {
            let known = entries(&desk, &team);
            let before = desk.host.store().dump();
            let content = awkward(kind, chars);
            let reply = match known.get(slot) {
                Some(entry) => desk.member(&team, slot % 2, "update_team_state", json!({
                    "entry_id": entry["id"], "expected_revision": entry["revision"], "title": "t", "content": content,
                    "status": if archive { "archived" } else { "active" },
                })),
                None => publish(&desk, &team, slot % 2, &format!("k{}", known.len()), "plan", "t", &content),
            };
            if let Err(refused) = reply {
                prop_assert!(matches!(refused.kind, Kind::Limit | Kind::Invalid), "{refused:?}");
                prop_assert_eq!(desk.host.store().dump(), before);
            }
            let now = entries(&desk, &team);
            prop_assert!(now.len() <= limits::STATE_ENTRIES);
            prop_assert!(bytes(&json!(now)) <= limits::STATE_BYTES);
            let context = desk.member(&team, 0, "read_team_context", json!({})).expect("reads");
            prop_assert!(bytes(&context) <= limits::CONTEXT_BYTES);
        }
    }
}
