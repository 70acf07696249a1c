//! Reads the keyboard on a separate thread: lines with an editor between turns, keys during turns.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc as sync};
use std::time::Duration;

use crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use crossterm::style::Color;
use crossterm::terminal;
use nu_ansi_term::Style;
use reedline::{
    ColumnarMenu, DefaultHinter, EditCommand, ExternalPrinter, FileBackedHistory, MenuBuilder as _,
    Prompt, PromptEditMode, PromptHistorySearch, PromptViMode, Reedline, ReedlineMenu, Signal,
    SimpleMatchHighlighter, ValidationResult, Validator,
};
use tokio::sync::mpsc;

use super::bindings::{Bindings, MENU, host};
use super::completions::{Candidates, Completions};
use super::editor::edit;
use super::style::clean;
use crate::args::Editing;

/// Maximum number of prompts in the history file.
const HISTORY: usize = 1000;

/// Capacity of the queue of keys; further keys are dropped.
const WAITING: usize = 256;

/// Capacity of the queue of messages above the editor; further messages are dropped.
const MESSAGES: usize = 1000;

/// Timeout for restoring the terminal.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Maximum number of attempts to read the position of the cursor.
const TRIES: usize = 5;

/// Interval at which the thread checks whether to read keys.
const POLL: Duration = Duration::from_millis(30);

/// Typed input.
#[derive(Debug)]
pub(super) enum Input {
    Line(String),
    /// Ctrl-C in the editor, with or without text in the line.
    Abandoned,
    /// Ctrl-D in an empty line.
    End,
    /// Shift-Tab in the editor.
    NextMode,
    /// Ctrl-O in the editor.
    Output,
    /// Ctrl-V in the editor.
    Image,
    /// Ctrl-X Ctrl-E in the editor, with the text of the line.
    Edit(String),
    /// The editor was [interrupted](Keyboard::interrupt), with the text of the line.
    Interrupted(String),
    /// The user's editor has exited.
    Edited(Result<String, String>),
    Key(KeyEvent),
    Paste(String),
    /// The terminal cannot be read.
    Failed(String),
}

enum Order {
    Line {
        prefill: String,
    },
    /// Runs the user's editor.
    Edit(String),
    Keys,
}

/// The thread and its queue of input.
pub(super) struct Keyboard {
    orders: sync::Sender<Order>,
    pub(super) inputs: mpsc::Receiver<Input>,
    reads_keys: Arc<AtomicBool>,
    interrupted: Arc<AtomicBool>,
    candidates: Candidates,
    /// The text at the right of the prompt.
    status: Arc<Mutex<String>>,
    messages: ExternalPrinter<String>,
}

impl Keyboard {
    /// Starts the thread. It is never joined, because a read from a terminal cannot be cancelled.
    pub(super) fn start(
        history: Option<PathBuf>,
        cwd: PathBuf,
        colours: bool,
        editing: Editing,
    ) -> Self {
        let (orders, ordered) = sync::channel();
        let (sender, inputs) = mpsc::channel(WAITING);
        let keyboard = Self {
            orders,
            inputs,
            reads_keys: Arc::default(),
            interrupted: Arc::default(),
            candidates: Candidates::default(),
            status: Arc::default(),
            messages: ExternalPrinter::new(MESSAGES),
        };
        let editor = editor(
            history,
            colours,
            editing,
            Completions::new(keyboard.candidates.clone(), cwd),
            keyboard.messages.clone(),
        )
        .with_break_signal(keyboard.interrupted.clone());
        let reads_keys = keyboard.reads_keys.clone();
        let sign = Sign(Some(keyboard.status.clone()));
        let interrupted = keyboard.interrupted.clone();
        std::thread::spawn(move || {
            read(editor, &sign, &ordered, &sender, &reads_keys, &interrupted);
        });
        keyboard
    }

    /// Starts to read a line that begins with `prefill`.
    pub(super) fn read_line(&self, prefill: String) {
        self.reads_keys.store(false, Ordering::Release);
        // If the thread has ended, `inputs` is closed.
        let _ = self.orders.send(Order::Line { prefill });
    }

