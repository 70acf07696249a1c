//! One direction of the wire: reads, leaves a copy in the tap, writes.
//!
//! Nothing is held back: what one read yields is written before the next. The
//! pump sleeps until there is something to read, or until its writing end has no
//! reader any more, so that either end learns of the other's absence as soon as
//! it would without a proxy.

use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, Read, Write};

use acp_conformance::wire::Party;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::tap::Tap;

/// Bytes asked for at once: what a pipe usually holds.
const CHUNK: usize = 64 << 10;

/// How much is still read after the stop: no pipe holds more, so whatever comes
/// later was written later.
const AFTER_STOP: usize = 1 << 20;

/// Why a pump has ended.
#[derive(Debug)]
pub(super) enum End {
    /// Its source has ended.
    Eof,
    /// Nobody reads what it writes.
    Unread,
    /// It was ordered to stop, and nothing is left to read.
    Stopped,
    /// Reading or writing failed.
    Failed(io::Error),
}

/// One direction.
#[derive(Debug)]
pub(super) struct Pump {
    /// Who writes what comes from the source.
    pub(super) from: Party,
    /// Read from here.
    pub(super) source: File,
    /// Written to here.
    pub(super) sink: File,
    /// When the other end of this is closed, the pump stops once its source is empty.
    pub(super) stop: PipeReader,
}

enum Ready {
    Source { stopping: bool },
    Stop,
    Unread,
}

impl Pump {
    /// Forwards until either end is gone; closes both.
    pub(super) fn run(mut self, tap: &Tap) -> End {
        let end = self
            .forward(tap)
            .unwrap_or_else(|error| match error.kind() {
                ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => End::Unread,
                _ => End::Failed(error),
            });
        tap.end(self.from);
        end
    }

    fn forward(&mut self, tap: &Tap) -> io::Result<End> {
        let mut chunk = vec![0; CHUNK];
        let mut left = AFTER_STOP;
        loop {
            let stopping = match self.ready()? {
                Ready::Source { stopping } => stopping,
                Ready::Stop => return Ok(End::Stopped),
                Ready::Unread => return Ok(End::Unread),
            };
            let length = match self.source.read(&mut chunk) {
                Ok(0) => return Ok(End::Eof),
                Ok(length) => length,
                Err(error) if is_transient(&error) => continue,
                Err(error) => return Err(error),
            };
            let bytes = chunk.get(..length).unwrap_or_default();
            tap.put(self.from, bytes);
            let written = self.write(bytes);
            tap.wake();
            written?;
            if stopping {
                left = left.saturating_sub(length);
                if left == 0 {
                    return Ok(End::Stopped);
                }
            }
        }
    }

    /// Waits for something to do. The source goes first: what was written before
    /// an end is forwarded before it.
    fn ready(&self) -> io::Result<Ready> {
        let mut fds = [
            PollFd::new(&self.source, PollFlags::IN),
            // An end that is gone is reported without being asked for.
            PollFd::new(&self.sink, PollFlags::empty()),
            PollFd::new(&self.stop, PollFlags::empty()),
        ];
        wait(&mut fds)?;
        let [source, sink, stop] = fds.map(|fd| !fd.revents().is_empty());
        Ok(match (source, stop) {
            (true, stopping) => Ready::Source { stopping },
            (false, true) => Ready::Stop,
            (false, false) if sink => Ready::Unread,
            // Not reached: waiting ends with an event.
            (false, false) => Ready::Source { stopping: false },
        })
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.sink.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => bytes = bytes.get(length..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Whoever shares the descriptor has made it non-blocking.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    wait(&mut [PollFd::new(&self.sink, PollFlags::OUT)])?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn wait(fds: &mut [PollFd<'_>]) -> io::Result<()> {
    loop {
        match poll(fds, None) {
            Err(Errno::INTR) => {}
            other => return other.map(drop).map_err(io::Error::from),
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_never_runs_dry_ends_after_the_stop() {
        let (stop, tell) = io::pipe().unwrap();
        drop(tell);
        let pump = Pump {
            from: Party::Agent,
            source: File::open("/dev/zero").unwrap(),
            sink: File::options().write(true).open("/dev/null").unwrap(),
            stop,
        };
        assert!(matches!(pump.run(&Tap::new(0)), End::Stopped));
    }
}
