//! A terminal for clients that ask their user: somebody who types nothing.
//!
//! A client may ask on its standard input or on the controlling terminal of its process; here both
//! are the same, and so is standard error, for many ask only if that is a terminal, too. The output
//! stays a pipe, as in all scenarios.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;

use rustix::process::{getpgid, getppid, ioctl_tiocsctty, setpgid, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::target::Tail;
use crate::{Error, Result};

/// A terminal, until it is dropped.
#[derive(Debug)]
pub(super) struct Terminal {
    name: OsString,
    /// What was written to it last.
    shown: Tail,
    /// Without it, the terminal would hang up before the client has opened it.
    _open: File,
}

impl Terminal {
    /// Opens a new one, and reads what is written to it.
    pub(super) fn open() -> io::Result<Self> {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&user)?;
        unlockpt(&user)?;
        let name = OsString::from_vec(ptsname(&user, Vec::new())?.into_bytes());
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let flags = flags | rustix::fs::OFlags::CLOEXEC;
        let open = rustix::fs::open(Path::new(&name), flags, rustix::fs::Mode::empty())?;
        rustix::io::fcntl_setfd(&user, rustix::io::FdFlags::CLOEXEC)?;
        let user = File::from(user);
        let shown = Tail::default();
        let kept = shown.clone();
        // Reading fails when nobody has the terminal any more.
        thread::spawn(move || kept.read(user));
        Ok(Self {
            name,
            shown,
            _open: open.into(),
        })
    }

    /// The end of what was written to it.
    pub(super) fn shown(&self) -> String {
        self.shown.text().replace('\r', "")
    }

    /// The command that starts another one on this terminal; `program` is this suite.
    pub(super) fn wrap(&self, program: &Path, command: Vec<OsString>) -> Vec<OsString> {
        let wrapper = [program.as_os_str(), "on-terminal".as_ref(), &self.name];
        let words = wrapper.into_iter().map(OsString::from);
        words.chain(["--".into()]).chain(command).collect()
    }
}

/// Becomes this command, with the terminal of this name as its standard input, its standard error
/// and its controlling terminal.
///
/// # Errors
///
/// When the terminal cannot be had, or the command cannot be started.
pub fn on_terminal(name: &Path, command: &[OsString]) -> Result<()> {
    let line = command.join(" ".as_ref());
    let line = line.to_string_lossy();
    let failed = Error::starting(&line);
    take(name).map_err(failed)?;
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    Err(failed(Command::new(program).args(arguments).exec()))
}

fn take(name: &Path) -> io::Result<()> {
    // The leader of a process group begins no session. Of the session, this process leads a group
    // again, which the suite ends by the number of the process.
    setpgid(None, Some(getpgid(getppid())?))?;
    setsid()?;
    let terminal = File::options().read(true).write(true).open(name)?;
    // Where opening it does not do so already.
    ioctl_tiocsctty(&terminal)?;
    rustix::stdio::dup2_stdin(&terminal)?;
    rustix::stdio::dup2_stderr(&terminal)?;
    Ok(())
}
