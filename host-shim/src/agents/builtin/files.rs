//! Files in the workspace folder of a conversation, with no way out of it:
//! paths are walked folder by folder from an open handle, and no step follows
//! a symbolic link.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Value, json};

/// Bytes that one read gives.
pub const MAX_READ: u64 = 24_000;
/// Bytes of one file.
pub const MAX_FILE: usize = 1024 * 1024;
/// Files and bytes of one workspace.
pub const MAX_FILES: usize = 1_000;
pub const MAX_TOTAL: u64 = 64 * 1024 * 1024;
const MAX_DEPTH: usize = 16;
const MAX_COMPONENT: usize = 200;
/// Entries of one list.
const MAX_LIST: usize = 300;
/// Files under this prefix are writes that have not finished.
const PARTIAL: &str = ".partial-";

/// A refusal, for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    pub code: &'static str,
    pub message: String,
}

type Result<T> = std::result::Result<T, FileError>;

fn refuse<T>(code: &'static str, message: impl Into<String>) -> Result<T> {
    Err(FileError { code, message: message.into() })
}

/// The texts of the system's errors hold no path.
fn system(e: impl Into<std::io::Error>) -> FileError {
    let kind = e.into().kind();
    FileError { code: "file_error", message: format!("The file system refused: {kind}.") }
}

/// One conversation's folder. It is made at the first write.
pub struct Workspace {
    root: PathBuf,
}

