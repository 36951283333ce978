use super::*;

fn refused(text: &str) -> (usize, String, String) {
    match Config::parse(text, "agent-teams.toml") {
        Err(ConfigError::Invalid { line, key, message, .. }) => (line, key, message),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn the_empty_file_and_the_sample_are_the_default() {
    for text in ["", SAMPLE] {
        let config = Config::parse(text, "x").unwrap();
        assert_eq!(config.server, Config::default().server);
        assert_eq!(config.engine, EngineLimits::default());
        assert_eq!(config.reconnect, Reconnect::Auto);
        assert_eq!(config.server.bind.to_string(), "127.0.0.1:8765");
        assert!(config.server.bind.ip().is_loopback());
        assert_eq!(config.team_json(), "{}");
    }
}

#[test]
fn every_part_is_read_and_the_team_part_is_passed_on_unread() {
    let config = Config::parse(
        "reconnect = \"manual\"\n[server]\nbind = \"[::1]:9000\"\npublic_origins = [\"https://a.example\"]\n\
         max_connections = 3\n[engine]\nmemory_mib = 32\n[team]\nslots = 3\nnested = { a = [1, true, \"x\"] }\n",
        "x",
    )
    .unwrap();
    assert_eq!(config.reconnect, Reconnect::Manual);
    assert_eq!(config.server.bind.port(), 9000);
    assert_eq!(config.server.public_origins[0].host(), "a.example");
    assert_eq!(config.server.max_connections, 3);
    assert_eq!(config.engine.options(None).memory, 32 << 20);
    assert_eq!(config.team_json(), r#"{"nested":{"a":[1,true,"x"]},"slots":3}"#);
}

#[test]
fn a_mistake_names_its_line_and_key() {
    let (line, key, message) = refused("[server]\n\nbnd = 1\n");
    assert_eq!((line, key.as_str()), (3, "server.bnd"));
    assert!(message.contains("unknown field `bnd`"), "{message}");

    let (line, key, _) = refused("\n[server]\nbind = 5\n");
    assert_eq!((line, key.as_str()), (3, "server.bind"));

    let (line, key, message) = refused("[server]\nbind = \"localhost\"\n");
    assert_eq!((line, key.as_str()), (2, "server.bind"));
    assert!(message.contains("127.0.0.1:8765"), "{message}");

    let (line, key, _) = refused("[server]\npublic_origins = [\n  \"https://a.example\",\n  \"b.example\",\n]\n");
    assert_eq!((line, key.as_str()), (4, "server.public_origins.1"));

    let (line, key, message) = refused("\n[engine]\ninstances = 1\n");
    assert_eq!((line, key.as_str()), (3, "engine.instances"));
    assert!(message.contains("2 to 1000"), "{message}");

    let agent = "\n[[agents]]\nname = \"a\"\nkind = \"robot\"\ninstructions = \"i\"\nmodel = \"m\"\n";
    let (line, key, message) = refused(agent);
    assert_eq!((line, key.as_str()), (4, "agents.0.kind"));
    assert!(message.contains("`robot`") && message.contains("`builtin`"), "{message}");

    let (line, key, _) = refused("[team]\nwhen = 2026-01-01\n");
    assert_eq!((line, key.as_str()), (2, "team.when"));

    let (line, key, _) = refused("reconnect = \"never\"\n");
    assert_eq!((line, key.as_str()), (1, "reconnect"));

    let (line, key, message) = refused("[server]\n[sevrer]\nbind = \"x\"\n");
    assert_eq!((line, key.as_str()), (2, "sevrer"));
    assert!(message.contains("unknown field `sevrer`") && message.contains("`server`"), "{message}");

    let (line, _, _) = refused("[server]\nbind = \n");
    assert_eq!(line, 2);
    let (line, _, _) = refused("[server]\nbind = \"127.0.0.1:1\"\nbind = \"127.0.0.1:2\"\n");
    assert_eq!(line, 3);
}

#[test]
fn a_mistake_of_an_agent_names_its_line_and_key() {
    let models = "[models.m]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"x\"\n";
    let (line, key, _) = refused(&format!("{models}[[agents]]\nname = \"a\"\nmodel = \"m\"\ntoolz = []\n"));
    assert_eq!((line, key.as_str()), (8, "agents.0.toolz"));
    let (line, key, _) = refused(&format!("{models}[[agents]]\nname = \"a\"\nmodel = \"other\"\n"));
    assert_eq!((line, key.as_str()), (7, "agents.0.model"));
}

#[test]
fn the_error_is_one_readable_line() {
    let error = Config::parse("[server]\nbnd = 1\n", "agent-teams.toml").unwrap_err().to_string();
    assert!(error.starts_with("agent-teams.toml, line 2: `server.bnd`: unknown field `bnd`"), "{error}");
    assert!(!error.contains('\n'));
}

#[test]
fn without_a_file_there_is_the_default_and_an_explicit_one_must_exist() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Config::load(None, folder.path()).unwrap().file.is_none());
    assert!(matches!(Config::load(Some(&folder.path().join("no")), folder.path()), Err(ConfigError::Read { .. })));
    std::fs::write(folder.path().join(FILE_NAME), "reconnect = \"manual\"").unwrap();
    let config = Config::load(None, folder.path()).unwrap();
    assert_eq!(config.reconnect, Reconnect::Manual);
    assert_eq!(config.file, Some(folder.path().join(FILE_NAME)));
}

#[cfg(unix)]
#[test]
fn the_data_folder_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("a/b");
    assert_eq!(prepare_data_folder(&data).unwrap(), None);
    assert_eq!(std::fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(prepare_data_folder(&data).unwrap().unwrap().contains("0755"));
}

#[test]
fn the_samples_examples_are_good_when_the_marks_are_taken_away() {
    let key = |line: &str| {
        let line = line.strip_prefix("# ").unwrap_or_default();
        line.starts_with('[') || line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '))
    };
    let mut lines = Vec::new();
    for line in SAMPLE.lines() {
        lines.push(if key(line) { &line[2..] } else { line });
    }
    let config = Config::parse(&lines.join("\n"), FILE_NAME).unwrap();
    assert_eq!(config.agents.agents.len(), 2);
    assert_eq!(config.team_json(), r#"{"slots":8}"#);
    assert_eq!(config.engine, EngineLimits::default());
}
