//! Permission prompts on a terminal or a pair of streams.

#[cfg(all(test, unix))]
mod tests;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::sync::{Arc, PoisonError};

use tokio::sync::{Mutex, mpsc, oneshot};

use super::shown::{Shown, patches};
use super::{Asker, Decision, PermissionRequest, Permissions, Reason};
use acp_sdk::text::one_line;

/// The longest line that is read as an answer, in bytes.
const LONGEST_ANSWER: u64 = 1024;

/// The reason for rejecting without a valid answer.
const UNANSWERED: &str = "the question on the terminal got no valid answer";

/// The maximum number of prompts until a valid answer.
const MAX_ATTEMPTS: usize = 3;

/// The maximum number of characters displayed of the name of an option.
const MAX_NAME: usize = 200;

/// The lines of a change that are displayed without being asked for.
const SHORT_CHANGE: usize = 40;

/// Asks the user by one output and one input stream, one request at a time.
///
/// Optionally approves requests that [only read](PermissionRequest::only_reads). The end of the
/// input rejects.
#[derive(Debug)]
pub struct Ask {
    approve_reads: bool,
    dialog: Mutex<Dialog>,
}

impl Ask {
    /// Asks on the controlling terminal of this process, independent of its standard streams.
    ///
    /// # Errors
    ///
    /// Fails when the process has no controlling terminal.
    pub fn terminal() -> io::Result<Self> {
        let name = if cfg!(windows) { "CON" } else { "/dev/tty" };
        let input = File::open(name)?;
        let output = File::options().write(true).open(name)?;
        let typed_ahead = input.try_clone()?;
        let mut ask = Self::new(input, output);
        ask.dialog.get_mut().terminal = Some(typed_ahead);
        Ok(ask)
    }

    /// Asks on two streams. Reading begins with the first request.
    pub fn new(input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> Self {
        // The channel holds one line; further lines without a prompt are dropped.
        let (sender, lines) = mpsc::channel(1);
        let start_reading = move || {
            std::thread::spawn(move || read_lines(input, &sender));
        };
        Self {
            approve_reads: false,
            dialog: Mutex::new(Dialog {
                start_reading: Some(Box::new(start_reading)),
                lines,
                output: Arc::new(std::sync::Mutex::new(Some(Box::new(output)))),
                terminal: None,
            }),
        }
    }

    /// Approves calls that [only read](PermissionRequest::only_reads) without asking.
    #[must_use]
    pub fn approve_reads(mut self) -> Self {
        self.approve_reads = true;
        self
    }
}

impl Permissions for Ask {
    async fn decide(&self, question: &PermissionRequest) -> Decision {
        self.decide_with_reason(question).await.0
    }

    async fn decide_with_reason(&self, question: &PermissionRequest) -> (Decision, Option<Reason>) {
        if question.asks_nobody(self.approve_reads) {
            return (Decision::AllowOnce, None);
        }
        match self.dialog.lock().await.ask(question).await {
            Some(decision) => (decision, None),
            None => (Decision::Reject, Some(Reason::Program(UNANSWERED.into()))),
        }
    }

    fn in_order(&self) -> bool {
        true
    }
}

struct Dialog {
    /// Starts the reading thread, once. A blocking read of a terminal cannot be cancelled, so the
    /// thread is never joined. It starts with the first request, because other code may read from the
    /// same terminal before.
    start_reading: Option<Box<dyn FnOnce() + Send>>,
    lines: mpsc::Receiver<String>,
    /// `None` while a thread writes to it.
    output: Arc<std::sync::Mutex<Option<Box<dyn Write + Send>>>>,
    /// The input, if it is a terminal that may buffer earlier keystrokes.
    terminal: Option<File>,
}

impl std::fmt::Debug for Dialog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialog").finish_non_exhaustive()
    }
}

