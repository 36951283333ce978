//! The isolation matrix: every tool, action and mention, called with another
//! owner's ids and from wrong conversations, answers as for ids that never
//! existed, byte for byte, and changes nothing. An entry point without a row
//! fails the test.

use std::collections::BTreeSet;

use agent_teams_plugin::app::Caller;
use agent_teams_plugin::domain::error::Error;
use agent_teams_plugin::exports;
use serde_json::{Value, json};

use crate::desk::{Desk, Reply, Team, text};

/// Everything that can be named in a team.
#[derive(Clone, Debug)]
struct Ids {
    team: String,
    member: String,
    job: String,
    entry: String,
    /// Of the owner's feed, the owner's history, the members' history, the
    /// members' results, the owner's results.
    cursors: [String; 5],
}

fn nothing() -> Ids {
    let cursor = || "0123456789abcdef0123456789abcdef".to_string();
    Ids {
        team: format!("team-{}", "0".repeat(32)),
        member: format!("m-{}", "0".repeat(32)),
        job: format!("job-{}", "0".repeat(32)),
        entry: format!("entry-{}", "0".repeat(32)),
        cursors: [cursor(), cursor(), cursor(), cursor(), cursor()],
    }
}

/// How one entry point is called: several ways where it takes several ids.
type Calls = fn(&Ids) -> Vec<Value>;

/// The tools, each with calls that name everything it can name.
const TOOLS: &[(&str, Calls)] = &[
    ("send_member", |i| vec![json!({"team_id": i.team, "member": i.member, "request_id": "iso", "text": "x"})]),
    ("read_team_context", |i| vec![json!({"team_id": i.team})]),
    ("publish_team_state", |i| {
        vec![json!({"team_id": i.team, "request_id": "iso", "kind": "plan", "title": "t", "content": "c"})]
    }),
    ("read_team_state", |i| vec![json!({"team_id": i.team}), json!({"team_id": i.team, "entry_id": i.entry})]),
    ("update_team_state", |i| {
        let update = |revision: u32| {
            json!({"team_id": i.team, "entry_id": i.entry, "expected_revision": revision, "title": "t", "content": "c",
                   "status": "active"})
        };
        vec![update(1), update(7)]
    }),
    ("read_team_history", |i| {
        vec![
            json!({"team_id": i.team, "member_id": i.member}),
            json!({"team_id": i.team, "job_id": i.job}),
            json!({"team_id": i.team, "cursor": i.cursors[2]}),
        ]
    }),
    ("search_team_results", |i| {
        vec![
            json!({"team_id": i.team, "member_id": i.member}),
            json!({"team_id": i.team, "job_id": i.job}),
            json!({"team_id": i.team, "cursor": i.cursors[3]}),
        ]
    }),
    ("read_team_result", |i| vec![json!({"team_id": i.team, "job_id": i.job})]),
    // A task's id is a number within its team: the team is all that it names.
    ("create_team_task", |i| vec![json!({"team_id": i.team, "subject": "s", "description": "d"})]),
    ("get_team_task", |i| vec![json!({"team_id": i.team, "task_id": "task-1"})]),
    ("list_team_tasks", |i| vec![json!({"team_id": i.team})]),
    ("update_team_task", |i| {
        vec![json!({"team_id": i.team, "task_id": "task-1", "expected_revision": 1, "action": "claim"})]
    }),
    ("wait_for_team_tasks", |i| vec![json!({"team_id": i.team})]),
];

