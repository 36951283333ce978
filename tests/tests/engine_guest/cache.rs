//! Compiled code on disk: used when it is ours and whole, made again when not.

use std::fs;
use std::path::{Path, PathBuf};

use agent_teams_host::contract::CallError;
use agent_teams_host::engine::Options;
use agent_teams_tests::guest_component;

use crate::support::{Bench, bench_with, options};

const SAID: &[u8] = b"said the guest";

/// The test component with another text in it, so that one can tell whose
/// code runs.
fn saying(text: &[u8]) -> Vec<u8> {
    assert_eq!(text.len(), SAID.len());
    let mut bytes = guest_component().to_vec();
    let at = bytes.windows(SAID.len()).position(|window| window == SAID).unwrap();
    bytes[at..at + SAID.len()].copy_from_slice(text);
    bytes
}

fn load(component: &[u8], folder: &Path) -> Bench {
    bench_with(component, "{}", Options { cache: Some(folder.to_owned()), ..options() }).unwrap()
}

async fn said(bench: &Bench) -> String {
    match bench.act("refuse", "x").await {
        Err(CallError::Refused(refusal)) => refusal.message,
        other => panic!("{other:?}"),
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[tokio::test]
async fn code_is_kept_in_a_private_folder_and_used_the_next_time() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (cache, other) = (folder.path().join("new/cache"), folder.path().join("other"));
    assert_eq!(said(&load(guest_component(), &cache)).await, "said the guest");
    assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
    let [ours] = &files(&cache)[..] else { panic!("one file, and no leftovers") };

    // Another component's code under our name: what then runs tells that the
    // file was used.
    load(&saying(b"SAID THE CACHE"), &other);
    fs::copy(&files(&other)[0], ours).unwrap();
    assert_eq!(said(&load(guest_component(), &cache)).await, "SAID THE CACHE");
}

#[tokio::test]
async fn another_component_has_code_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    load(guest_component(), &cache);
    assert_eq!(said(&load(&saying(b"said the other"), &cache)).await, "said the other");
    assert_eq!(files(&cache).len(), 2);
}

#[tokio::test]
async fn damaged_code_is_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    load(guest_component(), &cache);
    let file = files(&cache).remove(0);
    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [&flipped[..], &whole[..whole.len() - 1], &whole[..10], b""] {
        fs::write(&file, damaged).unwrap();
        assert_eq!(said(&load(guest_component(), &cache)).await, "said the guest");
        assert_ne!(fs::read(&file).unwrap(), damaged, "good code is kept in its place");
    }
}

#[tokio::test]
async fn a_folder_that_others_can_write_to_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let other = folder.path().join("other");
    load(guest_component(), &cache);
    load(&saying(b"SAID AN ENEMY!"), &other);
    fs::copy(&files(&other)[0], &files(&cache)[0]).unwrap();
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(said(&load(guest_component(), &cache)).await, "said the guest");
}
