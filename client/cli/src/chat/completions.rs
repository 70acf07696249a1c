//! What Tab completes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use reedline::{Completer, Span, Suggestion};

use super::files;
use super::input::{Shared, lock};

/// Completes the whole line, or a file after `@`.
pub(super) struct Completions(Arc<Mutex<Shared>>, PathBuf);

impl Completions {
    pub(super) fn new(shared: Arc<Mutex<Shared>>, directory: PathBuf) -> Self {
        Self(shared, directory)
    }
}

impl Completer for Completions {
    fn complete(&mut self, line: &str, pos: usize) -> Vec<Suggestion> {
        let begun = line.get(..pos).unwrap_or(line);
        let start = begun.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        if let Some(path) = begun[start..].strip_prefix('@') {
            let files = files::matching(&self.1, path).into_iter();
            let suggested = |path: String| Suggestion {
                append_whitespace: !path.ends_with('/'),
                value: format!("@{path}"),
                span: Span::new(start, pos),
                ..Suggestion::default()
            };
            return files.map(suggested).collect();
        }
        let words = begun.matches(' ').count();
        let shared = lock(&self.0);
        let fitting = shared.completions.iter().filter(|(line, _)| {
            begun.starts_with('/') && line.starts_with(begun) && line.matches(' ').count() == words
        });
        fitting
            .map(|(line, what)| Suggestion {
                value: line.clone(),
                description: Some(what.clone()).filter(|what| !what.is_empty()),
                span: Span::new(0, pos),
                append_whitespace: true,
                ..Suggestion::default()
            })
            .collect()
    }
}
