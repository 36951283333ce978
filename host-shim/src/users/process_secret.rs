//! Secrets that a serving process writes into its data folder, for those who
//! may read the folder. They are stored nowhere else, and end with the process.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::secret::{Presented, Secret};

/// One such secret.
pub(super) struct ProcessSecret {
    prefix: &'static str,
    id: String,
    hash: [u8; 32],
    /// Where it was written. Absent: nowhere.
    file: Option<PathBuf>,
}

impl ProcessSecret {
    /// A new one, and its text in the only moment in which it is known. Fails
    /// only where the system has no random numbers.
    pub(super) fn generate(prefix: &'static str) -> anyhow::Result<(Self, String)> {
        let Secret { id, text, hash } = Secret::new(prefix)?;
        Ok((Self { prefix, id, hash, file: None }, text))
    }

    /// A new one in this file, in the place of the one that a killed process
    /// left there.
    pub(super) fn in_file(prefix: &'static str, file: PathBuf) -> anyhow::Result<Self> {
        let (secret, text) = Self::generate(prefix)?;
        write_private(&file, &text).map_err(|e| anyhow::anyhow!("cannot write {}: {e}", file.display()))?;
        Ok(Self { file: Some(file), ..secret })
    }

    /// Public.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Whether this is the secret; compared in constant time.
    pub(super) fn admits(&self, presented: &str) -> bool {
        Presented::parse(self.prefix, presented)
            .is_some_and(|secret| secret.id == self.id && secret.matches(&self.hash))
    }

    /// Takes the file away when the process stops. One that a newer process
    /// wrote in its place stays.
    pub(super) fn leave(&self) {
        let Some(file) = &self.file else { return };
        if std::fs::read_to_string(file).is_ok_and(|text| self.admits(text.trim())) {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Writes the file whole or not at all, readable by its owner alone from the
/// first moment.
fn write_private(file: &Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let temporary = file.with_extension("new");
    match std::fs::remove_file(&temporary) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut handle = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    writeln!(handle, "{text}")?;
    handle.sync_all()?;
    std::fs::rename(&temporary, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_itself_is_admitted() {
        let (one, secret) = ProcessSecret::generate("ato_").unwrap();
        let (_, other) = ProcessSecret::generate("ato_").unwrap();
        assert!(one.admits(&secret));
        for bad in ["", &other, &secret[..secret.len() - 1], &secret.replace("ato_", "att_"), &secret.to_uppercase()] {
            assert!(!one.admits(bad), "{bad}");
        }
    }

    #[test]
    fn it_lies_in_the_folder_for_its_reader_alone_and_leaves_with_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let old = ProcessSecret::in_file("ato_", file.clone()).unwrap();
        let new = ProcessSecret::in_file("ato_", file.clone()).unwrap();
        let secret = std::fs::read_to_string(&file).unwrap();
        assert!(new.admits(secret.trim()) && !old.admits(secret.trim()));
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        old.leave();
        assert!(file.exists(), "another process's secret stays");
        new.leave();
        assert!(!file.exists());
    }
}
