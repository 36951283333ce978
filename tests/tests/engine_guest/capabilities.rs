//! What the component is given, and that every export arrives.

use std::sync::Arc;

use agent_teams_host::contract::{
    CallError, Caller, EndedRun, ErrorKind, FaultCode, MentionMessage, MentionReference, Refusal, TeamRef,
};

use crate::support::{NOW_MS, ScriptedRuns, bench, bench_with, capability, host_error, options};

fn team(owner: &str, team: &str) -> TeamRef {
    TeamRef { owner: owner.into(), team: team.into() }
}

#[tokio::test]
async fn the_caller_arrives_whole_through_tools_and_actions() {
    let bench = bench(options());
    let caller = Caller {
        owner: "ann".into(),
        thread: Some("t".into()),
        ancestors: vec!["u".into(), "v".into()],
        run: Some("r".into()),
        call: Some("c".into()),
        ..Caller::default()
    };
    let expected = "\"ann t u,v r c {}\"";
    assert_eq!(bench.plugin.call_tool(caller.clone(), None, "echo", "{}").await.unwrap(), expected);
    assert_eq!(bench.plugin.call_action(caller, None, "echo", "{}").await.unwrap(), expected);
}

#[tokio::test]
async fn a_refusal_keeps_its_parts() {
    let bench = bench(options());
    let refused = bench.act("refuse", "with_detail").await.unwrap_err();
    let expected = Refusal {
        kind: ErrorKind::Conflict,
        code: "with_detail".into(),
        message: "said the guest".into(),
        field: None,
        detail: Some(serde_json::json!({"a": 1})),
    };
    assert!(matches!(refused, CallError::Refused(refusal) if refusal == expected));
}

#[tokio::test]
async fn storage_clock_settings_and_random_are_the_hosts() {
    let bench = bench(options());
    for (key, value) in [("a1", "one"), ("a2", "two"), ("b1", "three")] {
        bench.act("put", &format!("{key}|{value}")).await.unwrap();
    }
    assert_eq!(bench.act("get", "a1").await.unwrap(), "\"one\"");
    assert!(host_error(bench.act("get", "none").await).contains("NotFound"));
    assert_eq!(bench.act("get-many", "b1|none|a2").await.unwrap(), "\"three,,two\"");
    assert_eq!(bench.act("scan", "a|b|9").await.unwrap(), "\"a1=one,a2=two\"");
    assert_eq!(bench.act("scan", "a|z|1").await.unwrap(), "\"a1=one\"");
    assert_eq!(bench.act("settings", "").await.unwrap(), "\"{}\"");
    assert_eq!(bench.act("now", "").await.unwrap(), format!("\"{}.{:09}\"", NOW_MS / 1000, NOW_MS % 1000 * 1_000_000));
    assert_ne!(bench.act("random", "").await.unwrap(), bench.act("random", "").await.unwrap());
}

#[tokio::test]
async fn a_published_signal_reaches_whoever_listens() {
    let bench = bench(options());
    let mut all = bench.signals.subscribe();
    bench.act("publish", "topic|7").await.unwrap();
    let event = all.try_recv().unwrap();
    assert_eq!((event.owner.as_str(), event.topic.as_str(), event.revision), ("ann", "topic", 7));
    assert_eq!(bench.signals.position("ann", "topic"), event.position);
    assert_eq!(bench.signals.position("bob", "topic"), 0);
}

#[tokio::test]
async fn errors_of_agent_runs_stay_apart() {
    let bench = bench(options());
    let runs = Arc::new(ScriptedRuns::default());
    assert!(host_error(bench.act_with(capability("ann", &runs), "run", "denied").await).contains("Denied"));
    assert!(host_error(bench.act_with(capability("ann", &runs), "run", "conflict").await).contains("KeyConflict"));
    assert_eq!(bench.act_with(capability("ann", &runs), "run", "t").await.unwrap(), "\"t/m/key\"");
    assert!(matches!(bench.act("run", "t").await, Err(CallError::Refused(r)) if r.code == "no_runs"));
}

