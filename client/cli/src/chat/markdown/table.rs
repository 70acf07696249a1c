//! Renders tables.

use pulldown_cmark::Alignment;
use unicode_width::UnicodeWidthStr as _;

use super::super::screen::Live;
use super::super::style::{Face, Paint};
use super::wrap::{Spans, wrap};

/// The narrowest column of a table that does not fit.
const NARROWEST: usize = 4;

/// A table: the heading, then the rows.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    pub(super) rows: Vec<Vec<Spans>>,
}

impl Table {
    /// Returns the lines. If the table is wider than `width`, text is wrapped in the widest columns.
    pub(super) fn lines(&self, width: usize, paint: Paint) -> Vec<Live> {
        let columns = self.alignments.len();
        let mut widths = vec![1; columns];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell
                    .iter()
                    .map(|(text, _)| text.width())
                    .sum::<usize>()
                    .max(*width);
            }
        }
        let room = width.saturating_sub(3 * columns.saturating_sub(1));
        let fits = |most: usize| widths.iter().map(|width| most.min(*width)).sum::<usize>() <= room;
        let most = (NARROWEST..=room).rev().find(|most| fits(*most));
        let most = most.unwrap_or(NARROWEST);
        widths
            .iter_mut()
            .for_each(|width| *width = most.min(*width));
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths);
            let cells: Vec<_> = cells
                .map(|(cell, width)| wrap(cell, *width, true, paint))
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or_default();
            for at in 0..height {
                let cells = cells.iter().map(|cell| cell.get(at));
                lines.push(self.line(cells, &widths, paint));
            }
            if index == 0 {
                let rule: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Live::new(paint, Face::DIM, &rule.join("─┼─")));
            }
        }
        lines
    }

    fn line<'a>(
        &self,
        cells: impl Iterator<Item = Option<&'a Live>>,
        widths: &[usize],
        paint: Paint,
    ) -> Live {
        let mut line = Live::default();
        let separator = paint.text(Face::DIM, " │ ");
        for ((cell, width), alignment) in cells.zip(widths).zip(&self.alignments) {
            if line.columns > 0 {
                line.shown += &separator;
                line.columns += 3;
            }
            let (shown, columns) = cell.map_or(("", 0), |cell| (&cell.shown, cell.columns));
            let free = width.saturating_sub(columns);
            let left = match alignment {
                Alignment::Right => free,
                Alignment::Center => free / 2,
                _ => 0,
            };
            line.shown += &format!("{:left$}{shown}{:right$}", "", "", right = free - left);
            line.columns += columns + free;
        }
        let shown = line.shown.trim_end();
        line.columns -= line.shown.len() - shown.len();
        line.shown.truncate(shown.len());
        line
    }
}
