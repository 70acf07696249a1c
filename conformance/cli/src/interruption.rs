//! What `SIGINT` and `SIGTERM` do to a run: the first one ends it with a report, the second at once.

use std::io::{Write, stderr};

use rustix::process::Signal;

use acp_conformance::harness::Interruption;
use acp_conformance::orphan_reaper::exit;
use acp_conformance_proxy::signals::{THAT_END, watch};

/// What a shell adds to the number of the signal that has ended a process.
const ENDED_BY_SIGNAL: i32 = 128;

/// From now on, a signal interrupts the run. The second one ends this process; its agents are ended by
/// the other process that watches over them.
pub(crate) fn watch_signals(interruption: &Interruption) {
    let interruption = interruption.clone();
    let each = move |signal: Signal| {
        if interruption.interrupt() {
            exit(ENDED_BY_SIGNAL + signal.as_raw());
        }
        // Nobody may read it.
        let _ = stderr().write_all(
            b"\nacp-conformance: interrupted; ends the agents and writes the report. \
              Interrupt again to end at once\n",
        );
    };
    // Without it, a signal ends the process, as it does elsewhere.
    let _ = watch(THAT_END, each);
}
