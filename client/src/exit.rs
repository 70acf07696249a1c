//! The exit status of a process.

use std::fmt;

use acp_sdk::v1::TerminalExitStatus;

/// The exit status of a process: a code, a signal or unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// The exit code; `None` if a signal terminated the process.
    pub code: Option<i32>,
    /// The number of the signal that terminated the process.
    pub signal: Option<i32>,
}

impl Exit {
    /// The exit status is not known, or the process could not be terminated.
    pub(crate) const UNKNOWN: Self = Self {
        code: None,
        signal: None,
    };

    /// Returns whether the process exited with code 0.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    /// Returns the name of the signal, such as `SIGKILL`.
    #[must_use]
    pub fn signal_name(&self) -> Option<String> {
        self.signal.map(signal_name)
    }

    /// Returns the status of a terminal's command.
    pub(crate) fn terminal_status(&self) -> TerminalExitStatus {
        let mut status = TerminalExitStatus::new();
        status.exit_code = self.code.and_then(|code| u32::try_from(code).ok());
        status.signal = self.signal_name();
        status
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exited with code {code}"),
            (None, Some(signal)) => write!(f, "was ended by {}", signal_name(signal)),
            (None, None) => f.write_str("ended in an unknown way"),
        }
    }
}

#[cfg(unix)]
fn signal_name(number: i32) -> String {
    use rustix::process::Signal;

    // Signal numbers differ between systems, so the names are mapped from constants.
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
    names
        .iter()
        .find(|(signal, _)| signal.as_raw() == number)
        .map_or_else(
            || format!("signal {number}"),
            |(_, name)| (*name).to_owned(),
        )
}

#[cfg(not(unix))]
fn signal_name(number: i32) -> String {
    format!("signal {number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_reads_as_a_sentence() {
        let exit = |code, signal| Exit { code, signal }.to_string();
        assert_eq!(exit(Some(3), None), "exited with code 3");
        assert_eq!(exit(None, None), "ended in an unknown way");
        assert_eq!(exit(None, Some(250)), "was ended by signal 250");
    }

    #[cfg(unix)]
    #[test]
    fn well_known_signals_have_names() {
        assert_eq!(signal_name(9), "SIGKILL");
        assert_eq!(signal_name(15), "SIGTERM");
    }
}