/// The actions that name a team.
const ACTIONS: &[(&str, Calls)] = &[
    ("get", |i| {
        vec![
            json!({"team_id": i.team}),
            json!({"team_id": i.team, "revision": 1}),
            json!({"team_id": i.team, "cursor": i.cursors[0]}),
        ]
    }),
    ("connect", |i| vec![json!({"team_id": i.team})]),
    ("send", |i| vec![json!({"team_id": i.team, "member_id": i.member, "request_id": "iso", "text": "x"})]),
    ("cancel", |i| vec![json!({"team_id": i.team, "job_id": i.job})]),
    ("resume", |i| vec![json!({"team_id": i.team, "job_id": i.job, "request_id": "iso", "response": "x"})]),
    ("settle", |i| vec![json!({"team_id": i.team, "job_id": i.job, "outcome": "failed"})]),
    ("delete", |i| vec![json!({"team_id": i.team})]),
    ("state", |i| vec![json!({"team_id": i.team}), json!({"team_id": i.team, "entry_id": i.entry})]),
    ("history", |i| {
        vec![
            json!({"team_id": i.team, "member_id": i.member}),
            json!({"team_id": i.team, "job_id": i.job}),
            json!({"team_id": i.team, "cursor": i.cursors[1]}),
            json!({"team_id": i.team, "revision": 1}),
        ]
    }),
    ("results", |i| {
        vec![
            json!({"team_id": i.team, "member_id": i.member}),
            json!({"team_id": i.team, "cursor": i.cursors[4]}),
            json!({"team_id": i.team, "revision": 1}),
        ]
    }),
    ("tasks", |i| vec![json!({"team_id": i.team}), json!({"team_id": i.team, "task_id": "task-1"})]),
    ("create_task", |i| vec![json!({"team_id": i.team, "subject": "s", "description": "d"})]),
    ("update_task", |i| {
        vec![json!({"team_id": i.team, "task_id": "task-1", "expected_revision": 1, "action": "claim"})]
    }),
    ("task_history", |i| vec![json!({"team_id": i.team})]),
    ("import_tasks", |i| vec![json!({"team_id": i.team, "accept": true})]),
];

/// The actions that name none; each has a test of its own below.
const WITHOUT_TEAM: &[&str] = &["create", "list", "search", "import_team"];

struct World {
    desk: Desk,
    anns: Team,
    anns_other: Team,
    bobs: Team,
}

impl World {
    fn new() -> Self {
        let desk = Desk::default();
        let anns = desk.team("ann", "core", &["Ada", "Bo"]);
        let anns_other = desk.team("ann", "next", &["Ada", "Bo"]);
        let bobs = desk.team("bob", "core", &["Ada", "Bo"]);
        for team in [&anns, &anns_other, &bobs] {
            for n in 0..24 {
                desk.send(team, n % 2, &format!("r{n}"), "a secret of its owner");
            }
            let args = json!({"request_id": "s1", "kind": "plan", "title": "t", "content": "a secret"});
            desk.member(team, 0, "publish_team_state", args).expect("publishes");
            let args = json!({"subject": "a secret", "description": "d"});
            desk.member(team, 0, "create_team_task", args).expect("creates");
        }
        desk.work();
        Self { desk, anns, anns_other, bobs }
    }

    fn ids(&self, team: &Team) -> Ids {
        let feed = self.desk.action(team.owner, "get", &json!({"team_id": team.id})).expect("reads");
        let history = self.desk.action(team.owner, "history", &json!({"team_id": team.id})).expect("reads");
        let results = self.desk.action(team.owner, "results", &json!({"team_id": team.id})).expect("reads");
        let read = |tool: &str| self.desk.member(team, 0, tool, json!({})).expect("reads");
        Ids {
            team: team.id.clone(),
            member: team.members[1].0.clone(),
            job: text(&feed["jobs"][0]["id"]),
            entry: text(&read("read_team_state")["entries"][0]["id"]),
            cursors: [
                text(&feed["next_cursor"]),
                text(&history["next_cursor"]),
                text(&read("read_team_history")["next_cursor"]),
                text(&read("search_team_results")["next_cursor"]),
                text(&results["next_cursor"]),
            ],
        }
    }
}

fn refusal(reply: Reply, what: &str) -> Error {
    match reply {
        Err(error) => error,
        Ok(value) => panic!("{what} was answered with {value}"),
    }
}

fn row<'r>(rows: &'r [(&str, Calls)], name: &str) -> &'r Calls {
    let found = rows.iter().find(|(row, _)| *row == name);
    &found.unwrap_or_else(|| panic!("{name} has no row in the isolation matrix")).1
}

#[test]
fn every_entry_point_has_a_row() {
    let tools: BTreeSet<&str> = exports::tools::tools().iter().map(|t| t.name).collect();
    let rows: BTreeSet<&str> = TOOLS.iter().map(|(name, _)| *name).collect();
    assert_eq!(tools, rows);
    let actions: BTreeSet<&str> = exports::actions::actions().iter().map(|t| t.name).collect();
    let rows: BTreeSet<&str> = ACTIONS.iter().map(|(name, _)| *name).chain(WITHOUT_TEAM.iter().copied()).collect();
    assert_eq!(actions, rows);
}

