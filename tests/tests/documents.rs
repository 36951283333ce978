//! The reference pages list what there is: commands, tools, actions, routes.
//! The configurations in the README and in `examples/` can be used.

#[path = "../../examples/agent-host.rs"]
mod agent_host;
#[path = "../../examples/embed.rs"]
mod embed;
mod program;

use std::collections::BTreeSet;
use std::path::Path;

use agent_teams_host::config::Config;
use agent_teams_plugin::exports;
use program::Folder;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The first cells of the tables below a heading, without their backquotes.
fn rows(page: &str, heading: &str) -> BTreeSet<String> {
    let (_, below) = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let section = below.split_once("\n## ").map_or(below, |(section, _)| section);
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    cells.map(str::to_owned).collect()
}

/// The commands that `--help` lists, those below others with both names.
fn commands(folder: &Folder, above: &[&str]) -> BTreeSet<String> {
    let help = folder.run(&[above, &["--help"]].concat()).stdout;
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return BTreeSet::from([above.join(" ")]) };
    let names = list.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").flat_map(|name| commands(folder, &[above, &[name]].concat())).collect()
}

#[test]
fn the_commands_are_those_of_the_program() {
    assert_eq!(rows(&page("docs/cli.md"), "## Commands"), commands(&Folder::new(), &[]));
}

#[test]
fn the_tools_and_actions_are_those_of_the_component() {
    let page = page("docs/tools.md");
    for (heading, entries) in [("## Tools", exports::tools::tools()), ("## Actions", exports::actions::actions())] {
        let listed: BTreeSet<String> = entries.iter().map(|entry| entry.name.to_owned()).collect();
        assert_eq!(rows(&page, heading), listed, "{heading}");
        for entry in entries {
            let changes = if entry.effect == exports::Effect::Reads { "no" } else { "yes" };
            assert!(page.contains(&format!("| `{}` | {changes} |", entry.name)), "{} changes: {changes}", entry.name);
        }
    }
}

#[test]
fn the_routes_are_those_of_the_gateway() {
    let (page, gateway) = (page("docs/http.md"), page("host-shim/src/gateway/mod.rs"));
    let routes: Vec<&str> = gateway.split(".route(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(routes.len() > 15, "{routes:?}");
    for route in routes {
        let listed = [" ", "/community.agent-teams"]
            .iter()
            .any(|before| ["`", "?"].iter().any(|after| page.contains(&format!("{before}{route}{after}"))));
        assert!(listed, "{route} is not in docs/http.md");
    }
}

/// The command lines in the shell blocks of a page, without comments.
fn shell(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(|block| {
        let whole = block.replace("\\\n", " ");
        whole.lines().map(|line| line.split(" #").next().unwrap_or_default().trim().to_owned()).collect::<Vec<_>>()
    });
    lines.filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_command_lines_on_the_pages_exist() {
    let folder = Folder::new();
    let known = commands(&folder, &[]);
    let aliases = page(".cargo/config.toml");
    let mut seen = 0;
    for name in
        ["README.md", "CONTRIBUTING.md", "docs/cli.md", "docs/embedding.md", "docs/testing.md", "docs/upgrade.md"]
    {
        for line in shell(&page(name)) {
            let ours = line.strip_prefix("agent-teams ").or_else(|| line.strip_prefix("cargo run --release -- "));
            let words: Vec<&str> = ours.unwrap_or(&line).split_whitespace().collect();
            if ours.is_some() {
                seen += 1;
                let command = [2, 1].into_iter().filter_map(|n| words.get(..n)).find(|w| known.contains(&w.join(" ")));
                let command = command.unwrap_or_else(|| panic!("{name}: no such command: {line}"));
                let help = folder.run(&[command, &["--help"]].concat()).stdout;
                for flag in words.iter().filter(|word| word.starts_with("--")) {
                    assert!(
                        help.contains(&format!("{flag} ")) || help.contains(&format!("{flag}\n")),
                        "{name}: {line}"
                    );
                }
            } else if words[0] == "cargo" {
                let own = ["build", "install", "run", "test"].contains(&words[1]);
                assert!(own || aliases.contains(&format!("\n{} = ", words[1])), "{name}: {line}");
            }
        }
    }
    assert!(seen > 8, "{seen}");
}

#[test]
fn the_configurations_can_be_used() {
    let readme = page("README.md");
    let blocks: Vec<&str> = readme.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 1);
    let config = Config::parse(blocks[0], "README.md").expect("a configuration");
    assert_eq!(config.agents.agents.len(), 2);

    let mut seen = 0;
    for file in std::fs::read_dir(Path::new(ROOT).join("examples")).expect("examples") {
        let file = file.expect("a file").path();
        if file.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        seen += 1;
        // Any port will do: the one in the file may be taken on this machine.
        let text = std::fs::read_to_string(&file).expect("a text");
        assert!(!text.contains("[server]"), "{}", file.display());
        let found = Folder::with(&format!("{text}\n[server]\nbind = \"127.0.0.1:0\"\n")).json(&["doctor"]).json();
        assert_eq!(found["ok"], true, "{}: {found}", file.display());
    }
    assert!(seen > 0);
}

#[test]
fn the_example_of_a_host_runs() {
    embed::main().expect("runs");
}

#[test]
fn the_example_of_an_agent_host_runs() {
    agent_host::main().expect("runs");
}