impl Dialog {
    /// Returns the answer; `None` if there is none that is valid.
    async fn ask(&mut self, question: &PermissionRequest) -> Option<Decision> {
        // Discards input from before the prompt, which cannot be an answer to it.
        if let Some(terminal) = &self.terminal {
            discard_input(terminal);
        }
        while self.lines.try_recv().is_ok() {}
        if let Some(start_reading) = self.start_reading.take() {
            start_reading();
        }
        let shown = Shown::new(question);
        let mut text = head(question, &shown);
        let changes = patches(question);
        let (short, mut more) = changes.split_at(changes.len().min(SHORT_CHANGE));
        add_lines(&mut text, short);
        text += &options(question);
        text += &choices(question, more.len());
        let mut attempts = 0;
        while attempts < MAX_ATTEMPTS {
            if self.show(text).await.is_err() {
                break;
            }
            let Some(line) = self.lines.recv().await else {
                break;
            };
            if line.trim() == "v" && !more.is_empty() {
                text = String::new();
                add_lines(&mut text, more);
                more = &[];
                text += &options(question);
                text += &choices(question, 0);
                continue;
            }
            match answer(&line, question) {
                // Whoever cannot read it cannot allow it.
                Some(decision) if shown.too_long.is_none() || decision == Decision::Reject => {
                    return Some(decision);
                }
                _ => {}
            }
            attempts += 1;
            text = format!("{:?} is no answer. ", line.trim());
            text += &choices(question, more.len());
        }
        None
    }

    /// Displays a text in a thread of its own: a stopped terminal may block for long, and cancellation
    /// must work meanwhile.
    async fn show(&mut self, text: String) -> io::Result<()> {
        let place = self.output.clone();
        let output = place.lock().unwrap_or_else(PoisonError::into_inner).take();
        // `None` while the previous prompt is still being written.
        let mut output = output.ok_or(io::ErrorKind::WouldBlock)?;
        let (sender, shown) = oneshot::channel();
        std::thread::spawn(move || {
            let result = output.write_all(text.as_bytes());
            let result = result.and_then(|()| output.flush());
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(output);
            // The caller may have been cancelled.
            let _ = sender.send(result);
        });
        shown.await.unwrap_or(Err(io::ErrorKind::BrokenPipe.into()))
    }
}

/// Returns what is asked, whole.
fn head(question: &PermissionRequest, shown: &Shown) -> String {
    let who = match question.asker {
        Asker::Agent => "The agent asks for permission:",
        Asker::Client => "The agent wants this to be done for it:",
        Asker::Afterwards => "The agent did this without asking:",
    };
    let mut text = format!("\n{who} {}\n", shown.lines[0]);
    add_lines(&mut text, &shown.lines[1..]);
    if let Some(lines) = shown.too_long {
        let _ = writeln!(
            text,
            "  It has {lines} lines and is too long to be shown, so it can only be refused here. \
             A rule can allow it"
        );
    }
    text
}

fn options(question: &PermissionRequest) -> String {
    let mut text = String::new();
    for (number, option) in (1..).zip(&question.request.options) {
        let name = one_line(&option.name, MAX_NAME);
        let _ = writeln!(text, "  {number}  {name} ({})", option.kind);
    }
    text
}

fn add_lines(text: &mut String, lines: &[String]) {
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
}

fn choices(question: &PermissionRequest, more: usize) -> String {
    let options = question.request.options.len();
    let more = match more {
        0 => String::new(),
        more => format!("v for {more} more lines of the change, "),
    };
    format!("Number (1-{options}), {more}y for once, n or Enter to refuse: ")
}

fn answer(line: &str, question: &PermissionRequest) -> Option<Decision> {
    match line.trim() {
        "" | "n" | "no" => Some(Decision::Reject),
        "y" | "yes" => Some(Decision::AllowOnce),
        number => {
            let index = number.parse::<usize>().ok()?.checked_sub(1)?;
            let option = question.request.options.get(index)?;
            Some(Decision::Option(option.option_id.clone()))
        }
    }
}

#[cfg(unix)]
fn discard_input(terminal: &File) {
    // A failure only means that earlier input is taken as an answer.
    let _ = rustix::termios::tcflush(terminal, rustix::termios::QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn discard_input(_: &File) {}

fn read_lines(input: impl Read, sender: &mpsc::Sender<String>) {
    let mut input = BufReader::new(input);
    loop {
        let mut line = Vec::new();
        let read = (&mut input)
            .take(LONGEST_ANSWER)
            .read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return;
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        // The line is dropped while another one is unread.
        if let Err(mpsc::error::TrySendError::Closed(_)) = sender.try_send(line) {
            return;
        }
    }
}
