//! Renders a whole text: the marks of its blocks, and the styles of its spans.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};
use unicode_width::UnicodeWidthStr as _;

use super::super::screen::Live;
use super::super::style::{Colour, Face, Paint};
use super::code;
use super::table::Table;
use super::wrap::{Spans, wrap};
use super::{CODE_INDENT, parser};

/// Blocks within more blocks have no marks.
const DEEPEST: usize = 20;

/// The mark before the first line of a block and before its other lines.
type Mark = (String, String);

#[derive(Default)]
pub(super) struct Renderer<'a> {
    source: &'a str,
    paint: Paint,
    base: Face,
    width: usize,
    lines: Vec<Live>,
    marks: Vec<Mark>,
    faces: Vec<Face>,
    /// The text of the current block.
    spans: Spans,
    /// The URLs of open links, and where their text begins in `spans`.
    links: Vec<(String, usize)>,
    /// The language and the text of a block of code.
    code: Option<(String, String)>,
    /// The code before the source in its first block.
    before: &'a str,
    table: Option<Table>,
    /// Definitions of links. They are shown, but the parser has no event for them.
    definitions: Vec<Range<usize>>,
    /// The end of what was rendered, and the line feeds before the source.
    at: usize,
    breaks: usize,
    started: bool,
}

impl<'a> Renderer<'a> {
    pub(super) fn new(source: &'a str, paint: Paint, base: Face, width: usize) -> Self {
        Self {
            source,
            paint,
            base,
            width,
            ..Self::default()
        }
    }

    /// Continues a block of code.
    pub(super) fn behind(mut self, before: &'a str) -> Self {
        self.before = before;
        self
    }

    /// Continues a text: whether there is text before the source, and the line feeds between them.
    pub(super) fn after(mut self, started: bool, breaks: usize) -> Self {
        (self.started, self.breaks) = (started, breaks);
        self
    }

    pub(super) fn render(mut self) -> Vec<Live> {
        let parser = parser(self.source);
        let definitions = parser.reference_definitions().iter();
        self.definitions = definitions.map(|(_, link)| link.span.clone()).collect();
        self.definitions
            .sort_by_key(|span| std::cmp::Reverse(span.start));
        for (event, range) in parser.into_offset_iter() {
            match event {
                Event::Start(tag) => self.start(tag, range.start),
                event => {
                    self.event(event, &range);
                    self.pass(range.end);
                }
            }
        }
        self.begin(self.source.len());
        self.lines
    }

