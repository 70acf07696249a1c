//! Kills processes that have left the process group of their agent or terminal (Linux).
//!
//! The environment of an agent, or of a command in a terminal, gets a mark, which all descendants inherit
//! independent of session and group. When the agent or command ends, all processes with its mark and
//! their descendants are killed. Processes of the host program have no mark, so they are not affected.
//! The host does not become the parent of any process, and `pidfd` ensures that no signal reaches a
//! process with a reused id.
//!
//! One sweep runs at a time in a process, for all queued marks, because each reads the environments of
//! all processes of the system.
//!
//! Rejected alternatives, because each would add to this code and replace none of it:
//!
//! - A subreaper (`PR_SET_CHILD_SUBREAPER`) adopts all orphans of the host program, not only those of
//!   agents and terminals. To which of them an orphan belongs, if any, only its mark says. A library cannot
//!   reap the others: `wait` for any child takes exit statuses from the rest of the program.
//! - A control group needs a subtree that is delegated to the user, which containers and many services do
//!   not have, so the sweep would stay for them. A child enters its group before `exec` only by
//!   `CLONE_INTO_CGROUP` or code between `fork` and `exec`, which are `unsafe`.
//! - A guard process for each would have to find the marks in `/proc`, which a shell does slowly.
//!
//! A scan reads two small files of each process of the system, on a thread that only `terminal/release` and
//! the shutdown wait for.
//!
//! Survivors: a process that has cleared or overwritten its environment and outlived its parent; one of
//! another user (`sudo`); one that a service started on request (containers, `systemd-run`). On other
//! systems than Linux, all processes that have left the process group. When the host is killed with
//! `SIGKILL`, all processes, including the process group unless it ends with the host (`acp-orphans`).

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::oneshot;

/// The variable with the marks of a process, separated by `:`, one for each enclosing agent and terminal
/// from the outermost. The host may run in a terminal of another client.
pub const VARIABLE: &str = "ACP_MARKS";

/// The mark of one agent or terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        let random = RandomState::new().build_hasher().finish();
        Self(format!("{:x}-{random:016x}", std::process::id()))
    }

    /// Adds the mark to the environment of a command before its start.
    pub(crate) fn put(&self, command: &mut Command) {
        if cfg!(target_os = "linux") {
            let set = command
                .as_std()
                .get_envs()
                .find(|(name, _)| *name == VARIABLE);
            let marks = match set {
                // What owns several agents has set a mark for all of them.
                Some((_, value)) => value.map(OsString::from),
                None => std::env::var_os(VARIABLE),
            };
            command.env(VARIABLE, with_mark(marks, &self.0));
        }
    }
}

/// Returns a value of [`VARIABLE`] with a further mark.
pub fn with_mark(marks: Option<OsString>, mark: &str) -> OsString {
    let mut marks = marks.unwrap_or_default();
    if !marks.is_empty() {
        marks.push(":");
    }
    marks.push(mark);
    marks
}

/// Kills all processes with one of these marks, which a program that has ended has set in [`VARIABLE`].
/// Returns how many. Blocks; on systems other than Linux it does nothing.
pub fn kill_marked(marks: &[String]) -> usize {
    #[cfg(target_os = "linux")]
    {
        let marks: Vec<_> = marks.iter().cloned().map(Mark).collect();
        linux::sweep(&marks)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = marks;
        0
    }
}

/// The sweeps of a workspace or an agent. They run on a separate thread, because reading `/proc` can
/// block.
#[derive(Debug, Default)]
pub(crate) struct Sweeper(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    running: Mutex<usize>,
    ended: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running or queued sweep.
struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.ended.notify_all();
    }
}

/// Marks that are queued for a sweep.
struct Job {
    marks: Vec<Mark>,
    _running: Running,
    /// Dropped when no process is left.
    _done: oneshot::Sender<()>,
}

/// The queue of all sweepers of this process.
struct Queue {
    jobs: Vec<Job>,
    is_served: bool,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    jobs: Vec::new(),
    is_served: false,
});

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sweeper {
    /// Starts to kill all processes with one of the marks. The receiver completes, with an error, when no
    /// process is left.
    pub(crate) fn begin(&self, marks: Vec<Mark>) -> oneshot::Receiver<()> {
        let (done, is_done) = oneshot::channel();
        if marks.is_empty() || cfg!(not(target_os = "linux")) {
            return is_done;
        }
        *self.0.lock() += 1;
        let mut queue = queue();
        queue.jobs.push(Job {
            marks,
            _running: Running(self.0.clone()),
            _done: done,
        });
        if !std::mem::replace(&mut queue.is_served, true) {
            drop(queue);
            let thread = std::thread::Builder::new().name("acp-sweep".to_owned());
            if let Err(error) = thread.spawn(serve) {
                tracing::warn!(%error, "cannot look for processes that agents and terminals have left behind");
                drop(Served);
            }
        }
        is_done
    }

    /// Waits up to `timeout` until all sweeps have ended. Blocks.
    pub(crate) fn wait(&self, timeout: Duration) {
        let running = self.0.lock();
        let ended = self
            .0
            .ended
            .wait_timeout_while(running, timeout, |running| *running > 0);
        drop(ended);
    }
}

