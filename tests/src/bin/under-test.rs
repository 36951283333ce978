//! The program `agent-teams` itself, built where the tests from outside find
//! it: cargo names to a test only the programs of its own package.

fn main() -> std::process::ExitCode {
    agent_teams_host::cli::main(std::env::args_os())
}