    /// Ends the editor of the line that is being read, or of the next one if it has just ended.
    pub(super) fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Release);
    }

    /// Starts the user's editor with a text.
    pub(super) fn edit(&self, text: String) {
        self.reads_keys.store(false, Ordering::Release);
        let _ = self.orders.send(Order::Edit(text));
    }

    /// Starts to read keys, until the next line.
    pub(super) fn read_keys(&self) {
        self.reads_keys.store(true, Ordering::Release);
        // Set immediately, because Ctrl-C would be a signal in the other mode. The thread reports
        // failures.
        let _ = terminal::enable_raw_mode();
        let _ = self.orders.send(Order::Keys);
    }

    /// Sets the completions for Tab.
    pub(super) fn set_completions(&self, list: Vec<(String, String)>) {
        self.candidates.set(list);
    }

    /// Sets the text at the right of the prompt.
    pub(super) fn set_status(&self, status: String) {
        *lock(&self.status) = status;
    }

    /// Shows text above the line that is being edited.
    pub(super) fn show(&self, text: &str) {
        let text = text.trim_end_matches('\n');
        if !text.is_empty() {
            // Text is dropped when the queue is full.
            let _ = self.messages.sender().try_send(text.to_owned());
        }
    }
}

fn lock(status: &Mutex<String>) -> MutexGuard<'_, String> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restores the modes of the terminal, in any state of the thread. `below` begins a new line.
pub(super) fn restore(below: bool) {
    let _ = terminal::disable_raw_mode();
    let (done, is_done) = sync::channel();
    // A blocked terminal must not delay the exit of the process.
    std::thread::spawn(move || {
        let end = if below { "\r\n" } else { "" };
        let (paste, show) = (event::DisableBracketedPaste, crossterm::cursor::Show);
        let print = crossterm::style::Print(end);
        let _ = crossterm::execute!(std::io::stdout(), print, paste, show);
        let _ = done.send(());
    });
    let _ = is_done.recv_timeout(LAST_WORDS);
}

fn read(
    mut editor: Reedline,
    sign: &Sign,
    orders: &sync::Receiver<Order>,
    inputs: &mpsc::Sender<Input>,
    reads_keys: &AtomicBool,
    interrupted: &AtomicBool,
) {
    for order in orders {
        let input = match order {
            Order::Line { prefill } => {
                if !prefill.is_empty() {
                    editor.run_edit_commands(&[EditCommand::InsertString(prefill)]);
                }
                match read_line(&mut editor, sign) {
                    Ok(Signal::Success(line)) => {
                        // The process may be killed. What cannot be written stays in memory.
                        let _ = editor.sync_history();
                        Input::Line(line)
                    }
                    Ok(Signal::CtrlC) => {
                        keep_raw_mode();
                        Input::Abandoned
                    }
                    Ok(Signal::CtrlD) => Input::End,
                    Ok(Signal::HostCommand(command)) => {
                        keep_raw_mode();
                        match command.as_str() {
                            host::NEXT_MODE => Input::NextMode,
                            host::OUTPUT => Input::Output,
                            host::IMAGE => Input::Image,
                            _ => {
                                let text = editor.current_buffer_contents().to_owned();
                                editor.run_edit_commands(&[EditCommand::Clear]);
                                Input::Edit(text)
                            }
                        }
                    }
                    Ok(Signal::ExternalBreak(text)) => {
                        editor.run_edit_commands(&[EditCommand::Clear]);
                        // Paints an empty line in place of the typed ones, and ends. The next line would be
                        // painted over what is shown until then, as the rest of an interrupted one.
                        interrupted.store(true, Ordering::Release);
                        let _ = read_line(&mut editor, sign);
                        Input::Interrupted(text)
                    }
                    Ok(_) => Input::Line(String::new()),
                    Err(error) => Input::Failed(error.to_string()),
                }
            }
            Order::Edit(text) => {
                let _ = terminal::disable_raw_mode();
                Input::Edited(edit(&text))
            }
            Order::Keys => match keys(inputs, reads_keys) {
                Ok(()) => continue,
                Err(error) => Input::Failed(error.to_string()),
            },
        };
        if inputs.blocking_send(input).is_err() {
            return;
        }
    }
}