/// Guards the sweeping thread: dropping it early completes all waiting receivers.
struct Served;

impl Drop for Served {
    fn drop(&mut self) {
        let mut queue = queue();
        queue.is_served = false;
        let jobs = std::mem::take(&mut queue.jobs);
        drop(queue);
        drop(jobs);
    }
}

/// Sweeps until the queue is empty.
fn serve() {
    let served = Served;
    loop {
        let mut queue = queue();
        if queue.jobs.is_empty() {
            queue.is_served = false;
            // The next job starts another thread.
            std::mem::forget(served);
            return;
        }
        let mut jobs = std::mem::take(&mut queue.jobs);
        drop(queue);
        let marks: Vec<_> = jobs
            .iter_mut()
            .flat_map(|job| job.marks.drain(..))
            .collect();
        #[cfg(target_os = "linux")]
        linux::sweep(&marks);
        #[cfg(not(target_os = "linux"))]
        drop(marks);
        drop(jobs);
    }
}

#[cfg(target_os = "linux")]
pub(super) mod linux {
    use std::collections::HashSet;
    use std::fs::{self, File};
    use std::io::Read as _;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::{Mark, VARIABLE};

    /// Maximum number of scans per sweep: processes may start others between scans.
    const ROUNDS: u32 = 10;

    /// Number of consecutive scans without a match that end a sweep.
    const CLEAN: u32 = 2;

    /// A process that is in `execve` has no environment. On a busy machine that takes long: for this many
    /// seconds after its start it may be one of those that are looked for.
    const STARTING: u64 = 2;

    /// Pause before the next scan if there are such processes, and the maximum number of such scans: on some machines
    /// there are always some.
    const PAUSE: Duration = Duration::from_millis(20);
    const UNCERTAIN: u32 = 150;

