use alloc::vec;

use serde_json::{Value, json};

use super::*;

fn task() -> Value {
    json!({"id": "task-1", "revision": 1, "subject": "s", "description": "d", "status": "pending", "blockedBy": [],
        "writeScopes": []})
}

fn of(task: Value) -> Option<Record> {
    parse_record("team/task", 2, &json!({"version": 2, "teamId": "t", "task": task}))
}

#[test]
fn rows_75_76_and_89_a_task_payload_is_strict() {
    assert!(of(task()).is_some());
    let with = |key: &str, value: Value| {
        let mut changed = task();
        changed[key] = value;
        of(changed)
    };
    assert!(with("ownerId", json!("x")).is_some());
    assert!(with("revision", json!(2.0)).is_some(), "a whole number, however it is written");
    for (key, value) in [
        ("id", json!("task-9007199254740992")),
        ("id", json!("")),
        ("id", json!(1)),
        ("blockedBy", json!(["task-9007199254740992"])),
        ("blockedBy", json!([42])),
        ("blockedBy", Value::Null),
        ("ownerId", Value::Null),
        ("ownerId", json!("")),
        ("revision", json!(0)),
        ("revision", json!(1.5)),
        ("revision", json!(9_007_199_254_740_992_u64)),
        ("revision", json!("1")),
        ("status", json!("done")),
        ("extra", json!(1)),
        ("subject", json!(42)),
        ("writeScopes", json!("src")),
    ] {
        assert_eq!(with(key, value.clone()), None, "{key} {value}");
    }
    let mut without = task();
    without.as_object_mut().expect("object").remove("description");
    assert_eq!(of(without), None);
    let extra = json!({"version": 2, "teamId": "t", "task": task(), "more": 1});
    assert_eq!(parse_record("team/task", 2, &extra), None);
}

#[test]
fn row_87_replay_does_not_judge_a_task() {
    for (key, value) in [
        ("status", json!("completed")),
        ("status", json!("in_progress")),
        ("subject", json!("")),
        ("writeScopes", json!(["/etc", "..", "/etc"])),
        ("ownerId", json!("somebody")),
    ] {
        let mut changed = task();
        changed[key] = value;
        assert!(of(changed).is_some(), "{key}");
    }
}

fn message(version: u64, change: impl FnOnce(&mut Value)) -> Option<Record> {
    let mut data = json!({"version": version, "teamId": "t", "message": {
        "id": "m", "senderId": "a", "senderName": "A", "targetId": "b", "content": [{"type": "text", "text": "hi"}]}});
    change(&mut data);
    parse_record("team/message/queued", version, &data)
}

#[test]
fn rows_76_80_and_92_messages() {
    assert!(message(2, |_| {}).is_some());
    assert_eq!(message(1, |_| {}), None, "version 1 names its delivery");
    assert!(message(1, |d| d["message"]["delivery"] = json!("quiet")).is_some());
    assert_eq!(message(1, |d| d["message"]["delivery"] = json!("loud")), None);
    assert_eq!(message(2, |d| d["message"]["delivery"] = json!("quiet")), None);
    assert_eq!(message(2, |d| d["message"]["targetId"] = json!(42)), None);
    let content = |block: Value| message(2, |d| d["message"]["content"] = json!([block])).is_some();
    let image =
        json!({"type": "image", "attachmentId": "i", "mediaType": "image/png", "bytes": 0, "width": 1, "height": 1});
    let mut flat = image.clone();
    flat["height"] = json!(0);
    let result = |inner: Value| json!({"type": "tool-result", "toolCallId": "c", "content": inner});
    for good in [
        json!({"type": "from the future", "x": {"y": null}}),
        json!({"type": "reasoning", "text": ""}),
        json!({"type": "tool-call", "id": "c", "name": "n", "arguments": "{"}),
        result(json!([{"type": "text", "text": "x"}])),
        image,
    ] {
        assert!(content(good.clone()), "{good}");
    }
    for bad in [
        json!({"type": "text", "text": 42}),
        json!({"type": "text", "text": "x", "more": 1}),
        json!({"type": ""}),
        json!("text"),
        json!({"type": "tool-call", "id": "c", "name": "n", "arguments": {}}),
        result(json!([{"type": "text"}])),
        flat,
    ] {
        assert!(!content(bad.clone()), "{bad}");
    }
}

#[test]
fn rows_76_and_91_selectors() {
    let at = |data: Value| select("root", "team/task", &data);
    assert_eq!(at(json!({"version": 2, "teamId": "root"})), Selected::Ours { version: 2 });
    assert_eq!(at(json!({"version": 1.0, "teamId": "root"})), Selected::Ours { version: 1 });
    assert_eq!(at(json!({"version": 9, "teamId": "other"})), Selected::Ignored, "row 78");
    assert!(
        matches!(at(json!({"version": 3, "teamId": "root"})), Selected::Rejected(m) if m.contains("unsupported") && m.contains('3'))
    );
    for bad in [
        json!({"version": "2", "teamId": "root"}),
        json!({"teamId": "root"}),
        json!({"teamId": "other"}),
        json!({"version": -1, "teamId": "other"}),
        json!({"version": 2, "teamId": 42}),
        json!({"version": 2, "teamId": ""}),
        json!({"version": 2}),
        Value::Null,
    ] {
        assert!(matches!(at(bad.clone()), Selected::Rejected(m) if m.contains("payload is invalid")), "{bad}");
    }
    assert_eq!(select("root", "team/other", &Value::Null), Selected::Ignored);
    assert_eq!(select("root", "message", &Value::Null), Selected::Ignored);
}

#[test]
fn members_begin_in_provisioning_and_end_once() {
    let member = |phase| HistoricalMember {
        id: "m".into(),
        name: "n".into(),
        description: "d".into(),
        provider: "p".into(),
        context: "fresh".into(),
        phase,
        error: None,
    };
    use MemberPhase::{Active, Failed, Provisioning};
    assert_eq!(check_member(None, None, &member(Provisioning)), None);
    assert!(check_member(None, None, &member(Active)).is_some());
    assert!(check_member(None, Some("other"), &member(Provisioning)).is_some());
    for (from, to, fine) in [
        (Provisioning, Active, true),
        (Provisioning, Failed, true),
        (Provisioning, Provisioning, false),
        (Active, Failed, false),
        (Failed, Active, false),
    ] {
        assert_eq!(check_member(Some(&member(from)), None, &member(to)).is_none(), fine, "{from:?} {to:?}");
    }
    let renamed = HistoricalMember { name: "other".into(), ..member(Active) };
    assert!(check_member(Some(&member(Provisioning)), None, &renamed).is_some());
    let described = HistoricalMember { description: "other".into(), ..member(Active) };
    assert_eq!(check_member(Some(&member(Provisioning)), None, &described), None);
}

#[test]
fn a_delivery_needs_its_message() {
    let message = Message {
        id: "m".into(),
        sender_id: "a".into(),
        sender_name: "A".into(),
        target_id: "b".into(),
        content: vec![],
        delivery: None,
    };
    assert!(check_queued(true, "m").is_some() && check_queued(false, "m").is_none());
    assert_eq!(check_delivered(Some((&message, false)), "m", "b"), None);
    assert!(check_delivered(Some((&message, true)), "m", "b").is_some());
    assert!(check_delivered(Some((&message, false)), "m", "c").is_some());
    assert!(check_delivered(None, "m", "b").is_some());
}
