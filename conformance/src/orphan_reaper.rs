//! A second process that ends the agents when this one is killed.
//!
//! `SIGKILL` cannot be forwarded, and not every agent exits at the end of its input.
//! So the reaper waits for the end of a pipe that only this process holds. The pipe
//! reports each process group that is started, and each that has ended; those that are
//! left when the pipe ends are ended in steps. It reports working directories, too, and the
//! reaper removes those that still exist. Between the start of a group and its
//! report there is a moment in which only the end of its input would end it: [`exit`] waits
//! until it is over, a `SIGKILL` does not.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// How often groups that should end are polled: they are nobody's children here,
/// and no call of the system waits for a group.
const POLL: Duration = Duration::from_millis(20);

/// The guard of all agents that this process starts for tests.
static OF_THIS_PROCESS: OnceLock<Mutex<Guard>> = OnceLock::new();

/// Held while a group is started and not reported.
static STARTING: Mutex<()> = Mutex::new(());

/// A guard that stands by.
#[derive(Debug)]
struct Guard {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Starts `program guard SECONDS` in a group of its own, so that what is sent to
    /// our group does not reach it.
    fn start(program: &Path, grace: Duration) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg("guard")
            .arg(grace.as_secs_f64().to_string())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// A group was started.
    fn watch(&mut self, group: Pid) {
        self.tell('+', group.as_raw_nonzero());
    }

    /// A group has ended. To be called before its leader is reaped: afterwards its
    /// number may be a stranger's.
    fn forget(&mut self, group: Pid) {
        self.tell('-', group.as_raw_nonzero());
    }

    /// Sends the guard home; it ends what it still watches.
    fn dismiss(mut self) {
        self.pipe = None;
        let _ = self.child.wait();
    }

    /// A folder was made that goes at the latest when this process does.
    fn keep_tidy(&mut self, folder: &Path) {
        let folder = std::path::absolute(folder).ok();
        let name = folder.as_deref().and_then(Path::to_str);
        // One whose name does not fit on a line is left to its owner.
        if let Some(name) = name.filter(|name| !name.contains('\n')) {
            self.tell('/', name);
        }
    }

    fn tell(&mut self, what: char, whom: impl fmt::Display) {
        if let Some(pipe) = &mut self.pipe {
            // It is gone already if somebody has ended it.
            let _ = writeln!(pipe, "{what}{whom}");
        }
    }
}

/// From now on, agents that are started for tests do not outlive this process.
/// `program` calls [`stand`] when it is called `guard SECONDS`.
pub fn protect(program: &Path, grace: Duration) -> io::Result<()> {
    if OF_THIS_PROCESS.get().is_none() {
        let guard = Mutex::new(Guard::start(program, grace)?);
        // Another thread was faster; its guard does, and ours goes home.
        if let Err(guard) = OF_THIS_PROCESS.set(guard) {
            let guard = guard.into_inner();
            guard.unwrap_or_else(PoisonError::into_inner).dismiss();
        }
    }
    Ok(())
}

/// Returns what is held from before the start of a group until it is [watched](watch).
pub(crate) fn starting() -> MutexGuard<'static, ()> {
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends this process, whose agents the guard ends, each of them: not while one is started.
pub fn exit(code: i32) -> ! {
    let _starting = starting();
    std::process::exit(code)
}

/// Tells the guard of this process, if there is one, that a group was started.
pub(crate) fn watch(group: Pid) {
    with_ours(|guard| guard.watch(group));
}

/// Tells it that a group has ended; as [`Guard::forget`].
pub(crate) fn forget(group: Pid) {
    with_ours(|guard| guard.forget(group));
}

/// Tells it, if there is one, to remove a folder of this process when the process is gone.
pub(crate) fn keep_tidy(folder: &Path) {
    with_ours(|guard| guard.keep_tidy(folder));
}

