//! `cargo freeze FOLDER`: makes a data folder as the present program leaves it
//! when it is killed in the middle of much work, and keeps it with a record of
//! what can be read in it. Later programs are tested on copies of such folders
//! (`tests/tests/upgrade`), so a frozen folder is never made again.
//!
//! Two acts, each ended by SIGKILL:
//!
//! 1. [`past`] and [`present`]: the real program serves, and its owners work
//!    over HTTP, until there is a history and much is under way;
//! 2. [`unanswered`]: the component, agents and worker of the program on the
//!    same database, with gates before the agents ([`gates`]). Calls without an
//!    answer, or with an unclear one, keep jobs in phases that otherwise last a
//!    moment.
//!
//! [`pack`] keeps what is left.

mod contents;
mod gates;
mod owner;
mod pack;
mod past;
mod present;
mod program;
mod unanswered;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use owner::{Journal, Owner};
use program::{PROGRAM, Program};

const CONFIG: &str = include_str!("agent-teams.toml");
/// The sample of an earlier plugin's database.
const LEGACY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/legacy/teams.sqlite");
/// Those who are added besides the one that the first start makes.
const USERS: [&str; 5] = ["ann", "ben", "cleo", "dana", "eve"];
/// The argument that makes this process the second act.
const SECOND_ACT: &str = "second-act";

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let result = match (args.next(), args.next()) {
        // The program itself, built with this runner.
        (Some(first), Some(next)) if first == PROGRAM => {
            return agent_teams_host::cli::main([first, next].into_iter().chain(args));
        }
        (Some(first), Some(data)) if first == SECOND_ACT => unanswered::run(Path::new(&data)),
        (Some(folder), None) => freeze(&PathBuf::from(folder)),
        _ => Err(anyhow::anyhow!("name the folder to make: freeze tests/fixtures/data/format-N")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn freeze(to: &Path) -> Result<()> {
    ensure!(!to.exists(), "{} exists, and what is frozen is never made again", to.display());
    let folder = tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o700)).tempdir()?;
    let program = Program::new(folder.path())?;
    std::fs::write(program.data.join("agent-teams.toml"), CONFIG)?;
    println!("1: users, and a team of the earlier plugin");
    let people = People::make(&program)?;
    let journal = Journal::default();
    println!("2: the served past and present");
    let server = program.serve()?;
    let owner = |name: &'static str, token: &str| Owner::new(name, server.url(), token, &journal);
    let (ann, ben) = (owner("ann", &people.ann)?, owner("ben", &people.ben)?);
    let (cleo, eve) = (owner("cleo", &people.cleo)?, owner("eve", &people.eve)?);
    let session = ben.sign_in()?;
    past::live(&ann)?;
    present::live(&ann, &ben, &cleo, &eve)?;
    server.kill()?;
    // These teams are taken over and never connected.
    program.run(&["import", LEGACY, "--owner", "alice=dana", "--owner", "bob=dana"])?;
    println!("3: calls without an answer");
    let views = second_act(&program)?;
    program.run(&["users", "disable", "cleo"])?;
    println!("4: packing");
    let secrets = serde_json::json!({
        "tokens": {
            "ann": people.ann, "ben": people.ben, "cleo": people.cleo, "dana": people.dana, "eve": people.eve,
        },
        "revoked": people.revoked,
        // That of ann runs out in the year 2100, that of ben like any other.
        "sessions": {"ann": people.session, "ben": session},
    });
    pack::pack(&program, to, &pack::Record { secrets, views, writes: journal.take() })
}

/// Secrets of the users, who were made by the command line.
struct People {
    ann: String,
    ben: String,
    cleo: String,
    dana: String,
    eve: String,
    revoked: String,
    session: String,
}

impl People {
    fn make(program: &Program) -> Result<Self> {
        // The first start makes the user `local` and the token of the command line.
        program.serve()?.stop()?;
        for user in USERS {
            program.run(&["users", "add", user])?;
        }
        let token = |user: &str, name: &str| -> Result<(String, String)> {
            let token = program.run(&["tokens", "add", user, name])?["token"].clone();
            let text = |field: &str| token[field].as_str().map(str::to_owned).context("no token");
            Ok((text("id")?, text("secret")?))
        };
        let (lost, revoked) = token("ann", "lost laptop")?;
        program.run(&["tokens", "revoke", &lost])?;
        let mut secrets = Vec::new();
        for user in USERS {
            secrets.push(token(user, "laptop")?.1);
        }
        let [ann, ben, cleo, dana, eve] =
            <[String; USERS.len()]>::try_from(secrets).map_err(|_| anyhow::anyhow!("a token each"))?;
        let session = unanswered::lasting_session(&program.data, "ann")?;
        program.run(&["import", LEGACY, "--owner", "alice=ann", "--owner", "bob=ben"])?;
        Ok(Self { ann, ben, cleo, dana, eve, revoked, session })
    }
}

/// Runs the second act in a process of its own, kills it when it is where it
/// should be, and gives what each owner could read at that moment.
fn second_act(program: &Program) -> Result<Value> {
    let mut child = std::process::Command::new(std::env::current_exe()?)
        .arg(SECOND_ACT)
        .arg(&program.data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().context("no pipe")?;
    let mut views = None;
    for line in BufReader::new(stdout).lines() {
        match line?.split_once(unanswered::READY) {
            Some((_, told)) => {
                views = Some(serde_json::from_str(told)?);
                break;
            }
            None => continue,
        }
    }
    child.kill()?;
    let status = child.wait()?;
    match views {
        Some(views) => Ok(views),
        None => bail!("the second act ended by itself: {status}"),
    }
}
