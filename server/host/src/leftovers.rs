//! Processes of the agent that a killed server has left behind.
//!
//! A server has a file in a folder beside its store, locked for as long as it lives. The name of the file is
//! a mark in the environment of all processes of its agent. The next server of the store finds files
//! that nobody has locked, and ends the processes with their marks (Linux). Marks are random, so a
//! process of somebody else has none of them, whatever its id.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use acp_client::internal::{MARKS, kill_marked, with_mark};

/// How the name of a file ends.
const ENDING: &str = "lock";

/// The digits of a mark.
const DIGITS: usize = 32;

/// This server, alive until dropped.
#[derive(Debug)]
pub(super) struct Registered {
    mark: String,
    path: PathBuf,
    /// Locked; the system unlocks it when the process ends.
    _lock: File,
}

/// A server that has ended without removing its file.
#[derive(Debug)]
struct Killed {
    mark: String,
    path: PathBuf,
    /// Locked, so that no other server ends the same processes or takes the name.
    _lock: File,
}

impl Registered {
    /// Registers a server, and ends the processes of those that were killed. Returns how many it has
    /// ended. Blocks.
    ///
    /// # Errors
    ///
    /// When the folder or a file cannot be created.
    pub(super) fn new(folder: &Path) -> io::Result<(Self, usize)> {
        create(folder)?;
        let killed = killed(folder)?;
        let marks: Vec<_> = killed.iter().map(|killed| killed.mark.clone()).collect();
        let ended = match marks.is_empty() {
            true => 0,
            false => kill_marked(&marks),
        };
        for killed in killed {
            // One that stays is found again, without processes.
            let _ = fs::remove_file(&killed.path);
        }
        // Another server may take a file for that of a killed one before it is locked here.
        loop {
            let mut random = [0; DIGITS / 2];
            getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
            let mark: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
            let path = folder.join(&mark).with_extension(ENDING);
            let lock = private(OpenOptions::new().write(true).create_new(true)).open(&path)?;
            match lock.try_lock() {
                Ok(()) => {
                    let registered = Self {
                        mark,
                        path,
                        _lock: lock,
                    };
                    return Ok((registered, ended));
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Returns the variable that processes of the agent are started with.
    pub(super) fn variable(&self) -> (&'static str, OsString) {
        (MARKS, with_mark(std::env::var_os(MARKS), &self.mark))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // A file that stays is removed by the next server.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the servers of a folder that were killed.
fn killed(folder: &Path) -> io::Result<Vec<Killed>> {
    let mut killed = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_ours = path.extension().is_some_and(|ending| ending == ENDING);
        let mark = path.file_stem().and_then(|stem| stem.to_str());
        let Some(mark) = mark.filter(|mark| is_ours && is_mark(mark)) else {
            continue;
        };
        // One that has gone meanwhile is another server's.
        let Ok(file) = OpenOptions::new().write(true).open(&path) else {
            continue;
        };
        if file.try_lock().is_ok() {
            killed.push(Killed {
                mark: mark.to_owned(),
                path,
                _lock: file,
            });
        }
    }
    Ok(killed)
}

fn is_mark(name: &str) -> bool {
    name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn create(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    /// A process that is killed at the end of the test.
    struct Sleeper(Child);

    impl Sleeper {
        fn new(variable: Option<(&str, OsString)>) -> Self {
            let mut command = Command::new("sleep");
            command.arg("1000").env_remove(MARKS).envs(variable);
            let process = Self(command.spawn().unwrap());
            // Within `execve` it has no environment.
            let environment = format!("/proc/{}/environ", process.0.id());
            while fs::read(&environment).unwrap().is_empty() {
                std::thread::yield_now();
            }
            process
        }

        fn is_killed(&mut self) -> bool {
            self.0.try_wait().unwrap().is_some()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn processes_of_a_killed_server_are_ended_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("sessions.db.agents");
        let (killed, ended) = Registered::new(&folder).unwrap();
        assert_eq!(ended, 0);
        let mut left = Sleeper::new(Some(killed.variable()));
        let (living, ended) = Registered::new(&folder).unwrap();
        assert_eq!(ended, 0, "its server lives");
        let mut others = [
            Sleeper::new(Some(living.variable())),
            Sleeper::new(None),
            Sleeper::new(Some((MARKS, "another".into()))),
        ];
        // As the system does it at the end of a process: the file stays.
        let Registered { path, _lock, .. } = &killed;
        _lock.unlock().unwrap();
        fs::write(folder.join("notes.txt"), "").unwrap();
        let (_third, ended) = Registered::new(&folder).unwrap();
        assert_eq!(ended, 1);
        assert!(left.is_killed());
        assert!(!path.exists());
        assert!(others.iter_mut().all(|other| !other.is_killed()));
        let (_fourth, ended) = Registered::new(&folder).unwrap();
        assert_eq!(ended, 0);
        assert!(folder.join("notes.txt").exists());
    }
}
