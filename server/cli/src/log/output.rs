//! An output of the log: a queue, and a thread that writes. Whoever logs never waits, even when the
//! disk is full or nobody reads the pipe.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use acp_sdk::text::single_line;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use super::LogFormat;
use super::redact::Secrets;

/// Lines that may wait, and their bytes. Further ones are counted and left out.
const WAITING_LINES: usize = 10_000;
const WAITING_BYTES: usize = 4 << 20;

/// The most bytes of a file. Then it is renamed to `FILE.1`, which is replaced.
const FILE_BYTES: u64 = 16 << 20;

/// How long the end of the process waits for what is queued.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Where lines are written.
#[derive(Debug)]
pub(super) enum Target {
    Stderr,
    File(LogFile),
}

/// A file of JSON lines that only this user can read, with a file of earlier lines beside it.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    limit: u64,
    /// The last line was written in part.
    is_cut: bool,
}

/// The end of the queue that everybody writes to.
#[derive(Clone, Debug)]
pub(super) struct Output {
    queue: SyncSender<Entry>,
    counts: Arc<Counts>,
}

#[derive(Debug)]
enum Entry {
    Line(String),
    Flush(SyncSender<()>),
}

#[derive(Debug, Default)]
struct Counts {
    waiting_bytes: AtomicUsize,
    left_out: AtomicU64,
}

impl Output {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// When the system has no thread left.
    pub(super) fn start(target: Target, format: LogFormat, secrets: Secrets) -> io::Result<Self> {
        let (queue, entries) = sync_channel(WAITING_LINES);
        let counts = Arc::<Counts>::default();
        let output = Self {
            queue,
            counts: counts.clone(),
        };
        let run = move || run(&entries, target, format, &secrets, &counts);
        let thread = std::thread::Builder::new().name("log".to_owned());
        thread.spawn(run)?;
        Ok(output)
    }

    fn push(&self, line: String) {
        let bytes = line.len();
        let before = self
            .counts
            .waiting_bytes
            .fetch_add(bytes, Ordering::Relaxed);
        let fits = before.saturating_add(bytes) <= WAITING_BYTES;
        if !fits || self.queue.try_send(Entry::Line(line)).is_err() {
            self.counts
                .waiting_bytes
                .fetch_sub(bytes, Ordering::Relaxed);
            self.counts.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for what is queued, but not for an output that accepts nothing.
    pub(super) fn flush(&self) {
        let (done, flushed) = sync_channel(1);
        // A full queue belongs to an output that accepts nothing.
        if self.queue.try_send(Entry::Flush(done)).is_ok() {
            // The error is that of an output that is stuck.
            let _ = flushed.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

impl<'a> MakeWriter<'a> for Output {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// The subscriber writes each event in one piece.
impl Write for &Output {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(String::from_utf8_lossy(line).into_owned());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Ends with the last sender.
fn run(
    entries: &Receiver<Entry>,
    mut target: Target,
    format: LogFormat,
    secrets: &Secrets,
    counts: &Counts,
) {
    while let Ok(entry) = entries.recv() {
        let line = match entry {
            Entry::Line(line) => line,
            Entry::Flush(done) => {
                // Nobody waits any more.
                let _ = done.send(());
                continue;
            }
        };
        counts
            .waiting_bytes
            .fetch_sub(line.len(), Ordering::Relaxed);
        let missing = counts.left_out.swap(0, Ordering::Relaxed);
        if missing > 0 && target.write(&left_out(missing, format)).is_err() {
            counts.left_out.fetch_add(missing, Ordering::Relaxed);
        }
        if target
            .write(&secrets.redact(&single_line(line.trim_end())))
            .is_err()
        {
            counts.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn left_out(count: u64, format: LogFormat) -> String {
    let time = acp_server::internal::clock::now();
    let target = "acp_server::log";
    let message = "lines are missing here: they came faster than this output accepted them";
    match format {
        LogFormat::Text => format!("{time}  WARN {target}: {message} count={count}"),
        LogFormat::Json => {
            let line = json!({
                "timestamp": time, "level": "WARN", "target": target, "message": message, "count": count,
            });
            line.to_string()
        }
    }
}

impl Target {
    fn write(&mut self, line: &str) -> io::Result<()> {
        let text = format!("{line}\n");
        match self {
            Self::Stderr => io::stderr().lock().write_all(text.as_bytes()),
            Self::File(file) => file.write(&text),
        }
    }
}

impl LogFile {
    /// # Errors
    ///
    /// When the file cannot be created, or not be written.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: open(path)?,
            limit: FILE_BYTES,
            is_cut: false,
        })
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        // Asked each time, because others may truncate the file.
        if self.file.metadata()?.len() >= self.limit {
            let mut old = self.path.clone().into_os_string();
            old.push(".1");
            fs::rename(&self.path, old)?;
            self.file = open(&self.path)?;
        }
        if self.is_cut {
            self.file.write_all(b"\n")?;
        }
        let written = self.file.write_all(line.as_bytes());
        self.is_cut = written.is_err();
        written
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &Path, limit: u64) -> Target {
        let file = LogFile::open(path).unwrap();
        Target::File(LogFile { limit, ..file })
    }

    #[test]
    fn a_file_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("errors");
        let mut target = file(&path, 100);
        for number in 0..100 {
            target.write(&format!("line {number:02}")).unwrap();
        }
        let sizes = ["errors", "errors.1"].map(|name| fs::read(folder.path().join(name)).unwrap());
        assert!(sizes.iter().all(|text| text.len() <= 108), "{sizes:?}");
        assert!(
            sizes.iter().any(|text| text.ends_with(b"line 99\n")),
            "{sizes:?}"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn lines_beyond_the_queue_are_counted_and_nobody_waits() {
        let (queue, entries) = sync_channel(2);
        let counts = Arc::<Counts>::default();
        let output = Output {
            queue,
            counts: counts.clone(),
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("errors");
        output.push("x".repeat(WAITING_BYTES + 1));
        for line in ["one\n", "two\n\u{1b}[2Jtwo\n", "three", "four"] {
            (&output).write_all(line.as_bytes()).unwrap();
        }
        drop(output);
        let secrets = Secrets::of_environment();
        run(
            &entries,
            file(&path, 1 << 20),
            LogFormat::Json,
            &secrets,
            &counts,
        );
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines.len(), lines[1], lines[2]), (3, "one", "two two"));
        let missing: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
        assert_eq!(missing["count"], 3);
        assert_eq!(counts.waiting_bytes.load(Ordering::Relaxed), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_loses_lines_and_says_how_many() {
        let target = Target::File(LogFile::open(Path::new("/dev/full")).unwrap());
        let secrets = Secrets::of_environment();
        let output = Output::start(target, LogFormat::Text, secrets).unwrap();
        for _ in 0..3 {
            output.push("lost".to_owned());
        }
        output.flush();
        assert_eq!(output.counts.left_out.load(Ordering::Relaxed), 3);
    }
}
