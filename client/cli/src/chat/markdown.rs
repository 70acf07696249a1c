//! Renders Markdown that arrives in chunks, block by block.
//!
//! A block is returned when the next one begins, an item of a list when the next item begins, and a
//! line of code when it ends. [`Markdown::preview`] renders the rest.

mod code;
mod render;
mod table;
#[cfg(test)]
mod tests;
mod wrap;

use acp_sdk::text::Sanitizer;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use self::render::Renderer;
use super::screen::Live;
use super::style::{Face, Paint};

/// Maximum size in bytes of a block that is rendered as a whole.
const LONGEST: usize = 16 << 10;

/// Maximum size in bytes of the code before a line from which its style follows.
const STYLED: usize = 4 << 10;

/// Converts chunks of Markdown to text for a terminal, whose lines end in `\n`.
#[derive(Debug)]
pub(super) struct Markdown {
    paint: Paint,
    base: Face,
    width: usize,
    /// A control sequence may be split between chunks.
    sanitizer: Sanitizer,
    /// The text that was not returned yet.
    source: String,
    /// The code before `source` in its block, for the styles.
    before: String,
    /// The length of `source` after it was parsed. It is parsed again when it has grown by a quarter, so
    /// the work is linear in the text.
    parsed: usize,
    /// Whether text was returned, and the line feeds behind it.
    started: bool,
    breaks: usize,
    #[cfg(test)]
    work: std::cell::Cell<usize>,
}

/// Before a line of code.
const CODE_INDENT: &str = "    ";

/// Returns the events of a text with their positions.
fn parser(source: &str) -> Parser<'_> {
    Parser::new_ext(source, Options::ENABLE_TABLES)
}

impl Markdown {
    pub(super) fn new(paint: Paint, base: Face) -> Self {
        Self {
            paint,
            base,
            width: 80,
            sanitizer: Sanitizer::default(),
            source: String::new(),
            before: String::new(),
            parsed: 0,
            started: false,
            breaks: 0,
            #[cfg(test)]
            work: std::cell::Cell::default(),
        }
    }

    /// Adds a chunk and returns the blocks that are complete.
    pub(super) fn push(&mut self, text: &str, width: usize) -> String {
        self.width = width.max(20);
        let text = self.sanitizer.push(text).replace('\t', "    ");
        self.source.push_str(&text);
        let grown = self.source.len() > self.parsed + self.parsed / 4;
        let mut shown = String::new();
        if grown && text.contains('\n') {
            shown = self.complete();
            self.parsed = self.source.len();
        }
        if self.source.len() > LONGEST {
            shown += &self.complete();
        }
        if self.source.len() > LONGEST {
            let fenced =
                matches!(parser(&self.source).next(), Some(Event::Start(tag)) if is_fenced(&tag));
            let opening = opening(&self.source, fenced);
            let rest = &self.source[opening.len()..];
            let end = rest.rfind('\n').or_else(|| rest.rfind(' '));
            let end = end.map_or(rest.len(), |at| at + 1);
            shown += &self.take_code(opening.len() + end, &opening, opening.len());
            self.parsed = self.source.len();
        }
        shown
    }

    /// Returns the lines of the incomplete block.
    pub(super) fn preview(&self) -> Vec<Live> {
        self.render(&self.source)
    }

    /// Returns the rest. The next chunk begins another text.
    pub(super) fn finish(&mut self) -> String {
        let shown = self.take(self.source.len());
        self.sanitizer = Sanitizer::default();
        (self.parsed, self.started, self.breaks) = (0, false, 0);
        shown
    }

    fn render(&self, source: &str) -> Vec<Live> {
        #[cfg(test)]
        self.work.update(|work| work + source.len());
        Renderer::new(source, self.paint, self.base, self.width)
            .behind(&self.before)
            .after(self.started, self.breaks)
            .render()
    }

    /// Returns the blocks that no further line can change.
    fn complete(&mut self) -> String {
        let lines = self.source.rfind('\n').map_or(0, |at| at + 1);
        #[cfg(test)]
        self.work.update(|work| work + lines);
        let (mut depth, mut last, mut fenced, mut listed) = (0, 0, false, false);
        for (event, range) in parser(&self.source[..lines]).into_offset_iter() {
            let begins = match &event {
                Event::Start(tag) if depth == 0 => {
                    fenced = is_fenced(tag);
                    listed = matches!(tag, Tag::List(_));
                    true
                }
                Event::Start(Tag::Item) => depth == 1 && listed,
                Event::Rule => depth == 0,
                _ => false,
            };
            if begins {
                last = range.start;
            }
            match event {
                Event::Start(_) => depth += 1,
                Event::End(_) => depth -= 1,
                Event::Rule if depth == 0 => (fenced, listed) = (false, false),
                _ => {}
            }
        }
        // The indent belongs to the block.
        last = self.source[..last].rfind('\n').map_or(0, |at| at + 1);
        let opening = opening(&self.source[last..], fenced);
        let code = &self.source[last + opening.len()..lines];
        if code.is_empty() || opening.is_empty() {
            return self.take(last);
        }
        // Lines of code are final.
        match is_closed(&opening, code) {
            true => self.take(lines),
            false => self.take_code(lines, &opening, last + opening.len()),
        }
    }

    /// Renders and removes the first bytes. The rest is in the block that `opening` began, too, whose code
    /// begins at `code`.
    fn take_code(&mut self, length: usize, opening: &str, code: usize) -> String {
        let is_continued = code == opening.len();
        let mut before = match is_continued {
            true => self.before.clone(),
            false => String::new(),
        };
        before += self.source.get(code..length).unwrap_or_default();
        let shown = self.take(length);
        if !opening.is_empty() {
            self.breaks = 0;
            self.source.insert_str(0, opening);
            // The work is linear in the text, so the styles of a long block begin again.
            if before.len() <= STYLED {
                self.before = before;
            }
        }
        shown
    }

    /// Renders and removes the first bytes.
    fn take(&mut self, length: usize) -> String {
        let lines = self.render(&self.source[..length]);
        let text = self.source[..length].trim_end();
        let breaks = self.source[text.len()..length].matches('\n').count();
        self.breaks = match text.is_empty() {
            true => self.breaks + breaks,
            false => breaks,
        };
        self.started |= !lines.is_empty();
        self.source.drain(..length);
        self.before.clear();
        let lines = lines.iter().map(|line| line.shown.as_str());
        lines.flat_map(|line| [line, "\n"]).collect()
    }
}

fn is_fenced(tag: &Tag<'_>) -> bool {
    matches!(tag, Tag::CodeBlock(CodeBlockKind::Fenced(_)))
}

/// Returns the first line of a block of code, or nothing for another block. It is parsed again with each
/// line, so a very long one is not code.
fn opening(block: &str, fenced: bool) -> String {
    let line = block.split_inclusive('\n').next();
    let line = line.filter(|line| fenced && line.len() < LONGEST / 16);
    line.unwrap_or_default().to_owned()
}

/// Returns whether a block of code ends.
fn is_closed(opening: &str, code: &str) -> bool {
    let fence = opening.trim_start();
    let mark = fence.chars().next().unwrap_or_default();
    let fence = &fence[..fence.len() - fence.trim_start_matches(mark).len()];
    let last = code.trim_end().lines().next_back().unwrap_or_default();
    let mark_only = last.trim_start();
    last.len() - mark_only.len() < CODE_INDENT.len()
        && mark_only.starts_with(fence)
        && mark_only.trim_start_matches(mark).is_empty()
}
