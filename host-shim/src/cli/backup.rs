//! `backup`: one consistent copy of the database, also while it is served.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::Place;
use super::fail::{Exit, Fail};
use super::output::{Output, clean};
use crate::config::DATABASE_NAME;
use crate::storage::database::backup_file;

#[derive(Debug, Args)]
#[command(
    after_help = "To go back to a copy, stop the server and put the copy in the place of agent-teams.db in the data\nfolder (take away agent-teams.db-wal and agent-teams.db-shm). The copy holds the hashes of tokens, and\nconversations: keep it as private as the data folder.\n\nExample:\n  agent-teams backup \"teams-$(date +%F).db\""
)]
pub struct Backup {
    /// The file to make. It must not exist.
    file: PathBuf,
}

pub async fn run(place: &Place, args: Backup, output: &Output) -> Result<Exit, Fail> {
    let source = place.data.join(DATABASE_NAME);
    if !source.is_file() {
        return Err(Fail::open(
            "no_database",
            format!("there is no database in the data folder {}", place.data.display()),
        ));
    }
    if args.file.exists() {
        let message = format!("{} exists already; name a new file", args.file.display());
        return Err(Fail { field: Some("file".into()), ..Fail::refused("file_exists", message) });
    }
    let bar = output.progress("copying");
    let (target, moving) = (args.file.clone(), bar.clone());
    // The copy is read beside a running server: SQLite's log lets readers be,
    // and the process lock is not touched.
    let copied = tokio::task::spawn_blocking(move || {
        backup_file(&source, &target, |done, all| moving.set_message(format!("copying: {done} of {all} pages")))
    })
    .await
    .map_err(|e| Fail::open("backup", e.to_string()))?;
    bar.finish_and_clear();
    copied.map_err(|e| Fail::open("backup", format!("no copy was made: {e:#}")))?;
    let bytes = std::fs::metadata(&args.file).map(|m| m.len()).unwrap_or_default();
    let file = args.file.display().to_string();
    output.answer(&json!({ "file": file, "bytes": bytes }), || format!("{} ({bytes} bytes)", clean(&file)));
    Ok(Exit::Ok)
}
