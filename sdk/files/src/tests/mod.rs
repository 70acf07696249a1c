//! Paths, and what is read and written by them.

#![allow(clippy::unwrap_used)]

mod content;
mod paths;
mod races;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

/// A workspace `in` beside a directory `out` that it must not reach.
struct Case {
    dir: tempfile::TempDir,
    roots: Roots,
}

impl Case {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("in/sub")).unwrap();
        fs::create_dir_all(dir.path().join("out")).unwrap();
        fs::write(dir.path().join("in/file"), "").unwrap();
        fs::write(dir.path().join("out/secret"), "secret").unwrap();
        let roots = Roots::open([dir.path().join("in")]).unwrap();
        Self { dir, roots }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn path(&self, path: &str) -> String {
        self.at(path).to_str().unwrap().to_owned()
    }

    fn link(&self, from: &str, to: &str) {
        symlink(self.at(to), self.at(from)).unwrap();
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn existing(&self, path: &str) -> Result<PathBuf, RpcError> {
        self.roots.existing(&self.path(path))
    }

    fn writable(&self, path: &str) -> Result<PathBuf, RpcError> {
        self.roots.writable(&self.path(path))
    }

    fn read(&self, path: &str) -> Result<String, RpcError> {
        read(&self.roots, &self.path(path), None, None, 12 << 20)
    }

    fn lines(&self, path: &str, line: u32, limit: Option<u32>) -> String {
        read(&self.roots, &self.path(path), Some(line), limit, 12 << 20).unwrap()
    }

    fn write(&self, path: &str, text: &str) -> Result<(), RpcError> {
        write(&self.roots, &self.path(path), text)
    }

    fn real(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path)
    }
}

fn fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[track_caller]
fn fails<T: std::fmt::Debug>(result: Result<T, RpcError>, code: ErrorCode, words: &str) {
    let error = result.expect_err("the path was let through");
    assert_eq!(error.code, code, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, RpcError>, words: &str) {
    fails(result, ErrorCode::INVALID_PARAMS, words);
}

/// Fails the test if `work` does not end.
fn unblocked<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let (done, is_done) = std::sync::mpsc::channel();
        scope.spawn(move || done.send(work()));
        let Ok(value) = is_done.recv_timeout(Duration::from_secs(30)) else {
            // The blocked thread would keep the test from ending.
            eprintln!("a call blocks");
            std::process::exit(101);
        };
        value
    })
}