#[test]
fn every_row_works_for_whom_it_is_meant() {
    for tool in exports::tools::tools() {
        let world = World::new();
        let ids = world.ids(&world.anns);
        for args in row(TOOLS, tool.name)(&ids) {
            let reply = world.desk.tool("ann", world.anns.thread(0), tool.name, &args);
            assert!(reply.is_ok(), "{}: {reply:?}", tool.name);
        }
    }
}

#[test]
fn another_owners_ids_are_unknown_ids() {
    let world = World::new();
    let (theirs, none) = (world.ids(&world.anns), nothing());
    let before = world.desk.host.store().dump();
    for action in exports::actions::actions() {
        if WITHOUT_TEAM.contains(&action.name) {
            continue;
        }
        let calls = row(ACTIONS, action.name);
        for (foreign, unknown) in calls(&theirs).iter().zip(calls(&none)) {
            let foreign = refusal(world.desk.action("bob", action.name, foreign), action.name);
            let unknown = refusal(world.desk.action("bob", action.name, &unknown), action.name);
            assert_eq!(foreign, unknown, "{}", action.name);
        }
    }
    for tool in exports::tools::tools() {
        let calls = row(TOOLS, tool.name);
        // From bob's own conversation, and from ann's, should a host share it.
        for thread in [world.bobs.thread(0), world.anns.thread(0)] {
            for (foreign, unknown) in calls(&theirs).iter().zip(calls(&none)) {
                let foreign = refusal(world.desk.tool("bob", thread, tool.name, foreign), tool.name);
                let unknown = refusal(world.desk.tool("bob", thread, tool.name, &unknown), tool.name);
                assert_eq!(foreign, unknown, "{}", tool.name);
            }
        }
    }
    assert_eq!(world.desk.host.store().dump(), before);
}

#[test]
fn anothers_ids_inside_ones_own_team_are_unknown_ids() {
    let world = World::new();
    // Another owner's, and those of another team of the same owner.
    for (owner, own, foreign) in [("bob", &world.bobs, &world.anns), ("ann", &world.anns_other, &world.anns)] {
        let within = |ids: Ids| Ids { team: own.id.clone(), ..ids };
        let (theirs, none, mine) = (within(world.ids(foreign)), within(nothing()), world.ids(own));
        let before = world.desk.host.store().dump();
        for action in exports::actions::actions().iter().filter(|a| !WITHOUT_TEAM.contains(&a.name)) {
            let calls = row(ACTIONS, action.name);
            for ((foreign, unknown), mine) in calls(&theirs).iter().zip(calls(&none)).zip(calls(&mine)) {
                if *foreign == mine {
                    continue;
                }
                let foreign = refusal(world.desk.action(owner, action.name, foreign), action.name);
                let unknown = refusal(world.desk.action(owner, action.name, &unknown), action.name);
                assert_eq!(foreign, unknown, "{}", action.name);
            }
        }
        for tool in exports::tools::tools() {
            let calls = row(TOOLS, tool.name);
            for ((foreign, unknown), mine) in calls(&theirs).iter().zip(calls(&none)).zip(calls(&mine)) {
                if *foreign == mine {
                    continue;
                }
                let thread = own.thread(0);
                let foreign = refusal(world.desk.tool(owner, thread, tool.name, foreign), tool.name);
                let unknown = refusal(world.desk.tool(owner, thread, tool.name, &unknown), tool.name);
                assert_eq!(foreign, unknown, "{}", tool.name);
            }
        }
        assert_eq!(world.desk.host.store().dump(), before);
    }
}

