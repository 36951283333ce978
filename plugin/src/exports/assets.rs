//! The page: static files that are part of the component. A host serves them as
//! they are; nothing of them is made at build time or when they are read.

use alloc::string::String;

use sha2::{Digest, Sha256};

use crate::domain::error::{Error, Kind, Result};
use crate::domain::ids;

/// One file of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// Relative, with `/`; `index.html` is the page itself.
    pub path: &'static str,
    pub media_type: &'static str,
    pub body: &'static [u8],
}

impl File {
    /// SHA-256 of the bytes, in hexadecimal.
    pub fn sha256(&self) -> String {
        ids::hex(&Sha256::digest(self.body))
    }
}

const HTML: &str = "text/html; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

macro_rules! files {
    ($($media_type:ident, $path:literal;)*) => {
        /// All files, by path.
        pub const FILES: &[File] = &[$(File {
            path: $path,
            media_type: $media_type,
            body: include_bytes!(concat!("../../web/", $path)),
        }),*];
    };
}

files! {
    CSS, "css/base.css";
    CSS, "css/page.css";
    HTML, "index.html";
    JS, "js/api.js";
    JS, "js/commands.js";
    JS, "js/drafts.js";
    JS, "js/find.js";
    JS, "js/i18n.js";
    JS, "js/live.js";
    JS, "js/main.js";
    JS, "js/markdown.js";
    JS, "js/store.js";
    JS, "js/text.js";
    JS, "js/theme.js";
    JS, "js/time.js";
    JS, "js/views/answer.js";
    JS, "js/views/board.js";
    JS, "js/views/composer.js";
    JS, "js/views/conversation.js";
    JS, "js/views/create.js";
    JS, "js/views/feed.js";
    JS, "js/views/members.js";
    JS, "js/views/now.js";
    JS, "js/views/parts.js";
    JS, "js/views/search.js";
    JS, "js/views/shell.js";
    JS, "js/views/state-tab.js";
    JS, "js/views/task.js";
    JS, "js/views/task-parts.js";
    JS, "js/views/team.js";
    JS, "locales/en.js";
    JS, "locales/zh.js";
    TEXT, "vendor/LICENSES.txt";
    JS, "vendor/lit-html.js";
    JS, "vendor/micromark.js";
}

/// One file. An unknown path is not found.
pub fn read(path: &str) -> Result<&'static File> {
    FILES
        .iter()
        .find(|file| file.path == path)
        .ok_or_else(|| Error::new(Kind::NotFound, "asset_not_found", "The page has no such file."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;
    use alloc::vec::Vec;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn web() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/web"))
    }

    fn walk(folder: &Path, found: &mut BTreeSet<std::string::String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.insert(path.strip_prefix(web()).unwrap().to_str().unwrap().replace('\\', "/"));
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_in_the_list() {
        let mut there = BTreeSet::new();
        walk(web(), &mut there);
        // How the vendored files were made is for readers of the repository.
        there.retain(|path| !["vendor/README.md", "vendor/manifest.json"].contains(&path.as_str()));
        let listed: BTreeSet<std::string::String> = FILES.iter().map(|file| file.path.to_string()).collect();
        assert_eq!(listed, there);
        assert_eq!(listed.len(), FILES.len(), "no path twice");
    }

    #[test]
    fn vendored_files_are_those_of_the_manifest() {
        let manifest = std::fs::read_to_string(web().join("vendor/manifest.json")).unwrap();
        let manifest: std::collections::BTreeMap<std::string::String, std::string::String> =
            serde_json::from_str(&manifest).unwrap();
        for (name, sha256) in &manifest {
            assert_eq!(read(&format!("vendor/{name}")).unwrap().sha256(), *sha256, "{name}");
        }
        let vendored = FILES.iter().filter(|file| file.path.starts_with("vendor/")).count();
        assert_eq!(vendored, manifest.len());
    }

    #[test]
    fn every_import_leads_to_a_file() {
        for file in FILES.iter().filter(|f| f.path.ends_with(".js") && !f.path.starts_with("vendor/")) {
            let text = core::str::from_utf8(file.body).unwrap();
            for line in text.lines().filter(|l| l.starts_with("import ") || l.starts_with("} from ")) {
                let Some(target) = line.split('\'').nth(1) else { continue };
                let mut parts: Vec<&str> = file.path.split('/').collect();
                parts.pop();
                for part in target.split('/') {
                    match part {
                        "." => {}
                        ".." => {
                            parts.pop();
                        }
                        part => parts.push(part),
                    }
                }
                assert!(read(&parts.join("/")).is_ok(), "{}: {target}", file.path);
            }
        }
    }

    #[test]
    fn an_unknown_path_is_refused() {
        for path in ["", "/index.html", "../Cargo.toml", "js/../index.html", "INDEX.HTML"] {
            assert_eq!(read(path).unwrap_err().code, "asset_not_found", "{path}");
        }
    }
}
