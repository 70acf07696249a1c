//! Wraps text with styles at words.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::super::screen::Live;
use super::super::style::{Face, Paint};

/// Pieces of text with a style each.
pub(super) type Spans = Vec<(String, Face)>;

/// Returns lines of at most `width` columns. A longer word is broken if `strict`; otherwise the
/// terminal wraps it, so that it can be copied as a whole.
pub(super) fn wrap(spans: &Spans, width: usize, strict: bool, paint: Paint) -> Vec<Live> {
    let longest = if strict { width.max(2) - 1 } else { usize::MAX };
    let mut wrapped = Wrapped {
        width,
        lines: vec![Live::default()],
        word: Live::default(),
        spaces: 0,
    };
    for (text, face) in spans {
        for part in text.split_inclusive([' ', '\n']) {
            let word = part.trim_end_matches([' ', '\n']);
            for chunk in chunks(word, longest) {
                let columns = chunk.width();
                wrapped.word.shown += &paint.text(*face, chunk);
                wrapped.word.columns += columns;
                // Scripts with wide characters have no spaces.
                if columns >= longest || chunk.ends_with(is_wide) {
                    wrapped.end_word();
                }
            }
            if part.len() > word.len() {
                wrapped.end_word();
                match part.ends_with('\n') {
                    true => wrapped.lines.push(Live::default()),
                    false => wrapped.spaces += 1,
                }
            }
        }
    }
    wrapped.end_word();
    wrapped.lines
}

struct Wrapped {
    width: usize,
    lines: Vec<Live>,
    /// The current word, and the spaces before it.
    word: Live,
    spaces: usize,
}

impl Wrapped {
    fn end_word(&mut self) {
        let spaces = std::mem::take(&mut self.spaces);
        if self.word.shown.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        match self.lines.last_mut() {
            Some(line)
                if line.columns == 0 || line.columns + spaces + word.columns <= self.width =>
            {
                let spaces = if line.columns == 0 { 0 } else { spaces };
                line.shown += &" ".repeat(spaces);
                line.shown += &word.shown;
                line.columns += spaces + word.columns;
            }
            _ => self.lines.push(word),
        }
    }
}

fn is_wide(c: char) -> bool {
    c.width() > Some(1)
}

/// Splits a word behind wide characters, and when it has `longest` columns.
fn chunks(word: &str, longest: usize) -> impl Iterator<Item = &str> {
    let mut used = 0;
    word.split_inclusive(move |c: char| {
        used += c.width().unwrap_or(0);
        let ends = is_wide(c) || used >= longest;
        used = if ends { 0 } else { used };
        ends
    })
}
