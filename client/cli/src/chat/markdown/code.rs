//! Code in fenced blocks, with the styles of its language.

use hl_lite::{Kind, Lang};

use super::super::style::{Colour, Face};
use super::wrap::Spans;

/// Returns the lines of code that follows `before` in its block. Only the styles depend on `before`, such as
/// those within a long comment.
pub(super) fn lines(language: &str, before: &str, code: &str, base: Face) -> Vec<Spans> {
    let Some(language) = Lang::from_slug(language) else {
        let face = of(base, Colour::Cyan);
        let lines = code.lines().map(|line| vec![(line.to_owned(), face)]);
        return lines.collect();
    };
    let all = format!("{before}{code}");
    let mut lines = vec![Spans::new()];
    for span in hl_lite::highlight(language, &all) {
        let face = face(span.kind, base);
        for part in span.text.split_inclusive('\n') {
            let text = part.trim_end_matches('\n');
            if let Some(line) = lines.last_mut() {
                line.push((text.to_owned(), face));
            }
            if text.len() < part.len() {
                lines.push(Spans::new());
            }
        }
    }
    if all.ends_with('\n') {
        lines.pop();
    }
    lines.split_off(before.matches('\n').count().min(lines.len()))
}

fn of(base: Face, colour: Colour) -> Face {
    Face {
        colour: Some(colour),
        ..base
    }
}

/// The colours are those of the terminal's palette that can be read on light and on dark backgrounds.
fn face(kind: Kind, base: Face) -> Face {
    match kind {
        Kind::Keyword | Kind::Tag => of(base, Colour::Magenta),
        Kind::String => of(base, Colour::Green),
        Kind::Number | Kind::Constant | Kind::Variable => of(base, Colour::Yellow),
        Kind::Type | Kind::Attribute | Kind::Property => of(base, Colour::Cyan),
        Kind::Comment => Face { dim: true, ..base },
        Kind::Plain | Kind::Function | Kind::Operator | Kind::Punctuation => base,
    }
}