#[tokio::test]
async fn a_capability_is_bound_to_its_own_owners_teams_only() {
    let bench = bench(options());
    let runs = Arc::new(ScriptedRuns::default());
    let foreign = bench.act_with(capability("bob", &runs), "bind", "ann|t").await;
    assert_eq!(host_error(foreign), "Error::NotOwner");
    assert!(!bench.plugin.connected(&team("ann", "t")));
    assert_eq!(host_error(bench.act("connected-run", "ann|t|x").await), "Error::NotConnected");

    bench.act_with(capability("ann", &runs), "bind", "ann|t").await.unwrap();
    bench.plugin.connect(&team("bob", "t"), capability("bob", &runs)).await.unwrap();
    assert!(bench.plugin.connected(&team("ann", "t")) && bench.plugin.connected(&team("bob", "t")));
    // A later call, with an instance of its own, uses what an earlier one bound.
    assert_eq!(bench.act("connected-run", "ann|t|x").await.unwrap(), "\"x/m/key\"");

    bench.plugin.forget("ann");
    assert!(!bench.plugin.connected(&team("ann", "t")) && bench.plugin.connected(&team("bob", "t")));
}

#[tokio::test]
async fn every_other_export_arrives() {
    let bench = bench(options());
    let plugin = &bench.plugin;
    plugin.open().await.unwrap();
    assert_eq!(plugin.info().await.unwrap().name, "test guest");
    assert_eq!(plugin.tools("full").await.unwrap()[0].name, "echo");
    assert_eq!(plugin.actions().await.unwrap()[0].name, "echo");
    assert_eq!(plugin.assets().await.unwrap()[0].path, "a");
    assert_eq!(plugin.asset("a").await.unwrap().body, b"bytes");
    assert!(matches!(plugin.asset("b").await, Err(CallError::Refused(r)) if r.kind == ErrorKind::NotFound));
    assert_eq!(plugin.search_mentions(Caller::owner("ann"), "q").await.unwrap()[0].member, "q");
    let message = MentionMessage {
        id: "m".into(),
        text: "hi".into(),
        references: vec![MentionReference { team: "t".into(), member: "x".into() }],
    };
    let runs = Arc::new(ScriptedRuns::default());
    let sent = plugin.dispatch_mention(Caller::owner("ann"), capability("ann", &runs), message).await.unwrap();
    assert!(sent.contains("t/x") && sent.contains("Ok"), "{sent}");
    let plan = plugin
        .plan(
            vec![EndedRun { owner: "ann".into(), thread: "ann".into(), run: "t".into() }],
            true,
            vec![team("bob", "x")],
        )
        .await
        .unwrap();
    assert_eq!((plan.steps[0].team.clone(), plan.next_ms), (team("ann", "t"), 1));
    assert_eq!(plan.steps[0].permit, br#"{"backing_off":1}"#);
    assert!(plugin.advance(&team("ann", "t"), b"ann").await.unwrap());
    assert!(!plugin.advance(&team("ann", "t"), b"{}").await.unwrap());
    assert_eq!(plugin.slots().await.unwrap(), "[]");
    let settled = plugin.settle(&team("ann", "t"), "j").await.unwrap();
    assert!(settled.contains(r#""id":"j""#) && settled.contains(r#""owner":"ann""#), "{settled}");
    assert!(plugin.admit(b"batch").await.unwrap().is_empty());
}

#[tokio::test]
async fn settings_that_are_refused_and_schemas_that_are_no_json_are_told() {
    let guest = agent_teams_tests::guest_component();
    let refused = bench_with(guest, "refuse", options()).unwrap().plugin.open().await;
    assert!(matches!(refused, Err(CallError::Refused(r)) if r.code == "settings"));
    let bad = bench_with(guest, "bad schemas", options()).unwrap();
    assert!(matches!(bad.plugin.tools("full").await, Err(CallError::Fault { code: FaultCode::Trapped, .. })));
    assert!(matches!(bad.plugin.actions().await, Err(CallError::Fault { code: FaultCode::Trapped, .. })));
}
