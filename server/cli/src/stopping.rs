//! Stopping a server of this user, by its discovery file.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::discovery::Found;

/// Time for a server to end after SIGTERM, at least.
pub(crate) const TERM: Duration = Duration::from_secs(10);

/// Time for a server beyond what it says that it needs.
const MARGIN: Duration = Duration::from_secs(2);

/// Time for a server to end after SIGKILL.
const KILL: Duration = Duration::from_secs(2);

/// Time between two looks at a server that should end.
const LOOK: Duration = Duration::from_millis(50);

/// How a server has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// After SIGTERM.
    ByItself,
    /// By SIGKILL.
    Killed,
}

impl Found {
    /// Returns the time that the server may need to end: 10 s, or more if its settings say so.
    #[must_use]
    pub fn patience(&self) -> Duration {
        let known = self.announcement.as_ref();
        let needed = known.map_or(0, |known| known.ends_within);
        TERM.max(Duration::from_secs(needed).saturating_add(MARGIN))
    }

    /// Ends the server: by SIGTERM, and after this time by SIGKILL.
    ///
    /// # Errors
    ///
    /// Why it still runs, or cannot be found, as text for people.
    pub async fn stop(&self, patience: Duration) -> Result<Stopped, String> {
        let known = self.announcement.as_ref();
        let known = known.ok_or("its discovery file names no process")?;
        let pid = known.pid;
        send(pid, Signal::Term)?;
        if ended(self, patience).await {
            return Ok(Stopped::ByItself);
        }
        send(pid, Signal::Kill)?;
        if ended(self, KILL).await {
            self.remove_if_stale();
            return Ok(Stopped::Killed);
        }
        Err(format!("process {pid} does not end"))
    }
}

/// Waits until a server has ended. Its lock is the only sign: it is no child of this process.
async fn ended(server: &Found, wait: Duration) -> bool {
    let deadline = Instant::now().checked_add(wait);
    while server.is_alive() {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return false;
        }
        sleep(LOOK).await;
    }
    true
}

#[derive(Clone, Copy, Debug)]
enum Signal {
    Term,
    Kill,
}

#[cfg(unix)]
fn send(pid: u32, signal: Signal) -> Result<(), String> {
    use rustix::process::{Pid, Signal as Number, kill_process};

    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or("its discovery file names no process")?;
    let number = match signal {
        Signal::Term => Number::TERM,
        Signal::Kill => Number::KILL,
    };
    match kill_process(pid, number) {
        // It has ended since.
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(format!("cannot signal its process: {error}")),
    }
}

#[cfg(not(unix))]
fn send(pid: u32, _: Signal) -> Result<(), String> {
    Err(format!(
        "this system has no signals; end process {pid} yourself"
    ))
}