    fn event(&mut self, event: Event<'_>, range: &Range<usize>) {
        let face = self.face();
        match event {
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.spans.push((text.into_string(), face)),
            },
            Event::Code(text) => {
                let colour = Some(Colour::Cyan);
                self.spans
                    .push((text.into_string(), Face { colour, ..face }));
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                self.spans.push((text.into_string(), face));
            }
            // Agents rarely wrap text themselves, so their line feeds are meant.
            Event::SoftBreak | Event::HardBreak => self.spans.push(("\n".to_owned(), face)),
            Event::Rule => {
                self.begin(range.start);
                let rule = "─".repeat(self.room().min(40));
                self.line(Live::new(self.paint, Face::DIM, &rule));
            }
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, at: usize) {
        let face = self.face();
        match tag {
            Tag::Emphasis => self.faces.push(Face {
                italic: true,
                ..face
            }),
            Tag::Strong => self.faces.push(Face { bold: true, ..face }),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.into_string(), self.spans.len()));
                self.faces.push(Face {
                    underline: true,
                    ..face
                });
            }
            Tag::TableHead => {
                self.faces.push(Face { bold: true, ..face });
                self.row();
            }
            Tag::TableRow => self.row(),
            Tag::TableCell => {}
            tag => {
                self.begin(at);
                self.block(tag, at);
            }
        }
    }

    fn block(&mut self, tag: Tag<'_>, at: usize) {
        let face = self.face();
        match tag {
            Tag::Heading { level, .. } => self.faces.push(Face {
                bold: true,
                underline: level == HeadingLevel::H1,
                ..face
            }),
            Tag::BlockQuote(_) => {
                self.faces.push(Face {
                    italic: true,
                    ..face
                });
                self.mark("│ ".to_owned(), "│ ".to_owned());
            }
            Tag::Item => {
                let text = &self.source[at..];
                let digits =
                    text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                let mark = match digits {
                    0 => "• ".to_owned(),
                    digits => format!("{} ", text.get(..=digits).unwrap_or(text)),
                };
                let indent = " ".repeat(mark.width());
                self.mark(mark, indent);
            }
            Tag::CodeBlock(kind) => {
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',', '{']).next(),
                    CodeBlockKind::Indented => None,
                };
                self.code = Some((language.unwrap_or_default().to_owned(), String::new()));
            }
            Tag::Table(alignments) => {
                let rows = Vec::new();
                self.table = Some(Table { alignments, rows });
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::TableHead => {
                self.faces.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.faces.pop();
                let (url, from) = self.links.pop().unwrap_or_default();
                let named = self.spans.iter().skip(from).map(|(text, _)| text.as_str());
                if named.collect::<String>() != url {
                    let face = Face {
                        dim: true,
                        ..self.face()
                    };
                    self.spans.push((format!(" ({url})"), face));
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                let rows = self.table.iter_mut().flat_map(|table| &mut table.rows);
                if let Some(row) = rows.last() {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                let table = self.table.take();
                let lines = table.map(|table| table.lines(self.room(), self.paint));
                lines.into_iter().flatten().for_each(|line| self.line(line));
            }
            TagEnd::CodeBlock => {
                let (language, code) = self.code.take().unwrap_or_default();
                let before = std::mem::take(&mut self.before);
                for mut spans in code::lines(&language, before, &code, self.face()) {
                    spans.insert(0, (CODE_INDENT.to_owned(), Face::default()));
                    self.code_line(spans);
                }
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.faces.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.faces.pop();
                self.marks.pop();
            }
            TagEnd::Item => {
                self.flush();
                // An item without text has its mark.
                if self.marks.last().is_some_and(|(first, rest)| first != rest) {
                    self.line(Live::default());
                }
                self.marks.pop();
            }
            _ => self.flush(),
        }
    }

    fn row(&mut self) {
        if let Some(table) = &mut self.table {
            table.rows.push(Vec::new());
        }
    }

    fn face(&self) -> Face {
        self.faces.last().copied().unwrap_or(self.base)
    }

    /// The columns of a line without its marks.
    fn room(&self) -> usize {
        let marks = self.marks.iter().take(DEEPEST);
        self.width - marks.map(|(_, rest)| rest.width()).sum::<usize>()
    }

    fn mark(&mut self, first: String, rest: String) {
        let deep = self.marks.len() >= DEEPEST || self.room() <= self.width / 2;
        self.marks
            .push(if deep { Mark::default() } else { (first, rest) });
    }

    /// Ends the text before a block, and repeats an empty line of the source.
    fn begin(&mut self, start: usize) {
        self.flush();
        while let Some(definition) = self.definitions.pop_if(|next| next.start < start) {
            self.gap(definition.start);
            let text = self.source.get(definition.clone()).unwrap_or_default();
            self.spans.push((text.trim_end().to_owned(), self.face()));
            self.flush();
            self.pass(definition.end);
        }
        if start < self.source.len() {
            self.gap(start);
        }
    }

    fn gap(&mut self, start: usize) {
        let between = self.source.get(self.at..start).unwrap_or_default();
        let breaks = std::mem::take(&mut self.breaks) + between.matches('\n').count();
        if breaks > 1 && (self.started || !self.lines.is_empty()) {
            let marks = self.marks.iter().take(DEEPEST);
            let marks: String = marks.map(|(_, rest)| rest.as_str()).collect();
            let face = Face {
                dim: true,
                ..self.base
            };
            self.lines
                .push(Live::new(self.paint, face, marks.trim_end()));
        }
        self.at = self.at.max(start);
    }

    fn pass(&mut self, end: usize) {
        self.at = self.at.max(self.source[..end].trim_end().len());
    }

    fn flush(&mut self) {
        // The end of a cell is not the end of a block.
        let mut spans = std::mem::take(&mut self.spans);
        if let Some((last, _)) = spans.last_mut() {
            last.truncate(last.trim_end_matches('\n').len());
            let lines = wrap(&spans, self.room(), false, self.paint);
            lines.into_iter().for_each(|line| self.line(line));
        }
    }

    /// Adds a line of code, without the spaces at its end.
    fn code_line(&mut self, mut spans: Spans) {
        let mut line = Live::default();
        while let Some((last, _)) = spans.last_mut() {
            last.truncate(last.trim_end().len());
            if !last.is_empty() {
                break;
            }
            spans.pop();
        }
        for (text, face) in spans {
            let span = Live::new(self.paint, face, &text);
            line.shown += &span.shown;
            line.columns += span.columns;
        }
        self.line(line);
    }

    /// Adds a line behind the marks of its blocks.
    fn line(&mut self, text: Live) {
        let marks = self.marks.iter_mut().take(DEEPEST);
        let marks: String = marks
            .map(|(first, rest)| std::mem::replace(first, rest.clone()))
            .collect();
        let face = Face {
            dim: true,
            ..self.base
        };
        let mut line = Live::new(self.paint, face, &marks);
        line.shown += &text.shown;
        line.columns += text.columns;
        self.lines.push(line);
    }
}
