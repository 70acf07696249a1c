//! A child process with everything that it starts: a process group.
//!
//! A signal reaches the whole group and nobody else: the leader is not reaped before the group is
//! dropped, because its number, which names the group, could be given to another process then.
//! Dropping the group kills it, and it ends when this process is killed. A process that leaves the group (`setsid`)
//! is out of reach.
//!
//! Elsewhere than on Unix the group is the child alone.

#[cfg(not(unix))]
pub(super) use other::Group;
#[cfg(unix)]
pub(super) use unix::Group;

#[cfg(unix)]
mod unix {
    use std::io;

    use acp_orphans::EndsWithHost;
    use acp_sdk::v1::TerminalExitStatus;
    use rustix::io::Errno;
    use rustix::process::{
        Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid,
    };
    use tokio::process::{Child, Command};
    use tokio::signal::unix::{self, SignalKind};

    #[derive(Debug)]
    pub(in crate::local) struct Group {
        leader: Pid,
        /// Woken when some child of this process has changed its state.
        changed: unix::Signal,
        /// Dropped before the leader is reaped.
        _ends_with_host: EndsWithHost,
        /// Reaped by tokio when it is dropped.
        _child: Child,
    }

    impl Group {
        /// Starts a command.
        ///
        /// # Errors
        ///
        /// The system's.
        pub(in crate::local) fn spawn(command: &mut Command) -> io::Result<Self> {
            // Before the start, or an early end could be missed.
            let changed = unix::signal(SignalKind::child())?;
            let child = command.process_group(0).kill_on_drop(true).spawn()?;
            let id = child.id().ok_or(io::ErrorKind::NotFound)?;
            let leader = i32::try_from(id).ok().and_then(Pid::from_raw);
            Ok(Self {
                leader: leader.ok_or(io::ErrorKind::NotFound)?,
                changed,
                _ends_with_host: acp_orphans::end_with_host(id),
                _child: child,
            })
        }

        /// Waits until the leader has ended. Can be dropped and called again.
        pub(in crate::local) async fn exited(&mut self) -> TerminalExitStatus {
            loop {
                if let Some(status) = self.status() {
                    return status;
                }
                // `None` only when the runtime ends, and this task with it.
                self.changed.recv().await;
            }
        }

        fn status(&self) -> Option<TerminalExitStatus> {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            loop {
                return match waitid(WaitId::Pid(self.leader), options) {
                    Ok(status) => status.map(|status| exit_status(&status)),
                    Err(Errno::INTR) => continue,
                    // Reaped by other code of this process.
                    Err(_) => Some(TerminalExitStatus::new()),
                };
            }
        }

        /// Asks the group to end.
        pub(in crate::local) fn terminate(&mut self) {
            self.signal(Signal::TERM);
        }

        /// Ends the group.
        pub(in crate::local) fn kill(&mut self) {
            self.signal(Signal::KILL);
        }

        fn signal(&self, signal: Signal) {
            // A group that has ended needs no signal.
            let _ = kill_process_group(self.leader, signal);
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            self.kill();
        }
    }

    fn exit_status(status: &WaitIdStatus) -> TerminalExitStatus {
        let mut exit = TerminalExitStatus::new();
        exit.exit_code = status.exit_status().and_then(|code| code.try_into().ok());
        exit.signal = status.terminating_signal().map(signal_name);
        exit
    }

    fn signal_name(number: i32) -> String {
        // Numbers differ between systems.
        let names = [
            (Signal::HUP, "SIGHUP"),
            (Signal::INT, "SIGINT"),
            (Signal::QUIT, "SIGQUIT"),
            (Signal::ILL, "SIGILL"),
            (Signal::TRAP, "SIGTRAP"),
            (Signal::ABORT, "SIGABRT"),
            (Signal::BUS, "SIGBUS"),
            (Signal::FPE, "SIGFPE"),
            (Signal::KILL, "SIGKILL"),
            (Signal::USR1, "SIGUSR1"),
            (Signal::SEGV, "SIGSEGV"),
            (Signal::USR2, "SIGUSR2"),
            (Signal::PIPE, "SIGPIPE"),
            (Signal::ALARM, "SIGALRM"),
            (Signal::TERM, "SIGTERM"),
            (Signal::XCPU, "SIGXCPU"),
            (Signal::XFSZ, "SIGXFSZ"),
            (Signal::SYS, "SIGSYS"),
        ];
        let name = names.iter().find(|(signal, _)| signal.as_raw() == number);
        name.map_or_else(
            || format!("signal {number}"),
            |(_, name)| (*name).to_owned(),
        )
    }
}

#[cfg(not(unix))]
mod other {
    use std::io;

    use acp_sdk::v1::TerminalExitStatus;
    use tokio::process::{Child, Command};

    #[derive(Debug)]
    pub(in crate::local) struct Group(Child);

    impl Group {
        /// Starts a command.
        ///
        /// # Errors
        ///
        /// The system's.
        pub(in crate::local) fn spawn(command: &mut Command) -> io::Result<Self> {
            command.kill_on_drop(true).spawn().map(Self)
        }

        /// Waits until the command has ended. Can be dropped and called again.
        pub(in crate::local) async fn exited(&mut self) -> TerminalExitStatus {
            let code = self.0.wait().await.ok().and_then(|status| status.code());
            let mut exit = TerminalExitStatus::new();
            // Codes of Windows are unsigned.
            exit.exit_code = code.map(i32::cast_unsigned);
            exit
        }

        /// Asks the command to end; there is no gentle way here.
        pub(in crate::local) fn terminate(&mut self) {
            self.kill();
        }

        /// Ends the command.
        pub(in crate::local) fn kill(&mut self) {
            // A command that has ended needs none.
            let _ = self.0.start_kill();
        }
    }
}