#[test]
fn tools_work_only_in_a_members_conversation_or_below_one() {
    let world = World::new();
    let (mine, none) = (world.ids(&world.anns), nothing());
    let before = world.desk.host.store().dump();
    let caller = |thread: Option<&str>, ancestors: &[&str]| Caller {
        owner: "ann".into(),
        thread: thread.map(Into::into),
        ancestors: ancestors.iter().map(|a| (*a).into()).collect(),
        ..Caller::default()
    };
    let wrong = [
        caller(Some("elsewhere"), &[]),
        caller(Some(world.anns_other.thread(0)), &[]),
        caller(Some("below"), &["elsewhere", world.anns_other.thread(1)]),
        caller(None, &[]),
    ];
    for tool in exports::tools::tools() {
        let calls = row(TOOLS, tool.name);
        for caller in &wrong {
            for (own, unknown) in calls(&mine).iter().zip(calls(&none)) {
                let own = refusal(world.desk.tool_as(caller, tool.name, own), tool.name);
                let unknown = refusal(world.desk.tool_as(caller, tool.name, &unknown), tool.name);
                assert_eq!(own, unknown, "{}", tool.name);
            }
        }
    }
    assert_eq!(world.desk.host.store().dump(), before);
    let below = caller(Some("below"), &["between", world.anns.thread(1)]);
    world.desk.tool_as(&below, "read_team_context", &json!({"team_id": mine.team})).expect("a descendant");
}

#[test]
fn a_caller_without_an_identity_is_refused() {
    let world = World::new();
    let ids = world.ids(&world.anns);
    for caller in [
        Caller { thread: Some(world.anns.thread(0).into()), ..Caller::default() },
        Caller { owner: "a".repeat(300), thread: Some(world.anns.thread(0).into()), ..Caller::default() },
        Caller { owner: "ann".into(), thread: Some(String::new()), ..Caller::default() },
    ] {
        for tool in exports::tools::tools() {
            for args in row(TOOLS, tool.name)(&ids) {
                assert_eq!(refusal(world.desk.tool_as(&caller, tool.name, &args), tool.name).code, "bad_caller");
            }
        }
    }
}

#[test]
fn mentions_of_anothers_members_are_mentions_of_nobody() {
    let world = World::new();
    let (theirs, none) = (world.ids(&world.anns), nothing());
    world.desk.double.open_thread("bob", "chat", "assistant");
    let before = world.desk.host.store().dump();
    let own = (world.bobs.id.as_str(), world.bobs.members[0].0.as_str());
    for (team, member, none_team) in
        [(&theirs.team, &theirs.member, &none.team), (&world.bobs.id, &theirs.member, &world.bobs.id)]
    {
        let foreign = refusal(world.desk.mention("bob", "chat", "m1", "x", &[own, (team, member)]), "mention");
        let unknown =
            refusal(world.desk.mention("bob", "chat", "m1", "x", &[own, (none_team, &none.member)]), "mention");
        assert_eq!(foreign, unknown);
        assert_eq!(foreign.field.as_deref(), Some("references[1]"));
    }
    assert_eq!(world.desk.host.store().dump(), before, "nothing of bob's own was queued either");
    let hits = world.desk.action("bob", "search", &json!({})).expect("reads");
    assert!(hits["hits"].as_array().expect("hits").iter().all(|h| h["team"] == json!(world.bobs.id)));
}

#[test]
fn actions_that_name_no_team_stay_with_their_owner() {
    let world = World::new();
    let before = world.ids(&world.anns);
    let listed = world.desk.action("bob", "list", &json!({})).expect("lists");
    let listed: Vec<String> = listed["teams"].as_array().expect("teams").iter().map(|t| text(&t["id"])).collect();
    assert_eq!(listed, [world.bobs.id.as_str()]);
    assert_eq!(world.desk.action("eve", "list", &json!({})).expect("lists"), json!({"teams": []}));
    assert_eq!(world.desk.action("eve", "search", &json!({"query": "Ada"})).expect("searches"), json!({"hits": []}));
    // The request id of another owner's creation makes a team of one's own.
    let eves = world.desk.team("eve", "core", &["Ada", "Bo"]);
    assert_ne!(eves.id, world.anns.id);
    // So does a document that another owner took over.
    let document = json!({"id": "shared", "name": "n", "goal": "g", "ready": true, "members": [
        {"id": "m1", "name": "A", "agent": "a", "thread_id": "t1"},
        {"id": "m2", "name": "B", "agent": "b", "thread_id": "t2"},
    ]});
    for owner in ["ann", "eve"] {
        let made = world.desk.action(owner, "import_team", &json!({"team": document})).expect("imports");
        assert_eq!(made["outcome"], "imported");
    }
    world.desk.action("eve", "delete", &json!({"team_id": "shared"})).expect("eve's own");
    assert!(world.desk.action("ann", "get", &json!({"team_id": "shared"})).is_ok());
    let after = world.ids(&world.anns);
    assert_eq!((after.job, after.entry), (before.job, before.entry));
}