fn with_ours(act: impl FnOnce(&mut Guard)) {
    if let Some(guard) = OF_THIS_PROCESS.get() {
        act(&mut guard.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Stands by until `pipe` ends, then ends the groups that are left: their input has
/// ended with whoever held the pipe, `grace` later comes `SIGTERM`, and again
/// `SIGKILL`. The folders that are left are removed.
pub fn stand(pipe: impl Read, grace: Duration) {
    let mut groups = BTreeSet::new();
    let mut folders = Vec::new();
    for line in BufReader::new(pipe).lines() {
        // An error is an end, too: nobody can tell us anything any more.
        let Ok(line) = line else { break };
        if let Some(folder) = line.strip_prefix('/') {
            folders.push(PathBuf::from(folder));
            continue;
        }
        let number = line.get(1..).and_then(|number| number.parse().ok());
        match (line.get(..1), number) {
            (Some("+"), Some(group)) => drop(groups.insert(group)),
            (Some("-"), Some(group)) => drop(groups.remove(&group)),
            _ => {}
        }
    }
    end(
        groups.into_iter().filter_map(Pid::from_raw).collect(),
        grace,
    );
    // Only now: agents that live write into them.
    for folder in folders {
        // Most are gone, with their owner.
        let _ = std::fs::remove_dir_all(folder);
    }
}

fn end(mut groups: Vec<Pid>, grace: Duration) {
    for signal in [Signal::TERM, Signal::KILL] {
        let deadline = Instant::now() + grace;
        while Instant::now() < deadline {
            groups.retain(|group| test_kill_process_group(*group).is_ok());
            if groups.is_empty() {
                return;
            }
            thread::sleep(POLL);
        }
        for group in &groups {
            // Fails when the group has ended, which is what is wanted.
            let _ = kill_process_group(*group, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell in a group of its own, once it has said that it is ready.
    fn group(script: &str) -> (Child, i32) {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut ready = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut ready).unwrap();
        let id = i32::try_from(child.id()).unwrap();
        (child, id)
    }

    /// Stands by for a group of this script whose input has ended, and says how it ended: its
    /// exit code, or the signal.
    fn ends(script: &str, grace: Duration) -> (Option<i32>, Option<i32>) {
        use std::os::unix::process::ExitStatusExt as _;
        let (mut child, id) = group(script);
        drop(child.stdin.take());
        // Reaped as soon as it ends: it is not there any more then.
        let ended = thread::spawn(move || child.wait().unwrap());
        stand(format!("+{id}\n").as_bytes(), grace);
        let status = ended.join().unwrap();
        (status.code(), status.signal())
    }

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(200);

    #[test]
    fn a_group_that_ends_with_its_input_is_left_in_peace() {
        let script = "trap 'exit 9' TERM; echo up; cat > /dev/null; sleep 0.2; exit 5";
        assert_eq!(ends(script, LONG), (Some(5), None));
    }

    #[test]
    fn a_group_that_does_not_is_asked_and_then_killed() {
        let asked = "trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done";
        assert_eq!(ends(asked, SHORT), (Some(9), None));
        // Ends by itself before the test does, should nobody kill it.
        let deaf = "trap '' TERM; echo up; for n in 1 2 3 4 5 6 7 8 9; do sleep 1; done";
        assert_eq!(ends(deaf, SHORT), (None, Some(9)));
    }

    #[test]
    fn a_group_that_has_ended_is_forgotten() {
        // Its number may be a stranger's by then.
        let script = "trap 'exit 9' TERM; echo up; cat > /dev/null; exit 5";
        let (mut stranger, id) = group(script);
        stand(format!("+{id}\n-{id}\n").as_bytes(), Duration::ZERO);
        drop(stranger.stdin.take());
        assert_eq!(stranger.wait().unwrap().code(), Some(5));
    }

    #[test]
    fn what_is_sent_to_our_group_does_not_reach_the_guard() {
        // Ends at once, and is there until it is waited for.
        let guard = Guard::start(Path::new("/bin/cat"), SHORT).unwrap();
        let id = Pid::from_child(&guard.child);
        assert_eq!(rustix::process::getpgid(Some(id)).ok(), Some(id));
        guard.dismiss();
    }

    #[test]
    fn a_folder_that_is_left_is_removed_when_the_pipe_ends() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("left");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("input.txt"), "one\n").unwrap();
        let gone = folder.path().join("gone");
        let told = format!("/{}\n/{}\n", left.display(), gone.display());
        stand(told.as_bytes(), Duration::ZERO);
        assert!(!left.exists() && folder.path().exists());
    }
}
