//! Groups of processes: an agent and its children.

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Waits until the leader of a group has ended, without reaping it.
pub(crate) fn wait_for(leader: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(Errno::INTR) = waitid(WaitId::Pid(leader), options) {}
}