/// Keeps the terminal in raw mode until the next line is read: keys until then are neither echoed nor changed.
fn keep_raw_mode() {
    let _ = terminal::enable_raw_mode();
}

/// Reads a line. The editor requests the position of the cursor and waits two seconds. A terminal
/// behind a slow connection responds to a later attempt.
fn read_line(editor: &mut Reedline, sign: &Sign) -> reedline::Result<Signal> {
    for _ in 1..TRIES {
        if let Ok(signal) = editor.read_line(sign) {
            return Ok(signal);
        }
    }
    Ok(editor.read_line(sign)?)
}

/// Reads keys while they are wanted.
fn keys(inputs: &mpsc::Sender<Input>, wanted: &AtomicBool) -> std::io::Result<()> {
    terminal::enable_raw_mode()?;
    while wanted.load(Ordering::Acquire) {
        if !event::poll(POLL)? {
            continue;
        }
        let input = match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => Input::Key(key),
            Event::Paste(text) => Input::Paste(text),
            _ => continue,
        };
        // Does not wait, because an unhandled key must not delay the next Ctrl-C.
        if let Err(mpsc::error::TrySendError::Closed(_)) = inputs.try_send(input) {
            break;
        }
    }
    // Raw mode stays on, because the editor uses it, too.
    Ok(())
}

fn editor(
    history: Option<PathBuf>,
    colours: bool,
    editing: Editing,
    completions: Completions,
    messages: ExternalPrinter<String>,
) -> Reedline {
    let menu = ColumnarMenu::default()
        .with_name(MENU)
        .with_columns(2)
        .with_text_style(Style::new())
        .with_match_text_style(Style::new())
        .with_selected_text_style(Style::new().reverse())
        .with_selected_match_text_style(Style::new().reverse())
        .with_description_text_style(Style::new().dimmed())
        .with_marker("› ");
    let mut editor = Reedline::create()
        .with_edit_mode(Box::new(Bindings::new(editing)))
        .with_completer(Box::new(completions))
        .with_transient_prompt(Box::new(Sign(None)))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_partial_completions(true)
        .with_quick_completions(true)
        .with_validator(Box::new(Lines))
        // The default one writes in white, which nobody sees on a light background.
        .with_highlighter(Box::new(SimpleMatchHighlighter::default()))
        .with_external_printer(messages)
        .with_ansi_colors(colours)
        .use_bracketed_paste(true);
    if colours {
        let hinter = DefaultHinter::default().with_style(Style::new().dimmed());
        editor = editor.with_hinter(Box::new(hinter));
    }
    // Without a file, prompts are kept in memory.
    let file = history.and_then(|file| FileBackedHistory::with_file(HISTORY, file).ok());
    match file {
        Some(file) => editor.with_history(Box::new(file)),
        None => editor,
    }
}

/// A backslash at the end continues the prompt in the next line.
struct Lines;

impl Validator for Lines {
    fn validate(&self, line: &str) -> ValidationResult {
        match line.ends_with('\\') {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Complete,
        }
    }
}

/// The mark before the typed text, and the status until it is sent.
struct Sign(Option<Arc<Mutex<String>>>);

// The colours of the trait are bright ones, for dark backgrounds.
impl Prompt for Sign {
    fn get_prompt_color(&self) -> Color {
        Color::Reset
    }

    fn get_prompt_multiline_color(&self) -> nu_ansi_term::Color {
        nu_ansi_term::Color::Default
    }

    fn get_indicator_color(&self) -> Color {
        Color::DarkCyan
    }

    fn get_prompt_right_color(&self) -> Color {
        Color::DarkMagenta
    }

    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        let status = self.0.as_ref().map(|status| lock(status).clone());
        Cow::Owned(status.unwrap_or_default())
    }

    fn render_prompt_indicator(&self, mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(match mode {
            PromptEditMode::Vi(PromptViMode::Normal | PromptViMode::Visual) => ": ",
            _ => "› ",
        })
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("search: {} ", clean(&search.term)))
    }
}
