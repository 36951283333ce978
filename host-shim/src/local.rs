//! How commands on the same machine reach the server of a data folder: by a
//! socket in the folder itself.
//!
//! A port of the machine belongs to the process that binds it first: after a
//! server was killed, a stranger could take its port and be handed the folder's
//! secrets by the next command. Only who may write in the folder, which has mode 0700,
//! can make a socket there; the system itself checks that, at each connection.

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::net::UnixListener;

/// In the data folder: where commands reach its server.
const SOCKET_FILE: &str = "server.sock";
/// In the data folder: what people are told about its server.
const SERVER_FILE: &str = "server.json";
/// The longest path of a socket that every system takes, in bytes.
const MAX_PATH: usize = 100;

/// A path to the folder's socket.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    /// Kept open while a short path leads through it.
    _folder: Option<File>,
}

impl Socket {
    pub fn of(data: &Path) -> io::Result<Self> {
        let path = data.join(SOCKET_FILE);
        if path.as_os_str().len() <= MAX_PATH || cfg!(not(target_os = "linux")) {
            return Ok(Self { path, _folder: None });
        }
        let folder = File::open(data)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET_FILE}", folder.as_raw_fd()));
        Ok(Self { path, _folder: Some(folder) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Listens there. The caller holds the data folder, so a socket that is there
    /// already was left by a process that was killed.
    pub fn listen(data: &Path) -> io::Result<UnixListener> {
        remove(&data.join(SOCKET_FILE))?;
        let socket = Self::of(data)?;
        let listener = UnixListener::bind(&socket.path)?;
        std::fs::set_permissions(&socket.path, Permissions::from_mode(0o600))?;
        Ok(listener)
    }
}

/// What `SERVER_FILE` holds: written when the server listens, taken away when
/// it stops; a killed server leaves it behind.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ServerFile {
    /// Where it listens, for people on this machine.
    pub url: String,
    pub pid: u32,
    /// Where people on other machines reach it, if that was configured.
    #[serde(default)]
    pub public: Option<String>,
}

impl ServerFile {
    pub fn write(&self, data: &Path) -> io::Result<()> {
        let text = serde_json::to_string(self).map_err(io::Error::other)?;
        let temporary = data.join(format!("{SERVER_FILE}.new"));
        std::fs::write(&temporary, text + "\n")?;
        std::fs::rename(&temporary, data.join(SERVER_FILE))
    }

    /// None: no server wrote it, or it took it away again.
    pub fn read(data: &Path) -> Option<Self> {
        serde_json::from_str(&std::fs::read_to_string(data.join(SERVER_FILE)).ok()?).ok()
    }
}

/// Takes away what leads to the server of this folder, which stops, or which
/// was killed.
pub fn leave(data: &Path) -> io::Result<()> {
    remove(&data.join(SERVER_FILE)).and(remove(&data.join(SOCKET_FILE)))
}

fn remove(file: &Path) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_socket_is_its_owners_and_takes_the_place_of_one_that_was_left() {
        let folder = tempfile::tempdir().unwrap();
        // Longer than the system takes as the path of a socket.
        let long = folder.path().join("d".repeat(120)).join("e".repeat(120));
        std::fs::create_dir_all(&long).unwrap();
        let folders: &[&Path] = if cfg!(target_os = "linux") { &[folder.path(), &long] } else { &[folder.path()] };
        for data in folders {
            drop(Socket::listen(data).unwrap());
            let listener = Socket::listen(data).unwrap();
            let file = std::fs::metadata(data.join(SOCKET_FILE)).unwrap();
            assert_eq!(file.permissions().mode() & 0o777, 0o600);
            let socket = Socket::of(data).unwrap();
            let (there, here) = tokio::join!(tokio::net::UnixStream::connect(socket.path()), listener.accept());
            assert!(there.is_ok() && here.is_ok());

            ServerFile { url: "http://x".into(), pid: 1, public: None }.write(data).unwrap();
            leave(data).unwrap();
            leave(data).unwrap();
            assert!(ServerFile::read(data).is_none() && !data.join(SOCKET_FILE).exists());
        }
    }
}