    /// Time for the system to end killed processes, per round.
    const DEATH: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 200_000_000,
    };

    /// Maximum number of bytes of an environment that are read; systems allow 6 MiB.
    const LARGEST: u64 = 8 << 20;

    /// Kills all processes with one of the marks until none is left. Returns how many it has killed.
    pub(super) fn sweep(marks: &[Mark]) -> usize {
        let (mut clean, mut all) = (0, 0);
        let (mut rounds, mut uncertain) = (0, 0);
        while rounds < ROUNDS {
            let (found, is_certain) = find(marks);
            if found.is_empty() {
                if !is_certain && uncertain < UNCERTAIN {
                    uncertain += 1;
                    std::thread::sleep(PAUSE);
                    continue;
                }
                clean += 1;
                if clean == CLEAN {
                    return all;
                }
                continue;
            }
            (clean, rounds) = (0, rounds + 1);
            let killed: Vec<_> = found.iter().filter_map(Process::kill).collect();
            all += killed.len();
            wait(&killed);
        }
        tracing::warn!("processes of an agent or a terminal are still running after SIGKILL");
        all
    }

    /// A process at the time of the scan.
    pub(in crate::process) struct Process {
        pub(in crate::process) id: i32,
        pub(in crate::process) parent: i32,
        /// Its start time; id and start time together are unique.
        start: u64,
    }

    impl Process {
        /// Reads `/proc/<id>/stat`; `None` if the process does not exist any more.
        fn read(id: i32) -> Option<Self> {
            let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
            // The name of the program is in parentheses, and may contain any characters.
            let end = stat.iter().rposition(|byte| *byte == b')')?;
            let fields = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
            let mut fields = fields.split_ascii_whitespace();
            let state = fields.next()?;
            let parent = fields.next()?.parse().ok()?;
            let start = fields.nth(17)?.parse().ok()?;
            let dead = matches!(state, "Z" | "X");
            (!dead).then_some(Self { id, parent, start })
        }

        /// Returns whether it may be in `execve`. The kernel's own processes have no environment, either.
        fn is_starting(&self, now: u64) -> bool {
            const KERNEL: i32 = 2;
            let limit = STARTING * rustix::param::clock_ticks_per_second();
            let is_new = now > 0 && self.start.saturating_add(limit) > now;
            is_new
                && ![self.id, self.parent].contains(&KERNEL)
                && environment(self.id).is_some_and(|all| all.is_empty())
        }

        /// Kills the process; returns a descriptor that becomes readable when it has ended.
        fn kill(&self) -> Option<OwnedFd> {
            let process = pidfd_open(Pid::from_raw(self.id)?, PidfdFlags::empty()).ok()?;
            // From now on the descriptor refers to this process, even if its id is reused.
            let now = Self::read(self.id)?;
            if now.start != self.start {
                return None;
            }
            pidfd_send_signal(&process, Signal::KILL).ok()?;
            Some(process)
        }
    }

    /// Returns all processes but this one.
    pub(in crate::process) fn all() -> Vec<Process> {
        let Ok(all) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let ids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        let own = i32::try_from(std::process::id()).unwrap_or_default();
        let others = ids.filter(|id| *id != own);
        others.filter_map(Process::read).collect()
    }

    /// Returns the processes with one of the marks, and their descendants, and whether it is certain of all others that
    /// they have none.
    pub(super) fn find(marks: &[Mark]) -> (Vec<Process>, bool) {
        let mut others = all();
        let (mut found, rest): (Vec<_>, Vec<_>) = others
            .drain(..)
            .partition(|process| carries(process.id, marks));
        others = rest;
        let now = now();
        let is_certain = !others.iter().any(|process| process.is_starting(now));
        let mut known: HashSet<_> = found.iter().map(|process| process.id).collect();
        loop {
            let (children, rest): (Vec<_>, Vec<_>) = others
                .into_iter()
                .partition(|process| known.contains(&process.parent));
            if children.is_empty() {
                return (found, is_certain);
            }
            known.extend(children.iter().map(|process| process.id));
            found.extend(children);
            others = rest;
        }
    }

    /// Returns the time since the start of the system, as that of processes; 0 if it is not known.
    fn now() -> u64 {
        let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
        let seconds = uptime.split('.').next().and_then(|text| text.parse().ok());
        seconds.map_or(0, |seconds: u64| {
            seconds * rustix::param::clock_ticks_per_second()
        })
    }

    /// Returns whether a process has one of the marks.
    fn carries(id: i32, marks: &[Mark]) -> bool {
        let carried = marks_of(id);
        carried.is_some_and(|carried| marks.iter().any(|mark| contains(&carried, mark)))
    }

    /// Returns whether marks contain this one.
    pub(in crate::process) fn contains(carried: &[u8], mark: &Mark) -> bool {
        let mut carried = carried.split(|byte| *byte == b':');
        carried.any(|carried| carried == mark.0.as_bytes())
    }

    /// Returns the environment of a process, which may be one in `execve`. Those of other users are not readable.
    fn environment(id: i32) -> Option<Vec<u8>> {
        let mut environment = Vec::new();
        let file = File::open(format!("/proc/{id}/environ")).ok()?;
        file.take(LARGEST).read_to_end(&mut environment).ok()?;
        Some(environment)
    }

    /// Returns the marks of a process.
    pub(in crate::process) fn marks_of(id: i32) -> Option<Vec<u8>> {
        let environment = environment(id)?;
        let mut variables = environment.split(|byte| *byte == 0);
        variables.find_map(|variable| {
            let value = variable.strip_prefix(VARIABLE.as_bytes())?;
            Some(value.strip_prefix(b"=")?.to_vec())
        })
    }

    /// Waits up to [`DEATH`] for the end of each process.
    fn wait(killed: &[OwnedFd]) {
        for process in killed {
            let mut process = [PollFd::new(process, PollFlags::IN)];
            // A process that is still running is found by the next scan.
            let _ = poll(&mut process, Some(&DEATH));
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Child, Command};
    use std::time::Instant;

    use super::*;

    /// A process that is killed at the end of the test.
    struct Sleeper(Child);

    impl Sleeper {
        fn new(marks: Option<&str>) -> Self {
            let mut command = Command::new("sleep");
            command.arg("1000").env_remove(VARIABLE);
            if let Some(marks) = marks {
                command.env(VARIABLE, marks);
            }
            let process = Self(command.spawn().unwrap());
            // Within `execve` it has no environment, for as long as the system is busy.
            let environment = format!("/proc/{}/environ", process.0.id());
            let limit = Instant::now() + Duration::from_secs(30);
            while std::fs::read(&environment).unwrap().is_empty() {
                assert!(Instant::now() < limit, "the process has no environment");
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
    fn a_process_that_starts_may_have_a_mark() {
        let mut command = Command::new("sleep");
        let process = Sleeper(command.arg("1000").env_clear().spawn().unwrap());
        let limit = Instant::now() + Duration::from_secs(30);
        let is_certain = || linux::find(&[Mark::new()]).1;
        assert!(!is_certain());
        // What has no environment for so long has none. Others of the system may start all the time.
        while !is_certain() {
            assert!(Instant::now() < limit, "a scan is never certain");
            std::thread::sleep(Duration::from_millis(50));
        }
        drop(process);
    }

    #[test]
    fn a_mark_is_one_of_several() {
        let (outer, inner) = (Mark::new(), Mark::new());
        assert_ne!(outer, inner);
        let mut process = Sleeper::new(Some(&format!("{}:{}", outer.0, inner.0)));
        // Its end is awaited.
        linux::sweep(&[outer]);
        assert!(process.is_killed());
    }

    #[test]
    fn a_process_without_the_mark_is_left_alone() {
        let mark = Mark::new();
        let longer = format!("{}0", mark.0);
        let others = [None, Some(""), Some("another"), Some(&*longer)];
        let mut others = others.map(Sleeper::new);
        linux::sweep(&[mark]);
        for process in &mut others {
            assert!(!process.is_killed(), "another process was killed");
        }
    }
}
