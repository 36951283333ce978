//! `agent-teams doctor`, and what every command says about a wrong line.

mod program;

use program::{Folder, demo_config};

#[test]
fn the_doctor_finds_nothing_wrong_with_the_demo() {
    let folder = Folder::new();
    let found = folder.json(&["doctor"]).json();
    assert_eq!(found["ok"], true, "{found}");
    let checks: Vec<&str> =
        found["checks"].as_array().expect("checks").iter().filter_map(|check| check["check"].as_str()).collect();
    for check in ["data folder", "configuration", "database", "port", "component", "agent planner", "model demo"] {
        assert!(checks.contains(&check), "{check} in {checks:?}");
    }
    let server = folder.serve();
    let beside = folder.json(&["doctor"]).json();
    assert_eq!(beside["ok"], true, "also beside a running server: {beside}");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn the_doctor_names_what_is_wrong() {
    let wrong = demo_config().replacen("model = \"demo\"\n", "model = \"demo\"\ntools = [\"no_such_tool\"]\n", 1);
    assert_ne!(wrong, demo_config());
    let found = Folder::with(&wrong).json(&["doctor"]);
    assert_eq!(found.code, Some(1));
    assert!(found.stdout.contains("no_such_tool"), "{}", found.stdout);

    let unreadable = Folder::with("[server]\nbind = 5\n").run(&["doctor"]);
    assert_eq!(unreadable.code, Some(1));
    assert!(unreadable.stdout.contains("line 2") && unreadable.stdout.contains("server.bind"), "{}", unreadable.stdout);

    let key = "[[agents]]\nname = \"a\"\nmodel = \"m\"\n[models.m]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"x\"\napi_key_env = \"NO_SUCH_KEY_OF_OURS\"\n";
    let missing = Folder::with(key).run(&["doctor"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.stdout.contains("NO_SUCH_KEY_OF_OURS"), "{}", missing.stdout);
}

#[test]
fn a_wrong_line_is_exit_2_and_a_wrong_place_exit_3() {
    let folder = Folder::new();
    for wrong in [&["no-such-command"][..], &["send", "only-a-team"], &["settle", "t", "j", "--as", "perhaps"]] {
        let ended = folder.run(wrong);
        assert_eq!(ended.code, Some(2), "{wrong:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
    assert_eq!(folder.json(&["--server", "ftp://x", "teams", "list"]).refused(3)["code"], "no_token");
    assert_eq!(folder.json(&["teams", "list"]).refused(3)["code"], "server_unreachable");
    let help = folder.run(&["--help"]);
    assert_eq!(help.code, Some(0));
    assert!(help.stdout.contains("Exit codes") && help.stdout.contains("Examples"));
}
