//! The terminal: permanent text, and below it live lines that are redrawn or erased.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncWriteExt as _, Stdout};
use unicode_width::UnicodeWidthStr as _;

use super::style::{Paint, clean};

/// A live line: its text and its width in columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) shown: String,
    pub(super) columns: usize,
}

impl Live {
    pub(super) fn new(paint: Paint, face: super::style::Face, plain: &str) -> Self {
        Self {
            columns: plain.width(),
            shown: paint.text(face, &clean(plain)),
        }
    }

    /// Returns the number of lines of a terminal that it takes.
    pub(super) fn rows(&self, width: usize) -> usize {
        self.columns.div_ceil(width).max(1)
    }
}

/// Buffers output; [`flush`](Self::flush) writes it without blocking the runtime.
#[derive(Debug)]
pub(super) struct Screen {
    stdout: Stdout,
    gathered: String,
    /// Output that the terminal has not accepted yet.
    writing: Vec<u8>,
    live: Vec<Live>,
    /// Whether the cursor is at the beginning of a line, not counting live lines.
    at_start: bool,
    hidden: bool,
}

impl Screen {
    pub(super) fn new() -> Self {
        Self {
            stdout: tokio::io::stdout(),
            gathered: String::new(),
            writing: Vec::new(),
            live: Vec::new(),
            at_start: true,
            hidden: false,
        }
    }

    /// Returns the current width of the terminal, in columns.
    pub(super) fn width() -> usize {
        let size = crossterm::terminal::size();
        size.map_or(80, |(columns, _)| usize::from(columns))
            .clamp(20, 1000)
    }

    /// Returns the current height of the terminal, in lines.
    pub(super) fn height() -> usize {
        crossterm::terminal::size().map_or(24, |(_, lines)| usize::from(lines))
    }

    /// Writes permanent text. Its lines end in `\n`; it must not move the cursor in any other way.
    pub(super) fn print(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.erase();
        // In raw mode a line feed does not return to the first column.
        self.gathered.push_str(&text.replace('\n', "\r\n"));
        self.at_start = text.ends_with('\n');
    }

    /// Shows live lines below the text, if it ends with a whole line.
    pub(super) fn set_live(&mut self, lines: Vec<Live>) {
        if !self.at_start || lines == self.live {
            return;
        }
        self.erase();
        let shown: Vec<_> = lines.iter().map(|line| line.shown.as_str()).collect();
        self.gathered.push_str(&shown.join("\r\n"));
        self.live = lines;
    }

    /// Hides or shows the cursor.
    pub(super) fn hide_cursor(&mut self, hide: bool) {
        if self.hidden != hide {
            let sequence = if hide { "\u{1b}[?25l" } else { "\u{1b}[?25h" };
            self.gathered.push_str(sequence);
            self.hidden = hide;
        }
    }

    /// Rings the bell of the terminal.
    pub(super) fn ring(&mut self) {
        self.gathered.push('\u{7}');
    }

    /// Has the terminal copy a text to the clipboard (OSC 52).
    pub(super) fn copy(&mut self, text: &str) {
        let text = STANDARD.encode(text);
        self.gathered.push_str(&format!("\u{1b}]52;c;{text}\u{7}"));
    }

    fn erase(&mut self) {
        if self.live.is_empty() {
            return;
        }
        // The terminal has wrapped them if it has become narrower.
        let width = Self::width();
        let rows: usize = self.live.iter().map(|line| line.rows(width)).sum();
        self.gathered.push('\r');
        if rows > 1 {
            self.gathered.push_str(&format!("\u{1b}[{}A", rows - 1));
        }
        self.gathered.push_str("\u{1b}[J");
        self.live.clear();
    }

    /// Erases the live lines.
    pub(super) fn end_live(&mut self) {
        self.erase();
    }

    /// Writes the buffered output. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// Fails when the terminal is closed.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        self.writing
            .append(&mut std::mem::take(&mut self.gathered).into_bytes());
        while !self.writing.is_empty() {
            let written = self.stdout.write(&self.writing).await?;
            self.writing.drain(..written);
        }
        self.stdout.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::super::style::Face;
    use super::*;

    fn live(text: &str) -> Live {
        Live::new(Paint { colours: false }, Face::DIM, text)
    }

    #[tokio::test]
    async fn text_replaces_the_lines_that_change() {
        let mut screen = Screen::new();
        screen.set_live(vec![live("one"), live("two")]);
        assert_eq!(screen.gathered, "one\r\ntwo");
        screen.gathered.clear();
        screen.set_live(vec![live("one"), live("two")]);
        assert_eq!(screen.gathered, "", "nothing has changed");
        screen.print("text\n");
        assert_eq!(screen.gathered, "\r\u{1b}[1A\u{1b}[Jtext\r\n");
    }

    #[tokio::test]
    async fn a_line_that_is_not_complete_has_nothing_below_it() {
        let mut screen = Screen::new();
        screen.print("half");
        screen.set_live(vec![live("below")]);
        assert_eq!(screen.gathered, "half");
    }
}
