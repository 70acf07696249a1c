//! Formats Markdown incrementally and wraps it at words.
//!
//! A word is written when it is complete, or when no text follows for a moment. A span such as
//! `**bold**` is written when it ends, or when it fills a line of the terminal. Invalid Markdown is
//! written unchanged.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::style::{Colour, Face, Paint, clean};

/// Columns before a line of code.
const CODE_INDENT: &str = "    ";

/// Converts chunks of Markdown to text for a terminal, whose lines end in `\n`.
#[derive(Debug)]
pub(super) struct Markdown {
    paint: Paint,
    base: Face,
    width: usize,
    /// The rest of the current line that is not processed yet.
    source: String,
    /// Whether the line's kind is known and its mark was written.
    begun: bool,
    /// The style of the words of the line.
    face: Face,
    /// The fence that closes the open block of code.
    fence: Option<String>,
    /// The indent of the following lines when a line is wrapped.
    hang: usize,
    word: Word,
    /// The number of used columns in the line of the terminal.
    column: usize,
    /// The last processed character: the `_` in `a_b` is not emphasis.
    before: Option<char>,
    out: String,
    /// Whether the last line was empty, as at the beginning.
    blank: bool,
}

#[derive(Debug, Default)]
struct Word {
    text: String,
    width: usize,
    /// The number of spaces before it.
    spaces: usize,
}

impl Markdown {
    pub(super) fn new(paint: Paint, base: Face) -> Self {
        Self {
            paint,
            base,
            width: 80,
            source: String::new(),
            begun: false,
            face: base,
            fence: None,
            hang: 0,
            word: Word::default(),
            column: 0,
            before: None,
            out: String::new(),
            blank: true,
        }
    }

    /// Adds a chunk and returns the text that can be shown.
    pub(super) fn push(&mut self, text: &str, width: usize) -> String {
        self.width = width.max(20);
        for piece in clean(text).split_inclusive('\n') {
            match piece.strip_suffix('\n') {
                Some(rest) => {
                    self.source.push_str(rest);
                    self.line(true);
                }
                None => {
                    self.source.push_str(piece);
                    self.line(false);
                }
            }
        }
        std::mem::take(&mut self.out)
    }

    /// Returns an incomplete word, when no text has followed for a moment.
    pub(super) fn settle(&mut self) -> String {
        self.end_word();
        std::mem::take(&mut self.out)
    }

    /// Ends the text, and its last line.
    pub(super) fn finish(&mut self) -> String {
        if !self.source.is_empty() || self.begun {
            self.line(true);
        }
        self.fence = None;
        self.blank = true;
        std::mem::take(&mut self.out)
    }

    fn line(&mut self, complete: bool) {
        if self.fence.is_some() {
            return self.code(complete);
        }
        if !self.begun && !self.begin(complete) {
            return;
        }
        if self.begun {
            let source = std::mem::take(&mut self.source);
            let left = self.inline(&source, self.face, complete);
            self.source = source[left..].to_owned();
        }
        if complete {
            self.end_line();
        }
    }

    /// Writes a line of code, or ends the block.
    fn code(&mut self, complete: bool) {
        let fence = self.fence.clone().unwrap_or_default();
        if !self.begun {
            let line = self.source.trim();
            let closes =
                line.starts_with(&fence) && line.trim_start_matches(&fence[..1]).is_empty();
            if closes && complete {
                self.fence = None;
                self.source.clear();
                return;
            }
            if !complete && (closes || fence.starts_with(line)) {
                return;
            }
            self.out.push_str(CODE_INDENT);
            (self.begun, self.blank) = (true, false);
        }
        let line = std::mem::take(&mut self.source);
        let face = Face {
            colour: Some(Colour::Cyan),
            ..self.base
        };
        self.out.push_str(&self.paint.text(face, &line));
        if complete {
            self.newline();
            self.begun = false;
        }
    }