/// Splits a path into its components; refuses everything that could leave.
fn components(path: &str) -> Result<Vec<&str>> {
    let legal = "Use a relative path such as notes/plan.md.";
    if path.is_empty() || path.len() > 1024 {
        return refuse("bad_path", format!("The path is empty or too long. {legal}"));
    }
    let parts: Vec<&str> = path.split('/').collect();
    if parts.len() > MAX_DEPTH {
        return refuse("bad_path", format!("The path has more than {MAX_DEPTH} parts."));
    }
    for part in &parts {
        let bad = part.is_empty()
            || *part == "."
            || *part == ".."
            || part.len() > MAX_COMPONENT
            || part.starts_with(PARTIAL)
            || part.chars().any(|c| c.is_control() || c == '\\');
        if bad {
            return refuse("bad_path", format!("A part of the path is not allowed. {legal}"));
        }
    }
    Ok(parts)
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn open_folder(at: &OwnedFd, name: &str, make: bool) -> Result<OwnedFd> {
    match rustix::fs::openat(at, name, FOLDER, Mode::empty()) {
        Err(Errno::NOENT) if make => match rustix::fs::mkdirat(at, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => open_folder(at, name, false),
            Err(e) => Err(system(e)),
        },
        Err(Errno::NOENT) => refuse("no_file", "There is no such file or folder."),
        Err(Errno::LOOP | Errno::NOTDIR) => refuse("bad_path", "A part of the path is not a folder."),
        other => other.map_err(system),
    }
}

impl Workspace {
    /// The workspace in this folder; nothing is touched yet.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn open_root(&self, make: bool) -> Result<OwnedFd> {
        if make {
            let mut builder = std::fs::DirBuilder::new();
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.recursive(true).create(&self.root).map_err(system)?;
        }
        match rustix::fs::open(&self.root as &Path, FOLDER, Mode::empty()) {
            Err(Errno::NOENT) => refuse("no_file", "There is no such file or folder."),
            other => other.map_err(system),
        }
    }

    fn open_parent<'a>(&self, path: &'a str, make: bool) -> Result<(OwnedFd, &'a str)> {
        let mut parts = components(path)?;
        let name = parts.pop().unwrap_or_default();
        let mut at = self.open_root(make)?;
        for part in parts {
            at = open_folder(&at, part, make)?;
        }
        Ok((at, name))
    }

    /// Up to `MAX_READ` bytes of a file from `offset`, as text.
    pub fn read(&self, path: &str, offset: u64) -> Result<Value> {
        let (at, name) = self.open_parent(path, false)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&at, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return refuse("no_file", "There is no such file."),
            Err(Errno::LOOP) => return refuse("bad_path", "Symbolic links are not followed."),
            Err(e) => return Err(system(e)),
        };
        let stat = rustix::fs::fstat(&fd).map_err(system)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return refuse("bad_path", "This is not a file.");
        }
        let mut file = File::from(fd);
        file.seek(SeekFrom::Start(offset)).map_err(system)?;
        let mut bytes = Vec::new();
        file.take(MAX_READ).read_to_end(&mut bytes).map_err(system)?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let mut end = bytes.len();
        if offset.saturating_add(end as u64) < size {
            // Go on at the beginning of a character, not inside it.
            end -= incomplete_tail(&bytes);
        }
        let next = offset.saturating_add(end as u64);
        let mut answer = json!({"path": path, "size": size, "text": String::from_utf8_lossy(&bytes[..end])});
        if next < size && end > 0 {
            answer["truncated"] = json!(true);
            answer["next_offset"] = json!(next);
        }
        Ok(answer)
    }

    /// Replaces a file as a whole, or makes it. A repetition changes nothing.
    pub fn write(&self, path: &str, text: &str, call: &str) -> Result<Value> {
        if text.len() > MAX_FILE {
            return refuse("too_large", format!("A file may have {MAX_FILE} bytes; this has {}.", text.len()));
        }
        components(path)?;
        let used = self.walk(MAX_FILES)?;
        let bytes: u64 = used.iter().filter(|e| e.path != path).map(|e| e.size).sum();
        if used.len() >= MAX_FILES && !used.iter().any(|e| e.path == path) {
            return refuse("too_many_files", format!("The workspace may hold {MAX_FILES} files and folders."));
        }
        if bytes + text.len() as u64 > MAX_TOTAL {
            return refuse("workspace_full", format!("The workspace may hold {MAX_TOTAL} bytes."));
        }
        let (at, name) = self.open_parent(path, true)?;
        match rustix::fs::statat(&at, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => {
                return refuse("bad_path", "There is something else than a file under this path.");
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(e) => return Err(system(e)),
        }
        let partial = format!("{PARTIAL}{call}");
        let _ = rustix::fs::unlinkat(&at, &partial, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&at, &partial, flags, Mode::RUSR | Mode::WUSR).map_err(system)?);
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        let renamed = written
            .and_then(|()| rustix::fs::renameat(&at, &partial, &at, name).map_err(Into::into))
            .and_then(|()| rustix::fs::fsync(&at).map_err(Into::into));
        if let Err(e) = renamed {
            let _ = rustix::fs::unlinkat(&at, &partial, AtFlags::empty());
            return Err(system(e));
        }
        Ok(json!({"path": path, "bytes": text.len()}))
    }

    /// Files and folders below the workspace, by path.
    pub fn list(&self) -> Result<Value> {
        let mut entries = self.walk(MAX_FILES)?;
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let total = entries.len();
        entries.truncate(MAX_LIST);
        let files: Vec<Value> = entries
            .into_iter()
            .map(|e| if e.folder { json!({"folder": e.path}) } else { json!({"file": e.path, "bytes": e.size}) })
            .collect();
        Ok(json!({"entries": files, "total": total, "truncated": total > MAX_LIST}))
    }

    fn walk(&self, limit: usize) -> Result<Vec<Entry>> {
        let mut out = Vec::new();
        match self.open_root(false) {
            Ok(root) => walk(&root, "", 1, limit, &mut out)?,
            Err(e) if e.code == "no_file" => {}
            Err(e) => return Err(e),
        }
        Ok(out)
    }
}

struct Entry {
    path: String,
    folder: bool,
    size: u64,
}

