//! Passing on what agents write to standard error: as events of `tracing`, or, in a program without
//! a subscriber, to its own standard error.
//!
//! A thread of its own writes there, because standard error may be a pipe that nobody reads: neither
//! an agent nor a turn ever waits for it. What does not fit into the queue is left out and counted.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use acp_server::internal::log_repeated;

/// By which the log's filter tells them from those of the server.
const TARGET: &str = "acp_server::agent";

/// Lines that wait to be written.
const WAITING: usize = 256;

/// The most characters of a line that are passed on.
const LONGEST: usize = 2_000;

/// Where lines go.
#[derive(Clone, Debug)]
pub(super) struct PassOn {
    name: Arc<str>,
    queue: SyncSender<String>,
    left_out: Arc<AtomicU64>,
}

impl PassOn {
    /// Starts the thread. Lines get the name of the program in front.
    pub(super) fn start(program: &Path) -> Self {
        let name = program.file_name().unwrap_or(program.as_os_str());
        let name: Arc<str> = printable(&name.to_string_lossy()).into();
        let (queue, lines) = sync_channel::<String>(WAITING);
        let left_out = Arc::new(AtomicU64::new(0));
        let (of, missing) = (name.clone(), left_out.clone());
        let write = move || {
            for line in lines {
                let mut output = std::io::stderr().lock();
                let missing = missing.swap(0, Ordering::Relaxed);
                if missing > 0 {
                    let _ = writeln!(output, "{of}: ({missing} lines left out)");
                }
                // Nobody reads standard error: there is no better place to say so.
                let _ = writeln!(output, "{of}: {line}");
            }
        };
        // Without a thread everything is left out.
        let _ = std::thread::Builder::new()
            .name("agent-stderr".to_owned())
            .spawn(write);
        Self {
            name,
            queue,
            left_out,
        }
    }

    /// Returns the name of the program.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Passes a line on, if there is room.
    pub(super) fn line(&self, line: &str) {
        if tracing::dispatcher::has_been_set() {
            let agent = &*self.name;
            tracing::info!(target: TARGET, agent, "{}", printable(line));
        } else {
            self.write(line);
        }
    }

    /// Passes a line of this server about the agent on.
    pub(super) fn warn(&self, line: &str) {
        if tracing::dispatcher::has_been_set() {
            let agent = &*self.name;
            log_repeated!(warn, target: TARGET, agent, "{}", printable(line));
        } else {
            self.write(line);
        }
    }

    fn write(&self, line: &str) {
        if self.queue.try_send(printable(line)).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Returns a text as one line that is safe to show in a terminal, of at most `LONGEST` characters.
pub(super) fn printable(text: &str) -> String {
    let mut shown = acp_sdk::text::single_line(text);
    if let Some((end, _)) = shown.char_indices().nth(LONGEST) {
        shown.truncate(end);
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_short_and_harmless() {
        assert_eq!(printable("a\tb\u{1b}[31m"), "a b");
        let long = printable(&"x".repeat(5_000));
        assert_eq!(long.chars().count(), LONGEST + 1);
    }

    #[test]
    fn a_full_queue_leaves_lines_out() {
        let (queue, _lines) = sync_channel(1);
        let pass = PassOn {
            name: "a".into(),
            queue,
            left_out: Arc::default(),
        };
        for _ in 0..4 {
            pass.write("x");
        }
        assert_eq!(pass.left_out.load(Ordering::Relaxed), 3);
    }
}