    /// Detects the kind of the line and writes its mark. Returns whether the line continues.
    fn begin(&mut self, complete: bool) -> bool {
        let text = self.source.trim_start_matches(' ');
        let indent = self.source.len() - text.len();
        if text.is_empty() {
            if complete {
                // Consecutive empty lines are written as one.
                if !self.blank {
                    self.out.push('\n');
                }
                self.blank = true;
                self.source.clear();
            }
            return false;
        }
        let first = text.chars().next().unwrap_or_default();
        let run = text.len() - text.trim_start_matches(first).len();
        let rest = &text[run..];
        // Rules and fences are known only when the line is complete.
        let only_marks = text.chars().all(|c| c == first || c == ' ');
        match first {
            '`' | '~' if run >= 3 && !rest.contains(first) => {
                if complete {
                    self.fence = Some(text[..run].to_owned());
                    self.source.clear();
                }
                return false;
            }
            '`' | '~' if !complete && rest.is_empty() => return false,
            '-' | '*' | '_' if only_marks => {
                if !complete {
                    return false;
                }
                if text.matches(first).count() >= 3 {
                    let rule = "─".repeat(self.width.min(40));
                    self.out.push_str(&self.paint.text(Face::DIM, &rule));
                    self.newline();
                    self.blank = false;
                    self.source.clear();
                    return false;
                }
            }
            _ => {}
        }
        let mut face = self.base;
        let (mark, taken) = match first {
            '#' if run <= 6 && rest.starts_with(' ') => {
                face.bold = true;
                face.underline = run == 1;
                (String::new(), run + 1)
            }
            '#' if run <= 6 && rest.is_empty() && !complete => return false,
            '-' | '*' | '+' if run == 1 && rest.starts_with(' ') => ("• ".to_owned(), 2),
            '+' if rest.is_empty() && !complete => return false,
            '>' => {
                face.italic = true;
                ("│ ".to_owned(), 1 + usize::from(text[1..].starts_with(' ')))
            }
            '0'..='9' => {
                let digits =
                    text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                let after = &text[digits..];
                if !complete && digits <= 9 && matches!(after, "" | "." | ")") {
                    return false;
                }
                match digits <= 9 && (after.starts_with(". ") || after.starts_with(") ")) {
                    true => (text[..digits + 2].to_owned(), digits + 2),
                    false => (String::new(), 0),
                }
            }
            _ => (String::new(), 0),
        };
        let indent = indent.min(self.width / 4);
        self.source = text[taken..].to_owned();
        self.out.push_str(&" ".repeat(indent));
        self.out.push_str(&self.paint.text(
            Face {
                dim: true,
                ..self.base
            },
            &mark,
        ));
        self.hang = indent + mark.width();
        self.column = self.hang;
        (self.begun, self.blank, self.face, self.before) = (true, false, face, None);
        true
    }

    /// Writes text with spans. Returns the length of the processed text; the rest must wait for
    /// more.
    fn inline(&mut self, text: &str, face: Face, complete: bool) -> usize {
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            // The held text is at most one line.
            let may_wait = !complete && rest.width() < self.width;
            let span = match c {
                '`' => code_span(rest),
                '*' | '_' if c == '*' || !self.before.is_some_and(char::is_alphanumeric) => {
                    emphasis(rest, c)
                }
                '[' => link(rest),
                '\\' => escaped(rest),
                _ => Span::None,
            };
            let length = match span {
                Span::Unknown if may_wait => return at,
                Span::None | Span::Unknown => {
                    // A run of marks that is not a span stays together.
                    let run = match c {
                        '`' | '*' | '_' => run_of(rest, c),
                        _ => 0,
                    };
                    let length = run.max(c.len_utf8());
                    self.plain(&rest[..length], face);
                    length
                }
                Span::Code { inner, length } => {
                    let face = Face {
                        colour: Some(Colour::Cyan),
                        ..face
                    };
                    self.plain(inner, face);
                    length
                }
                Span::Emphasis { inner, length, run } => {
                    let face = Face {
                        bold: face.bold || run >= 2,
                        italic: face.italic || run != 2,
                        ..face
                    };
                    self.before = None;
                    self.inline(inner, face, true);
                    length
                }
                Span::Link { name, url, length } => {
                    let underlined = Face {
                        underline: true,
                        ..face
                    };
                    self.plain(name, underlined);
                    if name != url {
                        let dim = Face { dim: true, ..face };
                        self.plain(&format!(" ({url})"), dim);
                    }
                    length
                }
                Span::Plain { inner, length } => {
                    self.plain(inner, face);
                    length
                }
            };
            at += length;
            self.before = text[..at].chars().next_back();
        }
        at
    }

    /// Appends text to the current word or begins new ones.
    fn plain(&mut self, text: &str, face: Face) {
        let mut piece = String::new();
        for c in text.chars() {
            if c == ' ' {
                self.add(&mut piece, face);
                self.end_word();
                self.word.spaces += 1;
                continue;
            }
            piece.push(c);
            let width = c.width().unwrap_or(0);
            self.word.width += width;
            // Scripts with wide characters have no spaces, so a line may be wrapped after each of
            // them.
            if width > 1 {
                self.add(&mut piece, face);
                self.end_word();
            }
        }
        self.add(&mut piece, face);
    }

    fn add(&mut self, piece: &mut String, face: Face) {
        self.word.text.push_str(&self.paint.text(face, piece));
        piece.clear();
    }

    /// Writes the word, on the next line if it does not fit.
    fn end_word(&mut self) {
        if self.word.text.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let begun = self.column > self.hang;
        if begun && self.column + word.spaces + word.width > self.width {
            self.newline();
            self.out.push_str(&" ".repeat(self.hang));
            self.column = self.hang;
        } else {
            self.out.push_str(&" ".repeat(word.spaces));
            self.column += word.spaces;
        }
        self.out.push_str(&word.text);
        self.column += word.width;
        // The terminal wraps longer text.
        if self.column > self.width {
            self.column %= self.width;
        }
    }

    fn end_line(&mut self) {
        self.end_word();
        self.newline();
        (self.begun, self.hang, self.word.spaces) = (false, 0, 0);
    }

    fn newline(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }
}

