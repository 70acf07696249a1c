//! The end of processes that have left the process group of their agent or terminal (Linux).
//!
//! An agent, and a command in a terminal, gets a mark in its environment, which everything inherits that
//! it starts, in whatever session or group. When it ends, all processes that carry its mark are killed,
//! and those that descend from them. Processes of the host program carry none: nothing else is touched,
//! nobody becomes a child of the host, and no signal can hit a process that has got the number of another
//! one since (`pidfd`).
//!
//! One sweep runs at a time in a process, for all marks that have gathered: each reads the environments of
//! all processes of the system.
//!
//! Alternatives that were rejected: a host that is a subreaper takes over all of its orphans, not
//! only those of agents and terminals, and would have to reap them. A guard process for each needs a
//! program of ours, which a library does not have. Control groups need rights that few have.
//!
//! What survives: a process that has cleared or overwritten its environment and outlived its parent;
//! one of another user (`sudo`); what was started by a service on request (containers, `systemd-run`).
//! On systems other than Linux, all that has left the process group. When the host itself is killed
//! with `SIGKILL`, everything survives, the process group included.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::oneshot;

/// The variable with the marks of a process: one for each agent and terminal that it is of, the outermost
/// first, with `:` between them. The host may run in a terminal of another client.
const VARIABLE: &str = "ACP_MARKS";

/// The mark of one agent or terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        let random = RandomState::new().build_hasher().finish();
        Self(format!("{:x}-{random:016x}", std::process::id()))
    }

    /// Puts the mark into the environment of a command that is about to be started.
    pub(crate) fn put(&self, command: &mut Command) {
        if cfg!(target_os = "linux") {
            let mut marks = std::env::var_os(VARIABLE).unwrap_or_default();
            if !marks.is_empty() {
                marks.push(":");
            }
            marks.push(&self.0);
            command.env(VARIABLE, marks);
        }
    }
}

/// The sweeps of a workspace or of an agent. They run in a thread of their own, because reading what the
/// system knows of a process can block.
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

/// One sweep that runs or waits.
struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.ended.notify_all();
    }
}

/// Marks that wait to be swept.
struct Job {
    marks: Vec<Mark>,
    _running: Running,
    /// Dropped when nothing is left.
    _done: oneshot::Sender<()>,
}

/// What all sweepers of this process wait for.
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
    /// Begins to kill what carries one of the marks. The receiver completes, with an error, when nothing
    /// is left.
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

    /// Waits until all sweeps have ended. Blocks up to `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) {
        let running = self.0.lock();
        let ended = self
            .0
            .ended
            .wait_timeout_while(running, timeout, |running| *running > 0);
        drop(ended);
    }
}

/// The thread that sweeps; dropped early, it leaves nobody waiting.
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

/// Sweeps until there are no marks.
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
mod linux {
    use std::collections::HashSet;
    use std::fs::{self, File};
    use std::io::{self, Read as _};
    use std::os::fd::OwnedFd;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::{Mark, VARIABLE};

    /// Scans of all processes before the sweep ends: those that are found may start others meanwhile.
    const ROUNDS: u32 = 10;

    /// Looks in a row that must find nothing. A process that executes a program at the moment has no
    /// environment.
    const CLEAN: u32 = 2;

    /// Time for the system to end what was killed, in each round.
    const DEATH: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 200_000_000,
    };

    /// The most bytes of an environment that are read; systems allow 6 MiB.
    const LARGEST: u64 = 8 << 20;

    /// Kills what carries one of the marks, until nothing is left.
    pub(super) fn sweep(marks: &[Mark]) {
        let mut clean = 0;
        for _ in 0..ROUNDS {
            let found = find(marks);
            if found.is_empty() {
                clean += 1;
                if clean == CLEAN {
                    return;
                }
                continue;
            }
            clean = 0;
            let killed: Vec<_> = found.iter().filter_map(Process::kill).collect();
            wait(&killed);
        }
        tracing::warn!("processes of an agent or a terminal go on although they were killed");
    }

    /// A process as it was at the scan.
    struct Process {
        id: i32,
        parent: i32,
        /// When it was started: no two processes have both number and time in common.
        start: u64,
    }

    impl Process {
        /// Reads what the system says of a process. `None` if there is none any more.
        fn read(id: i32) -> Option<Self> {
            let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
            // The name of the program is in parentheses, and may contain anything.
            let end = stat.iter().rposition(|byte| *byte == b')')?;
            let fields = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
            let mut fields = fields.split_ascii_whitespace();
            let state = fields.next()?;
            let parent = fields.next()?.parse().ok()?;
            let start = fields.nth(17)?.parse().ok()?;
            let dead = matches!(state, "Z" | "X");
            (!dead).then_some(Self { id, parent, start })
        }

        /// Kills it; returns a descriptor that becomes readable when it has ended.
        fn kill(&self) -> Option<OwnedFd> {
            let process = pidfd_open(Pid::from_raw(self.id)?, PidfdFlags::empty()).ok()?;
            // From now on the descriptor means this one, whoever gets the number.
            let now = Self::read(self.id)?;
            if now.start != self.start {
                return None;
            }
            pidfd_send_signal(&process, Signal::KILL).ok()?;
            Some(process)
        }
    }

    /// Finds the processes that carry one of the marks, and those that descend from them.
    fn find(marks: &[Mark]) -> Vec<Process> {
        let Ok(all) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let ids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        let own = i32::try_from(std::process::id()).unwrap_or_default();
        let others = ids.filter(|id| *id != own);
        let mut others: Vec<_> = others.filter_map(Process::read).collect();
        let (mut found, rest): (Vec<_>, Vec<_>) = others
            .drain(..)
            .partition(|process| carries(process.id, marks));
        others = rest;
        let mut known: HashSet<_> = found.iter().map(|process| process.id).collect();
        loop {
            let (children, rest): (Vec<_>, Vec<_>) = others
                .into_iter()
                .partition(|process| known.contains(&process.parent));
            if children.is_empty() {
                return found;
            }
            known.extend(children.iter().map(|process| process.id));
            found.extend(children);
            others = rest;
        }
    }

    /// Whether a process carries one of the marks. The environment of other users is secret.
    fn carries(id: i32, marks: &[Mark]) -> bool {
        let mut environment = Vec::new();
        let read = |environment: &mut Vec<u8>| -> io::Result<usize> {
            let file = File::open(format!("/proc/{id}/environ"))?;
            file.take(LARGEST).read_to_end(environment)
        };
        if read(&mut environment).is_err() {
            return false;
        }
        let mut variables = environment.split(|byte| *byte == 0);
        let value = variables.find_map(|variable| {
            let value = variable.strip_prefix(VARIABLE.as_bytes())?;
            value.strip_prefix(b"=")
        });
        value.is_some_and(|value| {
            let mut carried = value.split(|byte| *byte == b':');
            carried.any(|carried| marks.iter().any(|mark| mark.0.as_bytes() == carried))
        })
    }

    /// Waits until all have ended, each for up to [`DEATH`].
    fn wait(killed: &[OwnedFd]) {
        for process in killed {
            let mut process = [PollFd::new(process, PollFlags::IN)];
            // One that goes on is found again.
            let _ = poll(&mut process, Some(&DEATH));
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Child, Command};

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
            Self(command.spawn().unwrap())
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
