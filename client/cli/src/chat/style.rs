//! Colours, columns, and sanitized text of agents.

use acp_sdk::text::printable;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The style of text. Several attributes may be set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Face {
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) underline: bool,
    pub(super) dim: bool,
    pub(super) colour: Option<Colour>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Red,
    Green,
    Yellow,
    Magenta,
    Cyan,
}

impl Face {
    pub(super) const DIM: Self = Self {
        bold: false,
        italic: false,
        underline: false,
        dim: true,
        colour: None,
    };

    pub(super) const BOLD: Self = Self {
        bold: true,
        dim: false,
        ..Self::DIM
    };

    pub(super) const fn of(colour: Colour) -> Self {
        Self {
            dim: false,
            colour: Some(colour),
            ..Self::DIM
        }
    }
}

/// Applies styles to text, if colours are enabled.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Paint {
    pub(super) colours: bool,
}

impl Paint {
    pub(super) fn text(self, face: Face, text: &str) -> String {
        if !self.colours || face == Face::default() || text.is_empty() {
            return text.to_owned();
        }
        let mut codes = Vec::new();
        for (set, code) in [
            (face.bold, "1"),
            (face.dim, "2"),
            (face.italic, "3"),
            (face.underline, "4"),
        ] {
            if set {
                codes.push(code);
            }
        }
        codes.extend(face.colour.map(|colour| match colour {
            Colour::Red => "31",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Magenta => "35",
            Colour::Cyan => "36",
        }));
        format!("\u{1b}[{}m{text}\u{1b}[0m", codes.join(";"))
    }
}

/// Returns text without control sequences. Tabs become spaces; line feeds stay.
pub(super) fn clean(text: &str) -> String {
    printable(text).replace('\t', "    ")
}

/// Returns the first line of text, sanitized, with at most `columns` columns.
pub(super) fn fit(text: &str, columns: usize) -> String {
    let text = clean(text);
    let text = text.trim_end_matches('\n').replace('\n', " ");
    if text.width() <= columns {
        return text;
    }
    let mut shown = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        shown.push(c);
    }
    shown.push('…');
    shown
}

/// Returns the lines of text, sanitized and wrapped at words.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let text = clean(text);
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut wrapped = String::new();
        for word in line.split_inclusive(' ') {
            let width = wrapped.width() + word.trim_end().width();
            if !wrapped.is_empty() && width > columns {
                lines.push(wrapped.trim_end().to_owned());
                wrapped.clear();
            }
            wrapped.push_str(word);
        }
        lines.push(wrapped.trim_end().to_owned());
    }
    lines
}

/// Returns the line for those that are left out, which ends in `hint` at any width.
pub(super) fn more(left_out: usize, hint: &str, width: usize) -> String {
    let s = if left_out == 1 { "" } else { "s" };
    let line = format!("… {left_out} more line{s}{hint}");
    match line.width() + 5 <= width {
        true => line,
        false => format!("…{hint}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_its_columns() {
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abcd", 3), "ab…");
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("a\nb\n", 9), "a b");
    }

    #[test]
    fn lines_are_wrapped_at_words() {
        assert_eq!(wrap("aa bb cc\n  dd\u{7}", 5), ["aa bb", "cc", "  dd"]);
        assert_eq!(wrap("aaaaaaaa b", 5), ["aaaaaaaa", "b"]);
    }

    #[test]
    fn colours_are_left_out() {
        let paint = Paint { colours: false };
        assert_eq!(paint.text(Face::BOLD, "a"), "a");
        let paint = Paint { colours: true };
        let red = Face::of(Colour::Red);
        assert_eq!(paint.text(red, "a"), "\u{1b}[31ma\u{1b}[0m");
        assert_eq!(paint.text(Face::default(), "a"), "a");
    }
}
