//! The program `agent-teams`.

fn main() -> std::process::ExitCode {
    agent_teams_host::cli::main(std::env::args_os())
}