/// The construct that begins at a mark.
enum Span<'a> {
    /// No construct: the mark is an ordinary character.
    None,
    /// Unknown until more text is received.
    Unknown,
    Code {
        inner: &'a str,
        length: usize,
    },
    Emphasis {
        inner: &'a str,
        length: usize,
        run: usize,
    },
    Link {
        name: &'a str,
        url: &'a str,
        length: usize,
    },
    Plain {
        inner: &'a str,
        length: usize,
    },
}

fn run_of(text: &str, mark: char) -> usize {
    text.len() - text.trim_start_matches(mark).len()
}

fn code_span(text: &str) -> Span<'_> {
    let run = run_of(text, '`');
    let mut at = run;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let closing = run_of(&text[start..], '`');
        at = start + closing;
        if closing == run {
            let inner = &text[run..start];
            return Span::Code { inner, length: at };
        }
    }
    Span::Unknown
}

fn emphasis(text: &str, mark: char) -> Span<'_> {
    let run = run_of(text, mark);
    match text[run..].chars().next() {
        None => return Span::Unknown,
        Some(next) if next.is_whitespace() || run > 3 => return Span::None,
        Some(_) => {}
    }
    let mut at = run;
    while let Some(found) = text[at..].find(mark) {
        let start = at + found;
        let closing = run_of(&text[start..], mark);
        at = start + closing;
        let spaced = text[..start].ends_with(char::is_whitespace);
        if closing != run || spaced {
            continue;
        }
        // `_` inside of a word does not end a span.
        if mark == '_' && text[at..].starts_with(char::is_alphanumeric) {
            continue;
        }
        let inner = &text[run..start];
        return Span::Emphasis {
            inner,
            length: at,
            run,
        };
    }
    Span::Unknown
}

fn link(text: &str) -> Span<'_> {
    let Some(close) = text.find(']') else {
        return Span::Unknown;
    };
    let after = &text[close + 1..];
    if after.is_empty() {
        return Span::Unknown;
    }
    let Some(target) = after.strip_prefix('(') else {
        return Span::None;
    };
    match target.find(')') {
        Some(end) => Span::Link {
            name: &text[1..close],
            url: &target[..end],
            length: close + 2 + end + 1,
        },
        None => Span::Unknown,
    }
}

