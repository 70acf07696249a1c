//! A child process and its process group.
//!
//! Guarantees: a signal reaches all of the group and nothing else. The leader is reaped only after the
//! rest of the group was killed, because the system may reuse its process id, which identifies the
//! group. Dropping the [`Group`] kills it. A process that leaves the group (`setsid`) is not reached.
//!
//! On other systems than Unix the group consists of the child only. Job objects of Windows would reach its
//! descendants. The crate `process-wrap` has them, but would replace no code: its children report an exit
//! only after that of all descendants, and its process groups on Unix reap the leader too early.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acp_orphans::EndsWithHost;
use acp_sandbox::Sandbox;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use super::tokens;
use crate::exit::Exit;

/// A request to terminate a process.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request {
    /// `SIGTERM`: the process can clean up.
    Terminate,
    /// `SIGKILL`.
    Kill,
}

/// The piped streams of a child.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
}

/// A running child and its group. Dropping it kills the group.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Arc<Leader>,
    exit: ExitWatch,
    watcher: tokio::task::JoinHandle<()>,
}

impl Group {
    /// Starts `command` as the leader of a new process group, without the tokens of this process. With
    /// a sandbox, it is a command of [`confined`](super::confined).
    pub(crate) fn spawn(
        command: &mut Command,
        sandbox: Option<&Sandbox>,
    ) -> io::Result<(Self, Streams)> {
        tokens::withhold(command.as_std_mut());
        #[cfg(unix)]
        command.process_group(0);
        // Registered before the start, so that no exit is missed.
        let changed = platform::Changed::new()?;
        command.kill_on_drop(true);
        let mut child = match sandbox {
            None => command.spawn()?,
            Some(sandbox) => {
                command.envs(sandbox.variables());
                // On another thread, which has no runtime.
                let runtime = tokio::runtime::Handle::current();
                sandbox.spawn(|| {
                    let _entered = runtime.enter();
                    command.spawn()
                })?
            }
        };
        let streams = Streams {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
        };
        let leader = Arc::new(Leader::new(child));
        let (sender, exit) = watch::channel(None);
        let watcher = tokio::spawn(watch_leader(leader.clone(), changed, sender));
        let group = Self {
            leader,
            exit: ExitWatch(exit),
            watcher,
        };
        Ok((group, streams))
    }

    /// Ends the group also when this process is killed. On Unix.
    pub(crate) fn end_with_host(&self) {
        if let Some(id) = self.leader.id {
            *self.leader.ends_with_host() = Some(acp_orphans::end_with_host(id));
        }
    }

    /// Returns the process id of the leader.
    pub(crate) fn id(&self) -> Option<u32> {
        self.leader.id
    }

    /// Returns the watch on the leader's exit, which can be cloned.
    pub(crate) fn exit(&self) -> &ExitWatch {
        &self.exit
    }

    /// Sends a signal to the whole group.
    pub(crate) fn request(&self, request: Request) {
        self.leader.request(request);
    }

    /// Returns what terminates the group: by `SIGTERM`, after `grace` by `SIGKILL`.
    pub(super) fn process_end(&self, grace: Duration) -> ProcessEnd {
        ProcessEnd {
            leader: self.leader.clone(),
            exit: self.exit.clone(),
            grace,
        }
    }

    /// Kills the rest of the group and reaps the leader.
    pub(crate) fn end(&self) {
        self.leader.end();
    }
}

/// Terminates the process of an agent. Does not own the process.
#[derive(Debug, Clone)]
pub struct ProcessEnd {
    leader: Arc<Leader>,
    exit: ExitWatch,
    grace: Duration,
}

impl ProcessEnd {
    /// Sends `SIGTERM` to the process group, and `SIGKILL` if the agent has not exited after the second
    /// timeout of [`AgentCommand::shutdown_grace`](crate::AgentCommand::shutdown_grace).
    pub async fn terminate(&self) {
        self.leader.request(Request::Terminate);
        let mut exit = self.exit.clone();
        if timeout(self.grace, exit.seen()).await.is_err() {
            self.leader.request(Request::Kill);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.watcher.abort();
        self.leader.end();
    }
}

/// A watch on the exit of a process.
#[derive(Debug, Clone)]
pub(crate) struct ExitWatch(watch::Receiver<Option<Exit>>);

impl ExitWatch {
    /// Returns the exit status if the process has exited.
    pub(crate) fn now(&self) -> Option<Exit> {
        *self.0.borrow()
    }

    /// Waits for the exit of the process.
    pub(crate) async fn seen(&mut self) -> Exit {
        match self.0.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(Exit::UNKNOWN),
            // The group was dropped and thereby killed; the status is lost.
            Err(_) => Exit::UNKNOWN,
        }
    }
}

