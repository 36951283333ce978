//! A consistent copy of the database, made while it is in use.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::{lock, schema};

/// Pages copied between two calls of the progress callback (4 MiB).
const STEP: i32 = 1024;

/// Copies the database file `source`, of this or of another process, to the
/// new file `target`: one state, everything that was committed when the copy
/// began, while writers go on. `progress` is called with the pages copied and
/// the pages in all.
///
/// The copy has mode 0600 and appears under its name only when it is whole and
/// durable; an existing `target` is refused. Blocks until it is done.
///
/// # Errors
/// The source is missing or not ours, the target exists, or reading or writing
/// failed. An unfinished copy is removed.
pub fn backup_file(source: &Path, target: &Path, progress: impl FnMut(u64, u64)) -> anyhow::Result<()> {
    let conn = Connection::open_with_flags(source, OpenFlags::SQLITE_OPEN_READ_WRITE | super::FLAGS)
        .with_context(|| format!("the database {} cannot be opened", source.display()))?;
    conn.busy_timeout(super::BUSY)?;
    conn.pragma_update(None, "query_only", true)?;
    anyhow::ensure!(!schema::inspect(&conn)?, "the database {} is empty", source.display());
    // An open read transaction keeps the copy at one state, and from starting
    // over whenever somebody writes.
    let snapshot = conn.unchecked_transaction()?;
    schema::inspect(&snapshot)?;
    copy(&snapshot, target, progress)
}

fn copy(from: &Connection, target: &Path, mut progress: impl FnMut(u64, u64)) -> anyhow::Result<()> {
    anyhow::ensure!(!target.try_exists()?, "{} exists already", target.display());
    let partial = Partial::new(target)?;
    let mut to = Connection::open_with_flags(&partial.path, OpenFlags::SQLITE_OPEN_READ_WRITE | super::FLAGS)?;
    // No other process sees the file before it is whole: no journal is needed.
    to.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(()))?;
    let backup = Backup::new(from, &mut to)?;
    loop {
        let step = backup.step(STEP)?;
        let state = backup.progress();
        let count = |pages: i32| u64::try_from(pages).unwrap_or(0);
        progress(count(state.pagecount - state.remaining), count(state.pagecount));
        match step {
            StepResult::Done => break,
            StepResult::More => {}
            _ => anyhow::bail!("the copy was interrupted: the database is busy"),
        }
    }
    drop(backup);
    to.close().map_err(|(_, error)| error)?;
    partial.publish(target)
}

/// A file beside the target that is removed unless it was published.
struct Partial {
    path: PathBuf,
    file: File,
}

impl Partial {
    fn new(target: &Path) -> anyhow::Result<Self> {
        remove_abandoned(target);
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let path = PathBuf::from(name);
        let file = lock::private()
            .create_new(true)
            .open(&path)
            .with_context(|| format!("{} cannot be made", path.display()))?;
        // While this lock is free, no process writes the file any more.
        let _ = file.try_lock();
        Ok(Self { path, file })
    }

    /// Makes the file durable and gives it its name, unless that is taken.
    fn publish(&self, target: &Path) -> anyhow::Result<()> {
        self.file.sync_all()?;
        // A link, not a rename: it never replaces a file that came meanwhile.
        // Where links do not exist, a rename after a look must do.
        if std::fs::hard_link(&self.path, target).is_err() {
            anyhow::ensure!(!target.try_exists()?, "{} exists already", target.display());
            std::fs::rename(&self.path, target)?;
        }
        #[cfg(unix)]
        if let Some(folder) = target.parent() {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }
}

/// Removes unfinished copies of this target whose processes have ended.
fn remove_abandoned(target: &Path) {
    let (Some(folder), Some(name)) = (target.parent(), target.file_name().and_then(|name| name.to_str())) else {
        return;
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let pid = found.to_str().and_then(|f| f.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".partial"));
        if !pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit())) {
            continue;
        }
        if File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
