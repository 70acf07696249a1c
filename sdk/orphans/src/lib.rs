//! Ends process groups when the process that started them is killed, on Unix.
//!
//! `SIGKILL` cannot be handled, and not every program exits at the end of its input. So a shell waits for the
//! end of a pipe that only this process holds. The pipe reports each process group that is to end with this process, and each
//! that has ended. The shell ends those that are left: `SIGTERM` follows the end of their input after 2 s, then
//! `SIGKILL` after another 2 s. A library has no other program that could wait; one shell serves the whole process.
//!
//! Survivors: a process that has left its group, and a group that has not been reported yet: it was started a
//! moment ago.
//!
//! ```no_run
//! # #[cfg(unix)] {
//! use std::os::unix::process::CommandExt as _;
//!
//! let mut child = std::process::Command::new("sleep").arg("600").process_group(0).spawn()?;
//! let ends_with_host = acp_orphans::end_with_host(child.id());
//! // Before the leader is reaped, because the system may reuse its id.
//! child.kill()?;
//! drop(ends_with_host);
//! child.wait()?;
//! # }
//! # Ok::<(), std::io::Error>(())
//! ```

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of tenths of a second between the steps.
const GRACE: u32 = 20;

/// `$1` is the number of tenths. Signals to the group of this process do not reach the shell.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
groups=' '
while read -r change group; do
    case $change in
        +) groups="$groups$group " ;;
        -) groups="${groups%% "$group" *} ${groups#* "$group" }" ;;
    esac
done
for signal in TERM KILL; do
    left=$1
    while [ "$left" -gt 0 ]; do
        running=
        for group in $groups; do
            kill -s 0 -- "-$group" 2>/dev/null && running="$running $group"
        done
        groups=$running
        [ -n "$groups" ] || exit 0
        sleep 0.1
        left=$((left - 1))
    done
    for group in $groups; do
        kill -s "$signal" -- "-$group" 2>/dev/null
    done
done
"#;

/// The shell of this process, once there is a group.
static REAPER: Mutex<Option<Reaper>> = Mutex::new(None);

/// A shell that waits.
#[derive(Debug)]
struct Reaper {
    /// Kept, so that its exit is not waited for.
    _shell: Child,
    pipe: ChildStdin,
    groups: BTreeSet<u32>,
}

impl Reaper {
    fn start(grace: u32) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command
            .args(["-c", SCRIPT, "acp-orphans"])
            .arg(grace.to_string())
            .current_dir("/")
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut shell = command.spawn()?;
        let pipe = shell.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            _shell: shell,
            pipe,
            groups: BTreeSet::new(),
        })
    }

    fn watch(&mut self, group: u32) -> io::Result<()> {
        self.groups.insert(group);
        writeln!(self.pipe, "+ {group}")
    }

    fn forget(&mut self, group: u32) -> io::Result<()> {
        match self.groups.remove(&group) {
            true => writeln!(self.pipe, "- {group}"),
            false => Ok(()),
        }
    }
}

/// A process group that ends when this process is killed.
///
/// Must be dropped before the leader of the group is reaped: afterwards the system may give its id to another
/// group.
#[derive(Debug)]
#[must_use = "a group whose value is dropped is left alone"]
pub struct EndsWithHost(u32);

/// Ends a process group when this process is killed, as long as the value exists. Its id is the process id of its
/// leader. Elsewhere than on Unix this does nothing.
///
/// If there is no shell `sh`, a warning is logged, and the next call tries again.
pub fn end_with_host(group: u32) -> EndsWithHost {
    if cfg!(unix) {
        let mut reaper = reaper();
        let watched = match &mut *reaper {
            Some(reaper) => reaper.watch(group),
            None => Reaper::start(GRACE).and_then(|started| reaper.insert(started).watch(group)),
        };
        if let Err(error) = watched {
            tracing::warn!(%error, "cannot ensure that processes end when this one is killed");
            *reaper = None;
        }
    }
    EndsWithHost(group)
}

impl Drop for EndsWithHost {
    fn drop(&mut self) {
        let mut reaper = reaper();
        // An error means that the shell was killed, so that it does nothing.
        if let Some(Err(_)) = reaper.as_mut().map(|reaper| reaper.forget(self.0)) {
            *reaper = None;
        }
    }
}

fn reaper() -> MutexGuard<'static, Option<Reaper>> {
    REAPER.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::thread;

    use super::*;

    /// Starts a shell that leads a group, once it has written a line.
    fn group(script: &str) -> Child {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut ready = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut ready).unwrap();
        child
    }

    /// Returns how a group ends when the process that watches it and `others` has ended.
    fn end(script: &str, grace: u32, others: &[u32]) -> (Option<i32>, Option<i32>) {
        let mut child = group(script);
        let mut reaper = Reaper::start(grace).unwrap();
        for other in others {
            reaper.watch(*other).unwrap();
        }
        reaper.watch(child.id()).unwrap();
        for other in others {
            reaper.forget(*other).unwrap();
        }
        drop((child.stdin.take(), reaper));
        // Reaped at once: the shell does not find it any more then.
        let status = thread::spawn(move || child.wait().unwrap()).join().unwrap();
        (status.code(), status.signal())
    }

    #[test]
    fn a_group_that_exits_at_the_end_of_its_input_gets_no_signal() {
        let script = "trap 'exit 9' TERM; echo up; cat > /dev/null; exit 5";
        assert_eq!(end(script, 200, &[]), (Some(5), None));
    }

    #[test]
    fn other_groups_are_terminated_and_then_killed() {
        let script = "trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done";
        assert_eq!(end(script, 2, &[]), (Some(9), None));
        // Exits before the test does, should nothing kill it.
        let script = "trap '' TERM; echo up; for n in 1 2 3 4 5 6 7 8 9; do sleep 1; done";
        assert_eq!(end(script, 2, &[]), (None, Some(9)));
    }

    #[test]
    fn a_group_that_has_ended_is_left_alone() {
        // Its id may be that of another group by then.
        let mut others = [(); 3].map(|()| group("trap 'exit 9' TERM; echo up; cat; exit 5"));
        let ids = others.each_ref().map(Child::id);
        let script = "trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done";
        assert_eq!(end(script, 1, &ids), (Some(9), None));
        for other in &mut others {
            drop(other.stdin.take());
            assert_eq!(other.wait().unwrap().code(), Some(5));
        }
    }
}