async fn watch_leader(
    leader: Arc<Leader>,
    mut changed: platform::Changed,
    sender: watch::Sender<Option<Exit>>,
) {
    loop {
        if let Some(exit) = leader.look() {
            sender.send_replace(Some(exit));
            return;
        }
        changed.wait(&leader.child).await;
    }
}

#[derive(Debug)]
struct Leader {
    /// `None` once it was reaped.
    child: Mutex<Option<Child>>,
    id: Option<u32>,
    ends_with_host: Mutex<Option<EndsWithHost>>,
}

impl Leader {
    fn new(child: Child) -> Self {
        Self {
            id: child.id(),
            child: Mutex::new(Some(child)),
            ends_with_host: Mutex::default(),
        }
    }

    /// A std mutex suffices: it is held for a system call and never across an await.
    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ends_with_host(&self) -> MutexGuard<'_, Option<EndsWithHost>> {
        let ends_with_host = self.ends_with_host.lock();
        ends_with_host.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the exit status of the leader without reaping it.
    fn look(&self) -> Option<Exit> {
        match self.lock().as_mut() {
            Some(child) => platform::look(self.id, child),
            None => Some(Exit::UNKNOWN),
        }
    }

    fn request(&self, request: Request) {
        if let Some(child) = self.lock().as_mut() {
            platform::request(self.id, child, request);
        }
    }

    fn end(&self) {
        if let Some(mut child) = self.lock().take() {
            platform::request(self.id, &mut child, Request::Kill);
            // Before it is reaped.
            drop(self.ends_with_host().take());
            // tokio reaps a leader that is still dying in the background.
            let _ = child.try_wait();
        }
    }
}

#[cfg(unix)]
mod platform {
    use std::io;
    use std::sync::Mutex;

    use rustix::process::{
        Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid,
    };
    use tokio::process::Child;
    use tokio::signal::unix::{self, SignalKind};

    use super::Request;
    use crate::exit::Exit;

    /// Wakes when any child has changed its state (`SIGCHLD`).
    pub(super) struct Changed(unix::Signal);

    impl Changed {
        pub(super) fn new() -> io::Result<Self> {
            unix::signal(SignalKind::child()).map(Self)
        }

        pub(super) async fn wait(&mut self, _: &Mutex<Option<Child>>) {
            // The signal stream ends only with the runtime.
            self.0.recv().await;
        }
    }

    pub(super) fn look(id: Option<u32>, _: &mut Child) -> Option<Exit> {
        let Some(pid) = pid(id) else {
            return Some(Exit::UNKNOWN);
        };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            return match waitid(WaitId::Pid(pid), options) {
                Ok(status) => status.map(|status| exit(&status)),
                Err(rustix::io::Errno::INTR) => continue,
                // Other code in this process has reaped it.
                Err(_) => Some(Exit::UNKNOWN),
            };
        }
    }

    pub(super) fn request(id: Option<u32>, _: &mut Child, request: Request) {
        let signal = match request {
            Request::Terminate => Signal::TERM,
            Request::Kill => Signal::KILL,
        };
        if let Some(group) = pid(id) {
            // Fails if the group has ended already.
            let _ = kill_process_group(group, signal);
        }
    }

    fn exit(status: &WaitIdStatus) -> Exit {
        Exit {
            code: status.exit_status(),
            signal: status.terminating_signal(),
        }
    }

    fn pid(id: Option<u32>) -> Option<Pid> {
        Pid::from_raw(i32::try_from(id?).ok()?)
    }
}

#[cfg(not(unix))]
mod platform {
    use std::io;
    use std::pin::pin;
    use std::sync::{Mutex, PoisonError};
    use std::task::Poll;

    use tokio::process::Child;

    use super::Request;
    use crate::exit::Exit;

    /// Wakes when the child has exited.
    pub(super) struct Changed;

    impl Changed {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) async fn wait(&mut self, child: &Mutex<Option<Child>>) {
            // The lock is released between polls, so that the child can be killed meanwhile.
            std::future::poll_fn(|cx| {
                let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
                match child.as_mut() {
                    Some(child) => pin!(child.wait()).poll(cx).map(drop),
                    None => Poll::Ready(()),
                }
            })
            .await;
        }
    }

    pub(super) fn look(_: Option<u32>, child: &mut Child) -> Option<Exit> {
        let status = child.try_wait().ok()??;
        Some(Exit {
            code: status.code(),
            signal: None,
        })
    }

    pub(super) fn request(_: Option<u32>, child: &mut Child, _: Request) {
        // Fails if the child has exited already.
        let _ = child.start_kill();
    }
}
