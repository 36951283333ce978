//! The token in the data folder: how the command line of the same person on
//! the same machine is the local user at the running server. It is made anew
//! at each start and ends with the process, so one that was taken from a
//! killed server opens nothing afterwards.

use std::path::Path;

use super::process_secret::ProcessSecret;
use super::secret::Presented;
use super::{AuthError, Identity, LOCAL_USER, UserDirectory, UserError, Users, Via, tokens};

/// The token file's name in the data folder; its mode is 0600.
pub const CLI_TOKEN_FILE: &str = "cli-token";
/// What it begins with.
const PREFIX: &str = "atc_";
/// The name of the token that earlier versions stored and kept from one start
/// to the next.
const STORED_NAME: &str = "cli";

impl Users {
    /// Writes a token of the local user into the data folder; once in a process.
    /// With the local user gone or disabled there is none.
    pub async fn admit_cli(&self, data: &Path) -> Result<(), UserError> {
        let file = data.join(CLI_TOKEN_FILE);
        self.revoke_stored(&file).await?;
        if !self.enabled(LOCAL_USER).map_err(UserError::Database)? {
            let _ = std::fs::remove_file(&file);
            return Ok(());
        }
        let secret = ProcessSecret::in_file(PREFIX, file).map_err(UserError::TokenFile)?;
        let _ = self.cli.set(secret);
        Ok(())
    }

    /// Takes the token's file away when the process stops.
    pub fn dismiss_cli(&self) {
        if let Some(secret) = self.cli.get() {
            secret.leave();
        }
    }

    /// Ends the token that an earlier version left in the folder.
    async fn revoke_stored(&self, file: &Path) -> Result<(), UserError> {
        let left = std::fs::read_to_string(file).unwrap_or_default();
        let Some(left) = Presented::parse(tokens::PREFIX, left.trim()) else { return Ok(()) };
        let stored = self.read(|rows| rows.tokens(Some(LOCAL_USER)))?;
        match stored.iter().any(|token| token.id == left.id && token.name == STORED_NAME) {
            true => self.revoke_token(left.id).await,
            false => Ok(()),
        }
    }

    /// Who presents this token. None: it is not of this kind.
    pub(super) fn authenticate_cli(&self, text: &str) -> Option<Result<Identity, AuthError>> {
        let secret = self.cli.get().filter(|secret| secret.admits(text))?;
        Some(match self.enabled(LOCAL_USER) {
            Ok(true) => Ok(Identity { user: LOCAL_USER.into(), via: Via::Token, id: secret.id().into() }),
            Ok(false) => Err(AuthError::Disabled),
            Err(error) => Err(AuthError::Database(error)),
        })
    }

    /// Whether this caller was let in by the token in the folder.
    pub(super) fn is_cli(&self, identity: &Identity) -> bool {
        identity.via == Via::Token && self.cli.get().is_some_and(|secret| secret.id() == identity.id)
    }
}
