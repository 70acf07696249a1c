//! The formats of a comparison, and what their templates are given: its JSON, and what follows from it.

use serde::Serialize;

use super::comparison::{Comparison, Difference, Target};
use crate::Result;
use crate::report::render::render;

/// Returns the comparison as a person reads it in a terminal.
///
/// # Errors
/// When it does not fit its template.
pub fn text_comparison(comparison: &Comparison) -> Result<String> {
    render("comparison.txt", View::of(comparison))
}

/// Returns the comparison as a page for a browser.
///
/// # Errors
/// When it does not fit its template.
pub fn html_comparison(comparison: &Comparison) -> Result<String> {
    render("comparison.html", View::of(comparison))
}

/// Returns the comparison as Markdown, for a README or the summary of a build.
///
/// # Errors
/// When it does not fit its template.
pub fn markdown_comparison(comparison: &Comparison) -> Result<String> {
    render("comparison.md", View::of(comparison))
}

/// A comparison and what follows from it.
#[derive(Debug, Serialize)]
struct View<'a> {
    comparison: &'a Comparison,
    /// Where each subject's report comes from.
    provenance: Vec<String>,
    cautions: Vec<String>,
    /// The differences by what became of them, below a title.
    groups: Vec<(String, &'a [Difference])>,
    /// What reports lack, below a title.
    absent: Vec<(String, Vec<String>)>,
}

impl<'a> View<'a> {
    fn of(comparison: &'a Comparison) -> Self {
        let last = comparison.subjects.len();
        let groups = comparison
            .differences
            .chunk_by(|one, other| one.change == other.change);
        let groups = groups.filter_map(|rows| Some((rows.first()?.change.title(last), rows)));
        let absent = comparison.absent.iter();
        Self {
            comparison,
            provenance: comparison.subjects.iter().map(Target::provenance).collect(),
            cautions: comparison.cautions(),
            groups: groups.collect(),
            absent: absent
                .map(|it| (it.title(), it.names().collect()))
                .collect(),
        }
    }
}
