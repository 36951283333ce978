//! One process at a time: an advisory lock on `<file>.lock`, which also holds
//! the holder's process id for the message to the second one. The lock is
//! freed by the system when its holder ends, however it ends; the file stays.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Another process, or another part of this one, has the database open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the database {} is in use by {}; only one process can have it open", path.display(), holder(*pid))]
pub struct InUse {
    /// The database file.
    pub path: PathBuf,
    /// The process that has it open, where that can be told.
    pub pid: Option<u32>,
}

fn holder(pid: Option<u32>) -> String {
    match pid {
        Some(pid) if pid == std::process::id() => format!("this process ({pid})"),
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    }
}

/// Held while it lives.
#[derive(Debug)]
pub(super) struct ProcessLock {
    _file: File,
}

impl ProcessLock {
    /// Takes the lock of the database at `path`, or says who holds it.
    pub(super) fn acquire(path: &Path) -> anyhow::Result<Self> {
        let mut file = private().open(lock_path(path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // On some systems a locked file cannot be read: then the
                // message does without the number.
                let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(InUse { path: path.to_owned(), pid }.into());
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Self { _file: file })
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Options that make a file which only its owner can read (mode 0600), and
/// open an existing one as it is.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

/// Makes a missing folder with mode 0700. An existing one is left as it is: it
/// may serve other things too, and the files in it have mode 0600.
pub(super) fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// Takes away what others could do with an existing file.
pub(super) fn restrict(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path)?.permissions().mode();
        if mode & 0o077 != 0 {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        }
    }
    let _ = path;
    Ok(())
}
