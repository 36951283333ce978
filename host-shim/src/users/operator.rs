//! The operator: whoever may read the data folder. The commands `users`,
//! `tokens` and `backup` need nothing else; those that ask the running server
//! present a secret that it wrote into the folder when it started.
//!
//! The secret is no user's. It opens the operator's routes and no other, and no
//! user's token or session opens them. It ends with the process.

use std::path::{Path, PathBuf};

use super::cli_token::write_private;
use super::secret::{Presented, Secret};

/// The name of the secret's file in the data folder; its mode is 0600.
pub const OPERATOR_TOKEN_FILE: &str = "operator-token";
const PREFIX: &str = "ato_";

/// The operator of one serving process.
pub struct Operator {
    id: String,
    hash: [u8; 32],
    /// Where the secret was written. Absent: nowhere.
    file: Option<PathBuf>,
}

impl Operator {
    /// A new operator, and its secret in the only moment in which it is known.
    /// Fails only where the system has no random numbers.
    pub fn generate() -> anyhow::Result<(Self, String)> {
        let Secret { id, text, hash } = Secret::new(PREFIX)?;
        Ok((Self { id, hash, file: None }, text))
    }

    /// A new operator whose secret lies in the data folder, in the place of the
    /// one that a killed process left there.
    pub fn in_folder(data: &Path) -> anyhow::Result<Self> {
        let (operator, secret) = Self::generate()?;
        let file = data.join(OPERATOR_TOKEN_FILE);
        write_private(&file, &secret)
            .map_err(|e| anyhow::anyhow!("cannot write the operator's token {}: {e}", file.display()))?;
        Ok(Self { file: Some(file), ..operator })
    }

    /// Whether this is the operator's secret; compared in constant time.
    pub fn admits(&self, presented: &str) -> bool {
        Presented::parse(PREFIX, presented).is_some_and(|secret| secret.id == self.id && secret.matches(&self.hash))
    }

    /// Takes the secret's file away when the process stops. A file that a
    /// newer process wrote in its place stays.
    pub fn leave(&self) {
        let Some(file) = &self.file else { return };
        if std::fs::read_to_string(file).is_ok_and(|text| self.admits(text.trim())) {
            let _ = std::fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_secret_is_the_operator() {
        let (one, secret) = Operator::generate().unwrap();
        let (_, other) = Operator::generate().unwrap();
        assert!(one.admits(&secret));
        for bad in ["", &other, &secret[..secret.len() - 1], &secret.replace("ato_", "att_"), &secret.to_uppercase()] {
            assert!(!one.admits(bad), "{bad}");
        }
    }

    #[test]
    fn the_secret_lies_in_the_folder_for_its_reader_alone_and_leaves_with_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(OPERATOR_TOKEN_FILE);
        let old = Operator::in_folder(folder.path()).unwrap();
        let new = Operator::in_folder(folder.path()).unwrap();
        let secret = std::fs::read_to_string(&file).unwrap();
        assert!(new.admits(secret.trim()) && !old.admits(secret.trim()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        old.leave();
        assert!(file.exists(), "another process's secret stays");
        new.leave();
        assert!(!file.exists());
    }
}