fn walk(at: &OwnedFd, prefix: &str, depth: usize, limit: usize, out: &mut Vec<Entry>) -> Result<()> {
    for entry in Dir::read_from(at).map_err(system)? {
        let entry = entry.map_err(system)?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if name == "." || name == ".." || name.starts_with(PARTIAL) {
            continue;
        }
        if out.len() >= limit {
            break;
        }
        let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
        let stat = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW).map_err(system)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                out.push(Entry { path, folder: false, size: u64::try_from(stat.st_size).unwrap_or(0) });
            }
            FileType::Directory => {
                out.push(Entry { path: path.clone(), folder: true, size: 0 });
                if depth < MAX_DEPTH {
                    walk(&open_folder(at, name, false)?, &path, depth + 1, limit, out)?;
                }
            }
            // Links and devices were not made by the tools: not shown.
            _ => {}
        }
    }
    Ok(())
}

/// Bytes at the end that begin a character without ending it.
fn incomplete_tail(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => bytes.len() - e.valid_up_to(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("workspaces/one");
        (dir, Workspace::new(root))
    }

    #[test]
    fn files_are_written_listed_and_read_back() {
        let (_dir, w) = workspace();
        assert_eq!(w.list().unwrap()["total"], 0);
        w.write("notes/计划.md", "one", "c1").unwrap();
        w.write("notes/计划.md", "two", "c2").unwrap();
        assert_eq!(w.read("notes/计划.md", 0).unwrap()["text"], "two");
        assert_eq!(w.list().unwrap()["total"], 2);
        assert_eq!(w.read("none", 0).unwrap_err().code, "no_file");
        assert_eq!(w.read("notes", 0).unwrap_err().code, "bad_path");
        assert_eq!(w.write("notes", "x", "c3").unwrap_err().code, "bad_path");
    }

    #[test]
    fn sec_6_no_path_leads_out() {
        let (dir, w) = workspace();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        w.write("a", "x", "c").unwrap();
        let long = "a".repeat(MAX_COMPONENT + 1);
        let deep = "a/".repeat(MAX_DEPTH) + "b";
        for path in
            ["", "/etc/passwd", "..", "../secret", "b/../../secret", "./a", "a//b", "b/", "a\\b", "a\0b", &long, &deep]
        {
            assert_eq!(w.read(path, 0).unwrap_err().code, "bad_path", "{path:?}");
            assert_eq!(w.write(path, "x", "c").unwrap_err().code, "bad_path", "{path:?}");
        }
        let root = dir.path().join("workspaces/one");
        std::os::unix::fs::symlink(dir.path().join("secret"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(dir.path(), root.join("up")).unwrap();
        for path in ["link", "up/secret", "up/new"] {
            assert_eq!(w.read(path, 0).unwrap_err().code, "bad_path", "{path}");
            assert_eq!(w.write(path, "x", "c").unwrap_err().code, "bad_path", "{path}");
        }
        assert_eq!(w.list().unwrap()["total"], 1);
        assert_eq!(std::fs::read_to_string(dir.path().join("secret")).unwrap(), "s");
        assert!(!dir.path().join("new").exists());
    }

    #[test]
    fn uni_1_a_long_file_is_read_in_parts_between_characters() {
        let (_dir, w) = workspace();
        for pad in 0..4 {
            let text = "a".repeat(pad) + &"😀".repeat(MAX_READ as usize / 2);
            w.write("f", &text, "c").unwrap();
            let (mut offset, mut read) = (0, String::new());
            loop {
                let part = w.read("f", offset).unwrap();
                read.push_str(part["text"].as_str().unwrap());
                match part["next_offset"].as_u64() {
                    Some(next) => offset = next,
                    None => break,
                }
            }
            assert_eq!(read, text);
        }
        assert_eq!(w.write("f", &"a".repeat(MAX_FILE + 1), "c").unwrap_err().code, "too_large");
        w.write("f", &"a".repeat(MAX_FILE), "c").unwrap();
    }
}
