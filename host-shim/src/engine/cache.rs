//! Compiled code on disk. Compiling takes some hundred milliseconds, loading
//! what was compiled before less than one.
//!
//! Compiled code is machine code that runs with all rights of this process, so
//! only what this host wrote is loaded: the folder belongs to this user alone,
//! and a file starts with the hash of its content. Whatever looks wrong is
//! compiled again.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

const HASH_LEN: usize = 32;

/// The place of one component's code.
pub struct Cache {
    folder: PathBuf,
    file: PathBuf,
}

impl Cache {
    /// The key covers the component, Wasmtime's version and everything in the
    /// engine's configuration that changes code.
    pub fn new(folder: &Path, engine: &Engine, component: &[u8]) -> Self {
        let mut key = KeyHasher(Sha256::new());
        env!("CARGO_PKG_VERSION").hash(&mut key);
        engine.precompile_compatibility_hash().hash(&mut key);
        key.0.update(Sha256::digest(component));
        let name = format!("{}.cwasm", hex(&key.0.finalize()));
        Self { folder: folder.to_owned(), file: folder.join(name) }
    }

    /// The cached code, or nothing if there is none that can be trusted.
    pub fn load(&self, engine: &Engine) -> Option<Component> {
        match self.read() {
            Ok(code) => {
                // SAFETY: `code` came from a file with the right hash in a
                // folder that only this user can write to, so it is what
                // `store` wrote. Wasmtime checks version and configuration.
                let loaded = unsafe { Component::deserialize(engine, &code) };
                loaded.inspect_err(|e| tracing::debug!("cached code is not for this engine: {e:#}")).ok()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!("cached code is not used, the component is compiled again: {error}");
                None
            }
        }
    }

    /// Keeps the code. A failure costs only the next start's time.
    pub fn store(&self, component: &Component) {
        let written = component.serialize().map_err(io::Error::other).and_then(|code| self.write(&code));
        if let Err(error) = written {
            tracing::warn!("compiled code is not kept: {error}");
        }
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let mut content = fs::read(&self.file)?;
        check_private(&self.folder)?;
        if content.len() < HASH_LEN {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too short"));
        }
        let code = content.split_off(HASH_LEN);
        if Sha256::digest(&code).as_slice() != content {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is damaged"));
        }
        Ok(code)
    }

    fn write(&self, code: &[u8]) -> io::Result<()> {
        make_private(&self.folder)?;
        check_private(&self.folder)?;
        // A name of our own, then a rename: a reader sees all or nothing.
        let own = self.folder.join(format!("{}-{:016x}.tmp", std::process::id(), getrandom::u64().unwrap_or_default()));
        let written = (|| {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&own)?;
            file.write_all(&Sha256::digest(code))?;
            file.write_all(code)?;
            file.sync_all()?;
            fs::rename(&own, &self.file)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&own);
        }
        written
    }
}

#[cfg(unix)]
fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(unix)]
fn check_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let found = fs::symlink_metadata(folder)?;
    let denied = |why| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if !found.is_dir() {
        return denied("the cache is not a folder");
    }
    if found.mode() & 0o077 != 0 {
        return denied("the cache's folder is open to other users (chmod 700 it)");
    }
    // Where the system shows who we are: a folder of another user's is not
    // ours, even for an administrator who may read it.
    if fs::metadata("/proc/self").is_ok_and(|own| own.uid() != found.uid()) {
        return denied("the cache's folder belongs to another user");
    }
    Ok(())
}

#[cfg(not(unix))]
fn make_private(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

#[cfg(not(unix))]
fn check_private(_: &Path) -> io::Result<()> {
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Feeds what is hashed into SHA-256: the standard library's own hasher is
/// neither stable between releases nor long enough to be a name.
struct KeyHasher(Sha256);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let hash = self.0.clone().finalize();
        u64::from_le_bytes([hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7]])
    }
}
