//! The token file of the data folder: how the command line of the same person
//! on the same machine reaches the running server.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::{LOCAL_USER, UserError, Users};

/// The token file's name in the data folder; its mode is 0600.
pub const CLI_TOKEN_FILE: &str = "cli-token";
/// The name under which its token is listed.
const NAME: &str = "cli";

impl Users {
    /// Makes sure that the data folder holds a working token of the local
    /// user, and answers with its path. A missing or spoilt file gets a new
    /// token, and the old ones of this name end. With the local user gone or
    /// disabled nothing is done and there is no path.
    pub async fn ensure_cli_token(&self, data: &Path) -> Result<Option<PathBuf>, UserError> {
        let usable = self.list()?.iter().any(|user| user.id == LOCAL_USER && user.enabled);
        if !usable {
            return Ok(None);
        }
        let file = data.join(CLI_TOKEN_FILE);
        if let Ok(text) = std::fs::read_to_string(&file)
            && self.authenticate_token(text.trim()).await.is_ok_and(|identity| identity.user == LOCAL_USER)
        {
            return Ok(Some(file));
        }
        for old in self.tokens(Some(LOCAL_USER))? {
            if old.name == NAME && old.revoked_at.is_none() {
                self.revoke_token(&old.id).await?;
            }
        }
        let token = self.add_token(LOCAL_USER, NAME).await?;
        write_private(&file, &token.secret)
            .map_err(|source| UserError::TokenFile { file: file.display().to_string(), source })?;
        Ok(Some(file))
    }
}

/// Writes the file whole or not at all, readable by its owner alone from the
/// first moment.
pub(super) fn write_private(file: &Path, text: &str) -> std::io::Result<()> {
    let temporary = file.with_extension("new");
    match std::fs::remove_file(&temporary) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let mut handle = options.open(&temporary)?;
    writeln!(handle, "{text}")?;
    handle.sync_all()?;
    std::fs::rename(&temporary, file)
}
