//! `cargo demo`: the demo of the built binary, in this process.

fn main() -> std::process::ExitCode {
    let given = std::env::args_os().skip(1);
    agent_teams_host::cli::main(["agent-teams".into(), "demo".into()].into_iter().chain(given))
}