fn escaped(text: &str) -> Span<'_> {
    match text[1..].chars().next() {
        None => Span::Unknown,
        Some(c) if c.is_ascii_punctuation() => Span::Plain {
            inner: &text[1..2],
            length: 2,
        },
        Some(_) => Span::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Paint = Paint { colours: false };
    const COLOURS: Paint = Paint { colours: true };

    fn shown(text: &str, width: usize) -> String {
        let mut markdown = Markdown::new(PLAIN, Face::default());
        markdown.push(text, width) + &markdown.finish()
    }

    #[test]
    fn blocks_have_marks() {
        assert_eq!(shown("# Title\n\n\ntext", 80), "Title\n\ntext\n");
        assert_eq!(shown("- a\n  - b\n* c\n+ d", 80), "• a\n  • b\n• c\n• d\n");
        assert_eq!(shown("1. a\n12) b\n1.5 c", 80), "1. a\n12) b\n1.5 c\n");
        assert_eq!(shown("> a\n>b", 80), "│ a\n│ b\n");
        assert_eq!(
            shown("a\n\n---\nb", 80),
            format!("a\n\n{}\nb\n", "─".repeat(40))
        );
        assert_eq!(shown("#tag\n-x\n#", 80), "#tag\n-x\n#\n");
    }

    #[test]
    fn code_is_indented_and_left_alone() {
        let code = "```rust\nlet a = b*c*d; // **x**\n\n  y\n```\nz";
        assert_eq!(
            shown(code, 80),
            "    let a = b*c*d; // **x**\n    \n      y\nz\n"
        );
        assert_eq!(shown("````\n```\n````\nx", 80), "    ```\nx\n");
    }

    #[test]
    fn spans_lose_their_marks() {
        assert_eq!(shown("a **b c** *d* `e*f*` _g_", 80), "a b c d e*f* g\n");
        assert_eq!(shown("[name](http://x)", 80), "name (http://x)\n");
        let mut markdown = Markdown::new(COLOURS, Face::default());
        let text = markdown.push("**b** `c`\n", 80);
        assert_eq!(text, "\u{1b}[1mb\u{1b}[0m \u{1b}[36mc\u{1b}[0m\n");
    }

    #[test]
    fn what_is_no_markdown_stays() {
        for text in [
            "2 ** 3 * 4",
            "**kwargs and *args",
            "snake_case_name __x",
            "a [b] c [d",
            "`open",
            "C:\\dir \\",
            "a * b*",
        ] {
            assert_eq!(shown(text, 80), format!("{text}\n"));
        }
    }

    #[test]
    fn the_pieces_make_no_difference() {
        let text =
            "# A *b*\n\n- **bold text** and `code`, [l](u)\n\n```x\nf(a)\n``\n```\n1. z **k\n";
        let whole = shown(text, 30);
        for size in 1..9 {
            let mut markdown = Markdown::new(PLAIN, Face::default());
            let mut pieces = String::new();
            let characters: Vec<char> = text.chars().collect();
            for piece in characters.chunks(size) {
                pieces += &markdown.push(&piece.iter().collect::<String>(), 30);
            }
            pieces += &markdown.finish();
            assert_eq!(pieces, whole, "{size}");
        }
    }

    #[test]
    fn lines_are_wrapped_at_words() {
        assert_eq!(
            shown("aaaa bbbb cccc dddd eeee ffff", 20),
            "aaaa bbbb cccc dddd\neeee ffff\n"
        );
        assert_eq!(
            shown("- aaaa bbbb cccc dddd eeee", 20),
            "• aaaa bbbb cccc\n  dddd eeee\n"
        );
        assert_eq!(shown(&"日".repeat(11), 20), "日日日日日日日日日日\n日\n");
    }

    #[test]
    fn a_span_is_held_back_for_a_line_only() {
        let mut markdown = Markdown::new(PLAIN, Face::default());
        assert_eq!(markdown.push("see **this ", 20), "see");
        assert_eq!(markdown.settle(), "");
        let text = markdown.push("and that and more and more", 20);
        assert!(text.starts_with(" **this and that"), "{text:?}");
    }

    #[test]
    fn a_word_appears_when_nothing_follows() {
        let mut markdown = Markdown::new(PLAIN, Face::default());
        assert_eq!(markdown.push("Pass", 80), "");
        assert_eq!(markdown.settle(), "Pass");
        assert_eq!(markdown.push("word: ", 80), "word:");
        assert_eq!(markdown.finish(), "\n");
    }
}
